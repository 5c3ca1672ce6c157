/* The server's clock as this process knows it: the reply to an earlier TIME, plus the time since
 * then on the host's clock.
 *
 *    unknown --TIME--> known --a minute--> known, and one operation asks again --TIME--> known
 *       ^                                    |
 *       +-- ten minutes; another connection -+
 *
 * The error is at most half of the round-trip time of TIME, plus the drift of the two clocks since
 * then. After a slow reply, an operation asks again after some seconds instead of a minute, because
 * this process may have caused the delay. The wall clock of this process has no effect, and most
 * operations need not ask for the time. */
#ifndef BELAY_CORE_CLIENT_SERVER_TIME_H
#define BELAY_CORE_CLIENT_SERVER_TIME_H

#include "core/client/handle.h"

typedef struct belay__servertime {
  /* Middle of the round trip of the last TIME, in nanoseconds of the host's clock; 0: never */
  uint64_t learnt;
  uint64_t ask_at; /* Time from which one operation asks again, in nanoseconds */
  int64_t us;      /* Server's time at `learnt`: microseconds since 1970 */
  uint32_t epoch;  /* Number of the connection that was asked */
  /* Offset added to the server's time, in microseconds; set by tests */
  int64_t shift_us;
  belay__conn_class_t conn_class; /* Connection class of the handle's calls */
} belay__servertime_t;

/* true if an operation that starts at time `now` of the host's clock need not ask the server for
 * its time. When the server must be asked again, this returns false to one operation (and to
 * another one some seconds later, if no reply has arrived). */
bool belay__servertime_known(belay__servertime_t *time, const belay__handle_t *handle,
                             uint64_t now);

/* Return the server's time in milliseconds since 1970, now or at the time `now` of the host's
 * clock. The server's time must be known. */
int64_t belay__servertime_ms(const belay__servertime_t *time, const belay__handle_t *handle);
int64_t belay__servertime_ms_at(const belay__servertime_t *time, uint64_t now);

/* The last line of an operation whose ops->next sends its calls. If `needed` and the time is
 * unknown, sends TIME; else calls ops->next. The request is PARKED before. On an error, forgets the
 * request and returns the error. */
int belay__servertime_begin(belay__servertime_t *time, const belay__handle_t *handle,
                            belay__operation_t *operation, bool needed);
/* The first line of the operation's ops->read. Returns true if this is the reply to TIME: then
 * ops->read must return *status. */
bool belay__servertime_learn(belay__servertime_t *time, belay__operation_t *operation,
                             const belay__call_t *call, const belay__reply_t *reply, int *status);

/* The call of TIME; NULL if memory is out. */
belay__call_t *belay__servertime_call(const belay__servertime_t *time,
                                      const belay__handle_t *handle);

/* Read the reply to TIME, and set the server's time. Returns 0 or BELAY_EPROTO. */
int belay__servertime_read(belay__servertime_t *time, const belay__call_t *call,
                           const belay__reply_t *reply);

#endif /* BELAY_CORE_CLIENT_SERVER_TIME_H */
