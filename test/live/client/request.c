/* Requests, as handles use them: which are sent again, which are not, and how they end. */
#include "core/client/request.h"
#include "scripts.gen.h"
#include "support/fixtures/bed.h"
#include "support/deployments/relay.h"

typedef struct asker {
  belay_request_t request;
  bed_t *bed;
  unsigned told;
  int status;
  int64_t values[BELAY__REQUEST_VALUES];
} asker_t;

typedef void (*asker_cb)(asker_t *asker, int status, const int64_t *values);

static void on_told(asker_t *asker, int status, const int64_t *values) {
  asker->bed->wrong += asker->bed->inside;
  asker->told++;
  asker->status = status;
  memcpy(asker->values, values, sizeof asker->values);
}

static void tell(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  ((asker_cb)cb)(request->data, answer->status, answer->values);
}

static int read_number(belay__operation_t *operation, const belay__call_t *call,
                       const belay__reply_t *reply) {
  (void)call;
  for (int i = 0; i < BELAY__REQUEST_VALUES; i++)
    operation->values[i] = reply->integer + i;
  return reply->type == BELAY__REPLY_INTEGER ? 0 : BELAY_EPROTO;
}

static const belay__request_ops_t once = {.read = read_number, .notify = tell};
static const belay__request_ops_t again = {.read = read_number, .notify = tell, .idempotent = true};

/* Reads the reply and cancels the request before its callback. */
static asker_t *ended_hook;
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

static int read_and_cancel(belay__operation_t *operation, const belay__call_t *call,
                           const belay__reply_t *reply) {
  (void)call;
  belay__task_init(&ended_task, cancel_it);
  belay__defer(ended_hook->bed->belay, &ended_task);
  return read_number(operation, call, reply);
}

static const belay__request_ops_t ending = {.read = read_and_cancel, .notify = tell};

static int start(bed_t *bed, asker_t *asker, const belay__request_ops_t *ops, belay__call_t *call,
                 belay__list_t *list) {
  asker->bed = bed;
  asker->request.data = asker;
  bed->inside++;
  int error = belay__request_start(&asker->request, call, ops, NULL, list, (void (*)(void))on_told);
  bed->inside--;
  return error;
}

static belay__call_t *command(bed_t *bed, const char *name, const char *key) {
  belay__call_t *call = belay__call_new(bed->client, BELAY__CLASS_DATA);
  belay__call_command(call, name, 2);
  belay__call_arg(call, key, strlen(key));
  return call;
}

static int outcome_of(asker_t *asker) {
  bed_until(asker->bed, asker->told == 1);
  asker->told = 0;
  return asker->status;
}

BED_TEST(a_reply_is_read) {
  asker_t asker = {0};
  assert_error(start(bed, &asker, &once, command(bed, "INCR", "n"), NULL), 0);
  assert_int_equal(client_stats(bed).objects, 1);
  assert_true(uv_run(&bed->loop, UV_RUN_NOWAIT)); /* it keeps the loop */
  assert_error(outcome_of(&asker), 0);
  for (int i = 0; i < BELAY__REQUEST_VALUES; i++)
    assert_int_equal(asker.values[i], 1 + i);
  assert_int_equal(client_stats(bed).objects, 0);
  server_do(bed->server, "SET", "s", "text", NULL);
  assert_error(start(bed, &asker, &once, command(bed, "INCR", "s"), NULL), 0);
  assert_error(outcome_of(&asker), BELAY_EWRONGTYPE);
  assert_int_equal(asker.values[0], 0);
  assert_error(start(bed, &asker, &once, command(bed, "GET", "s"), NULL), 0);
  assert_error(outcome_of(&asker), BELAY_EPROTO); /* and the connection is not trusted */
  bed_until(bed, client_stats(bed).drops == 1);
}

/* An answer that was lost is asked for again only where that does no harm. */
TEST(an_answer_that_was_lost) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 10000;
  bed_t *bed = bed_open_relayed(&options);
  asker_t careful = {0}, bold = {0}, scripted = {0};
  assert_error(start(bed, &careful, &once, command(bed, "STRLEN", "s"), NULL), 0);
  assert_error(outcome_of(&careful), 0);
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
  assert_error(start(bed, &careful, &once, command(bed, "STRLEN", "s"), NULL), 0);
  assert_error(start(bed, &bold, &again, command(bed, "STRLEN", "s"), NULL), 0);
  bed_run_for(bed, 50);
  relay_cut(bed->relay);
  assert_error(outcome_of(&careful), BELAY_EUNKNOWN);
  assert_int_equal(bold.told + scripted.told, 0);
  server_resume(bed->server);
  server_do(bed->server, "SCRIPT", "FLUSH", NULL);
  assert_error(outcome_of(&bold), 0);
  assert_int_equal(bold.values[0], 4);
  assert_error(outcome_of(&scripted), 0);
  bed_close(bed);
}

/* It was sent once, and could not be sent again: that is not "nothing was sent". */
BED_TEST_OF(what_was_sent_is_not_said_to_be_unsent, o.timeout_ms = 500) {
  asker_t asker = {0};
  assert_error(start(bed, &asker, &again, command(bed, "STRLEN", "s"), NULL), 0);
  assert_error(outcome_of(&asker), 0);
  server_pause(bed->server);
  assert_error(start(bed, &asker, &again, command(bed, "STRLEN", "s"), NULL), 0);
  bed_run_for(bed, 50);
  server_kill(bed->server);
  assert_error(outcome_of(&asker), BELAY_EUNKNOWN);
}

/* The refusal of the second try says nothing about the first one. */
TEST(a_refusal_after_a_lost_answer) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 10000;
  bed_t *bed = bed_open_relayed(&options);
  for (int how = 0; how < 3; how++) {
    asker_t asker = {0};
    server_do(bed->server, "DEL", "n", NULL);
    assert_error(start(bed, &asker, &again, command(bed, "INCR", "n"), NULL), 0);
    assert_error(outcome_of(&asker), 0);
    relay_delay(bed->relay, 100);
    assert_error(start(bed, &asker, &again, command(bed, "INCR", "n"), NULL), 0);
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
    assert_error(outcome_of(&asker), how < 2 ? BELAY_EUNKNOWN : 0);
    server_do(bed->server, "ACL", "SETUSER", "default", "+incr", NULL);
  }
  bed_close(bed);
}

/* The answer is there when the operation is canceled, and was only not told yet. */
BED_TEST(what_is_known_is_told) {
  for (int how = 0; how < 2; how++) {
    asker_t asker = {0};
    belay__list_t mine;
    belay__list_init(&mine);
    server_do(bed->server, "DEL", "n", NULL);
    ended_hook = &asker;
    ended_how = how;
    ended_list = &mine;
    assert_error(start(bed, &asker, &ending, command(bed, "INCR", "n"), &mine), 0);
    assert_error(outcome_of(&asker), 0);
    assert_int_equal(asker.values[0], 1);
    assert_true(belay__list_empty(&mine));
    assert_int_equal(client_stats(bed).objects, 0);
  }
}

BED_TEST(an_object_ends_its_requests) {
  asker_t askers[3] = {{.bed = bed}, {.bed = bed}, {.bed = bed}};
  belay__list_t mine;
  belay__list_init(&mine);
  for (int i = 0; i < 3; i++)
    assert_error(start(bed, &askers[i], &once, command(bed, "INCR", "n"), i < 2 ? &mine : NULL), 0);
  bed->inside++;
  belay__requests_cancel(&mine);
  bed->inside--;
  assert_true(belay__list_empty(&mine));
  assert_error(outcome_of(&askers[0]), BELAY_ECANCELED);
  assert_error(outcome_of(&askers[1]), BELAY_ECANCELED);
  assert_error(outcome_of(&askers[2]), 0);
  assert_error(start(bed, &askers[0], &once, command(bed, "INCR", "n"), &mine), 0);
  assert_error(outcome_of(&askers[0]), 0);
  assert_true(belay__list_empty(&mine)); /* a finished request is in no list */
  assert_error(start(bed, &askers[0], &once, command(bed, "INCR", "n"), NULL), 0);
  assert_error(begin_client_close(bed), 0);
  assert_error(outcome_of(&askers[0]), BELAY_ECANCELED);
  bed_until(bed, bed->client_closed == 1);
}
