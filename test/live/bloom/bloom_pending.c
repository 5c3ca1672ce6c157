/* Pending operations on Bloom filters: lost replies, many waiting operations, closes. */
#include "support/fixtures/data/blooms.h"
#include "support/deployments/relay.h"
#include "support/models/scripts.h"

static void lose_the_answer(env_t *env, const char *command, int64_t calls) {
  while (server_calls(env->server, command) <= calls)
    uv_run(&env->loop, UV_RUN_NOWAIT);
  relay_cut(env->relay);
  relay_delay(env->relay, 0);
}

/* A repeated add could only answer "not new" for its own item, so it is not repeated. */
RELAY_TEST(add_is_not_resent) {
  filter_t filter;
  filter_new(&filter, env, 10000, 1e-6);
  assert_true(filter_add(&filter, "first"));
  for (int i = 0; i < 2; i++) {
    filter_op_t op = {0};
    bool bulk = i == 1;
    const char *command = bulk ? "bitop" : "bitfield";
    relay_delay(env->relay, RELAY_LONG);
    int64_t calls = server_calls(env->server, command);
    if (bulk)
      assert_error(begin_filter_many(&filter, &op, true, filter_items(0, 5000), 5000), 0);
    else
      assert_error(begin_filter_add(&filter, &op, "a", 1), 0);
    lose_the_answer(env, command, calls);
    assert_error(end_of_filter_op(&op), BELAY_EUNKNOWN);
    assert_int_equal(server_calls(env->server, command), calls + 1);
    assert_true(filter_exists(&filter, "a")); /* it was added */
  }
  expect_ttls(env->server);
}

RELAY_TEST(exists_is_resent) {
  filter_t filter;
  filter_new(&filter, env, 10000, 1e-6);
  assert_true(filter_add(&filter, "a"));
  filter_op_t op = {0};
  relay_delay(env->relay, RELAY_LONG);
  int64_t calls = server_calls(env->server, "bitfield_ro");
  assert_error(begin_filter_exists(&filter, &op, "a", 1), 0);
  lose_the_answer(env, "bitfield_ro", calls);
  assert_error(end_of_filter_op(&op), 0);
  assert_true(op.answer);
  assert_int_equal(server_calls(env->server, "bitfield_ro"), calls + 2);
  expect_ttls(env->server);
}

/* At each of its steps. */
RELAY_TEST(opening_survives_a_lost_connection) {
  filter_t filter;
  filter_new(&filter, env, 10000, 1e-6);
  for (int i = 0; i < 4; i++) {
    filter_op_t op = {0};
    relay_delay(env->relay, 20);
    int64_t calls = server_calls(env->server, i < 1 ? "eval" : "set");
    assert_error(begin_filter_open(&filter, &op), 0);
    lose_the_answer(env, i < 1 ? "eval" : "set", calls + (i > 1 ? i - 1 : 0));
    assert_error(end_of_filter_op(&op), 0);
    assert_true(filter_add(&filter, "a"));
    filter_clear(&filter);
  }
  expect_ttls(env->server);
}

BLOOM_TEST(waiting_operations_end_with_the_opening, bloom_options(1000, 1e-6)) {
  filter_op_t ops[6] = {0};
  server_pause(env->server);
  ops[0].request.timeout_ms = 50;
  assert_error(begin_filter_add(filter, &ops[0], "a", 1), 0);
  assert_error(begin_filter_add(filter, &ops[0], "a", 1), BELAY_ESTATE);
  assert_error(begin_filter_add(filter, &ops[1], "b", 1), 0);
  assert_error(begin_filter_add(filter, &ops[2], "b", 1), 0);
  assert_error(begin_filter_open(filter, &ops[3]), 0);
  assert_error(begin_filter_info(filter, &ops[4]), 0);
  assert_error(begin_filter_exists(filter, &ops[5], "c", 1), 0);
  assert_error(end_of_filter_op(&ops[0]), BELAY_ETIMEDOUT);
  assert_error(belay_request_cancel(&ops[5].request), 0);
  assert_error(end_of_filter_op(&ops[5]), BELAY_ECANCELED);
  server_resume(env->server);
  for (int i = 1; i < 5; i++)
    assert_error(end_of_filter_op(&ops[i]), 0);
  assert_true(ops[1].answer);
  assert_false(ops[2].answer); /* in their order */
  assert_int_equal(ops[4].info.items, 1);
  assert_false(filter_exists(filter, "a")); /* nothing was sent of it */
}

ENV_TEST(unreachable_server) {
  filter_t filter;
  filter_op_t ops[3] = {0};
  belay_client_options_t options = client_options();
  options.timeout_ms = 100;
  filter_of(&filter, env, env_connect(env, server_url(env->server), &options),
            &(belay_bloom_options_t){.name = belay_string("seen"), .bits = 1000});
  server_kill(env->server);
  for (int i = 0; i < 3; i++)
    assert_error(begin_filter_add(&filter, &ops[i], "a", 1), 0);
  for (int i = 0; i < 3; i++) {
    int error = end_of_filter_op(&ops[i]);
    assert_true(error == BELAY_EUNREACHABLE || error == BELAY_ETIMEDOUT);
  }
  server_restart(env->server);
  ops[0].request.timeout_ms = 60000;
  assert_error(begin_filter_add(&filter, &ops[0], "a", 1), 0);
  assert_error(end_of_filter_op(&ops[0]), 0);
  assert_true(ops[0].answer);
}
