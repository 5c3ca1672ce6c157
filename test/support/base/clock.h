/* Time, as a test sees it: a clock that is not belay's, and patience where the machine is slow. */
#ifndef TEST_SUPPORT_BASE_CLOCK_H
#define TEST_SUPPORT_BASE_CLOCK_H

#include <stdint.h>

#define MS INT64_C(1000000) /* nanoseconds in a millisecond */

/* Nanoseconds, monotonic. */
int64_t clock_now(void);

/* Milliseconds since then. */
int64_t clock_since_ms(int64_t then);

/* How much slower than usual this process runs: 1, more under a sanitizer or valgrind. BELAY_TEST_SLOW in
 * the environment, a number, overrides it. */
int64_t slow(void);

/* How much later than it is due, in milliseconds, what happens in this process may come where others have the
 * machine's time just then. */
int64_t lag(void);

/* Milliseconds in which a server answers that is well, whatever the lag: a time limit for tests in which that answer is
 * wanted, and a later one is not. */
int64_t prompt_ms(void);

/* Milliseconds for a lease that is renewed, and not lost although one of its renewals comes that late: for tests that are
 * not about its loss. */
int64_t kept_ttl(void);

/* Whether memory is watched, so that the process's own size says nothing. */
int memory_is_watched(void);

/* Keeps this thread from doing anything else. */
void stall_ms(int64_t ms);

#endif /* TEST_SUPPORT_BASE_CLOCK_H */
