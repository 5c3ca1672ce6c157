/* Chapter: processes that add to one counter, first without a lock, then with it. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "demo/chapters.h"
#include "demo/child.h"
#include "demo/contender.h"
#include "demo/server.h"

enum { WORKERS = 5, ROUNDS = 6, ADDITIONS = WORKERS * ROUNDS, WORK_MS = 5 };

#define REPORT_WON "won"       /* a worker has the lock; 0 */
#define REPORT_WORKED "worked" /* its work under the lock is done; the counter */

/* Read or write the counter, which is a number in a file. */
static bool access_counter(const char *path, int flags, uint64_t *value) {
  int fd = open(path, flags | O_CLOEXEC, 0600);
  if (fd < 0)
    return false;
  ssize_t n = flags == O_RDONLY ? read(fd, value, sizeof *value) : write(fd, value, sizeof *value);
  return close(fd) == 0 && n == (ssize_t)sizeof *value;
}

/* ---- a worker ---- */

/* lock: NULL: there is none. Returns false after an error. */
static bool work(demo_t *demo, contender_t *lock, const char *path) {
  uint64_t value;
  if (!access_counter(path, O_RDONLY, &value))
    return false;
  DEMO_WAIT(demo, WORK_MS, false);
  /* The question to ask before each step that needs the lock. */
  if (lock != NULL && belay_lock_remaining_us(lock->lock) == 0)
    return false;
  value++;
  if (!access_counter(path, O_WRONLY | O_CREAT, &value))
    return false;
  demo_report(REPORT_WORKED, (int64_t)value);
  return true;
}

void worker_run(demo_t *demo, char **args) {
  contender_t contender, *lock = NULL;
  if (strcmp(args[1], "locked") == 0) {
    lock = &contender;
    if (!contender_open(lock, demo, DEMO_A, BELAY_DEFAULT, true))
      return;
  }
  for (unsigned i = 0; i < ROUNDS; i++) {
    if (lock != NULL && !contender_acquire(lock))
      break;
    demo_report(REPORT_WON, 0);
    if (!work(demo, lock, args[0]))
      demo_trouble(demo, "working", 0);
    if (lock != NULL && !contender_release(lock))
      break;
    DEMO_WAIT(demo, lock != NULL ? 10 + uv_hrtime() % 64 : uv_hrtime() % 8, false);
  }
  if (lock != NULL)
    contender_close(lock);
}

/* ---- the chapter ---- */

typedef struct hold {
  uint64_t from, to; /* when the lock was acquired, and when the work under it was done */
} hold_t;

typedef struct count {
  demo_t *demo;
  struct worker {
    child_t child;
    struct count *count;
    uint64_t won;
  } worker[WORKERS];
  hold_t hold[ADDITIONS];
  unsigned holds;
  bool locked;
} count_t;

static void on_report(child_t *child, const child_report_t *report) {
  struct worker *worker = child->data;
  count_t *count = worker->count;
  if (strcmp(report->word, REPORT_WON) == 0) {
    worker->won = report->at;
  } else if (count->locked && count->holds < ADDITIONS) {
    count->hold[count->holds++] = (hold_t){worker->won, report->at};
    demo_event(count->demo, worker->won, "worker %d has the lock, and counts %" PRId64,
               (int)(worker - count->worker) + 1, report->number);
  }
}

/* Run the workers on a counter of 0. Returns the counter at the end. */
static uint64_t run_workers(count_t *count, demo_t *demo, bool locked) {
  char path[SERVER_FOLDER_MAX + SERVER_FILE_MAX];
  uint64_t value = 0;
  *count = (count_t){.demo = demo, .locked = locked};
  (void)snprintf(path, sizeof path, "%s/counter", demo->folder);
  if (!access_counter(path, O_WRONLY | O_CREAT, &value))
    demo_trouble(demo, "writing to the counter", 0);
  for (unsigned i = 0; i < WORKERS; i++) {
    struct worker *worker = &count->worker[i];
    worker->count = count;
    worker->child = (child_t){.on_report = on_report, .data = worker};
    child_start(demo, &worker->child, "worker",
                (const char *[]){path, locked ? "locked" : "free", NULL});
  }
  demo_run(demo);
  if (!access_counter(path, O_RDONLY, &value))
    demo_trouble(demo, "reading the counter", 0);
  return value;
}

static bool overlap(const count_t *count) {
  for (const hold_t *a = count->hold; a < count->hold + count->holds; a++)
    for (const hold_t *b = count->hold; b < a; b++)
      if (a->from < b->to && b->from < a->to)
        return true;
  return false;
}

void chapter_counter(demo_t *demo) {
  static count_t count;
  uint64_t value = run_workers(&count, demo, false);
  demo_event(demo, 0, "without the lock: %d additions, and the counter says %" PRIu64 "\n",
             ADDITIONS, value);
  value = run_workers(&count, demo, true);
  demo_print("\n");
  demo_fact(demo, value == ADDITIONS && count.holds == ADDITIONS,
            "%d workers x %d rounds with the lock, and the counter says %" PRIu64, WORKERS, ROUNDS,
            value);
  demo_fact(demo, count.holds > 0 && !overlap(&count), "no two of the %u holds overlapped in time",
            count.holds);
}
