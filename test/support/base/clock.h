/* A clock that does not depend on belay, and time limits for slow machines. */
#ifndef TEST_SUPPORT_BASE_CLOCK_H
#define TEST_SUPPORT_BASE_CLOCK_H

#include <stdint.h>

#define MS INT64_C(1000000) /* nanoseconds in a millisecond */

/* Nanoseconds, monotonic. */
int64_t clock_now(void);

/* Milliseconds since then. */
int64_t clock_since_ms(int64_t then);

/* Factor by which this process runs slower than usual: 1; more under a sanitizer or valgrind.
 * BELAY_TEST_SLOW in the environment, a number, overrides it. */
int64_t slow(void);

/* Milliseconds by which an event of this process may be late on a busy machine. */
int64_t lag(void);

/* Milliseconds in which a healthy server replies in spite of that: a time limit for tests that
 * expect this reply and no later one. */
int64_t prompt_ms(void);

/* A ttl in milliseconds with which a renewed lease survives a renewal that is that late: for tests
 * that are not about losses. */
int64_t kept_ttl(void);

/* Nonzero if memory is watched, so that the size of the process has no meaning. */
int memory_is_watched(void);

/* Block this thread. */
void stall_ms(int64_t ms);

#endif /* TEST_SUPPORT_BASE_CLOCK_H */
