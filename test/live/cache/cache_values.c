/* Values: their range, their storage format, and foreign data in their place. */
#include <stdio.h>

#include "cache/record.h"
#include "support/fixtures/cache/cache.h"
#include "support/models/scripts.h"

#define KEY "belay::cache::pages::{home}"

/* ---- any bytes ---- */

/* Loaded here, read there. */
typedef struct caches {
  env_t *env;
  cache_t writer, reader;
} caches_t;

static void caches_open(caches_t *caches, const belay_client_options_t *client, size_t max_bytes,
                        size_t write_compress, size_t read_compress) {
  *caches = (caches_t){.env = env_open(client), .writer.loading = LOAD_BY_TEST};
  belay_cache_options_t options = cache_options(&caches->writer);
  options.max_value_bytes = max_bytes;
  options.compress_bytes = write_compress;
  cache_open(&caches->writer, caches->env, &options);
  options = bare_options(&caches->reader);
  options.max_value_bytes = max_bytes;
  options.compress_bytes = read_compress;
  cache_open_on(&caches->reader, caches->env,
                env_connect(caches->env, server_url(caches->env->server), client), &options);
}

static void expect_bytes(get_t *get, const void *value, size_t len, belay_cache_from_t from) {
  assert_error(end_of_get(get), 0);
  assert_int_equal(get->result.len, len);
  assert_int_equal(get->result.from, from);
  if (len > 0)
    assert_true(memcmp(get->data, value, len) == 0);
  get_free(get);
}

static void expect_through(caches_t *caches, const char *key, const void *value, size_t len) {
  get_t get = {0};
  start_get(&caches->writer, &get, key);
  env_until(caches->env, caches->writer.held == 1);
  assert_error(finish_load_bytes(&caches->writer, value, len), 0);
  expect_bytes(&get, value, len, BELAY_CACHE_FROM_LOAD);
  env_until(caches->env, cache_stats(&caches->writer).loading == 0);
  start_get(&caches->reader, &get, key);
  expect_bytes(&get, value, len, BELAY_CACHE_FROM_SERVER);
}

TEST(any_bytes) {
  caches_t caches;
  unsigned char all[256];
  caches_open(&caches, NULL, 1000, 0, 0);
  expect_through(&caches, "empty", "", 0);
  expect_through(&caches, "nothing", NULL, 0);
  expect_through(&caches, "zero", "\0", 1);
  for (size_t i = 0; i < sizeof all; i++)
    all[i] = (unsigned char)i;
  expect_through(&caches, "all", all, sizeof all);
  for (int i = 0; i < 256; i += 5) {
    char key[16];
    snprintf(key, sizeof key, "byte%d", i);
    expect_through(&caches, key, &all[i], 1);
  }
  assert_int_equal(cache_stats(&caches.reader).undecodable, 0);
  assert_int_equal(cache_stats(&caches.writer).bytes_out, cache_stats(&caches.reader).bytes_in);
  env_close(caches.env);
}

/* All kinds of envelopes, as a value: nothing in it means anything. */
TEST(value_that_looks_like_a_record) {
  static const belay__record_kind_t kinds[] = {BELAY__RECORD_VALUE, BELAY__RECORD_ABSENT,
                                               BELAY__RECORD_ERROR};
  caches_t caches;
  caches_open(&caches, NULL, 1000, 0, 0);
  for (size_t i = 0; i < 3; i++) {
    char *bytes, key[16];
    size_t len, size;
    belay__record_t *record = belay__record_new(caches.env->belay, kinds[i], i == 0 ? 5 : 0, 1);
    memset(record->bytes, 'v', record->len);
    memset(belay__record_tag(record, 0), 't', BELAY__RECORD_ID);
    record->fresh_ms = INT64_C(4000000000000);
    record->error = kinds[i] == BELAY__RECORD_ERROR ? 7 : 0;
    assert_error(belay__record_write(caches.env->belay, record, 0, &bytes, &len, &size), 0);
    snprintf(key, sizeof key, "kind%zu", i);
    expect_through(&caches, key, bytes, len);
    belay__free(caches.env->belay, bytes, size);
    belay__record_release(caches.env->belay, record);
  }
  /* the value of another key */
  const resp_t *whole = server_ask(caches.env->server, "GET", "belay::cache::pages::{kind0}", NULL);
  assert_int_equal(whole->type, RESP_STRING);
  char copy[400];
  size_t len = whole->len;
  assert_true(len < sizeof copy);
  memcpy(copy, whole->str, len);
  expect_through(&caches, "copy", copy, len);
  env_close(caches.env);
}

/* ---- sizes ---- */

static void expect_too_big(cache_t *cache, const void *value, size_t len) {
  get_t get = {0};
  start_get(cache, &get, "big");
  env_until(cache->env, cache->held == 1);
  assert_error(finish_load_bytes(cache, value, len), BELAY_EOVERFLOW);
  expect_got_nothing(&get, BELAY_ELOAD);
  assert_error(get.result.load_error, BELAY_EOVERFLOW);
}

TEST(largest_value_of_option) {
  char value[1001];
  caches_t caches;
  caches_open(&caches, NULL, 1000, 0, 0);
  memset(value, 'x', sizeof value);
  expect_through(&caches, "home", value, 1000);
  expect_too_big(&caches.writer, value, 1001);
  expect_stats(&caches.writer, "load_failures 1, fills 1");
  env_close(caches.env);
}

TEST(largest_values) {
  size_t max = slow() > 1 ? (size_t)8 << 20 : BELAY_CACHE_VALUE_MAX, huge = (size_t)64 << 20;
  belay_client_options_t client = client_options();
  client.max_reply = max + 8192;
  client.timeout_ms = 10000 * slow();
  unsigned char *value = calloc(1, huge);
  caches_t caches;
  caches_open(&caches, &client, max, 0, 0);
  for (size_t i = 0; i < max; i += 61)
    value[i] = (unsigned char)(i >> 4);
  expect_through(&caches, "home", value, max);
  expect_too_big(&caches.writer, value, max + 1);
  expect_too_big(&caches.writer, value, huge);
  free(value);
  belay_cache_t *cache;
  belay_cache_options_t options = cache_options(&caches.writer);
  options.max_value_bytes = huge;
  assert_error(belay_cache_new(caches.env->client, &options, &cache), BELAY_EINVAL);
  env_close(caches.env);
}

/* ---- compressed ---- */

/* For all combinations of options: the stored value states its format. */
TEST(compression) {
  enum { LEN = 10000 };
  char *value = malloc(LEN);
  for (int i = 0; i < LEN; i++)
    value[i] = (char)('a' + i % 7);
  for (size_t write = 0; write < 2; write++)
    for (size_t read = 0; read < 2; read++) {
      caches_t caches;
      caches_open(&caches, NULL, LEN, write * 1000, read * 1000);
      expect_through(&caches, "home", value, LEN);
      int64_t kept = server_integer(caches.env->server, "STRLEN", KEY, NULL);
      assert_between(kept, write ? 80 : LEN + 72, write ? 500 : LEN + 72);
      assert_int_equal(cache_stats(&caches.writer).bytes_out, kept);
      assert_int_equal(cache_stats(&caches.reader).bytes_in, kept);
      expect_through(&caches, "small", value, 999); /* below the threshold */
      assert_int_equal(
          server_integer(caches.env->server, "STRLEN", "belay::cache::pages::{small}", NULL),
          999 + 72);
      env_close(caches.env);
    }
  free(value);
}

/* It would only grow. */
TEST(incompressible_value) {
  enum { LEN = 3000 };
  unsigned char value[LEN];
  uint64_t x = 88172645463325252u;
  for (int i = 0; i < LEN; i++) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    value[i] = (unsigned char)x;
  }
  caches_t caches;
  caches_open(&caches, NULL, LEN, 1, 0);
  expect_through(&caches, "home", value, LEN);
  assert_int_equal(server_integer(caches.env->server, "STRLEN", KEY, NULL), LEN + 72);
  expect_through(&caches, "empty", "", 0);
  env_close(caches.env);
}

/* ---- what is no record ---- */

/* It is a miss, and counted; the load replaces it. n: how many of them were there before. */
static void expect_undecodable(cache_t *cache, unsigned n) {
  char value[32];
  belay_cache_stats_t before = cache_stats(cache);
  snprintf(value, sizeof value, "home#%u", cache->loaded + 1);
  expect_cached(cache, "home", value, BELAY_CACHE_FROM_LOAD);
  env_until(cache->env, cache_stats(cache).loading == 0);
  belay_cache_stats_t after = cache_stats(cache);
  assert_int_equal(after.undecodable, n + 1);
  assert_int_equal(after.misses, before.misses + 1);
  assert_int_equal(after.hits, before.hits);
  assert_int_equal(after.fills, before.fills + 1);
  expect_cached(cache, "home", value, BELAY_CACHE_FROM_SERVER);
  assert_int_equal(cache_stats(cache).undecodable, n + 1);
}

CACHE_TEST(a_torn_value) {
  unsigned n = 0;
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  for (int len = 0;; len++) {
    char text[16];
    snprintf(text, sizeof text, "%d", len);
    env_until(env, cache_stats(cache).loading == 0);
    int64_t was = server_integer(env->server, "STRLEN", KEY, NULL);
    if (was <= len)
      break;
    server_do(env->server, "EVAL",
              "redis.call('SET', KEYS[1], string.sub(redis.call('GET', KEYS[1]), 1, "
              "tonumber(ARGV[1])))",
              "1", KEY, text, NULL);
    expect_undecodable(cache, n++);
  }
  assert_true(n >= 78);
  server_do(env->server, "APPEND", KEY, "x", NULL); /* nor is it longer */
  expect_undecodable(cache, n);
  env_settle(env);
  expect_ttls(env->server);
}

CACHE_TEST(a_foreign_string) {
  static const char *const strings[] = {
      "x", "a foreign string that is longer than the head of an envelope, which has 72 bytes, and "
           "even longer"};
  for (unsigned i = 0; i < 2; i++) {
    server_do(env->server, "SET", KEY, strings[i], NULL);
    expect_undecodable(cache, i);
  }
  server_do(env->server, "SET", KEY, "", NULL);
  expect_undecodable(cache, 2);
  expect_invalidate(cache, "home");
}

/* Of each byte of the envelope that is checked: another one. */
CACHE_TEST(a_damaged_envelope) {
  unsigned n = 0;
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  for (int at = 0; at < 78; at++) {
    char text[16];
    if (at >= BELAY__RECORD_AT_FRESH && at < BELAY__RECORD_AT_RETRY + 8)
      continue; /* which scripts change */
    snprintf(text, sizeof text, "%d", at);
    env_until(env, cache_stats(cache).loading == 0);
    server_do(env->server, "EVAL",
              "local byte = string.byte(redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[1])) "
              "redis.call('SETRANGE', KEYS[1], ARGV[1], string.char((byte + 1) % 256))",
              "1", KEY, text, NULL);
    expect_undecodable(cache, n++);
  }
}

/* A version that is not ours, well formed in itself for all that we know. Byte 3. */
CACHE_TEST(another_version) {
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_until(env, cache_stats(cache).loading == 0);
  server_do(env->server, "SETRANGE", KEY, "3", "\x02", NULL);
  change_t change = {0};
  assert_error(begin_cache_touch(cache, &change, "home", 1000), 0);
  assert_error(end_of_change(&change), BELAY_EMISMATCH);
  expect_undecodable(cache, 0);
}

/* A list, of each kind of key. */
CACHE_TEST_OF(a_list, o.away = BELAY_CACHE_AWAY_LOAD) {
  static const char *const tails[] = {"", "::gen"};
  for (int i = 0; i < 2; i++) {
    char key[64];
    snprintf(key, sizeof key, "%s%s", KEY, tails[i]);
    server_do(env->server, "RPUSH", key, "x", NULL);
    expect_no_value(cache, "home", BELAY_EWRONGTYPE);
    assert_int_equal(cache->loaded, 0);
    assert_int_equal(server_integer(env->server, "LLEN", key, NULL), 1); /* left alone */
    expect_invalidate(cache, "home"); /* but that deletes whatever it holds */
    assert_int_equal(server_integer(env->server, "EXISTS", key, NULL), 0);
  }
  expect_stats(cache, "undecodable 0, away 0, losers 0");
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
}

static size_t one_tag(const char *key, size_t key_len, belay_bytes_t tags[BELAY_CACHE_TAGS_MAX],
                      void *arg) {
  (void)key, (void)key_len, (void)arg;
  tags[0] = (belay_bytes_t){"site", 4};
  return 1;
}

/* Where a tag's generation should be: a list, and a string that is none. */
CACHE_TEST_OF(a_tag_that_is_something_else, o.tags = one_tag; o.away = BELAY_CACHE_AWAY_LOAD) {
  server_do(env->server, "RPUSH", "belay::cache::pages::{site}::tag", "x", NULL);
  expect_no_value(cache, "home", BELAY_EWRONGTYPE);
  server_do(env->server, "SET", "belay::cache::pages::{site}::tag", "foreign", NULL);
  expect_no_value(cache, "home", BELAY_EMISMATCH);
  assert_int_equal(cache->loaded, 0);
  expect_invalidate_tag(cache, "site"); /* deletes it */
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_until(env, cache_stats(cache).loading == 0);
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_SERVER);
  server_do(env->server, "SET", "belay::cache::pages::{site}::tag", "foreign", NULL);
  expect_no_value(cache, "home", BELAY_EMISMATCH); /* the stored value is invalid, too */
  assert_int_equal(cache_stats(cache).away, 0);
}

/* Nobody loads it: it is absent, and stays there. */
CACHE_TEST_(undecodable_value_and_failed_load, bare_options(cache), (void)o) {
  server_do(env->server, "SET", KEY, "foreign", NULL);
  expect_no_value(cache, "home", BELAY_EABSENT);
  assert_int_equal(cache_stats(cache).undecodable, 1);
  assert_string_equal(server_string(env->server, "GET", KEY, NULL), "foreign");
  expect_put(cache, "home", "put", true);
  expect_cached(cache, "home", "put", BELAY_CACHE_FROM_SERVER);
}
