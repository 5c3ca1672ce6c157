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
  sieve_t sieve;
  sieve_new(&sieve, env, 10000, 1e-6);
  assert_true(sift_add(&sieve, "first"));
  for (int i = 0; i < 2; i++) {
    sift_t sift = {0};
    bool bulk = i == 1;
    const char *command = bulk ? "bitop" : "bitfield";
    relay_delay(env->relay, RELAY_LONG);
    int64_t calls = server_calls(env->server, command);
    if (bulk)
      assert_error(begin_sift_many(&sieve, &sift, true, sift_items(0, 5000), 5000), 0);
    else
      assert_error(begin_sift_add(&sieve, &sift, "a", 1), 0);
    lose_the_answer(env, command, calls);
    assert_error(end_of_sift(&sift), BELAY_EUNKNOWN);
    assert_int_equal(server_calls(env->server, command), calls + 1);
    assert_true(sift_exists(&sieve, "a")); /* it was added */
  }
  expect_ttls(env->server);
}

RELAY_TEST(exists_is_resent) {
  sieve_t sieve;
  sieve_new(&sieve, env, 10000, 1e-6);
  assert_true(sift_add(&sieve, "a"));
  sift_t sift = {0};
  relay_delay(env->relay, RELAY_LONG);
  int64_t calls = server_calls(env->server, "bitfield_ro");
  assert_error(begin_sift_exists(&sieve, &sift, "a", 1), 0);
  lose_the_answer(env, "bitfield_ro", calls);
  assert_error(end_of_sift(&sift), 0);
  assert_true(sift.answer);
  assert_int_equal(server_calls(env->server, "bitfield_ro"), calls + 2);
  expect_ttls(env->server);
}

/* At each of its steps. */
RELAY_TEST(opening_survives_a_lost_connection) {
  sieve_t sieve;
  sieve_new(&sieve, env, 10000, 1e-6);
  for (int i = 0; i < 4; i++) {
    sift_t sift = {0};
    relay_delay(env->relay, 20);
    int64_t calls = server_calls(env->server, i < 1 ? "eval" : "set");
    assert_error(begin_open_sieve(&sieve, &sift), 0);
    lose_the_answer(env, i < 1 ? "eval" : "set", calls + (i > 1 ? i - 1 : 0));
    assert_error(end_of_sift(&sift), 0);
    assert_true(sift_add(&sieve, "a"));
    sift_clear(&sieve);
  }
  expect_ttls(env->server);
}

BLOOM_TEST(waiting_operations_end_with_the_opening, bloom_options(1000, 1e-6)) {
  sift_t sifts[6] = {0};
  server_pause(env->server);
  sifts[0].request.timeout_ms = 50;
  assert_error(begin_sift_add(sieve, &sifts[0], "a", 1), 0);
  assert_error(begin_sift_add(sieve, &sifts[0], "a", 1), BELAY_ESTATE);
  assert_error(begin_sift_add(sieve, &sifts[1], "b", 1), 0);
  assert_error(begin_sift_add(sieve, &sifts[2], "b", 1), 0);
  assert_error(begin_open_sieve(sieve, &sifts[3]), 0);
  assert_error(begin_sift_info(sieve, &sifts[4]), 0);
  assert_error(begin_sift_exists(sieve, &sifts[5], "c", 1), 0);
  assert_error(end_of_sift(&sifts[0]), BELAY_ETIMEDOUT);
  assert_error(belay_request_cancel(&sifts[5].request), 0);
  assert_error(end_of_sift(&sifts[5]), BELAY_ECANCELED);
  server_resume(env->server);
  for (int i = 1; i < 5; i++)
    assert_error(end_of_sift(&sifts[i]), 0);
  assert_true(sifts[1].answer);
  assert_false(sifts[2].answer); /* in their order */
  assert_int_equal(sifts[4].info.items, 1);
  assert_false(sift_exists(sieve, "a")); /* nothing was sent of it */
}

ENV_TEST(unreachable_server) {
  sieve_t sieve;
  sift_t sifts[3] = {0};
  belay_client_options_t options = client_options();
  options.timeout_ms = 100;
  sieve_of(&sieve, env, env_connect(env, server_url(env->server), &options),
           &(belay_bloom_options_t){.name = belay_string("seen"), .bits = 1000});
  server_kill(env->server);
  for (int i = 0; i < 3; i++)
    assert_error(begin_sift_add(&sieve, &sifts[i], "a", 1), 0);
  for (int i = 0; i < 3; i++) {
    int error = end_of_sift(&sifts[i]);
    assert_true(error == BELAY_EUNREACHABLE || error == BELAY_ETIMEDOUT);
  }
  server_restart(env->server);
  sifts[0].request.timeout_ms = 60000;
  assert_error(begin_sift_add(&sieve, &sifts[0], "a", 1), 0);
  assert_error(end_of_sift(&sifts[0]), 0);
  assert_true(sifts[0].answer);
}
