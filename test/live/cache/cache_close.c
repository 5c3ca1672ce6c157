/* Caches that end: at every moment of a load, from inside of everything; loads that end later than their caches, or not in
 * time, or never. Every request is called back once, and nothing is left. */
#include <stdio.h>

#include "support/fixtures/cache/caches.h"

#define LEASE "belay::cache::pages::{home}::lease"

/* ---- at every moment ----------------------------------------------------------------------------------- */

typedef enum ending { CACHE, CLIENT, LOOP, ENDINGS } ending_t;

/* Operations under way at the close. */
typedef struct haul {
  belay_request_t request;
  unsigned begun, ended;
} haul_t;

typedef struct moment {
  unsigned at,
      now; /* calls that are sent or answered: the one after which it ends, and how many there were */
} moment_t;

static moment_t moment;

static void on_trace(void *ctx, const belay_trace_t *trace) {
  (void)ctx;
  moment.now += trace->event == BELAY_TRACE_SENT || trace->event == BELAY_TRACE_DONE;
}

static void on_haul(belay_request_t *request, int status, const belay_cache_result_t *results,
                    size_t n) {
  haul_t *haul = request->data;
  assert_true(status == 0 || status == BELAY_ECANCELED);
  assert_int_equal(n, 3);
  for (size_t i = 0; i < n; i++)
    assert_true(status == 0 || results[i].status == status);
  haul->ended++;
}

typedef enum way { PLAIN, LOCKED, GUARDED, FAILING, WAITING, REFRESHING, WAYS } way_t;

static belay_limiter_t *new_limiter(belay_client_t *client) {
  belay_limit_t limit = {.kind = BELAY_LIMIT_FIXED, .count = 1000, .period_us = 3600000000};
  belay_limiter_options_t options;
  belay_limiter_t *limiter;
  belay_limiter_options_init(&options);
  options.limits = &limit;
  options.limits_len = 1;
  assert_int_equal(belay_limiter_new(client, &options, &limiter), 0);
  return limiter;
}

static belay_bloom_t *new_filter(belay_client_t *client) {
  belay_bloom_options_t options;
  belay_bloom_t *filter;
  belay_bloom_options_init(&options);
  options.name = belay_string("pages");
  options.capacity = 1000;
  assert_int_equal(belay_bloom_new(client, &options, &filter), 0);
  return filter;
}

static void on_added(belay_request_t *request, int status, bool added) {
  assert_int_equal(status, 0);
  assert_true(added);
  *(bool *)request->data = true;
}

static void add_to_filter(bed_t *bed, belay_bloom_t *filter, const char *item) {
  bool done = false;
  belay_request_t request = {.data = &done};
  assert_int_equal(belay_bloom_add(filter, &request, belay_string(item), on_added), 0);
  bed_until(bed, done);
}

static void make(hoard_t *hoard, bed_t *bed, way_t way) {
  belay_cache_options_t options = cache_options(hoard);
  options.lock = way != PLAIN;
  options.local_bytes = 1 << 16;
  options.retry_min_ms = 1;
  options.retry_max_ms = 5;
  options.error_ms = way == FAILING ? 60000 : 0;
  if (way == GUARDED) {
    options.limiter = new_limiter(bed->client);
    options.filter = new_filter(bed->client);
    add_to_filter(bed, options.filter, "home");
    add_to_filter(bed, options.filter, "a");
  }
  if (way == REFRESHING) {
    options.ttl_ms = 1;
    options.stale_ms = 60000;
    options.local_bytes = 0;
  }
  hoard->error = way == FAILING ? 7 : 0;
  hoard->loading = LOADING_LATER;
  hoard_new(hoard, bed, &options);
}

static void end_it(bed_t *bed, hoard_t *hoard, ending_t ending) {
  if (ending == CACHE)
    assert_int_equal(begin_close_hoard(hoard), 0);
  else
    assert_int_equal(ending == CLIENT ? begin_client_close(bed) : begin_belay_close(bed), 0);
}

/* Two gets, many, a put; and the end. True: it came before all was over. */
static bool play(server_t *server, way_t way, ending_t ending, unsigned at) {
  static const belay_bytes_t keys[] = {{"home", 4}, {"a", 1}, {"b", 1}};
  belay_client_options_t client = client_options();
  client.trace = on_trace;
  client.close_timeout_ms = 500 * slow();
  bed_t *bed = bed_open_at(server_url(server), &client);
  hoard_t hoard = {0};
  fetch_t fetches[2] = {0};
  change_t change = {0};
  haul_t haul = {.request.data = &haul};
  server_do(server, "FLUSHALL", NULL);
  if (way == WAITING)
    server_do(server, "SET", LEASE, "somebody", "PX", "20", NULL);
  make(&hoard, bed, way);
  if (way == REFRESHING) {
    expect_put(&hoard, "home", "old", true);
    stall_ms(3);
  }
  moment = (moment_t){.at = at};
  for (int i = 0; i < 2; i++)
    assert_int_equal(begin_cache_get(&hoard, &fetches[i], i == 0 ? "home" : "b"), 0);
  haul.begun += belay_cache_get_many(hoard.cache, &haul.request, keys, 3, on_haul) == 0;
  assert_int_equal(begin_put(&hoard, &change, "put", "value"), 0);
  assert_int_equal(belay_cache_keep_fresh(hoard.cache, belay_string("home")), 0);
  bed_until(bed, moment.now >= at ||
                     (hoard.pending == 0 && haul.ended == 1 && hoard_stats(&hoard).loading == 0));
  bool before = hoard.pending > 0 || haul.ended == 0 || hoard_stats(&hoard).loading > 0;
  end_it(bed, &hoard, ending);
  assert_int_equal(belay_cache_get(hoard.cache, &fetches[0].request, belay_string("x"), on_fetched),
                   BELAY_ECLOSING);
  bed_until(bed, ending == CACHE    ? hoard.closed == 1
                 : ending == CLIENT ? bed->client_closed == 1
                                    : bed->belay_closed == 1);
  assert_int_equal(hoard.pending, 0);
  assert_int_equal(haul.ended, haul.begun);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(fetches[i].ended, 1);
    fetch_free(&fetches[i]);
  }
  assert_int_equal(change.ended, 1);
  bed_until(bed, hoard.timers == 0); /* loads end, whose cache is gone; before the allocator is */
  bed_close(bed);
  if (way != WAITING) /* another process has the lease */
    assert_int_equal(server_integer(server, "EXISTS", LEASE, NULL), 0);
  return before;
}

static void play_all(ending_t ending) {
  server_t *server = server_start(NULL);
  for (way_t way = PLAIN; way < WAYS; way++) {
    unsigned at = 1;
    while (play(server, way, ending, at))
      at += slow() > 1 ? 3 : 1 + at / 8;
    assert_true(at > 8);
  }
  server_stop(server);
}

TEST(the_cache_is_closed_at_every_moment) {
  play_all(CACHE);
}

TEST(the_client_is_closed_at_every_moment) {
  play_all(CLIENT);
}

TEST(all_is_closed_at_every_moment) {
  play_all(LOOP);
}

/* ---- from inside --------------------------------------------------------------------------------------- */

typedef struct inside {
  bed_t *bed;
  hoard_t hoard;
  ending_t ending;
  belay_cache_load_t *loads[8];
  unsigned n, calls;
  bool before; /* the load is ended in the loader, before that */
} inside_t;

static void load_and_close(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  inside_t *inside = arg;
  (void)key, (void)key_len;
  assert_true(inside->n < 8);
  if (inside->before)
    assert_int_equal(belay_cache_load_done(load, belay_string("v")), 0);
  else
    inside->loads[inside->n++] = load;
  if (inside->calls++ == 0)
    end_it(inside->bed, &inside->hoard, inside->ending);
  if (!inside->before)
    assert_false(belay_cache_load_is_wanted(load));
}

static void load_many_and_close(belay_cache_load_t *const *loads, const belay_bytes_t *keys,
                                size_t n, void *arg) {
  for (size_t i = 0; i < n; i++)
    load_and_close(loads[i], keys[i].data, keys[i].len, arg);
}

TEST_ON(a_loader_ends_everything, server, server_start(NULL)) {
  static const belay_bytes_t keys[] = {{"a", 1}, {"b", 1}, {"c", 1}};
  for (unsigned i = 0; i < ENDINGS * 4; i++) {
    inside_t inside = {.ending = (ending_t)(i / 4), .before = i % 2 == 1};
    bool many = i / 2 % 2 == 1;
    fetch_t fetches[3] = {0};
    haul_t haul = {.request.data = &haul};
    server_do(server, "FLUSHALL", NULL);
    inside.bed = bed_open_at(server_url(server), NULL);
    belay_cache_options_t options = cache_options(&inside.hoard);
    options.lock = false;
    options.load = load_and_close;
    options.load_many = many ? load_many_and_close : NULL;
    options.arg = &inside;
    hoard_new(&inside.hoard, inside.bed, &options);
    for (int j = 0; j < 3; j++)
      assert_int_equal(begin_cache_get(&inside.hoard, &fetches[j], keys[j].data), 0);
    static const belay_bytes_t others[] = {{"d", 1}, {"e", 1}, {"a", 1}};
    assert_int_equal(belay_cache_get_many(inside.hoard.cache, &haul.request, others, 3, on_haul),
                     0);
    bed_until(inside.bed, inside.ending == CACHE    ? inside.hoard.closed == 1
                          : inside.ending == CLIENT ? inside.bed->client_closed == 1
                                                    : inside.bed->belay_closed == 1);
    assert_int_equal(inside.hoard.pending, 0);
    assert_int_equal(haul.ended, 1);
    for (unsigned j = 0; j < inside.n; j++)
      assert_int_equal(belay_cache_load_done(inside.loads[j], belay_string("v")), 0);
    for (int j = 0; j < 3; j++)
      fetch_free(&fetches[j]);
    bed_close(inside.bed);
  }
}

static ending_t ending_in_callback;

static void end_in_callback(fetch_t *fetch) {
  if (fetch->hoard->closing == 0 && fetch->hoard->bed->client_closed == 0)
    end_it(fetch->hoard->bed, fetch->hoard, ending_in_callback);
  fetch->hoard->closing++;
}

/* The callback of a get that is served at once, of one that waits, and of one that fails. */
TEST_ON(a_callback_ends_everything, server, server_start(NULL)) {
  for (unsigned i = 0; i < ENDINGS * 3; i++) {
    bed_t *bed = bed_open_at(server_url(server), NULL);
    hoard_t hoard = {.error = i % 3 == 2 ? 7 : 0};
    fetch_t fetches[20] = {0};
    server_do(server, "FLUSHALL", NULL);
    ending_in_callback = (ending_t)(i / 3);
    hoard_new(&hoard, bed, NULL);
    if (i % 3 == 0)
      expect_put(&hoard, "home", "put", true);
    for (int j = 0; j < 20; j++) {
      fetches[j].then = end_in_callback;
      assert_int_equal(begin_cache_get(&hoard, &fetches[j], j % 2 == 0 ? "home" : "other"), 0);
    }
    bed_until(bed, ending_in_callback == CACHE    ? hoard.closed == 1
                   : ending_in_callback == CLIENT ? bed->client_closed == 1
                                                  : bed->belay_closed == 1);
    for (int j = 0; j < 20; j++) {
      assert_int_equal(fetches[j].ended, 1);
      fetch_free(&fetches[j]);
    }
    bed_close(bed);
  }
}

/* ---- loads that end late, or never --------------------------------------------------------------------- */

TEST_ON(loads_end_after_all_is_gone, server, server_start(NULL)) {
  for (ending_t ending = CACHE; ending < ENDINGS; ending++) {
    bed_t *bed = bed_open_at(server_url(server), NULL);
    hoard_t hoard = {.loading = LOADING_BY_HAND};
    fetch_t fetches[3] = {0};
    server_do(server, "FLUSHALL", NULL);
    hoard_new(&hoard, bed, NULL);
    for (int i = 0; i < 3; i++) {
      char key[2] = {(char)('a' + i), 0};
      assert_int_equal(begin_cache_get(&hoard, &fetches[i], key), 0);
    }
    bed_until(bed, hoard.held == 3);
    for (int i = 0; i < 3; i++)
      assert_true(belay_cache_load_is_wanted(hoard.loads[i]));
    end_it(bed, &hoard, ending);
    for (int i = 0; i < 3; i++)
      assert_false(belay_cache_load_is_wanted(hoard.loads[i]));
    bed_until(bed, ending == CACHE    ? hoard.closed == 1
                   : ending == CLIENT ? bed->client_closed == 1
                                      : bed->belay_closed == 1);
    for (int i = 0; i < 3; i++)
      assert_int_equal(fetches[i].result.status, BELAY_ECANCELED);
    assert_int_equal(server_keys(server), 3); /* generations; leases are given back */
    assert_true(bed->bytes > 0);
    assert_int_equal(hand_over(&hoard, "value"), 0);
    assert_int_equal(hand_absent(&hoard), 0);
    assert_int_equal(hand_failure(&hoard, 7), 0);
    if (ending == LOOP)
      assert_int_equal(bed->bytes, 0);
    bed_close(bed);
  }
}

BED_TEST(a_load_takes_too_long) {
  hoard_t hoard = {.loading = LOADING_BY_HAND};
  belay_cache_options_t options = cache_options(&hoard);
  options.load_timeout_ms = 40;
  hoard_new(&hoard, bed, &options);
  for (int i = 0; i < 2; i++) { /* the load never ends for its waiters */
    fetch_t fetch = {0};
    int64_t began = clock_now();
    assert_int_equal(begin_cache_get(&hoard, &fetch, "home"), 0);
    assert_int_equal(end_of_fetch(&fetch), BELAY_ELOAD);
    assert_int_equal(fetch.result.load_error, BELAY_ETIMEDOUT);
    assert_in_range(clock_since_ms(began), 38, 3000 * slow());
    assert_int_equal(hoard.held, i + 1);
    assert_false(belay_cache_load_is_wanted(hoard.loads[i]));
    bed_until(bed, hoard_stats(&hoard).loading == 0);
  }
  assert_int_equal(hoard_stats(&hoard).load_failures, 2);
  hoard.loading = LOADING_AT_ONCE;
  expect_cached(&hoard, "home", "home#3", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(hand_over(&hoard, "late"), 0); /* nobody wants them */
  assert_int_equal(hand_failure(&hoard, 7), 0);
  bed_settle(bed);
  expect_cached(&hoard, "home", "home#3", BELAY_CACHE_FROM_SERVER);
}

/* ---- one of those who wait goes ------------------------------------------------------------------------ */

/* The loaded value is served, but without a lease no further load begins. */
BED_TEST(a_load_loses_its_lease) {
  hoard_t hoard = {.loading = LOADING_BY_HAND};
  fetch_t first = {0}, second = {0};
  belay_cache_options_t options = cache_options(&hoard);
  options.lease_ms = 100;
  hoard_new(&hoard, bed, &options);
  assert_int_equal(begin_cache_get(&hoard, &first, "home"), 0);
  bed_until(bed, hoard.held == 1);
  server_do(bed->server, "SET", LEASE, "another", NULL);
  bed_run_for(bed, 150); /* it is known */
  assert_int_equal(begin_cache_get(&hoard, &second, "home"), 0);
  bed_until(bed, hoard_stats(&hoard).joined == 1);
  expect_invalidate(&hoard, "home");
  assert_int_equal(hand_over(&hoard, "one"), 0);
  expect_fetched(&first, "one", BELAY_CACHE_FROM_LOAD);
  bed_until(bed, hoard_stats(&hoard).waits == 1);
  assert_int_equal(hoard.loaded, 1);
  server_do(bed->server, "DEL", LEASE, NULL);
  bed_until(bed, hoard.held == 1);
  assert_int_equal(hand_over(&hoard, "two"), 0);
  expect_fetched(&second, "two", BELAY_CACHE_FROM_LOAD);
}

static void close_it(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  hoard_t *hoard = arg;
  (void)key, (void)key_len;
  hoard->loaded++;
  assert_int_equal(begin_close_hoard(hoard), 0);
  assert_false(belay_cache_load_is_wanted(load));
  assert_int_equal(belay_cache_load_done(load, belay_string("")), 0);
}

/* Gets whose loads were to begin with this one need no callback any more. */
BED_TEST(a_loader_closes_and_no_other_begins) {
  hoard_t hoard = {0};
  fetch_t fetches[8] = {0};
  char key[] = "a";
  belay_cache_options_t options = cache_options(&hoard);
  options.load = close_it;
  options.lock = false;
  hoard_new(&hoard, bed, &options);
  for (int i = 0; i < 8; i++, key[0]++)
    assert_int_equal(begin_cache_get(&hoard, &fetches[i], key), 0);
  for (int i = 0; i < 8; i++)
    expect_nothing_fetched(&fetches[i], BELAY_ECANCELED);
  bed_until(bed, hoard.closed == 1);
  assert_int_equal(hoard.loaded, 1);
}
