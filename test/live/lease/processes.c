/* Real processes compete for one lock: no increment is lost, and a killed process does not block
 * the others. */
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/fixtures/env.h"
#include "support/base/never.h"
#include "support/servers/process.h"

enum { PROCESSES = 4, LOCKERS = 50, SECONDS = 10 };

/* The shared memory. Only the lock keeps its writers apart. */
typedef struct shared {
  volatile uint64_t value;
  volatile uint64_t changes;               /* updates after one of another process */
  volatile int last;                       /* the process of the last one */
  volatile uint64_t increments[PROCESSES]; /* count of increments that each process made */
} shared_t;

typedef struct locker {
  contender_t *contender;
  uv_timer_t timer;
  uint64_t read;
} locker_t;

static shared_t *shared;
static int self; /* this worker's number */
static bool over;
static unsigned losses;

static void ask(locker_t *locker) {
  if (!over)
    assert_error(begin_acquire(locker->contender, BELAY_FOREVER), 0);
}

static void ask_again(uv_timer_t *timer) {
  ask(timer->data);
}

/* The loop turns between the read and the write, so that another process could interfere. */
static void finish_work(uv_timer_t *timer) {
  locker_t *locker = timer->data;
  if (belay_lock_remaining_us(locker->contender->lock) == 0) {
    losses++;
    ask(locker);
    return;
  }
  shared->value = locker->read + 1;
  shared->increments[self]++;
  shared->changes += shared->last != self;
  shared->last = self;
  assert_error(begin_release(locker->contender), 0);
}

/* The last holder pauses, so that other processes get a turn. */
static void on_event(contender_t *c, event_t event) {
  locker_t *locker = c->arg;
  if (event != EVENT_ENDED || c->status != 0)
    return;
  if (belay_lock_remaining_us(c->lock) > 0) {
    locker->read = shared->value;
    uv_timer_start(&locker->timer, finish_work, 0, 0);
  } else {
    uv_timer_start(&locker->timer, ask_again, 50, 0);
  }
}

static void close_timers(locker_t *lockers) {
  for (int i = 0; i < LOCKERS; i++)
    uv_close((uv_handle_t *)&lockers[i].timer, NULL);
}

static bool all_idle(const locker_t *lockers) {
  for (int i = 0; i < LOCKERS; i++)
    if (lockers[i].contender->ended < lockers[i].contender->begun ||
        belay_lock_remaining_us(lockers[i].contender->lock) > 0)
      return false;
  return true;
}

static int be_worker(const char *url, const char *fd, const char *number) {
  static locker_t lockers[LOCKERS];
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(fd), 0);
  assert_ptr_not_equal(shared, MAP_FAILED);
  self = atoi(number);
  env_t *env = env_open_at(url, NULL);
  for (int i = 0; i < LOCKERS; i++) {
    locker_t *locker = &lockers[i];
    contender_t *c = locker->contender = contender_new(env, "counter", NULL);
    c->arg = locker;
    c->then = on_event;
    uv_timer_init(&env->loop, &locker->timer);
    locker->timer.data = locker;
    ask(locker);
  }
  env_run_for(env, SECONDS * 1000);
  over = true;
  for (int i = 0; i < LOCKERS; i++)
    (void)cancel(lockers[i].contender); /* those who wait */
  env_until(env, all_idle(lockers));
  close_timers(lockers);
  env_close(env);
  printf("%u\n", losses);
  return 0;
}

TEST_ON(no_lost_updates, server, server_start(NULL)) {
  process_t workers[PROCESSES];
  char fd_text[12], number[12], line[64];
  int fd = memfd_create("shared", 0);
  assert_int_equal(ftruncate(fd, sizeof(shared_t)), 0);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  snprintf(fd_text, sizeof fd_text, "%d", fd);
  for (int i = 0; i < PROCESSES; i++) {
    snprintf(number, sizeof number, "%d", i);
    const char *argv[] = {process_self(), "--worker", server_url(server), fd_text, number, NULL};
    workers[i] = process_start(argv);
  }
  uint64_t sum = 0;
  unsigned lost = 0;
  for (int i = 0; i < PROCESSES; i++) {
    assert_true(process_read_line(&workers[i], line, sizeof line));
    lost += strcmp(line, "0") != 0;
    assert_int_equal(process_wait(&workers[i]), 0);
    sum += shared->increments[i];
  }
  print_message("%llu updates by %d lockers in %d s, %llu after another process's\n",
                (unsigned long long)sum, PROCESSES * LOCKERS, SECONDS,
                (unsigned long long)shared->changes);
  assert_never(lost == 0 && shared->value != sum);
  assert_int_equal(lost, 0);
  for (int i = 0; i < PROCESSES; i++)
    assert_true(shared->increments[i] > 0);
  assert_true(shared->changes > 50);
  assert_int_equal(server_keys(server), 0);
  munmap(shared, sizeof *shared);
  close(fd);
}

static int be_holder(const char *url, const char *ttl) {
  env_t *env = env_open_at(url, NULL);
  belay_lock_options_t options = lock_options();
  options.ttl_ms = atoi(ttl);
  options.watchdog = BELAY_WATCHDOG_ON;
  contender_t *c = contender_holding(env, "door", &options);
  puts("held");
  fflush(stdout);
  belay_lock_ref(c->lock);
  uv_run(&env->loop, UV_RUN_DEFAULT);
  return 1; /* it was to be killed */
}

ENV_TEST(killed_holder_blocks_for_its_ttl) {
  int64_t ttl = 700 * slow();
  char ttl_text[24], line[64];
  contender_t *waiter = contender_new(env, "door", NULL);
  snprintf(ttl_text, sizeof ttl_text, "%lld", (long long)ttl);
  const char *argv[] = {process_self(), "--holder", server_url(env->server), ttl_text, NULL};
  process_t holder = process_start(argv);
  assert_true(process_read_line(&holder, line, sizeof line));
  assert_error(acquire(waiter, 2 * ttl), BELAY_ETIMEDOUT); /* alive, it keeps it */

  assert_error(begin_acquire(waiter, BELAY_FOREVER), 0);
  env_run_for(env, 50);
  process_kill(&holder, SIGKILL);
  int64_t killed = clock_now();
  assert_error(outcome(waiter), 0);
  int64_t took = (waiter->ended_time - killed) / MS;
  print_message("inherited %lld ms after the kill, the ttl being %lld ms\n", (long long)took,
                (long long)ttl);
  assert_between(took, ttl / 3, ttl + lag()); /* renewed at least each third of it */
  assert_true(is_on_server(waiter));
  assert_int_equal(process_wait(&holder), -SIGKILL);
}

TEST_ROLE(worker, "--worker") {
  return be_worker(argv[2], argv[3], argv[4]);
}

TEST_ROLE(holder, "--holder") {
  return be_holder(argv[2], argv[3]);
}
