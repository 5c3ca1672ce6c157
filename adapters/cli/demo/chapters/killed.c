/* Chapter: a process that is killed while it holds the lock, and the one that inherits it. */
#include <signal.h>
#include <string.h>

#include "demo/demo.h"

enum { TTL_MS = 1500, DRIFT_MS = TTL_MS / 100 + 2, GRACE_MS = 1000 };
enum { KILL_AFTER_MS = 400, WORK_MS = 60000, WAIT_MS = 15000, LIVE_MS = 50 };

typedef struct killed {
  demo_t *demo;
  child_t holder;
  belay_lock_t *b;
  uv_timer_t killer, live;
  uint64_t asked, held; /* by the holder: before it asked for the lock, and when it had it */
} killed_t;

static void finish(killed_t *killed) {
  child_kill(&killed->holder, SIGKILL);
  demo_lock_close(&killed->b);
  demo_timer_close(&killed->killer);
  demo_timer_close(&killed->live);
}

static void give_up(killed_t *killed, const char *what, int error) {
  demo_trouble(killed->demo, what, error);
  finish(killed);
}

static void on_released(belay_lock_t *lock, int status) {
  killed_t *killed = belay_lock_data(lock);
  if (status != 0)
    demo_trouble(killed->demo, "B gives the lock back", status);
  finish(killed);
}

static void on_inherited(belay_lock_t *lock, int status) {
  killed_t *killed = belay_lock_data(lock);
  demo_t *demo = killed->demo;
  uint64_t now = uv_hrtime();
  demo_timer_close(&killed->live);
  if (status != 0) {
    give_up(killed, "B waits for the lock", status);
    return;
  }
  demo_event(demo, now, "%sB%s has it", term_style(&demo->term, TERM_B),
             term_style(&demo->term, TERM_NORMAL));
  term_print(&demo->term, "\n");
  demo_fact(demo, now - killed->asked >= (TTL_MS - DRIFT_MS) * DEMO_MS,
            "B got it %.3f s after the holder asked for it: not before the ttl was over",
            demo_seconds(killed->asked, now));
  demo_fact(demo, now - killed->asked <= (TTL_MS + GRACE_MS) * DEMO_MS,
            "and %.0f ms after its end, with nobody there to clean up",
            1e3 * demo_seconds(killed->asked + TTL_MS * DEMO_MS, now));
  int error = belay_lock_release(lock, BELAY_DEFAULT, on_released);
  if (error != 0)
    give_up(killed, "B gives the lock back", error);
}

static void on_live(uv_timer_t *timer) {
  const killed_t *killed = timer->data;
  demo_waits(killed->demo, "B waits ...");
}

static void on_kill(uv_timer_t *timer) {
  killed_t *killed = timer->data;
  child_kill(&killed->holder, SIGKILL);
}

static void on_line(child_t *child, const char *line) {
  killed_t *killed = child->data;
  demo_t *demo = killed->demo;
  const char *normal = term_style(&demo->term, TERM_NORMAL);
  news_t news;
  if (!news_parse(line, &news))
    return;
  if (strcmp(news.word, NEWS_ASKS) == 0)
    killed->asked = news.at;
  if (strcmp(news.word, NEWS_FAILED) == 0)
    demo_trouble(demo, "the holder takes the lock", (int)news.number);
  if (strcmp(news.word, NEWS_WON) != 0)
    return;
  killed->held = news.at;
  demo_event(demo, news.at, "%sA%s, process %d, has the lock, for %.1f s",
             term_style(&demo->term, TERM_A), normal, uv_process_get_pid(&child->process),
             TTL_MS / 1e3);
  int error = belay_lock_acquire(killed->b, WAIT_MS, on_inherited);
  if (error != 0) {
    give_up(killed, "B asks for the lock", error);
    return;
  }
  demo_event(demo, 0, "%sB%s asks for it, and waits", term_style(&demo->term, TERM_B), normal);
  demo_timer_start(demo, &killed->killer, on_kill, KILL_AFTER_MS, 0);
  demo_timer_start(demo, &killed->live, on_live, LIVE_MS, LIVE_MS);
}

static void on_end(child_t *child) {
  killed_t *killed = child->data;
  demo_t *demo = killed->demo;
  if (child->exit_signal != SIGKILL || killed->held == 0) {
    give_up(killed, "the holder ended before it was killed", 0);
    return;
  }
  if (killed->b != NULL)
    demo_event(demo, 0, "%sA%s is killed with kill -9", term_style(&demo->term, TERM_A),
               term_style(&demo->term, TERM_NORMAL));
}

void play_killed(demo_t *demo) {
  demo_text(demo, "  A process is killed while it has the lock. It can give nothing back any\n"
                  "  more. But what it has is a lease: it ends with its time to live, the ttl.");
  killed_t killed = {.demo = demo};
  killed.holder = (child_t){.on_line = on_line, .on_end = on_end, .data = &killed};
  demo_timer_open(demo, &killed.killer, &killed);
  demo_timer_open(demo, &killed.live, &killed);
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.data = &killed;
  killed.b = demo_lock(demo, DEMO_B, &options);
  if (killed.b == NULL)
    finish(&killed);
  else
    demo_worker_start(demo, &killed.holder, "A", TTL_MS, WORK_MS);
  (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
}
