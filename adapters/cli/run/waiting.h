/* Messages of a command that waits while no server answers. */
#ifndef BELAY_CLI_RUN_WAITING_H
#define BELAY_CLI_RUN_WAITING_H

#include "harness.h"

/* Return the reason why the wait cannot end at present, such as that no server answers; NULL if it
 * can. Valid until the next call. */
typedef const char *(*waiting_trouble_fn)(void);

/* The caller zeroes the struct and sets trouble. */
typedef struct waiting {
  waiting_trouble_fn trouble; /* NULL: ping the server, and report it if it does not answer */

  /* Private fields. */
  harness_t *harness; /* NULL: not started, or ended */
  uv_timer_t timer;
  bool pinging;
  uint64_t reported_at; /* uv_now() of the last report; 0: none at present */
} waiting_t;

/* Start reports on standard error until waiting_pause(): trouble at once, then every minute, and
 * when it is over. The first check is after a second, or at once if trouble is NULL. */
void waiting_start(waiting_t *waiting, harness_t *harness);

/* Stop the reports until waiting_start() is called again. */
void waiting_pause(waiting_t *waiting);

/* End the reports, before the harness is done. Does nothing if they were not started, or have
 * ended. */
void waiting_end(waiting_t *waiting);

#endif /* BELAY_CLI_RUN_WAITING_H */
