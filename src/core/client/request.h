/* Requests. A request is one call, several calls at once, or several steps; its callback runs
 * once, from a task.
 *
 *    IDLE --begin--> PARKED --send--> CALLING --answered, refused, lost--> ENDED --task--> IDLE,
 *              |     |   ^            |  ^  |                              ^               callback
 *              |     |   |            v  |  +--cancel, the client closes---+
 *              |     |   |    lost, and idempotent: sent again             |
 *              |     |   +---answered, or recovered: the handle waits      |
 *              |     +--the handle ends it; cancel, the client closes------+
 *              +--forget (the operation could not be started)--> IDLE, no callback
 *
 * Several calls at once are a step, which is over when all its calls are. A call that was sent
 * again ends with 0 or BELAY_EUNKNOWN: a refusal of the second attempt says nothing about the
 * first one.
 *
 * While a request is not IDLE, it is an object of the client and keeps the loop alive. When the
 * callback starts, the request is IDLE and its memory belongs to the caller. "The handle" below is
 * the object with the operation: a limiter, a topic. */
#ifndef BELAY_CORE_CLIENT_REQUEST_H
#define BELAY_CORE_CLIENT_REQUEST_H

#include "belay/request.h"
#include "core/call/call.h"
#include "core/client/client.h"

#define BELAY__REQUEST_VALUES 24
/* returned by `read`, `next` and `recover` if the request is not over */
#define BELAY__REQUEST_PARK 1

/* A callback of any type, as requests store it; ops->notify casts it back. */
#define BELAY__CB(cb) ((void (*)(void))(cb))

typedef struct belay__operation belay__operation_t;
typedef struct belay__group_ops belay__group_ops_t;

/* The result of a request. */
typedef struct belay__answer {
  belay_client_t *client;
  void *context; /* The handle */
  void *room;    /* Memory of belay__request_room(); freed after `notify` has returned */
  size_t room_len;
  int status;
  int64_t values[BELAY__REQUEST_VALUES];
} belay__answer_t;

typedef struct belay__request_ops {
  /* Reads a reply that is not an error. Returns 0 after it has set operation->values or
   * operation->room, or an error. BELAY_EPROTO may also end the connection: see
   * belay__call_distrust(). BELAY__REQUEST_PARK keeps the request open; only for a step of one
   * call. */
  int (*read)(belay__operation_t *operation, const belay__call_t *call,
              const belay__reply_t *reply);

  /* Called for each call of a step that failed: refused, not sent, reply lost or wrong. Not called
   * if the step could not be submitted at all. NULL: the common status is enough. */
  void (*failed)(belay__operation_t *operation, int status);

  /* PARKED: all calls of a step succeeded. Returns 0 after the last step, BELAY__REQUEST_PARK if
   * it sent another step or waits, or an error. NULL: the request is one step. */
  int (*next)(belay__operation_t *operation);

  /* PARKED: a step ended with an error. Returns the status to report: this or another error, 0,
   * or BELAY__REQUEST_PARK to wait for another event. NULL: this error. Not called after a
   * cancel. */
  int (*recover)(belay__operation_t *operation, int status);

  /* Runs the callback: casts cb to the type of the handle's callbacks. */
  void (*notify)(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer);

  /* Called on a cancel, while PARKED or CALLING: removes the request from a queue, stops its timer,
   * undoes its effects. sent: the server may have executed a call, or may still execute it. NULL:
   * nothing to do. */
  void (*left)(belay__operation_t *operation, bool sent);

  /* Functions of requests that may share a call (core/client/group.h). If it is set, `left` calls
   * belay__group_leave(), and the request is one step that is not idempotent. NULL: each request
   * has a call of its own. */
  const belay__group_ops_t *group;

  /* true if a call whose reply was lost is sent again while there is time. Its effect and its
   * reply must be the same however often it runs. */
  bool idempotent;

  /* true if the calls of a step must follow each other on one connection. Then no call is sent
   * again, neither after a lost reply nor after a temporary refusal. Not allowed with
   * `idempotent`. */
  bool joined;
} belay__request_ops_t;

/* Functions for ops->notify. The first calls cb(request, status). The second calls cb(request,
 * status, count): the count is values[0], or 0 if the status is not 0. */
void belay__request_notify_status(belay_request_t *request, void (*cb)(void),
                                  const belay__answer_t *answer);
void belay__request_notify_count(belay_request_t *request, void (*cb)(void),
                                 const belay__answer_t *answer);

/* The state of a request, inside the caller's belay_request_t. */
struct belay__operation {
  belay__object_t object; /* Object of the client */
  belay__list_t owned;    /* Link in the list of an owner; unlinked: no owner */
  belay__list_t queued;   /* PARKED: link in a queue of the handle or in a group; else unlinked */
  belay__timer_t timer;   /* PARKED: timer of the handle */
  belay__task_t task;
  belay_client_t *client;
  union {
    belay__call_t *call;   /* CALLING with calls_len 1; PARKED: call of the group, or NULL */
    belay__call_t **calls; /* CALLING with calls_len above 1; a call that is over is NULL */
  };
  uint32_t calls_len;
  uint32_t calls_open; /* CALLING: calls that are not over; PARKED: see group.h */
  const belay__request_ops_t *ops;
  void (*cb)(void);
  void *context; /* Pointer of the handle */
  void *room;
  size_t room_len;
  belay__refused_t *words; /* Text of the refusal for the callback; NULL: none */
  int64_t values[BELAY__REQUEST_VALUES];
  /* Deadline of the calls, in nanoseconds; 0: each call ends timeout_ms after it is sent. Set by
   * the handle, or by the first step if there is ops->next */
  uint64_t deadline;
  /* In read and failed: the position of the call among those sent together, from 0. In a group:
   * the position of the request */
  uint32_t index;
  int16_t status; /* Common status of the calls of the step that are over; then of the request */
  uint8_t state;
  bool reply_lost : 1; /* true if a reply was lost since the start or the last ops->next */
  bool asks_time : 1;  /* true if the call is TIME; see belay__servertime_begin() */
  bool fail_fast : 1;  /* Set by the handle: calls end at once while their server is away */
} __attribute__((may_alias));

belay_request_t *belay__request_of(belay__operation_t *operation);

/* Check the request, its timeout_ms, and that there is a callback. Returns 0, or BELAY_EINVAL with
 * a detail. */
int belay__request_check(belay_client_t *client, const belay_request_t *request, bool has_cb);

/* Return the timeout of a checked request, in milliseconds: request->timeout_ms, or the client's if
 * that is 0 or BELAY_DEFAULT. */
int64_t belay__request_timeout_ms(const belay_client_t *client, const belay_request_t *request);

/* Return the time for which a server must keep the data that a resent call looks up, in
 * milliseconds. The time is a little more than the request's timeout, and at least least_ms. */
int64_t belay__request_keep_ms(const belay_client_t *client, const belay_request_t *request,
                               int64_t least_ms);

/* Begin a request: PARKED, with values of 0. owner_list: a list for belay__requests_cancel() that
 * links the request until its callback runs; or NULL. Returns 0, or BELAY_ESTATE if the request is
 * pending. */
int belay__request_begin(belay_client_t *client, belay_request_t *request,
                         const belay__request_ops_t *ops, void *context, belay__list_t *owner_list,
                         void (*cb)(void), belay__operation_t **out);

/* Send a call of a PARKED request. call: NULL if memory was out. The deadline is
 * operation->deadline or comes from timeout_ms. Returns:
 *
 * - 0: the call was sent; or another error, such as a lasting refusal or a server that is away, has
 *   ended the step.
 * - BELAY_ENOMEM, BELAY_EBUSY: the request is still PARKED, and the call has gone back to the
 *   pool. */
int belay__request_send(belay__operation_t *operation, belay__call_t *call);

/* As belay__request_send(), for n calls at once: sends all or none; none if one of them is NULL. If
 * a call fails, the others keep their effects, and the status is BELAY_EUNKNOWN if any result is
 * unknown, else the first error. */
int belay__request_send_all(belay__operation_t *operation, belay__call_t **calls, size_t n);

/* Build n calls with make(), which gets an i from 0 to n - 1, and send them as
 * belay__request_send_all() does. make() returns NULL if memory is out. */
typedef belay__call_t *(*belay__make_call_fn)(belay__operation_t *operation, size_t i,
                                              const void *arg);
int belay__request_send_each(belay__operation_t *operation, size_t n, belay__make_call_fn make,
                             const void *arg);

/* Allocate operation->room, all 0, for data that does not fit into values; once per request. NULL
 * if memory is out. The room is freed after the callback has returned. */
void *belay__request_room(belay__operation_t *operation, size_t size);

/* Copy the strings of a reply to the room, as n belay_bytes_t with their bytes behind them.
 * Returns 0, BELAY_EPROTO (an item is not a string) or BELAY_ENOMEM. With n 0 there is no room. */
int belay__request_keep(belay__operation_t *operation, belay__reply_t *const *items, size_t n);

/* End a PARKED request with its present values. */
void belay__request_end(belay__operation_t *operation, int status);

/* Return a PARKED request to IDLE without a callback. */
void belay__request_forget(belay__operation_t *operation);

/* The last line of an operation: forget the request if error, the result of sending, is not 0.
 * Returns error. */
int belay__request_begun(belay__operation_t *operation, int error);

/* Begin a request that is one call, and send the call, which is not NULL. Returns 0 or an error;
 * after an error no callback follows. */
int belay__request_start(belay_request_t *request, belay__call_t *call,
                         const belay__request_ops_t *ops, void *context, belay__list_t *owner_list,
                         void (*cb)(void));

/* Return the error to report for a call whose effect is unknown. A script that an error stopped
 * halfway may have written, so its BELAY_EREFUSED becomes BELAY_EUNKNOWN; the server's text is
 * kept. */
int belay__request_unknown(belay_client_t *client, int error);

/* Cancel all requests in an owner's list. They end with BELAY_ECANCELED, or with their result if it
 * is known already. */
void belay__requests_cancel(belay__list_t *owner_list);

#endif /* BELAY_CORE_CLIENT_REQUEST_H */
