/* Chapter: a holder whose whole program stands still for longer than its ttl, while another process goes on. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "demo/demo.h"

enum { TTL_MS = 500, STALL_MS = 1000, B_TTL_MS = 3000, B_WORK_MS = 800 };

typedef struct stalled {
  demo_t *demo;
  belay_lock_t *a;
  child_t b;
  uint64_t until;  /* A's own deadline: it may believe that it has the lock until then */
  uint64_t woke;   /* when the stall was over */
  uint64_t won;    /* when B had the lock */
  int64_t left_us; /* what remained of A's lease when it woke */
  int a_release;   /* what A's release returned then */
  bool released;   /* B gave the lock back */
} stalled_t;

static void finish(stalled_t *stalled) {
  child_kill(&stalled->b, SIGKILL);
  demo_lock_close(&stalled->a);
}

static void say(stalled_t *stalled, uint64_t at, demo_who_t who, const char *what) {
  const term_t *term = &stalled->demo->term;
  demo_event(stalled->demo, at, "%s%s%s %s", term_style(term, who == DEMO_A ? TERM_A : TERM_B),
             who == DEMO_A ? "A" : "B", term_style(term, TERM_NORMAL), what);
}

/* What no program on a loop should do: nothing of it runs meanwhile, belay neither. */
static void stand_still(void) {
  struct timespec left = {.tv_sec = STALL_MS / 1000, .tv_nsec = STALL_MS % 1000 * 1000000L};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

static void stall(stalled_t *stalled) {
  say(stalled, 0, DEMO_A, "stands still");
  stand_still();
  stalled->woke = uv_hrtime();
  stalled->left_us = belay_lock_remaining_us(stalled->a);
  stalled->a_release = belay_lock_release(stalled->a, BELAY_DEFAULT, NULL);
}

/* What happened while nobody here could tell it. */
static void tell_stall(stalled_t *stalled) {
  bool won_first = stalled->won < stalled->woke;
  if (won_first)
    say(stalled, stalled->won, DEMO_B, "has the lock");
  say(stalled, stalled->woke, DEMO_A, "moves again, and asks first how much time is left");
  if (!won_first)
    say(stalled, stalled->won, DEMO_B, "has the lock");
}

static void on_line(child_t *child, const char *line) {
  stalled_t *stalled = child->data;
  news_t news;
  if (!news_parse(line, &news))
    return;
  if (strcmp(news.word, NEWS_ASKS) == 0) {
    say(stalled, news.at, DEMO_B, "asks for it, and waits");
    stall(stalled);
  } else if (strcmp(news.word, NEWS_WON) == 0) {
    stalled->won = news.at;
    tell_stall(stalled);
  } else if (strcmp(news.word, NEWS_RELEASED) == 0) {
    stalled->released = true;
    say(stalled, news.at, DEMO_B, "gives the lock back");
  } else if (strcmp(news.word, NEWS_FAILED) == 0) {
    demo_trouble(stalled->demo, "B works with the lock", (int)news.number);
  }
}

static void on_end(child_t *child) {
  stalled_t *stalled = child->data;
  demo_t *demo = stalled->demo;
  term_print(&demo->term, "\n");
  demo_fact(demo, stalled->woke != 0 && stalled->left_us == 0,
            "the first answer that A got was the truth: %d ms left",
            (int)(stalled->left_us / 1000));
  demo_fact(demo, stalled->woke != 0 && stalled->a_release == BELAY_ENOTOWNER,
            "A could not give the lock back: %s", belay_err_name(stalled->a_release));
  if (stalled->won == 0)
    demo_trouble(demo, "B never had it", 0);
  else
    demo_fact(demo, stalled->won > stalled->until,
              "B had it %.0f ms after A's own deadline: never two at a time",
              1e3 * demo_seconds(stalled->until, stalled->won));
  demo_fact(demo, child_ended_well(child) && stalled->released,
            "B's lock was not touched, and B gave it back itself");
  finish(stalled);
}

static void on_held(belay_lock_t *lock, int status) {
  stalled_t *stalled = belay_lock_data(lock);
  if (status != 0) {
    demo_trouble(stalled->demo, "A takes the lock", status);
    finish(stalled);
    return;
  }
  stalled->until = uv_hrtime() + (uint64_t)belay_lock_remaining_us(lock) * 1000;
  say(stalled, 0, DEMO_A, "has the lock, for 0.5 s");
  demo_worker_start(stalled->demo, &stalled->b, "B", B_TTL_MS, B_WORK_MS);
}

void play_stalled(demo_t *demo) {
  demo_text(demo, "  A stands still for 1 s: a blocking call, a debugger, a machine that swaps.\n"
                  "  No callback can run to tell it anything. So ask before each step that needs\n"
                  "  the lock how long it still runs: the answer is computed, never remembered.");
  stalled_t stalled = {.demo = demo};
  stalled.b = (child_t){.on_line = on_line, .on_end = on_end, .data = &stalled};
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.data = &stalled;
  options.ttl_ms = TTL_MS;
  options.watchdog = BELAY_WATCHDOG_OFF;
  stalled.a = demo_lock(demo, DEMO_A, &options);
  int error =
      stalled.a == NULL ? BELAY_ESTATE : belay_lock_acquire(stalled.a, BELAY_DEFAULT, on_held);
  if (error != 0) {
    demo_trouble(demo, "A asks for the lock", error);
    finish(&stalled);
  }
  (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
}
