#include "support/load/house.h"

#include <stdio.h>

#define TRIES 5
#define TTL_MS (16000 * slow())

/* ---- the detail of a refusal ---- */

static void keep(house_t *house) {
  snprintf(house->detail, sizeof house->detail, "%s", belay_detail(house->env->belay));
}

static void keep_of_lock(contender_t *contender, event_t event) {
  (void)event;
  keep(contender->arg);
}

static void keep_of_ask(ask_t *ask) {
  keep(ask->arg);
}

static void keep_of_till(till_t *till) {
  keep((house_t *)((char *)till - offsetof(house_t, till)));
}

/* ---- the house ---- */

static contender_t *contender_in(house_t *house, const char *name) {
  belay_lock_options_t options = lock_options();
  options.ttl_ms = TTL_MS;
  options.watchdog = BELAY_WATCHDOG_ON;
  options.renew_after_ms = TTL_MS / 10;
  contender_t *contender = contender_new(house->env, name, &options);
  contender->then = keep_of_lock;
  contender->arg = house;
  return contender;
}

house_t *house_open(server_t *server, const char *user, const char *password) {
  house_t *house = malloc(sizeof *house);
  belay_limit_t limit = bucket_limit(1000, INT64_C(3600000000), 1000);
  belay_client_options_t options = client_options();
  options.timeout_ms = HOUSE_TIMEOUT_MS;
  options.reconnect_max_ms = 50;
  options.username = user;
  options.password = password;
  *house = (house_t){.server = server, .env = env_open_with(server, &options)};
  house->held = contender_in(house, "held");
  house->leaves = contender_in(house, "leaves");
  house->acquirer = contender_in(house, "wanted");
  house->limiter = limiter_new(house->env, &limit, 1);
  till_new(&house->till, house->env, NULL);
  house->till.then = keep_of_till;
  return house;
}

void house_close(house_t *house) {
  env_close(house->env);
  free(house);
}

/* ---- one by one ---- */

int house_acquire(house_t *house) {
  int status = BELAY_EUNKNOWN;
  for (int i = 0; i < TRIES && status == BELAY_EUNKNOWN; i++)
    status = try_lock(house->acquirer);
  return status;
}

int house_take(house_t *house) {
  int status = BELAY_EUNKNOWN;
  for (int i = 0; i < TRIES && status == BELAY_EUNKNOWN; i++) {
    ask_t ask = {.then = keep_of_ask, .arg = house};
    belay_request_t *request = asked(house->env, &ask);
    int begun = belay_limiter_take(house->limiter, request, belay_string("k"), 1, on_answer);
    status = begun != 0 ? begun : answer(&ask, begun)->cause;
  }
  return status;
}

int house_add(house_t *house) {
  int status = BELAY_EUNKNOWN;
  for (int i = 0; i < TRIES && status == BELAY_EUNKNOWN; i++) {
    count_t count = {.n = 0};
    status = BEGIN(&house->till, &count, add, KEY("n"), 1, on_result);
    if (status == 0)
      status = end_of_count(&count);
  }
  house->added += status == 0;
  return status;
}

static int do_extend(house_t *house) {
  int status = BELAY_EUNKNOWN;
  for (int i = 0; i < TRIES && status == BELAY_EUNKNOWN; i++)
    status = extend(house->held, TTL_MS);
  return status;
}

static int do_release(house_t *house) {
  return release(house->leaves);
}

/* ---- all of them ---- */

void house_move_in(house_t *house) {
  assert_error(try_lock(house->held), 0);
  assert_error(try_lock(house->leaves), 0);
  assert_error(house_acquire(house), 0);
  assert_error(release(house->acquirer), 0);
  assert_error(house_take(house), 0);
  assert_error(house_add(house), 0);
}

void house_expect(house_t *house, const char *name, const house_statuses_t *expected,
                  const char *says) {
  const struct {
    const char *what;
    int (*act)(house_t *house);
    int status;
  } columns[] = {
      {"acquire", house_acquire, expected->acquire},
      {"extend", do_extend, expected->extend},
      {"release", do_release, expected->release},
      {"take", house_take, expected->take},
      {"add", house_add, expected->add},
  };
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
    house->detail[0] = '\0';
    int status = columns[i].act(house);
    if (expected->passes && status == BELAY_EUNKNOWN && columns[i].act == do_release)
      continue;
    bool right = status == columns[i].status || (status != 0 && status == expected->also);
    if (!right)
      fail_msg("%s: %s: %s, not %s: \"%s\"", name, columns[i].what, belay_err_name(status),
               belay_err_name(columns[i].status), house->detail);
    if (status != 0 && says != NULL && strstr(house->detail, says) == NULL)
      fail_msg("%s: %s: \"%s\", without \"%s\"", name, columns[i].what, house->detail, says);
    if (status == 0 && columns[i].act == house_acquire)
      assert_error(release(house->acquirer), 0);
  }
}

/* A link that was refused waits before it knocks again. */
static void sooner_or_later(house_t *house, int (*act)(house_t *house)) {
  int64_t began = clock_now();
  while (act(house) != 0) {
    if (clock_since_ms(began) > TTL_MS / 2)
      fail_msg("the server does not do it: %s", house->detail);
    env_run_for(house->env, 5);
  }
}

void house_expect_well(house_t *house) {
  sooner_or_later(house, house_acquire);
  assert_error(release(house->acquirer), 0);
  sooner_or_later(house, do_extend);
  sooner_or_later(house, house_take);
  sooner_or_later(house, house_add);
  assert_int_equal(house->held->lost, 0);
  assert_true(is_on_server(house->held));
  assert_int_equal(number_at(house->server, "belay::counter::{n}"), house->added);
  env_until(house->env, value_of(house->leaves) == NULL);
  assert_null(value_of(house->acquirer));
}
