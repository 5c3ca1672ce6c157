/* Snowflakes: the parts of an id, clock steps, and workers that are lost, killed and taken over. */
#include <inttypes.h>
#include <stdio.h>

#include "support/fixtures/data/ids.h"
#include "support/models/scripts.h"

#define RECORD "belay::idgen::{users}::worker::"
#define LOCK "belay::lock::{idgen/5/users/"
#define DAY INT64_C(86400000)
#define NOON (BELAY_IDGEN_EPOCH_MS + 500 * DAY) /* of a day like any other */

enum { AHEAD = 100 };

static belay_idgen_options_t snowflakes(int worker) {
  belay_idgen_options_t options = idgen_options(BELAY_IDGEN_SNOWFLAKE);
  options.worker = worker;
  options.ahead_ms = AHEAD * slow();
  options.ttl_ms = 3000 * slow();
  return options;
}

static belay_idgen_parts_t parts_of(int64_t id) {
  belay_idgen_parts_t parts;
  assert_error(belay_idgen_decode(id, BELAY_IDGEN_EPOCH_MS, &parts), 0);
  return parts;
}

static int64_t record(env_t *env, int worker, const char *field) {
  char key[96];
  snprintf(key, sizeof key, RECORD "%d", worker);
  const char *text = server_string(env->server, "HGET", key, field, NULL);
  return text == NULL ? -1 : atoll(text);
}

/* A generator whose worker has no record: it may issue ids after ahead_ms. */
static void open_at(generator_t *generator, env_t *env, const belay_idgen_options_t *options,
                    int64_t at) {
  fake_wall.at = at - options->ahead_ms - 1;
  generator_new(generator, env, options);
  id_op_t op = {.request.timeout_ms = 20000};
  assert_error(begin_get(generator, &op), 0);
  env_until(env, belay_idgen_worker(generator->idgen) >= 0);
  assert_int_equal(op.ended, 0); /* too early */
  fake_wall.at = at;
  assert_error(end_of_id_op(&op), 0);
}

TEST(decode) {
  belay_idgen_parts_t parts = parts_of(INT64_MAX);
  assert_int_equal(parts.unix_ms, BELAY_IDGEN_EPOCH_MS + (INT64_C(1) << 41) - 1);
  assert_int_equal(parts.worker, 1023);
  assert_int_equal(parts.sequence, 4095);
  parts = parts_of(INT64_C(5) << 22 | 7 << 12 | 9);
  assert_int_equal(parts.unix_ms, BELAY_IDGEN_EPOCH_MS + 5);
  assert_int_equal(parts.worker, 7);
  assert_int_equal(parts.sequence, 9);
}

ENV_TEST(parts_of_an_id) {
  belay_idgen_options_t options = snowflakes(42);
  generator_t generator;
  int64_t id, before = 0;
  env_fake_wall(env);
  open_at(&generator, env, &options, NOON);
  for (unsigned i = 1; i < 4096; i++) {
    assert_error(belay_idgen_next(generator.idgen, &id), 0);
    belay_idgen_parts_t parts = parts_of(id);
    assert_int_equal(parts.unix_ms, NOON);
    assert_int_equal(parts.worker, 42);
    assert_int_equal(parts.sequence, i);
    assert_true(id > before);
    before = id;
  }
  assert_error(belay_idgen_next(generator.idgen, &id), BELAY_EAGAIN); /* all of this millisecond */
  fake_wall.at++;
  assert_error(belay_idgen_next(generator.idgen, &id), 0);
  assert_int_equal(id, before + 1 - 4096 + (INT64_C(1) << 22));
  assert_int_equal(belay_idgen_worker(generator.idgen), 42);
  expect_ttls(env->server);
}

/* As many as a real clock allows. */
IDGEN_TEST(a_stream_of_ids_grows, snowflakes(-1)) {
  id_op_t op = {.request.timeout_ms = 60000};
  int64_t before = get_id(generator);
  for (int i = 0; i < 5; i++) {
    expect_id_op(&op, begin_get_many(generator, &op, 20000), 0);
    assert_true(op.growing && op.first > before);
    assert_int_equal(parts_of(op.first).worker, belay_idgen_worker(generator->idgen));
    before = op.last;
  }
}

ENV_TEST(clock_step_back) {
  belay_idgen_options_t options = snowflakes(1);
  generator_t generator;
  id_op_t op = {.request.timeout_ms = 20000}, late = {.request.timeout_ms = 150};
  int64_t id, last;
  env_fake_wall(env);
  open_at(&generator, env, &options, NOON);
  last = next_id(&generator);
  fake_wall.at = NOON - 300;
  assert_error(belay_idgen_next(generator.idgen, &id), BELAY_EAGAIN);
  expect_id_op(&late, begin_get(&generator, &late), BELAY_ETIMEDOUT);
  assert_error(begin_get(&generator, &op), 0);
  fake_wall.at = NOON - 1;
  env_run_for(env, 120);
  assert_int_equal(op.ended, 0);
  fake_wall.at = NOON; /* the rest of that millisecond is usable */
  assert_error(end_of_id_op(&op), 0);
  assert_int_equal(op.first, last + 1);
  fake_wall.at = NOON - DAY; /* for long */
  assert_error(belay_idgen_next(generator.idgen, &id), BELAY_EAGAIN);
  env_run_for(env, 50);
  assert_error(belay_idgen_next(generator.idgen, &id), BELAY_EAGAIN);
  fake_wall.at = NOON + 1;
  assert_true(next_id(&generator) > op.first);
}

ENV_TEST(clock_step_ahead) {
  belay_idgen_options_t options = snowflakes(1);
  generator_t generator;
  int64_t id;
  env_fake_wall(env);
  open_at(&generator, env, &options, NOON);
  int64_t last = next_id(&generator);
  assert_true(record(env, 1, "until") >= NOON);
  fake_wall.at = NOON + DAY;
  assert_error(belay_idgen_next(generator.idgen, &id), BELAY_EAGAIN);
  id = get_id(&generator);
  assert_true(id > last);
  assert_int_equal(parts_of(id).unix_ms, NOON + DAY);
  assert_int_equal(record(env, 1, "until"), NOON + DAY + options.ahead_ms);
  fake_wall.at = NOON; /* it was a mistake */
  env_run_for(env, options.ahead_ms);
  assert_error(belay_idgen_next(generator.idgen, &id), BELAY_EAGAIN);
  assert_int_equal(record(env, 1, "until"), NOON + DAY + options.ahead_ms); /* never less */
}

ENV_TEST(epoch_and_end_of_time) {
  belay_idgen_options_t options = snowflakes(1);
  generator_t generator;
  int64_t id, end = BELAY_IDGEN_EPOCH_MS + (INT64_C(1) << 41) - 1;
  env_fake_wall(env);
  open_at(&generator, env, &options, end);
  assert_int_equal(parts_of(next_id(&generator)).unix_ms, end);
  fake_wall.at = end + 1;
  env_until(env, belay_idgen_next(generator.idgen, &id) == BELAY_EOVERFLOW);
  expect_get(&generator, BELAY_EOVERFLOW);
  close_generator(&generator);
  options.worker = 2;
  fake_wall.at = BELAY_IDGEN_EPOCH_MS - 2 * options.ahead_ms;
  generator_new(&generator, env, &options);
  id_op_t op = {.request.timeout_ms = 20000};
  assert_error(begin_get(&generator, &op), 0);
  env_until(env, belay_idgen_worker(generator.idgen) >= 0);
  fake_wall.at = BELAY_IDGEN_EPOCH_MS - 1;
  assert_error(end_of_id_op(&op), BELAY_EOVERFLOW);
}

/* The record of a clock that was far ahead stays until that time has come. */
ENV_TEST(a_record_outlives_its_end) {
  belay_idgen_options_t options = snowflakes(1);
  generator_t generator;
  env_fake_wall(env);
  int64_t now = server_now_ms(env->server), at = now + 400 * DAY;
  open_at(&generator, env, &options, at);
  for (int i = 0; i < 2; i++) {
    int64_t left = server_integer(env->server, "PTTL", RECORD "1", NULL);
    assert_between(left, 401 * DAY - 60000, 401 * DAY + 60000);
    if (i == 0)
      close_generator(&generator);
  }
}

/* Without the right to set a ttl no record is made. */
ENV_TEST(no_record_without_ttl) {
  belay_idgen_options_t options = snowflakes(1);
  generator_t generator;
  server_do(env->server, "ACL", "SETUSER", "default", "-pexpire", NULL);
  generator_new(&generator, env, &options);
  expect_get(&generator, BELAY_EPERM);
  assert_int_equal(server_integer(env->server, "EXISTS", RECORD "1", NULL), 0);
  server_do(env->server, "ACL", "SETUSER", "default", "+pexpire", NULL);
}

ENV_TEST(successor_after_a_close) {
  belay_idgen_options_t options = snowflakes(7);
  generator_t generator;
  int64_t id;
  env_fake_wall(env);
  open_at(&generator, env, &options, NOON);
  int64_t last = next_id(&generator);
  close_generator(&generator);
  assert_int_equal(record(env, 7, "until"), NOON); /* reserved and unused */
  fake_wall.at = NOON - 50;                        /* its clock is behind */
  generator_new(&generator, env, &options);
  id_op_t op = {.request.timeout_ms = 20000};
  assert_error(begin_get(&generator, &op), 0);
  env_until(env, belay_idgen_worker(generator.idgen) == 7);
  fake_wall.at = NOON;
  env_run_for(env, 150);
  assert_int_equal(op.ended, 0);
  fake_wall.at = NOON + 1;
  assert_error(end_of_id_op(&op), 0);
  assert_true(op.first > last);
  assert_int_equal(parts_of(op.first).unix_ms, NOON + 1);
  assert_error(belay_idgen_next(generator.idgen, &id), 0);
}

/* Nobody gives anything back, and the lock is just gone. */
ENV_TEST(successor_after_a_lost_lock) {
  belay_idgen_options_t options = snowflakes(7);
  generator_t first, second;
  int64_t id, old, last = 0;
  env_fake_wall(env);
  open_at(&first, env, &options, NOON);
  fake_wall.at = NOON + 10;
  env_until(env, record(env, 7, "until") == NOON + 10 + options.ahead_ms);
  server_do(env->server, "DEL", LOCK "7}", NULL);
  belay_client_t *client = env_connect(env, server_url(env->server), NULL);
  generator_of(&second, env, client, &options);
  id_op_t op = {.request.timeout_ms = 20000};
  assert_error(begin_get(&second, &op), 0);
  while (belay_idgen_worker(second.idgen) < 0) { /* the first one has not read the record */
    if (belay_idgen_next(first.idgen, &old) == 0)
      last = old > last ? old : last;
    env_turn(env);
  }
  fake_wall.at = NOON + 10 + options.ahead_ms;
  env_run_for(env, 120);
  if (belay_idgen_next(first.idgen, &old) == 0)
    last = old > last ? old : last;
  assert_int_equal(op.ended, 0);
  fake_wall.at++;
  assert_error(end_of_id_op(&op), 0);
  assert_true(op.first > last);
  env_until(env, belay_idgen_worker(first.idgen) == -1); /* its renewal is refused */
  assert_error(belay_idgen_next(first.idgen, &id), BELAY_EAGAIN);
}

ENV_TEST(workers_are_exclusive) {
  enum { HANDLES = 12 };
  belay_idgen_options_t options = snowflakes(-1);
  generator_t generators[HANDLES];
  id_op_t ops[HANDLES] = {0};
  for (int i = 0; i < HANDLES; i++) {
    generator_new(&generators[i], env, &options);
    ops[i].request.timeout_ms = 60000;
    assert_error(begin_get(&generators[i], &ops[i]), 0);
  }
  for (int i = 0; i < HANDLES; i++) {
    assert_error(end_of_id_op(&ops[i]), 0);
    for (int j = 0; j < i; j++)
      assert_int_not_equal(belay_idgen_worker(generators[i].idgen),
                           belay_idgen_worker(generators[j].idgen));
  }
}

ENV_TEST(the_first_worker_that_is_tried) {
  generator_t generators[3];
  for (int i = 0; i < 3; i++) {
    belay_idgen_options_t options = snowflakes(-1);
    options.first_worker = BELAY_IDGEN_WORKERS - 2;
    generator_new(&generators[i], env, &options);
    id_op_t op = {.request.timeout_ms = 60000};
    expect_id_op(&op, begin_get(&generators[i], &op), 0);
    assert_int_equal(belay_idgen_worker(generators[i].idgen),
                     (BELAY_IDGEN_WORKERS - 2 + i) % BELAY_IDGEN_WORKERS);
  }
  belay_idgen_t *none;
  belay_idgen_options_t options = snowflakes(-1);
  options.first_worker = BELAY_IDGEN_WORKERS;
  assert_error(belay_idgen_new(env->client, &options, &none), BELAY_EINVAL);
}

ENV_TEST(held_worker_is_awaited) {
  belay_idgen_options_t options = snowflakes(3);
  generator_t first, second;
  id_op_t op = {.request.timeout_ms = 60000};
  generator_new(&first, env, &options);
  int64_t id = get_id(&first);
  generator_of(&second, env, env_connect(env, server_url(env->server), NULL), &options);
  assert_error(begin_get(&second, &op), 0);
  env_run_for(env, 100);
  assert_int_equal(op.ended, 0);
  close_generator(&first);
  assert_error(end_of_id_op(&op), 0);
  assert_true(op.first > id);
}

/* Somebody's clock was a year ahead. */
ENV_TEST(worker_far_ahead_is_skipped) {
  belay_idgen_options_t options = snowflakes(-1);
  generator_t generator;
  generator_new(&generator, env, &options);
  (void)get_id(&generator);
  int worker = belay_idgen_worker(generator.idgen);
  close_generator(&generator);
  char key[96], until[24], epoch[24];
  snprintf(until, sizeof until, "%" PRId64, server_now_ms(env->server) + 365 * DAY);
  snprintf(epoch, sizeof epoch, "%" PRId64, options.epoch_ms);
  for (int i = 0; i < BELAY_IDGEN_WORKERS; i++) { /* all but one */
    snprintf(key, sizeof key, RECORD "%d", i);
    if (i != worker)
      server_do(env->server, "HSET", key, "owner", "x", "until", until, "epoch", epoch, "server",
                "x", NULL);
  }
  generator_new(&generator, env, &options);
  id_op_t op = {.request.timeout_ms = 60000};
  expect_id_op(&op, begin_get(&generator, &op), 0);
  assert_int_equal(parts_of(op.first).worker, worker);
}

/* It stops before the lease could be gone, reads that it is gone, and finds another one. */
ENV_TEST(issuing_ends_with_the_lease) {
  belay_idgen_options_t options = snowflakes(-1);
  generator_t generator;
  int64_t id;
  options.ttl_ms = kept_ttl();
  options.ahead_ms = 60000; /* the record would allow it for long */
  env_fake_wall(env);
  open_at(&generator, env, &options, NOON);
  int64_t last = next_id(&generator);
  server_pause(env->server);
  int64_t began = clock_now();
  env_until(env, belay_idgen_next(generator.idgen, &id) == BELAY_EAGAIN);
  assert_between(clock_since_ms(began), 0, 2 * options.ttl_ms + lag());
  assert_int_equal(belay_idgen_worker(generator.idgen), -1);
  server_resume(env->server);
  id_op_t op = {.request.timeout_ms = 60000};
  assert_error(begin_get(&generator, &op), 0);
  env_until(env, belay_idgen_worker(generator.idgen) >= 0);
  fake_wall.at += 2 * options.ahead_ms;
  assert_error(end_of_id_op(&op), 0);
  assert_true(op.first > last);
}

ENV_TEST(lost_record) {
  belay_idgen_options_t options = snowflakes(5);
  generator_t generator;
  env_fake_wall(env);
  open_at(&generator, env, &options, NOON);
  int64_t last = next_id(&generator), until = record(env, 5, "until");
  server_do(env->server, "FLUSHALL", NULL);
  env_until(env, belay_idgen_worker(generator.idgen) == -1);
  id_op_t op = {.request.timeout_ms = 60000};
  assert_error(begin_get(&generator, &op), 0);
  env_until(env, belay_idgen_worker(generator.idgen) == 5);
  fake_wall.at = until;
  env_run_for(env, 50);
  fake_wall.at = NOON + 3 * options.ahead_ms;
  assert_error(end_of_id_op(&op), 0);
  assert_true(op.first > last && parts_of(op.first).unix_ms > until);
}

/* A restart from an old file: it says less than was allowed. */
ENV_TEST(old_record) {
  belay_idgen_options_t options = snowflakes(5);
  generator_t generator;
  env_fake_wall(env);
  open_at(&generator, env, &options, NOON);
  close_generator(&generator);
  assert_int_equal(record(env, 5, "until"), NOON);
  server_restart_keeping(env->server);
  fake_wall.at = NOON + 1; /* above it, and not above what the old server may have stored */
  generator_new(&generator, env, &options);
  id_op_t op = {.request.timeout_ms = 60000};
  assert_error(begin_get(&generator, &op), 0);
  env_until(env, belay_idgen_worker(generator.idgen) == 5);
  fake_wall.at = NOON + 1 + options.ahead_ms;
  env_run_for(env, 120);
  assert_int_equal(op.ended, 0);
  fake_wall.at++;
  assert_error(end_of_id_op(&op), 0);
}
