/* Random delays, in nanoseconds. Clients that wait for the same event or meet the same failure must
 * not send their commands in the same moment, so each delay before a repetition comes from one of
 * these functions:
 *
 *   belay__backoff     after a failure: from half a limit to the limit, which doubles with each
 *                      further failure in a row, up to a maximum
 *   belay__period      before a periodic action: from three quarters of the period to the period
 *   belay__spread      after an event that many clients see at once: from 1 ns to a limit
 *   belay__delay_draw  from a range that options or a caller give, such as that of polls */
#ifndef BELAY_CORE_LOOP_BACKOFF_H
#define BELAY_CORE_LOOP_BACKOFF_H

#include "core/loop/loop.h"

/* Largest delay after a first failure; the usual upper limit after many failures; the usual limit
 * of a spread. */
#define BELAY__BACKOFF_MIN_MS UINT64_C(20)
#define BELAY__BACKOFF_MAX_MS UINT64_C(1000)
#define BELAY__SPREAD_MS UINT64_C(5)

/* A range of delays. Both ends belong to it; min is at most max. */
typedef struct belay__delay {
  uint64_t min, max;
} belay__delay_t;

static inline belay__delay_t belay__delay_ms(uint64_t min_ms, uint64_t max_ms) {
  return (belay__delay_t){min_ms * BELAY__MS, max_ms * BELAY__MS};
}

/* Double both ends `times` times, but stop when max reaches `most`. A max above `most` becomes
 * `most`, and min shrinks in the same proportion. */
belay__delay_t belay__delay_grow(belay__delay_t delay, unsigned times, uint64_t most);

/* Return the range of the delay before a waiter polls again: retry_min_ms to retry_max_ms of the
 * waiter's options, doubled `times` times, up to most_ms, or to retry_max_ms if retry_max_ms is
 * larger. */
belay__delay_t belay__delay_poll(uint32_t retry_min_ms, uint32_t retry_max_ms, unsigned times,
                                 uint64_t most_ms);

/* Return a random delay from the range; delay.min if there are no random bytes. */
uint64_t belay__delay_draw(belay_t *belay, belay__delay_t delay);

/* Return a random delay before the repetition after a failure. failures: consecutive failures
 * before this one. most: upper limit of the delay, in nanoseconds. */
uint64_t belay__backoff(belay_t *belay, unsigned failures, uint64_t most);

uint64_t belay__period(belay_t *belay, uint64_t period);

/* Return a random delay of 1 to `within` nanoseconds. within: at least 1. */
uint64_t belay__spread(belay_t *belay, uint64_t within);

#endif /* BELAY_CORE_LOOP_BACKOFF_H */
