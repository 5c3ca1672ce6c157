#include "support/load/pulse.h"

#include <stdio.h>
#include <time.h>

#include "support/base/clock.h"
#include "support/base/unit.h"

static int64_t busy_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000 * MS + t.tv_nsec;
}

/* For how long this thread was kept waiting for a processor so far; 0 if the system does not
 * tell. */
static int64_t kept_waiting(void) {
  long long ran, waited = 0;
  FILE *file = fopen("/proc/thread-self/schedstat", "r");
  if (file == NULL)
    return 0;
  if (fscanf(file, "%lld %lld", &ran, &waited) != 2)
    waited = 0;
  fclose(file);
  return waited;
}

static int64_t longer(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static void on_pulse(uv_timer_t *timer) {
  pulse_t *pulse = timer->data;
  /* it may be kept waiting between these lines: that is taken off both gaps */
  int64_t kept = kept_waiting();
  int64_t now = clock_now(), busy = busy_now();
  if (pulse->last > 0) {
    int64_t gap = now - pulse->last;
    pulse->longest = longer(pulse->longest, gap);
    pulse->longest_held = longer(pulse->longest_held, gap - (kept_waiting() - pulse->last_kept));
    pulse->longest_busy = longer(pulse->longest_busy, busy - pulse->last_busy);
  }
  pulse->last = now;
  pulse->last_kept = kept;
  pulse->last_busy = busy;
}

void pulse_begin(pulse_t *pulse, uv_loop_t *loop) {
  uv_timer_init(loop, &pulse->timer);
  pulse->timer.data = pulse;
  uv_update_time(loop);
  uv_timer_start(&pulse->timer, on_pulse, 1, 1);
  pulse_reset(pulse);
}

void pulse_end(pulse_t *pulse) {
  uv_close((uv_handle_t *)&pulse->timer, NULL);
}

void pulse_reset(pulse_t *pulse) {
  pulse->last = pulse->longest = pulse->longest_held = pulse->longest_busy = 0;
  on_pulse(&pulse->timer);
}

static void on_stop(uv_async_t *stop) {
  pulse_control_t *control = stop->data;
  pulse_end(&control->pulse);
  uv_close((uv_handle_t *)stop, NULL);
}

static void *run_control(void *arg) {
  uv_run(&((pulse_control_t *)arg)->loop, UV_RUN_DEFAULT);
  return NULL;
}

void pulse_control_begin(pulse_control_t *control) {
  uv_loop_init(&control->loop);
  uv_async_init(&control->loop, &control->stop, on_stop);
  control->stop.data = control;
  pulse_begin(&control->pulse, &control->loop);
  control->pulse.last = 0; /* its thread begins when it does */
  assert_int_equal(pthread_create(&control->thread, NULL, run_control, control), 0);
}

int64_t pulse_control_end(pulse_control_t *control) {
  uv_async_send(&control->stop);
  pthread_join(control->thread, NULL);
  assert_int_equal(uv_loop_close(&control->loop), 0);
  return control->pulse.longest_held;
}
