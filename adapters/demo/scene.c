#include "demo/scene.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- the process ---- */

bool demo_open(demo_t *demo) {
  const char *no_color = getenv("NO_COLOR");
  demo->fancy = isatty(STDOUT_FILENO) && (no_color == NULL || *no_color == '\0');
  demo->request.data = demo;
  if (uv_loop_init(&demo->loop) != 0)
    return false;
  (void)uv_timer_init(&demo->loop, &demo->clock); /* never fails */
  return belay_open(&demo->loop, NULL, &demo->belay) == 0;
}

static void on_ping(belay_client_t *client, int status) {
  demo_done(belay_client_data(client), status);
}

bool demo_connect(demo_t *demo, demo_who_t who) {
  int error = belay_connect(demo->belay, demo->url, NULL, &demo->client[who]);
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
  va_list args;
  demo_print("  %s%7.3f s%s  ", demo_style(demo, DEMO_DIM),
             demo_seconds(demo->began, at != 0 ? at : uv_hrtime()), demo_style(demo, DEMO_NORMAL));
  va_start(args, format);
  (void)vprintf(format, args);
  va_end(args);
  demo_print("\n");
}

void demo_fact(demo_t *demo, bool holds, const char *format, ...) {
  va_list args;
  demo->facts++;
  demo->failed += !holds;
  demo_print("  %s%s%s  ", demo_style(demo, holds ? DEMO_GOOD : DEMO_BAD),
             holds ? "ok    " : "FAILED", demo_style(demo, DEMO_NORMAL));
  va_start(args, format);
  (void)vprintf(format, args);
  va_end(args);
  demo_print("\n");
}

void demo_report(const char *word, int64_t number) {
  if (printf("%s %" PRIu64 " %" PRId64 "\n", word, uv_hrtime(), number) < 0 || fflush(stdout) != 0)
    exit(1);
}

void demo_trouble(demo_t *demo, const char *what, int error) {
  if (demo->is_child) {
    demo->failed++;
    demo_report(DEMO_FAILED, error);
  } else if (error != 0) {
    demo_fact(demo, false, "%s: %s (%s)", what, belay_err_name(error), belay_strerror(error));
  } else {
    demo_fact(demo, false, "%s", what);
  }
}

bool demo_check(demo_t *demo, const char *what, int error) {
  if (error != 0)
    demo_trouble(demo, what, error);
  return error == 0;
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
  return demo_check(demo, what, demo_status(demo, begun));
}

void demo_on_number(belay_request_t *request, int status, int64_t number) {
  demo_t *demo = request->data;
  demo->number = number;
  demo_done(demo, status);
}
