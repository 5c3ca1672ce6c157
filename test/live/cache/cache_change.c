/* Caches: put, touch and invalidate, as the server stores them. */
#include <stdio.h>

#include "support/fixtures/cache/cache.h"
#include "support/models/scripts.h"

#define KEY "belay::cache::{page}"
#define GEN KEY "::gen"
#define TAG_KEY "belay::cache::{site}::tag"
#define OTHER_TAG_KEY "belay::cache::{lang}::tag"
#define YEAR_MS INT64_C(31536000000)

/* The cache's idea of the server's time is wrong by at most half the delay of its reply. The
 * tests allow for the whole duration of their own calls. */

/* ---- put ---- */

PLAIN_CACHE_TEST(put_and_its_record) {
  int64_t before = server_now_ms(env->server), began = clock_now();
  expect_put(cache, "page", "first", true);
  int64_t after = server_now_ms(env->server), took = clock_since_ms(began);
  belay__record_t *first = record_at(cache, KEY);
  assert_int_equal(first->kind, BELAY__RECORD_VALUE);
  assert_between(first->created_ms, before - 2, after + took + 2);
  assert_int_equal(first->fresh_ms, first->created_ms + 300000);
  assert_int_equal(first->retry_ms, 0);
  assert_int_equal(first->tags_len, 0);
  assert_between(server_integer(env->server, "PTTL", KEY, NULL), 290000, 300000);
  assert_int_equal(server_keys(env->server), 1); /* its generation is gone */
  expect_put(cache, "page", "second", true);
  expect_stored(cache, KEY, "second");
  belay__record_t *second = record_at(cache, KEY);
  assert_memory_not_equal(first->id, second->id, BELAY__RECORD_ID);
  belay__record_release(env->belay, first);
  belay__record_release(env->belay, second);
  belay_cache_stats_t stats;
  belay_cache_stats(cache->handle, &stats);
  assert_int_equal(stats.fills, 2);
  assert_int_equal(stats.refused_fills, 0);
  assert_int_equal(stats.bytes_out, 2 * BELAY__RECORD_HEAD + strlen("first") + strlen("second"));
  expect_ttls(env->server);
}

ENV_TEST(ttl_of_stored_values) {
  static const struct {
    int64_t ttl_ms, stale_ms, keep_ms, fresh, kept;
  } rows[] = {
      {BELAY_DEFAULT, 0, 0, 50000, 50000},         {BELAY_DEFAULT, 5000, 0, 50000, 55000},
      {BELAY_DEFAULT, 5000, 9000, 50000, 59000},   {20000, 0, 9000, 20000, 29000},
      {YEAR_MS, 0, YEAR_MS, YEAR_MS, 2 * YEAR_MS},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    belay_cache_options_t options = plain_options();
    options.ttl_ms = 50000;
    options.stale_ms = rows[i].stale_ms;
    options.keep_ms = rows[i].keep_ms;
    for (int touched = 0; touched < 2; touched++) {
      cache_t cache = {0};
      change_t change = {0};
      int64_t began = clock_now();
      cache_open(&cache, env, &options);
      assert_error(begin_put_bytes(&cache, &change, "page", belay_bytes("v", 1),
                                   touched ? 30000 : rows[i].ttl_ms),
                   0);
      assert_error(end_of_change(&change), 0);
      if (touched)
        expect_touch(&cache, "page", rows[i].ttl_ms, true);
      belay__record_t *record = record_at(&cache, KEY);
      int64_t now = server_now_ms(env->server);
      assert_between(record->fresh_ms - now, rows[i].fresh - 5000,
                     rows[i].fresh + clock_since_ms(began) + 2);
      belay__record_release(env->belay, record);
      assert_between(server_integer(env->server, "PTTL", KEY, NULL), rows[i].kept - 5000,
                     rows[i].kept);
      assert_error(begin_close_cache(&cache), 0);
      env_until(env, cache.closed == 1);
    }
  }
}

/* They do not all go at once. */
PLAIN_CACHE_TEST_OF(jitter, o.ttl_ms = 100000; o.jitter_percent = 30) {
  enum { PUTS = 60 };
  int64_t least = INT64_MAX, most = 0;
  for (int i = 0; i < PUTS; i++) {
    expect_put(cache, "page", "v", true);
    belay__record_t *record = record_at(cache, KEY);
    int64_t life = record->fresh_ms - record->created_ms;
    assert_between(life, 70000, 100000);
    assert_between(server_integer(env->server, "PTTL", KEY, NULL), life - 5000, life);
    least = life < least ? life : least;
    most = life > most ? life : most;
    belay__record_release(env->belay, record);
  }
  assert_true(least < 80000 && most > 90000); /* once in 10^10 not so */
}

static void expect_bytes(cache_t *cache, const char *value, size_t len) {
  change_t change = {0};
  assert_error(begin_put_bytes(cache, &change, "page", belay_bytes(value, len), BELAY_DEFAULT), 0);
  assert_error(end_of_change(&change), 0);
  assert_true(change.applied);
  belay__record_t *record = record_at(cache, KEY);
  assert_int_equal(record->len, len);
  assert_true(len == 0 || memcmp(record->bytes, value, len) == 0);
  belay__record_release(cache->env->belay, record);
}

PLAIN_CACHE_TEST(any_bytes_are_a_value) {
  expect_bytes(cache, NULL, 0);
  expect_bytes(cache, "", 0);
  expect_bytes(cache, "\0\r\n\xff", 4);
  expect_put(cache, "page", "inner", true);
  char envelope[200];
  const resp_t *reply = server_ask(env->server, "GET", KEY, NULL);
  size_t len = reply->len;
  assert_true(len < sizeof envelope);
  memcpy(envelope, reply->str, len);
  expect_bytes(cache, envelope, len); /* an envelope, in an envelope */
}

TEST(the_largest_value) {
  enum { BIG_MS = 60000 };
  belay_client_options_t big = client_options();
  big.max_reply = big.max_bytes = (size_t)80 << 20;
  big.timeout_ms = big.stall_timeout_ms = BIG_MS * slow();
  env_t *env = env_open(&big);
  cache_t cache = {0};
  change_t change = {0};
  belay_cache_options_t options = plain_options();
  options.max_value_bytes = BELAY_CACHE_VALUE_MAX;
  cache_open(&cache, env, &options);
  size_t len = BELAY_CACHE_VALUE_MAX;
  char *value = malloc(2 * len);
  memset(value, 'v', 2 * len);
  assert_error(begin_put_bytes(&cache, &change, "page", belay_bytes(value, len), BELAY_DEFAULT), 0);
  for (int64_t began = clock_now(); change.ended == 0 && clock_since_ms(began) < BIG_MS * slow();)
    env_run_for(env, 10); /* on a busy machine it may take very long */
  assert_error(end_of_change(&change), 0);
  assert_true(change.applied);
  assert_int_equal(server_integer(env->server, "STRLEN", KEY, NULL), BELAY__RECORD_HEAD + len);
  assert_error(begin_put_bytes(&cache, &change, "page", belay_bytes(value, len + 1), BELAY_DEFAULT),
               BELAY_EINVAL);
  assert_error(begin_put_bytes(&cache, &change, "page", belay_bytes(value, 2 * len), BELAY_DEFAULT),
               BELAY_EINVAL); /* 64 MiB */
  assert_string_equal(belay_detail(env->belay), "value: NULL, or more than 33554432 bytes");
  cache_t small = {0};
  options.max_value_bytes = 10;
  options.compress_bytes = 5;
  cache_open(&small, env, &options);
  expect_bytes(&small, "0123456789", 10);
  assert_error(begin_put(&small, &change, "page", "0123456789a"), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "value: NULL, or more than 10 bytes");
  free(value);
  env_close(env);
}

PLAIN_CACHE_TEST_OF(compression_threshold, o.compress_bytes = 1000) {
  static char value[10000];
  memset(value, 'v', sizeof value);
  expect_bytes(cache, value, 999);
  assert_int_equal(server_integer(env->server, "STRLEN", KEY, NULL), BELAY__RECORD_HEAD + 999);
  expect_bytes(cache, value, sizeof value);
  int64_t len = server_integer(env->server, "STRLEN", KEY, NULL);
  assert_true(len < 300);
  belay_cache_stats_t stats;
  belay_cache_stats(cache->handle, &stats);
  assert_int_equal(stats.bytes_out, (int64_t)BELAY__RECORD_HEAD + 999 + len);
}

/* ---- what is refused ---- */

PLAIN_CACHE_TEST(arguments) {
  static char long_key[BELAY_CACHE_KEY_MAX + 2];
  change_t c = {0};
  belay_request_t *r = &c.request;
  belay_cache_t *handle = cache->handle;
  memset(long_key, 'k', BELAY_CACHE_KEY_MAX + 1);
  assert_error(belay_cache_put(handle, r, belay_bytes(NULL, 1), belay_string("v"), 1, on_changed),
               BELAY_EINVAL);
  assert_error(belay_cache_invalidate_tag(handle, r, belay_bytes(NULL, 1), on_changed),
               BELAY_EINVAL);
  assert_error(belay_cache_put(handle, r, belay_string("k"), belay_bytes(NULL, 1), 1, on_changed),
               BELAY_EINVAL);
  static const int64_t ttls[] = {0, -2, INT64_MIN, YEAR_MS + 1, INT64_MAX};
  for (size_t i = 0; i < sizeof ttls / sizeof *ttls; i++) {
    assert_error(begin_put_bytes(cache, &c, "k", belay_bytes("v", 1), ttls[i]), BELAY_EINVAL);
    assert_error(begin_cache_touch(cache, &c, "k", ttls[i]), BELAY_EINVAL);
    assert_non_null(strstr(belay_detail(env->belay), "ttl_ms"));
  }
  for (int which = 0; which < CHANGES; which++) {
    assert_error(begin_nth_change(cache, &c, which, ""), BELAY_EINVAL);
    assert_error(begin_nth_change(cache, &c, which, long_key), BELAY_EINVAL);
    assert_non_null(strstr(belay_detail(env->belay), which == 3 ? "tag" : "key"));
  }
  long_key[BELAY_CACHE_TAG_MAX + 1] = '\0';
  assert_error(begin_nth_change(cache, &c, 3, long_key), BELAY_EINVAL);
  long_key[BELAY_CACHE_TAG_MAX] = '\0';
  expect_invalidate_tag(cache, long_key);
  memset(long_key, '{', BELAY_CACHE_KEY_MAX);
  long_key[BELAY_CACHE_KEY_MAX] = '\0';
  expect_put(cache, long_key, "v", true);
  expect_invalidate(cache, long_key);
  assert_int_equal(server_keys(env->server), 0);
}

/* ---- touch ---- */

PLAIN_CACHE_TEST(touch) {
  expect_touch(cache, "page", 1000, false);
  assert_int_equal(server_keys(env->server), 0);
  expect_put(cache, "page", "value", true);
  belay__record_t *before = record_at(cache, KEY);
  expect_touch(cache, "page", 3600000, true);
  belay__record_t *after = record_at(cache, KEY); /* and its sum is right */
  assert_true(after->fresh_ms - before->fresh_ms >= 3300000);
  assert_int_equal(after->created_ms, before->created_ms);
  assert_memory_equal(after->id, before->id, BELAY__RECORD_ID);
  belay__record_release(env->belay, before);
  belay__record_release(env->belay, after);
  expect_stored(cache, KEY, "value");
  expect_touch(cache, "page", 1, true);
  env_until(env, server_keys(env->server) == 0);
}

/* A touch does not find a remembered absence or failure. */
PLAIN_CACHE_TEST(touch_of_absence_and_failure) {
  for (int kind = BELAY__RECORD_ABSENT; kind <= BELAY__RECORD_ERROR; kind++) {
    belay__record_t *record = belay__record_new(env->belay, (belay__record_kind_t)kind, 0, 0);
    char *bytes;
    size_t len, size;
    record->error = kind == BELAY__RECORD_ERROR;
    assert_error(belay__record_write(env->belay, record, 0, &bytes, &len, &size), 0);
    const resp_words_t words = {5, {"SET", KEY, bytes, "PX", "50000"}, {3, strlen(KEY), len, 2, 5}};
    (void)server_ask_words(env->server, &words);
    expect_touch(cache, "page", 100000, false);
    assert_between(server_integer(env->server, "PTTL", KEY, NULL), 1, 50000);
    belay__free(env->belay, bytes, size);
    belay__record_release(env->belay, record);
  }
}

/* ---- what the keys hold ---- */

static void expect_status(cache_t *cache, int which, int status, const char *detail) {
  change_t change = {0};
  assert_error(begin_nth_change(cache, &change, which, "page"), 0);
  assert_error(end_of_change(&change), status);
  assert_false(change.applied);
  if (strstr(change.detail, detail) == NULL)
    fail_msg("\"%s\" is not in \"%s\"", detail, change.detail);
}

PLAIN_CACHE_TEST(foreign_types) {
  static const char *const keys[] = {KEY, GEN};
  for (int i = 0; i < 2; i++) {
    server_do(env->server, "RPUSH", keys[i], "element", NULL);
    expect_status(cache, 0, BELAY_EWRONGTYPE, KEY);
    if (i == 0)
      expect_status(cache, 1, BELAY_EWRONGTYPE, KEY);
    else
      expect_touch(cache, "page", BELAY_DEFAULT, false);
    assert_int_equal(server_integer(env->server, "LLEN", keys[i], NULL), 1);
    assert_int_equal(server_keys(env->server), 1);
    expect_invalidate(cache, "page"); /* whatever it is */
    assert_int_equal(server_keys(env->server), 0);
    expect_put(cache, "page", "value", true); /* it is of use again */
    expect_invalidate(cache, "page");
  }
}

/* A put replaces a foreign or incomplete record. A touch does not find it. */
PLAIN_CACHE_TEST(torn_and_foreign_strings) {
  expect_put(cache, "page", "value", true);
  char whole[200];
  const resp_t *reply = server_ask(env->server, "GET", KEY, NULL);
  size_t len = reply->len;
  memcpy(whole, reply->str, len);
  for (size_t n = 0; n < BELAY__RECORD_HEAD; n += 7) {
    const resp_words_t words = {3, {"SET", KEY, whole}, {3, strlen(KEY), n}};
    (void)server_ask_words(env->server, &words);
    expect_status(cache, 1, BELAY_EMISMATCH, KEY ": it holds no cached value");
    reply = server_ask(env->server, "GET", KEY, NULL);
    assert_int_equal(reply->len, n);
    assert_memory_equal(reply->str, whole, n);
    assert_int_equal(server_integer(env->server, "PTTL", KEY, NULL), -1);
    expect_put(cache, "page", "value", true);
    expect_ttls(env->server);
  }
  whole[3] = 2; /* of another version */
  const resp_words_t words = {3, {"SET", KEY, whole}, {3, strlen(KEY), len}};
  (void)server_ask_words(env->server, &words);
  expect_status(cache, 1, BELAY_EMISMATCH, KEY);
  expect_put(cache, "page", "value", true);
  expect_stored(cache, KEY, "value");
}

/* ---- tags ---- */

static size_t two_tags(const char *key, size_t key_len, belay_bytes_t tags[BELAY_CACHE_TAGS_MAX],
                       void *arg) {
  (void)key, (void)key_len, (void)arg;
  tags[0] = (belay_bytes_t){"site", 4};
  tags[1] = (belay_bytes_t){"lang", 4};
  return 2;
}

static void open_tagged(cache_t *cache, env_t *env) {
  belay_cache_options_t options = plain_options();
  options.tags = two_tags;
  cache_open(cache, env, &options);
}

/* Which of the tags that the record was stored under are as they were: a bit each. */
static int good_tags(cache_t *cache) {
  static const char *const keys[] = {TAG_KEY, OTHER_TAG_KEY};
  belay__record_t *record = record_at(cache, KEY);
  int good = 0;
  assert_int_equal(record->tags_len, 2);
  for (size_t i = 0; i < 2; i++) {
    const resp_t *reply = server_ask(cache->env->server, "GET", keys[i], NULL);
    if (reply->type == RESP_STRING && reply->len == BELAY__RECORD_ID &&
        memcmp(reply->str, belay__record_tag(record, i), BELAY__RECORD_ID) == 0)
      good |= 1 << i;
  }
  belay__record_release(cache->env->belay, record);
  return good;
}

ENV_TEST(tags) {
  cache_t cache = {0};
  open_tagged(&cache, env);
  expect_put(&cache, "page", "value", true);
  assert_int_equal(good_tags(&cache), 3);
  assert_int_equal(server_keys(env->server), 3);
  expect_ttls(env->server);
  expect_invalidate_tag(&cache, "lang");
  assert_int_equal(server_keys(env->server), 2); /* the value needs not be known */
  assert_int_equal(good_tags(&cache), 1);
  expect_put(&cache, "article", "value", true); /* makes it anew */
  assert_int_equal(good_tags(&cache), 1);
  expect_put(&cache, "page", "newer", true);
  assert_int_equal(good_tags(&cache), 3);
  expect_invalidate_tag(&cache, "site");
  assert_int_equal(good_tags(&cache), 2);
}

/* A longer ttl of a value extends the ttl of its tags. */
ENV_TEST(ttl_of_tags) {
  cache_t cache = {0};
  open_tagged(&cache, env);
  change_t change = {0};
  assert_error(begin_put_bytes(&cache, &change, "page", belay_bytes("v", 1), YEAR_MS / 2), 0);
  assert_error(end_of_change(&change), 0);
  int64_t kept = server_integer(env->server, "PTTL", KEY, NULL);
  assert_true(server_integer(env->server, "PTTL", TAG_KEY, NULL) > kept);
  expect_touch(&cache, "page", YEAR_MS, true);
  kept = server_integer(env->server, "PTTL", KEY, NULL);
  assert_true(kept > YEAR_MS / 2);
  assert_true(server_integer(env->server, "PTTL", TAG_KEY, NULL) > kept);
  assert_true(server_integer(env->server, "PTTL", OTHER_TAG_KEY, NULL) > kept);
  assert_int_equal(good_tags(&cache), 3);
}

ENV_TEST(foreign_tags) {
  cache_t cache = {0};
  open_tagged(&cache, env);
  server_do(env->server, "RPUSH", OTHER_TAG_KEY, "element", NULL);
  for (int which = 0; which < 2; which++)
    expect_status(&cache, which, BELAY_EWRONGTYPE, OTHER_TAG_KEY);
  server_do(env->server, "SET", OTHER_TAG_KEY, "of another's", NULL);
  for (int which = 0; which < 2; which++)
    expect_status(&cache, which, BELAY_EMISMATCH,
                  OTHER_TAG_KEY ": it holds no generation of a tag");
  assert_string_equal(server_string(env->server, "GET", OTHER_TAG_KEY, NULL), "of another's");
  assert_null(server_string(env->server, "GET", KEY, NULL));
  expect_invalidate_tag(&cache, "lang");
  expect_put(&cache, "page", "value", true);
}

/* ---- names ---- */

PLAIN_CACHE_TEST_OF(names, o.name = belay_string("pages"); o.tags = two_tags) {
  expect_put(cache, "a{b}", "value", true);
  assert_int_equal(server_keys(env->server), 3);
  assert_int_equal(server_integer(env->server, "EXISTS", "belay::cache::pages::{a%7Bb%7D}", NULL),
                   1);
  assert_int_equal(server_integer(env->server, "EXISTS", "belay::cache::pages::{site}::tag", NULL),
                   1);
  expect_invalidate(cache, "a{b}");
  expect_invalidate_tag(cache, "site");
  expect_invalidate_tag(cache, "lang");
  assert_int_equal(server_keys(env->server), 0);
}
