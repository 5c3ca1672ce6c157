/* Session contexts: the actions of a user belong to one context until the user is idle for a
 * while. */
#include <stdio.h>

#include "support/models/scripts.h"
#include "support/fixtures/data/sessions.h"

#define KEY "belay::session::shop::{ann}"
#define EVENTS KEY "::events"

static int64_t pttl(env_t *env, const char *key) {
  return server_integer(env->server, "PTTL", key, NULL);
}

PLACE_TEST(touches_share_a_context) {
  stay_t stay = {0};
  read_session(place, &stay, "ann", 10);
  assert_false(stay.state.exists);
  assert_int_equal(server_keys(env->server), 0);
  touch_it(place, &stay, "ann", "looks", NULL);
  assert_true(stay.state.is_new);
  assert_int_equal(strlen(stay.id), 36);
  assert_int_equal(stay.id[14], '7');
  assert_int_equal(stay.state.count, 1);
  assert_between(stay.state.since_ms, server_now_ms(env->server) - 20000,
                 server_now_ms(env->server));
  char id[STAY_TEXT];
  memcpy(id, stay.id, sizeof id);
  static const char *const events[] = {"", "takes", "pays"};
  for (int i = 0; i < 3; i++) {
    server_do(env->server, "PEXPIRE", KEY, "50000", NULL);
    server_do(env->server, "PEXPIRE", EVENTS, "40000", NULL);
    touch_it(place, &stay, "ann", events[i], "never used");
    assert_false(stay.state.is_new);
    assert_string_equal(stay.id, id);
    assert_int_equal(stay.state.count, i + 2);
    assert_int_equal(stay.state.kept, i + 2);
    assert_between(pttl(env, KEY), 1780000, 1800000);
    assert_between(pttl(env, EVENTS), 1780000, 1800000);
  }
  touch_it(place, &stay, "ann", NULL, NULL); /* a touch without an event */
  assert_int_equal(stay.state.count, 4);
  read_session(place, &stay, "ann", 10);
  assert_true(stay.state.exists);
  assert_string_equal(stay.id, id);
  assert_int_equal(stay.state.events_len, 4);
  assert_string_equal(stay.event[0], "looks");
  assert_string_equal(stay.event[1], "");
  assert_string_equal(stay.event[3], "pays");
  assert_between(stay.state.remaining_ms, 1780000, 1800000);
  read_session(place, &stay, "ann", 2);
  assert_int_equal(stay.state.events_len, 2);
  assert_string_equal(stay.event[0], "takes");
  assert_ends(begin_exists(place, &stay, "ann"), end_of_stay(&stay), 0);
  assert_true(stay.state.exists);
  assert_int_equal(stay.state.events_len, 0);
  expect_ttls(env->server);
}

PLACE_TEST(new_context_drops_old_events) {
  stay_t stay = {0};
  touch_it(place, &stay, "ann", "old", "first");
  touch_it(place, &stay, "ann", "older", NULL);
  server_do(env->server, "DEL", KEY, NULL);
  assert_int_equal(server_keys(env->server), 1);
  read_session(place, &stay, "ann", 10);
  assert_false(stay.state.exists);
  assert_int_equal(stay.state.events_len, 0);
  touch_it(place, &stay, "ann", NULL, "second");
  assert_true(stay.state.is_new);
  assert_string_equal(stay.id, "second");
  assert_int_equal(stay.state.count, 0);
  assert_int_equal(server_keys(env->server), 1);
  touch_it(place, &stay, "ann", "new", NULL);
  read_session(place, &stay, "ann", 10);
  assert_int_equal(stay.state.events_len, 1);
  assert_string_equal(stay.event[0], "new");
}

ENV_TEST(context_expires) {
  belay_session_options_t options = session_options();
  options.ttl_ms = 1000;
  place_t place;
  stay_t stay = {0};
  place_of(&place, env, env->client, &options);
  touch_it(&place, &stay, "ann", "a", "first");
  server_do(env->server, "PEXPIRE", "belay::session::{ann}", "20", NULL);
  server_do(env->server, "PEXPIRE", "belay::session::{ann}::events", "20", NULL);
  do
    read_session(&place, &stay, "ann", 1);
  while (stay.state.exists);
  touch_it(&place, &stay, "ann", "b", "second");
  assert_true(stay.state.is_new);
}

ENV_TEST(max_events) {
  static const int most[] = {0, 1, 3, 0};
  stay_t stay = {0};
  for (int i = 0; i < 4; i++) { /* of the same context */
    belay_session_options_t options = session_options();
    options.max_events = most[i];
    options.name = belay_string("shop");
    place_t place;
    place_of(&place, env, env->client, &options);
    for (int j = 0; j < 5; j++) {
      char event[8];
      snprintf(event, sizeof event, "%d", j);
      touch_it(&place, &stay, "ann", event, "id");
      assert_int_equal(stay.state.count, 5 * i + j + 1);
      assert_int_equal(stay.state.lost, 0);
    }
    assert_int_equal(stay.state.kept, most[i]);
    read_session(&place, &stay, "ann", 10);
    assert_int_equal(stay.state.events_len, most[i]);
    for (int j = 0; j < most[i]; j++)
      assert_int_equal(stay.event[j][0], '0' + 5 - most[i] + j);
    assert_int_equal(server_integer(env->server, "EXISTS", EVENTS, NULL), most[i] > 0);
    expect_ttls(env->server);
  }
}

ENV_TEST(names_are_separate) {
  belay_session_options_t options = session_options();
  place_t shop, plain;
  stay_t stay = {0};
  place_new(&shop, env);
  place_of(&plain, env, env->client, &options);
  touch_it(&shop, &stay, "ann", "a", "of shop");
  touch_it(&plain, &stay, "ann", "b", "plain");
  assert_true(stay.state.is_new);
  read_session(&shop, &stay, "ann", 1);
  assert_string_equal(stay.id, "of shop");
  assert_int_equal(server_integer(env->server, "EXISTS", "belay::session::{ann}", KEY, NULL), 2);
}

PLACE_TEST(end_by_id) {
  stay_t stay = {0};
  for (int i = 0; i < 2; i++) { /* whichever it is; by its id */
    const char *id = i == 0 ? NULL : "mine";
    assert_ends(begin_end(place, &stay, "ann", id), end_of_stay(&stay), 0);
    assert_false(stay.state.ended || stay.state.exists);
    touch_it(place, &stay, "ann", "a", "mine");
    touch_it(place, &stay, "ann", "b", NULL);
    if (i == 1) {
      assert_ends(begin_end(place, &stay, "ann", "another"), end_of_stay(&stay), 0);
      assert_false(stay.state.ended);
      assert_true(stay.state.exists);
      assert_string_equal(stay.id, "mine");
    }
    assert_ends(begin_end(place, &stay, "ann", id), end_of_stay(&stay), 0);
    assert_true(stay.state.ended);
    assert_false(stay.state.exists);
    assert_int_equal(stay.state.count, 2);
    assert_string_equal(stay.id, "mine");
    assert_int_equal(server_keys(env->server), 0);
  }
}

PLACE_TEST(op_id_repeats_answer) {
  stay_t first = {0}, again = {0}, other = {0};
  assert_ends(begin_touch(place, &first, "ann", "pays", "id:1", "m{1}"), end_of_stay(&first), 0);
  assert_true(first.state.is_new);
  touch_it(place, &other, "ann", "looks", NULL);
  for (int i = 0; i < 2; i++) {
    assert_ends(begin_touch(place, &again, "ann", "pays", "id:2", "m{1}"), end_of_stay(&again), 0);
    assert_true(again.state.is_new);
    assert_string_equal(again.id, "id:1");
    assert_int_equal(again.state.count, 1);
    assert_int_equal(again.state.since_ms, first.state.since_ms);
    assert_error(begin_end(place, &other, "ann", NULL), 0); /* it is remembered beyond the end */
    assert_error(end_of_stay(&other), 0);
  }
  assert_int_equal(server_keys(env->server), 1);
  assert_between(pttl(env, KEY "::op::m%7B1%7D"), 40000, 60000);
}

ENV_TEST(evicted_events_count_as_lost) {
  belay_session_options_t options = session_options();
  options.max_events = 3;
  options.name = belay_string("shop");
  place_t place;
  stay_t stay = {0};
  place_of(&place, env, env->client, &options);
  for (int i = 0; i < 5; i++)
    touch_it(&place, &stay, "ann", "x", NULL);
  assert_int_equal(stay.state.lost, 0);
  server_do(env->server, "DEL", EVENTS, NULL);
  read_session(&place, &stay, "ann", 3);
  assert_int_equal(stay.state.lost, 3);
  assert_int_equal(stay.state.events_len, 0);
  for (int lost = 2; lost >= 0; lost--) {
    touch_it(&place, &stay, "ann", "x", NULL);
    assert_int_equal(stay.state.lost, lost);
    read_session(&place, &stay, "ann", 3);
    assert_int_equal(stay.state.lost, lost);
    assert_int_equal(stay.state.kept, 3 - lost);
  }
  server_do(env->server, "RPUSH", EVENTS, "by", "a", "stranger", NULL);
  touch_it(&place, &stay, "ann", "x", NULL);
  assert_int_equal(stay.state.kept, 3);
  server_do(env->server, "FLUSHALL", NULL);
  touch_it(&place, &stay, "ann", "x", NULL);
  assert_true(stay.state.is_new);
  assert_int_equal(stay.state.count, 1);
}

ENV_TEST(read_is_bounded_by_max_reply) {
  enum { SIZE = 10000, MANY = 12 };
  belay_client_options_t small = client_options();
  small.max_reply = 65536;
  belay_session_options_t options = session_options();
  place_t place;
  stay_t stay = {0};
  static char event[BELAY_SESSION_EVENT_MAX + 1];
  place_of(&place, env, env_connect(env, server_url(env->server), &small), &options);
  for (int i = 0; i < MANY; i++) {
    memset(event, 'a' + i, SIZE);
    touch_it(&place, &stay, "ann", event, NULL);
  }
  read_session(&place, &stay, "ann", BELAY_SESSION_EVENTS_MAX);
  assert_int_equal(stay.state.events_len, 3); /* of 32768 bytes */
  for (int i = 0; i < 3; i++)
    assert_int_equal(stay.event[i][0], 'a' + MANY - 3 + i); /* the last ones */
  assert_int_equal(stay.state.kept, MANY);
  memset(event, 'z', sizeof event - 1);
  touch_it(&place, &stay, "ann", event, NULL);
  read_session(&place, &stay, "ann", 5);
  assert_int_equal(stay.state.events_len, 2);
  for (int i = 0; i < 300; i++)
    server_do(env->server, "RPUSH", "belay::session::{ann}::events", "small", NULL);
  read_session(&place, &stay, "ann", 130); /* in several pieces */
  assert_int_equal(stay.state.events_len, 130);
}

ENV_TEST(longest_names) {
  static char name[128], user[BELAY_SESSION_USER_MAX + 1];
  char id[BELAY_SESSION_ID_MAX + 1] = "", op[BELAY_SESSION_OP_ID_MAX + 1] = "";
  memset(name, '{', sizeof name);
  memset(user, '}', sizeof user - 1);
  memset(id, '\xff', sizeof id - 1);
  memset(op, '%', sizeof op - 1);
  belay_session_options_t options = session_options();
  options.name = belay_bytes(name, sizeof name);
  place_t place;
  stay_t stay = {0};
  place_of(&place, env, env->client, &options);
  assert_ends(begin_touch(&place, &stay, user, "x", id, op), end_of_stay(&stay), 0);
  assert_string_equal(stay.id, id);
  read_session(&place, &stay, user, 1);
  assert_int_equal(stay.state.events_len, 1);
  assert_int_equal(server_keys(env->server), 3);
  expect_ttls(env->server);
}

PLACE_TEST(arguments_are_checked) {
  static char large[BELAY_SESSION_EVENT_MAX + 1];
  belay_session_t *s = place->session;
  belay_request_t r = {0};
  const belay_session_touch_t touches[] = {
      {.event = belay_bytes(large, sizeof large)},
      {.event = belay_bytes(NULL, 1)},
      {.id = belay_bytes(large, 0)},
      {.id = belay_bytes(large, BELAY_SESSION_ID_MAX + 1)},
      {.id = belay_bytes(NULL, 1)},
      {.op_id = belay_bytes(large, 0)},
      {.op_id = belay_bytes(large, BELAY_SESSION_OP_ID_MAX + 1)},
  };
  for (size_t i = 0; i < sizeof touches / sizeof *touches; i++)
    assert_error(belay_session_touch(s, &r, belay_string("u"), &touches[i], on_stay), BELAY_EINVAL);
  assert_error(belay_session_touch(s, &r, belay_bytes(NULL, 1), NULL, on_stay), BELAY_EINVAL);
  assert_error(belay_session_touch(s, &r, belay_string(""), NULL, on_stay), BELAY_EINVAL);
  assert_error(belay_session_touch(s, &r, belay_bytes(large, 1025), NULL, on_stay), BELAY_EINVAL);
  assert_error(belay_session_read(s, &r, belay_string("u"), 10001, on_stay), BELAY_EINVAL);
  assert_error(belay_session_exists(s, &r, belay_string(""), on_stay), BELAY_EINVAL);
  assert_error(belay_session_end(s, &r, belay_string("u"), belay_bytes(large, 65), on_stay),
               BELAY_EINVAL);
  assert_error(belay_session_end(s, &r, belay_string("u"), belay_bytes(NULL, 1), on_stay),
               BELAY_EINVAL);
  assert_int_equal(server_keys(env->server), 0);
}
