#include "demo/scene.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the process of a chapter -------------------------------------------------------------------------- */

static void on_ping(belay_client_t *client, int status) {
  demo_t *demo = belay_client_data(client);
  if (status != 0)
    demo_trouble(demo, "connecting to the server", status);
}

static int open_client(demo_t *demo, demo_who_t who) {
  belay_client_options_t options;
  const char *parts[2];
  worker_client_options(&options, parts, demo->run, who == DEMO_A ? "A" : "B");
  int error = belay_connect(demo->belay, getenv(WORKER_URL), &options, &demo->client[who]);
  if (error != 0)
    return error;
  belay_client_set_data(demo->client[who], demo);
  return belay_client_ping(demo->client[who], BELAY_DEFAULT, on_ping);
}

bool demo_open(demo_t *demo, const char *run, const char *folder, const char *name) {
  const char *shown = getenv(DEMO_TERM);
  int look = shown != NULL ? atoi(shown) : 0;
  *demo = (demo_t){.run = run, .folder = folder, .name = name, .family.loop = &demo->loop};
  demo->term = (term_t){.fancy = (look & 1) != 0, .utf8 = (look & 2) != 0};
  if (uv_loop_init(&demo->loop) != 0)
    return false;
  demo_timer_open(demo, &demo->clock, demo);
  int error = belay_open(&demo->loop, NULL, &demo->belay);
  for (unsigned i = 0; i < DEMO_CONTENDERS && error == 0; i++)
    error = open_client(demo, (demo_who_t)i);
  (void)demo_await(demo, "connecting to the server", error);
  demo->began = uv_hrtime();
  return demo->failed == 0;
}

void demo_close(demo_t *demo) {
  bool well = demo->belay == NULL || belay_close(demo->belay, NULL) == 0;
  demo_timer_close(&demo->clock);
  demo_run(demo);
  if (!well || uv_loop_close(&demo->loop) != 0)
    demo_trouble(demo, "a handle was left open", 0);
  demo->belay = NULL;
}

/* ---- output -------------------------------------------------------------------------------------------- */

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

/* ---- what a chapter uses ------------------------------------------------------------------------------- */

static void on_clock(uv_timer_t *timer) {
  (void)timer;
}

void demo_wait_start(demo_t *demo, uint64_t ms) {
  demo->deadline = uv_hrtime() + ms * DEMO_MS;
  (void)uv_timer_start(&demo->clock, on_clock, 1, 2);
}

bool demo_wait_step(demo_t *demo) {
  if (uv_hrtime() >= demo->deadline)
    return false;
  (void)uv_run(&demo->loop, UV_RUN_ONCE);
  return true;
}

void demo_run(demo_t *demo) {
  (void)uv_timer_stop(&demo->clock);
  (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
}

bool demo_await(demo_t *demo, const char *what, int error) {
  if (error != 0)
    demo_trouble(demo, what, error);
  demo_run(demo);
  return error == 0;
}

typedef struct sweeping {
  int status;
  belay_sweep_totals_t totals;
} sweeping_t;

static void on_swept(belay_sweep_t *sweep, int status, const belay_sweep_totals_t *totals) {
  sweeping_t *sweeping = belay_sweep_data(sweep);
  sweeping->status = status;
  sweeping->totals = *totals;
  (void)belay_sweep_close(sweep, NULL);
}

belay_sweep_totals_t demo_sweep(demo_t *demo, const char *pattern, bool remove) {
  sweeping_t sweeping = {.status = 0};
  belay_sweep_t *sweep;
  belay_sweep_options_t options;
  belay_sweep_options_init(&options);
  options.pattern = pattern;
  options.remove = remove;
  options.data = &sweeping;
  int error = belay_sweep_new(demo->client[DEMO_A], &options, &sweep);
  if (error == 0)
    error = belay_sweep_start(sweep, on_swept);
  if (demo_await(demo, "sweeping", error) && sweeping.status != 0)
    demo_trouble(demo, "sweeping", sweeping.status);
  return sweeping.totals;
}

belay_limiter_t *demo_limiter(demo_t *demo, const belay_limit_t *limits, size_t n) {
  belay_limiter_t *limiter;
  belay_limiter_options_t options;
  belay_limiter_options_init(&options);
  options.name = demo->name;
  options.name_len = strlen(demo->name);
  options.limits = limits;
  options.limits_len = n;
  int error = belay_limiter_new(demo->client[DEMO_A], &options, &limiter);
  if (error != 0)
    demo_trouble(demo, "making a limiter", error);
  return limiter;
}

static void on_reset(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  if (result->verdict != BELAY_ALLOWED)
    demo_trouble(request->data, "resetting a key", status);
}

void demo_limiter_close(demo_t *demo, belay_limiter_t *limiter, const char *const *keys, size_t n) {
  for (size_t i = 0; i < n; i++) {
    belay_request_t request = {.data = demo};
    (void)demo_await(demo, "resetting a key",
                     belay_limiter_reset(limiter, &request, keys[i], strlen(keys[i]), on_reset));
  }
  (void)belay_limiter_close(limiter, NULL);
  demo_run(demo);
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
  const char *args[] = {"worker", demo->run, owner, demo->name, ttl, "1", work, "-", NULL};
  child_start(&demo->family, child, args);
}
