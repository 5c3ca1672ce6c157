/* What a request does: a call, or several at once, or one after the other, whose end is told from a task, once.
 *
 *   IDLE --begin--> PARKED --send--> CALLING --answered, refused, lost--> ENDED --the task--> IDLE, told
 *             |     |   ^            |  ^  |                              ^
 *             |     |   |            v  |  +--cancel, the client closes---+
 *             |     |   |    lost, and idempotent: sent again,            |
 *             |     |   |    until the deadline                           |
 *             |     |   +---answered, or recovered: the handle waits      |
 *             |     |                                                     |
 *             |     +--the handle ends it; cancel, the client closes------+
 *             +--forget (the operation could not be started)--> IDLE, not told
 *
 * Several calls at once are a step: it is over when each of them is. Who was sent again ends with 0 or BELAY_EUNKNOWN: that the second time was refused says nothing of the first.
 * While it is not IDLE the request is an object of the client, and keeps the loop alive. It is IDLE, and its memory
 * the caller's, before the callback runs. The handle is what has the operation: a limiter, a topic. */
#ifndef BELAY_CORE_CLIENT_REQUEST_H
#define BELAY_CORE_CLIENT_REQUEST_H

#include "belay/request.h"
#include "core/call/call.h"
#include "core/client/client.h"

#define BELAY__REQUEST_VALUES 24
#define BELAY__REQUEST_PARK 1 /* what read returns if the request is not over: it is PARKED */

/* A callback of any type, as requests store it; ops->tell casts it back. */
#define BELAY__CB(cb) ((void (*)(void))(cb))

typedef struct belay__operation belay__operation_t;

/* How it ended. Values are as begin left them, and the handle. */
typedef struct belay__answer {
  belay_client_t *client;
  void *context;
  void *room; /* as belay__request_room() gave it; given back when tell has returned */
  size_t room_len;
  int status;
  int64_t values[BELAY__REQUEST_VALUES];
} belay__answer_t;

typedef struct belay__request_ops {
  /* Reads a reply that is no error: 0, with operation->values or its room set; BELAY__REQUEST_PARK, if the call was
   * alone; or an error. BELAY_EPROTO ends the connection too. */
  int (*read)(belay__operation_t *operation, const belay__call_t *call,
              const belay__reply_t *reply);

  /* One of the calls of a step has not gone well: it was refused, was not sent, or its answer was lost or is wrong. Not
   * of a step of which nothing was taken: that only ends. NULL: what all of them come to is enough. */
  void (*failed)(belay__operation_t *operation, int status);

  /* PARKED: each call of a step has gone well. 0: that was all; BELAY__REQUEST_PARK: it was sent again, or waits; or an
   * error. NULL: a request is one step. */
  int (*next)(belay__operation_t *operation);

  /* PARKED: a step has ended with an error. What it comes to: that or another error, 0, or BELAY__REQUEST_PARK: it waits
   * for something all the same. NULL: that error. Not called when it is canceled. */
  int (*recover)(belay__operation_t *operation, int status);

  /* Calls back: casts cb to what the handle calls it. */
  void (*tell)(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer);

  /* It is canceled, PARKED or CALLING (and then sent says whether the call may be executed): the handle takes it out
   * of its queue, stops its timer, undoes what was done. NULL: there is nothing to do. */
  void (*left)(belay__operation_t *operation, bool sent);

  /* Whether a call whose answer was lost is sent again while there is time: its effect and its answer are the same
   * however often it runs. */
  bool idempotent;

  /* The calls of a step belong behind one another: none is sent again, not after a refusal either. Not of what is
   * idempotent. */
  bool joined;
} belay__request_ops_t;

/* For ops->tell: callbacks of the types (request, status) and (request, status, int64_t). The latter is given values[0],
 * or 0 if status is not 0. */
void belay__request_tell_status(belay_request_t *request, void (*cb)(void),
                                const belay__answer_t *answer);
void belay__request_tell_count(belay_request_t *request, void (*cb)(void),
                               const belay__answer_t *answer);

/* What is in the caller's memory. */
struct belay__operation {
  belay__object_t object; /* of the client */
  belay__list_t owned;    /* in the list of an object; else alone */
  belay__list_t queued;   /* PARKED: the handle's; alone otherwise */
  belay__timer_t timer;   /* PARKED: the handle's */
  belay__task_t task;
  belay_client_t *client;
  union {
    belay__call_t *call;   /* CALLING, if calls_len is 1 */
    belay__call_t **calls; /* if it is more; those that are over are NULL */
  };
  uint32_t calls_len, calls_open;
  const belay__request_ops_t *ops;
  void (*cb)(void);
  void *context; /* the handle's */
  void *room;
  size_t room_len;
  belay__refused_t
      *words; /* why it fails, as it is going to be told; NULL: there is nothing to say */
  int64_t values[BELAY__REQUEST_VALUES];
  uint64_t
      deadline; /* of its calls; 0: they have timeout_ms each. The handle's; else, of steps, that of the first */
  uint32_t index; /* in read and failed: the call's position among those sent together, from 0 */
  int16_t status; /* of the calls that are over */
  uint8_t state;
  bool reply_lost : 1; /* a reply of this step was lost */
  bool asks_time : 1;  /* its call is TIME: belay__servertime_begin() */
  bool fail_fast : 1;  /* the handle's: its calls end at once while their server is away */
} __attribute__((may_alias));

belay_request_t *belay__request_of(belay__operation_t *operation);

/* 0 or BELAY_EINVAL, with a detail: what is checked of every request, and that there is a callback. */
int belay__request_check(belay_client_t *client, const belay_request_t *request, bool has_cb);

/* Its time; of one that was checked. */
int64_t belay__request_timeout_ms(const belay_client_t *client, const belay_request_t *request);

/* For how many milliseconds a server keeps what a resent call must find: past the last time that the request may be
 * sent, and at least least_ms. */
int64_t belay__request_keep_ms(const belay_client_t *client, const belay_request_t *request,
                               int64_t least_ms);

/* Begins: PARKED, *out is set, its values are 0. owner_list: NULL, or a list of an object's that it stands in until it
 * is told, for belay__requests_cancel(). cb is of the type that ops->tell casts it to. Returns 0 or BELAY_ESTATE (it is
 * pending). */
int belay__request_begin(belay_client_t *client, belay_request_t *request,
                         const belay__request_ops_t *ops, void *context, belay__list_t *owner_list,
                         void (*cb)(void), belay__operation_t **out);

/* Sends a call (NULL: memory was out) of one that is PARKED: its deadline is set here, by operation->deadline or timeout_ms;
 * call->route is the handle's to set. Returns 0 (also if a lasting refusal of the server's is going to be told);
 * BELAY_ENOMEM or BELAY_EBUSY, and it is still PARKED. The call is given back on an error. */
int belay__request_send(belay__operation_t *operation, belay__call_t *call);

/* The same for n calls at once, on the connection of the first, all or none; also none if one of them is NULL. What a call that was
 * executed has done stays done if another one fails: that is BELAY_EUNKNOWN if the answer of any is not known, else
 * the error of the first that failed. */
int belay__request_send_all(belay__operation_t *operation, belay__call_t **calls, size_t n);

/* The same for calls that make() builds, one for each i below n. make may return NULL: memory was out. arg: what make is
 * given. Returns BELAY_ENOMEM too. */
typedef belay__call_t *(*belay__make_call_fn)(belay__operation_t *operation, size_t i,
                                              const void *arg);
int belay__request_send_each(belay__operation_t *operation, size_t n, belay__make_call_fn make,
                             const void *arg);

/* Memory for what does not fit into values, all 0; one piece in a request's life. NULL if there is none. It lives until
 * the callback has returned. */
void *belay__request_room(belay__operation_t *operation, size_t size);

/* Copy the strings of a reply to the room, as n belay_bytes_t, with their bytes behind them. Returns 0, BELAY_EPROTO (one
 * is no string) or BELAY_ENOMEM. With n 0 there is no room. */
int belay__request_keep(belay__operation_t *operation, belay__reply_t *const *items, size_t n);

/* PARKED: it ends, with the values that it has. */
void belay__request_end(belay__operation_t *operation, int status);

/* PARKED: IDLE, and never told. */
void belay__request_forget(belay__operation_t *operation);

/* End the function of an operation. error: what sending returned; if it is not 0, the request is forgotten. Returns
 * error. */
int belay__request_begun(belay__operation_t *operation, int error);

/* All of it, for an operation that is one call: begins and sends; forgotten on an error. */
int belay__request_start(belay_request_t *request, belay__call_t *call,
                         const belay__request_ops_t *ops, void *context, belay__list_t *owner_list,
                         void (*cb)(void));

/* Ends all that stand in an object's list: with BELAY_ECANCELED, or as it is known that they have ended. They are
 * told from tasks of their own. */
void belay__requests_cancel(belay__list_t *owner_list);

#endif /* BELAY_CORE_CLIENT_REQUEST_H */
