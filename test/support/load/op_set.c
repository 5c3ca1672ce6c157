#include "support/load/op_set.h"

#include <stdio.h>

#define TRIES 5
#define TTL_MS (16000 * slow())

/* ---- the detail of a refusal ---- */

static void keep(op_set_t *op_set) {
  snprintf(op_set->detail, sizeof op_set->detail, "%s", belay_detail(op_set->env->belay));
}

static void keep_of_lock(contender_t *contender, event_t event) {
  (void)event;
  keep(contender->arg);
}

static void keep_of_ask(ask_t *ask) {
  keep(ask->arg);
}

static void keep_of_counters(counters_t *counters) {
  keep((op_set_t *)((char *)counters - offsetof(op_set_t, counters)));
}

/* ---- the set ---- */

static contender_t *contender_in(op_set_t *op_set, const char *name) {
  belay_lock_options_t options = lock_options();
  options.ttl_ms = TTL_MS;
  options.watchdog = BELAY_WATCHDOG_ON;
  options.renew_after_ms = TTL_MS / 10;
  contender_t *contender = contender_new(op_set->env, name, &options);
  contender->then = keep_of_lock;
  contender->arg = op_set;
  return contender;
}

op_set_t *op_set_open(server_t *server, const char *user, const char *password) {
  op_set_t *op_set = malloc(sizeof *op_set);
  belay_limit_t limit = bucket_limit(1000, INT64_C(3600000000), 1000);
  belay_client_options_t options = client_options();
  options.timeout_ms = OP_SET_TIMEOUT_MS;
  options.reconnect_max_ms = 50;
  options.username = user;
  options.password = password;
  *op_set = (op_set_t){.server = server, .env = env_open_with(server, &options)};
  op_set->held = contender_in(op_set, "held");
  op_set->leaves = contender_in(op_set, "leaves");
  op_set->acquirer = contender_in(op_set, "wanted");
  op_set->limiter = limiter_new(op_set->env, &limit, 1);
  counters_new(&op_set->counters, op_set->env, NULL);
  op_set->counters.then = keep_of_counters;
  return op_set;
}

void op_set_close(op_set_t *op_set) {
  env_close(op_set->env);
  free(op_set);
}

/* ---- one by one ---- */

int op_set_acquire(op_set_t *op_set) {
  int status = BELAY_EUNKNOWN;
  for (int i = 0; i < TRIES && status == BELAY_EUNKNOWN; i++)
    status = try_lock(op_set->acquirer);
  return status;
}

int op_set_take(op_set_t *op_set) {
  int status = BELAY_EUNKNOWN;
  for (int i = 0; i < TRIES && status == BELAY_EUNKNOWN; i++) {
    ask_t ask = {.then = keep_of_ask, .arg = op_set};
    belay_request_t *request = asked(op_set->env, &ask);
    int begun = belay_limiter_take(op_set->limiter, request, belay_string("k"), 1, on_answer);
    status = begun != 0 ? begun : answer(&ask, begun)->cause;
  }
  return status;
}

int op_set_add(op_set_t *op_set) {
  int status = BELAY_EUNKNOWN;
  for (int i = 0; i < TRIES && status == BELAY_EUNKNOWN; i++) {
    count_t count = {.n = 0};
    status = BEGIN(&op_set->counters, &count, add, KEY("n"), 1, on_result);
    if (status == 0)
      status = end_of_count(&count);
  }
  op_set->added += status == 0;
  return status;
}

static int do_extend(op_set_t *op_set) {
  int status = BELAY_EUNKNOWN;
  for (int i = 0; i < TRIES && status == BELAY_EUNKNOWN; i++)
    status = extend(op_set->held, TTL_MS);
  return status;
}

static int do_release(op_set_t *op_set) {
  return release(op_set->leaves);
}

/* ---- all of them ---- */

void op_set_use_all(op_set_t *op_set) {
  assert_error(try_lock(op_set->held), 0);
  assert_error(try_lock(op_set->leaves), 0);
  assert_error(op_set_acquire(op_set), 0);
  assert_error(release(op_set->acquirer), 0);
  assert_error(op_set_take(op_set), 0);
  assert_error(op_set_add(op_set), 0);
}

void op_set_expect(op_set_t *op_set, const char *name, const op_statuses_t *expected,
                   const char *says) {
  const struct {
    const char *what;
    int (*act)(op_set_t *op_set);
    int status;
  } columns[] = {
      {"acquire", op_set_acquire, expected->acquire},
      {"extend", do_extend, expected->extend},
      {"release", do_release, expected->release},
      {"take", op_set_take, expected->take},
      {"add", op_set_add, expected->add},
  };
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
    op_set->detail[0] = '\0';
    int status = columns[i].act(op_set);
    if (expected->passes && status == BELAY_EUNKNOWN && columns[i].act == do_release)
      continue;
    bool right = status == columns[i].status || (status != 0 && status == expected->also);
    if (!right)
      fail_msg("%s: %s: %s, not %s: \"%s\"", name, columns[i].what, belay_err_name(status),
               belay_err_name(columns[i].status), op_set->detail);
    if (status != 0 && says != NULL && strstr(op_set->detail, says) == NULL)
      fail_msg("%s: %s: \"%s\", without \"%s\"", name, columns[i].what, op_set->detail, says);
    if (status == 0 && columns[i].act == op_set_acquire)
      assert_error(release(op_set->acquirer), 0);
  }
}

/* A link that was refused waits before it knocks again. */
static void sooner_or_later(op_set_t *op_set, int (*act)(op_set_t *op_set)) {
  int64_t began = clock_now();
  while (act(op_set) != 0) {
    if (clock_since_ms(began) > TTL_MS / 2)
      fail_msg("the server does not do it: %s", op_set->detail);
    env_run_for(op_set->env, 5);
  }
}

void op_set_expect_recovered(op_set_t *op_set) {
  sooner_or_later(op_set, op_set_acquire);
  assert_error(release(op_set->acquirer), 0);
  sooner_or_later(op_set, do_extend);
  sooner_or_later(op_set, op_set_take);
  sooner_or_later(op_set, op_set_add);
  assert_int_equal(op_set->held->lost, 0);
  assert_true(is_on_server(op_set->held));
  assert_int_equal(number_at(op_set->server, "belay::counter::{n}"), op_set->added);
  env_until(op_set->env, value_of(op_set->leaves) == NULL);
  assert_null(value_of(op_set->acquirer));
}
