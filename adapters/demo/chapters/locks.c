/* Chapters about a lock on one server: its holder is killed, is slow, stands still, or its key is deleted. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "demo/chapters.h"
#include "demo/contender.h"

enum { GRACE_MS = 1000 }; /* for a slow machine */

/* A process that works under the lock, and when it said what. */
typedef struct holder {
  demo_t *demo;
  child_t child;
  uint64_t asks, won, released;
  bool over;
} holder_t;

static void on_line(child_t *child, const char *line) {
  holder_t *holder = child->data;
  news_t news;
  if (!news_parse(line, &news))
    return;
  if (strcmp(news.word, NEWS_ASKS) == 0)
    holder->asks = news.at;
  else if (strcmp(news.word, NEWS_WON) == 0)
    holder->won = news.at;
  else if (strcmp(news.word, NEWS_RELEASED) == 0)
    holder->released = news.at;
  else if (strcmp(news.word, NEWS_FAILED) == 0)
    demo_trouble(holder->demo, "a process under the lock", (int)news.number);
}

static void on_end(child_t *child) {
  holder_t *holder = child->data;
  holder->over = true;
}

static void holder_start(holder_t *holder, demo_t *demo, const char *owner, unsigned ttl_ms,
                         unsigned work_ms) {
  *holder = (holder_t){.demo = demo};
  holder->child = (child_t){.on_line = on_line, .on_end = on_end, .data = holder};
  demo_worker_start(demo, &holder->child, owner, ttl_ms, work_ms);
}

static void holder_end(holder_t *holder, int signum) {
  child_kill(&holder->child, signum);
  DEMO_WAIT(holder->demo, CONTENDER_PATIENCE_MS, holder->over);
}

/* ---- killed -------------------------------------------------------------------------------------------- */

enum { KILLED_TTL_MS = 1000, KILLED_DRIFT_MS = KILLED_TTL_MS / 100 + 2 };

static void wait_for_killed(demo_t *demo, holder_t *holder, contender_t *b) {
  const term_t *term = &demo->term;
  demo_event(demo, holder->won, "%sA%s, process %d, has the lock, for 1 s",
             term_style(term, TERM_A), term_style(term, TERM_NORMAL),
             uv_process_get_pid(&holder->child.process));
  if (!contender_ask(b, CONTENDER_PATIENCE_MS))
    return;
  contender_say(b, 0, "asks for it, and waits");
  DEMO_WAIT(demo, 300, b->ended);
  holder_end(holder, SIGKILL);
  demo_event(demo, 0, "A is killed with kill -9");
  if (!contender_win(b))
    return;
  contender_say(b, b->at, "has it");
  uint64_t end = holder->asks + KILLED_TTL_MS * DEMO_MS;
  term_print(&demo->term, "\n");
  demo_fact(demo, b->at + KILLED_DRIFT_MS * DEMO_MS >= end,
            "B got it %.3f s after A asked for it: not before the ttl was over",
            demo_seconds(holder->asks, b->at));
  demo_fact(demo, b->at <= end + GRACE_MS * DEMO_MS,
            "and %.0f ms after the end of the ttl, although A released nothing",
            1e3 * demo_seconds(end, b->at));
  int status = contender_release(b);
  if (status != 0)
    demo_trouble(demo, "B gives the lock back", status);
}

void chapter_killed(demo_t *demo) {
  holder_t holder;
  contender_t b;
  if (!contender_open(&b, demo, DEMO_B, BELAY_DEFAULT, true))
    return;
  holder_start(&holder, demo, "A", KILLED_TTL_MS, 60000);
  DEMO_WAIT(demo, CONTENDER_PATIENCE_MS, holder.won != 0 || holder.over);
  if (holder.won != 0)
    wait_for_killed(demo, &holder, &b);
  holder_end(&holder, SIGKILL);
  contender_close(&b);
}

/* ---- watchdog ------------------------------------------------------------------------------------------ */

enum { LONG_TTL_MS = 600, LONG_WORK_MS = 3 * LONG_TTL_MS, LOOK_MS = 200, BAR = 36 };

/* Returns the milliseconds that are left of A's lease. */
static int64_t look(demo_t *demo, contender_t *a) {
  const term_t *term = &demo->term;
  int64_t left_ms = belay_lock_remaining_us(a->lock) / 1000;
  char bar[BAR * 4 + 1];
  size_t n = 0;
  for (int i = 0; i < BAR; i++)
    n += (size_t)snprintf(
        bar + n, sizeof bar - n, "%s",
        term_glyph(term, i < left_ms * BAR / LONG_TTL_MS ? TERM_FULL : TERM_EMPTY));
  demo_event(demo, 0, "A %s%s%s %4d ms left", term_style(term, left_ms > 0 ? TERM_GOOD : TERM_BAD),
             bar, term_style(term, TERM_NORMAL), (int)left_ms);
  return left_ms;
}

void chapter_watchdog(demo_t *demo) {
  contender_t a, b;
  bool held = true;
  if (contender_open(&a, demo, DEMO_A, LONG_TTL_MS, true)) {
    if (contender_open(&b, demo, DEMO_B, LONG_TTL_MS, true)) {
      if (contender_take(&a) && contender_ask(&b, LONG_WORK_MS)) {
        while (!b.ended) {
          held = look(demo, &a) > 0 && held;
          DEMO_WAIT(demo, LOOK_MS, b.ended);
        }
        contender_say(&b, 0, "gives up, and A is done");
        term_print(&demo->term, "\n");
        demo_fact(demo, held && a.reason == 0,
                  "A had the lock for %.1f s, three times its ttl, and never lost it",
                  demo_seconds(a.at, uv_hrtime()));
        demo_fact(demo, b.status == BELAY_ETIMEDOUT, "B did not get it: %s",
                  belay_err_name(b.status));
        int status = contender_release(&a);
        demo_fact(demo, status == 0, "A gave back what was still its own: %s",
                  belay_err_name(status));
      }
      contender_close(&b);
    }
    contender_close(&a);
  }
}

/* ---- overrun ------------------------------------------------------------------------------------------- */

static void overrun(demo_t *demo, contender_t *a, contender_t *b) {
  contender_say(a, 0, "has the lock, for 0.5 s");
  if (!contender_ask(b, CONTENDER_PATIENCE_MS))
    return;
  contender_say(b, 0, "asks for it, and waits");
  DEMO_WAIT(demo, 900, false);
  contender_say(a, a->lost, "learns from on_lost that its time is over");
  if (!contender_win(b))
    return;
  contender_say(b, b->at, "has the lock");
  contender_say(a, 0, "is done, and wants to give the lock back");
  uint64_t won = b->at;
  int refused = belay_lock_release(a->lock, BELAY_DEFAULT, NULL);
  int released = contender_release(b);
  contender_say(b, 0, "gives the lock back");
  term_print(&demo->term, "\n");
  demo_fact(demo, a->reason == BELAY_LOST_EXPIRED && a->lost < won,
            "A learned of the loss (%s) %.0f ms before B had the lock",
            a->reason != 0 ? belay_lost_name(a->reason) : "not at all",
            1e3 * demo_seconds(a->lost, won));
  demo_fact(demo, refused == BELAY_ENOTOWNER,
            "A's release was refused, without asking the server: %s", belay_err_name(refused));
  demo_fact(demo, released == 0, "B's lock was not touched, and B gave it back itself: %s",
            belay_err_name(released));
}

void chapter_overrun(demo_t *demo) {
  contender_t a, b;
  if (!contender_open(&a, demo, DEMO_A, 500, false))
    return;
  if (contender_open(&b, demo, DEMO_B, 5000, false)) {
    if (contender_take(&a))
      overrun(demo, &a, &b);
    contender_close(&b);
  }
  contender_close(&a);
}

/* ---- stalled ------------------------------------------------------------------------------------------- */

/* Blocks the loop, as no program should: neither belay nor the program runs meanwhile. */
static void stand_still(void) {
  struct timespec left = {.tv_sec = 1};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

static void stall(demo_t *demo, contender_t *a, holder_t *b) {
  uint64_t until = uv_hrtime() + (uint64_t)belay_lock_remaining_us(a->lock) * 1000;
  contender_say(a, 0, "has the lock, for 0.5 s");
  holder_start(b, demo, "B", 3000, 800);
  DEMO_WAIT(demo, CONTENDER_PATIENCE_MS, b->asks != 0 || b->over);
  demo_event(demo, b->asks, "B asks for it, and waits");
  contender_say(a, 0, "stands still");
  stand_still();
  uint64_t woke = uv_hrtime();
  int64_t left_us = belay_lock_remaining_us(a->lock);
  int refused = belay_lock_release(a->lock, BELAY_DEFAULT, NULL);
  DEMO_WAIT(demo, CONTENDER_PATIENCE_MS, b->over);
  demo_event(demo, b->won, "B has the lock");
  contender_say(a, woke, "moves again, and asks first how much time is left");
  demo_event(demo, b->released, "B gives the lock back");
  term_print(&demo->term, "\n");
  demo_fact(demo, left_us == 0, "the first answer that A got was the truth: %d ms left",
            (int)(left_us / 1000));
  demo_fact(demo, refused == BELAY_ENOTOWNER, "A could not give the lock back: %s",
            belay_err_name(refused));
  demo_fact(demo, b->won > until, "B had it %.0f ms after A's own deadline: never two at a time",
            1e3 * demo_seconds(until, b->won));
  demo_fact(demo, child_ended_well(&b->child) && b->released != 0,
            "B's lock was not touched, and B gave it back itself");
}

void chapter_stalled(demo_t *demo) {
  contender_t a;
  holder_t b;
  if (!contender_open(&a, demo, DEMO_A, 500, false))
    return;
  if (contender_take(&a)) {
    stall(demo, &a, &b);
    holder_end(&b, SIGKILL);
  }
  contender_close(&a);
}

/* ---- deleted ------------------------------------------------------------------------------------------- */

enum { DELETED_TTL_MS = 1500, DELETED_RENEW_MS = DELETED_TTL_MS / 3 };

void chapter_deleted(demo_t *demo) {
  contender_t a;
  if (!contender_open(&a, demo, DEMO_A, DELETED_TTL_MS, true))
    return;
  if (contender_take(&a)) {
    contender_say(&a, 0, "has the lock, for 1.5 s, and the watchdog is on");
    uint64_t deleted = demo_sweep(demo, "lock::{deleted}", true).deleted, gone = uv_hrtime();
    demo_event(demo, gone, "a sweep deletes A's key, and the server obeys");
    DEMO_WAIT(demo, CONTENDER_PATIENCE_MS, a.reason != 0);
    contender_say(&a, a.lost, "renews the lease, and learns that it is gone");
    int release = belay_lock_release(a.lock, BELAY_DEFAULT, NULL);
    term_print(&demo->term, "\n");
    demo_fact(demo, deleted == 1 && a.reason == BELAY_LOST_TAKEN, "A learned the reason: %s",
              a.reason != 0 ? belay_lost_name(a.reason) : "never");
    demo_fact(demo, demo_seconds(gone, a.lost) <= (DELETED_RENEW_MS + GRACE_MS) / 1e3,
              "%.3f s after it was deleted; A renews every 0.5 s", demo_seconds(gone, a.lost));
    demo_fact(demo, release == BELAY_ENOTOWNER && belay_lock_remaining_us(a.lock) == 0,
              "from then on A knows that it has nothing: %s", belay_err_name(release));
  }
  contender_close(&a);
}
