/* Chapter: a bucket that is filled by some of several processes, one of which is killed.
 *
 * It is told in steps, each of which runs the loop until what it waits for is the case. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"
#include "demo/refiller.h"

enum { PROCESSES = 4, FILLINGS = 3, GRACE_MS = 1000, PATIENCE_MS = 10000, LOOK_MS = 40 };

typedef enum refiller_state { STARTING, ELECTED, KILLED } refiller_state_t;

typedef struct refillers refillers_t;

typedef struct refiller_view {
  child_t child;
  refillers_t *refillers;
  unsigned number;
  refiller_state_t state;
  uint64_t elected; /* when it was told so */
  bool over;
} refiller_view_t;

struct refillers {
  demo_t *demo;
  belay_bucket_t *bucket;
  belay_request_t request; /* looks how the bucket stands */
  bool reading;
  uv_timer_t look;
  refiller_view_t view[PROCESSES];
  uint64_t began;
  int64_t tokens, index;
  uint64_t filled;         /* when that was seen to be another index than before */
  uint64_t gap;            /* the longest from one filling to the next, as it was seen */
  bool uneven;             /* tokens and index did not go together */
  refiller_view_t *victim; /* NULL: not yet */
  uint64_t killed;         /* when */
  int64_t wanted;          /* the index that is waited for */
  bool ending;             /* the bucket is not looked at any more */
  bool gone;               /* the bucket was deleted */
};

/* ---- what is said -------------------------------------------------------------------------------------- */

/* number: who it is about; 0: the bucket. */
static void say(const refillers_t *refillers, uint64_t at, unsigned number, const char *what) {
  static const term_glyph_t glyphs[] = {
      [STARTING] = TERM_WAITS, [ELECTED] = TERM_HOLDS, [KILLED] = TERM_AWAY};
  static const term_style_t styles[] = {
      [STARTING] = TERM_NORMAL, [ELECTED] = TERM_GOOD, [KILLED] = TERM_BAD};
  const term_t *term = &refillers->demo->term;
  char cells[128], who[16] = "";
  size_t n = 0;
  for (unsigned i = 0; i < PROCESSES; i++) {
    refiller_state_t state = refillers->view[i].state;
    n += (size_t)snprintf(cells + n, sizeof cells - n, "  %s%s%s", term_style(term, styles[state]),
                          term_glyph(term, glyphs[state]), term_style(term, TERM_NORMAL));
  }
  if (number > 0)
    (void)snprintf(who, sizeof who, "%u ", number);
  demo_event(refillers->demo, at, "  %s    %6" PRId64 "   %s%s%s", cells, refillers->tokens,
             term_style(term, TERM_DIM), who, what);
}

static void print_head(const refillers_t *refillers) {
  term_t *term = &refillers->demo->term;
  term_print(term, "  %s    time      1  2  3  4    tokens   %s fills, %s waits for a place%s\n",
             term_style(term, TERM_DIM), term_glyph(term, TERM_HOLDS), term_glyph(term, TERM_WAITS),
             term_style(term, TERM_NORMAL));
}

/* ---- the bucket ---------------------------------------------------------------------------------------- */

static void on_read(belay_request_t *request, int status, const belay_bucket_state_t *state) {
  refillers_t *refillers = request->data;
  refillers->reading = false;
  if (status != 0) {
    demo_trouble(refillers->demo, "looking at the bucket", status);
    return;
  }
  refillers->uneven = refillers->uneven || state->tokens != state->index * REFILL_TOKENS;
  if (state->index == refillers->index)
    return;
  uint64_t now = uv_hrtime();
  if (refillers->filled != 0 && now - refillers->filled > refillers->gap)
    refillers->gap = now - refillers->filled;
  refillers->filled = now;
  refillers->index = state->index;
  refillers->tokens = state->tokens;
  say(refillers, now, 0, "filled");
}

static void on_look(uv_timer_t *timer) {
  refillers_t *refillers = timer->data;
  if (refillers->reading || refillers->ending)
    return;
  int error = belay_bucket_read(refillers->bucket, &refillers->request, REFILL_KEY,
                                strlen(REFILL_KEY), on_read);
  refillers->reading = error == 0;
  if (error != 0)
    demo_trouble(refillers->demo, "looking at the bucket", error);
}

static void on_deleted(belay_request_t *request, int status, const belay_bucket_state_t *state) {
  refillers_t *refillers = request->data;
  refillers->gone = status == 0 && state->applied;
}

/* ---- the processes ------------------------------------------------------------------------------------- */

static void on_line(child_t *child, const char *line) {
  refiller_view_t *view = child->data;
  news_t news;
  if (!news_parse(line, &news))
    return;
  if (strcmp(news.word, NEWS_ELECTED) == 0) {
    view->state = ELECTED;
    view->elected = news.at;
    say(view->refillers, news.at, view->number, "is elected");
  } else if (strcmp(news.word, NEWS_DEPOSED) == 0) {
    view->state = STARTING;
    say(view->refillers, news.at, view->number, "has lost its place");
  } else if (strcmp(news.word, NEWS_FAILED) == 0) {
    demo_trouble(view->refillers->demo, "a refiller gave up", (int)news.number);
  }
}

static void on_end(child_t *child) {
  refiller_view_t *view = child->data;
  refillers_t *refillers = view->refillers;
  view->over = true;
  if (view != refillers->victim) {
    if (!child_ended_well(child))
      demo_trouble(refillers->demo, "a refiller did not end as it should", 0);
    return;
  }
  view->state = KILLED;
  refillers->killed = uv_hrtime();
  say(refillers, refillers->killed, view->number, "is killed with kill -9");
}

static void start(refillers_t *refillers) {
  demo_t *demo = refillers->demo;
  for (unsigned i = 0; i < PROCESSES; i++) {
    refiller_view_t *view = &refillers->view[i];
    char owner[32];
    *view = (refiller_view_t){.refillers = refillers, .number = i + 1};
    view->child = (child_t){.on_line = on_line, .on_end = on_end, .data = view};
    (void)snprintf(owner, sizeof owner, "refiller-%u", view->number);
    const char *args[] = {"refiller", demo->run, owner, demo->name, NULL};
    child_start(&demo->family, &view->child, args);
  }
}

/* ---- what is waited for -------------------------------------------------------------------------------- */

static unsigned elected(const refillers_t *refillers) {
  unsigned n = 0;
  for (unsigned i = 0; i < PROCESSES; i++)
    n += refillers->view[i].state == ELECTED;
  return n;
}

static bool is_filled(const refillers_t *refillers) {
  return elected(refillers) == REFILL_PLACES && refillers->index >= refillers->wanted;
}

static bool is_killed(const refillers_t *refillers) {
  return refillers->killed != 0;
}

static bool is_over(const refillers_t *refillers) {
  for (unsigned i = 0; i < PROCESSES; i++)
    if (!refillers->view[i].over)
      return false;
  return !refillers->reading;
}

static bool is_gone(const refillers_t *refillers) {
  return refillers->gone;
}

/* Runs the loop until it is so. What it waits for gets that much time. */
static bool wait_until(refillers_t *refillers, bool (*so)(const refillers_t *refillers),
                       const char *or_else) {
  uint64_t give_up = uv_hrtime() + PATIENCE_MS * DEMO_MS;
  while (!so(refillers) && uv_hrtime() < give_up)
    (void)uv_run(&refillers->demo->loop, UV_RUN_ONCE);
  if (!so(refillers))
    demo_trouble(refillers->demo, or_else, 0);
  return so(refillers);
}

/* ---- the steps: each returns whether there can be a next one ------------------------------------------- */

static bool fill(refillers_t *refillers) {
  refillers->wanted = refillers->index + FILLINGS;
  return wait_until(refillers, is_filled, "the bucket is not filled as it should be");
}

/* One of those who fill. */
static bool kill_one(refillers_t *refillers) {
  for (unsigned i = 0; i < PROCESSES; i++)
    if (refillers->view[i].state == ELECTED)
      refillers->victim = &refillers->view[i];
  child_kill(&refillers->victim->child, SIGKILL);
  return wait_until(refillers, is_killed, "nobody could be killed");
}

static void signal_all(refillers_t *refillers, int signum) {
  for (unsigned i = 0; i < PROCESSES; i++)
    child_kill(&refillers->view[i].child, signum);
}

static void end(refillers_t *refillers) {
  refillers->ending = true;
  signal_all(refillers, SIGTERM);
  if (wait_until(refillers, is_over, "the refillers do not end"))
    return;
  signal_all(refillers, SIGKILL);
  (void)wait_until(refillers, is_over, "not even when they are killed");
}

/* ---- the facts ----------------------------------------------------------------------------------------- */

static void conclude(const refillers_t *refillers) {
  demo_t *demo = refillers->demo;
  const refiller_view_t *heir = NULL;
  for (unsigned i = 0; i < PROCESSES; i++)
    if (refillers->view[i].elected > refillers->killed)
      heir = &refillers->view[i];
  double seconds = demo_seconds(refillers->began, refillers->filled);
  term_print(&demo->term, "\n");
  demo_fact(
      demo,
      heir != NULL && heir->elected - refillers->killed <= (REFILL_LEASE_MS + GRACE_MS) * DEMO_MS,
      "%u was elected %.1f s after %u was killed, whose place was a lease of 1 s",
      heir != NULL ? heir->number : 0,
      heir != NULL ? demo_seconds(refillers->killed, heir->elected) : 0, refillers->victim->number);
  demo_fact(demo, refillers->gap <= (REFILL_PERIOD_MS + GRACE_MS) * DEMO_MS,
            "the bucket was filled all the while: never longer than %.2f s between two fillings",
            (double)refillers->gap / 1e9);
  demo_fact(demo, !refillers->uneven && refillers->tokens == refillers->index * REFILL_TOKENS,
            "%" PRId64 " fillings of %d tokens, and there are %" PRId64 ": none was added twice",
            refillers->index, REFILL_TOKENS, refillers->tokens);
  demo_fact(demo, (double)(refillers->index - 1) * REFILL_PERIOD_MS <= seconds * 1e3,
            "in %.1f s, with two that fill five times a second each: never twice in 0.2 s",
            seconds);
}

static bool play_steps(refillers_t *refillers) {
  return fill(refillers) && kill_one(refillers) && fill(refillers);
}

/* Nothing is left behind. */
static void clean_up(refillers_t *refillers) {
  demo_t *demo = refillers->demo;
  int error = belay_bucket_delete(refillers->bucket, &refillers->request, REFILL_KEY,
                                  strlen(REFILL_KEY), on_deleted);
  if (error != 0)
    demo_trouble(demo, "deleting the bucket", error);
  else
    (void)wait_until(refillers, is_gone, "the bucket could not be deleted");
}

void chapter_refillers(demo_t *demo) {
  refillers_t refillers = {.demo = demo};
  refillers.request.data = &refillers;
  int error = refill_bucket(demo->client[DEMO_A], demo->name, &refillers, &refillers.bucket);
  if (error != 0) {
    demo_trouble(demo, "making a bucket", error);
    return;
  }
  print_head(&refillers);
  demo_timer_open(demo, &refillers.look, &refillers);
  demo_timer_start(demo, &refillers.look, on_look, LOOK_MS, LOOK_MS);
  refillers.began = uv_hrtime();
  start(&refillers);
  bool well = play_steps(&refillers);
  end(&refillers);
  if (well)
    conclude(&refillers);
  clean_up(&refillers);
  (void)belay_bucket_close(refillers.bucket, NULL);
  demo_timer_close(&refillers.look);
  demo_run(demo);
}
