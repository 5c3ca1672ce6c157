/* Requests of several calls, and of several steps. */
#include "core/client/request.h"
#include "scripts.gen.h"
#include "support/fixtures/bed.h"
#include "support/deployments/relay.h"

enum { CALLS = 5 };

/* The content of a request's room. */
typedef struct sums {
  int64_t sum[CALLS]; /* the replies of the calls of the last step */
  unsigned replies;
} sums_t;

typedef struct asker {
  belay_request_t request;
  bed_t *bed;
  unsigned told, replies;
  int status;
  int64_t sum[CALLS];
  char detail[256];
  int steps; /* that are still to come */
  int error; /* the error of the last call */
} asker_t;

typedef void (*asker_cb)(asker_t *asker, int status, const sums_t *sums);

static void on_told(asker_t *asker, int status, const sums_t *sums) {
  asker->bed->wrong += asker->bed->inside;
  asker->told++;
  asker->status = status;
  snprintf(asker->detail, sizeof asker->detail, "%s", belay_detail(asker->bed->belay));
  if (sums != NULL) {
    asker->replies = sums->replies;
    memcpy(asker->sum, sums->sum, sizeof asker->sum);
  }
}

static void tell(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  assert_true(answer->room == NULL || answer->room_len == sizeof(sums_t));
  ((asker_cb)cb)(request->data, answer->status, answer->room);
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

static belay__call_t *command(bed_t *bed, const char *name, int key) {
  char text[] = "k0";
  text[1] = (char)('0' + key);
  belay__call_t *call = belay__call_new(bed->client, BELAY__CLASS_DATA);
  belay__call_command(call, name, 2);
  belay__call_arg(call, text, 2);
  return call;
}

static int send_all(bed_t *bed, belay__operation_t *operation, const char *name, int n) {
  belay__call_t *calls[CALLS];
  for (int i = 0; i < n; i++)
    calls[i] = command(bed, name, i);
  return belay__request_send_all(operation, calls, (size_t)n);
}

/* The same once more, until there are no more steps. */
static int next(belay__operation_t *operation) {
  asker_t *asker = operation->context;
  if (asker->steps == 0)
    return asker->error;
  asker->steps--;
  int error = send_all(asker->bed, operation, "INCR", CALLS);
  return error != 0 ? error : BELAY__REQUEST_PARK;
}

static const belay__request_ops_t once = {.read = read_sum, .notify = tell};
static const belay__request_ops_t again = {.read = read_sum, .notify = tell, .idempotent = true};
static const belay__request_ops_t steps = {.read = read_sum, .next = next, .notify = tell};

static void start(bed_t *bed, asker_t *asker, const belay__request_ops_t *ops, const char *name,
                  int n) {
  belay__operation_t *operation;
  asker->bed = bed;
  asker->request.data = asker;
  bed->inside++;
  assert_error(belay__request_begin(bed->client, &asker->request, ops, asker, NULL,
                                    (void (*)(void))on_told, &operation),
               0);
  assert_non_null(belay__request_room(operation, sizeof(sums_t)));
  assert_error(send_all(bed, operation, name, n), 0);
  bed->inside--;
}

static int outcome_of(asker_t *asker) {
  bed_until(asker->bed, asker->told == 1);
  asker->told = 0;
  return asker->status;
}

static void expect_sums(const asker_t *asker, int n, int64_t sum) {
  for (int i = 0; i < n; i++)
    assert_int_equal(asker->sum[i], sum);
}

BED_TEST(each_reply_is_read) {
  for (int n = 1; n <= CALLS; n++) {
    asker_t asker = {0};
    start(bed, &asker, &once, "INCR", n);
    assert_error(outcome_of(&asker), 0);
    assert_int_equal(asker.replies, n);
    for (int i = 0; i < n; i++)
      assert_int_equal(asker.sum[i], n - i);
  }
  assert_int_equal(client_stats(bed).objects, 0);
}

/* The other calls are executed, and the error names its key. */
BED_TEST(one_that_is_refused) {
  asker_t asker = {0};
  server_do(bed->server, "LPUSH", "k2", "foreign", NULL);
  start(bed, &asker, &once, "INCR", CALLS);
  assert_error(outcome_of(&asker), BELAY_EWRONGTYPE);
  assert_int_equal(asker.replies, CALLS - 1);
  assert_non_null(strstr(asker.detail, "k2: WRONGTYPE"));
  start(bed, &asker, &steps, "INCR", CALLS); /* and there is no next step */
  asker.steps = 1;
  assert_error(outcome_of(&asker), BELAY_EWRONGTYPE);
  assert_int_equal(asker.steps, 1);
  assert_string_equal(server_string(bed->server, "GET", "k4", NULL), "2");
}

/* The detail names the right key, after any other refusals. */
BED_TEST(each_names_its_own_key) {
  asker_t asker[CALLS] = {0};
  belay__operation_t *operation;
  for (int i = 0; i < CALLS; i++) {
    char key[] = {'k', (char)('0' + i), '\0'};
    server_do(bed->server, "LPUSH", key, "foreign", NULL);
  }
  server_pause(bed->server); /* all answers come at once */
  for (int i = 0; i < CALLS; i++) {
    asker[i].bed = bed;
    asker[i].request.data = &asker[i];
    assert_error(belay__request_begin(bed->client, &asker[i].request, &once, NULL, NULL,
                                      (void (*)(void))on_told, &operation),
                 0);
    assert_non_null(belay__request_room(operation, sizeof(sums_t)));
    assert_error(belay__request_send(operation, command(bed, "INCR", i)), 0);
  }
  bed_run_for(bed, 20);
  server_resume(bed->server);
  for (int i = 0; i < CALLS; i++) {
    char begin[] = {'k', (char)('0' + i), ':', ' ', 'W', '\0'};
    assert_error(outcome_of(&asker[i]), BELAY_EWRONGTYPE);
    assert_memory_equal(asker[i].detail, begin, sizeof begin - 1);
  }
}

/* Which one of several keys was wrong the server does not say. */
BED_TEST(of_several_keys_it_may_be_another) {
  asker_t asker = {.bed = bed};
  belay__operation_t *operation;
  asker.request.data = &asker;
  server_do(bed->server, "LPUSH", "counter{lock}", "foreign", NULL);
  assert_error(belay__request_begin(bed->client, &asker.request, &once, NULL, NULL,
                                    (void (*)(void))on_told, &operation),
               0);
  assert_non_null(belay__request_room(operation, sizeof(sums_t)));
  belay__call_t *call = belay__call_new(bed->client, BELAY__CLASS_DATA);
  belay__call_script(call, &belay__script_lock_acquire_fenced, 2, 3);
  belay__call_arg(call, "lock", 4);
  belay__call_arg(call, "counter{lock}", 13);
  belay__call_arg(call, "token", 5);
  belay__call_arg_int(call, 60000);
  belay__call_arg_int(call, 60000);
  assert_error(belay__request_send(operation, call), 0);
  assert_error(outcome_of(&asker), BELAY_EWRONGTYPE);
  assert_memory_equal(asker.detail, "lock: WRONGTYPE", 15);
  assert_non_null(strstr(asker.detail, "or another key of this call"));
}

/* Its time is that of the whole: a step that is not answered does not have it anew. */
BED_TEST(steps_share_a_time) {
  asker_t asker = {.request.timeout_ms = 300, .steps = 1000000};
  uint64_t before = uv_hrtime();
  start(bed, &asker, &steps, "INCR", 1);
  bed_until(bed, asker.told == 1);
  assert_between((int64_t)(uv_hrtime() - before) / 1000000, 299, 299 + 2000 * slow());
  assert_true(asker.status == BELAY_EUNKNOWN || asker.status == BELAY_ETIMEDOUT);
  assert_true(asker.replies > CALLS);
}

static int failures[CALLS];

static void keep_failure(belay__operation_t *operation, int status) {
  assert_int_equal(failures[operation->index], 0);
  failures[operation->index] = status;
}

static const belay__request_ops_t told_of_each = {
    .read = read_sum, .failed = keep_failure, .notify = tell};

/* An unknown outcome of one call says nothing about the others. */
TEST(each_that_failed_is_told) {
  bed_t *bed = bed_open(NULL);
  static const char text[] = "return redis.error_reply('ERR for a reason of its own')";
  static const belay__script_t script = {.name = "broken",
                                         .sha1 = "0000000000000000000000000000000000000000",
                                         .text = text,
                                         .len = sizeof text - 1,
                                         .index = BELAY__SCRIPTS_MAX - 1};
  asker_t asker = {.bed = bed, .request.data = &asker};
  belay__operation_t *operation;
  belay__call_t *calls[CALLS];
  server_do(bed->server, "LPUSH", "k2", "foreign", NULL);
  assert_error(belay__request_begin(bed->client, &asker.request, &told_of_each, &asker, NULL,
                                    (void (*)(void))on_told, &operation),
               0);
  assert_non_null(belay__request_room(operation, sizeof(sums_t)));
  for (int i = 0; i < CALLS; i++)
    calls[i] = command(bed, "INCR", i);
  (void)belay__call_abandon(calls[0]);
  calls[0] = belay__call_new(bed->client, BELAY__CLASS_DATA);
  belay__call_script_text(calls[0], &script, 1, 0);
  belay__call_arg(calls[0], "k0", 2);
  assert_error(belay__request_send_all(operation, calls, CALLS), 0);
  assert_error(outcome_of(&asker), BELAY_EUNKNOWN); /* it may have written */
  assert_int_equal(asker.replies, CALLS - 2);
  for (int i = 0; i < CALLS; i++)
    assert_error(failures[i], i == 0 ? BELAY_EUNKNOWN : i == 2 ? BELAY_EWRONGTYPE : 0);
  bed_close(bed);
}

BED_TEST(a_step_after_the_other) {
  for (int how = 0; how < 2; how++) {
    asker_t asker = {.steps = 3, .error = how == 0 ? 0 : BELAY_ELOST};
    server_do(bed->server, "FLUSHALL", NULL);
    start(bed, &asker, &steps, "INCR", 1);
    assert_error(outcome_of(&asker), asker.error);
    assert_int_equal(asker.replies, 1 + 3 * CALLS);
    assert_int_equal(asker.sum[0], 4);
    assert_int_equal(asker.sum[CALLS - 1], 3);
  }
}

/* Asked for again where that does no harm; else what the whole has done is not known. */
TEST(answers_that_were_lost) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 10000;
  bed_t *bed = bed_open_relayed(&options);
  asker_t warm = {0}, careful = {0}, bold = {0};
  start(bed, &warm, &once, "STRLEN", 1);
  assert_error(outcome_of(&warm), 0);
  server_pause(bed->server);
  start(bed, &careful, &once, "STRLEN", CALLS);
  start(bed, &bold, &again, "STRLEN", CALLS);
  bed_run_for(bed, 50);
  relay_cut(bed->relay);
  assert_error(outcome_of(&careful), BELAY_EUNKNOWN);
  assert_int_equal(bold.told, 0);
  server_resume(bed->server);
  assert_error(outcome_of(&bold), 0);
  assert_int_equal(bold.replies, CALLS);
  expect_sums(&bold, CALLS, 0);
  bed_close(bed);
}

static int in_other_words(belay__operation_t *operation, int status) {
  asker_t *asker = operation->context;
  if (asker->steps-- == 0)
    return status == BELAY_EUNKNOWN ? 0 : status;
  belay__call_t *call = belay__call_new(operation->client, BELAY__CLASS_DATA);
  belay__call_command(call, "APPEND", 3);
  belay__call_arg(call, "words", 5);
  belay__call_arg(call, "other;", 6);
  assert_error(belay__request_send(operation, call), 0);
  return BELAY__REQUEST_PARK;
}

static const belay__request_ops_t recovers = {
    .read = read_sum, .recover = in_other_words, .notify = tell};

/* After a lost reply the step may ask in another way or accept the state. A refusal does not
 * recover. */
TEST(a_step_that_recovers) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 10000;
  bed_t *bed = bed_open_relayed(&options);
  asker_t warm = {0};
  start(bed, &warm, &once, "STRLEN", 1);
  assert_error(outcome_of(&warm), 0);
  for (int more = 1; more >= 0; more--) {
    asker_t asker = {.steps = more};
    server_do(bed->server, "FLUSHALL", NULL);
    relay_delay(bed->relay, 50);
    start(bed, &asker, &recovers, "INCR", CALLS);
    while (server_keys(bed->server) < CALLS)
      uv_run(&bed->loop, UV_RUN_NOWAIT);
    relay_cut(bed->relay);
    relay_delay(bed->relay, 0);
    assert_error(outcome_of(&asker), 0);
    assert_int_equal(asker.replies, more);
    assert_int_equal(server_integer(bed->server, "STRLEN", "words", NULL), 6 * more);
    assert_string_equal(server_string(bed->server, "GET", "k0", NULL), "1"); /* not sent again */
  }
  asker_t asker = {0};
  server_do(bed->server, "LPUSH", "words", "foreign", NULL);
  server_do(bed->server, "DEL", "k0", NULL);
  server_do(bed->server, "LPUSH", "k0", "foreign", NULL);
  start(bed, &asker, &recovers, "INCR", 1);
  assert_error(outcome_of(&asker), BELAY_EWRONGTYPE);
  bed_close(bed);
}

BED_TEST(it_is_canceled_as_a_whole) {
  asker_t asker = {0};
  for (int n = 1; n <= CALLS; n += CALLS - 1) {
    start(bed, &asker, &once, "INCR", n);
    bed->inside++;
    assert_error(belay_request_cancel(&asker.request), 0);
    bed->inside--;
    assert_error(outcome_of(&asker), BELAY_ECANCELED);
    assert_int_equal(asker.replies, 0);
  }
  server_pause(bed->server);
  start(bed, &asker, &once, "INCR", CALLS);
  bed_run_for(bed, 20);
  assert_error(begin_client_close(bed), 0);
  assert_error(outcome_of(&asker), BELAY_ECANCELED);
  server_resume(bed->server);
  bed_until(bed, bed->client_closed == 1);
}

/* There is room for all of them, or none is sent. */
BED_TEST_OF(all_or_none, o.max_bytes = 1 << 16) {
  enum { MANY = 2000 };
  static belay__call_t *calls[MANY];
  belay__operation_t *operation;
  asker_t asker = {.bed = bed};
  asker.request.data = &asker;
  assert_error(belay__request_begin(bed->client, &asker.request, &once, &asker, NULL,
                                    (void (*)(void))on_told, &operation),
               0);
  for (int i = 0; i < MANY; i++) {
    calls[i] = belay__call_new(bed->client, BELAY__CLASS_DATA);
    belay__call_command(calls[i], "SET", 3);
    belay__call_arg(calls[i], "key", 3);
    belay__call_arg(calls[i], "0123456789012345678901234567890123456789", 40);
  }
  assert_error(belay__request_send_all(operation, calls, MANY), BELAY_EBUSY);
  belay__request_forget(operation);
  assert_int_equal(client_stats(bed).pending, 0);
  bed_run_for(bed, 20);
  assert_int_equal(server_keys(bed->server), 0);
  assert_int_equal(asker.told, 0);
}
