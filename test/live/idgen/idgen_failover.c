/* Ids, and servers that forget: none comes twice. */
#include <inttypes.h>
#include <stdio.h>

#include "support/fixtures/data/ids.h"
#include "support/deployments/relay.h"

#define KEY "belay::idgen::{users}"
#define SEQUENCE_KEY KEY "::sequence"

static belay_idgen_options_t segments(int64_t step) {
  belay_idgen_options_t options = idgen_options(BELAY_IDGEN_SEGMENT);
  options.step = step;
  return options;
}

static int64_t number_at(server_t *server, const char *key, const char *field) {
  const char *text = server_string(server, "HGET", key, field, NULL);
  return text == NULL ? -1 : atoll(text);
}

/* The same server, but everything is gone; or another one in its place, without data. */
ENV_TEST(lost_key_without_repeats) {
  belay_idgen_options_t options = segments(100);
  generator_t generator, fresh;
  int64_t last = 0;
  generator_new(&generator, env, &options);
  for (int i = 0; i < 3; i++) {
    for (int n = 0; n < 250; n++) {
      int64_t id = next_id(&generator);
      assert_true(id > last);
      last = id;
    }
    if (i == 0)
      server_do(env->server, "FLUSHALL", NULL);
    if (i == 1) {
      server_kill(env->server);
      server_restart(env->server);
    }
  }
  assert_true(last > 2 * 1000 * options.step); /* it has jumped twice */
  generator_new(&fresh, env, &options);
  assert_true(get_id(&fresh) > last);
}

ENV_TEST(old_file_causes_a_jump) {
  belay_idgen_options_t options = segments(10);
  generator_t generator;
  options.gap = INT64_C(1) << 50; /* of which a jump is never more than one */
  generator_new(&generator, env, &options);
  assert_int_equal(next_id(&generator), 1);
  close_generator(&generator);
  generator_new(&generator, env, &options);
  assert_int_equal(next_id(&generator), 11); /* the same server: no jump */
  close_generator(&generator);
  server_restart_keeping(env->server);
  generator_new(&generator, env, &options);
  int64_t id = next_id(&generator); /* perhaps there was more */
  assert_between(id - options.gap, 21,
                 31); /* a call that was meant for the old server is not used */
  close_generator(&generator);
  generator_new(&generator, env, &options);
  assert_int_equal(next_id(&generator), id + 10);
  close_generator(&generator);
  options.gap = 0; /* it loses nothing */
  server_restart_keeping(env->server);
  generator_new(&generator, env, &options);
  assert_int_equal(next_id(&generator), id + 20);
}

/* Servers that have forgotten the same, one after the other: none knows where the others went
 * on. They draw how far they jump, so that of six pairs hardly ever two come out at the same. */
ENV_TEST(old_file_without_gap_repeats) {
  enum { TIMES = 4 };
  belay_idgen_options_t options = segments(10);
  int64_t ids[TIMES];
  int same = 0;
  generator_t generator;
  options.gap = 1000;
  generator_new(&generator, env, &options);
  int64_t first = next_id(&generator);
  close_generator(&generator);
  server_do(env->server, "SAVE", NULL);
  for (int i = 0; i < TIMES; i++) {
    server_restart(env->server); /* from that file each time */
    generator_new(&generator, env, &options);
    ids[i] = next_id(&generator);
    assert_between(ids[i], first + options.gap,
                   first + 2001 * options.gap); /* perhaps it was asked twice */
    for (int j = 0; j < i; j++)
      same += ids[i] < ids[j] + options.gap && ids[j] < ids[i] + options.gap;
    close_generator(&generator);
  }
  assert_true(same <= 1);
}

/* With a clock none comes out at the same: each goes on at its clock, and above what was given
 * before. */
ENV_TEST(old_file_with_clock_rate) {
  enum { TIMES = 4 };
  belay_idgen_options_t options = segments(10);
  generator_t generator;
  options.clock_rate = BELAY_IDGEN_CLOCK_RATE_MAX;
  options.clock_skew_ms = 10;
  generator_new(&generator, env, &options);
  int64_t last = next_id(&generator);
  close_generator(&generator);
  server_do(env->server, "SAVE", NULL);
  for (int i = 0; i < TIMES; i++) {
    server_restart(env->server); /* from that file each time */
    generator_new(&generator, env, &options);
    for (int j = 0; j < 35; j++) {
      int64_t id = next_id(&generator);
      assert_true(id > last);
      last = id;
    }
    close_generator(&generator);
  }
}

/* A replica without the last writes replaces a dead primary. */
static void fail_over(int64_t clock_rate) {
  server_t *primary = server_start(&(server_options_t){.address = "127.0.0.1"});
  server_t *replica = server_start(NULL);
  relay_t *relay = relay_start(server_url(primary));
  server_follow(replica, primary);
  env_t *env = env_open_at(relay_url(relay), NULL);
  belay_idgen_options_t options = segments(10);
  generator_t generator, fresh;
  int64_t last = 0;
  options.clock_rate = clock_rate;
  options.clock_skew_ms = 10;
  generator_new(&generator, env, &options);
  (void)get_id(&generator);
  int64_t began = clock_now();
  while (number_at(replica, KEY, "next") < 0 && clock_since_ms(began) < 5000)
    stall_ms(5);
  server_do(replica, "REPLICAOF", "NO", "ONE", NULL); /* the primary goes on for a while */
  for (int i = 0; i < 200; i++)
    last = next_id(&generator);
  server_kill(primary);
  relay_lead(relay, server_path(replica));
  relay_cut(relay);
  print_message("given: %" PRId64 ", known to the replica: %" PRId64 "\n", last,
                number_at(replica, KEY, "next"));
  assert_true(number_at(replica, KEY, "next") <= last); /* or this shows nothing */
  generator_new(&fresh, env, &options);                 /* it knows of nothing itself */
  int64_t id = get_id(&fresh);
  assert_true(id > last);
  for (int i = 0; i < 100; i++) {
    int64_t next = next_id(&generator);
    assert_true(next > last);
    assert_false(next >= id && next < id + 10); /* of the other one's segment */
    last = next;
  }
  env_close(env);
  relay_stop(relay);
  server_stop(replica);
  server_stop(primary);
}

TEST(failover_with_lost_segments) {
  fail_over(0);
}

TEST(failover_with_clock_rate) {
  fail_over(BELAY_IDGEN_CLOCK_RATE_MAX);
}

TEST(ids_count_once_replicas_know) {
  server_t *primary = server_start(&(server_options_t){.address = "127.0.0.1"});
  server_t *replica = server_start(NULL);
  server_follow(replica, primary);
  env_t *env = env_open_with(primary, NULL);
  belay_idgen_options_t options = segments(10);
  generator_t generator, sequence;
  options.min_replicas = 1;
  options.replica_timeout_ms = 100;
  generator_new(&generator, env, &options);
  options = idgen_options(BELAY_IDGEN_SEQUENCE);
  options.min_replicas = 1;
  options.replica_timeout_ms = 100;
  generator_new(&sequence, env, &options);
  id_op_t op = {.request.timeout_ms = 20000};
  expect_id_op(&op, begin_get(&generator, &op), 0);
  int64_t first = op.first;
  assert_true(number_at(replica, KEY, "next") >= first + 10);
  int64_t before = get_id(&sequence);
  assert_int_equal(number_at(replica, SEQUENCE_KEY, "id"), before);
  server_pause(replica);
  expect_get(&sequence, BELAY_ENOREPLICAS);
  id_op_t many = {.request.timeout_ms = 400 * slow()};
  expect_id_op(&many, begin_get_many(&generator, &many, 30), BELAY_ENOREPLICAS);
  server_resume(replica);
  assert_true(get_id(&generator) > first + 9);
  env_run_for(env, 100); /* until the replica has all writes */
  assert_true(get_id(&sequence) > before + 1);
  env_close(env);
  server_stop(replica);
}

TEST(server_without_run_id) {
  server_t *server = server_start(NULL);
  server_do(server, "ACL", "SETUSER", "default", "-info", NULL);
  env_t *env = env_open_with(server, NULL);
  belay_idgen_options_t options = segments(10);
  generator_t generator;
  int64_t id;
  generator_new(&generator, env, &options);
  expect_get(&generator, BELAY_EPERM);
  assert_error(belay_idgen_next(generator.idgen, &id), BELAY_EPERM);
  assert_non_null(strstr(belay_detail(env->belay), "run id"));
  options.gap = 0;
  generator_new(&generator, env, &options);
  assert_int_equal(next_id(&generator), 1);
  options.gap = 100;
  options.min_replicas = 1;
  options.replica_timeout_ms = 20;
  generator_new(&generator, env, &options);
  id_op_t op = {.request.timeout_ms = 200 * slow()};
  expect_id_op(&op, begin_get(&generator, &op), BELAY_ENOREPLICAS);
  options = idgen_options(BELAY_IDGEN_SNOWFLAKE);
  options.ahead_ms = 100;
  generator_new(&generator, env, &options);
  id = get_id(&generator);
  assert_true(get_id(&generator) > id);
  server_do(server, "ACL", "SETUSER", "default", "+info", NULL);
  env_close(env);
}
