/* The fair lock on a real server: first come, first served, and the cost of dead waiters. */
#include <stdio.h>

#include "support/servers/acl.h"
#include "support/fixtures/env.h"

static belay_lock_options_t fair_options(int64_t waiter_ttl_ms) {
  belay_lock_options_t options = lock_options();
  options.fair = true;
  options.waiter_ttl_ms = waiter_ttl_ms;
  return options;
}

static const char *queue_of(const contender_t *c) {
  static char key[1100];
  snprintf(key, sizeof key, "%s::queue", key_of(c));
  return key;
}

static const char *alive_of(const contender_t *c) {
  static char key[1100];
  snprintf(key, sizeof key, "%s::alive", key_of(c));
  return key;
}

static int64_t queue_len(const contender_t *c) {
  return server_integer(c->env->server, "ZCARD", queue_of(c), NULL);
}

/* Begins to wait, and returns when that is known on the server. */
static void queue_up(contender_t *c) {
  int64_t before = queue_len(c);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_until(c->env, queue_len(c) == before + 1);
}

/* Another client is first in the queue and keeps its place for `ms`. */
static void add_foreign_waiter(const contender_t *c, int64_t ms) {
  char until[24];
  const resp_t *time = server_ask(c->env->server, "TIME", NULL);
  long long now = atoll(time->items[0]->str) * 1000 + atoll(time->items[1]->str) / 1000;
  snprintf(until, sizeof until, "%lld", now + (long long)ms);
  server_do(c->env->server, "ZADD", queue_of(c), "1", "foreign", NULL);
  server_do(c->env->server, "ZADD", alive_of(c), until, "foreign", NULL);
}

enum { CONTENDERS = 8 };

static void expect_order(const belay_lock_options_t *options, bool through_clients) {
  env_t *env = env_open(NULL);
  contender_t *c[CONTENDERS];
  for (int i = 0; i < CONTENDERS; i++) {
    belay_client_t *client =
        through_clients && i > 0 ? env_connect(env, server_url(env->server), NULL) : env->client;
    c[i] = contender_of(env, client, "door", options);
  }
  assert_error(try_lock(c[0]), 0);
  for (int i = 1; i < CONTENDERS; i++)
    queue_up(c[i]);
  uint64_t fence = belay_lock_fence(c[0]->lock);
  for (int i = 0; i + 1 < CONTENDERS; i++) {
    assert_error(begin_release(c[i]), 0);
    env_until(env, belay_lock_remaining_us(c[i + 1]->lock) > 0);
    assert_true(is_on_server(c[i + 1]));
    assert_int_equal(queue_len(c[0]), CONTENDERS - 2 - i);
    if (options->fencing)
      assert_true(belay_lock_fence(c[i + 1]->lock) > fence);
    fence = belay_lock_fence(c[i + 1]->lock);
  }
  assert_error(release(c[CONTENDERS - 1]), 0);
  expect_keys(env, options->fencing);
  env_close(env);
}

TEST(order_of_arrival) {
  belay_lock_options_t options = fair_options(3000 * slow());
  expect_order(&options, false);
  expect_order(&options, true);
}

TEST(order_of_arrival_polling) {
  belay_lock_options_t options = fair_options(3000 * slow());
  options.wakeup = BELAY_WAKE_POLL;
  expect_order(&options, true);
}

TEST(order_of_arrival_fenced) {
  belay_lock_options_t options = fair_options(3000 * slow());
  options.fencing = true;
  expect_order(&options, true);
}

ENV_TEST(release_wakes_first_waiter_only) {
  belay_lock_options_t options = fair_options(600000);
  options.retry_min_ms = options.retry_max_ms = 20000 * slow();
  contender_t *c[CONTENDERS];
  for (int i = 0; i < CONTENDERS; i++)
    c[i] = contender_of(env, env_connect(env, server_url(env->server), NULL), "door", &options);
  assert_error(try_lock(c[0]), 0);
  for (int i = 1; i < CONTENDERS; i++)
    queue_up(c[i]);
  env_run_for(env, 300 * slow()); /* all have asked again, when they had begun to listen */
  env_settle(env);
  int64_t calls = server_calls(env->server, "evalsha") + server_calls(env->server, "eval");
  for (int i = 0; i + 1 < CONTENDERS; i++) {
    assert_error(begin_release(c[i]), 0);
    env_until(env, belay_lock_remaining_us(c[i + 1]->lock) > 0);
  }
  env_settle(env);
  int64_t more = server_calls(env->server, "evalsha") + server_calls(env->server, "eval") - calls;
  assert_between(more, 2 * (CONTENDERS - 1),
                 3 * (CONTENDERS - 1) + 1); /* a NOSCRIPT is answered by an EVAL */
}

ENV_TEST(try_does_not_queue) {
  belay_lock_options_t options = fair_options(3000 * slow());
  contender_t *c = contender_new(env, "door", &options);
  add_foreign_waiter(c, 60000);
  assert_error(try_lock(c), BELAY_EHELD);
  assert_int_equal(queue_len(c), 1);
  assert_error(acquire(c, 100), BELAY_ETIMEDOUT);
  env_settle(env);
  assert_int_equal(queue_len(c), 1);
  server_do(env->server, "DEL", queue_of(c), NULL);
  assert_error(try_lock(c), 0);
}

typedef int (*leaving_t)(contender_t *c);

/* The first waiter leaves while the lock is free: the next one acquires it soon. */
static void leave_queue(leaving_t leave) {
  env_t *env = env_open(NULL);
  belay_lock_options_t options = fair_options(600000);
  options.retry_min_ms = options.retry_max_ms = 20000 * slow();
  contender_t *holder = contender_holding(env, "door", &options);
  contender_t *first = contender_new(env, "door", &options);
  contender_t *next = contender_new(env, "door", &options);
  queue_up(first);
  queue_up(next);
  env_run_for(env, 200 * slow());
  server_do(env->server, "DEL", key_of(holder), NULL); /* without a message to waiters */
  int64_t left = clock_now();
  assert_ok(leave(first), outcome(next));
  assert_between((clock_now() - left) / MS, 0, 5000 * slow());
  env_settle(env);
  assert_int_equal(queue_len(holder), 0);
  env_close(env);
}

TEST(leaving_waiter_wakes_next) {
  leave_queue(cancel);
  leave_queue(begin_close);
}

ENV_TEST(leaving_waiter_leaves_no_keys) {
  belay_lock_options_t options = fair_options(600000);
  contender_t *a = contender_holding(env, "door", &options),
              *b = contender_new(env, "door", &options);
  contender_t *c = contender_new(env, "door", &options);
  queue_up(b);
  queue_up(c);
  assert_error(cancel(b), 0);
  assert_error(outcome(b), BELAY_ECANCELED);
  env_until(env, queue_len(a) == 1);
  assert_error(close_lock(c), 0);
  assert_error(outcome(c), BELAY_ECANCELED);
  assert_error(close_lock(a), 0);
  expect_keys(env, 0);
}

ENV_TEST(dead_waiter_blocks_for_its_place) {
  int64_t place = 700 * slow();
  belay_lock_options_t options = fair_options(600000);
  contender_t *c = contender_new(env, "door", &options);
  add_foreign_waiter(c, place);
  int64_t begun = clock_now();
  assert_error(acquire(c, BELAY_FOREVER), 0);
  assert_between((clock_now() - begun) / MS, place - 50, place + 400 * slow());
}

ENV_TEST(excludes_plain_lock) {
  belay_lock_options_t options = fair_options(3000 * slow());
  contender_t *fair = contender_holding(env, "door", &options);
  contender_t *plain = contender_new(env, "door", NULL);
  assert_error(try_lock(plain), BELAY_EHELD);
  assert_ok(extend(fair, 60000), release(fair), try_lock(plain));
  assert_error(begin_acquire(fair, BELAY_FOREVER), 0);
  env_run_for(env, 50);
  assert_ok(release(plain), outcome(fair));
  server_do(env->server, "SET", key_of(fair), "stolen", NULL);
  assert_error(release(fair), BELAY_ENOTOWNER);
  assert_error(acquire(fair, 60), BELAY_ETIMEDOUT);
  server_do(env->server, "DEL", key_of(fair), NULL);
  server_do(env->server, "LPUSH", key_of(fair), "x", NULL);
  assert_error(acquire(fair, 1000), BELAY_EWRONGTYPE);
  server_do(env->server, "DEL", key_of(fair), NULL);
  server_do(env->server, "SET", queue_of(fair), "x", NULL);
  assert_error(acquire(fair, 1000), BELAY_EWRONGTYPE);
}

/* Waiters register again after a loss of data: each of them acquires the lock. */
ENV_TEST(queue_lost_on_server) {
  belay_lock_options_t options = fair_options(900);
  contender_t *c[4];
  for (int i = 0; i < 4; i++)
    c[i] = contender_new(env, "door", &options);
  assert_error(try_lock(c[0]), 0);
  for (int i = 1; i < 4; i++)
    queue_up(c[i]);
  server_do(env->server, "SCRIPT", "FLUSH", NULL);
  server_do(env->server, "FLUSHALL", NULL);
  env_until(env, c[1]->ended + c[2]->ended + c[3]->ended == 1);
  server_kill(env->server);
  server_restart(env->server);
  env_until(env, c[1]->ended + c[2]->ended + c[3]->ended >= 2);
  server_do(env->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
  server_do(env->server, "FLUSHALL", NULL);
  env_until(env, c[1]->ended + c[2]->ended + c[3]->ended == 3);
}

ENV_TEST(full_queue) {
  static const char fill[] = "for i = 1, 100000 do redis.call('ZADD', KEYS[1], i, 'x' .. i) "
                             "redis.call('ZADD', KEYS[2], ARGV[1], 'x' .. i) end return 1";
  belay_lock_options_t options = fair_options(3000);
  contender_t *c = contender_new(env, "door", &options);
  char queue[1100];
  snprintf(queue, sizeof queue, "%s", queue_of(c));
  server_do(env->server, "EVAL", fill, "2", queue, alive_of(c), "9999999999999", NULL);
  assert_error(acquire(c, prompt_ms()), BELAY_EBUSY);
}

static int make(env_t *env, size_t n, const belay_lock_options_t *options) {
  belay_client_t *clients[3] = {env->client};
  belay_lock_t *lock;
  for (size_t i = 1; i < n; i++)
    clients[i] = env_connect(env, "unix:///nowhere", NULL);
  int error = n == 1 ? belay_lock_new(clients[0], belay_string("door"), options, &lock)
                     : belay_redlock_new(clients, n, belay_string("door"), options, &lock);
  if (error == 0)
    assert_error(belay_lock_close(lock, NULL), 0);
  else
    assert_null(lock);
  return error;
}

TEST_IN(invalid_options, env, env_open_at("unix:///nowhere", NULL)) {
  belay_lock_options_t options = fair_options(3000);
  assert_error(make(env, 1, &options), 0);
  assert_error(make(env, 3, &options), BELAY_ESINGLE);
  assert_non_null(strstr(belay_detail(env->belay), "fair"));
  options.owner = belay_string("me");
  assert_error(make(env, 1, &options), BELAY_EINVAL);
  options = fair_options(3000);
  options.key = belay_string("k");
  assert_error(make(env, 1, &options), BELAY_EINVAL);
  options = fair_options(99);
  assert_error(make(env, 1, &options), BELAY_EINVAL);
}
