/* The holders of a semaphore's permits, and their labels. */
#include <stdio.h>

#include "support/fixtures/env.h"

#define KEY "belay::semaphore::{pool}"

enum { MOST = BELAY_SEMAPHORE_HOLDERS_MAX };

typedef struct answer {
  belay_request_t request;
  env_t *env;
  int status, ended;
  size_t n;
  struct {
    char label[72];
    unsigned permits;
    int64_t remaining_ms;
  } holder[MOST];
} answer_t;

static answer_t answer;

static void on_holders(belay_request_t *request, int status,
                       const belay_semaphore_holder_t *holders, size_t n) {
  answer_t *a = request->data;
  a->env->wrong += a->env->inside;
  a->ended++;
  a->status = status;
  a->n = n;
  assert_int_equal(holders == NULL, status != 0);
  assert_true(n <= MOST && (status == 0 || n == 0));
  for (size_t i = 0; i < n; i++) {
    snprintf(a->holder[i].label, sizeof a->holder[i].label, "%s", holders[i].label);
    a->holder[i].permits = holders[i].permits;
    a->holder[i].remaining_ms = holders[i].remaining_ms;
  }
}

static int begin(env_t *env) {
  answer = (answer_t){.request = {.data = &answer}, .env = env};
  return env_call(
      env, NULL,
      belay_semaphore_holders(env->client, &answer.request, belay_string("pool"), on_holders));
}

static int ask(env_t *env) {
  assert_error(begin(env), 0);
  env_until(env, answer.ended == 1);
  return answer.status;
}

static contender_t *labeled(env_t *env, unsigned permits, const char *label,
                            const belay_lock_options_t *options) {
  belay_lock_options_t o = *options;
  char copied[80];
  contender_t *c = contender_blank(env, &o);
  snprintf(copied, sizeof copied, "%s", label != NULL ? label : "");
  o.label = label != NULL ? copied : NULL;
  assert_error(belay_semaphore_new(&env->client, 1, belay_string("pool"),
                                   &(belay_semaphore_size_t){.limit = 9, .permits = permits}, &o,
                                   &c->lock),
               0);
  memset(copied, 'x', sizeof copied);
  return c;
}

static void expect(size_t i, const char *label, unsigned permits, int64_t min, int64_t max) {
  assert_true(i < answer.n);
  assert_string_equal(answer.holder[i].label, label);
  assert_int_equal(answer.holder[i].permits, permits);
  assert_between(answer.holder[i].remaining_ms, min, max);
}

ENV_TEST_OF(holders_are_listed, o.owner = "me") {
  belay_lock_options_t lasting = with_ttl(90000), brief = with_ttl(50000);
  assert_error(ask(env), 0);
  assert_int_equal(answer.n, 0);
  contender_t *c = labeled(env, 3, "zoe:7000", &lasting);
  assert_error(try_lock(c), 0);
  assert_error(try_lock(labeled(env, 1, "adam:7000", &brief)), 0);
  assert_error(try_lock(labeled(env, 1, NULL, &brief)), 0);
  assert_error(try_lock(labeled(env, 2, "adam:7000", &lasting)), 0);
  char token[128];
  belay_lock_token(c->lock, token, sizeof token);
  assert_string_equal(token + 40, ":zoe:7000");
  assert_error(ask(env), 0);
  assert_int_equal(answer.n, 4);
  expect(0, "adam:7000", 1, 10000, 50000);
  expect(1, "adam:7000", 2, 50001, 90000);
  expect(2, "me", 1, 10000, 50000);
  expect(3, "zoe:7000", 3, 50001, 90000);
  server_do(env->server, "ZADD", KEY, "1", token, NULL); /* it has run out */
  assert_error(ask(env), 0);
  assert_int_equal(answer.n, 3);
  server_do(env->server, "DEL", KEY "::permits", NULL);
  assert_error(ask(env), 0);
  expect(1, "adam:7000", 0, 50001, 90000);
}

/* A release and an undo remove the permits with the token that took them. */
ENV_TEST(label_in_token_and_holders) {
  int64_t ttl = kept_ttl();
  belay_lock_options_t options = watched(ttl);
  contender_t *c = labeled(env, 9, "c", &options), *d = labeled(env, 9, "d", &options);
  assert_error(try_lock(c), 0);
  env_run_for(env, ttl + ttl / 4);
  assert_int_equal(c->lost, 0);
  assert_ok(begin_acquire(d, BELAY_FOREVER), release(c), outcome(d));
  assert_ok(begin_acquire(c, BELAY_FOREVER), close_lock(d), outcome(c), release(c));
  for (int i = 0; i < 2; i++) { /* it is executed, and then undone */
    assert_error(begin_acquire(c, 0), 0);
    assert_error(i == 0 ? cancel(c) : begin_close(c), 0);
    expect_keys(env, 0);
  }
  belay_lock_options_t o = with_ttl(60000);
  contender_t *plain = contender_blank(env, &o);
  o.label = "plain";
  assert_error(belay_lock_new(env->client, belay_string("lock"), &o, &plain->lock), 0);
  assert_error(try_lock(plain), 0);
  assert_string_equal(strchr(value_of(plain), ':'), ":plain");
  assert_error(release(plain), 0);
  assert_int_equal(server_keys(env->server), 0);
}

static void fill(env_t *env, const char *n) {
  static const char script[] =
      "local t = redis.call('TIME')[1] * 1000 for i = 1, ARGV[1] do local token = "
      "string.format('%040x:%064d', i, i) redis.call('ZADD', KEYS[1], string.format('%.0f', t + "
      "60000 + i * 10), token) redis.call('HSET', KEYS[2], token, 1000000) end return 1";
  server_do(env->server, "EVAL", script, "2", KEY, KEY "::permits", n, NULL);
}

TEST(too_many_holders_lists_latest) {
  for (int small = 0; small < 2; small++) {
    belay_client_options_t options = client_options();
    options.max_reply = small ? 65536 : options.max_reply;
    env_t *env = env_open(&options);
    size_t most = small ? 65536 / 768 : MOST;
    char first[72];
    fill(env, "1200");
    assert_error(ask(env), 0);
    assert_int_equal(answer.n, most);
    snprintf(first, sizeof first, "%064d", 1201 - (int)most);
    assert_string_equal(answer.holder[0].label, first);
    expect(most - 1, "0000000000000000000000000000000000000000000000000000000000001200", 1000000,
           60001, 73000);
    assert_int_equal(client_stats(env).drops, 0);
    env_close(env);
  }
}

ENV_TEST(foreign_values_are_refused) {
  static const char *const tokens[] = {
      "x", "0123456789012345678901234567890123456789:", "0123456789012345678901234567890123456789x",
      "0123456789012345678901234567890123456789:12345678901234567890123456789012345678901234567890"
      "123456789012345"};
  for (int i = 0; i < 4; i++) {
    server_do(env->server, "DEL", KEY, NULL);
    server_do(env->server, "ZADD", KEY, "9999999999999", tokens[i], NULL);
    assert_error(ask(env), BELAY_EMISMATCH);
  }
  server_do(env->server, "SET", KEY, "x", NULL);
  assert_error(ask(env), BELAY_EWRONGTYPE);
  assert_int_equal(client_stats(env).drops, 0);
}

TEST(holders_canceled) {
  env_t *env = env_open(NULL);
  belay_lock_options_t options = with_ttl(60000);
  assert_error(try_lock(labeled(env, 1, "a", &options)), 0);
  for (int turns = 0; turns < 6; turns++) {
    assert_error(begin(env), 0);
    for (int i = 0; i < turns && answer.ended == 0; i++)
      uv_run(&env->loop, UV_RUN_NOWAIT);
    if (answer.ended == 0)
      assert_error(belay_request_cancel(&answer.request), 0);
    env_until(env, answer.ended == 1);
  }
  assert_error(begin(env), 0);
  env_close(env);
  assert_int_equal(answer.ended, 1);
  assert_error(answer.status, BELAY_ECANCELED);
}

TEST_IN(arguments_are_checked, env, env_open_at("unix:///nowhere", NULL)) {
  belay_request_t request = {.data = NULL};
  belay_client_t *client = env->client;
  assert_error(belay_semaphore_holders(client, &request, belay_bytes(NULL, 1), on_holders),
               BELAY_EINVAL);
  assert_error(belay_semaphore_holders(client, &request, belay_string(""), on_holders),
               BELAY_EINVAL);
  static const char *const labels[] = {
      "", "a b", "\x7f", "12345678901234567890123456789012345678901234567890123456789012345"};
  belay_lock_options_t options = lock_options();
  belay_lock_t *lock;
  for (int i = 0; i < 4; i++) {
    options.label = labels[i];
    assert_error(belay_semaphore_new(&client, 1, belay_string("p"),
                                     &(belay_semaphore_size_t){.limit = 1, .permits = 1}, &options,
                                     &lock),
                 BELAY_EINVAL);
    assert_string_equal(belay_detail(env->belay), "label: not 1 to 64 printable bytes");
  }
  options.label = "label";
  assert_error(belay_rwlock_new(&client, 1, belay_string("p"), BELAY_RWLOCK_READ, &options, &lock),
               BELAY_EINVAL);
  assert_non_null(strstr(belay_detail(env->belay), "label"));
  belay_multilock_t *multi;
  const belay_multilock_name_t names[] = {{.client = client, .name = {"p", 1}}};
  assert_error(belay_multilock_new(names, 1, &options, NULL, &multi), BELAY_EINVAL);
  assert_non_null(strstr(belay_detail(env->belay), "label"));
}
