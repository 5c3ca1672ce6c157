/* Requests of one call: repeats after a lost reply, and their ends. */
#include "core/client/request.h"
#include "scripts.gen.h"
#include "support/fixtures/bed.h"
#include "support/deployments/relay.h"

typedef struct caller {
  belay_request_t request;
  bed_t *bed;
  unsigned ended;
  int status;
  int64_t values[BELAY__REQUEST_VALUES];
} caller_t;

typedef void (*caller_cb)(caller_t *caller, int status, const int64_t *values);

static void on_ended(caller_t *caller, int status, const int64_t *values) {
  caller->bed->wrong += caller->bed->inside;
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
  belay__defer(ended_hook->bed->belay, &ended_task);
  return read_number(operation, call, reply);
}

static const belay__request_ops_t ending = {.read = read_then_cancel, .notify = call_back};

static int start(bed_t *bed, caller_t *caller, const belay__request_ops_t *ops, belay__call_t *call,
                 belay__list_t *list) {
  caller->bed = bed;
  caller->request.data = caller;
  bed->inside++;
  int error =
      belay__request_start(&caller->request, call, ops, NULL, list, (void (*)(void))on_ended);
  bed->inside--;
  return error;
}

static belay__call_t *command(bed_t *bed, const char *name, const char *key) {
  belay__call_t *call = belay__call_new(bed->client, BELAY__CLASS_DATA);
  belay__call_command(call, name, 2);
  belay__call_arg(call, key, strlen(key));
  return call;
}

static int outcome_of(caller_t *caller) {
  bed_until(caller->bed, caller->ended == 1);
  caller->ended = 0;
  return caller->status;
}

BED_TEST(a_reply_is_read) {
  caller_t caller = {0};
  assert_error(start(bed, &caller, &once, command(bed, "INCR", "n"), NULL), 0);
  assert_int_equal(client_stats(bed).objects, 1);
  assert_true(uv_run(&bed->loop, UV_RUN_NOWAIT)); /* the request keeps the loop alive */
  assert_error(outcome_of(&caller), 0);
  for (int i = 0; i < BELAY__REQUEST_VALUES; i++)
    assert_int_equal(caller.values[i], 1 + i);
  assert_int_equal(client_stats(bed).objects, 0);
  server_do(bed->server, "SET", "s", "text", NULL);
  assert_error(start(bed, &caller, &once, command(bed, "INCR", "s"), NULL), 0);
  assert_error(outcome_of(&caller), BELAY_EWRONGTYPE);
  assert_int_equal(caller.values[0], 0);
  assert_error(start(bed, &caller, &once, command(bed, "GET", "s"), NULL), 0);
  assert_error(outcome_of(&caller), BELAY_EPROTO); /* and the connection is dropped */
  bed_until(bed, client_stats(bed).drops == 1);
}

/* A call whose reply was lost is sent again only if it is idempotent. */
BED_TEST_WITH_(lost_reply_is_repeated_if_idempotent, bed_open_relayed, client_options(),
               o.timeout_ms = 10000) {
  caller_t single = {0}, repeated = {0}, scripted = {0};
  assert_error(start(bed, &single, &once, command(bed, "STRLEN", "s"), NULL), 0);
  assert_error(outcome_of(&single), 0);
  server_do(bed->server, "SET", "s", "text", NULL);
  for (int i = 0; i < 2; i++) { /* the script's text, then its hash */
    belay__call_t *call = belay__call_new(bed->client, BELAY__CLASS_DATA);
    belay__call_script(call, &belay__script_multi_release, 1, 1);
    belay__call_arg(call, "absent", 6);
    belay__call_arg(call, "token", 5);
    assert_error(start(bed, &scripted, &again, call, NULL), 0);
    assert_int_equal(call->as_eval, i == 0);
    if (i == 0)
      assert_error(outcome_of(&scripted), 0);
  }
  server_pause(bed->server);
  assert_error(start(bed, &single, &once, command(bed, "STRLEN", "s"), NULL), 0);
  assert_error(start(bed, &repeated, &again, command(bed, "STRLEN", "s"), NULL), 0);
  bed_run_for(bed, 50);
  relay_cut(bed->relay);
  assert_error(outcome_of(&single), BELAY_EUNKNOWN);
  assert_int_equal(repeated.ended + scripted.ended, 0);
  server_resume(bed->server);
  server_do(bed->server, "SCRIPT", "FLUSH", NULL);
  assert_error(outcome_of(&repeated), 0);
  assert_int_equal(repeated.values[0], 4);
  assert_error(outcome_of(&scripted), 0);
}

/* The call was sent once and cannot be sent again: the result is not NOT_SENT. */
BED_TEST_OF(lost_reply_without_a_repeat_is_unknown, o.timeout_ms = 500) {
  caller_t caller = {0};
  assert_error(start(bed, &caller, &again, command(bed, "STRLEN", "s"), NULL), 0);
  assert_error(outcome_of(&caller), 0);
  server_pause(bed->server);
  assert_error(start(bed, &caller, &again, command(bed, "STRLEN", "s"), NULL), 0);
  bed_run_for(bed, 50);
  server_kill(bed->server);
  assert_error(outcome_of(&caller), BELAY_EUNKNOWN);
}

/* The refusal of the second attempt does not concern the first one. */
BED_TEST_WITH_(refusal_after_a_lost_reply_is_unknown, bed_open_relayed, client_options(),
               o.timeout_ms = 10000) {
  for (int how = 0; how < 3; how++) {
    caller_t caller = {0};
    server_do(bed->server, "DEL", "n", NULL);
    assert_error(start(bed, &caller, &again, command(bed, "INCR", "n"), NULL), 0);
    assert_error(outcome_of(&caller), 0);
    relay_delay(bed->relay, 100);
    assert_error(start(bed, &caller, &again, command(bed, "INCR", "n"), NULL), 0);
    while (server_integer(bed->server, "INCRBY", "n", "0", NULL) < 2)
      uv_run(&bed->loop, UV_RUN_NOWAIT);
    if (how == 0)
      server_do(bed->server, "ACL", "SETUSER", "default", "-incr", NULL);
    else if (how == 1)
      server_do(bed->server, "SET", "n", "many", NULL);
    else
      server_do(bed->server, "SET", "n", "-2", NULL);
    relay_cut(bed->relay);
    relay_delay(bed->relay, 0);
    assert_error(outcome_of(&caller), how < 2 ? BELAY_EUNKNOWN : 0);
    server_do(bed->server, "ACL", "SETUSER", "default", "+incr", NULL);
  }
}

/* The reply has arrived before the cancel, and the callback has not run. */
BED_TEST(cancel_after_the_reply_reports_the_reply) {
  for (int how = 0; how < 2; how++) {
    caller_t caller = {0};
    belay__list_t mine;
    belay__list_init(&mine);
    server_do(bed->server, "DEL", "n", NULL);
    ended_hook = &caller;
    ended_how = how;
    ended_list = &mine;
    assert_error(start(bed, &caller, &ending, command(bed, "INCR", "n"), &mine), 0);
    assert_error(outcome_of(&caller), 0);
    assert_int_equal(caller.values[0], 1);
    assert_true(belay__list_empty(&mine));
    assert_int_equal(client_stats(bed).objects, 0);
  }
}

BED_TEST(owner_cancels_its_requests) {
  caller_t callers[3] = {{.bed = bed}, {.bed = bed}, {.bed = bed}};
  belay__list_t mine;
  belay__list_init(&mine);
  for (int i = 0; i < 3; i++)
    assert_error(start(bed, &callers[i], &once, command(bed, "INCR", "n"), i < 2 ? &mine : NULL),
                 0);
  bed->inside++;
  belay__requests_cancel(&mine);
  bed->inside--;
  assert_true(belay__list_empty(&mine));
  assert_error(outcome_of(&callers[0]), BELAY_ECANCELED);
  assert_error(outcome_of(&callers[1]), BELAY_ECANCELED);
  assert_error(outcome_of(&callers[2]), 0);
  assert_error(start(bed, &callers[0], &once, command(bed, "INCR", "n"), &mine), 0);
  assert_error(outcome_of(&callers[0]), 0);
  assert_true(belay__list_empty(&mine)); /* a finished request is in no list */
  assert_error(start(bed, &callers[0], &once, command(bed, "INCR", "n"), NULL), 0);
  assert_error(begin_client_close(bed), 0);
  assert_error(outcome_of(&callers[0]), BELAY_ECANCELED);
  bed_until(bed, bed->client_closed == 1);
}
