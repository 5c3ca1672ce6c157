/* Messages of a command that waits for something that another process holds. */
#ifndef BELAY_CLI_RUN_WAITING_H
#define BELAY_CLI_RUN_WAITING_H

#include "harness.h"

typedef struct waiting waiting_t;

/* Return the reason why the wait cannot end at present, such as that no server answers; NULL if it
 * can. Valid until the next call. */
typedef const char *(*waiting_trouble_fn)(const waiting_t *waiting);

/* The caller zeroes the struct and sets these fields: */
struct waiting {
  belay_held_kind_t kind; /* kind of the awaited object */
  /* its name; NULL: the holder cannot be queried, because the key is an exact one */
  const char *name;
  /* NULL: query the holder from the servers, and report it if they do not answer */
  waiting_trouble_fn trouble;

  /* Private fields. */
  harness_t *harness; /* NULL: not started, or ended */
  uv_timer_t timer;
  belay_request_t request;
  bool asking;          /* true if the request, or a ping, is pending */
  size_t next;          /* index of the server to query next */
  char words[1024];     /* the last error, in words */
  uint64_t reported_at; /* uv_now() of the last report of trouble; 0: none at present */
  uint64_t named_at;    /* uv_now() of the last report of the holder */
  uint64_t mark;        /* mark of the holder that was reported last */
};

/* Start reports on standard error, until waiting_pause():
 *
 *   - trouble: at once, then every minute, and when it is over;
 *   - with --verbose the holder and its remaining time: when the holder changes, and every ten seconds.
 *
 * The first check is after a second, or at once if trouble is NULL. */
void waiting_begin(waiting_t *waiting, harness_t *harness);

/* Stop the reports until waiting_begin() is called again. */
void waiting_pause(waiting_t *waiting);

/* End the reports, before the harness is done. Does nothing if they were not started, or have
 * ended. */
void waiting_end(waiting_t *waiting);

#endif /* BELAY_CLI_RUN_WAITING_H */
