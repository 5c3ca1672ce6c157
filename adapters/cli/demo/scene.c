/* What all chapters use: how they speak, and their locks, timers and processes. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "demo/demo.h"

#define READ_MS 1500 /* for the eye, between a text and what it is about */

/* ---- what a chapter says ------------------------------------------------------------------------------- */

static void on_pause_over(uv_timer_t *timer) {
  (void)uv_timer_stop(timer);
}

void demo_text(demo_t *demo, const char *text) {
  term_print(&demo->term, "%s\n\n", text);
  if (demo->term.fancy) {
    demo_timer_start(demo, &demo->pause, on_pause_over, READ_MS, 0);
    (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
  }
  demo->began = uv_hrtime();
}

double demo_seconds(uint64_t from, uint64_t to) {
  return to >= from ? (double)(to - from) / 1e9 : -(double)(from - to) / 1e9;
}

void demo_event(demo_t *demo, uint64_t at, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  double seconds = demo_seconds(demo->began, at != 0 ? at : uv_hrtime());
  const term_t *term = &demo->term;
  term_print(&demo->term, "  %s%7.3f s%s  %s%s\n", term_style(term, TERM_DIM), seconds,
             term_style(term, TERM_NORMAL), text, term_style(term, TERM_NORMAL));
}

void demo_waits(demo_t *demo, const char *what) {
  term_live(&demo->term, "  %s%7.3f s  %s%s", term_style(&demo->term, TERM_DIM),
            demo_seconds(demo->began, uv_hrtime()), what, term_style(&demo->term, TERM_NORMAL));
}

void demo_fact(demo_t *demo, bool holds, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  demo->facts++;
  demo->failed += holds ? 0 : 1;
  term_t *term = &demo->term;
  term_print(term, "  %s%s%s  %s\n", term_style(term, holds ? TERM_GOOD : TERM_BAD),
             term_glyph(term, holds ? TERM_TICK : TERM_CROSS), term_style(term, TERM_NORMAL), text);
}

void demo_trouble(demo_t *demo, const char *what, int error) {
  if (error != 0)
    demo_fact(demo, false, "%s: %s (%s)", what, belay_err_name(error), belay_strerror(error));
  else
    demo_fact(demo, false, "%s", what);
}

/* ---- what a chapter needs ------------------------------------------------------------------------------ */

belay_lock_t *demo_lock(demo_t *demo, demo_who_t who, const belay_lock_options_t *options) {
  belay_lock_t *lock;
  const char *name = demo->lock_name;
  int error = belay_lock_new(demo->client[who], name, strlen(name), options, &lock);
  if (error != 0)
    demo_trouble(demo, "making a lock", error);
  return lock;
}

void demo_lock_close(belay_lock_t **lock) {
  if (*lock != NULL)
    (void)belay_lock_close(*lock, NULL); /* can only be closing already, which is as well */
  *lock = NULL;
}

void demo_used(demo_t *demo, const char *format, ...) {
  if (demo->used_len == DEMO_USED_MAX) {
    demo_trouble(demo, "too many keys are in use", 0);
    return;
  }
  va_list args;
  va_start(args, format);
  (void)vsnprintf(demo->used[demo->used_len++], DEMO_KEY_MAX, format, args);
  va_end(args);
}

belay_limiter_t *demo_limiter(demo_t *demo, const belay_limit_t *limits, size_t n) {
  belay_limiter_t *limiter;
  belay_limiter_options_t options;
  belay_limiter_options_init(&options);
  options.name = demo->lock_name;
  options.name_len = strlen(demo->lock_name);
  options.limits = limits;
  options.limits_len = n;
  int error = belay_limiter_new(demo->client[DEMO_A], &options, &limiter);
  if (error != 0)
    demo_trouble(demo, "making a limiter", error);
  return limiter;
}

static void on_reset(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  demo_t *demo = request->data;
  if (result->verdict != BELAY_ALLOWED)
    demo_trouble(demo, "forgetting what was taken", status);
}

void demo_limiter_forget(demo_t *demo, belay_limiter_t *limiter, const char *key) {
  belay_request_t request = {.data = demo};
  demo_used(demo, WORKER_NAMESPACE "::%s::limit::%s::{%s}", demo->run, demo->lock_name, key);
  int error = belay_limiter_reset(limiter, &request, key, strlen(key), on_reset);
  if (error != 0)
    demo_trouble(demo, "forgetting what was taken", error);
  (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
}

void demo_timer_open(demo_t *demo, uv_timer_t *timer, void *data) {
  (void)uv_timer_init(&demo->loop, timer); /* never fails */
  timer->data = data;
}

void demo_timer_start(demo_t *demo, uv_timer_t *timer, uv_timer_cb cb, uint64_t ms,
                      uint64_t repeat) {
  if (uv_is_closing((uv_handle_t *)timer))
    return;
  if (uv_timer_start(timer, cb, ms, repeat) != 0)
    demo_trouble(demo, "starting a timer", 0);
}

void demo_timer_close(uv_timer_t *timer) {
  if (!uv_is_closing((uv_handle_t *)timer))
    uv_close((uv_handle_t *)timer, NULL);
}

void demo_worker_start(demo_t *demo, child_t *child, const char *owner, unsigned ttl_ms,
                       unsigned work_ms) {
  char ttl[16], work[16];
  (void)snprintf(ttl, sizeof ttl, "%u", ttl_ms);
  (void)snprintf(work, sizeof work, "%u", work_ms);
  const char *args[] = {"demo-worker", demo->run, owner, demo->lock_name, ttl, "1",
                        work,          "-",       NULL};
  child_start(&demo->family, child, args);
}
