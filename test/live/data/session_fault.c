/* Session contexts where something goes wrong: answers are lost, keys hold something else,
 * everything is closed. */
#include <stdio.h>

#include "support/deployments/relay.h"
#include "support/models/scripts.h"
#include "support/fixtures/data/sessions.h"

#define KEY "belay::session::shop::{ann}"
#define EVENTS KEY "::events"
#define OP KEY "::op::m"

enum { OPERATIONS = 5 };

static int begin_nth(place_t *place, stay_t *stay, int n) {
  return n == 0   ? begin_touch(place, stay, "ann", "x", NULL, NULL)
         : n == 1 ? begin_touch(place, stay, "ann", "x", NULL, "m")
         : n == 2 ? begin_read_session(place, stay, "ann", 10)
         : n == 3 ? begin_exists(place, stay, "ann")
                  : begin_end(place, stay, "ann", "id");
}

/* Those operations, a bit for each, are refused so. */
static void expect_left_alone(place_t *place, unsigned which, int error, const char *detail) {
  server_t *server = place->env->server;
  uint64_t digest = server_digest(server);
  for (int n = 0; n < OPERATIONS; n++) {
    stay_t stay = {0};
    if ((which & 1U << n) == 0)
      continue;
    assert_ends(begin_nth(place, &stay, n), end_of_stay(&stay), error);
    if (strstr(stay.detail, detail) == NULL)
      fail_msg("\"%s\" is not in \"%s\"", detail, stay.detail);
    assert_int_equal(strncmp(stay.detail, KEY ": ", sizeof KEY + 1), 0);
  }
  assert_true(server_digest(server) == digest);
}

TEST_IN(foreign_keys_are_left_unchanged, env, env_open_with(server_with_digest(), NULL)) {
  static const char *const wrong[][2] = {
      {"id", ""},      {"id", NULL},     {"touches", NULL}, {"touches", "-1"},
      {"count", "x"},  {"count", "1.5"}, {"kept", "01"},    {"kept", "99"},
      {"since", NULL}, {"since", "1e3"}, {"count", NULL},   {"count", "9007199254740992"},
  };
  place_t place;
  stay_t stay = {0};
  place_new(&place, env);
  server_do(env->server, "SET", KEY, "1", NULL);
  expect_left_alone(&place, 31, BELAY_EWRONGTYPE, "WRONGTYPE");
  server_do(env->server, "DEL", KEY, NULL);
  server_do(env->server, "HSET", KEY, "name", "somebody's", NULL);
  expect_left_alone(&place, 31, BELAY_EMISMATCH, "it holds no context");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    server_do(env->server, "FLUSHALL", NULL);
    touch_it(&place, &stay, "ann", "x", "id");
    if (wrong[i][1] != NULL)
      server_do(env->server, "HSET", KEY, wrong[i][0], wrong[i][1], NULL);
    else
      server_do(env->server, "HDEL", KEY, wrong[i][0], NULL);
    expect_left_alone(&place, 15, BELAY_EMISMATCH, "it holds no context");
  }
  server_do(env->server, "FLUSHALL", NULL);
  server_do(env->server, "SET", EVENTS, "1", NULL);
  expect_left_alone(&place, 3, BELAY_EWRONGTYPE, "its ::events holds no list");
  server_do(env->server, "DEL", EVENTS, NULL);
  touch_it(&place, &stay, "ann", NULL, "id");
  server_do(env->server, "SADD", EVENTS, "1", NULL);
  expect_left_alone(&place, 15, BELAY_EWRONGTYPE, "its ::events holds no list");
  static const char *const answers[] = {"x", "1:1:1:1:0:5:6:", "1:1:1:1:0:5:id",
                                        "1:01:1:1:0:5:6:id", "1:1:1:1:0:5:9007199254740992:id"};
  server_do(env->server, "DEL", EVENTS, NULL);
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    server_do(env->server, "SET", OP, answers[i], NULL);
    expect_left_alone(&place, 2, BELAY_EMISMATCH, "its ::op holds no answer of ours");
  }
}

/* Where something may not be done: nothing without a ttl is left. */
TEST_IN(missing_right_or_memory, env, env_open_with(server_with_digest(), NULL)) {
  static const char *const rights[] = {"-hset",   "-pexpire", "-hmget", "-rpush", "-ltrim",
                                       "-unlink", "-time",    "-set",   "-get"};
  belay_session_options_t options = session_options();
  options.name = belay_string("shop");
  place_t place;
  unsigned refused = 0;
  place_of(&place, env, env->client, &options);
  for (int there = 0; there < 2; there++)
    for (int n = 0; n < OPERATIONS; n++)
      for (size_t j = 0; j <= sizeof rights / sizeof *rights; j++) {
        stay_t stay = {0};
        server_do(env->server, "FLUSHALL", NULL);
        if (there)
          touch_it(&place, &stay, "ann", "x", "id");
        uint64_t digest = server_digest(env->server);
        bool full = j == sizeof rights / sizeof *rights;
        if (full)
          server_do(env->server, "CONFIG", "SET", "maxmemory", "1", NULL);
        else
          server_do(env->server, "ACL", "SETUSER", "default", rights[j], NULL);
        assert_error(begin_nth(&place, &stay, n), 0);
        int status = end_of_stay(&stay);
        server_do(env->server, "ACL", "SETUSER", "default", "+@all", NULL);
        server_do(env->server, "CONFIG", "SET", "maxmemory", "0", NULL);
        refused += status != 0;
        if (there && status != 0 && n != 4) { /* an existing context stays */
          assert_string_equal(server_string(env->server, "HGET", KEY, "id", NULL), "id");
          assert_int_equal(server_integer(env->server, "LLEN", EVENTS, NULL) >= 1, 1);
        }
        if (full && n < 2)
          assert_error(status, BELAY_EOOM);
        if (full && n < 4)
          assert_true(server_digest(env->server) == digest);
        expect_ttls(env->server);
        if (status != 0 && n < 2) { /* and is done the next time, once */
          assert_ends(begin_nth(&place, &stay, n), end_of_stay(&stay), 0);
          assert_int_equal(stay.state.is_new, !there);
          assert_int_equal(stay.state.count, there + 1);
          assert_int_equal(server_integer(env->server, "LLEN", EVENTS, NULL), there + 1);
        }
      }
  assert_true(refused > 30);
}

/* The server has executed the command (n events, or -1 for no context), and the connection is
 * cut while the reply is in flight. */
static void lose_the_answer(env_t *env, int64_t events) {
  const char *count;
  do {
    uv_run(&env->loop, UV_RUN_NOWAIT);
    count = server_string(env->server, "HGET", KEY, "count", NULL);
  } while ((count == NULL ? -1 : atoll(count)) != events);
  relay_cut(env->relay);
  relay_delay(env->relay, 0);
}

PLACE_TEST_RELAYED(touch_with_lost_reply) {
  stay_t stay = {0};
  touch_it(place, &stay, "ann", "0", "first");
  relay_delay(env->relay, RELAY_LONG);
  assert_error(begin_touch(place, &stay, "ann", "1", NULL, NULL), 0);
  lose_the_answer(env, 2);
  assert_error(end_of_stay(&stay), BELAY_EUNKNOWN);
  relay_delay(env->relay, RELAY_LONG);
  assert_error(begin_touch(place, &stay, "ann", "2", NULL, "m2"), 0);
  lose_the_answer(env, 3);
  assert_error(end_of_stay(&stay), 0);
  assert_int_equal(stay.state.count, 3);
  assert_false(stay.state.is_new);
  server_do(env->server, "DEL", KEY, NULL);
  relay_delay(env->relay, RELAY_LONG);
  assert_error(begin_touch(place, &stay, "ann", "3", "second", "m3"), 0);
  lose_the_answer(env, 1);
  assert_error(end_of_stay(&stay), 0);
  assert_true(stay.state.is_new); /* it was, the first time */
  assert_string_equal(stay.id, "second");
  read_session(place, &stay, "ann", 10);
  assert_int_equal(stay.state.count, 1);
  expect_ttls(env->server);
}

PLACE_TEST_RELAYED(end_and_read_with_lost_reply) {
  stay_t stay = {0};
  for (int i = 0; i < 2; i++) {
    touch_it(place, &stay, "ann", "0", "first");
    relay_delay(env->relay, RELAY_LONG);
    assert_error(begin_end(place, &stay, "ann", i == 0 ? NULL : "first"), 0);
    lose_the_answer(env, -1);
    assert_error(end_of_stay(&stay), BELAY_EUNKNOWN);
    read_session(place, &stay, "ann", 1);
    assert_false(stay.state.exists);
  }
  touch_it(place, &stay, "ann", "0", "first");
  relay_delay(env->relay, RELAY_LONG);
  assert_error(begin_read_session(place, &stay, "ann", 1), 0);
  env_run_for(env, 20);
  relay_cut(env->relay);
  relay_delay(env->relay, 0);
  assert_error(end_of_stay(&stay), 0); /* asked again */
  assert_true(stay.state.exists);
  expect_ttls(env->server);
}

/* A cancel may leave the context. */
ENV_TEST(cancel_after_any_turn) {
  belay_session_options_t options = session_options();
  place_t place;
  place_of(&place, env, env->client, &options);
  unsigned canceled = 0;
  for (int i = 0; i < 40; i++) {
    stay_t stay = {0};
    server_do(env->server, "FLUSHALL", NULL);
    assert_error(begin_touch(&place, &stay, "ann", "x", NULL, NULL), 0);
    for (int turn = 0; turn < i % 8; turn++)
      uv_run(&env->loop, UV_RUN_NOWAIT);
    (void)belay_request_cancel(&stay.request);
    int status = end_of_stay(&stay);
    assert_true(status == 0 || status == BELAY_ECANCELED);
    canceled += status != 0;
    env_settle(env);
    expect_ttls(env->server);
  }
  assert_true(canceled > 0);
}
