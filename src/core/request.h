/* What a request does: one call, whose end is told from a task, once.
 *
 *   IDLE --start--> CALLING --answered, refused, lost--> ENDED --the task--> IDLE, told
 *                   |  ^  |                                ^
 *       lost, and   v  |  +--cancel, the client closes-----+
 *       idempotent: sent again, until the deadline
 *
 * Who was sent again ends with 0 or BELAY_EUNKNOWN: that the second time was refused says nothing of the first.
 * While it is not IDLE the request is an object of the client, and keeps the loop alive. It is IDLE, and its memory
 * the caller's, before the callback runs. */
#ifndef BELAY_CORE_REQUEST_H
#define BELAY_CORE_REQUEST_H

#include "belay/request.h"
#include "core/client.h"

#define BELAY__REQUEST_VALUES 4

typedef struct belay__request_ops {
  /* Reads a reply that is no error: 0, with values set, or an error. BELAY_EPROTO ends the connection too. */
  int (*read)(const belay__reply_t *reply, int64_t values[BELAY__REQUEST_VALUES]);

  /* Calls back: casts cb to what the family calls it. values are 0 unless status is. */
  void (*tell)(belay_request_t *request, void (*cb)(void), int status, const int64_t *values);

  /* Whether a call whose answer was lost is sent again while there is time: its effect and its answer are the same
   * however often it runs. */
  bool idempotent;
} belay__request_ops_t;

/* 0 or BELAY_EINVAL, with a detail: what a family checks of a request before it builds the call. */
int belay__request_check(belay_client_t *client, const belay_request_t *request);

/* Its time; of one that was checked. */
int64_t belay__request_timeout_ms(const belay_client_t *client, const belay_request_t *request);

/* Starts: sends a call that was built for it, and is given back on an error. The deadline is set here, by the
 * request's timeout_ms; call->affinity is the family's to set. owner_list: NULL, or a list of an object's that it
 * stands in until it is told, for belay__requests_cancel(). cb is of the type that ops->tell casts it to.
 * Returns 0, BELAY_ESTATE (it is pending), BELAY_ENOMEM or BELAY_EBUSY; a lasting refusal of the server's is told. */
int belay__request_start(belay_request_t *request, belay__call_t *call,
                         const belay__request_ops_t *ops, belay__list_t *owner_list,
                         void (*cb)(void));

/* Ends all that stand in an object's list: with BELAY_ECANCELED, or as it is known that they have ended. They are
 * told from tasks of their own. */
void belay__requests_cancel(belay__list_t *owner_list);

#endif /* BELAY_CORE_REQUEST_H */
