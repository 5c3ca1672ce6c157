/* Requests of one call: repeats after a lost reply, and their ends. */
#include "core/client/request.h"
#include "scripts.gen.h"
#include "support/fixtures/env.h"
#include "support/deployments/relay.h"

typedef struct caller {
  belay_request_t request;
  env_t *env;
  unsigned ended;
  int status;
  int64_t values[BELAY__REQUEST_VALUES];
} caller_t;

typedef void (*caller_cb)(caller_t *caller, int status, const int64_t *values);

static void on_ended(caller_t *caller, int status, const int64_t *values) {
  caller->env->wrong += caller->env->inside;
  caller->ended++;
  caller->status = status;
  memcpy(caller->values, values, sizeof caller->values);
}

static void call_back(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  ((caller_cb)cb)(request->data, answer->status, answer->values);
}

static int read_number(belay__operation_t *operation, const belay__call_t *call,
                       const belay__reply_t *reply) {
  (void)call;
  for (int i = 0; i < BELAY__REQUEST_VALUES; i++)
    operation->values[i] = reply->integer + i;
  return reply->type == BELAY__REPLY_INTEGER ? 0 : BELAY_EPROTO;
}

static const belay__request_ops_t once = {.read = read_number, .notify = call_back};
static const belay__request_ops_t again = {
    .read = read_number, .notify = call_back, .idempotent = true};

/* Reads the reply and cancels the request before its callback. */
static caller_t *ended_hook;
static int ended_how;
static belay__list_t *ended_list;
static belay__task_t ended_task;

static void cancel_it(belay__task_t *task) {
  (void)task;
  if (ended_how == 0)
    belay__requests_cancel(ended_list);
  else if (ended_how == 1)
    assert_error(belay_request_cancel(&ended_hook->request), 0);
}

static int read_then_cancel(belay__operation_t *operation, const belay__call_t *call,
                            const belay__reply_t *reply) {
  (void)call;
  belay__task_init(&ended_task, cancel_it);
  belay__defer(ended_hook->env->belay, &ended_task);
  return read_number(operation, call, reply);
}

static const belay__request_ops_t ending = {.read = read_then_cancel, .notify = call_back};

static int start(env_t *env, caller_t *caller, const belay__request_ops_t *ops, belay__call_t *call,
                 belay__list_t *list) {
  caller->env = env;
  caller->request.data = caller;
  env->inside++;
  int error =
      belay__request_start(&caller->request, call, ops, NULL, list, (void (*)(void))on_ended);
  env->inside--;
  return error;
}

static belay__call_t *command(env_t *env, const char *name, const char *key) {
  belay__call_t *call = belay__call_new(env->client, BELAY__CLASS_DATA);
  belay__call_command(call, name, 2);
  belay__call_arg(call, key, strlen(key));
  return call;
}

static int outcome_of(caller_t *caller) {
  env_until(caller->env, caller->ended == 1);
  caller->ended = 0;
  return caller->status;
}

ENV_TEST(a_reply_is_read) {
  caller_t caller = {0};
  assert_error(start(env, &caller, &once, command(env, "INCR", "n"), NULL), 0);
  assert_int_equal(client_stats(env).objects, 1);
  assert_true(uv_run(&env->loop, UV_RUN_NOWAIT)); /* the request keeps the loop alive */
  assert_error(outcome_of(&caller), 0);
  for (int i = 0; i < BELAY__REQUEST_VALUES; i++)
    assert_int_equal(caller.values[i], 1 + i);
  assert_int_equal(client_stats(env).objects, 0);
  server_do(env->server, "SET", "s", "text", NULL);
  assert_error(start(env, &caller, &once, command(env, "INCR", "s"), NULL), 0);
  assert_error(outcome_of(&caller), BELAY_EWRONGTYPE);
  assert_int_equal(caller.values[0], 0);
  assert_error(start(env, &caller, &once, command(env, "GET", "s"), NULL), 0);
  assert_error(outcome_of(&caller), BELAY_EPROTO); /* and the connection is dropped */
  env_until(env, client_stats(env).drops == 1);
}

/* A call whose reply was lost is sent again only if it is idempotent. */
ENV_TEST_WITH_(lost_reply_is_repeated_if_idempotent, env_open_relayed, client_options(),
               o.timeout_ms = 10000) {
  caller_t single = {0}, repeated = {0}, scripted = {0};
  assert_error(start(env, &single, &once, command(env, "STRLEN", "s"), NULL), 0);
  assert_error(outcome_of(&single), 0);
  server_do(env->server, "SET", "s", "text", NULL);
  for (int i = 0; i < 2; i++) { /* the script's text, then its hash */
    belay__call_t *call = belay__call_new(env->client, BELAY__CLASS_DATA);
    belay__call_script(call, &belay__script_multi_release, 1, 1);
    belay__call_arg(call, "absent", 6);
    belay__call_arg(call, "token", 5);
    assert_error(start(env, &scripted, &again, call, NULL), 0);
    assert_int_equal(call->as_eval, i == 0);
    if (i == 0)
      assert_error(outcome_of(&scripted), 0);
  }
  server_pause(env->server);
  assert_error(start(env, &single, &once, command(env, "STRLEN", "s"), NULL), 0);
  assert_error(start(env, &repeated, &again, command(env, "STRLEN", "s"), NULL), 0);
  env_run_for(env, 50);
  relay_cut(env->relay);
  assert_error(outcome_of(&single), BELAY_EUNKNOWN);
  assert_int_equal(repeated.ended + scripted.ended, 0);
  server_resume(env->server);
  server_do(env->server, "SCRIPT", "FLUSH", NULL);
  assert_error(outcome_of(&repeated), 0);
  assert_int_equal(repeated.values[0], 4);
  assert_error(outcome_of(&scripted), 0);
}

/* The call was sent once and cannot be sent again: the result is not NOT_SENT. */
ENV_TEST_OF(lost_reply_without_a_repeat_is_unknown, o.timeout_ms = 500) {
  caller_t caller = {0};
  assert_error(start(env, &caller, &again, command(env, "STRLEN", "s"), NULL), 0);
  assert_error(outcome_of(&caller), 0);
  server_pause(env->server);
  assert_error(start(env, &caller, &again, command(env, "STRLEN", "s"), NULL), 0);
  env_run_for(env, 50);
  server_kill(env->server);
  assert_error(outcome_of(&caller), BELAY_EUNKNOWN);
}

/* The refusal of the second attempt does not concern the first one. */
ENV_TEST_WITH_(refusal_after_a_lost_reply_is_unknown, env_open_relayed, client_options(),
               o.timeout_ms = 10000) {
  for (int how = 0; how < 3; how++) {
    caller_t caller = {0};
    server_do(env->server, "DEL", "n", NULL);
    assert_error(start(env, &caller, &again, command(env, "INCR", "n"), NULL), 0);
    assert_error(outcome_of(&caller), 0);
    relay_delay(env->relay, 100);
    assert_error(start(env, &caller, &again, command(env, "INCR", "n"), NULL), 0);
    while (server_integer(env->server, "INCRBY", "n", "0", NULL) < 2)
      uv_run(&env->loop, UV_RUN_NOWAIT);
    if (how == 0)
      server_do(env->server, "ACL", "SETUSER", "default", "-incr", NULL);
    else if (how == 1)
      server_do(env->server, "SET", "n", "many", NULL);
    else
      server_do(env->server, "SET", "n", "-2", NULL);
    relay_cut(env->relay);
    relay_delay(env->relay, 0);
    assert_error(outcome_of(&caller), how < 2 ? BELAY_EUNKNOWN : 0);
    server_do(env->server, "ACL", "SETUSER", "default", "+incr", NULL);
  }
}

/* The reply has arrived before the cancel, and the callback has not run. */
ENV_TEST(cancel_after_the_reply_reports_the_reply) {
  for (int how = 0; how < 2; how++) {
    caller_t caller = {0};
    belay__list_t mine;
    belay__list_init(&mine);
    server_do(env->server, "DEL", "n", NULL);
    ended_hook = &caller;
    ended_how = how;
    ended_list = &mine;
    assert_error(start(env, &caller, &ending, command(env, "INCR", "n"), &mine), 0);
    assert_error(outcome_of(&caller), 0);
    assert_int_equal(caller.values[0], 1);
    assert_true(belay__list_empty(&mine));
    assert_int_equal(client_stats(env).objects, 0);
  }
}

ENV_TEST(owner_cancels_its_requests) {
  caller_t callers[3] = {{.env = env}, {.env = env}, {.env = env}};
  belay__list_t mine;
  belay__list_init(&mine);
  for (int i = 0; i < 3; i++)
    assert_error(start(env, &callers[i], &once, command(env, "INCR", "n"), i < 2 ? &mine : NULL),
                 0);
  env->inside++;
  belay__requests_cancel(&mine);
  env->inside--;
  assert_true(belay__list_empty(&mine));
  assert_error(outcome_of(&callers[0]), BELAY_ECANCELED);
  assert_error(outcome_of(&callers[1]), BELAY_ECANCELED);
  assert_error(outcome_of(&callers[2]), 0);
  assert_error(start(env, &callers[0], &once, command(env, "INCR", "n"), &mine), 0);
  assert_error(outcome_of(&callers[0]), 0);
  assert_true(belay__list_empty(&mine)); /* a finished request is in no list */
  assert_error(start(env, &callers[0], &once, command(env, "INCR", "n"), NULL), 0);
  assert_error(begin_client_close(env), 0);
  assert_error(outcome_of(&callers[0]), BELAY_ECANCELED);
  env_until(env, env->client_closed == 1);
}
