/* Many keys at once: early ends and refused calls. */
#include "support/fixtures/cache/cache.h"

CACHE_TEST_(get_timeout, batch_options(cache), cache->loading = LOAD_BY_TEST) {
  static const char *const keys[] = {"there", "slow", "slower"};
  expect_put(cache, "there", "put", true);
  many_t *many = many_new(cache);
  many->request.timeout_ms = 60;
  int64_t began = clock_now();
  assert_error(begin_cache_get_many(many, keys, 3), 0);
  env_until(env, cache->held == 2);
  finish_load(cache, "in time");
  assert_error(end_of_many(many), 0);
  assert_true(clock_since_ms(began) >= 59);
  expect_many_value(many, 0, "put", BELAY_CACHE_FROM_SERVER);
  expect_many_value(many, 1, "in time", BELAY_CACHE_FROM_LOAD);
  expect_many_status(many, 2, BELAY_ETIMEDOUT);
  finish_load(cache, "too late"); /* but not for the next one */
  env_until(env, cache_stats(cache).loading == 0);
  expect_cached(cache, "slower", "too late", BELAY_CACHE_FROM_SERVER);
  many_free(many);
}

CACHE_TEST_(cancel, batch_options(cache), cache->loading = LOAD_BY_TEST) {
  static const char *const keys[] = {"a", "b"};
  many_t *many = many_new(cache), *other = many_new(cache);
  assert_error(begin_cache_get_many(many, keys, 2), 0);
  assert_error(begin_cache_get_many(many, keys, 2), BELAY_ESTATE);
  assert_error(belay_request_cancel(&many->request), 0); /* while it looks */
  assert_error(end_of_many(many), BELAY_ECANCELED);
  assert_error(begin_cache_get_many(many, keys, 2), 0);
  assert_error(begin_cache_get_many(other, keys, 2), 0);
  env_until(env, cache->held == 2 && cache_stats(cache).joined == 2);
  assert_error(belay_request_cancel(&many->request), 0); /* while it waits */
  assert_error(end_of_many(many), BELAY_ECANCELED);
  assert_int_equal(other->ended, 0);
  finish_load(cache, "a");
  finish_load(cache, "b");
  assert_error(end_of_many(other), 0);
  expect_many_value(other, 0, "a", BELAY_CACHE_FROM_LOAD);
  expect_many_value(other, 1, "b", BELAY_CACHE_FROM_LOAD);
  many_free(many);
  many_free(other);
}

CACHE_TEST_(the_cache_closes, batch_options(cache), o.local_bytes = 10000;
            cache->loading = LOAD_BY_TEST) {
  static const char *const keys[] = {"there", "a", "b"};
  expect_put(cache, "there", "put", true);
  expect_cached(cache, "there", "put", BELAY_CACHE_FROM_SERVER);
  many_t *many = many_new(cache), *looking = many_new(cache);
  assert_error(begin_cache_get_many(many, keys, 3), 0);
  env_until(env, cache->held == 2);
  assert_error(begin_cache_get_many(looking, keys, 3), 0);
  assert_error(begin_close_cache(cache), 0);
  assert_error(end_of_many(many), BELAY_ECANCELED);
  assert_error(end_of_many(looking), BELAY_ECANCELED);
  env_until(env, cache->closed == 1);
  finish_load(cache, "a");
  fail_load(cache, 1);
  many_free(many);
  many_free(looking);
}

/* A server that refuses the user is not an empty server, also if that is known before sending. */
CACHE_TEST_(server_refuses_clients, batch_options(cache), o.away = BELAY_CACHE_AWAY_STALE;
            o.local_bytes = 1 << 20; o.local_ttl_ms = 1) {
  static const char *const keys[] = {"there", "nowhere"};
  expect_put(cache, "there", "put", true);
  expect_cached(cache, "there", "put", BELAY_CACHE_FROM_SERVER);
  env_settle(env);
  server_do(env->server, "CONFIG", "SET", "requirepass", "another", NULL);
  server_do(env->server, "CLIENT", "KILL", "SKIPME", "yes", NULL);
  many_t *many = many_new(cache);
  for (int i = 0; i < 3; i++) {
    env_run_for(env, 5); /* the table's is over */
    assert_error(begin_cache_get_many(many, keys, 2), 0);
    assert_error(end_of_many(many), 0);
    assert_string_equal(many->data[0], "put");
    assert_int_equal(many->results[0].from, BELAY_CACHE_FROM_LOCAL);
    assert_true(many->results[0].stale);
    expect_many_status(many, 1, BELAY_EAUTH);
  }
  expect_stats(cache, "away 6, misses 0");
  assert_int_equal(cache->loaded, 0);
  many_free(many);
}

CACHE_TEST_(refused_operations, batch_options(cache), (void)o) {
  static char big[BELAY_CACHE_KEY_MAX + 1];
  static belay_bytes_t keys[MANY_MAX + 1];
  many_t *many = many_new(cache);
  memset(big, 'x', sizeof big);
  for (size_t i = 0; i <= MANY_MAX; i++)
    keys[i] = (belay_bytes_t){"k", 1};
  assert_error(begin_get_many_bytes(many, keys, 0), BELAY_EINVAL);
  assert_error(begin_get_many_bytes(many, keys, MANY_MAX + 1), BELAY_EINVAL);
  assert_error(begin_get_many_bytes(many, keys, SIZE_MAX), BELAY_EINVAL);
  assert_error(begin_get_many_bytes(many, NULL, 1), BELAY_EINVAL);
  keys[2] = (belay_bytes_t){"", 0};
  assert_error(begin_get_many_bytes(many, keys, 3), BELAY_EINVAL);
  keys[2] = (belay_bytes_t){NULL, 1};
  assert_error(begin_get_many_bytes(many, keys, 3), BELAY_EINVAL);
  keys[2] = (belay_bytes_t){big, sizeof big};
  assert_error(begin_get_many_bytes(many, keys, 3), BELAY_EINVAL);
  keys[2].len--;
  assert_error(begin_get_many_bytes(many, keys, 3), 0);
  assert_error(end_of_many(many), 0);
  assert_int_equal(many->results[2].status, 0);
  assert_int_equal(many->results[2].len, BELAY_CACHE_KEY_MAX + 2);
  assert_int_equal(cache_stats(cache).gets, 3);
  many_free(many);
}
