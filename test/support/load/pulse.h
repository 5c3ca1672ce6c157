/* How long a loop keeps others waiting. */
#ifndef TEST_SUPPORT_LOAD_PULSE_H
#define TEST_SUPPORT_LOAD_PULSE_H

#include <pthread.h>
#include <stdint.h>
#include <uv.h>

/* A timer that wants to be called each millisecond, and the longest that it had to wait: by the
 * clock; by the clock, but for the time in which the thread could have gone on, and others had
 * the processors; and by the time for which the thread computed. In nanoseconds. */
typedef struct pulse {
  uv_timer_t timer;
  int64_t last, longest;
  int64_t last_kept, longest_held;
  int64_t last_busy, longest_busy;
} pulse_t;

/* From now on; and for good: the loop has still to close the timer. */
void pulse_begin(pulse_t *pulse, uv_loop_t *loop);
void pulse_end(pulse_t *pulse);

/* Forgets the past. */
void pulse_reset(pulse_t *pulse);

/* A loop that does nothing else, in a thread of its own. */
typedef struct pulse_control {
  pthread_t thread;
  uv_loop_t loop;
  uv_async_t stop;
  pulse_t pulse;
} pulse_control_t;

void pulse_control_begin(pulse_control_t *control);
/* Its longest gap, without the time of other processes. */
int64_t pulse_control_end(pulse_control_t *control);

#endif /* TEST_SUPPORT_LOAD_PULSE_H */
