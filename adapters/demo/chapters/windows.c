/* Chapter: three limits at once, and which of them blocks when. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { WINDOWS = 3, MOST = 8, LONGEST_MS = 10000, GRACE_MS = 500, LIVE_MS = 50, CALLS_MAX = 64 };
static const char key[] = "export";

static const belay_limit_t limits[WINDOWS] = {
    {.kind = BELAY_LIMIT_FIXED, .count = 3, .period_us = 500000},
    {.kind = BELAY_LIMIT_SLIDING, .count = 5, .period_us = 1000000},
    {.kind = BELAY_LIMIT_FIXED, .count = MOST, .period_us = LONGEST_MS * INT64_C(1000)},
};
static const char *const names[WINDOWS] = {"3 in 0.5 s", "5 in 1 s", "8 in 10 s"};

typedef struct windows {
  demo_t *demo;
  belay_limiter_t *limiter;
  belay_request_t request;
  uv_timer_t again;
  unsigned calls, admitted, denied[WINDOWS];
  unsigned first;            /* that blocked */
  unsigned told, told_wrong; /* how often it came when it was told to, and was sent away again */
  bool comes_back;           /* this call is such a one */
  uint64_t began;            /* before the first call */
  double left;               /* what the last one is told to wait */
  uint64_t ended;            /* and when it is */
} windows_t;

static void finish(windows_t *windows) {
  demo_timer_close(&windows->again);
}

/* What blocks, in the column of each limit. */
static void print_call(const windows_t *windows, const belay_limiter_result_t *result) {
  const term_t *term = &windows->demo->term;
  bool denied = result->verdict == BELAY_DENIED;
  char cells[256], how[64] = "allowed";
  size_t n = 0;
  for (unsigned i = 0; i < WINDOWS; i++) {
    bool blocks = denied && result->window == i;
    n += (size_t)snprintf(
        cells + n, sizeof cells - n, "  %s%s%s", term_style(term, blocks ? TERM_BAD : TERM_GOOD),
        denied && !blocks ? " " : term_glyph(term, blocks ? TERM_AWAY : TERM_HOLDS),
        term_style(term, TERM_NORMAL));
  }
  if (denied)
    (void)snprintf(how, sizeof how, "denied by %s: again in %.3f s", names[result->window],
                   (double)result->retry_after_us / 1e6);
  demo_event(windows->demo, 0, "  %s    %3u   %s%s", cells, windows->calls,
             term_style(term, TERM_DIM), how);
}

static void take(windows_t *windows);

static void on_again(uv_timer_t *timer) {
  windows_t *windows = timer->data;
  windows->comes_back = true;
  take(windows);
}

static void on_denied(windows_t *windows, const belay_limiter_result_t *result) {
  windows->told_wrong += windows->comes_back;
  if (windows->admitted > 0 && windows->denied[0] + windows->denied[1] + windows->denied[2] == 0)
    windows->first = result->window;
  windows->denied[result->window]++;
  if (result->window == WINDOWS - 1) {
    windows->left = (double)result->retry_after_us / 1e6;
    windows->ended = uv_hrtime();
    finish(windows);
    return;
  }
  demo_t *demo = windows->demo;
  uv_update_time(&demo->loop);
  demo_timer_start(demo, &windows->again, on_again, (uint64_t)result->retry_after_us / 1000 + 2, 0);
}

static void on_taken(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  windows_t *windows = request->data;
  windows->calls++;
  if (status != 0 || windows->calls == CALLS_MAX) {
    demo_trouble(windows->demo, "taking a token", status);
    finish(windows);
    return;
  }
  print_call(windows, result);
  windows->told += windows->comes_back;
  if (result->verdict == BELAY_ALLOWED) {
    windows->admitted++;
    windows->comes_back = false;
    take(windows);
  } else {
    on_denied(windows, result);
  }
}

static void take(windows_t *windows) {
  int error =
      belay_limiter_take(windows->limiter, &windows->request, key, strlen(key), 1, on_taken);
  if (error == 0)
    return;
  demo_trouble(windows->demo, "asking for a token", error);
  finish(windows);
}

static void conclude(const windows_t *windows) {
  demo_t *demo = windows->demo;
  double passed = demo_seconds(windows->began, windows->ended), all = passed + windows->left;
  term_print(&demo->term, "\n");
  demo_fact(demo,
            windows->first == 0 && windows->denied[0] > 0 && windows->denied[1] > 0 &&
                windows->denied[2] == 1,
            "each of them has blocked: first %s, then %s, then %s", names[0], names[1], names[2]);
  demo_fact(demo, windows->admitted == MOST,
            "%u calls were admitted until the last of them did; no denied one counted",
            windows->admitted);
  demo_fact(demo, windows->told > 0 && windows->told_wrong == 0,
            "%u times it came back when it was told to, and was admitted each time", windows->told);
  demo_fact(demo, all >= (LONGEST_MS - GRACE_MS) / 1e3 && all <= (LONGEST_MS + GRACE_MS) / 1e3,
            "after %.1f s it is told to wait for %.1f s more: 10 s in all", passed, windows->left);
}

void chapter_windows(demo_t *demo) {
  windows_t windows = {.demo = demo, .limiter = demo_limiter(demo, limits, WINDOWS)};
  if (windows.limiter == NULL)
    return;
  const term_t *term = &demo->term;
  term_print(&demo->term, "  %s    time      1  2  3    call   %s allows it, %s blocks it%s\n",
             term_style(term, TERM_DIM), term_glyph(term, TERM_HOLDS), term_glyph(term, TERM_AWAY),
             term_style(term, TERM_NORMAL));
  demo_timer_open(demo, &windows.again, &windows);
  windows.request.data = &windows;
  windows.began = uv_hrtime();
  take(&windows);
  demo_run(demo);
  if (windows.ended != 0)
    conclude(&windows);
  demo_limiter_close(demo, windows.limiter, &(const char *){key}, 1);
}
