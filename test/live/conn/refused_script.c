/* Interrupted scripts. An error before the first write is a refusal, a later one is unknown.
 * Servers check some conditions before the first write; missing rights of a user show at the
 * line of the command. */
#include <stdio.h>

#include "core/client/client.h"
#include "core/client/request.h"
#include "scripts.gen.h"
#include "support/load/op_set.h"

#define KEY_OF_SCRIPT "belay::x"

/* ---- one script after the other ---- */

static void allow(server_t *server) {
  server_do(server, "ACL", "SETUSER", "default", "+@all", NULL);
  server_do(server, "CONFIG", "SET", "maxmemory", "0", "min-replicas-to-write", "0", NULL);
}

static void forbid_get(server_t *server) {
  server_do(server, "ACL", "SETUSER", "default", "-get", NULL);
}

static void forbid_set(server_t *server) {
  server_do(server, "ACL", "SETUSER", "default", "-set", NULL);
}

static void forbid_pexpire(server_t *server) {
  server_do(server, "ACL", "SETUSER", "default", "-pexpire", NULL);
}

static void forbid_scripts(server_t *server) {
  server_do(server, "ACL", "SETUSER", "default", "-@scripting", NULL);
}

static void fill_memory(server_t *server) {
  server_do(server, "CONFIG", "SET", "maxmemory", "1", NULL);
}

static void want_replicas(server_t *server) {
  server_do(server, "CONFIG", "SET", "min-replicas-to-write", "1", NULL);
}

static void make_a_list(server_t *server) {
  server_do(server, "DEL", KEY_OF_SCRIPT, NULL);
  server_do(server, "LPUSH", KEY_OF_SCRIPT, "foreign", NULL);
}

static void do_nothing(server_t *server) {
  (void)server;
}

#define GET "redis.call('GET', KEYS[1])\n"
#define SET "redis.call('SET', KEYS[1], 'new')\n"
#define PEXPIRE "redis.call('PEXPIRE', KEYS[1], 60000)\n"
#define DEL "redis.call('DEL', KEYS[1])\n"

typedef struct row {
  const char *name, *text;
  unsigned clean_lines; /* as tools/embed_lua.py counts them */
  void (*begin)(server_t *server);
  belay_outcome_t outcome;
  int error;
  bool wrote;
  int status; /* of a request by a client */
} row_t;

static const row_t rows[] = {
    {"may not be called", SET, 1, forbid_scripts, BELAY_OUTCOME_REFUSED, BELAY_EPERM, false,
     BELAY_EPERM},
    {"may not read", GET SET, 2, forbid_get, BELAY_OUTCOME_REFUSED, BELAY_EPERM, false,
     BELAY_EPERM},
    {"may not write", GET SET, 2, forbid_set, BELAY_OUTCOME_REFUSED, BELAY_EPERM, false,
     BELAY_EPERM},
    {"has written and may not go on", SET PEXPIRE, 1, forbid_pexpire, BELAY_OUTCOME_UNKNOWN,
     BELAY_EPERM, true, BELAY_EPERM},
    {"finds no room", GET SET, 2, fill_memory, BELAY_OUTCOME_REFUSED, BELAY_EOOM, false,
     BELAY_EOOM},
    {"finds no room when it has written, and is let", DEL SET, 1, fill_memory, BELAY_OUTCOME_REPLY,
     0, true, 0},
    {"says that it needs room", "#!lua\n" GET SET, 3, fill_memory, BELAY_OUTCOME_REFUSED,
     BELAY_EOOM, false, BELAY_EOOM},
    {"says that it needs none", "#!lua flags=allow-oom\n" GET SET, 3, fill_memory,
     BELAY_OUTCOME_REPLY, 0, true, 0},
    {"says that it does not write", "#!lua flags=no-writes\n" GET SET, 3, do_nothing,
     BELAY_OUTCOME_REFUSED, BELAY_EREFUSED, false, BELAY_EREFUSED},
    {"finds too few replicas", GET SET, 2, want_replicas, BELAY_OUTCOME_REFUSED, BELAY_ENOREPLICAS,
     false, BELAY_ENOREPLICAS},
    {"finds something else", GET SET, 2, make_a_list, BELAY_OUTCOME_REFUSED, BELAY_EWRONGTYPE,
     false, BELAY_EWRONGTYPE},
    {"calls what does not exist, at first", "redis.call('NOSUCH')\n" SET, 0, do_nothing,
     BELAY_OUTCOME_UNKNOWN, BELAY_EREFUSED, false, BELAY_EUNKNOWN},
    {"calls what does not exist in the end", SET "redis.call('NOSUCH')\n", 1, do_nothing,
     BELAY_OUTCOME_UNKNOWN, BELAY_EREFUSED, true, BELAY_EUNKNOWN},
    {"fails before it writes", "error('no')\n" SET, 2, do_nothing, BELAY_OUTCOME_REFUSED,
     BELAY_EREFUSED, false, BELAY_EREFUSED},
    {"fails when it has written", SET "error('no')\n", 1, do_nothing, BELAY_OUTCOME_UNKNOWN,
     BELAY_EREFUSED, true, BELAY_EUNKNOWN},
    {"ends with an error of its own", SET "return redis.error_reply('ERR no')\n", 1, do_nothing,
     BELAY_OUTCOME_UNKNOWN, BELAY_EREFUSED, true, BELAY_EUNKNOWN},
    {"ends with an error of its own, and says not where",
     "do return redis.error_reply('ERR no') end\n" SET, 2, do_nothing, BELAY_OUTCOME_UNKNOWN,
     BELAY_EREFUSED, false, BELAY_EUNKNOWN},
};

typedef struct ended {
  unsigned times;
  belay_outcome_t outcome;
  int error;
} ended_t;

static void on_done(belay__call_t *call, const belay__result_t *result) {
  ended_t *ended = call->owner;
  ended->times++;
  ended->outcome = result->outcome;
  ended->error = result->error;
}

static belay__script_t script_of(const row_t *row) {
  return (belay__script_t){.name = "tried",
                           .sha1 = "0000000000000000000000000000000000000000",
                           .text = row->text,
                           .len = strlen(row->text),
                           .clean_lines = row->clean_lines,
                           .index = BELAY__SCRIPTS_MAX - 1};
}

static belay__call_t *call_of(env_t *env, const belay__script_t *script) {
  belay__call_t *call = belay__call_new(env->client, BELAY__CLASS_DATA);
  belay__call_script_text(call, script, 1, 0);
  belay__call_arg(call, KEY_OF_SCRIPT, sizeof KEY_OF_SCRIPT - 1);
  return call;
}

static void begin(server_t *server, const row_t *row) {
  server_do(server, "FLUSHALL", NULL);
  server_do(server, "SET", KEY_OF_SCRIPT, "old", NULL);
  row->begin(server);
}

static bool has_written(server_t *server) {
  allow(server);
  if (strcmp(server_string(server, "TYPE", KEY_OF_SCRIPT, NULL), "string") != 0)
    return false;
  const char *value = server_string(server, "GET", KEY_OF_SCRIPT, NULL);
  return value == NULL || strcmp(value, "old") != 0;
}

ENV_TEST(outcome_of_a_call) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const row_t *row = &rows[i];
    belay__script_t script = script_of(row);
    ended_t ended = {0};
    begin(env->server, row);
    belay__call_t *call = call_of(env, &script);
    call->deadline = belay__after_ms(env->belay, 5000);
    call->done = on_done;
    call->owner = &ended;
    assert_error(belay__call_send(&call, 1, true), 0);
    env_until(env, ended.times > 0);
    if (ended.outcome != row->outcome || ended.error != row->error)
      fail_msg("a script that %s: outcome %d, %s", row->name, (int)ended.outcome,
               belay_err_name(ended.error));
    if (has_written(env->server) != row->wrote)
      fail_msg("a script that %s has%s written", row->name, row->wrote ? " not" : "");
  }
}

/* ---- what a request makes of it ---- */

static int read_anything(belay__operation_t *operation, const belay__call_t *call,
                         const belay__reply_t *reply) {
  (void)operation;
  (void)call;
  (void)reply;
  return 0;
}

typedef struct report {
  unsigned times;
  int status;
  char detail[256];
} report_t;

static void notify_caller(belay_request_t *request, void (*cb)(void),
                          const belay__answer_t *answer) {
  report_t *report = request->data;
  (void)cb;
  report->times++;
  report->status = answer->status;
  snprintf(report->detail, sizeof report->detail, "%s", belay_detail(answer->client->belay));
}

/* Also one that would be sent again if its answer were lost: this one was not. */
ENV_TEST(status_of_a_request) {
  static const belay__request_ops_t two_ops[] = {
      {.read = read_anything, .notify = notify_caller},
      {.read = read_anything, .notify = notify_caller, .idempotent = true},
  };
  for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
    const row_t *row = &rows[i / 2];
    belay__script_t script = script_of(row);
    report_t report = {0};
    belay_request_t request = {.data = &report};
    begin(env->server, row);
    uint64_t calls = client_stats(env).calls;
    assert_error(
        belay__request_start(&request, call_of(env, &script), &two_ops[i % 2], NULL, NULL, NULL),
        0);
    env_until(env, report.times == 1);
    if (report.status != row->status)
      fail_msg("a script that %s: %s", row->name, belay_err_name(report.status));
    if ((report.detail[0] != '\0') != (row->status != 0))
      fail_msg("a script that %s: \"%s\"", row->name, report.detail);
    assert_int_equal(client_stats(env).calls, calls + 1);
    (void)has_written(env->server);
  }
}

/* ---- belay's own ---- */

static void expect_undone(op_set_t *op_set, const char *right, bool maybe) {
  env_settle(op_set->env);
  uint64_t undone = client_stats(op_set->env).undone, unknown = client_stats(op_set->env).unknown;
  belay_lock_options_t options = lock_options();
  options.fencing = true;
  contender_t *c = contender_new(op_set->env, "fenced", &options);
  server_do(op_set->server, "FLUSHALL", NULL);
  server_do(op_set->server, "ACL", "SETUSER", "default", right, NULL);
  int status = try_lock(c);
  if (status != BELAY_EPERM)
    fail_msg("%s: %s", right, belay_err_name(status));
  allow(op_set->server);
  env_settle(op_set->env);
  assert_int_equal(client_stats(op_set->env).unknown - unknown, maybe);
  assert_int_equal(client_stats(op_set->env).undone - undone, maybe);
  assert_null(value_of(c));
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
}

/* A lock undoes a script that was stopped after its first write, and nothing if it was stopped
 * before. */
TEST_IN(lock_undoes_an_unknown_acquire, op_set, op_set_open(server_start(NULL), NULL, NULL)) {
  expect_undone(op_set, "-get", false);
  expect_undone(op_set, "-hmget", false);
  expect_undone(op_set, "-time", false);
  expect_undone(op_set, "-set", false);
  expect_undone(op_set, "-pexpire", true);
  expect_undone(op_set, "-hset", true);
  expect_undone(op_set, "-@scripting", false);
}

/* A failure before the addition could have followed a write. */
TEST_IN(counter_reports_unknown, op_set,
        op_set_open(server_start(&(server_options_t){
                        .arguments = {"--rename-command", "PEXPIRE", "", NULL}}),
                    NULL, NULL)) {
  counters_t counters;
  count_t count = {.n = 0};
  belay_counter_options_t options = counter_options();
  options.ttl_ms = 60000;
  options.extend_ttl = true;
  counters_new(&counters, op_set->env, &options);
  assert_error(BEGIN(&counters, &count, add_bounded, KEY("n"), 1,
                     &(belay_counter_bounds_t){.min = 0, .max = 10}, on_result),
               0);
  assert_error(end_of_count(&count), 0);
  assert_error(BEGIN(&counters, &count, add_bounded, KEY("n"), 1,
                     &(belay_counter_bounds_t){.min = 0, .max = 10}, on_result),
               0);
  assert_error(end_of_count(&count), BELAY_EUNKNOWN);
  assert_int_equal(number_at(op_set->server, "belay::counter::{n}"), 1); /* it was not, this time */
}
