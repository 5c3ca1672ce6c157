/* Caches: concurrent changes, and the processes that learn of them. */
#include <stdio.h>
#include <unistd.h>

#include "cache/state.h"
#include "support/servers/acl.h"
#include "support/fixtures/cache/cache.h"
#include "support/deployments/relay.h"
#include "support/models/scripts.h"

#define KEY "belay::cache::{page}"
#define GEN KEY "::gen"
#define DROPPED "belay::cache::{}::dropped"

/* ---- races ---- */

/* Two clients of one server: the way of one of them is long. */
typedef struct caches {
  server_t *server;
  relay_t *relay;
  env_t *env;
  cache_t far, near;
} caches_t;

static void caches_open(caches_t *caches) {
  caches->server = server_start(NULL);
  caches->relay = relay_start(server_path(caches->server));
  caches->env = env_open_at(relay_url(caches->relay), NULL);
  caches->env->server = caches->server;
  const belay_cache_options_t options = plain_options();
  cache_open(&caches->far, caches->env, &options);
  cache_open_on(&caches->near, caches->env,
                env_connect(caches->env, server_url(caches->server), NULL), &options);
  expect_put(&caches->near, "page", "before", true);
}

static void caches_close(caches_t *caches) {
  expect_ttls(caches->server);
  env_close(caches->env);
  relay_stop(caches->relay);
}

/* It has begun, and has not come to storing anything. */
static void begin_slowly(caches_t *caches, change_t *change) {
  expect_touch(&caches->far, "page", BELAY_DEFAULT, true); /* it is connected, and knows the time */
  relay_delay(caches->relay, 100);
  assert_error(begin_put(&caches->far, change, "page", "old"), 0);
  while (server_integer(caches->server, "EXISTS", GEN, NULL) == 0)
    uv_run(&caches->env->loop, UV_RUN_NOWAIT);
}

TEST(an_invalidation_beats_a_put) {
  caches_t caches;
  caches_open(&caches);
  for (int i = 0; i < 2; i++) {
    change_t put = {0};
    begin_slowly(&caches, &put);
    expect_invalidate(&caches.near, "page");
    assert_int_equal(server_keys(caches.server), 0);
    assert_int_equal(put.ended, 0);
    relay_delay(caches.relay, (int64_t)i * 10);
    assert_error(end_of_change(&put), 0);
    assert_false(put.applied);
    assert_int_equal(server_keys(caches.server), 0);
    relay_delay(caches.relay, 0);
    expect_put(&caches.near, "page", "new", true);
  }
  belay_cache_stats_t stats;
  belay_cache_stats(caches.far.handle, &stats);
  assert_int_equal(stats.refused_fills, 2);
  assert_int_equal(stats.fills, 0);
  caches_close(&caches);
}

/* The order of two concurrent puts is unknown, so neither their values nor the old one are
 * served. */
TEST(concurrent_puts) {
  caches_t caches;
  caches_open(&caches);
  change_t put = {0};
  begin_slowly(&caches, &put);
  expect_put(&caches.near, "page", "new", true); /* it began and was stored in between */
  expect_stored(&caches.near, KEY, "new");
  relay_delay(caches.relay, 0);
  assert_error(end_of_change(&put), 0);
  assert_false(put.applied);
  assert_int_equal(server_keys(caches.server), 0);
  caches_close(&caches);
}

/* One that has begun and not ended is out of the race when a put begins. */
PLAIN_CACHE_TEST(a_put_beats_a_load) {
  server_do(env->server, "SET", GEN, "somebody's load.", "PX", "60000", NULL);
  expect_put(cache, "page", "value", true);
  assert_int_equal(server_keys(env->server), 1);
  expect_stored(cache, KEY, "value");
}

/* A load whose generation the server lost is not stored. */
TEST(a_generation_that_is_lost) {
  caches_t caches;
  caches_open(&caches);
  change_t put = {0};
  begin_slowly(&caches, &put);
  server_do(caches.server, "DEL", GEN, NULL);
  relay_delay(caches.relay, 0);
  assert_error(end_of_change(&put), 0);
  assert_false(put.applied);
  assert_int_equal(server_keys(caches.server), 0);
  caches_close(&caches);
}

/* ---- tables ---- */

/* The values in the tables become invalid at the begin of a change and once more at its end: a
 * stamp shows both. */
PLAIN_CACHE_TEST_OF(changes_invalidate_own_table, o.local_bytes = 1 << 16) {
  belay_cache_t *handle = cache->handle;
  const belay_bytes_t tag = {"page", 4};
  expect_put(cache, "page", "value", true);
  for (int which = 0; which < CHANGES; which++) {
    change_t change = {0};
    belay__stamp_t before, meanwhile, other;
    const char *key = which == 3 ? "another" : "page";
    size_t tags_len = which == 3;
    belay__local_stamp(&handle->local, key, strlen(key), &tag, tags_len, &before);
    belay__local_stamp(&handle->local, "other", 5, NULL, 0, &other);
    assert_error(begin_nth_change(cache, &change, which, "page"), 0);
    assert_int_equal(belay__local_is_good(&handle->local, &before), which == 1);
    belay__local_stamp(&handle->local, key, strlen(key), &tag, tags_len, &meanwhile);
    assert_error(end_of_change(&change), 0);
    assert_false(belay__local_is_good(&handle->local, &meanwhile));
    assert_true(belay__local_is_good(&handle->local, &other));
  }
}

TEST(publication_of_changes) {
  needs_one_process("one place to listen at");
  env_t *env = env_open(NULL);
  resp_client_t listener;
  const resp_words_t words = {
      2, {deployment_subscribe(), DROPPED}, {strlen(deployment_subscribe()), strlen(DROPPED)}};
  assert_int_equal(acl_dial(NULL, &listener, server_path(env->server)), 0);
  resp_free(resp_call(&listener, &words));
  for (int quiet = 0; quiet < 2; quiet++) {
    cache_t cache = {0};
    belay_cache_options_t options = plain_options();
    options.quiet = quiet == 1;
    cache_open(&cache, env, &options);
    int64_t before = server_publications(env->server);
    for (int which = 0; which < CHANGES; which++) {
      change_t change = {0};
      char expected[] = "$8\r\n01234567\r\n", got[256];
      uint64_t hash = belay__local_hash("page", 4, which == 3);
      for (size_t i = 0; i < 8; i++)
        expected[4 + i] = (char)(unsigned char)(hash >> 8 * i);
      assert_error(begin_nth_change(&cache, &change, which, "page"), 0);
      assert_error(end_of_change(&change), 0);
      if (quiet == 1 || which == 1)
        continue;
      ssize_t n = read(listener.fd, got, sizeof got); /* it has been sent by then */
      assert_true(n > 14);
      assert_memory_equal(got + n - 14, expected, 14);
      assert_non_null(memmem(got, (size_t)n, DROPPED, strlen(DROPPED)));
    }
    /* put tells who waits for the key, too */
    assert_int_equal(server_publications(env->server) - before, quiet == 1 ? 1 : 4);
  }
  resp_hang_up(&listener);
  env_close(env);
}
