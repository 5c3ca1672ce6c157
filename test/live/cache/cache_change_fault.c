/* Caches: changes where the server is gone, or has forgotten, or refuses. */
#include "support/deployments/relay.h"
#include "support/models/scripts.h"
#include "support/fixtures/cache/relayed.h"

#define KEY "belay::cache::{page}"
#define GEN KEY "::gen"

static void expect_end(change_t *change, bool applied) {
  assert_error(end_of_change(change), 0);
  assert_int_equal(change->applied, applied);
}

/* ---- a server that is gone, or has forgotten, or refuses ---- */

/* The outcome of an unanswered request is unknown, and its late execution does no harm. */
PLAIN_CACHE_TEST(no_answer_in_time) {
  expect_put(cache, "page", "before", true);
  server_pause(env->server);
  change_t changes[CHANGES] = {0};
  for (int which = 0; which < CHANGES; which++) {
    changes[which].request.timeout_ms = 60;
    assert_error(begin_nth_change(cache, &changes[which], which, "page"), 0);
  }
  for (int which = 0; which < CHANGES; which++)
    assert_error(end_of_change(&changes[which]), BELAY_EUNKNOWN);
  server_resume(env->server);
  env_settle(env);
  assert_int_equal(server_keys(env->server), 0); /* the invalidation is executed */
}

/* The put has begun, and its store command is delayed. */
static void begin_and_wait(relayed_t *relayed, change_t *put) {
  relayed->awaited = "cache_fill";
  relayed->sent = 0;
  relayed->slows = true;
  assert_error(begin_put(relayed->cache, put, "page", "value"), 0);
  env_until(relayed->env, relayed->sent == 1);
  relayed->awaited = "";
  assert_true(key_exists(relayed, GEN));
}

/* Between its steps the server forgets its scripts; or everything. */
RELAYED_TEST(server_forgets_scripts_or_keys, true) {
  for (int i = 0; i < 2; i++) {
    change_t put = {0};
    begin_and_wait(relayed, &put);
    server_do(relayed->server, i < 1 ? "SCRIPT" : "FLUSHALL", i < 1 ? "FLUSH" : NULL, NULL);
    relay_delay(relayed->relay, 0);
    expect_end(&put, i < 1);
    expect_stored(relayed->cache, KEY, i < 1 ? "value" : NULL);
    server_do(relayed->server, "SCRIPT", "FLUSH", NULL);
    expect_touch(relayed->cache, "page", 60000, i < 1);
  }
}

static void expect_refused(cache_t *cache, int which, int status) {
  change_t change = {0};
  assert_error(begin_nth_change(cache, &change, which, "page"), 0);
  assert_error(end_of_change(&change), status);
}

RELAYED_TEST(full_memory, false) {
  server_do(relayed->server, "CONFIG", "SET", "maxmemory", "1", NULL);
  expect_refused(relayed->cache, 0, BELAY_EOOM);
  expect_refused(relayed->cache, 1, BELAY_EOOM);
  expect_stored(relayed->cache, KEY, "before");
  assert_false(key_exists(relayed, GEN));
  expect_invalidate(relayed->cache, "page"); /* takes none */
  assert_false(key_exists(relayed, KEY));
  server_do(relayed->server, "CONFIG", "SET", "maxmemory", "0", NULL);
  expect_put(relayed->cache, "page", "before", true);
  change_t put = {0};
  begin_and_wait(relayed, &put);
  server_do(relayed->server, "CONFIG", "SET", "maxmemory", "1", NULL);
  relay_delay(relayed->relay, 0);
  assert_error(end_of_change(&put), BELAY_EOOM);
  expect_stored(relayed->cache, KEY, "before");
}

PLAIN_CACHE_TEST(missing_rights) {
  static const char *const rights[] = {"-set", "-setrange", "-del"};
  static const bool refused[][CHANGES] = {
      {true, false, false, false},
      {false, true, false, false},
      {true, false, true, true},
  };
  for (int i = 0; i < 3; i++)
    for (int which = 0; which < CHANGES; which++) {
      expect_put(cache, "page", "before", true);
      server_do(env->server, "ACL", "SETUSER", "default", rights[i], NULL);
      expect_refused(cache, which, refused[i][which] ? BELAY_EPERM : 0);
      server_do(env->server, "ACL", "SETUSER", "default", "+@all", NULL);
      if (refused[i][which])
        expect_stored(cache, KEY, "before");
    }
}

/* A put that has begun can meet the limit of pending calls. */
TEST(too_much_at_once) {
  needs_one_process("one connection");
  static char value[50000];
  belay_client_options_t options = client_options();
  belay_cache_options_t o = plain_options();
  options.max_bytes = 1 << 16;
  o.max_value_bytes = sizeof value;
  env_t *env = env_open(&options);
  cache_t cache = {0};
  change_t puts[2] = {0};
  cache_open(&cache, env, &o);
  expect_put(&cache, "page", "before", true);
  server_pause(env->server);
  for (int i = 0; i < 2; i++)
    assert_error(begin_put_bytes(&cache, &puts[i], i == 0 ? "page" : "other",
                                 belay_bytes(value, sizeof value), BELAY_DEFAULT),
                 0);
  env_run_for(env, 20);
  server_resume(env->server);
  assert_error(end_of_change(&puts[0]), 0);
  assert_error(end_of_change(&puts[1]), BELAY_EBUSY);
  assert_true(puts[0].applied);
  expect_ttls(env->server);
  env_close(env);
}
