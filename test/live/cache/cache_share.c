/* Caches: gets that share a lookup. */
#include <stdio.h>

#include "cache/share.h"
#include "support/fixtures/cache/cache.h"

enum { N = 20 };

_Static_assert(N <= BELAY__SHARED_MAX, "one lookup serves them all");

static int64_t sent_gets(const env_t *env) {
  return server_calls(env->server, "get");
}

/* ---- gets that share ---- */

CACHE_TEST(gets_of_one_turn) {
  get_t gets[N] = {0};
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_settle(env);
  int64_t before = sent_gets(env);
  for (int i = 0; i < N; i++)
    start_get(cache, &gets[i], "home");
  for (int i = 0; i < N; i++)
    expect_got_value(&gets[i], "home#1", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(sent_gets(env) - before, 1);
  expect_stats(cache, "shared 19, hits 20, gets 21, loads 1");
}

CACHE_TEST(more_gets_than_one_lookup_serves) {
  enum { MANY = 1000 };
  get_t *gets = calloc(MANY, sizeof *gets);
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_settle(env);
  int64_t before = sent_gets(env);
  for (int i = 0; i < MANY; i++)
    start_get(cache, &gets[i], "home");
  for (int i = 0; i < MANY; i++)
    expect_got_value(&gets[i], "home#1", BELAY_CACHE_FROM_SERVER);
  int64_t sent = sent_gets(env) - before;
  assert_true(sent >= MANY / (BELAY__SHARED_MAX + 1) && sent < MANY / 8);
  assert_int_equal(cache_stats(cache).shared, MANY - sent);
  free(gets);
}

CACHE_TEST(missing_value) {
  get_t gets[N] = {0};
  expect_cached(cache, "about", "about#1", BELAY_CACHE_FROM_LOAD); /* it is connected */
  for (int i = 0; i < N; i++)
    start_get(cache, &gets[i], "home");
  for (int i = 0; i < N; i++)
    expect_got_value(&gets[i], "home#2", BELAY_CACHE_FROM_LOAD);
  expect_stats(cache, "shared 19, joined 19, misses 21, loads 2");
}

static uint64_t place_of(const char *key) {
  return belay__local_hash(key, strlen(key), false) % BELAY__CACHE_SHARED;
}

/* Two keys with one place in the cache. */
CACHE_TEST(keys_are_compared) {
  get_t gets[3] = {0};
  char key[16], value[24];
  int i = 0;
  do
    (void)snprintf(key, sizeof key, "h%03d", i++);
  while (place_of(key) != place_of("home"));
  (void)snprintf(value, sizeof value, "%s#2", key);
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  expect_cached(cache, key, value, BELAY_CACHE_FROM_LOAD);
  start_get(cache, &gets[0], "home");
  start_get(cache, &gets[1], key);
  start_get(cache, &gets[2], "home");
  expect_got_value(&gets[0], "home#1", BELAY_CACHE_FROM_SERVER);
  expect_got_value(&gets[1], value, BELAY_CACHE_FROM_SERVER);
  expect_got_value(&gets[2], "home#1", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(cache_stats(cache).shared, 0);
}

static size_t two_tags(const char *key, size_t key_len, belay_bytes_t tags[BELAY_CACHE_TAGS_MAX],
                       void *arg) {
  (void)key, (void)key_len, (void)arg;
  tags[0] = (belay_bytes_t){"site", 4};
  tags[1] = (belay_bytes_t){"all", 3};
  return 2;
}

/* The lookup waits for the connection, so all gets share it. */
CACHE_TEST_OF(tags_and_a_new_connection, o.tags = two_tags) {
  cache_t other = {0};
  get_t gets[N] = {0};
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  belay_cache_options_t options = cache_options(&other);
  options.tags = two_tags;
  cache_open_elsewhere(&other, env, &options);
  env_settle(env);
  int64_t before = sent_gets(env);
  for (int i = 0; i < N; i++)
    start_get(&other, &gets[i], "home");
  for (int i = 0; i < N; i++)
    expect_got_data(&gets[i], "home#1");
  assert_int_equal(sent_gets(env) - before, 3);
  assert_int_equal(cache_stats(&other).shared, N - 1);
}

LOCAL_CACHE_TEST(local_table_gets_the_value) {
  get_t gets[N] = {0};
  fill_local_subscribed(cache, "home");
  cache_t other = {0};
  belay_cache_options_t options = local_options(&other);
  cache_open(&other, env, &options);
  fill_local_subscribed(&other, "about");
  for (int i = 0; i < N; i++)
    start_get(&other, &gets[i], "home");
  for (int i = 0; i < N; i++)
    expect_got_value(&gets[i], "home#2", BELAY_CACHE_FROM_SERVER);
  expect_peek(&other, "home", "home#2");
  assert_int_equal(cache_stats(&other).shared, N - 1);
}

/* ---- gets that must not share ---- */

enum { OTHERS = 100 }; /* while these replies are due, a few commands are not sent at once */

/* A get that begins after a change of this client sees that change: a lookup from before does not
 * serve it. */
static void get_around_change(cache_t *cache, cache_t *changing, int which, const char *then) {
  get_t before = {0}, after = {0}, others[OTHERS] = {0};
  change_t change = {0};
  expect_put(cache, "home", "old", true);
  uint64_t shared = cache_stats(cache).shared;
  for (int i = 0; i < OTHERS; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "other %d", i);
    start_get(cache, &others[i], key);
  }
  start_get(cache, &before, "home");
  assert_error(begin_nth_change(changing, &change, which, "home"), 0);
  start_get(cache, &after, "home");
  expect_got_data(&before, "old");
  assert_int_equal(end_of_get(&after), 0);
  if (then != NULL)
    assert_string_equal(after.data, then);
  get_free(&after);
  assert_error(end_of_change(&change), 0);
  assert_int_equal(cache_stats(cache).shared, shared);
  for (int i = 0; i < OTHERS; i++)
    expect_got_data(&others[i], "loaded");
}

static size_t key_as_tag(const char *key, size_t key_len, belay_bytes_t tags[BELAY_CACHE_TAGS_MAX],
                         void *arg) {
  (void)arg;
  tags[0] = (belay_bytes_t){key, key_len};
  return 1;
}

CACHE_TEST_OF(change_in_between, o.tags = key_as_tag; cache->value = "loaded") {
  cache_t other = {.value = "loaded"};
  belay_cache_options_t options = cache_options(&other);
  options.tags = key_as_tag;
  cache_open(&other, env, &options);
  expect_cached(&other, "about", "loaded", BELAY_CACHE_FROM_LOAD);
  for (int which = 0; which < CHANGES; which++) {
    const char *then = which < 2 ? NULL : "loaded";
    get_around_change(cache, cache, which, then);
    get_around_change(cache, &other, which, then);
  }
}

CACHE_TEST(change_in_between_without_tags) {
  cache->value = "loaded";
  for (int which = 0; which < 3; which++)
    get_around_change(cache, cache, which, which < 2 ? NULL : "loaded");
}

/* The server may have answered a lookup that was sent: another process may have changed the value
 * since. */
CACHE_TEST(lookup_that_was_sent) {
  get_t gets[2] = {0};
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_settle(env);
  server_pause(env->server);
  start_get(cache, &gets[0], "home");
  env_run_for(env, 20);
  start_get(cache, &gets[1], "home");
  server_resume(env->server);
  for (int i = 0; i < 2; i++)
    expect_got_value(&gets[i], "home#1", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(cache_stats(cache).shared, 0);
}

/* ---- ends ---- */

CACHE_TEST(canceled_gets) {
  get_t gets[4] = {0};
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  for (int i = 0; i < 4; i++)
    start_get(cache, &gets[i], "home");
  assert_int_equal(cache_stats(cache).shared, 3);
  assert_int_equal(belay_request_cancel(&gets[2].request), 0);
  assert_int_equal(belay_request_cancel(&gets[0].request), 0);
  expect_got_nothing(&gets[2], BELAY_ECANCELED);
  expect_got_nothing(&gets[0], BELAY_ECANCELED);
  expect_got_value(&gets[1], "home#1", BELAY_CACHE_FROM_SERVER);
  expect_got_value(&gets[3], "home#1", BELAY_CACHE_FROM_SERVER);
  for (int i = 0; i < 4; i++)
    start_get(cache, &gets[i], "home");
  for (int i = 0; i < 4; i++)
    assert_int_equal(belay_request_cancel(&gets[i].request), 0);
  for (int i = 0; i < 4; i++)
    expect_got_nothing(&gets[i], BELAY_ECANCELED);
}

static void close_in_callback(get_t *get) {
  assert_int_equal(begin_close_cache(get->cache), 0);
}

CACHE_TEST(close_during_the_lookup) {
  get_t gets[N] = {0};
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  for (int i = 0; i < N; i++)
    start_get(cache, &gets[i], "home");
  assert_int_equal(begin_close_cache(cache), 0);
  for (int i = 0; i < N; i++)
    expect_got_nothing(&gets[i], BELAY_ECANCELED);
}

/* The lookup has ended for all of them. */
CACHE_TEST(close_in_the_first_callback) {
  get_t gets[N] = {0};
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  gets[0].then = close_in_callback;
  for (int i = 0; i < N; i++)
    start_get(cache, &gets[i], "home");
  for (int i = 0; i < N; i++)
    expect_got_value(&gets[i], "home#1", BELAY_CACHE_FROM_SERVER);
}

typedef struct turn {
  get_t get; /* first */
  unsigned number, *next;
} turn_t;

static void check_turn(get_t *get) {
  const turn_t *turn = (const turn_t *)get;
  assert_int_equal(turn->number, (*turn->next)++);
}

/* The gets call back in the order in which they began. */
CACHE_TEST(order_of_callbacks) {
  turn_t turns[N] = {0};
  unsigned next = 0;
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  for (unsigned i = 0; i < N; i++) {
    turns[i] = (turn_t){.get.then = check_turn, .number = i, .next = &next};
    start_get(cache, &turns[i].get, "home");
  }
  for (int i = 0; i < N; i++)
    expect_got_value(&turns[i].get, "home#1", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(next, N);
}

static void start_timed(cache_t *cache, get_t *get, int64_t timeout_ms) {
  get->request.timeout_ms = timeout_ms;
  start_get(cache, get, "home");
}

/* Each get has its own time: a lookup is repeated for gets that have time left. */
CACHE_TEST(time_limits) {
  get_t gets[4] = {0};
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_settle(env);
  server_pause(env->server);
  start_timed(cache, &gets[0], 50);
  start_timed(cache, &gets[1], 60);
  start_timed(cache, &gets[2], 10000 * slow());
  start_timed(cache, &gets[3], 40); /* less than the gets before: it shares nothing */
  assert_int_equal(cache_stats(cache).shared, 2);
  int64_t began = clock_now();
  assert_int_equal(end_of_get(&gets[3]), BELAY_EUNKNOWN);
  assert_true(clock_now() - began >= 39);
  assert_int_equal(end_of_get(&gets[0]), BELAY_EUNKNOWN);
  assert_true(clock_now() - began >= 49);
  assert_int_equal(end_of_get(&gets[1]), BELAY_EUNKNOWN);
  assert_true(clock_now() - began >= 59);
  assert_int_equal(gets[2].ended, 0);
  server_resume(env->server);
  expect_got_value(&gets[2], "home#1", BELAY_CACHE_FROM_SERVER);
}

/* The server refuses the lookup: all gets that share it end with the error. */
CACHE_TEST(refused_lookup) {
  get_t gets[N] = {0};
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  server_do(env->server, "DEL", "belay::cache::pages::{home}", NULL);
  server_do(env->server, "LPUSH", "belay::cache::pages::{home}", "x", NULL);
  for (int i = 0; i < N; i++)
    start_get(cache, &gets[i], "home");
  for (int i = 0; i < N; i++)
    expect_got_nothing(&gets[i], BELAY_EWRONGTYPE);
  assert_int_equal(cache_stats(cache).shared, N - 1);
}
