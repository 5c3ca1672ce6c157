/* The contract of all handles. test/support/contract has a row for each handle: arguments are
 * checked, a close cancels pending operations, and each callback may close the handle, the client
 * or all. */
#include "support/contract/contract.h"

enum { CALLS_MAX = 16, REPEATS = 5 };

/* A test of a row has one server, and one env for each way to close. */
typedef struct stand {
  server_t *server;
  const contract_t *row;
  env_t *env;
  rig_t rig;
  rig_call_t calls[CALLS_MAX];
  size_t objects; /* of the client, before the handle was made */
} stand_t;

static void stand_open(stand_t *stand) {
  memset(stand->calls, 0, sizeof stand->calls);
  belay_client_options_t options = client_options();
  options.timeout_ms = 10000;
  stand->env = env_open_at(server_url(stand->server), &options);
  stand->objects = client_stats(stand->env).objects;
  rig_make(&stand->rig, stand->row, stand->env, stand->env->client);
}

/* Wait until each started call has ended. */
static void expect_all_ended(stand_t *stand) {
  for (unsigned i = 0; i < CALLS_MAX; i++)
    env_until(stand->env, stand->calls[i].ended >= stand->calls[i].begun);
}

static void run(stand_t *stand, unsigned n) {
  assert_error(rig_begin(&stand->rig, &stand->calls[n], n), 0);
  env_until(stand->env, stand->calls[n].ended == stand->calls[n].begun);
}

/* ---- arguments ---- */

static void expect_refused(const env_t *env, int error, const char *detail) {
  assert_error(error, BELAY_EINVAL);
  if (detail != NULL)
    assert_string_equal(belay_detail(env->belay), detail);
}

static void test_arguments(void **state) {
  const contract_t *row = *state;
  belay_client_options_t options = client_options();
  env_t *env = env_open_at("unix:///nonexistent/socket", &options);
  belay_request_t request = {0}, slow_request = {.timeout_ms = 600001};
  rig_t rig;
  if (row->close != NULL) {
    void *none = env;
    expect_refused(env, row->make(NULL, NULL, &none), NULL);
    assert_null(none);
    expect_refused(env, row->make(env->client, NULL, NULL), NULL);
    expect_refused(env, row->close(NULL, true), NULL);
    assert_null(row->data(NULL));
  }
  rig_make(&rig, row, env, env->client);
  if (row->close != NULL)
    assert_ptr_equal(row->data(rig.handle), &rig);
  for (unsigned n = 0; n < row->operations; n++) {
    expect_refused(env, row->begin(NULL, &request, n, true), NULL);
    expect_refused(env, row->begin(rig.handle, NULL, n, true), "request: NULL");
    expect_refused(env, row->begin(rig.handle, &request, n, false), "cb: NULL");
    expect_refused(env, row->begin(rig.handle, &slow_request, n, true),
                   "timeout_ms: not from 1 to 600000");
  }
  assert_int_equal(client_stats(env).calls, 0);
  env_close(env);
}

/* ---- requests ---- */

static void test_request_is_busy(void **state) {
  stand_t stand = {.row = *state, .server = server_start(NULL)};
  stand_open(&stand);
  server_pause(stand.server);
  for (unsigned n = 0; n < stand.row->operations; n++) {
    rig_call_t *call = &stand.calls[n];
    assert_error(rig_begin(&stand.rig, call, n), 0);
    for (unsigned other = 0; other < stand.row->operations; other++)
      assert_error(rig_begin(&stand.rig, call, other), BELAY_ESTATE);
    env_run_for(stand.env, n % 2 * 5); /* not sent yet, and sent */
    assert_error(belay_request_cancel(&call->request), 0);
    env_until(stand.env, call->ended == 1);
    assert_error(call->status, BELAY_ECANCELED);
    assert_error(belay_request_cancel(&call->request), BELAY_ESTATE);
  }
  server_resume(stand.server);
  for (unsigned n = 0; n < stand.row->operations; n++)
    run(&stand, n);
  env_close(stand.env);
  server_stop(stand.server);
}

static void begin_again(rig_call_t *call) {
  if (call->ended < REPEATS)
    assert_error(rig_begin(call->rig, call, call->n), 0);
}

static void test_request_is_free_in_its_callback(void **state) {
  stand_t stand = {.row = *state, .server = server_start(NULL)};
  stand_open(&stand);
  for (unsigned n = 0; n < stand.row->operations; n++) {
    stand.calls[n].on_ended = begin_again;
    assert_error(rig_begin(&stand.rig, &stand.calls[n], n), 0);
    env_until(stand.env, stand.calls[n].ended == REPEATS);
  }
  env_close(stand.env);
  server_stop(stand.server);
}

static void test_server_away(void **state) {
  stand_t stand = {.row = *state, .server = server_start(NULL)};
  stand_open(&stand);
  run(&stand, 0);
  memset(stand.calls, 0, sizeof stand.calls);
  server_kill(stand.server);
  env_run_for(stand.env, 50);
  for (unsigned n = 0; n < stand.row->operations; n++) {
    stand.calls[n].request.timeout_ms = 60;
    assert_error(rig_begin(&stand.rig, &stand.calls[n], n), 0);
  }
  expect_all_ended(&stand);
  for (unsigned n = 0; n < stand.row->operations; n++)
    if ((!stand.row->local || stand.calls[n].status != 0) &&
        stand.calls[n].status != BELAY_EUNREACHABLE)
      fail_msg("operation %u: %s", n, belay_err_name(stand.calls[n].status));
  server_restart(stand.server); /* it knows no script */
  memset(stand.calls, 0, sizeof stand.calls);
  for (unsigned n = 0; n < stand.row->operations; n++)
    run(&stand, n);
  const int status = stand.calls[0].status; /* the server has lost the data of the handle */
  assert_true(status == 0 || status == BELAY_ELOST);
  env_close(stand.env);
  server_stop(stand.server);
}

/* ---- closing ---- */

typedef enum end { END_HANDLE, END_CLIENT, END_ALL, ENDS } end_t;

static int begin_end(rig_t *rig, end_t end) {
  return end == END_HANDLE   ? rig_close(rig)
         : end == END_CLIENT ? begin_client_close(rig->env)
                             : begin_belay_close(rig->env);
}

static bool has_ended(const rig_t *rig, end_t end) {
  return end == END_HANDLE   ? rig->closed == 1
         : end == END_CLIENT ? rig->env->client_closed == 1
                             : rig->env->belay_closed == 1;
}

/* Start all operations, cancel one of them and close. A warm handle has sent them before. */
static void close_with_pending(stand_t *stand, end_t end, unsigned warm) {
  const unsigned operations = stand->row->operations;
  rig_call_t late = {.n = 0};
  if (warm == 1)
    server_pause(stand->server);
  for (unsigned n = 0; n < operations; n++)
    assert_error(rig_begin(&stand->rig, &stand->calls[n], n), 0);
  if (warm == 1)
    env_run_for(stand->env, 10); /* they are sent */
  rig_call_t *canceled = &stand->calls[operations / 2];
  assert_error(belay_request_cancel(&canceled->request), canceled->ended == 0 ? 0 : BELAY_ESTATE);
  assert_error(begin_end(&stand->rig, end), 0);
  if (warm == 1)
    server_resume(stand->server);
  assert_error(begin_end(&stand->rig, end), BELAY_ECLOSING);
  if (stand->row->close != NULL)
    assert_error(rig_close(&stand->rig), BELAY_ECLOSING);
  for (unsigned n = 0; n < operations; n++)
    assert_error(rig_begin(&stand->rig, &late, n), BELAY_ECLOSING);
  env_until(stand->env, has_ended(&stand->rig, end));
  for (unsigned n = 0; n < operations; n++) {
    assert_int_equal(stand->calls[n].ended, stand->calls[n].begun);
    if (warm == 0 || !stand->row->local || stand->calls[n].status != 0)
      assert_error(stand->calls[n].status, BELAY_ECANCELED);
  }
  assert_int_equal(late.ended, 0);
}

/* The calls of another handle continue. */
static void test_close_cancels(void **state) {
  stand_t stand = {.row = *state, .server = server_start(NULL)};
  for (end_t end = stand.row->close != NULL ? END_HANDLE : END_CLIENT; end < ENDS; end++)
    for (unsigned warm = 0; warm < 2; warm++) {
      stand_open(&stand);
      if (warm == 1)
        run(&stand, 0);
      memset(stand.calls, 0, sizeof stand.calls);
      rig_t other;
      rig_call_t its = {.n = 0};
      if (end == END_HANDLE) {
        rig_make(&other, stand.row, stand.env, stand.env->client);
        assert_error(rig_begin(&other, &its, 0), 0);
      }
      close_with_pending(&stand, end, warm);
      if (end == END_HANDLE) {
        env_until(stand.env, its.ended == 1);
        assert_error(its.status, 0);
        assert_error(rig_close(&other), 0);
        env_until(stand.env, other.closed == 1);
        assert_int_equal(client_stats(stand.env).objects, stand.objects);
      }
      env_close(stand.env);
    }
  server_stop(stand.server);
}

static end_t chosen;

static void end_in_callback(rig_call_t *call) {
  call->on_ended = NULL;
  assert_error(begin_end(call->rig, chosen), 0);
}

static void end_in_close(rig_t *rig) {
  assert_error(begin_end(rig, chosen), 0);
}

static void test_callback_closes(void **state) {
  stand_t stand = {.row = *state, .server = server_start(NULL)};
  const unsigned operations = stand.row->operations;
  for (chosen = stand.row->close != NULL ? END_HANDLE : END_CLIENT; chosen < ENDS; chosen++)
    for (unsigned n = 0; n < operations; n++) {
      stand_open(&stand);
      stand.calls[n].on_ended = end_in_callback;
      assert_error(rig_begin(&stand.rig, &stand.calls[n], n), 0);
      rig_call_t *other = &stand.calls[(n + 1) % operations];
      assert_error(rig_begin(&stand.rig, other, other->n = (n + 1) % operations), 0);
      expect_all_ended(&stand);
      env_until(stand.env, has_ended(&stand.rig, chosen));
      env_close(stand.env);
    }
  server_stop(stand.server);
}

static void test_close_callback_closes(void **state) {
  stand_t stand = {.row = *state, .server = server_start(NULL)};
  for (chosen = END_CLIENT; stand.row->close != NULL && chosen < ENDS; chosen++) {
    stand_open(&stand);
    stand.rig.on_closed = end_in_close;
    assert_error(rig_begin(&stand.rig, &stand.calls[0], 0), 0);
    assert_error(rig_close(&stand.rig), 0);
    env_until(stand.env, has_ended(&stand.rig, chosen));
    assert_error(stand.calls[0].status, BELAY_ECANCELED);
    env_close(stand.env);
  }
  server_stop(stand.server);
}

static void add_tests(const contract_t *row) {
  for (; row->name != NULL; row++) {
    test_add(1, test_arguments, row, "%s_arguments", row->name);
    test_add(2, test_request_is_busy, row, "%s_request_is_busy", row->name);
    test_add(3, test_request_is_free_in_its_callback, row, "%s_request_is_free_in_its_callback",
             row->name);
    test_add(3, test_server_away, row, "%s_server_away", row->name);
    test_add(4, test_close_cancels, row, "%s_close_cancels", row->name);
    test_add(5, test_callback_closes, row, "%s_callback_closes", row->name);
    test_add(6, test_close_callback_closes, row, "%s_close_callback_closes", row->name);
  }
}

TEST_ROWS(contract) {
  add_tests(contracts_of_data);
  add_tests(contracts_of_keys);
  add_tests(contracts_of_limits);
}
