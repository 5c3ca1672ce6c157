/* belay's locks as subjects: one handle for each runner, of a name of its own or of one for all. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "load/subjects/belay.h"

enum { PERMITS = 10, NAME_SIZE = 32 };
#define TEST_S 0.002

typedef struct locks {
  host_t host;
  uint64_t asked, served; /* of those who queue */
} locks_t;

static void on_released(belay_lock_t *lock, int status) {
  must(status, "release");
  driver_done(belay_lock_data(lock));
}

static void release(belay_lock_t *lock) {
  must(belay_lock_release(lock, BELAY_DEFAULT, on_released), "release");
}

static void on_held(belay_lock_t *lock, int status) {
  must(status, "acquire");
  release(lock);
}

static void begin(runner_t *runner) {
  must(belay_lock_try(runner->own, on_held), "acquire");
}

/* And holds it for a while. */
static void on_held_long_enough(runner_t *runner) {
  release(runner->own);
}

/* Beforehand, when all want it at once, for long enough that one who should not have it would have
 * it, too. */
static void hold(belay_lock_t *lock, int status, int most) {
  runner_t *runner = belay_lock_data(lock);
  must(status, "acquire");
  driver_hold(runner, most, runner->began == 0 ? TEST_S : runner->driver->job->hold,
              on_held_long_enough);
}

static void on_held_alone(belay_lock_t *lock, int status) {
  hold(lock, status, 1);
}

static void on_permitted(belay_lock_t *lock, int status) {
  hold(lock, status, PERMITS);
}

/* Grants must come in the order of the requests. */
static void on_turn(belay_lock_t *lock, int status) {
  const runner_t *runner = belay_lock_data(lock);
  locks_t *locks = runner->driver->own;
  if (runner->ticket != locks->served++)
    bench_die("number %llu of a queue comes after %llu", (unsigned long long)runner->ticket,
              (unsigned long long)locks->served - 1);
  on_held_alone(lock, status);
}

/* Others want it too. */
static void begin_contending(runner_t *runner) {
  must(belay_lock_acquire(runner->own, BELAY_FOREVER, on_held_alone), "acquire");
}

static void begin_permitted(runner_t *runner) {
  must(belay_lock_acquire(runner->own, BELAY_FOREVER, on_permitted), "acquire");
}

static void begin_queueing(runner_t *runner) {
  locks_t *locks = runner->driver->own;
  runner->ticket = locks->asked++;
  must(belay_lock_acquire(runner->own, BELAY_FOREVER, on_turn), "acquire");
}

static void begin_testing_permits(runner_t *runner) {
  (void)driver_next_key(runner->driver);
  begin_permitted(runner);
}

static void begin_testing_queue(runner_t *runner) {
  (void)driver_next_key(runner->driver);
  begin_queueing(runner);
}

static void on_extended(belay_lock_t *lock, int status) {
  must(status, "extend");
  driver_done(belay_lock_data(lock));
}

/* Takes it the first time, and renews it from then on. */
static void on_kept(belay_lock_t *lock, int status) {
  must(status, "acquire");
  driver_done(belay_lock_data(lock));
}

static void begin_renewing(runner_t *runner) {
  belay_lock_t *lock = runner->own;
  if (belay_lock_remaining_us(lock) > 0)
    must(belay_lock_extend(lock, BELAY_DEFAULT, BELAY_DEFAULT, on_extended), "extend");
  else
    must(belay_lock_try(lock, on_kept), "acquire");
}

/* Beforehand, each once. */
static void begin_keeping(runner_t *runner) {
  (void)driver_next_key(runner->driver);
  begin_renewing(runner);
}

static void open_locks(driver_t *driver, belay_lock_options_t *options) {
  locks_t *locks = driver->own = bench_alloc(1, sizeof *locks);
  host_open(&locks->host, driver);
  belay_lock_options_init(options);
  options->ttl_ms = 600000;
  options->watchdog = BELAY_WATCHDOG_OFF;
  options->timeout_ms = 30000;
  options->drift_ms = 1000;
}

static void name_of(const runner_t *runner, char name[NAME_SIZE], size_t *len) {
  *len = (size_t)snprintf(name, NAME_SIZE, "lock-%07u", runner->number);
}

typedef int make_fn(host_t *host, runner_t *runner, const belay_lock_options_t *options,
                    belay_lock_t **out);

static void make_all(driver_t *driver, belay_lock_options_t *options, make_fn *make) {
  host_t *host = driver->own;
  for (unsigned i = 0; i < driver->job->concurrency; i++) {
    runner_t *runner = &driver->runners[i];
    belay_lock_t *lock;
    options->data = runner;
    must(make(host, runner, options, &lock), "lock");
    runner->own = lock;
  }
}

static int make_own(host_t *host, runner_t *runner, const belay_lock_options_t *options,
                    belay_lock_t **out) {
  char name[NAME_SIZE];
  size_t len;
  name_of(runner, name, &len);
  if (host->n > 1)
    return belay_redlock_new(host->clients, host->n, belay_bytes(name, len), options, out);
  return belay_lock_new(host->clients[0], belay_bytes(name, len), options, out);
}

static int make_shared(host_t *host, runner_t *runner, const belay_lock_options_t *options,
                       belay_lock_t **out) {
  (void)runner;
  return belay_lock_new(host->clients[0], belay_string("contended"), options, out);
}

static int make_semaphore(host_t *host, runner_t *runner, const belay_lock_options_t *options,
                          belay_lock_t **out) {
  (void)runner;
  return belay_semaphore_new(host->clients, 1, belay_string("contended"),
                             &(belay_semaphore_size_t){.limit = PERMITS, .permits = 1}, options,
                             out);
}

static void open_own(driver_t *driver) {
  belay_lock_options_t options;
  open_locks(driver, &options);
  options.quarantine = BELAY_QUARANTINE_OFF; /* the servers have just been started */
  make_all(driver, &options, make_own);
}

static void open_semaphore(driver_t *driver) {
  belay_lock_options_t options;
  open_locks(driver, &options);
  make_all(driver, &options, make_semaphore);
}

static void open_fair(driver_t *driver) {
  belay_lock_options_t options;
  open_locks(driver, &options);
  options.fair = true;
  make_all(driver, &options, make_shared);
}

static void open_contention(driver_t *driver) {
  belay_lock_options_t options;
  open_locks(driver, &options);
  make_all(driver, &options, make_shared);
}

static void close_locks(driver_t *driver) {
  host_close(driver, driver->own, driver->job->concurrency);
}

const doer_t belay_lock = {open_own, begin, close_locks, NULL};
const doer_t belay_redlock = {open_own, begin, close_locks, NULL};
const doer_t belay_contention = {open_contention, begin_contending, close_locks, NULL};
const doer_t belay_renew = {open_own, begin_renewing, close_locks, begin_keeping};
const doer_t belay_semaphore = {open_semaphore, begin_permitted, close_locks,
                                begin_testing_permits};
const doer_t belay_fair = {open_fair, begin_queueing, close_locks, begin_testing_queue};
