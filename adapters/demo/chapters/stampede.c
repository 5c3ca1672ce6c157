/* Chapter: a thousand requests for one page, in four processes, and what each stage of a cache makes of them. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"
#include "demo/stampede.h"

enum { REQUESTS = STAMPEDE_PROCESSES * STAMPEDE_EACH };

typedef struct crowd crowd_t;

typedef struct crowd_view {
  child_t child;
  crowd_t *crowd;
  int64_t counts[STAMPEDE_COUNTS]; /* of the present stage */
} crowd_view_t;

struct crowd {
  demo_t *demo;
  belay_bloom_t *filter;
  crowd_view_t view[STAMPEDE_PROCESSES];
  int64_t counts[STAMPEDE_STAGES][STAMPEDE_COUNTS];
  unsigned told[STAMPEDE_STAGES]; /* processes */
  bool well;
};

/* ---- the table ----------------------------------------------------------------------------------------- */

static const char *const names[STAMPEDE_STAGES] = {
    [STAMPEDE_BY_HAND] = "by hand",      [STAMPEDE_PLAIN] = "plain",
    [STAMPEDE_LOCK] = "with a lock",     [STAMPEDE_STALE] = "served stale",
    [STAMPEDE_PINNED] = "ahead of time", [STAMPEDE_ABSENT] = "absence kept",
    [STAMPEDE_LIMITER] = "with a limit", [STAMPEDE_FILTER] = "with a filter",
};

static void print_head(crowd_t *crowd) {
  term_t *term = &crowd->demo->term;
  const char *dim = term_style(term, TERM_DIM), *normal = term_style(term, TERM_NORMAL);
  term_print(term, "  %s%-14s %6s  %17s  %15s %9s %10s%s\n", dim, "", "", "served by a load",
             "served at once", "not", "longest", normal);
  term_print(term, "  %s%-14s %6s  %7s %9s  %7s %7s %9s %10s%s\n", dim, "", "loads", "here",
             "elsewhere", "fresh", "stale", "loaded", "wait", normal);
}

/* A number; a 0 is nothing to look at. */
static void print_count(term_t *term, int width, int64_t count) {
  term_print(term, "%s%*" PRId64 "%s", term_style(term, count == 0 ? TERM_DIM : TERM_NORMAL), width,
             count, term_style(term, TERM_NORMAL));
}

static void print_row(crowd_t *crowd, unsigned stage) {
  static const int widths[] = {
      [STAMPEDE_HERE] = 9, [STAMPEDE_ELSEWHERE] = 10, [STAMPEDE_FRESH] = 9,
      [STAMPEDE_OLD] = 8,  [STAMPEDE_REFUSED] = 10,
  };
  term_t *term = &crowd->demo->term;
  const int64_t *counts = crowd->counts[stage];
  term_print(term, "  %-14s %s%6" PRId64 "%s", names[stage], term_style(term, TERM_BOLD),
             counts[STAMPEDE_LOADS], term_style(term, TERM_NORMAL));
  for (unsigned i = STAMPEDE_HERE; i <= STAMPEDE_REFUSED; i++)
    print_count(term, widths[i], counts[i]);
  term_print(term, "%8.0f ms\n", (double)counts[STAMPEDE_LONGEST_US] / 1e3);
}

/* ---- the processes ------------------------------------------------------------------------------------- */

static void add(crowd_view_t *view, unsigned stage) {
  crowd_t *crowd = view->crowd;
  int64_t *sums = crowd->counts[stage];
  for (unsigned i = 0; i < STAMPEDE_LONGEST_US; i++)
    sums[i] += view->counts[i];
  if (view->counts[STAMPEDE_LONGEST_US] > sums[STAMPEDE_LONGEST_US])
    sums[STAMPEDE_LONGEST_US] = view->counts[STAMPEDE_LONGEST_US];
  if (++crowd->told[stage] == STAMPEDE_PROCESSES)
    print_row(crowd, stage);
}

static void on_line(child_t *child, const char *line) {
  crowd_view_t *view = child->data;
  demo_t *demo = view->crowd->demo;
  news_t news;
  if (!news_parse(line, &news))
    return;
  for (unsigned i = 0; i < STAMPEDE_COUNTS; i++)
    if (strcmp(news.word, stampede_words[i]) == 0)
      view->counts[i] = news.number;
  if (strcmp(news.word, NEWS_STAGE) == 0 && news.number >= 0 && news.number < STAMPEDE_STAGES)
    add(view, (unsigned)news.number);
  else if (strcmp(news.word, NEWS_FAILED) == 0)
    demo_trouble(demo, "a process gave up", (int)news.number);
}

static void on_end(child_t *child) {
  crowd_view_t *view = child->data;
  if (child_ended_well(child))
    return;
  view->crowd->well = false;
  demo_trouble(view->crowd->demo, "a process did not end as it should", 0);
  for (unsigned i = 0; i < STAMPEDE_PROCESSES; i++)
    child_kill(&view->crowd->view[i].child, SIGKILL); /* they would wait for it */
}

static void start(crowd_t *crowd) {
  demo_t *demo = crowd->demo;
  for (unsigned i = 0; i < STAMPEDE_PROCESSES; i++) {
    crowd_view_t *view = &crowd->view[i];
    char owner[32], number[16];
    *view = (crowd_view_t){.crowd = crowd};
    view->child = (child_t){.on_line = on_line, .on_end = on_end, .data = view};
    (void)snprintf(owner, sizeof owner, "crowd-%u", i + 1);
    (void)snprintf(number, sizeof number, "%u", i);
    const char *args[] = {"visitors", demo->run, owner, demo->name, number, NULL};
    child_start(&demo->family, &view->child, args);
  }
  demo_run(demo);
}

/* ---- the facts ----------------------------------------------------------------------------------------- */

/* Whether so many were loaded, and everybody was served. */
static bool is_so(const crowd_t *crowd, stampede_stage_t stage, int64_t loads) {
  const int64_t *counts = crowd->counts[stage];
  int64_t served = 0;
  for (unsigned i = STAMPEDE_HERE; i <= STAMPEDE_REFUSED; i++)
    served += counts[i];
  return counts[STAMPEDE_LOADS] == loads && served == REQUESTS;
}

/* Nobody had to wait for a load. */
static bool is_at_once(const crowd_t *crowd, stampede_stage_t stage) {
  const int64_t *counts = crowd->counts[stage];
  return counts[STAMPEDE_FRESH] + counts[STAMPEDE_OLD] == REQUESTS;
}

static void conclude(const crowd_t *crowd) {
  demo_t *demo = crowd->demo;
  const int64_t *locked = crowd->counts[STAMPEDE_LOCK];
  term_print(&demo->term, "\n");
  demo_fact(demo,
            is_so(crowd, STAMPEDE_BY_HAND, REQUESTS) &&
                is_so(crowd, STAMPEDE_PLAIN, STAMPEDE_PROCESSES),
            "by hand there are %d loads; with a cache %d, one in each process", REQUESTS,
            STAMPEDE_PROCESSES);
  demo_fact(demo,
            is_so(crowd, STAMPEDE_LOCK, 1) && locked[STAMPEDE_HERE] == STAMPEDE_EACH &&
                locked[STAMPEDE_ELSEWHERE] == REQUESTS - STAMPEDE_EACH,
            "with a lock 1: three processes wait for what the fourth one loads");
  demo_fact(demo,
            is_so(crowd, STAMPEDE_STALE, 1) && is_at_once(crowd, STAMPEDE_STALE) &&
                is_so(crowd, STAMPEDE_PINNED, 1) && is_at_once(crowd, STAMPEDE_PINNED),
            "what expires under load is loaded once more, and nobody waits for it");
  demo_fact(demo,
            is_so(crowd, STAMPEDE_ABSENT, 1) && is_so(crowd, STAMPEDE_LIMITER, STAMPEDE_ALLOWED) &&
                is_so(crowd, STAMPEDE_FILTER, 0),
            "what is absent: 1 load; a thousand such: %d by a limit, 0 by a filter",
            STAMPEDE_ALLOWED);
}

/* ---- what there is before, and what is left ------------------------------------------------------------ */

static void on_added(belay_request_t *request, int status, bool answer) {
  crowd_t *crowd = request->data;
  (void)answer;
  crowd->well = status == 0;
  if (status != 0)
    demo_trouble(crowd->demo, "filling the filter", status);
}

/* The filter knows that a page exists. */
static void fill_filter(crowd_t *crowd) {
  demo_t *demo = crowd->demo;
  belay_request_t request = {.data = crowd};
  int error = stampede_filter(demo->client[DEMO_A], demo->name, &crowd->filter);
  if (error == 0)
    error = belay_bloom_add(crowd->filter, &request, "page", 4, on_added);
  if (error != 0)
    demo_trouble(demo, "making a filter", error);
  else
    demo_run(demo);
  if (crowd->filter != NULL)
    (void)belay_bloom_close(crowd->filter, NULL);
}

void chapter_stampede(demo_t *demo) {
  static crowd_t crowd;
  crowd = (crowd_t){.demo = demo};
  fill_filter(&crowd);
  if (crowd.well) {
    print_head(&crowd);
    start(&crowd);
  }
  if (crowd.well)
    conclude(&crowd);
  (void)demo_sweep(demo, "*stampede*", true);
}
