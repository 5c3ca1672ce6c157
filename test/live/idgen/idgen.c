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
  assert_error(belay_idgen_next(generator->idgen, &id), BELAY_EAGAIN);
  assert_int_equal(id, -7);
  assert_int_equal(get_id(generator), 1);
  for (int64_t expected = 2; expected <= 8; expected++) {
    assert_error(belay_idgen_next(generator->idgen, &id), 0);
    assert_int_equal(id, expected);
  }
  env_run_for(env, 20);
  assert_int_equal(stored(env), 11); /* a fifth is left untouched */
  assert_error(belay_idgen_next(generator->idgen, &id), 0);
  env_until(env, stored(env) == 21);
  env_settle(env);
  for (int64_t expected = 10; expected <= 18; expected++) {
    assert_error(belay_idgen_next(generator->idgen, &id), 0);
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
    generator_t generator;
    generator_new(&generator, env, &options);
    for (int n = 0; n < 50; n++) {
      int64_t id = next_id(&generator);
      assert_true(id > before);
      if (n > 0)
        assert_int_equal(id, before + 1);
      before = id;
    }
    close_generator(&generator);
    int64_t left = stored(env) - 1 - before;
    assert_between(left, 0, 2 * steps[i]);
  }
}

IDGEN_TEST(many_at_once_are_served_in_order, segments(1000)) {
  id_op_t ops[4] = {0};
  static const size_t n[] = {1500, 1, 3000, 7};
  int64_t id, before = 0;
  for (int i = 0; i < 4; i++)
    assert_error(
        n[i] == 1 ? begin_get(generator, &ops[i]) : begin_get_many(generator, &ops[i], n[i]), 0);
  assert_error(belay_idgen_next(generator->idgen, &id),
               BELAY_EAGAIN); /* waiting requests come first */
  for (int i = 0; i < 4; i++) {
    assert_error(end_of_id_op(&ops[i]), 0);
    assert_int_equal(ops[i].n, n[i]);
    assert_true(ops[i].growing);
    assert_int_equal(ops[i].first, before + 1);
    before = ops[i].last;
  }
  assert_int_equal(before, 4508);
  assert_error(begin_get_many(generator, &ops[0], BELAY_IDGEN_MANY_MAX), 0);
  assert_error(end_of_id_op(&ops[0]), 0);
  assert_int_equal(ops[0].first, before + 1);
  assert_int_equal(ops[0].last, before + (int64_t)BELAY_IDGEN_MANY_MAX);
  assert_int_equal(next_id(generator), ops[0].last + 1);
}

ENV_TEST(handles_share_the_ids) {
  enum { HANDLES = 5, IDS = 2000 };
  belay_idgen_options_t options = segments(10);
  generator_t generators[HANDLES];
  static bool seen[HANDLES * IDS + 2 * HANDLES * 20];
  memset(seen, 0, sizeof seen);
  int64_t before[HANDLES] = {0};
  for (int i = 0; i < HANDLES; i++)
    generator_of(&generators[i], env,
                 i % 2 ? env_connect(env, server_url(env->server), NULL) : env->client, &options);
  for (int n = 0; n < IDS; n++)
    for (int i = 0; i < HANDLES; i++) {
      int64_t id = next_id(&generators[i]);
      assert_between(id, before[i] + 1, (int64_t)(sizeof seen) - 1);
      assert_false(seen[id]);
      seen[id] = true;
      before[i] = id;
    }
}

ENV_TEST(the_start_and_the_end) {
  belay_idgen_options_t options = segments(10);
  generator_t generator;
  int64_t id;
  options.start = INT64_C(9007199254740993); /* 2^53 + 1 */
  generator_new(&generator, env, &options);
  for (int64_t i = 0; i < 35; i++)
    assert_int_equal(next_id(&generator), options.start + i);
  close_generator(&generator);
  server_do(env->server, "FLUSHALL", NULL);
  options.start = INT64_MAX - 20;
  generator_new(&generator, env, &options);
  for (int64_t i = 0; i < 20; i++)
    assert_int_equal(next_id(&generator), options.start + i);
  env_settle(env);
  assert_error(belay_idgen_next(generator.idgen, &id), BELAY_EOVERFLOW);
  expect_get(&generator, BELAY_EOVERFLOW);
  assert_int_equal(stored(env), INT64_MAX);
  close_generator(&generator);
  server_do(env->server, "FLUSHALL", NULL);
  options.start = 0;
  generator_new(&generator, env, &options);
  assert_int_equal(next_id(&generator), 0);
}

ENV_TEST(stored_state_overrides_start) {
  belay_idgen_options_t options = segments(10);
  generator_t generator;
  generator_new(&generator, env, &options);
  assert_int_equal(next_id(&generator), 1);
  close_generator(&generator);
  options.start = 1000;
  generator_new(&generator, env, &options);
  assert_int_equal(next_id(&generator), 11);
}

static belay_idgen_options_t sequence(const char *kind, int64_t start) {
  belay_idgen_options_t options = idgen_options(BELAY_IDGEN_SEQUENCE);
  options.sequence = belay_string(kind);
  options.start = start;
  return options;
}

static void expect_many(generator_t *generator, size_t n, int64_t first, int64_t last) {
  id_op_t op = {0};
  expect_id_op(&op, begin_get_many(generator, &op, n), 0);
  assert_int_equal(op.n, n);
  assert_int_equal(op.first, first);
  assert_int_equal(op.last, last);
  assert_true(op.growing);
}

ENV_TEST(fields_of_sequences) {
  generator_t users, orders, others;
  int64_t id;
  belay_idgen_options_t options = sequence("user", 1);
  generator_new(&users, env, &options);
  options = sequence("order", 1000);
  generator_new(&orders, env, &options);
  options = sequence("order", 5); /* too late */
  generator_new(&others, env, &options);
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
  generator_t generator;
  id_op_t op = {0};
  belay_idgen_options_t options = sequence("last", INT64_MAX - 2);
  generator_new(&generator, env, &options);
  expect_id_op(&op, begin_get_many(&generator, &op, 4), BELAY_EOVERFLOW);
  assert_int_equal(server_keys(env->server), 0);
  assert_int_equal(get_id(&generator), INT64_MAX - 2);
  expect_id_op(&op, begin_get_many(&generator, &op, 3), BELAY_EOVERFLOW);
  expect_many(&generator, 2, INT64_MAX - 1, INT64_MAX);
  expect_get(&generator, BELAY_EOVERFLOW);
  options = sequence("first", INT64_MIN);
  generator_new(&generator, env, &options);
  assert_int_equal(get_id(&generator), INT64_MIN);
  expect_many(&generator, 3, INT64_MIN + 1, INT64_MIN + 3);
  options = sequence("zero", -1);
  generator_new(&generator, env, &options);
  expect_many(&generator, 3, -1, 1);
}

static char detail_text[256];

static void keep_detail(generator_t *generator) {
  snprintf(detail_text, sizeof detail_text, "%s", belay_detail(generator->env->belay));
}

ENV_TEST(foreign_keys_are_kept) {
  static const char *const texts[] = {"many", "-1", "01", "", "9223372036854775808", "1.5"};
  belay_idgen_options_t options = segments(10);
  for (size_t i = 0; i <= sizeof texts / sizeof *texts; i++) {
    bool list = i == sizeof texts / sizeof *texts;
    int error = list ? BELAY_EWRONGTYPE : BELAY_EMISMATCH;
    generator_t generator;
    int64_t id;
    if (list)
      server_do(env->server, "RPUSH", KEY, "1", NULL);
    else
      server_do(env->server, "HSET", KEY, "next", texts[i], NULL);
    uint64_t keys = (uint64_t)server_keys(env->server);
    generator_new(&generator, env, &options);
    generator.then = keep_detail;
    expect_get(&generator, error);
    assert_ptr_equal(strstr(detail_text, KEY ": "), detail_text);
    assert_error(belay_idgen_next(generator.idgen, &id), error);
    assert_ptr_equal(strstr(belay_detail(env->belay), KEY ": "), belay_detail(env->belay));
    assert_int_equal(server_keys(env->server), keys);
    if (!list)
      assert_string_equal(server_string(env->server, "HGET", KEY, "next", NULL), texts[i]);
    server_do(env->server, "DEL", KEY, NULL);
    assert_int_equal(get_id(&generator), 1); /* it is of use again */
    server_do(env->server, "DEL", KEY, NULL);
    generator.then = NULL;
    close_generator(&generator);
  }
  generator_t generator;
  server_do(env->server, "HSET", KEY, "color", "green", NULL); /* another program's hash */
  generator_new(&generator, env, &options);
  expect_get(&generator, BELAY_EMISMATCH);
  assert_int_equal(server_integer(env->server, "HLEN", KEY, NULL), 1);
  close_generator(&generator);
  options = sequence("id", 1);
  generator_new(&generator, env, &options);
  server_do(env->server, "SET", SEQUENCE_KEY, "1", NULL);
  generator.then = keep_detail;
  expect_get(&generator, BELAY_EWRONGTYPE);
  assert_ptr_equal(strstr(detail_text, SEQUENCE_KEY ": "), detail_text);
  server_do(env->server, "DEL", SEQUENCE_KEY, NULL);
  static const char *const values[] = {"x", "01", "-0", "1.5", "", "9223372036854775808", "inf"};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    server_do(env->server, "HSET", SEQUENCE_KEY, "id", values[i], NULL);
    expect_get(&generator, BELAY_EMISMATCH);
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
  assert_error(belay_idgen_next(generator->idgen, NULL), BELAY_EINVAL);
  assert_error(belay_idgen_get_many(generator->idgen, &request, 0, on_many), BELAY_EINVAL);
  assert_error(belay_idgen_get_many(generator->idgen, &request, BELAY_IDGEN_MANY_MAX + 1, on_many),
               BELAY_EINVAL);
  assert_error(belay_idgen_decode(-1, 0, &parts), BELAY_EINVAL);
  assert_error(belay_idgen_decode(1, -1, &parts), BELAY_EINVAL);
  assert_error(belay_idgen_decode(1, 0, NULL), BELAY_EINVAL);
  assert_int_equal(belay_idgen_worker(NULL), -1);
  assert_int_equal(belay_idgen_worker(generator->idgen), -1);
}

ENV_TEST(longest_names) {
  static char text[BELAY_IDGEN_NAME_MAX];
  for (int i = 0; i < 3; i++) {
    memset(text, i == 0 ? '{' : i == 1 ? '\0' : '\xff', sizeof text);
    for (int mode = BELAY_IDGEN_SEGMENT; mode <= BELAY_IDGEN_SEQUENCE; mode++) {
      belay_idgen_options_t options = idgen_options((belay_idgen_mode_t)mode);
      generator_t generator;
      options.name = options.sequence = belay_bytes(text, sizeof text);
      options.ahead_ms = 100;
      generator_new(&generator, env, &options);
      int64_t first = get_id(&generator);
      assert_true(get_id(&generator) > first);
    }
  }
}
