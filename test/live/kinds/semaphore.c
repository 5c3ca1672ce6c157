/* The semaphore on a real server: the limit holds, and permits of killed processes return. */
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/fixtures/env.h"
#include "support/deployments/nodes.h"
#include "support/servers/process.h"

static contender_t *wanting(env_t *env, belay_client_t *client, const char *name, unsigned limit,
                            unsigned permits, const belay_lock_options_t *options) {
  belay_lock_options_t o = options != NULL ? *options : lock_options();
  contender_t *c = contender_blank(env, &o);
  env_must(env, belay_semaphore_new(&client, 1, belay_string(name),
                                    &(belay_semaphore_size_t){.limit = limit, .permits = permits},
                                    &o, &c->lock));
  return c;
}

static contender_t *one_of(env_t *env, unsigned limit, unsigned permits,
                           const belay_lock_options_t *options) {
  return wanting(env, env->client, "pool", limit, permits, options);
}

static belay_lock_options_t fair_options(void) {
  belay_lock_options_t options = lock_options();
  options.fair = true;
  return options;
}

typedef struct answer {
  belay_request_t request;
  belay_semaphore_state_t state;
  int status, ended;
} answer_t;

static void on_state(belay_request_t *request, int status, const belay_semaphore_state_t *state) {
  answer_t *answer = request->data;
  answer->ended++;
  answer->status = status;
  assert_non_null(state);
  assert_true(status == 0 || state->limit + state->used + state->holders + state->waiting == 0);
  if (status == 0)
    answer->state = *state;
}

static void check_state(env_t *env, unsigned limit, unsigned used, unsigned holders,
                        unsigned waiting) {
  answer_t answer = {.ended = 0};
  answer.request.data = &answer;
  assert_error(belay_semaphore_read(env->client, &answer.request, belay_string("pool"), on_state),
               0);
  env_until(env, answer.ended == 1);
  assert_error(answer.status, 0);
  assert_int_equal(answer.state.limit, limit);
  assert_int_equal(answer.state.used, used);
  assert_int_equal(answer.state.holders, holders);
  assert_int_equal(answer.state.waiting, waiting);
}

static void resize(env_t *env, unsigned limit) {
  answer_t answer = {.ended = 0};
  answer.request.data = &answer;
  assert_error(
      belay_semaphore_resize(env->client, &answer.request, belay_string("pool"), limit, on_state),
      0);
  env_until(env, answer.ended == 1);
  assert_error(answer.status, 0);
  assert_int_equal(answer.state.limit, limit);
}

static void await_waiting(env_t *env, const contender_t *c, int64_t n) {
  char queue[1100];
  snprintf(queue, sizeof queue, "%s::queue", key_of(c));
  env_until(env, server_integer(env->server, "ZCARD", queue, NULL) == n);
}

ENV_TEST(permits_all_or_none) {
  contender_t *three = one_of(env, 5, 3, NULL), *two = one_of(env, 5, 2, NULL);
  contender_t *one = one_of(env, 5, 1, NULL), *all = one_of(env, 5, 5, NULL);
  check_state(env, 0, 0, 0, 0);
  assert_error(try_lock(three), 0);
  assert_error(try_lock(all), BELAY_EHELD);
  check_state(env, 0, 3, 1, 0);
  assert_error(try_lock(two), 0);
  assert_error(try_lock(one), BELAY_EHELD);
  check_state(env, 0, 5, 2, 0);
  assert_ok(extend(two, 60000), release(three), try_lock(one), release(two));
  assert_error(try_lock(all), BELAY_EHELD);
  assert_ok(release(one), try_lock(all));
  check_state(env, 0, 5, 1, 0);
  assert_error(close_lock(all), 0);
  expect_keys(env, 0);
}

ENV_TEST(release_wakes_waiters) {
  belay_lock_options_t options = lock_options();
  options.retry_min_ms = options.retry_max_ms = 60000;
  for (int fair = 0; fair < 2; fair++) {
    options.fair = fair;
    options.waiter_ttl_ms = 600000;
    contender_t *holder = one_of(env, 2, 2, &options), *waiter[2];
    assert_error(try_lock(holder), 0);
    for (int i = 0; i < 2; i++) {
      waiter[i] =
          wanting(env, env_connect(env, server_url(env->server), NULL), "pool", 2, 1, &options);
      assert_error(begin_acquire(waiter[i], BELAY_FOREVER), 0);
    }
    env_run_for(env, 300 * slow()); /* they listen */
    assert_ok(release(holder), outcome(waiter[0]), outcome(waiter[1]), release(waiter[0]));
    assert_error(release(waiter[1]), 0);
  }
}

/* A waiter polls when the first permits expire, although no message reports that. */
ENV_TEST(poll_when_permits_expire) {
  int64_t ttl = 800 * slow();
  belay_lock_options_t lasting = with_ttl(600000), brief = with_ttl(ttl);
  lasting.retry_min_ms = lasting.retry_max_ms = 3600000;
  contender_t *a = one_of(env, 3, 2, &lasting), *b = one_of(env, 3, 1, &brief);
  contender_t *c = one_of(env, 3, 1, &lasting);
  assert_ok(try_lock(a), try_lock(b));
  int64_t begun = clock_now();
  assert_error(acquire(c, BELAY_FOREVER), 0);
  assert_between((clock_now() - begun) / MS, ttl / 2, ttl + lag());
  env_until(env, b->lost == 1);
  check_state(env, 0, 3, 2, 0);
}

ENV_TEST(permits_are_renewed) {
  belay_lock_options_t options = watched(kept_ttl());
  contender_t *a = one_of(env, 1, 1, &options), *b = one_of(env, 1, 1, &options);
  assert_error(try_lock(a), 0);
  assert_error(acquire(b, options.ttl_ms * 5 / 4), BELAY_ETIMEDOUT);
  assert_int_equal(a->lost, 0);
  server_do(env->server, "ZREM", key_of(a), "x", NULL);
  server_do(env->server, "DEL", key_of(a), NULL);
  await_loss(a, BELAY_LOST_TAKEN);
}

ENV_TEST(waiter_for_many_permits_is_not_overtaken) {
  belay_lock_options_t options = fair_options();
  contender_t *early[2], *many = one_of(env, 3, 3, &options), *late[2];
  contender_t *plain = one_of(env, 3, 1, NULL);
  for (int i = 0; i < 2; i++) {
    early[i] = one_of(env, 3, 1, &options);
    late[i] = one_of(env, 3, 1, &options);
    assert_error(try_lock(early[i]), 0);
  }
  assert_error(begin_acquire(many, BELAY_FOREVER), 0);
  await_waiting(env, many, 1);
  for (int i = 0; i < 2; i++) {
    assert_error(begin_acquire(late[i], BELAY_FOREVER), 0);
    await_waiting(env, many, 2 + i);
  }
  assert_error(try_lock(plain), BELAY_EHELD); /* nor by those that do not queue */
  check_state(env, 0, 2, 2, 3);
  assert_error(release(early[0]), 0);
  env_run_for(env, 100);
  assert_int_equal(late[0]->ended, 0);
  assert_ok(release(early[1]), outcome(many));
  assert_int_equal(late[0]->ended + late[1]->ended, 0);
  assert_ok(release(many), outcome(late[0]), outcome(late[1]));
  check_state(env, 0, 2, 2, 0);
}

ENV_TEST(limit_is_set) {
  belay_lock_options_t options = fair_options();
  contender_t *c[4], *many = one_of(env, 3, 3, &options);
  for (int i = 0; i < 4; i++)
    c[i] = one_of(env, 2, 1, &options);
  assert_ok(try_lock(c[0]), try_lock(c[1]), begin_acquire(c[2], BELAY_FOREVER));
  await_waiting(env, c[0], 1);
  resize(env, 3); /* and a waiter is woken */
  assert_error(outcome(c[2]), 0);
  check_state(env, 3, 3, 3, 0);
  assert_error(begin_acquire(many, BELAY_FOREVER), 0);
  await_waiting(env, c[0], 1);
  resize(env, 1);
  assert_error(outcome(many), BELAY_EMISMATCH); /* more than there will ever be */
  env_settle(env);
  check_state(env, 1, 3, 3, 0);
  for (int i = 0; i < 3; i++) {
    assert_error(try_lock(c[3]), BELAY_EHELD);
    assert_error(release(c[i]), 0);
  }
  assert_ok(try_lock(c[3]), release(c[3]));
  expect_keys(env, 1);
  assert_between(server_integer(env->server, "PTTL", "belay::semaphore::{pool}::permits", NULL),
                 600000000, 604800000);
}

ENV_TEST(keys_lost_on_server) {
  belay_lock_options_t options = fair_options(), poll = lock_options();
  options.waiter_ttl_ms = 900;
  contender_t *a = one_of(env, 1, 1, &options), *b = one_of(env, 1, 1, &options);
  contender_t *c = one_of(env, 1, 1, &poll), *d = one_of(env, 1, 1, &poll);
  assert_ok(try_lock(a), begin_acquire(b, BELAY_FOREVER));
  await_waiting(env, b, 1);
  server_do(env->server, "SCRIPT", "FLUSH", NULL);
  server_do(env->server, "FLUSHALL", NULL);
  assert_ok(outcome(b), begin_acquire(c, BELAY_FOREVER), begin_acquire(d, BELAY_FOREVER));
  server_kill(env->server);
  server_restart(env->server);
  env_until(env, c->ended == 1);
  server_do(env->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
  server_do(env->server, "FLUSHALL", NULL);
  env_until(env, d->ended == 1);
  server_do(env->server, "SET", key_of(a), "x", NULL);
  env_until(env, d->lost == 1);
  assert_error(acquire(d, 100), BELAY_EWRONGTYPE);
}

enum { PROCESSES = 4, VICTIMS = 4, WORKERS = 12, LIMIT = 7, SECONDS = 5, GRANTS = 300 };

/* A shared count that only the semaphore keeps within the limit. The parent subtracts the share
 * of a killed process after its ttl. */
typedef struct shared {
  volatile int out, most;
  volatile int mine[PROCESSES + VICTIMS];
  volatile int grants;
} shared_t;

typedef struct worker {
  contender_t *contender;
  uv_timer_t timer;
  int permits;
  bool counted;
} worker_t;

static shared_t *shared;
static int self;
static bool over;

static void uncount(worker_t *worker) {
  if (!worker->counted)
    return;
  worker->counted = false;
  __atomic_sub_fetch(&shared->out, worker->permits, __ATOMIC_SEQ_CST);
  __atomic_sub_fetch(&shared->mine[self], worker->permits, __ATOMIC_SEQ_CST);
}

static void give_back(uv_timer_t *timer) {
  worker_t *worker = timer->data;
  uncount(worker);
  (void)begin_release(worker->contender);
}

static void count_in(worker_t *worker) {
  worker->counted = true;
  __atomic_add_fetch(&shared->mine[self], worker->permits, __ATOMIC_SEQ_CST);
  int out = __atomic_add_fetch(&shared->out, worker->permits, __ATOMIC_SEQ_CST);
  for (int most = shared->most; out > most;)
    if (__atomic_compare_exchange_n(&shared->most, &most, out, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST))
      break;
  __atomic_add_fetch(&shared->grants, 1, __ATOMIC_SEQ_CST);
}

static void on_event(contender_t *c, event_t event) {
  worker_t *worker = c->arg;
  if (event == EVENT_LOST)
    uncount(worker);
  if (event != EVENT_ENDED && event != EVENT_LOST)
    return;
  if (belay_lock_remaining_us(c->lock) > 0) {
    count_in(worker);
    uv_timer_start(&worker->timer, give_back, 1, 0);
  } else if (!over) {
    assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  }
}

static int be_worker(const char *url, const char *fd, const char *number, const char *ttl) {
  static worker_t workers[WORKERS];
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(fd), 0);
  assert_ptr_not_equal(shared, MAP_FAILED);
  self = atoi(number);
  env_t *env = env_open_at(url, NULL);
  belay_lock_options_t options = watched(atoi(ttl));
  for (int i = 0; i < WORKERS; i++) {
    worker_t *worker = &workers[i];
    options.fair = i % 2 == 0;
    worker->permits = 1 + i % 3;
    worker->contender =
        wanting(env, env->client, "pool", LIMIT, (unsigned)worker->permits, &options);
    worker->contender->arg = worker;
    worker->contender->then = on_event;
    uv_timer_init(&env->loop, &worker->timer);
    worker->timer.data = worker;
    assert_error(begin_acquire(worker->contender, BELAY_FOREVER), 0);
  }
  env_run_for(env, SECONDS * 1000);
  env_until(env, shared->grants > GRANTS);
  over = true;
  for (int i = 0; i < WORKERS; i++) {
    uncount(&workers[i]);
    uv_close((uv_handle_t *)&workers[i].timer, NULL);
  }
  env_close(env);
  return 0;
}

static void kill_them(process_t *all) {
  for (int i = PROCESSES; i < PROCESSES + VICTIMS; i++) {
    struct timespec pause = {.tv_nsec = (300 + rand() % 300) * 1000000};
    nanosleep(&pause, NULL);
    process_finish(&all[i]);
    /* The killed process uses no permits. The server does not grant them before their ttl is
     * over. */
    __atomic_sub_fetch(&shared->out, shared->mine[i], __ATOMIC_SEQ_CST);
  }
}

TEST(limit_with_killed_processes) {
  server_t *server = server_start(NULL);
  process_t all[PROCESSES + VICTIMS];
  char fd_text[12], number[12], ttl[24];
  int fd = memfd_create("shared", 0);
  assert_int_equal(ftruncate(fd, sizeof(shared_t)), 0);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  snprintf(fd_text, sizeof fd_text, "%d", fd);
  snprintf(ttl, sizeof ttl, "%lld", (long long)(1000 * slow()));
  for (int i = 0; i < PROCESSES + VICTIMS; i++) {
    snprintf(number, sizeof number, "%d", i);
    const char *argv[] = {
        process_self(), "--worker", server_url(server), fd_text, number, ttl, NULL};
    all[i] = process_start(argv);
  }
  kill_them(all);
  for (int i = 0; i < PROCESSES; i++)
    assert_int_equal(process_wait(&all[i]), 0);
  print_message("%d grants, at most %d permits of %d out at once\n", shared->grants, shared->most,
                LIMIT);
  assert_true(shared->most <= LIMIT);
  assert_true(shared->most >= LIMIT - 1);

  env_t *env = env_open_with(server, NULL);
  contender_t *c = one_of(env, LIMIT, LIMIT, NULL);
  assert_ok(acquire(c, 5000 * slow()), release(c));
  munmap(shared, sizeof *shared);
  close(fd);
  env_close(env);
}

static contender_t *over_nodes(nodes_t *nodes, const belay_lock_options_t *options) {
  belay_lock_options_t o = *options;
  contender_t *c = contender_blank(nodes->env, &o);
  assert_error(belay_semaphore_new(nodes->client, 3, belay_string("pool"),
                                   &(belay_semaphore_size_t){.limit = 1, .permits = 1}, &o,
                                   &c->lock),
               0);
  return c;
}

TEST_IN(one_permit_on_several_servers, nodes, nodes_open(3, NULL)) {
  belay_lock_options_t options = unhurried_options(10000);
  options.watchdog = BELAY_WATCHDOG_ON;
  options.renew_after_ms = 1000;
  contender_t *a = over_nodes(nodes, &options), *b = over_nodes(nodes, &options);
  assert_error(try_lock(a), 0);
  nodes_settle(nodes);
  assert_error(try_lock(b), BELAY_EHELD);
  server_do(nodes->server[0], "FLUSHALL", NULL); /* it gets it again there */
  env_until(nodes->env, server_keys(nodes->server[0]) > 1);
  assert_error(try_lock(b), BELAY_EHELD);
  /* A limit that another program stored on the nodes does not count. */
  for (int i = 0; i < 3; i++)
    server_do(nodes->server[i], "HSET", "belay::semaphore::{pool}::permits", "limit", "9", NULL);
  assert_error(try_lock(b), BELAY_EHELD);
  assert_ok(release(a), acquire(b, 5000 * slow()));
}

static int make(env_t *env, size_t n, unsigned limit, unsigned permits,
                const belay_lock_options_t *options) {
  belay_client_t *clients[3] = {env->client};
  belay_lock_t *lock = (belay_lock_t *)env;
  for (size_t i = 1; i < n; i++)
    clients[i] = env_connect(env, "unix:///nowhere", NULL);
  int error = belay_semaphore_new(clients, n, belay_string("pool"),
                                  &(belay_semaphore_size_t){.limit = limit, .permits = permits},
                                  options, &lock);
  if (error == 0)
    assert_error(belay_lock_close(lock, NULL), 0);
  else
    assert_null(lock);
  return error;
}

TEST_IN(invalid_options, env, env_open_at("unix:///nowhere", NULL)) {
  belay_lock_options_t options = lock_options();
  assert_error(make(env, 1, 1, 1, NULL), 0);
  assert_error(make(env, 1, BELAY_SEMAPHORE_MAX, BELAY_SEMAPHORE_MAX, &options), 0);
  assert_each(BELAY_EINVAL, make(env, 1, 0, 1, NULL), make(env, 1, 1, 0, NULL));
  assert_error(make(env, 1, 2, 3, NULL), BELAY_EINVAL);
  assert_error(make(env, 1, BELAY_SEMAPHORE_MAX + 1, 1, NULL), BELAY_EINVAL);
  assert_error(make(env, 3, 1, 1, NULL), 0);
  assert_error(make(env, 3, 2, 1, NULL), BELAY_ESINGLE);
  assert_non_null(strstr(belay_detail(env->belay), "limit"));
  options.fair = true;
  assert_error(make(env, 3, 1, 1, &options), BELAY_ESINGLE);
  options = lock_options();
  options.fencing = true;
  assert_error(make(env, 1, 1, 1, &options), BELAY_EINVAL);
  assert_non_null(strstr(belay_detail(env->belay), "fencing"));
  options = lock_options();
  options.owner = belay_string("me");
  assert_error(make(env, 1, 1, 1, &options), BELAY_EINVAL);
  options = lock_options();
  options.key = belay_string("k");
  assert_error(make(env, 1, 1, 1, &options), BELAY_EINVAL);
}

ENV_TEST(invalid_arguments_of_requests) {
  answer_t answer = {.ended = 0};
  belay_request_t *request = &answer.request;
  request->data = &answer;
  assert_error(belay_semaphore_read(NULL, request, belay_string("pool"), on_state), BELAY_EINVAL);
  assert_error(belay_semaphore_read(env->client, NULL, belay_string("pool"), on_state),
               BELAY_EINVAL);
  assert_error(belay_semaphore_read(env->client, request, belay_bytes(NULL, 4), on_state),
               BELAY_EINVAL);
  assert_error(belay_semaphore_read(env->client, request, belay_string(""), on_state),
               BELAY_EINVAL);
  assert_error(belay_semaphore_read(env->client, request, belay_string("pool"), NULL),
               BELAY_EINVAL);
  assert_error(belay_semaphore_resize(env->client, request, belay_string("pool"), 0, on_state),
               BELAY_EINVAL);
  assert_error(belay_semaphore_resize(env->client, request, belay_string("pool"),
                                      BELAY_SEMAPHORE_MAX + 1, on_state),
               BELAY_EINVAL);
  assert_error(belay_semaphore_read(env->client, request, belay_string("pool"), on_state), 0);
  assert_error(belay_semaphore_read(env->client, request, belay_string("pool"), on_state),
               BELAY_ESTATE);
  assert_error(belay_request_cancel(request), 0);
  env_until(env, answer.ended == 1);
  assert_error(answer.status, BELAY_ECANCELED);
  server_do(env->server, "SET", "belay::semaphore::{pool}::permits", "x", NULL);
  assert_error(belay_semaphore_resize(env->client, request, belay_string("pool"), 1, on_state), 0);
  env_until(env, answer.ended == 2);
  assert_error(answer.status, BELAY_EWRONGTYPE);
}

TEST_ROLE(worker, "--worker") {
  return be_worker(argv[2], argv[3], argv[4], argv[5]);
}
