#include "demo/scene.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the process ---- */

static bool is_fancy(void) {
  const char *no_color = getenv("NO_COLOR"), *type = getenv("TERM");
  return isatty(STDOUT_FILENO) && type != NULL && strcmp(type, "dumb") != 0 &&
         (no_color == NULL || *no_color == '\0');
}

bool demo_open(demo_t *demo, const char *run, const char *name) {
  *demo = (demo_t){.space = {DEMO_NAMESPACE, run}, .name = name, .fancy = is_fancy()};
  demo->request.data = demo;
  if (uv_loop_init(&demo->loop) != 0)
    return false;
  (void)uv_timer_init(&demo->loop, &demo->clock); /* never fails */
  return belay_open(&demo->loop, NULL, &demo->belay) == 0;
}

void demo_client_options(const demo_t *demo, belay_client_options_t *options, const char *owner) {
  belay_client_options_init(options);
  options->namespace_parts = demo->space;
  options->namespace_count = 2;
  options->client_name = DEMO_NAMESPACE;
  options->owner = owner;
}

static void on_ping(belay_client_t *client, int status) {
  demo_done(belay_client_data(client), status);
}

bool demo_connect(demo_t *demo, demo_who_t who, const char *owner) {
  belay_client_options_t options;
  demo_client_options(demo, &options, owner);
  int error = belay_connect(demo->belay, getenv(DEMO_URL), &options, &demo->client[who]);
  if (error == 0) {
    belay_client_set_data(demo->client[who], demo);
    error = belay_client_ping(demo->client[who], BELAY_DEFAULT, on_ping);
  }
  return demo_await(demo, "connecting to the server", error);
}

void demo_close(demo_t *demo) {
  bool well = demo->belay == NULL || belay_close(demo->belay, NULL) == 0;
  uv_close((uv_handle_t *)&demo->clock, NULL);
  (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
  if (!well || uv_loop_close(&demo->loop) != 0)
    demo_trouble(demo, "a handle was left open", 0);
}

/* ---- output ---- */

const char *demo_style(const demo_t *demo, demo_style_t style) {
  static const char *const codes[] = {"\033[0m", "\033[1m", "\033[2m", "\033[32m", "\033[31m"};
  return demo->fancy ? codes[style] : "";
}

/* main() notices once, at the end, that something could not be written. */
void demo_print(const char *format, ...) {
  va_list args;
  va_start(args, format);
  (void)vprintf(format, args);
  (void)fflush(stdout);
  va_end(args);
}

double demo_seconds(uint64_t from, uint64_t to) {
  return (double)(int64_t)(to - from) / 1e9;
}

void demo_event(demo_t *demo, uint64_t at, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const char *dim = demo_style(demo, DEMO_DIM), *normal = demo_style(demo, DEMO_NORMAL);
  demo_print("  %s%7.3f s%s  %s%s\n", dim, demo_seconds(demo->began, at != 0 ? at : uv_hrtime()),
             normal, text, normal);
}

void demo_fact(demo_t *demo, bool holds, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  demo->facts++;
  demo->failed += holds ? 0 : 1;
  demo_print("  %s%s%s  %s\n", demo_style(demo, holds ? DEMO_GOOD : DEMO_BAD),
             holds ? "ok    " : "FAILED", demo_style(demo, DEMO_NORMAL), text);
}

void demo_tell(const char *word, int64_t number) {
  if (printf("%s %" PRIu64 " %" PRId64 "\n", word, uv_hrtime(), number) < 0 || fflush(stdout) != 0)
    exit(1);
}

void demo_trouble(demo_t *demo, const char *what, int error) {
  if (demo->is_child) {
    demo->failed++;
    demo_tell(DEMO_FAILED, error);
  } else if (error != 0) {
    demo_fact(demo, false, "%s: %s (%s)", what, belay_err_name(error), belay_strerror(error));
  } else {
    demo_fact(demo, false, "%s", what);
  }
}

/* ---- waiting ---- */

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

void demo_sleep(demo_t *demo, uint64_t ms) {
  DEMO_WAIT(demo, ms, false);
}

void demo_run(demo_t *demo) {
  (void)uv_timer_stop(&demo->clock);
  (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
}

void demo_done(demo_t *demo, int status) {
  demo->done = true;
  demo->status = status;
}

int demo_status(demo_t *demo, int begun) {
  if (begun != 0)
    return begun;
  demo->done = false;
  demo->status = BELAY_ESTATE;
  while (!demo->done && uv_run(&demo->loop, UV_RUN_ONCE) != 0) {
  }
  return demo->status;
}

bool demo_await(demo_t *demo, const char *what, int begun) {
  int status = demo_status(demo, begun);
  if (status != 0)
    demo_trouble(demo, what, status);
  return status == 0;
}

bool demo_made(demo_t *demo, const char *what, int error) {
  if (error != 0) {
    char text[64];
    (void)snprintf(text, sizeof text, "making %s", what);
    demo_trouble(demo, text, error);
  }
  return error == 0;
}

void demo_on_done(belay_request_t *request, int status) {
  demo_done(request->data, status);
}

void demo_on_yes(belay_request_t *request, int status, bool yes) {
  demo_t *demo = request->data;
  demo->yes = yes;
  demo_done(demo, status);
}

void demo_on_number(belay_request_t *request, int status, int64_t number) {
  demo_t *demo = request->data;
  demo->number = number;
  demo_done(demo, status);
}

static void on_swept(belay_sweep_t *sweep, int status, const belay_sweep_totals_t *totals) {
  demo_t *demo = belay_sweep_data(sweep);
  *(belay_sweep_totals_t *)demo->out = *totals;
  demo_done(demo, status);
  (void)belay_sweep_close(sweep, NULL);
}

belay_sweep_totals_t demo_sweep(demo_t *demo, const char *pattern, bool remove,
                                uint32_t keys_per_s) {
  belay_sweep_totals_t totals = {0};
  belay_sweep_t *sweep;
  belay_sweep_options_t options;
  belay_sweep_options_init(&options);
  options.pattern = belay_string(pattern);
  options.remove = remove;
  if (keys_per_s > 0) {
    options.keys_per_s = keys_per_s;
    options.batch = keys_per_s / 100; /* rests are short */
  }
  options.data = demo;
  demo->out = &totals;
  int error = belay_sweep_new(demo->client[DEMO_A], &options, &sweep);
  if (error == 0)
    error = belay_sweep_start(sweep, on_swept);
  (void)demo_await(demo, "sweeping", error);
  return totals;
}

belay_limiter_t *demo_limiter(demo_t *demo, const belay_limit_t *limits, size_t n) {
  belay_limiter_t *limiter = NULL;
  belay_limiter_options_t options;
  belay_limiter_options_init(&options);
  options.name = belay_string(demo->name);
  options.limits = limits;
  options.limits_len = n;
  (void)demo_made(demo, "a limiter", belay_limiter_new(demo->client[DEMO_A], &options, &limiter));
  return limiter;
}

static void on_taken(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  demo_t *demo = request->data;
  *(belay_limiter_result_t *)demo->out = *result;
  demo_done(demo, status);
}

belay_limiter_result_t demo_take(demo_t *demo, belay_limiter_t *limiter, const char *key) {
  belay_limiter_result_t result = {.verdict = BELAY_DENIED};
  demo->out = &result;
  (void)demo_await(demo, "taking a token",
                   belay_limiter_take(limiter, &demo->request, belay_string(key), 1, on_taken));
  return result;
}
