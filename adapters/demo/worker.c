/* A worker: a process with a loop, a client and a lock of its own, as any program that uses belay.
 *
 *    ask --> (won) --> work --> (worked) --> release --> (released) --> rest --+--> finish
 *     ^                                                                        |
 *     +---------------------------- rounds left -------------------------------+
 */
#include "demo/worker.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "belay.h"
#include "demo/child.h"

#define WAIT_MAX_MS 20000

typedef struct worker {
  uv_loop_t loop;
  uv_timer_t timer;
  belay_t *belay;
  belay_client_t *client;
  belay_lock_t *lock; /* NULL: it works without one */
  const char *file;   /* NULL: there is nothing to count */
  uint64_t value;     /* the counter, as it was read */
  uint64_t rounds;    /* that are left */
  uint64_t work_ms;
  uint64_t calls; /* of the client's, when it asked for the lock */
  int status;     /* what the process will return */
} worker_t;

/* ---- what it says -------------------------------------------------------------------------------------- */

void news_tell(const char *word, int64_t number) {
  if (printf("%s %" PRIu64 " %" PRId64 "\n", word, uv_hrtime(), number) < 0 || fflush(stdout) != 0)
    exit(1); /* nobody is listening any more */
}

bool news_parse(const char *line, news_t *out) {
  char end;
  return sscanf(line, "%15s %" SCNu64 " %" SCNd64 "%c", out->word, &out->at, &out->number, &end) ==
         3;
}

/* ---- the counter --------------------------------------------------------------------------------------- */

bool counter_read(const char *path, uint64_t *value) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  bool well = read(fd, value, sizeof *value) == (ssize_t)sizeof *value;
  return close(fd) == 0 && well;
}

bool counter_write(const char *path, uint64_t value) {
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0)
    return false;
  bool well = write(fd, &value, sizeof value) == (ssize_t)sizeof value;
  return close(fd) == 0 && well;
}

/* ---- the rounds ---------------------------------------------------------------------------------------- */

static void ask(worker_t *worker);

static void finish(worker_t *worker) {
  uv_close((uv_handle_t *)&worker->timer, NULL);
  if (worker->belay != NULL && belay_close(worker->belay, NULL) != 0)
    worker->status = 1;
}

static void fail(worker_t *worker, int error) {
  news_tell(NEWS_FAILED, error);
  worker->status = 1;
  finish(worker);
}

static void sleep_then(worker_t *worker, uint64_t ms, uv_timer_cb next) {
  if (uv_timer_start(&worker->timer, next, ms, 0) != 0)
    fail(worker, 0);
}

static void on_rested(uv_timer_t *timer) {
  ask(timer->data);
}

static void rest(worker_t *worker) {
  if (--worker->rounds == 0) {
    finish(worker);
    return;
  }
  unsigned char random = 0;
  (void)uv_random(NULL, NULL, &random, sizeof random, 0, NULL); /* any number will do */
  sleep_then(worker, worker->lock != NULL ? 10 + random / 4 : random / 32, on_rested);
}

static void on_released(belay_lock_t *lock, int status) {
  worker_t *worker = belay_lock_data(lock);
  if (status != 0) {
    fail(worker, status);
    return;
  }
  news_tell(NEWS_RELEASED, 0);
  rest(worker);
}

static void on_worked(uv_timer_t *timer) {
  worker_t *worker = timer->data;
  /* The question to ask before each step that needs the lock. */
  if (worker->lock != NULL && belay_lock_remaining_us(worker->lock) == 0) {
    fail(worker, BELAY_ENOTOWNER);
    return;
  }
  if (worker->file != NULL && !counter_write(worker->file, ++worker->value)) {
    fail(worker, 0);
    return;
  }
  news_tell(NEWS_WORKED, (int64_t)worker->value);
  if (worker->lock == NULL) {
    rest(worker);
    return;
  }
  int error = belay_lock_release(worker->lock, BELAY_DEFAULT, on_released);
  if (error != 0)
    fail(worker, error);
}

static void work(worker_t *worker) {
  if (worker->file != NULL && !counter_read(worker->file, &worker->value))
    fail(worker, 0);
  else
    sleep_then(worker, worker->work_ms, on_worked);
}

static uint64_t calls_of(const worker_t *worker) {
  belay_client_stats_t stats;
  belay_client_stats(worker->client, &stats);
  return stats.calls;
}

static void on_acquired(belay_lock_t *lock, int status) {
  worker_t *worker = belay_lock_data(lock);
  if (status != 0) {
    fail(worker, status);
    return;
  }
  news_tell(NEWS_WON, (int64_t)(calls_of(worker) - worker->calls));
  work(worker);
}

static void ask(worker_t *worker) {
  if (worker->lock == NULL) {
    work(worker);
    return;
  }
  news_tell(NEWS_ASKS, 0);
  worker->calls = calls_of(worker);
  int error = belay_lock_acquire(worker->lock, WAIT_MAX_MS, on_acquired);
  if (error != 0)
    fail(worker, error);
}

/* ---- from start to end --------------------------------------------------------------------------------- */

/* The connection is up: from here on the times that are told are those of the lock alone. */
static void on_connected(belay_client_t *client, int status) {
  worker_t *worker = belay_client_data(client);
  if (status != 0)
    fail(worker, status);
  else
    ask(worker);
}

void worker_client_options(belay_client_options_t *options, const char *parts[2], const char *run,
                           const char *owner) {
  parts[0] = WORKER_NAMESPACE;
  parts[1] = run;
  belay_client_options_init(options);
  options->namespace_parts = parts;
  options->namespace_count = 2;
  options->client_name = WORKER_NAMESPACE;
  options->owner = owner;
}

/* belay, a client, the lock: 0 or an error. */
static int open_lock(worker_t *worker, const char *run, const char *owner, const char *name,
                     int64_t ttl_ms) {
  belay_client_options_t client;
  belay_lock_options_t lock;
  const char *parts[2];
  worker_client_options(&client, parts, run, owner);
  belay_lock_options_init(&lock);
  if (ttl_ms > 0) {
    lock.ttl_ms = ttl_ms;
    lock.watchdog = BELAY_WATCHDOG_OFF;
  }
  lock.data = worker;
  int error = belay_open(&worker->loop, NULL, &worker->belay);
  if (error == 0)
    error = belay_connect(worker->belay, getenv(WORKER_URL), &client, &worker->client);
  if (error != 0)
    return error;
  belay_client_set_data(worker->client, worker);
  return belay_lock_new(worker->client, name, strlen(name), &lock, &worker->lock);
}

static const char *optional(const char *argument) {
  return strcmp(argument, "-") == 0 ? NULL : argument;
}

int run_worker(int argc, char **argv) {
  if (argc != 10)
    return 2;
  child_die_with(argv[2]);
  const char *run = argv[3], *owner = argv[4], *name = optional(argv[5]);
  worker_t worker = {
      .rounds = strtoull(argv[7], NULL, 10),
      .work_ms = strtoull(argv[8], NULL, 10),
      .file = optional(argv[9]),
  };
  if (uv_loop_init(&worker.loop) != 0)
    return 1;
  (void)uv_timer_init(&worker.loop, &worker.timer); /* never fails */
  worker.timer.data = &worker;
  int error = 0;
  if (name != NULL) {
    error = open_lock(&worker, run, owner, name, strtoll(argv[6], NULL, 10));
    if (error == 0)
      error = belay_client_ping(worker.client, BELAY_DEFAULT, on_connected);
  } else {
    ask(&worker);
  }
  if (error != 0)
    fail(&worker, error);
  (void)uv_run(&worker.loop, UV_RUN_DEFAULT);
  return uv_loop_close(&worker.loop) != 0 ? 1 : worker.status;
}
