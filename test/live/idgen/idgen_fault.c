/* Ids where something goes wrong: answers are lost, servers forget, everything is closed. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* The server has executed it, and the answer is on its way when the connection is cut. */
static void lose_the_answer(env_t *env, const char *key, const char *field, int64_t expected) {
  while (number_at(env->server, key, field) != expected)
    uv_run(&env->loop, UV_RUN_NOWAIT);
  relay_cut(env->relay);
  relay_delay(env->relay, 0);
}

RELAY_TEST(segment_with_lost_reply) {
  id_op_t op = {0};
  belay_idgen_options_t options = segments(10);
  generator_t generator;
  generator_new(&generator, env, &options);
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs == 1);
  relay_delay(env->relay, RELAY_LONG);
  assert_error(begin_get(&generator, &op), 0);
  lose_the_answer(env, KEY, "next", 11);
  assert_error(end_of_id_op(&op), 0);
  assert_true(op.first >
              10); /* these ids belong to no client; as they count as unused, there is no jump */
  assert_int_equal(number_at(env->server, KEY, "next"), op.first + 10);
}

RELAY_TEST(sequence_with_lost_reply) {
  belay_idgen_options_t options = idgen_options(BELAY_IDGEN_SEQUENCE);
  generator_t generator;
  generator_new(&generator, env, &options);
  assert_int_equal(get_id(&generator), 1);
  for (int64_t last = 1; last < 7; last += 2) {
    id_op_t op = {0};
    relay_delay(env->relay, RELAY_LONG);
    assert_error(begin_get(&generator, &op), 0);
    lose_the_answer(env, SEQUENCE_KEY, "id", last + 1);
    assert_error(end_of_id_op(&op), 0);
    assert_int_equal(op.first, last + 2);
    assert_int_equal(number_at(env->server, SEQUENCE_KEY, "id"), last + 2);
  }
  options.min_replicas = 1; /* then it is not asked again */
  generator_t durable;
  id_op_t op = {0};
  generator_new(&durable, env, &options);
  relay_delay(env->relay, RELAY_LONG);
  assert_error(begin_get(&durable, &op), 0);
  lose_the_answer(env, SEQUENCE_KEY, "id", 8);
  assert_error(end_of_id_op(&op), BELAY_EUNKNOWN);
  assert_int_equal(number_at(env->server, SEQUENCE_KEY, "id"), 8);
}

/* The connection is cut, or falls silent, at some time or other. */
RELAY_TEST(ids_grow_with_lost_connections) {
  belay_idgen_options_t options = segments(50);
  int64_t before = 0;
  generator_t generator;
  generator_new(&generator, env, &options);
  for (int i = 0; i < 7; i++) {
    id_op_t op = {0};
    relay_delay(env->relay, 10);
    assert_error(begin_get_many(&generator, &op, 130), 0);
    env_run_for(env, i % 4 * 15);
    if (i % 6 == 5)
      relay_silence(env->relay);
    else
      relay_cut(env->relay);
    relay_delay(env->relay, 0);
    assert_error(end_of_id_op(&op), 0);
    assert_true(op.growing && op.first > before);
    before = op.last;
  }
}

IDGEN_TEST(next_without_a_server, segments(100)) {
  int64_t id;
  assert_int_equal(get_id(generator), 1);
  server_kill(env->server);
  env_run_for(env, 20);
  for (int64_t expected = 2; expected <= 100; expected++) {
    if (expected > 80)
      env_run_for(env, 1);
    assert_error(belay_idgen_next(generator->idgen, &id), 0);
    assert_int_equal(id, expected);
  }
  assert_error(belay_idgen_next(generator->idgen, &id), BELAY_EAGAIN);
  id_op_t op = {.request.timeout_ms = 100};
  assert_error(begin_get(generator, &op), 0);
  int error = end_of_id_op(&op);
  assert_true(error == BELAY_ETIMEDOUT || error == BELAY_EUNREACHABLE || error == BELAY_EUNKNOWN);
  op.request.timeout_ms = 20000;
  assert_error(begin_get(generator, &op), 0);
  env_run_for(env, 100);
  server_restart(env->server);
  assert_error(end_of_id_op(&op), 0);
  assert_true(op.first > 100);
}

ENV_TEST(scripts_may_be_forgotten) {
  for (int mode = BELAY_IDGEN_SEGMENT; mode <= BELAY_IDGEN_SEQUENCE; mode++) {
    belay_idgen_options_t options = idgen_options((belay_idgen_mode_t)mode);
    generator_t generator;
    options.step = 1;
    options.ahead_ms = 100;
    generator_new(&generator, env, &options);
    int64_t last = get_id(&generator);
    for (int i = 0; i < 10; i++) {
      server_do(env->server, "SCRIPT", "FLUSH", NULL);
      int64_t id = get_id(&generator);
      assert_true(id > last);
      last = id;
    }
  }
}

ENV_TEST(the_queue_is_bounded_and_in_order) {
  enum { ROOM = 5 };
  belay_idgen_options_t options = segments(10);
  generator_t generator;
  id_op_t ops[ROOM] = {0}, late = {0};
  options.max_waiting = ROOM;
  generator_new(&generator, env, &options);
  server_pause(env->server);
  for (int i = 0; i < ROOM; i++) {
    ops[i].request.timeout_ms = i == 1 ? 50 : 20000;
    assert_error(begin_get(&generator, &ops[i]), 0);
  }
  assert_error(begin_get(&generator, &late), BELAY_EBUSY);
  assert_error(begin_get(&generator, &ops[2]), BELAY_EBUSY);
  assert_error(belay_request_cancel(&ops[0].request), 0);
  assert_error(end_of_id_op(&ops[0]), BELAY_ECANCELED);
  assert_error(end_of_id_op(&ops[1]), BELAY_ETIMEDOUT);
  assert_error(begin_get(&generator, &ops[2]), BELAY_ESTATE);
  assert_error(begin_get(&generator, &late), 0);
  server_resume(env->server);
  assert_error(end_of_id_op(&late), 0);
  for (int i = 2; i < ROOM; i++) {
    assert_error(ops[i].status, 0);
    assert_int_equal(ops[i].first, i - 1);
  }
  assert_int_equal(late.first, ROOM - 1);
}

typedef enum what { IDGEN, CLIENT, BELAY, WHATS } what_t;

static what_t to_close;

static void close_it(generator_t *generator) {
  generator->then = NULL;
  if (to_close == IDGEN)
    assert_error(begin_close_generator(generator), 0);
  else if (to_close == CLIENT)
    assert_error(begin_client_close(generator->env), 0);
  else
    assert_error(begin_belay_close(generator->env), 0);
}

/* In a callback, while another request is pending; or at some time or other. */
static void play(belay_idgen_mode_t mode, what_t what, int64_t after_ms) {
  env_t *env = env_open(NULL);
  belay_idgen_options_t options = idgen_options(mode);
  generator_t generator;
  id_op_t op = {0}, pending = {0};
  options.step = 5;
  options.ahead_ms = 100;
  generator_new(&generator, env, &options);
  to_close = what;
  if (after_ms < 0)
    generator.then = close_it;
  assert_error(begin_get(&generator, &op), 0);
  assert_error(begin_get_many(&generator, &pending, 1000), 0);
  if (after_ms >= 0) {
    env_run_for(env, after_ms);
    close_it(&generator);
  }
  env_until(env, op.ended == 1 && pending.ended == 1);
  assert_true(op.status == 0 || op.status == BELAY_ECANCELED);
  if (what == IDGEN) {
    int64_t id;
    if (generator.closed == 0)
      assert_error(belay_idgen_next(generator.idgen, &id), BELAY_ECLOSING);
    env_until(env, generator.closed == 1);
  }
  env_close(env);
}

TEST(close_at_any_time) {
  static const int64_t times[] = {-1, 0, 2, 120};
  for (int mode = BELAY_IDGEN_SEGMENT; mode <= BELAY_IDGEN_SEQUENCE; mode++)
    for (what_t what = IDGEN; what < WHATS; what++)
      for (size_t i = 0; i < (mode == BELAY_IDGEN_SNOWFLAKE ? 4 : 3); i++)
        play((belay_idgen_mode_t)mode, what, times[i]);
}

/* Nothing answers: it takes no longer than the client's patience. */
TEST(close_without_a_server) {
  for (what_t what = IDGEN; what < WHATS; what++) {
    belay_client_options_t client = client_options();
    client.close_timeout_ms = 100;
    env_t *env = env_open(&client);
    belay_idgen_options_t options = idgen_options(BELAY_IDGEN_SNOWFLAKE);
    generator_t generator;
    options.ahead_ms = 100;
    generator_new(&generator, env, &options);
    (void)get_id(&generator);
    server_pause(env->server);
    to_close = what;
    close_it(&generator);
    int64_t began = clock_now();
    env_until(env, what == IDGEN    ? generator.closed == 1
                   : what == CLIENT ? env->client_closed == 1
                                    : env->belay_closed == 1);
    assert_between(clock_since_ms(began), 0, 1000 + lag());
    server_resume(env->server);
    env_close(env);
  }
}

ENV_TEST(a_worker_is_free_after_a_close) {
  belay_idgen_options_t options = idgen_options(BELAY_IDGEN_SNOWFLAKE);
  generator_t generator;
  options.ahead_ms = 100;
  options.worker = 8;
  int64_t last = 0;
  for (int i = 0; i < 5; i++) {
    generator_new(&generator, env, &options);
    int64_t id = get_id(&generator);
    assert_true(id > last);
    last = id;
    close_generator(&generator);
    assert_int_equal(server_integer(env->server, "EXISTS", "belay::lock::{idgen/5/users/8}", NULL),
                     0);
  }
}

IDGEN_TEST(fork_gets_no_ids, segments(100)) {
  int64_t id;
  int status;
  (void)get_id(generator);
  pid_t child = fork();
  if (child == 0)
    _exit(belay_idgen_next(generator->idgen, &id) == BELAY_EFORK ? 7 : 1);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  assert_int_equal(next_id(generator), 2);
}
