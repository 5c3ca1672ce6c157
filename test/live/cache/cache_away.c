/* Caches whose server is stopped, refusing, stalled, and back again. An unreachable server never
 * counts as a miss; options.away decides what a get returns. */
#include <stdio.h>

#include "support/fixtures/cache/caches.h"

#define KEY "belay::cache::pages::{home}"
#define LEASE KEY "::lease"
#define TIMEOUT_MS (60 * slow())

typedef struct outage {
  void (*begin)(server_t *server);
  void (*end)(server_t *server);
  bool keeps; /* true if the server keeps its data */
} outage_t;

static void refuse(server_t *server) {
  server_do(server, "ACL", "SETUSER", "default", "-get", "-set", "-evalsha", "-eval", NULL);
}

static void allow(server_t *server) {
  server_do(server, "ACL", "SETUSER", "default", "+get", "+set", "+evalsha", "+eval", NULL);
}

static const outage_t outages[] = {
    {server_kill, server_restart, false},
    {refuse, allow, true},
    {server_pause, server_resume, true},
};

enum { OUTAGES = sizeof outages / sizeof *outages };

static belay_client_options_t short_calls(void) {
  belay_client_options_t client = client_options();
  client.timeout_ms = TIMEOUT_MS;
  client.stall_timeout_ms = TIMEOUT_MS;
  client.connect_timeout_ms = TIMEOUT_MS;
  client.reconnect_max_ms = 20;
  client.close_timeout_ms = 50;
  return client;
}

static bed_t *bed_of(hoard_t *hoard, belay_cache_away_t away, int64_t ttl_ms, int64_t keep_ms) {
  belay_client_options_t client = short_calls();
  bed_t *bed = bed_open(&client);
  belay_cache_options_t options = cache_options(hoard);
  options.away = away;
  options.ttl_ms = ttl_ms;
  options.keep_ms = keep_ms;
  options.local_bytes = 1 << 20;
  options.local_ttl_ms = 30;
  options.max_away_loads = 2;
  options.retry_max_ms = 20;
  hoard_new(hoard, bed, &options);
  return bed;
}

static void begin_outage(const outage_t *outage, bed_t *bed) {
  bed_settle(bed);
  outage->begin(bed->server);
}

/* And gets work again. */
static void end_outage(const outage_t *outage, bed_t *bed, hoard_t *hoard) {
  fetch_t fetch = {0};
  outage->end(bed->server);
  hoard->loading = LOADING_AT_ONCE;
  for (int tries = 0;; tries++) {
    assert_int_equal(begin_cache_get(hoard, &fetch, "again"), 0);
    int status = end_of_fetch(&fetch);
    bool stored = status == 0 && !fetch.result.stale && fetch.result.from != BELAY_CACHE_FROM_LOAD;
    fetch_free(&fetch);
    if (stored)
      break;
    assert_true(tries < 100);
    bed_run_for(bed, 5);
  }
  bed_close(bed);
}

static bool is_away(int status) {
  return status == BELAY_EUNREACHABLE || status == BELAY_EUNKNOWN || status == BELAY_EPERM ||
         status == BELAY_ETIMEDOUT;
}

/* The error comes within its time, and says why. */
static void expect_away(hoard_t *hoard, const char *key) {
  fetch_t fetch = {0};
  int64_t began = clock_now();
  assert_int_equal(begin_cache_get(hoard, &fetch, key), 0);
  int status = end_of_fetch(&fetch);
  if (!is_away(status) || status == BELAY_ETIMEDOUT)
    fail_msg("%s", belay_err_name(status));
  assert_null(fetch.data);
  assert_int_equal(fetch.result.from, BELAY_CACHE_FROM_NOWHERE);
  assert_true(clock_since_ms(began) < 4 * TIMEOUT_MS + lag());
}

static void expect_kept(hoard_t *hoard, const char *key, const char *value) {
  fetch_t fetch = {0};
  assert_int_equal(begin_cache_get(hoard, &fetch, key), 0);
  assert_int_equal(end_of_fetch(&fetch), 0);
  assert_string_equal(fetch.data, value);
  assert_int_equal(fetch.result.from, BELAY_CACHE_FROM_LOCAL);
  assert_true(fetch.result.stale);
  assert_true(is_away(fetch.result.reason));
  fetch_free(&fetch);
}

/* The table of the process has it. (That it begins to hear what others invalidate may keep it out of there.) Returns how
 * many loads there were. */
static unsigned fill_table(hoard_t *hoard) {
  belay_cache_result_t result;
  hoard->value = "home#1";
  for (int tries = 0; belay_cache_peek(hoard->cache, belay_string("home"), &result) != 0; tries++) {
    fetch_t fetch = {0};
    assert_true(tries < 100);
    assert_int_equal(begin_cache_get(hoard, &fetch, "home"), 0);
    assert_int_equal(end_of_fetch(&fetch), 0);
    fetch_free(&fetch);
    bed_until(hoard->bed, hoard_stats(hoard).loading == 0);
  }
  return hoard->loaded;
}

/* ---- the policies -------------------------------------------------------------------------------------- */

TEST(fail) {
  for (int i = 0; i < OUTAGES; i++) {
    hoard_t hoard = {0};
    bed_t *bed = bed_of(&hoard, BELAY_CACHE_AWAY_FAIL, 60000, 0);
    expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_LOAD);
    begin_outage(&outages[i], bed);
    bed_run_for(bed, 40); /* the table's is over */
    expect_away(&hoard, "home");
    expect_away(&hoard, "never");
    assert_int_equal(hoard.loaded, 1);
    assert_int_equal(hoard_stats(&hoard).misses, 1);
    assert_int_equal(hoard_stats(&hoard).away, 2);
    assert_int_equal(hoard_stats(&hoard).loading, 0);
    end_outage(&outages[i], bed, &hoard);
  }
}

TEST(stale) {
  for (int i = 0; i < OUTAGES; i++) {
    hoard_t hoard = {0};
    bed_t *bed = bed_of(&hoard, BELAY_CACHE_AWAY_STALE, 60000, 0);
    unsigned loaded = fill_table(&hoard);
    begin_outage(&outages[i], bed);
    bed_run_for(bed, 40);
    expect_kept(&hoard, "home", "home#1");
    expect_away(&hoard, "never");
    assert_int_equal(hoard.loaded, loaded);
    end_outage(&outages[i], bed, &hoard);
  }
}

/* A stale value is served for keep_ms too, and not longer. */
TEST(kept) {
  hoard_t hoard = {0};
  int64_t keep_ms = 4 * TIMEOUT_MS + lag();
  bed_t *bed = bed_of(&hoard, BELAY_CACHE_AWAY_STALE, 20, keep_ms);
  unsigned loaded = fill_table(&hoard);
  begin_outage(&outages[1], bed); /* which fails at once */
  int64_t began = clock_now();
  bed_run_for(bed, 30);
  expect_kept(&hoard, "home", "home#1");
  bed_run_for(bed, keep_ms - clock_since_ms(began) + 30);
  expect_away(&hoard, "home");
  assert_int_equal(hoard.loaded, loaded);
  end_outage(&outages[1], bed, &hoard);
}

/* A value that this process invalidated is not served, even then. */
TEST(what_is_invalidated_is_not_kept) {
  hoard_t hoard = {0};
  bed_t *bed = bed_of(&hoard, BELAY_CACHE_AWAY_STALE, 60000, 0);
  expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  expect_invalidate(&hoard, "home");
  begin_outage(&outages[0], bed);
  expect_away(&hoard, "home");
  end_outage(&outages[0], bed, &hoard);
}

/* One load serves all waiting gets of a key. A get during the load is served by the next one,
 * without another request. */
TEST(load) {
  enum { N = 10 };
  for (int i = 0; i < 2; i++) {
    hoard_t hoard = {0};
    fetch_t fetches[N] = {0}, late = {0};
    bed_t *bed = bed_of(&hoard, BELAY_CACHE_AWAY_LOAD, 60000, 0);
    unsigned loaded = fill_table(&hoard);
    begin_outage(&outages[i], bed);
    bed_run_for(bed, 40);
    expect_kept(&hoard, "home", "home#1");
    hoard.loading = LOADING_BY_HAND;
    for (int j = 0; j < N; j++) {
      assert_int_equal(begin_cache_get(&hoard, &fetches[j], "new"), 0);
      stall_ms(1); /* and so it fails later */
    }
    bed_until(bed, hoard.held == 1 && hoard_stats(&hoard).joined == N - 1);
    assert_int_equal(begin_cache_get(&hoard, &late, "new"), 0);
    bed_until(bed, hoard_stats(&hoard).joined == N);
    assert_int_equal(hoard.loaded, loaded + 1);
    assert_int_equal(hand_over(&hoard, "here"), 0);
    for (int j = 0; j < N; j++) {
      assert_int_equal(end_of_fetch(&fetches[j]), 0);
      assert_string_equal(fetches[j].data, "here");
      assert_int_equal(fetches[j].result.from, BELAY_CACHE_FROM_LOAD);
      fetch_free(&fetches[j]);
    }
    uint64_t calls = client_stats(bed).calls;
    bed_until(bed, hoard.held == 1);
    assert_int_equal(client_stats(bed).calls, calls); /* it is known that that is of no use */
    assert_int_equal(late.ended, 0);
    assert_int_equal(hand_over(&hoard, "there"), 0);
    assert_int_equal(end_of_fetch(&late), 0);
    assert_string_equal(late.data, "there");
    fetch_free(&late);
    assert_int_equal(hoard.loaded, loaded + 2);
    assert_int_equal(hoard_stats(&hoard).losers, 2);
    assert_int_equal(hoard_stats(&hoard).fills, 1);
    hoard.loading = LOADING_AT_ONCE;
    hoard.error = 7;
    expect_no_value(&hoard, "bad", BELAY_ELOAD);
    hoard.error = 0;
    end_outage(&outages[i], bed, &hoard);
  }
}

/* The request's time is shorter than the client's: half of it is for the question, and half for the load. */
BED_TEST(there_is_time_to_load) {
  hoard_t hoard = {0};
  belay_cache_options_t options = cache_options(&hoard);
  options.away = BELAY_CACHE_AWAY_LOAD;
  hoard_new(&hoard, bed, &options);
  expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  bed_settle(bed);
  server_pause(bed->server);
  fetch_t fetch = {.request = {.timeout_ms = 600 * slow()}};
  assert_int_equal(begin_cache_get(&hoard, &fetch, "new"), 0);
  assert_error(end_of_fetch(&fetch), 0);
  assert_int_equal(fetch.result.from, BELAY_CACHE_FROM_LOAD);
  fetch_free(&fetch);
  server_resume(bed->server);
}

/* The server has a stale value, but no process may load in its name. The stale value is
 * preferred to a load past the server. */
BED_TEST(what_the_server_has_kept) {
  hoard_t hoard = {0};
  belay_cache_options_t options = cache_options(&hoard);
  options.away = BELAY_CACHE_AWAY_LOAD;
  options.keep_ms = 60000;
  hoard_new(&hoard, bed, &options);
  expect_put(&hoard, "home", "put", true);
  expect_touch(&hoard, "home", 1, true);
  bed_run_for(bed, 5);
  server_do(bed->server, "ACL", "SETUSER", "default", "-set", "-evalsha", "-eval", NULL);
  expect_stale(&hoard, "home", "put", BELAY_EPERM);
  assert_int_equal(hoard.loaded, 0);
  server_do(bed->server, "ACL", "SETUSER", "default", "+set", "+evalsha", "+eval", NULL);
  expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_LOAD);
}

TEST(so_many_at_a_time) {
  enum { N = 5, MOST = 2 };
  static const char *const keys[N] = {"a", "b", "c", "d", "e"};
  hoard_t hoard = {.loading = LOADING_BY_HAND};
  bed_t *bed = bed_of(&hoard, BELAY_CACHE_AWAY_LOAD, 60000, 0);
  expect_put(&hoard, "home", "put", true);
  begin_outage(&outages[0], bed);
  for (int round = 0; round < 2; round++) { /* they are free again */
    fetch_t fetches[N] = {0};
    unsigned served = 0;
    for (int i = 0; i < N; i++)
      assert_int_equal(begin_cache_get(&hoard, &fetches[i], keys[i]), 0);
    bed_until(bed, hoard.held == MOST && hoard.pending == MOST);
    while (hoard.held > 0)
      assert_int_equal(hand_over(&hoard, "here"), 0);
    for (int i = 0; i < N; i++) {
      int status = end_of_fetch(&fetches[i]);
      assert_true(status == 0 || is_away(status));
      served += status == 0;
      fetch_free(&fetches[i]);
    }
    assert_int_equal(served, MOST);
    assert_int_equal(hoard.loaded, (unsigned)(round + 1) * MOST);
  }
  end_outage(&outages[0], bed, &hoard);
}

/* After the server is back, a get stores its load. A load from the outage does not count any
 * more. */
TEST(it_comes_back_while_it_is_loaded) {
  hoard_t hoard = {0};
  bed_t *bed = bed_of(&hoard, BELAY_CACHE_AWAY_LOAD, 60000, 0);
  expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  hoard.loading = LOADING_BY_HAND;
  for (int i = 0; i < 4; i++) { /* more often than `away_loads` at a time */
    char key[2] = {(char)('a' + i), 0};
    fetch_t early = {0}, late = {0};
    begin_outage(&outages[1], bed);
    assert_int_equal(begin_cache_get(&hoard, &early, key), 0);
    bed_until(bed, hoard.held == 1);
    outages[1].end(bed->server);
    assert_int_equal(begin_cache_get(&hoard, &late, key), 0);
    bed_until(bed, hoard_stats(&hoard).joined == (uint64_t)i + 1);
    assert_int_equal(hand_over(&hoard, "not kept"), 0);
    bed_until(bed, hoard.held == 1);
    assert_int_equal(hand_over(&hoard, "kept"), 0);
    assert_int_equal(end_of_fetch(&early), 0);
    assert_int_equal(end_of_fetch(&late), 0);
    assert_string_equal(early.data, "not kept");
    assert_string_equal(late.data, "kept");
    fetch_free(&early);
    fetch_free(&late);
    bed_until(bed, hoard_stats(&hoard).fills == (uint64_t)i + 2);
  }
  end_outage(&outages[1], bed, &hoard);
}

/* ---- many ---------------------------------------------------------------------------------------------- */

typedef struct haul {
  belay_request_t request;
  unsigned ended, values, stale, away;
} haul_t;

static void on_haul(belay_request_t *request, int status, const belay_cache_result_t *results,
                    size_t n) {
  haul_t *haul = request->data;
  assert_int_equal(status, 0);
  haul->ended++;
  for (size_t i = 0; i < n; i++) {
    haul->values += results[i].status == 0;
    haul->stale += results[i].stale;
    haul->away += is_away(results[i].status);
  }
}

TEST(many) {
  static const belay_bytes_t keys[] = {{"home", 4}, {"b", 1}, {"c", 1}, {"d", 1}, {"b", 1}};
  static const struct {
    belay_cache_away_t away;
    unsigned values, stale;
  } rows[] = {
      {BELAY_CACHE_AWAY_FAIL, 0, 0}, {BELAY_CACHE_AWAY_STALE, 1, 1}, {BELAY_CACHE_AWAY_LOAD, 4, 1}};
  for (int i = 0; i < 3; i++) {
    hoard_t hoard = {0};
    haul_t haul = {.request.data = &haul};
    bed_t *bed = bed_of(&hoard, rows[i].away, 60000, 0);
    unsigned loaded = fill_table(&hoard);
    begin_outage(&outages[0], bed);
    bed_run_for(bed, 40);
    hoard.loading = LOADING_LATER;
    assert_int_equal(belay_cache_get_many(hoard.cache, &haul.request, keys, 5, on_haul), 0);
    bed_until(bed, haul.ended == 1);
    assert_int_equal(haul.values, rows[i].values);
    assert_int_equal(haul.stale, rows[i].stale);
    assert_int_equal(haul.away, 5 - rows[i].values);
    assert_int_equal(hoard.loaded, loaded + (rows[i].away == BELAY_CACHE_AWAY_LOAD ? 2 : 0));
    bed_until(bed, hoard.timers == 0);
    end_outage(&outages[0], bed, &hoard);
  }
}

/* ---- it goes away in the middle ------------------------------------------------------------------------- */

TEST(while_it_is_loaded) {
  for (int i = 0; i < OUTAGES; i++) {
    hoard_t hoard = {.loading = LOADING_BY_HAND};
    fetch_t value = {0}, failure = {0};
    bed_t *bed = bed_of(&hoard, BELAY_CACHE_AWAY_FAIL, 60000, 0);
    assert_int_equal(begin_cache_get(&hoard, &value, "home"), 0);
    assert_int_equal(begin_cache_get(&hoard, &failure, "bad"), 0);
    bed_until(bed, hoard.held == 2);
    begin_outage(&outages[i], bed);
    int64_t began = clock_now();
    assert_int_equal(hand_over(&hoard, "here"), 0);
    assert_int_equal(hand_failure(&hoard, 7), 0);
    assert_int_equal(end_of_fetch(&value), 0);
    assert_int_equal(end_of_fetch(&failure), BELAY_ELOAD);
    /* no get waits until the absence is stored */
    assert_true(clock_since_ms(began) < TIMEOUT_MS + lag());
    fetch_free(&value);
    bed_until(bed, hoard_stats(&hoard).loading == 0);
    assert_int_equal(hoard_stats(&hoard).fills, 0);
    end_outage(&outages[i], bed, &hoard);
  }
}

TEST(while_another_one_loads) {
  for (int i = 0; i < OUTAGES + 1; i++) {
    bool load = i >= OUTAGES;
    hoard_t hoard = {0};
    fetch_t fetch = {0};
    bed_t *bed = bed_of(&hoard, load ? BELAY_CACHE_AWAY_LOAD : BELAY_CACHE_AWAY_FAIL, 60000, 0);
    server_do(bed->server, "SET", LEASE, "somebody", "PX", "60000", NULL);
    assert_int_equal(begin_cache_get(&hoard, &fetch, "home"), 0);
    bed_until(bed, hoard_stats(&hoard).waits == 1);
    outages[i % OUTAGES].begin(bed->server);
    int status = end_of_fetch(&fetch);
    assert_true(load ? status == 0 : is_away(status));
    assert_int_equal(hoard.loaded, load);
    assert_int_equal(hoard_stats(&hoard).losers, load);
    fetch_free(&fetch);
    end_outage(&outages[i % OUTAGES], bed, &hoard);
  }
}

/* A stale value is served while the server answers, and its reload fails without harm. */
TEST(while_it_is_refreshed) {
  hoard_t hoard = {0};
  belay_client_options_t client = short_calls();
  bed_t *bed = bed_open(&client);
  belay_cache_options_t options = cache_options(&hoard);
  options.ttl_ms = 10;
  options.stale_ms = 60000;
  options.lease_ms = 200; /* nor can it be given back */
  hoard_new(&hoard, bed, &options);
  expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  bed_run_for(bed, 15);
  hoard.loading = LOADING_BY_HAND;
  expect_stale(&hoard, "home", "home#1", 0);
  bed_until(bed, hoard.held == 1);
  begin_outage(&outages[1], bed);
  assert_int_equal(hand_over(&hoard, "new"), 0);
  bed_until(bed, hoard_stats(&hoard).loading == 0);
  outages[1].end(bed->server);
  while (hoard.held == 0) { /* the lease must be over */
    expect_stale(&hoard, "home", "home#1", 0);
    bed_run_for(bed, 5);
  }
  assert_int_equal(hand_over(&hoard, "new"), 0);
  bed_until(bed, hoard_stats(&hoard).fills == 2);
  end_outage(&outages[1], bed, &hoard);
}

/* The table does not keep for such times what the server has not any more. */
TEST(what_does_not_exist_any_more_is_not_kept) {
  hoard_t hoard = {0};
  bed_t *bed = bed_open(NULL);
  belay_cache_options_t options = cache_options(&hoard);
  options.away = BELAY_CACHE_AWAY_STALE;
  options.ttl_ms = 20;
  options.stale_ms = 60000;
  options.local_bytes = 1 << 20;
  hoard_new(&hoard, bed, &options);
  expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  bed_run_for(bed, 30);
  hoard.absent = true;
  expect_stale(&hoard, "home", "home#1", 0);
  bed_until(bed, hoard.loaded == 2 && hoard_stats(&hoard).loading == 0);
  begin_outage(&outages[1], bed);
  expect_away(&hoard, "home");
  hoard.absent = false;
  end_outage(&outages[1], bed, &hoard);
}
