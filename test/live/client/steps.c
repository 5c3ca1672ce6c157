/* Requests of several calls, and of several steps. */
#include "core/client/request.h"
#include "scripts.gen.h"
#include "support/fixtures/env.h"
#include "support/deployments/relay.h"

enum { CALLS = 5 };

/* The content of a request's room. */
typedef struct sums {
  int64_t sum[CALLS]; /* the replies of the calls of the last step */
  unsigned replies;
} sums_t;

typedef struct caller {
  belay_request_t request;
  env_t *env;
  unsigned ended, replies;
  int status;
  int64_t sum[CALLS];
  char detail[256];
  int steps; /* that are still to come */
  int error; /* the error of the last call */
} caller_t;

typedef void (*caller_cb)(caller_t *caller, int status, const sums_t *sums);

static void on_ended(caller_t *caller, int status, const sums_t *sums) {
  caller->env->wrong += caller->env->inside;
  caller->ended++;
  caller->status = status;
  snprintf(caller->detail, sizeof caller->detail, "%s", belay_detail(caller->env->belay));
  if (sums != NULL) {
    caller->replies = sums->replies;
    memcpy(caller->sum, sums->sum, sizeof caller->sum);
  }
}

static void call_back(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  assert_true(answer->room == NULL || answer->room_len == sizeof(sums_t));
  ((caller_cb)cb)(request->data, answer->status, answer->room);
}

static int read_sum(belay__operation_t *operation, const belay__call_t *call,
                    const belay__reply_t *reply) {
  sums_t *sums = operation->room;
  (void)call;
  sums->replies++;
  return belay__reply_integer(reply, INT64_MIN, INT64_MAX, &sums->sum[operation->index])
             ? 0
             : BELAY_EPROTO;
}

static belay__call_t *command(env_t *env, const char *name, int key) {
  char text[] = "k0";
  text[1] = (char)('0' + key);
  belay__call_t *call = belay__call_new(env->client, BELAY__CLASS_DATA);
  belay__call_command(call, name, 2);
  belay__call_arg(call, text, 2);
  return call;
}

static int send_all(env_t *env, belay__operation_t *operation, const char *name, int n) {
  belay__call_t *calls[CALLS];
  for (int i = 0; i < n; i++)
    calls[i] = command(env, name, i);
  return belay__request_send_all(operation, calls, (size_t)n);
}

/* Send the same calls again until no step is left. */
static int next(belay__operation_t *operation) {
  caller_t *caller = operation->context;
  if (caller->steps == 0)
    return caller->error;
  caller->steps--;
  int error = send_all(caller->env, operation, "INCR", CALLS);
  return error != 0 ? error : BELAY__REQUEST_PARK;
}

static const belay__request_ops_t once = {.read = read_sum, .notify = call_back};
static const belay__request_ops_t again = {
    .read = read_sum, .notify = call_back, .idempotent = true};
static const belay__request_ops_t steps = {.read = read_sum, .next = next, .notify = call_back};

static void start(env_t *env, caller_t *caller, const belay__request_ops_t *ops, const char *name,
                  int n) {
  belay__operation_t *operation;
  caller->env = env;
  caller->request.data = caller;
  env->inside++;
  assert_error(belay__request_begin(env->client, &caller->request, ops, caller, NULL,
                                    (void (*)(void))on_ended, &operation),
               0);
  assert_non_null(belay__request_room(operation, sizeof(sums_t)));
  assert_error(send_all(env, operation, name, n), 0);
  env->inside--;
}

static int outcome_of(caller_t *caller) {
  env_until(caller->env, caller->ended == 1);
  caller->ended = 0;
  return caller->status;
}

static void expect_sums(const caller_t *caller, int n, int64_t sum) {
  for (int i = 0; i < n; i++)
    assert_int_equal(caller->sum[i], sum);
}

ENV_TEST(each_reply_of_a_step_is_read) {
  for (int n = 1; n <= CALLS; n++) {
    caller_t caller = {0};
    start(env, &caller, &once, "INCR", n);
    assert_error(outcome_of(&caller), 0);
    assert_int_equal(caller.replies, n);
    for (int i = 0; i < n; i++)
      assert_int_equal(caller.sum[i], n - i);
  }
  assert_int_equal(client_stats(env).objects, 0);
}

/* The other calls are executed, and the error names its key. */
ENV_TEST(refused_call_of_a_step) {
  caller_t caller = {0};
  server_do(env->server, "LPUSH", "k2", "foreign", NULL);
  start(env, &caller, &once, "INCR", CALLS);
  assert_error(outcome_of(&caller), BELAY_EWRONGTYPE);
  assert_int_equal(caller.replies, CALLS - 1);
  assert_non_null(strstr(caller.detail, "k2: WRONGTYPE"));
  start(env, &caller, &steps, "INCR", CALLS); /* and there is no next step */
  caller.steps = 1;
  assert_error(outcome_of(&caller), BELAY_EWRONGTYPE);
  assert_int_equal(caller.steps, 1);
  assert_string_equal(server_string(env->server, "GET", "k4", NULL), "2");
}

/* The detail names the right key, after any other refusals. */
ENV_TEST(refusals_name_their_own_keys) {
  caller_t caller[CALLS] = {0};
  belay__operation_t *operation;
  for (int i = 0; i < CALLS; i++) {
    char key[] = {'k', (char)('0' + i), '\0'};
    server_do(env->server, "LPUSH", key, "foreign", NULL);
  }
  server_pause(env->server); /* all replies arrive together */
  for (int i = 0; i < CALLS; i++) {
    caller[i].env = env;
    caller[i].request.data = &caller[i];
    assert_error(belay__request_begin(env->client, &caller[i].request, &once, NULL, NULL,
                                      (void (*)(void))on_ended, &operation),
                 0);
    assert_non_null(belay__request_room(operation, sizeof(sums_t)));
    assert_error(belay__request_send(operation, command(env, "INCR", i)), 0);
  }
  env_run_for(env, 20);
  server_resume(env->server);
  for (int i = 0; i < CALLS; i++) {
    char begin[] = {'k', (char)('0' + i), ':', ' ', 'W', '\0'};
    assert_error(outcome_of(&caller[i]), BELAY_EWRONGTYPE);
    assert_memory_equal(caller[i].detail, begin, sizeof begin - 1);
  }
}

/* The server does not name the key. */
ENV_TEST(refusal_of_a_call_of_several_keys) {
  caller_t caller = {.env = env};
  belay__operation_t *operation;
  caller.request.data = &caller;
  server_do(env->server, "LPUSH", "counter{lock}", "foreign", NULL);
  assert_error(belay__request_begin(env->client, &caller.request, &once, NULL, NULL,
                                    (void (*)(void))on_ended, &operation),
               0);
  assert_non_null(belay__request_room(operation, sizeof(sums_t)));
  belay__call_t *call = belay__call_new(env->client, BELAY__CLASS_DATA);
  belay__call_script(call, &belay__script_lock_acquire_fenced, 2, 4);
  belay__call_arg(call, "lock", 4);
  belay__call_arg(call, "counter{lock}", 13);
  belay__call_arg(call, "token", 5);
  belay__call_arg_int(call, 60000);
  belay__call_arg_int(call, 0);
  belay__call_arg_int(call, 60000);
  assert_error(belay__request_send(operation, call), 0);
  assert_error(outcome_of(&caller), BELAY_EWRONGTYPE);
  assert_memory_equal(caller.detail, "lock: WRONGTYPE", 15);
  assert_non_null(strstr(caller.detail, "or another key of this call"));
}

/* All steps have one deadline. */
ENV_TEST(steps_share_the_deadline) {
  caller_t caller = {.request.timeout_ms = 300, .steps = 1000000};
  uint64_t before = uv_hrtime();
  start(env, &caller, &steps, "INCR", 1);
  env_until(env, caller.ended == 1);
  assert_between((int64_t)(uv_hrtime() - before) / 1000000, 299, 299 + 2000 * slow());
  assert_true(caller.status == BELAY_EUNKNOWN || caller.status == BELAY_ETIMEDOUT);
  assert_true(caller.replies > CALLS);
}

static int failures[CALLS];

static void keep_failure(belay__operation_t *operation, int status) {
  assert_int_equal(failures[operation->index], 0);
  failures[operation->index] = status;
}

static const belay__request_ops_t with_failed = {
    .read = read_sum, .failed = keep_failure, .notify = call_back};

/* An unknown outcome of one call says nothing about the others. */
ENV_TEST(each_failed_call_is_reported) {
  static const char text[] = "return redis.error_reply('ERR for a reason of its own')";
  static const belay__script_t script = {.name = "broken",
                                         .sha1 = "0000000000000000000000000000000000000000",
                                         .text = text,
                                         .len = sizeof text - 1,
                                         .index = BELAY__SCRIPTS_MAX - 1};
  caller_t caller = {.env = env, .request.data = &caller};
  belay__operation_t *operation;
  belay__call_t *calls[CALLS];
  server_do(env->server, "LPUSH", "k2", "foreign", NULL);
  assert_error(belay__request_begin(env->client, &caller.request, &with_failed, &caller, NULL,
                                    (void (*)(void))on_ended, &operation),
               0);
  assert_non_null(belay__request_room(operation, sizeof(sums_t)));
  for (int i = 0; i < CALLS; i++)
    calls[i] = command(env, "INCR", i);
  (void)belay__call_abandon(calls[0]);
  calls[0] = belay__call_new(env->client, BELAY__CLASS_DATA);
  belay__call_script_text(calls[0], &script, 1, 0);
  belay__call_arg(calls[0], "k0", 2);
  assert_error(belay__request_send_all(operation, calls, CALLS), 0);
  assert_error(outcome_of(&caller), BELAY_EUNKNOWN); /* it may have written */
  assert_int_equal(caller.replies, CALLS - 2);
  for (int i = 0; i < CALLS; i++)
    assert_error(failures[i], i == 0 ? BELAY_EUNKNOWN : i == 2 ? BELAY_EWRONGTYPE : 0);
}

ENV_TEST(steps_in_order) {
  for (int how = 0; how < 2; how++) {
    caller_t caller = {.steps = 3, .error = how == 0 ? 0 : BELAY_ELOST};
    server_do(env->server, "FLUSHALL", NULL);
    start(env, &caller, &steps, "INCR", 1);
    assert_error(outcome_of(&caller), caller.error);
    assert_int_equal(caller.replies, 1 + 3 * CALLS);
    assert_int_equal(caller.sum[0], 4);
    assert_int_equal(caller.sum[CALLS - 1], 3);
  }
}

/* Calls are sent again if they are idempotent; otherwise the result is unknown. */
ENV_TEST_WITH_(lost_replies_are_repeated_if_idempotent, env_open_relayed, client_options(),
               o.timeout_ms = 10000) {
  caller_t warm = {0}, single = {0}, repeated = {0};
  start(env, &warm, &once, "STRLEN", 1);
  assert_error(outcome_of(&warm), 0);
  server_pause(env->server);
  start(env, &single, &once, "STRLEN", CALLS);
  start(env, &repeated, &again, "STRLEN", CALLS);
  env_run_for(env, 50);
  relay_cut(env->relay);
  assert_error(outcome_of(&single), BELAY_EUNKNOWN);
  assert_int_equal(repeated.ended, 0);
  server_resume(env->server);
  assert_error(outcome_of(&repeated), 0);
  assert_int_equal(repeated.replies, CALLS);
  expect_sums(&repeated, CALLS, 0);
}

static int in_other_words(belay__operation_t *operation, int status) {
  caller_t *caller = operation->context;
  if (caller->steps-- == 0)
    return status == BELAY_EUNKNOWN ? 0 : status;
  belay__call_t *call = belay__call_new(operation->client, BELAY__CLASS_DATA);
  belay__call_command(call, "APPEND", 3);
  belay__call_arg(call, "words", 5);
  belay__call_arg(call, "other;", 6);
  assert_error(belay__request_send(operation, call), 0);
  return BELAY__REQUEST_PARK;
}

static const belay__request_ops_t recovers = {
    .read = read_sum, .recover = in_other_words, .notify = call_back};

/* After a lost reply the step may ask in another way or accept the state. A refusal does not
 * recover. */
ENV_TEST_WITH_(step_recovers_from_a_lost_reply, env_open_relayed, client_options(),
               o.timeout_ms = 10000) {
  caller_t warm = {0};
  start(env, &warm, &once, "STRLEN", 1);
  assert_error(outcome_of(&warm), 0);
  for (int more = 1; more >= 0; more--) {
    caller_t caller = {.steps = more};
    server_do(env->server, "FLUSHALL", NULL);
    relay_delay(env->relay, 50);
    start(env, &caller, &recovers, "INCR", CALLS);
    while (server_keys(env->server) < CALLS)
      uv_run(&env->loop, UV_RUN_NOWAIT);
    relay_cut(env->relay);
    relay_delay(env->relay, 0);
    assert_error(outcome_of(&caller), 0);
    assert_int_equal(caller.replies, more);
    assert_int_equal(server_integer(env->server, "STRLEN", "words", NULL), 6 * more);
    assert_string_equal(server_string(env->server, "GET", "k0", NULL), "1"); /* not sent again */
  }
  caller_t caller = {0};
  server_do(env->server, "LPUSH", "words", "foreign", NULL);
  server_do(env->server, "DEL", "k0", NULL);
  server_do(env->server, "LPUSH", "k0", "foreign", NULL);
  start(env, &caller, &recovers, "INCR", 1);
  assert_error(outcome_of(&caller), BELAY_EWRONGTYPE);
}

ENV_TEST(cancel_ends_all_calls) {
  caller_t caller = {0};
  for (int n = 1; n <= CALLS; n += CALLS - 1) {
    start(env, &caller, &once, "INCR", n);
    env->inside++;
    assert_error(belay_request_cancel(&caller.request), 0);
    env->inside--;
    assert_error(outcome_of(&caller), BELAY_ECANCELED);
    assert_int_equal(caller.replies, 0);
  }
  server_pause(env->server);
  start(env, &caller, &once, "INCR", CALLS);
  env_run_for(env, 20);
  assert_error(begin_client_close(env), 0);
  assert_error(outcome_of(&caller), BELAY_ECANCELED);
  server_resume(env->server);
  env_until(env, env->client_closed == 1);
}

/* If the calls exceed max_bytes, none is sent. */
ENV_TEST_OF(calls_are_sent_all_or_none, o.max_bytes = 1 << 16) {
  enum { MANY = 2000 };
  static belay__call_t *calls[MANY];
  belay__operation_t *operation;
  caller_t caller = {.env = env};
  caller.request.data = &caller;
  assert_error(belay__request_begin(env->client, &caller.request, &once, &caller, NULL,
                                    (void (*)(void))on_ended, &operation),
               0);
  for (int i = 0; i < MANY; i++) {
    calls[i] = belay__call_new(env->client, BELAY__CLASS_DATA);
    belay__call_command(calls[i], "SET", 3);
    belay__call_arg(calls[i], "key", 3);
    belay__call_arg(calls[i], "0123456789012345678901234567890123456789", 40);
  }
  assert_error(belay__request_send_all(operation, calls, MANY), BELAY_EBUSY);
  belay__request_forget(operation);
  assert_int_equal(client_stats(env).pending, 0);
  env_run_for(env, 20);
  assert_int_equal(server_keys(env->server), 0);
  assert_int_equal(caller.ended, 0);
}
