/* The server's clock, as this process knows it: a TIME that was asked now and then, and the host's own clock since.
 *
 *   not known --TIME--> known --a minute--> known, and one operation asks again --TIME--> known
 *        ^                                    |
 *        +-- ten minutes; the connection is another one --+
 *
 * It is off by at most half the time that the answer took, and what the two clocks drift apart in a minute; an answer
 * that took long is good for some seconds only, since it may have been this process that was late. So the caller's wall
 * clock is of no account, and an operation need not ask what time it is. */
#ifndef BELAY_CORE_CLIENT_SERVER_TIME_H
#define BELAY_CORE_CLIENT_SERVER_TIME_H

#include "core/client/handle.h"

typedef struct belay__servertime {
  uint64_t learnt;                /* when, by the host's clock; 0: never */
  uint64_t ask_at;                /* from then on one operation asks */
  int64_t us;                     /* what the server's clock said then: microseconds since 1970 */
  uint32_t epoch;                 /* of the connection that was asked */
  int64_t shift_us;               /* is added to what the server says; tests set it */
  belay__conn_class_t conn_class; /* of the calls of the handle that needs it */
} belay__servertime_t;

/* Whether the next operation need not ask. Each time it is due, one is told to. */
bool belay__servertime_known(belay__servertime_t *time, const belay__handle_t *handle);
bool belay__servertime_known_at(belay__servertime_t *time, const belay__handle_t *handle,
                                uint64_t now);

/* Milliseconds since 1970; of one that was learnt. And those at a time of the host's. */
int64_t belay__servertime_ms(const belay__servertime_t *time, const belay__handle_t *handle);
int64_t belay__servertime_ms_at(const belay__servertime_t *time, uint64_t now);

/* The last line of an operation whose ops->next sends its calls, and needs the time if `needed`. PARKED: sends TIME if the
 * time is not known, else calls ops->next. The request is forgotten on an error, which is returned. */
int belay__servertime_begin(belay__servertime_t *time, const belay__handle_t *handle,
                            belay__operation_t *operation, bool needed);
/* The first lines of its ops->read. True if this is the reply to TIME: then ops->read returns *status. */
bool belay__servertime_learn(belay__servertime_t *time, belay__operation_t *operation,
                             const belay__call_t *call, const belay__reply_t *reply, int *status);

/* The call that asks; NULL if memory is out. */
belay__call_t *belay__servertime_call(const belay__servertime_t *time,
                                      const belay__handle_t *handle);

/* Reads its reply: 0 or BELAY_EPROTO. */
int belay__servertime_read(belay__servertime_t *time, const belay__call_t *call,
                           const belay__reply_t *reply);

#endif /* BELAY_CORE_CLIENT_SERVER_TIME_H */
