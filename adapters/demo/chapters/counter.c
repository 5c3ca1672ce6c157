/* Chapter: processes that add to one counter, first as they like, then one at a time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo/chapters.h"
#include "demo/scratch.h"

enum { WORKERS = 5, ROUNDS = 6, ADDITIONS = WORKERS * ROUNDS, WORK_MS = 5 };

typedef enum worker_state { AWAY, WAITING, HOLDING } worker_state_t;

typedef struct hold {
  uint64_t from, to; /* when the lock was won, and when the work under it was done */
} hold_t;

typedef struct counter counter_t;

typedef struct worker_view {
  child_t child;
  counter_t *counter;
  unsigned number;
  worker_state_t state;
  uint64_t asked, won;
  int64_t calls; /* how often it asked the server */
} worker_view_t;

struct counter {
  demo_t *demo;
  const char *name; /* "-": none */
  char path[SCRATCH_PATH_MAX + 16];
  worker_view_t view[WORKERS];
  hold_t hold[ADDITIONS];
  unsigned holds;
};

/* ---- the table ----------------------------------------------------------------------------------------- */

static void print_head(counter_t *counter) {
  term_t *term = &counter->demo->term;
  const char *dim = term_style(term, TERM_DIM), *normal = term_style(term, TERM_NORMAL);
  term_print(term,
             "  %s    time      1  2  3  4  5    count   %s has the lock, %s waits for it%s\n", dim,
             term_glyph(term, TERM_HOLDS), term_glyph(term, TERM_WAITS), normal);
}

/* One win: who had the lock, who waited for it meanwhile, and what it was used for. */
static void print_win(const worker_view_t *winner, int64_t count) {
  demo_t *demo = winner->counter->demo;
  const term_t *term = &demo->term;
  char cells[256];
  size_t n = 0;
  for (unsigned i = 0; i < WORKERS; i++) {
    const worker_view_t *view = &winner->counter->view[i];
    const char *glyph = view == winner           ? term_glyph(term, TERM_HOLDS)
                        : view->state == WAITING ? term_glyph(term, TERM_WAITS)
                                                 : " ";
    bool won = view == winner;
    n += (size_t)snprintf(cells + n, sizeof cells - n, "  %s%s%s",
                          won ? term_style(term, TERM_GOOD) : "", glyph,
                          won ? term_style(term, TERM_NORMAL) : "");
  }
  char how[64] = "at once";
  if (winner->calls > 1)
    (void)snprintf(how, sizeof how, "after %.0f ms, asked %" PRId64 " times",
                   1e3 * demo_seconds(winner->asked, winner->won), winner->calls);
  demo_event(demo, winner->won, "  %s    %5" PRId64 "   %sworker %u wins, %s", cells, count,
             term_style(term, TERM_DIM), winner->number, how);
}

/* ---- the workers --------------------------------------------------------------------------------------- */

static void on_line(child_t *child, const char *line) {
  worker_view_t *view = child->data;
  counter_t *counter = view->counter;
  news_t news;
  if (!news_parse(line, &news))
    return;
  if (strcmp(news.word, NEWS_ASKS) == 0) {
    view->state = WAITING;
    view->asked = news.at;
  } else if (strcmp(news.word, NEWS_WON) == 0) {
    view->state = HOLDING;
    view->won = news.at;
    view->calls = news.number;
  } else if (strcmp(news.word, NEWS_WORKED) == 0) {
    if (view->state == HOLDING && counter->holds < ADDITIONS) {
      counter->hold[counter->holds++] = (hold_t){view->won, news.at};
      print_win(view, news.number);
    }
    view->state = AWAY;
  } else if (strcmp(news.word, NEWS_FAILED) == 0) {
    demo_trouble(counter->demo, "a worker gave up", (int)news.number);
  }
}

static void on_end(child_t *child) {
  worker_view_t *view = child->data;
  if (!child_ended_well(child))
    demo_trouble(view->counter->demo, "a worker did not end as it should", 0);
}

/* Lets the workers loose on a counter of 0. Returns what it says in the end. */
static uint64_t count(counter_t *counter, demo_t *demo, const char *name) {
  char work[16], rounds[16];
  uint64_t value = 0;
  *counter = (counter_t){.demo = demo, .name = name};
  (void)snprintf(counter->path, sizeof counter->path, "%s/counter", demo->folder);
  (void)snprintf(work, sizeof work, "%d", WORK_MS);
  (void)snprintf(rounds, sizeof rounds, "%d", ROUNDS);
  if (!counter_write(counter->path, 0)) {
    demo_trouble(demo, "writing to the counter", 0);
    return 0;
  }
  for (unsigned i = 0; i < WORKERS; i++) {
    worker_view_t *view = &counter->view[i];
    char owner[32];
    view->counter = counter;
    view->number = i + 1;
    view->child = (child_t){.on_line = on_line, .on_end = on_end, .data = view};
    (void)snprintf(owner, sizeof owner, "worker-%u", view->number);
    const char *args[] = {"worker", demo->run, owner, name, "0", rounds, work, counter->path, NULL};
    child_start(&demo->family, &view->child, args);
  }
  demo_run(demo);
  if (!counter_read(counter->path, &value))
    demo_trouble(demo, "reading the counter", 0);
  return value;
}

/* ---- the facts ----------------------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b) {
  const hold_t *x = a, *y = b;
  return (x->from > y->from) - (x->from < y->from);
}

static bool overlap(counter_t *counter) {
  qsort(counter->hold, counter->holds, sizeof *counter->hold, by_start);
  for (unsigned i = 1; i < counter->holds; i++)
    if (counter->hold[i].from < counter->hold[i - 1].to)
      return true;
  return false;
}

void chapter_counter(demo_t *demo) {
  counter_t counter;
  uint64_t value = count(&counter, demo, "-");
  demo_event(demo, 0, "without the lock: %d additions, and the counter says %" PRIu64, ADDITIONS,
             value);
  term_print(&demo->term, "\n");

  print_head(&counter);
  value = count(&counter, demo, demo->name);
  term_print(&demo->term, "\n");
  demo_fact(demo, value == ADDITIONS && counter.holds == ADDITIONS,
            "%d workers x %d rounds with the lock, and the counter says %" PRIu64, WORKERS, ROUNDS,
            value);
  demo_fact(demo, counter.holds > 0 && !overlap(&counter),
            "no two of the %u holds overlapped in time", counter.holds);
}
