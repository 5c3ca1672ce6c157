/* Tags of a cache: an invalidated tag invalidates its keys, also during their load. */
#include <stdio.h>

#include "cache/load_state.h"
#include "support/fixtures/cache/cache.h"
#include "support/models/scripts.h"

#define TAG_KEY(tag) "belay::cache::pages::{" tag "}::tag"
#define KEY(key) "belay::cache::pages::{" key "}"

/* The words of the key are its tags: "shop red" has two. "n:9" has 9, "long" one that is too long.
 */
static size_t words(const char *key, size_t key_len, belay_bytes_t tags[BELAY_CACHE_TAGS_MAX],
                    void *arg) {
  static char bytes[BELAY_CACHE_TAG_MAX + 1];
  size_t n = 0, from = 0;
  (void)arg;
  if (key_len == 3 && memcmp(key, "n:", 2) == 0) {
    n = (size_t)(key[2] - '0');
    for (size_t i = 0; i < n && i < BELAY_CACHE_TAGS_MAX; i++)
      tags[i] = (belay_bytes_t){&"abcdefgh"[i], 1};
    return n;
  }
  if (key_len == 4 && memcmp(key, "long", 4) == 0) {
    memset(bytes, 'x', sizeof bytes);
    tags[0] = (belay_bytes_t){bytes, sizeof bytes};
    return 1;
  }
  for (size_t i = 0; i <= key_len && n < BELAY_CACHE_TAGS_MAX; i++)
    if (i == key_len || key[i] == ' ') {
      tags[n++] = (belay_bytes_t){key + from, i - from};
      from = i + 1;
    }
  return n;
}

static belay_cache_options_t tag_options(cache_t *cache) {
  belay_cache_options_t options = cache_options(cache);
  options.tags = words;
  return options;
}

static belay_cache_options_t local_tag_options(cache_t *cache) {
  belay_cache_options_t options = local_options(cache);
  options.tags = words;
  return options;
}

/* ---- one thing after the other ---- */

CACHE_TEST_(tag_invalidates_all_its_keys, tag_options(cache), cache->value = "v") {
  enum { N = 40 };
  char key[32];
  for (int round = 1; round <= 2; round++) {
    for (int i = 0; i < 2 * N; i++) {
      snprintf(key, sizeof key, "%s %d", i < N ? "shop" : "blog", i);
      expect_cached(cache, key, "v",
                    round == 1 || i < N ? BELAY_CACHE_FROM_LOAD : BELAY_CACHE_FROM_SERVER);
    }
    assert_int_equal(cache->loaded, round == 1 ? 2 * N : 3 * N);
    expect_invalidate_tag(cache, "shop");
  }
}

CACHE_TEST_(one_of_several_tags, tag_options(cache), (void)o) {
  static const char *const tags[] = {"shop", "red", "shoes"};
  expect_cached(cache, "shop red shoes", "shop red shoes#1", BELAY_CACHE_FROM_LOAD);
  for (unsigned i = 0; i < 3; i++) {
    char value[32];
    expect_invalidate_tag(cache, tags[i]);
    snprintf(value, sizeof value, "shop red shoes#%u", i + 2);
    expect_cached(cache, "shop red shoes", value, BELAY_CACHE_FROM_LOAD);
    expect_cached(cache, "shop red shoes", value, BELAY_CACHE_FROM_SERVER);
  }
  expect_invalidate_tag(cache, "blue");
  expect_cached(cache, "shop red shoes", "shop red shoes#4", BELAY_CACHE_FROM_SERVER);
  expect_put(cache, "shop red shoes", "put", true);
  expect_cached(cache, "shop red shoes", "put", BELAY_CACHE_FROM_SERVER);
  expect_invalidate_tag(cache, "red");
  expect_cached(cache, "shop red shoes", "shop red shoes#5", BELAY_CACHE_FROM_LOAD);
}

/* How many there are at the most, and how long they may be. */
CACHE_TEST_(number_and_length_of_tags, tag_options(cache), cache->value = "v") {
  static const struct {
    const char *key;
    int64_t tags;
  } rows[] = {{"n:0", 0}, {"n:1", 1}, {"n:8", 8}, {"n:9", 8}, {"long", 1}};
  char longest[BELAY_CACHE_TAG_MAX + 1] = {0};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    server_do(env->server, "FLUSHALL", NULL);
    expect_cached(cache, rows[i].key, "v", BELAY_CACHE_FROM_LOAD);
    expect_cached(cache, rows[i].key, "v", BELAY_CACHE_FROM_SERVER);
    env_settle(env);
    assert_int_equal(server_keys(env->server), 1 + rows[i].tags);
    expect_ttls(env->server);
  }
  memset(longest, 'x', BELAY_CACHE_TAG_MAX);
  expect_invalidate_tag(cache, longest); /* the tag that was cut */
  expect_cached(cache, "long", "v", BELAY_CACHE_FROM_LOAD);
  for (const char *last = "ah"; *last != '\0'; last++) {
    expect_cached(cache, "n:9", "v", BELAY_CACHE_FROM_LOAD);
    expect_invalidate_tag(cache, (const char[]){*last, '\0'});
  }
}

CACHE_TEST_(absence_and_failure_with_tags, local_tag_options(cache),
            o.absent_ms = o.error_ms = 60000;
            cache->absent = true) {
  for (unsigned i = 1; i <= 2; i++) {
    expect_no_value(cache, "shop ghost", BELAY_EABSENT);
    expect_no_value(cache, "shop ghost", BELAY_EABSENT);
    assert_int_equal(cache->loaded, i);
    expect_invalidate_tag(cache, "shop");
  }
  cache->absent = false;
  cache->error = 7;
  for (unsigned i = 3; i <= 4; i++) {
    expect_no_value(cache, "shop ghost", BELAY_ELOAD);
    expect_no_value(cache, "shop ghost", BELAY_ELOAD);
    assert_int_equal(cache->loaded, i);
    expect_invalidate_tag(cache, "shop");
  }
  cache->error = 0;
  expect_cached(cache, "shop ghost", "shop ghost#5", BELAY_CACHE_FROM_LOAD);
}

/* ---- what becomes of a tag's key ---- */

CACHE_TEST_(tag_key_evicted, tag_options(cache), (void)o) {
  expect_cached(cache, "shop red", "shop red#1", BELAY_CACHE_FROM_LOAD);
  server_do(env->server, "DEL", TAG_KEY("red"), NULL); /* evicted */
  expect_cached(cache, "shop red", "shop red#2", BELAY_CACHE_FROM_LOAD);
  server_do(env->server, "PEXPIRE", TAG_KEY("shop"), "1", NULL);
  env_run_for(env, 5);
  expect_cached(cache, "shop red", "shop red#3", BELAY_CACHE_FROM_LOAD);
  expect_cached(cache, "shop red", "shop red#3", BELAY_CACHE_FROM_SERVER);
}

CACHE_TEST_(tag_key_with_foreign_value, tag_options(cache), o.away = BELAY_CACHE_AWAY_LOAD) {
  change_t change = {0};
  expect_cached(cache, "shop", "shop#1", BELAY_CACHE_FROM_LOAD);
  server_do(env->server, "DEL", TAG_KEY("shop"), NULL);
  server_do(env->server, "RPUSH", TAG_KEY("shop"), "x", NULL);
  expect_no_value(cache, "shop", BELAY_EWRONGTYPE);
  assert_int_equal(begin_put(cache, &change, "shop", "v"), 0);
  assert_int_equal(end_of_change(&change), BELAY_EWRONGTYPE);
  expect_invalidate_tag(cache, "shop");
  expect_cached(cache, "shop", "shop#2", BELAY_CACHE_FROM_LOAD);
  server_do(env->server, "SET", TAG_KEY("shop"), "not of 16 bytes", "PX", "60000", NULL);
  expect_no_value(cache, "shop", BELAY_EMISMATCH);
  assert_int_equal(begin_put(cache, &change, "shop", "v"), 0);
  assert_int_equal(end_of_change(&change), BELAY_EMISMATCH);
  assert_int_equal(cache->loaded, 2);
  expect_invalidate_tag(cache, "shop");
  expect_cached(cache, "shop", "shop#3", BELAY_CACHE_FROM_LOAD);
}

static int64_t pttl(env_t *env, const char *key) {
  return server_integer(env->server, "PTTL", key, NULL);
}

/* Or else what was invalidated could come back: its generation is not known any more. */
CACHE_TEST_(tag_outlives_its_values, tag_options(cache), o.ttl_ms = 50000; o.keep_ms = 400000000;
            o.absent_ms = INT64_C(5000000000); o.error_ms = INT64_C(9000000000);
            cache->value = "v") {
  expect_cached(cache, "shop", "v", BELAY_CACHE_FROM_LOAD);
  assert_true(pttl(env, TAG_KEY("shop")) > pttl(env, KEY("shop")));
  cache->absent = true;
  expect_no_value(cache, "blog", BELAY_EABSENT);
  assert_true(pttl(env, TAG_KEY("blog")) > pttl(env, KEY("blog")));
  cache->error = 1;
  expect_no_value(cache, "wiki", BELAY_ELOAD);
  assert_true(pttl(env, KEY("wiki")) > INT64_C(8000000000));
  assert_true(pttl(env, TAG_KEY("wiki")) > pttl(env, KEY("wiki")));
  int64_t before = pttl(env, TAG_KEY("shop"));
  change_t change = {.cache = cache, .begun = 1};
  change.request.data = &change;
  cache->pending++;
  assert_int_equal(belay_cache_put(cache->handle, &change.request, belay_string("shop"),
                                   belay_string("w"), INT64_C(20000000000), on_changed),
                   0);
  assert_int_equal(end_of_change(&change), 0);
  assert_true(pttl(env, TAG_KEY("shop")) > pttl(env, KEY("shop")));
  assert_true(pttl(env, TAG_KEY("shop")) > before);
  expect_touch(cache, "shop", INT64_C(31000000000), true);
  assert_true(pttl(env, KEY("shop")) > INT64_C(31000000000));
  assert_true(pttl(env, TAG_KEY("shop")) > pttl(env, KEY("shop")));
  int64_t most = pttl(env, TAG_KEY("shop"));
  cache->absent = false;
  cache->error = 0;
  expect_cached(cache, "shop red", "v", BELAY_CACHE_FROM_LOAD);
  assert_true(pttl(env, TAG_KEY("shop")) > most - 5000); /* never less */
}

/* A value exists, but it is not served any more. */
CACHE_TEST_(a_touch_does_not_find_what_was_invalidated, tag_options(cache), cache->value = "v") {
  expect_cached(cache, "shop red", "v", BELAY_CACHE_FROM_LOAD);
  expect_touch(cache, "shop red", 60000, true);
  expect_invalidate_tag(cache, "red");
  expect_touch(cache, "shop red", 60000, false);
  expect_cached(cache, "shop red", "v", BELAY_CACHE_FROM_LOAD);
  expect_touch(cache, "shop red", 60000, true);
  expect_touch(cache, "shop", 60000, false); /* there is none */
}

/* ---- invalidated while it is loaded ---- */

/* The cache subscribes with its first load. */
static void subscribe(cache_t *cache) {
  get_t get = {0};
  cache->loading = LOAD_AT_ONCE;
  start_get(cache, &get, "another");
  (void)end_of_get(&get);
  get_free(&get);
  env_until(cache->env, belay__subscription_is_up(&cache->handle->subscription));
  cache->loading = LOAD_BY_TEST;
}

/* A loaded value is as old as the tags that were read before the load. It is stored, but later
 * gets are not served it. */
static void while_it_is_loaded(bool elsewhere, bool local) {
  env_t *env = env_open(NULL);
  cache_t here = {.loading = LOAD_BY_TEST}, there = {0};
  belay_cache_options_t options = local_tag_options(&here), other = tag_options(&there);
  options.local_bytes = local ? 1000000 : 0;
  other.quiet = true; /* no message comes */
  cache_open(&here, env, &options);
  cache_open_on(&there, env, env_connect(env, server_url(env->server), NULL), &other);
  get_t before = {0}, after = {0};
  if (local) /* the table keeps nothing of a load that began before the subscription */
    subscribe(&here);
  start_get(&here, &before, "shop red");
  env_until(env, here.held == 1);
  expect_invalidate_tag(elsewhere ? &there : &here, "red");
  start_get(&here, &after, "shop red");
  env_until(env, cache_stats(&here).joined == 1);
  finish_load(&here, "old");
  expect_got_data(&before, "old");
  env_until(env, here.held == 1);
  assert_int_equal(after.ended, 0);
  assert_int_equal(cache_stats(&here).fills, 1 + local);
  get_t later = {0};
  start_get(&here, &later, "shop red");
  env_until(env, cache_stats(&here).joined == 2 || later.ended);
  assert_int_equal(later.ended, elsewhere && local); /* a message was lost: see local_ttl_ms */
  finish_load(&here, "new");
  expect_got_data(&after, "new");
  expect_got_data(&later, elsewhere && local ? "old" : "new");
  assert_int_equal(here.loaded, 2 + local);
  env_close(env);
}

TEST(while_it_is_loaded) {
  while_it_is_loaded(false, false);
  while_it_is_loaded(false, true);
  while_it_is_loaded(true, false);
  while_it_is_loaded(true, true);
}

/* The time for which the table may serve it counts from when the tags were captured, however long
 * the load takes. */
CACHE_TEST_(a_load_that_takes_longer_than_the_table_keeps, local_tag_options(cache),
            o.local_ttl_ms = 20;
            cache->loading = LOAD_BY_TEST) {
  get_t get = {0};
  start_get(cache, &get, "shop");
  env_until(env, cache->held == 1);
  env_run_for(env, 25);
  finish_load(cache, "v");
  assert_int_equal(end_of_get(&get), 0);
  env_until(env, cache_stats(cache).fills == 1);
  assert_int_equal(peek_cache(cache, "shop"), BELAY_EAGAIN);
  expect_cached(cache, "shop", "v", BELAY_CACHE_FROM_SERVER);
  get_free(&get);
}

/* Replies may come out of order where some of a look's calls are refused and sent again: a look
 * that began earlier does not bring back what a later one has found to be gone. */
CACHE_TEST_(an_earlier_look, tag_options(cache), o.ttl_ms = 5; o.keep_ms = 60000;
            cache->loading = LOAD_BY_TEST) {
  for (int later = 0; later < 2; later++) {
    get_t first = {0}, second = {0};
    expect_put(cache, "shop", "old", true);
    env_run_for(env, 6);
    start_get(cache, &first, "shop");
    env_until(env, cache->held == 1);
    belay__child_t *child =
        BELAY__CONTAINER(cache->handle->handle.children.next, belay__child_t, node);
    belay__load_t *load = BELAY__CONTAINER(child, belay__load_t, child);
    assert_non_null(load->fallback);
    belay__record_release(env->belay, load->fallback);
    load->fallback = NULL;
    load->seen_at += later ? 1000000 * UINT64_C(60000) : 0;
    start_get(cache, &second, "shop");
    env_until(env,
              !belay__list_empty(&load->waiters) && load->waiters.next->next != &load->waiters);
    fail_load(cache, 7);
    assert_int_equal(end_of_get(&first), later ? BELAY_ELOAD : 0);
    assert_int_equal(end_of_get(&second), later ? BELAY_ELOAD : 0);
    get_free(&first);
    get_free(&second);
  }
}

/* ---- tables ---- */

ENV_TEST(tag_message_drops_table_entries) {
  cache_t here = {.value = "v"}, there = {.value = "v"};
  belay_cache_options_t options = local_tag_options(&here), other = local_tag_options(&there);
  cache_open(&here, env, &options);
  cache_open_on(&there, env, env_connect(env, server_url(env->server), NULL), &other);
  expect_cached(&here, "fill_local up", "v", BELAY_CACHE_FROM_LOAD);
  env_until(env, belay__subscription_is_up(&here.handle->subscription));
  expect_cached(&here, "shop red", "v", BELAY_CACHE_FROM_LOAD);
  expect_cached(&here, "shop blue", "v", BELAY_CACHE_FROM_LOAD);
  env_until(env,
            peek_cache(&here, "shop red") == 0 && peek_cache(&here, "shop blue") == 0); /* stored */
  expect_invalidate_tag(&there, "red");
  env_until(env, peek_cache(&here, "shop red") == BELAY_EAGAIN);
  assert_int_equal(peek_cache(&here, "shop blue"), 0);
  change_t change = {0};
  assert_int_equal(begin_invalidate_tag(&here, &change, "shop"), 0);
  assert_int_equal(peek_cache(&here, "shop blue"), BELAY_EAGAIN); /* its own at once */
  assert_int_equal(end_of_change(&change), 0);
  expect_cached(&here, "shop blue", "v", BELAY_CACHE_FROM_LOAD);
}

/* ---- many at once ---- */

typedef struct batch {
  belay_request_t request;
  unsigned ended;
  belay_cache_from_t from[4];
} batch_t;

static void on_batch(belay_request_t *request, int status, const belay_cache_result_t *results,
                     size_t n) {
  batch_t *batch = request->data;
  assert_int_equal(status, 0);
  batch->ended++;
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(results[i].status, 0);
    batch->from[i] = results[i].from;
  }
}

static void expect_many(cache_t *cache, const char *from) {
  static const belay_bytes_t keys[] = {
      {"shop red", 8}, {"n:0", 3}, {"shop blue", 9}, {"blog red", 8}};
  batch_t batch = {0};
  batch.request.data = &batch;
  assert_int_equal(belay_cache_get_many(cache->handle, &batch.request, keys, 4, on_batch), 0);
  env_until(cache->env, batch.ended == 1);
  for (int i = 0; i < 4; i++)
    assert_int_equal("-tsl"[batch.from[i]], from[i]); /* the table, the server, a load */
}

CACHE_TEST_(many_at_once, tag_options(cache), cache->value = "v") {
  expect_many(cache, "llll");
  expect_many(cache, "ssss");
  expect_invalidate_tag(cache, "red");
  expect_many(cache, "lssl");
  expect_invalidate_tag(cache, "shop");
  expect_many(cache, "lsls");
  server_do(env->server, "DEL", TAG_KEY("blog"), NULL);
  expect_many(cache, "sssl");
  expect_many(cache, "ssss");
}
