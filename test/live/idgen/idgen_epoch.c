/* Snowflakes: the epoch that all workers of a name share. */
#include <stdio.h>

#include "support/fixtures/data/ids.h"

#define RECORD "belay::idgen::{users}::worker::"
#define SPACE "belay::idgen::{users}::workers"
#define DAY INT64_C(86400000)

static belay_idgen_options_t snowflakes(int worker) {
  belay_idgen_options_t options = idgen_options(BELAY_IDGEN_SNOWFLAKE);
  options.worker = worker;
  options.ahead_ms = 100 * slow();
  options.ttl_ms = 3000 * slow();
  return options;
}

/* It is kept as long as a worker issues ids: each renewal keeps it, and restores it. */
ENV_TEST(the_epoch_outlives_the_workers) {
  belay_idgen_options_t options = snowflakes(9);
  generator_t generator;
  generator_new(&generator, env, &options);
  (void)get_id(&generator);
  for (int turn = 0; turn < 2; turn++) {
    if (turn == 0)
      server_do(env->server, "PEXPIRE", SPACE, "3600000", NULL);
    else
      server_do(env->server, "DEL", SPACE, NULL);
    env_until(env, server_integer(env->server, "PTTL", SPACE, NULL) > DAY);
    assert_int_equal(atoll(server_string(env->server, "HGET", SPACE, "epoch", NULL)),
                     options.epoch_ms);
  }
  server_do(env->server, "HSET", SPACE, "epoch", "5", NULL); /* others came first after a loss */
  env_until(env, belay_idgen_worker(generator.idgen) == -1);
  expect_get(&generator, BELAY_EMISMATCH);
}

ENV_TEST(epoch_is_shared) {
  belay_idgen_options_t options = snowflakes(9);
  generator_t generator;
  int64_t id;
  generator_new(&generator, env, &options);
  (void)get_id(&generator);
  close_generator(&generator);
  options.epoch_ms = 0;
  generator_new(&generator, env, &options);
  expect_get(&generator, BELAY_EMISMATCH);
  assert_error(belay_idgen_next(generator.idgen, &id), BELAY_EMISMATCH);
  assert_string_equal(belay_detail(env->belay), RECORD "9: it has another epoch_ms");
  close_generator(&generator);
  options.worker = 10; /* one without a record */
  generator_new(&generator, env, &options);
  expect_get(&generator, BELAY_EMISMATCH);
  assert_error(belay_idgen_next(generator.idgen, &id), BELAY_EMISMATCH);
  assert_string_equal(belay_detail(env->belay),
                      RECORD "10: the workers of this name have another epoch_ms");
  assert_int_equal(server_integer(env->server, "EXISTS", RECORD "10", NULL), 0);
  close_generator(&generator);
  server_do(env->server, "DEL", SPACE, NULL);
  server_do(env->server, "HSET", SPACE, "color", "green", NULL);
  generator_new(&generator, env, &options);
  expect_get(&generator, BELAY_EMISMATCH);
  close_generator(&generator);
  server_do(env->server, "DEL", SPACE, NULL);
  server_do(env->server, "HSET", RECORD "10", "color", "green", NULL);
  generator_new(&generator, env, &options);
  expect_get(&generator, BELAY_EMISMATCH);
  assert_int_equal(server_integer(env->server, "HLEN", RECORD "10", NULL), 1);
  close_generator(&generator);
  server_do(env->server, "DEL", RECORD "10", NULL);
  options.worker = 9;
  server_do(env->server, "DEL", RECORD "9", NULL);
  server_do(env->server, "SET", RECORD "9", "1", NULL);
  generator_new(&generator, env, &options);
  expect_get(&generator, BELAY_EWRONGTYPE);
  close_generator(&generator);
  server_do(env->server, "DEL", RECORD "9", NULL);
  server_do(env->server, "HSET", RECORD "9", "until", "soon", NULL);
  generator_new(&generator, env, &options);
  expect_get(&generator, BELAY_EMISMATCH);
}
