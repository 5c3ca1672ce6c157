/* Ids from segments and sequences: uniqueness, start, order and end. */
#include <inttypes.h>
#include <stdio.h>

#include "support/fixtures/data/ids.h"

#define KEY "belay::idgen::{users}"
#define SEQUENCE_KEY KEY "::sequence"

static belay_idgen_options_t segments(int64_t step) {
  belay_idgen_options_t options = idgen_options(BELAY_IDGEN_SEGMENT);
  options.step = step;
  return options;
}

static int64_t stored(env_t *env) {
  const char *text = server_string(env->server, "HGET", KEY, "next", NULL);
  return text == NULL ? -1 : atoll(text);
}

IDGEN_TEST(ids_begin_at_one_and_are_fetched_ahead, segments(10)) {
  int64_t id = -7;
  assert_int_equal(server_keys(env->server), 0);
  assert_error(belay_idgen_next(spring->idgen, &id), BELAY_EAGAIN);
  assert_int_equal(id, -7);
  assert_int_equal(get_id(spring), 1);
  for (int64_t expected = 2; expected <= 8; expected++) {
    assert_error(belay_idgen_next(spring->idgen, &id), 0);
    assert_int_equal(id, expected);
  }
  env_run_for(env, 20);
  assert_int_equal(stored(env), 11); /* a fifth is left untouched */
  assert_error(belay_idgen_next(spring->idgen, &id), 0);
  env_until(env, stored(env) == 21);
  env_settle(env);
  for (int64_t expected = 10; expected <= 18; expected++) {
    assert_error(belay_idgen_next(spring->idgen, &id), 0);
    assert_int_equal(id, expected);
  }
  env_run_for(env, 20);
  assert_int_equal(stored(env), 21);
  assert_int_equal(server_integer(env->server, "PTTL", KEY, NULL), -1);
}

ENV_TEST(steps_of_every_size) {
  static const int64_t steps[] = {1, 2, 3, 5, 7, 1000};
  int64_t before = 0;
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    belay_idgen_options_t options = segments(steps[i]);
    spring_t spring;
    spring_new(&spring, env, &options);
    for (int n = 0; n < 50; n++) {
      int64_t id = next_id(&spring);
      assert_true(id > before);
      if (n > 0)
        assert_int_equal(id, before + 1);
      before = id;
    }
    close_spring(&spring);
    int64_t left = stored(env) - 1 - before;
    assert_between(left, 0, 2 * steps[i]);
  }
}

IDGEN_TEST(many_at_once_are_served_in_order, segments(1000)) {
  draw_t draws[4] = {0};
  static const size_t n[] = {1500, 1, 3000, 7};
  int64_t id, before = 0;
  for (int i = 0; i < 4; i++)
    assert_error(n[i] == 1 ? begin_get(spring, &draws[i]) : begin_get_many(spring, &draws[i], n[i]),
                 0);
  assert_error(belay_idgen_next(spring->idgen, &id),
               BELAY_EAGAIN); /* waiting requests come first */
  for (int i = 0; i < 4; i++) {
    assert_error(end_of_draw(&draws[i]), 0);
    assert_int_equal(draws[i].n, n[i]);
    assert_true(draws[i].growing);
    assert_int_equal(draws[i].first, before + 1);
    before = draws[i].last;
  }
  assert_int_equal(before, 4508);
  assert_error(begin_get_many(spring, &draws[0], BELAY_IDGEN_MANY_MAX), 0);
  assert_error(end_of_draw(&draws[0]), 0);
  assert_int_equal(draws[0].first, before + 1);
  assert_int_equal(draws[0].last, before + (int64_t)BELAY_IDGEN_MANY_MAX);
  assert_int_equal(next_id(spring), draws[0].last + 1);
}

ENV_TEST(handles_share_the_ids) {
  enum { HANDLES = 5, IDS = 2000 };
  belay_idgen_options_t options = segments(10);
  spring_t springs[HANDLES];
  static bool seen[HANDLES * IDS + 2 * HANDLES * 20];
  memset(seen, 0, sizeof seen);
  int64_t before[HANDLES] = {0};
  for (int i = 0; i < HANDLES; i++)
    spring_of(&springs[i], env,
              i % 2 ? env_connect(env, server_url(env->server), NULL) : env->client, &options);
  for (int n = 0; n < IDS; n++)
    for (int i = 0; i < HANDLES; i++) {
      int64_t id = next_id(&springs[i]);
      assert_between(id, before[i] + 1, (int64_t)(sizeof seen) - 1);
      assert_false(seen[id]);
      seen[id] = true;
      before[i] = id;
    }
}

ENV_TEST(the_start_and_the_end) {
  belay_idgen_options_t options = segments(10);
  spring_t spring;
  int64_t id;
  options.start = INT64_C(9007199254740993); /* 2^53 + 1 */
  spring_new(&spring, env, &options);
  for (int64_t i = 0; i < 35; i++)
    assert_int_equal(next_id(&spring), options.start + i);
  close_spring(&spring);
  server_do(env->server, "FLUSHALL", NULL);
  options.start = INT64_MAX - 20;
  spring_new(&spring, env, &options);
  for (int64_t i = 0; i < 20; i++)
    assert_int_equal(next_id(&spring), options.start + i);
  env_settle(env);
  assert_error(belay_idgen_next(spring.idgen, &id), BELAY_EOVERFLOW);
  expect_get(&spring, BELAY_EOVERFLOW);
  assert_int_equal(stored(env), INT64_MAX);
  close_spring(&spring);
  server_do(env->server, "FLUSHALL", NULL);
  options.start = 0;
  spring_new(&spring, env, &options);
  assert_int_equal(next_id(&spring), 0);
}

ENV_TEST(stored_state_overrides_start) {
  belay_idgen_options_t options = segments(10);
  spring_t spring;
  spring_new(&spring, env, &options);
  assert_int_equal(next_id(&spring), 1);
  close_spring(&spring);
  options.start = 1000;
  spring_new(&spring, env, &options);
  assert_int_equal(next_id(&spring), 11);
}

static belay_idgen_options_t sequence(const char *kind, int64_t start) {
  belay_idgen_options_t options = idgen_options(BELAY_IDGEN_SEQUENCE);
  options.sequence = belay_string(kind);
  options.start = start;
  return options;
}

static void expect_many(spring_t *spring, size_t n, int64_t first, int64_t last) {
  draw_t draw = {0};
  expect_draw(&draw, begin_get_many(spring, &draw, n), 0);
  assert_int_equal(draw.n, n);
  assert_int_equal(draw.first, first);
  assert_int_equal(draw.last, last);
  assert_true(draw.growing);
}

ENV_TEST(fields_of_sequences) {
  spring_t users, orders, others;
  int64_t id;
  belay_idgen_options_t options = sequence("user", 1);
  spring_new(&users, env, &options);
  options = sequence("order", 1000);
  spring_new(&orders, env, &options);
  options = sequence("order", 5); /* too late */
  spring_new(&others, env, &options);
  assert_error(belay_idgen_next(users.idgen, &id), BELAY_EAGAIN);
  for (int64_t i = 0; i < 5; i++) {
    assert_int_equal(get_id(&users), 1 + i);
    assert_int_equal(get_id(&orders), 1000 + 2 * i);
    assert_int_equal(get_id(&others), 1001 + 2 * i);
  }
  assert_error(belay_idgen_next(users.idgen, &id), BELAY_EAGAIN);
  expect_many(&users, 10000, 6, 10005);
  assert_int_equal(get_id(&users), 10006);
  assert_string_equal(server_string(env->server, "HGET", SEQUENCE_KEY, "user", NULL), "10006");
  assert_int_equal(server_integer(env->server, "HLEN", SEQUENCE_KEY, NULL), 2);
  assert_int_equal(server_integer(env->server, "PTTL", SEQUENCE_KEY, NULL), -1);
  assert_int_equal(server_keys(env->server), 1);
}

ENV_TEST(a_sequence_ends) {
  spring_t spring;
  draw_t draw = {0};
  belay_idgen_options_t options = sequence("last", INT64_MAX - 2);
  spring_new(&spring, env, &options);
  expect_draw(&draw, begin_get_many(&spring, &draw, 4), BELAY_EOVERFLOW);
  assert_int_equal(server_keys(env->server), 0);
  assert_int_equal(get_id(&spring), INT64_MAX - 2);
  expect_draw(&draw, begin_get_many(&spring, &draw, 3), BELAY_EOVERFLOW);
  expect_many(&spring, 2, INT64_MAX - 1, INT64_MAX);
  expect_get(&spring, BELAY_EOVERFLOW);
  options = sequence("first", INT64_MIN);
  spring_new(&spring, env, &options);
  assert_int_equal(get_id(&spring), INT64_MIN);
  expect_many(&spring, 3, INT64_MIN + 1, INT64_MIN + 3);
  options = sequence("zero", -1);
  spring_new(&spring, env, &options);
  expect_many(&spring, 3, -1, 1);
}

static char detail_text[256];

static void keep_detail(spring_t *spring) {
  snprintf(detail_text, sizeof detail_text, "%s", belay_detail(spring->env->belay));
}

ENV_TEST(foreign_keys_are_kept) {
  static const char *const texts[] = {"many", "-1", "01", "", "9223372036854775808", "1.5"};
  belay_idgen_options_t options = segments(10);
  for (size_t i = 0; i <= sizeof texts / sizeof *texts; i++) {
    bool list = i == sizeof texts / sizeof *texts;
    int error = list ? BELAY_EWRONGTYPE : BELAY_EMISMATCH;
    spring_t spring;
    int64_t id;
    if (list)
      server_do(env->server, "RPUSH", KEY, "1", NULL);
    else
      server_do(env->server, "HSET", KEY, "next", texts[i], NULL);
    uint64_t keys = (uint64_t)server_keys(env->server);
    spring_new(&spring, env, &options);
    spring.then = keep_detail;
    expect_get(&spring, error);
    assert_ptr_equal(strstr(detail_text, KEY ": "), detail_text);
    assert_error(belay_idgen_next(spring.idgen, &id), error);
    assert_ptr_equal(strstr(belay_detail(env->belay), KEY ": "), belay_detail(env->belay));
    assert_int_equal(server_keys(env->server), keys);
    if (!list)
      assert_string_equal(server_string(env->server, "HGET", KEY, "next", NULL), texts[i]);
    server_do(env->server, "DEL", KEY, NULL);
    assert_int_equal(get_id(&spring), 1); /* it is of use again */
    server_do(env->server, "DEL", KEY, NULL);
    spring.then = NULL;
    close_spring(&spring);
  }
  spring_t spring;
  server_do(env->server, "HSET", KEY, "color", "green", NULL); /* another program's hash */
  spring_new(&spring, env, &options);
  expect_get(&spring, BELAY_EMISMATCH);
  assert_int_equal(server_integer(env->server, "HLEN", KEY, NULL), 1);
  close_spring(&spring);
  options = sequence("id", 1);
  spring_new(&spring, env, &options);
  server_do(env->server, "SET", SEQUENCE_KEY, "1", NULL);
  spring.then = keep_detail;
  expect_get(&spring, BELAY_EWRONGTYPE);
  assert_ptr_equal(strstr(detail_text, SEQUENCE_KEY ": "), detail_text);
  server_do(env->server, "DEL", SEQUENCE_KEY, NULL);
  static const char *const values[] = {"x", "01", "-0", "1.5", "", "9223372036854775808", "inf"};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    server_do(env->server, "HSET", SEQUENCE_KEY, "id", values[i], NULL);
    expect_get(&spring, BELAY_EMISMATCH);
    assert_ptr_equal(strstr(detail_text, SEQUENCE_KEY ": "), detail_text);
    assert_string_equal(server_string(env->server, "HGET", SEQUENCE_KEY, "id", NULL), values[i]);
  }
}

#define REFUSE(mode, member, value, word)                                                          \
  do {                                                                                             \
    belay_idgen_options_t o_ = idgen_options(mode);                                                \
    o_.member = value;                                                                             \
    expect_refused(env, &o_, word);                                                                \
  } while (0)

static void on_one(belay_request_t *request, int status, int64_t id) {
  (void)request;
  (void)status;
  (void)id;
  fail_msg("called back");
}

static void on_many(belay_request_t *request, int status, const int64_t *ids, size_t n) {
  (void)ids;
  on_one(request, status, (int64_t)n);
}

IDGEN_TEST(arguments_are_checked, segments(1)) {
  belay_request_t request = {0};
  int64_t id;
  belay_idgen_parts_t parts;
  assert_error(belay_idgen_next(NULL, &id), BELAY_EINVAL);
  assert_error(belay_idgen_next(spring->idgen, NULL), BELAY_EINVAL);
  assert_error(belay_idgen_get_many(spring->idgen, &request, 0, on_many), BELAY_EINVAL);
  assert_error(belay_idgen_get_many(spring->idgen, &request, BELAY_IDGEN_MANY_MAX + 1, on_many),
               BELAY_EINVAL);
  assert_error(belay_idgen_decode(-1, 0, &parts), BELAY_EINVAL);
  assert_error(belay_idgen_decode(1, -1, &parts), BELAY_EINVAL);
  assert_error(belay_idgen_decode(1, 0, NULL), BELAY_EINVAL);
  assert_int_equal(belay_idgen_worker(NULL), -1);
  assert_int_equal(belay_idgen_worker(spring->idgen), -1);
}

ENV_TEST(longest_names) {
  static char text[BELAY_IDGEN_NAME_MAX];
  for (int i = 0; i < 3; i++) {
    memset(text, i == 0 ? '{' : i == 1 ? '\0' : '\xff', sizeof text);
    for (int mode = BELAY_IDGEN_SEGMENT; mode <= BELAY_IDGEN_SEQUENCE; mode++) {
      belay_idgen_options_t options = idgen_options((belay_idgen_mode_t)mode);
      spring_t spring;
      options.name = options.sequence = belay_bytes(text, sizeof text);
      options.ahead_ms = 100;
      spring_new(&spring, env, &options);
      int64_t first = get_id(&spring);
      assert_true(get_id(&spring) > first);
    }
  }
}
