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

#define NEWS_ASKS "asks"     /* a worker asks for the lock; 0 */
#define NEWS_WON "won"       /* it has the lock; how often it asked the server */
#define NEWS_WORKED "worked" /* its work under the lock is done; the counter */

/* The counter is a number in a file. */
static bool counter_read(const char *path, uint64_t *value) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  bool well = read(fd, value, sizeof *value) == (ssize_t)sizeof *value;
  return close(fd) == 0 && well;
}

static bool counter_write(const char *path, uint64_t value) {
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0)
    return false;
  bool well = write(fd, &value, sizeof value) == (ssize_t)sizeof value;
  return close(fd) == 0 && well;
}

/* ---- a worker ---- */

static int64_t calls_of(const demo_t *demo) {
  belay_client_stats_t stats;
  belay_client_stats(demo->client[DEMO_A], &stats);
  return (int64_t)stats.calls;
}

static bool take(contender_t *lock) {
  int64_t calls = calls_of(lock->demo);
  demo_tell(NEWS_ASKS, 0);
  if (!contender_take(lock))
    return false;
  demo_tell(NEWS_WON, calls_of(lock->demo) - calls);
  return true;
}

/* lock: NULL: there is none. Returns false after an error. */
static bool work(demo_t *demo, contender_t *lock, const char *path) {
  uint64_t value;
  if (!counter_read(path, &value))
    return false;
  demo_sleep(demo, WORK_MS);
  /* The question to ask before each step that needs the lock. */
  if ((lock != NULL && belay_lock_remaining_us(lock->lock) == 0) || !counter_write(path, ++value))
    return false;
  demo_tell(NEWS_WORKED, (int64_t)value);
  return true;
}

void worker_run(demo_t *demo, char **args) {
  contender_t contender, *lock = NULL;
  if (strcmp(args[2], "locked") == 0) {
    lock = &contender;
    if (!contender_open(lock, demo, DEMO_A, BELAY_DEFAULT, true))
      return;
  }
  for (unsigned i = 0; i < ROUNDS; i++) {
    if (lock != NULL && !take(lock))
      break;
    if (!work(demo, lock, args[1]))
      demo_trouble(demo, "working", 0);
    if (lock != NULL && contender_release(lock) != 0)
      break;
    unsigned char random = 0;
    (void)uv_random(NULL, NULL, &random, sizeof random, 0, NULL); /* any number will do */
    demo_sleep(demo, lock != NULL ? 10 + random / 4 : random / 32);
  }
  if (lock != NULL)
    contender_close(lock);
}

/* ---- the chapter ---- */

typedef struct hold {
  uint64_t from, to; /* when the lock was won, and when the work under it was done */
} hold_t;

typedef struct count {
  demo_t *demo;
  struct view {
    child_t child;
    struct count *count;
    uint64_t asked, won;
    int64_t calls; /* requests to the server for the lock */
  } view[WORKERS];
  hold_t hold[ADDITIONS];
  unsigned holds;
} count_t;

static void on_news(child_t *child, const news_t *news) {
  struct view *view = child->data;
  count_t *count = view->count;
  if (strcmp(news->word, NEWS_ASKS) == 0) {
    view->asked = news->at;
  } else if (strcmp(news->word, NEWS_WON) == 0) {
    view->won = news->at;
    view->calls = news->number;
  } else if (view->won != 0 && count->holds < ADDITIONS) {
    count->hold[count->holds++] = (hold_t){view->won, news->at};
    demo_event(count->demo, view->won,
               "worker %d wins after %4.0f ms, asked %" PRId64 " times, and counts %" PRId64,
               (int)(view - count->view) + 1, 1e3 * demo_seconds(view->asked, view->won),
               view->calls, news->number);
  }
}

/* Run the workers on a counter of 0. Returns the counter at the end. */
static uint64_t run_workers(count_t *count, demo_t *demo, const char *how) {
  char path[SERVER_FOLDER_MAX + SERVER_FILE_MAX];
  uint64_t value = 0;
  *count = (count_t){.demo = demo};
  (void)snprintf(path, sizeof path, "%s/counter", demo->folder);
  if (!counter_write(path, 0))
    demo_trouble(demo, "writing to the counter", 0);
  for (unsigned i = 0; i < WORKERS; i++) {
    struct view *view = &count->view[i];
    char owner[32];
    view->count = count;
    view->child = (child_t){.on_news = on_news, .data = view};
    (void)snprintf(owner, sizeof owner, "worker-%u", i + 1);
    child_start(demo, &view->child, "worker", (const char *[]){owner, path, how, NULL});
  }
  demo_run(demo);
  if (!counter_read(path, &value))
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
  uint64_t value = run_workers(&count, demo, "free");
  demo_event(demo, 0, "without the lock: %d additions, and the counter says %" PRIu64 "\n",
             ADDITIONS, value);
  value = run_workers(&count, demo, "locked");
  demo_print("\n");
  demo_fact(demo, value == ADDITIONS && count.holds == ADDITIONS,
            "%d workers x %d rounds with the lock, and the counter says %" PRIu64, WORKERS, ROUNDS,
            value);
  demo_fact(demo, count.holds > 0 && !overlap(&count), "no two of the %u holds overlapped in time",
            count.holds);
}
