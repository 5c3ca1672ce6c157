/* Segments of servers that lose their keys: repeated ids, and ids that follow the clock. */
#include <inttypes.h>
#include <stdio.h>

#include "support/fixtures/data/ids.h"
#include "support/models/scripts.h"

#define KEY "belay::idgen::{users}"

static belay_idgen_options_t segments(int64_t step) {
  belay_idgen_options_t options = idgen_options(BELAY_IDGEN_SEGMENT);
  options.step = step;
  return options;
}

/* The limit that the header states: without a clock the new process gets ids that others have. */
ENV_TEST(lost_key_without_clock_rate) {
  belay_idgen_options_t options = segments(10);
  generator_t old, new;
  generator_new(&old, env, &options);
  for (int i = 1; i <= 25; i++)
    assert_int_equal(next_id(&old), i);
  server_do(env->server, "FLUSHALL", NULL);
  generator_of(&new, env, env_connect(env, server_url(env->server), NULL), &options);
  assert_int_equal(next_id(&new), 1);
  for (int i = 0; i < 15; i++) /* when the old one asks, the server jumps */
    (void)next_id(&old);
  assert_true(next_id(&old) > 1000 * options.step);
}

static belay_idgen_options_t clocked(int64_t step, int64_t rate, int64_t skew_ms) {
  belay_idgen_options_t options = segments(step);
  options.clock_rate = rate;
  options.clock_skew_ms = skew_ms;
  return options;
}

ENV_TEST(lost_key_with_clock_rate) {
  belay_idgen_options_t options = clocked(10, 1000000, 20);
  generator_t old, new;
  int64_t id, last = 0, at = server_now_ms(env->server) * 1000;
  generator_new(&old, env, &options);
  for (int turn = 0; turn < 5; turn++) {
    for (int i = 0; i < 25; i++) {
      id = next_id(&old);
      assert_true(id > last);
      last = id;
    }
    assert_true(last > at && last < server_now_ms(env->server) * 1000);
    server_do(env->server, "FLUSHALL", NULL);
    generator_of(&new, env, env_connect(env, server_url(env->server), NULL), &options);
    id = next_id(&new);
    assert_true(id > last + 10); /* above all that the old one has fetched, too */
    last = id;
    for (int i = 0; i < 21; i++) /* ids from before */
      (void)next_id(&old);
    close_generator(&new);
  }
}

/* A hundred ids a second, ten at a time: they never get ahead of the clock, and follow each other
 * without a gap. */
ENV_TEST(ids_stay_behind_their_clock) {
  enum { RATE = 200, SKEW = 100 };
  belay_idgen_options_t options = clocked(10, RATE, SKEW);
  generator_t generator;
  int64_t id;
  options.start = 7;
  generator_new(&generator, env, &options);
  int64_t before = server_now_ms(env->server), first = get_id(&generator);
  int64_t after = server_now_ms(env->server);
  assert_true(after - before >= SKEW + 10 * 1000 / RATE);
  assert_between(first, 7 + before * RATE / 1000, 7 + (after - SKEW) * RATE / 1000);
  for (int64_t i = 1; i < 60; i++) {
    id = next_id(&generator);
    assert_int_equal(id, first + i);
    assert_true(id < 7 + (server_now_ms(env->server) - SKEW) * RATE / 1000 + 1);
  }
  assert_string_equal(server_string(env->server, "HGET", KEY, "clock", NULL), "200 100 7");
  close_generator(&generator);
  options.start = 8; /* all of a name have the same */
  generator_new(&generator, env, &options);
  expect_get(&generator, BELAY_EMISMATCH);
  close_generator(&generator);
  options.start = 7;
  options.clock_skew_ms = 99;
  generator_new(&generator, env, &options);
  expect_get(&generator, BELAY_EMISMATCH);
  assert_error(belay_idgen_next(generator.idgen, &id), BELAY_EMISMATCH);
  close_generator(&generator);
  options.clock_rate = 0;
  generator_new(&generator, env, &options);
  expect_get(&generator, BELAY_EMISMATCH);
}

/* The wait for the clock is no failure: the request's own time decides. */
ENV_TEST(clock_behind_delays_ids) {
  belay_idgen_options_t options = clocked(10, 1000, 0);
  generator_t generator;
  char text[24];
  int64_t id, at = 1 + server_now_ms(env->server) + 400;
  snprintf(text, sizeof text, "%" PRId64, at);
  server_do(env->server, "HSET", KEY, "next", text, NULL);
  generator_new(&generator, env, &options);
  id_op_t early = {.request.timeout_ms = 50}, op = {.request.timeout_ms = 20000};
  assert_error(begin_get(&generator, &early), 0);
  assert_error(begin_get(&generator, &op), 0);
  assert_error(end_of_id_op(&early), BELAY_ETIMEDOUT);
  assert_error(belay_idgen_next(generator.idgen, &id), BELAY_EAGAIN);
  assert_error(end_of_id_op(&op), 0);
  assert_true(op.first >= at && server_now_ms(env->server) > at);
}
