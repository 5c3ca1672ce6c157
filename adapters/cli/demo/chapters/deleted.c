/* Chapter: a lock that is deleted behind its holder's back. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "demo/demo.h"

enum { TTL_MS = 3000, RENEW_MS = TTL_MS / 3, GRACE_MS = 1000, LIVE_MS = 50 };
enum { PATIENCE_MS = 2 * TTL_MS, KEY_MAX = 128 };

typedef struct deleted {
  demo_t *demo;
  belay_lock_t *a;
  child_t vandal;
  uv_timer_t live, patience;
  uint64_t gone;    /* when it was deleted */
  uint64_t noticed; /* when A was told */
  belay_lost_t reason;
} deleted_t;

static void finish(deleted_t *deleted) {
  child_kill(&deleted->vandal, SIGKILL);
  demo_lock_close(&deleted->a);
  demo_timer_close(&deleted->live);
  demo_timer_close(&deleted->patience);
}

static void give_up(deleted_t *deleted, const char *what, int error) {
  demo_trouble(deleted->demo, what, error);
  finish(deleted);
}

static void say_a(deleted_t *deleted, const char *what) {
  const term_t *term = &deleted->demo->term;
  demo_event(deleted->demo, 0, "%sA%s %s", term_style(term, TERM_A), term_style(term, TERM_NORMAL),
             what);
}

/* Both are known: that it was deleted, and that A noticed. */
static void conclude(deleted_t *deleted) {
  demo_t *demo = deleted->demo;
  int release = belay_lock_release(deleted->a, BELAY_DEFAULT, NULL);
  double seconds = demo_seconds(deleted->gone, deleted->noticed);
  term_print(&demo->term, "\n");
  demo_fact(demo, deleted->reason == BELAY_LOST_TAKEN, "A was told why: %s",
            belay_lost_name(deleted->reason));
  demo_fact(demo, seconds <= (RENEW_MS + GRACE_MS) / 1e3,
            "%.3f s after it was deleted; A renews every %.0f s", seconds, RENEW_MS / 1e3);
  demo_fact(demo, release == BELAY_ENOTOWNER && belay_lock_remaining_us(deleted->a) == 0,
            "from then on A knows that it has nothing: %s", belay_err_name(release));
  finish(deleted);
}

static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  deleted_t *deleted = belay_lock_data(lock);
  deleted->noticed = uv_hrtime();
  deleted->reason = reason;
  say_a(deleted, "renews the lease, hears that it is gone, and is told");
  demo_timer_close(&deleted->live);
  if (deleted->gone != 0)
    conclude(deleted);
}

static void on_live(uv_timer_t *timer) {
  const deleted_t *deleted = timer->data;
  demo_waits(deleted->demo, "A works, and believes that it has the lock ...");
}

static void on_patience(uv_timer_t *timer) {
  give_up(timer->data, "A was never told", 0);
}

static void on_line(child_t *child, const char *line) {
  deleted_t *deleted = child->data;
  demo_t *demo = deleted->demo;
  news_t news;
  if (!news_parse(line, &news) || strcmp(news.word, NEWS_REPLY) != 0 || news.number != 1)
    return;
  deleted->gone = news.at;
  demo_event(demo, news.at, "somebody sends DEL with A's key, and the server obeys");
  if (deleted->noticed != 0)
    conclude(deleted);
}

static void on_end(child_t *child) {
  deleted_t *deleted = child->data;
  if (deleted->gone == 0)
    give_up(deleted, "nobody could delete the lock", 0);
}

static void on_held(belay_lock_t *lock, int status) {
  deleted_t *deleted = belay_lock_data(lock);
  demo_t *demo = deleted->demo;
  if (status != 0) {
    give_up(deleted, "A takes the lock", status);
    return;
  }
  belay_lock_ref(lock); /* all that there is to wait for is the lock itself */
  say_a(deleted, "has the lock, for 3 s, and the watchdog is on");
  char key[KEY_MAX];
  size_t len;
  const char *text = belay_lock_key(lock, &len);
  (void)snprintf(key, sizeof key, "%.*s", (int)len, text);
  const char *args[] = {"demo-raw", "DEL", key, NULL};
  child_start(&demo->family, &deleted->vandal, args);
  demo_timer_start(demo, &deleted->live, on_live, LIVE_MS, LIVE_MS);
  demo_timer_start(demo, &deleted->patience, on_patience, PATIENCE_MS, 0);
}

void play_deleted(demo_t *demo) {
  demo_text(demo, "  Somebody deletes A's key on the server, by mistake say. No lock of this kind\n"
                  "  can prevent that, and A learns of it at its next renewal, at the latest a\n"
                  "  third of the ttl later. Where that is too late, guard the resource as well.");
  deleted_t deleted = {.demo = demo};
  deleted.vandal = (child_t){.on_line = on_line, .on_end = on_end, .data = &deleted};
  demo_timer_open(demo, &deleted.live, &deleted);
  demo_timer_open(demo, &deleted.patience, &deleted);
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.data = &deleted;
  options.ttl_ms = TTL_MS;
  options.watchdog = BELAY_WATCHDOG_ON;
  options.on_lost = on_lost;
  deleted.a = demo_lock(demo, DEMO_A, &options);
  int error =
      deleted.a == NULL ? BELAY_ESTATE : belay_lock_acquire(deleted.a, BELAY_DEFAULT, on_held);
  if (error != 0)
    give_up(&deleted, "A asks for the lock", error);
  (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
}
