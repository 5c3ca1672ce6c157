/* Session contexts: the actions of a user that belong together. */
#ifndef BELAY_SESSION_H
#define BELAY_SESSION_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Contexts of one kind (shopping, reading, an API), one for each user. Whatever a user does touches his context: it is
 * found, or made with a new id if there is none; the event is noted in it; and it lives on for ttl_ms, by the server's
 * clock. When nothing has touched it for so long it has ended, and the next touch begins another one.
 *
 * Both keys of a context live and end together, in one slot: NAMESPACE::session::KIND::{USER} and
 * NAMESPACE::session::KIND::{USER}::events.
 * An id that is given must not come again: it names one context.
 *
 * The end of a context calls nothing back. A server with notify-keyspace-events Ex publishes the expired key on
 * __keyevent@DB__:expired, at most once, and a belay_sweep_t lists the contexts that live (belay/sweep.h).
 *
 * @code
 * static void on_touched(belay_request_t *request, int status,
 *                        const belay_session_state_t *state) {
 *   (void)request;
 *   if (status == 0)
 *     printf("%s %.*s, event %lld\n", state->is_new ? "hello" : "go on", (int)state->id_len,
 *            (const char *)state->id, (long long)state->count);
 * }
 *
 * static int clicked(belay_session_t *session, belay_request_t *request, const char *user,
 *                    size_t user_len, const char *page, size_t page_len) {
 *   belay_session_touch_t touch = {.event = belay_bytes(page, page_len)};
 *   return belay_session_touch(session, request, belay_bytes(user, user_len), &touch, on_touched);
 * }
 * @endcode */
typedef struct belay_session belay_session_t;

#define BELAY_SESSION_USER_MAX ((size_t)1024)
#define BELAY_SESSION_ID_MAX ((size_t)64)
#define BELAY_SESSION_OP_ID_MAX ((size_t)40)
#define BELAY_SESSION_EVENT_MAX ((size_t)16384)
#define BELAY_SESSION_EVENTS_MAX 10000

/** Options; belay_session_options_init() sets the defaults. All who touch contexts of a kind should have them alike. */
typedef struct belay_session_options {
  belay_bytes_t name; /**< the kind: part of the keys; at most 128 bytes; copied */
  int64_t
      ttl_ms; /**< of a context that is not touched: 1,000 to 31,536,000,000; default half an hour */
  int64_t
      max_events; /**< so many of its last events are kept; 0 to BELAY_SESSION_EVENTS_MAX; default 100. 0: none */
  /** For how long the answer to an operation id is kept, or for as long as that may be sent again, if that is longer:
   * 1,000 to 86,400,000; default a minute. */
  int64_t op_ttl_ms;
  void *data; /**< belay_session_data() */
} belay_session_options_t;

BELAY_API void belay_session_options_init(belay_session_options_t *options);

/** Sends nothing. Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_session_new(belay_client_t *client, const belay_session_options_t *options,
                                belay_session_t **out);

/** What is told of a context. */
typedef struct belay_session_state {
  bool exists;    /**< there is one; of belay_session_end(): there was, and it was another one */
  bool is_new;    /**< of a touch: it began with it */
  bool ended;     /**< of belay_session_end(): it ended with it */
  const void *id; /**< any bytes; NULL if there is none */
  size_t id_len;  /**< of it; 0 if there is none */
  int64_t count;  /**< events that came since it began */
  int64_t kept;   /**< of these are in its list */
  /** and so many are not that should be: the server has evicted the list, or somebody has shortened it. 0 otherwise; again
   * 0 when as many have come since as are kept. */
  int64_t lost;
  int64_t since_ms; /**< when it began: milliseconds since 1970 by the server's clock */
  /** of exists and read: it ends in so many milliseconds unless it is touched; -1: somebody has made it live for ever.
   * Else 0: after a touch it is ttl_ms. */
  int64_t remaining_ms;
  const belay_bytes_t
      *events;       /**< of belay_session_read(): the last events, the oldest first; else NULL */
  size_t events_len; /**< how many */
} belay_session_state_t;

/** A callback of the shape of belay/request.h: if status is not 0, state is all 0. status:
 *
 *   0                    the server answered
 *   BELAY_EUNREACHABLE   nothing was sent (also BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM)
 *   BELAY_EUNKNOWN       sent, and not answered: it may have been executed. Reading is sent again until its deadline,
 *                        and so is a touch with an operation id, and an end with an id
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   BELAY_EMISMATCH      what the keys hold is no context
 *   another error        the server's refusal, such as BELAY_EWRONGTYPE */
typedef void (*belay_session_cb)(belay_request_t *request, int status,
                                 const belay_session_state_t *state);

/** What a touch says; {0}: nothing. */
typedef struct belay_session_touch {
  /** NULL: there is none, the context just lives on. At most BELAY_SESSION_EVENT_MAX bytes, also none, which is an event
   * too. */
  belay_bytes_t event;
  /** The id of the context if this begins one, such as a snowflake's digits: 1 to BELAY_SESSION_ID_MAX bytes. NULL: a UUID
   * of version 7, as text. */
  belay_bytes_t id;
  /** The id of this operation: 1 to BELAY_SESSION_OP_ID_MAX bytes, such as the id of the message that it comes from. With it the
   * touch is done once, however often it is sent, by whomever, within op_ttl_ms: everybody is told what the first
   * was, the time included. It costs a key of its own beside those of the context, which ends in op and this id. NULL:
   * none, and the touch is sent once. */
  belay_bytes_t op_id;
} belay_session_touch_t;

/* All that follow return 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. A user has 1 to BELAY_SESSION_USER_MAX bytes; what they are given is copied. */

/** The user does something. touch may be NULL: nothing is said. Also BELAY_ESYSTEM: no random bytes for an id. */
BELAY_API int belay_session_touch(belay_session_t *session, belay_request_t *request,
                                  belay_bytes_t user, const belay_session_touch_t *touch,
                                  belay_session_cb cb);

/** Whether he has a context, and which. Does not touch it. */
BELAY_API int belay_session_exists(belay_session_t *session, belay_request_t *request,
                                   belay_bytes_t user, belay_session_cb cb);

/** The same with its last n events (0 to BELAY_SESSION_EVENTS_MAX), or fewer, if they are more than half of what the
 * client's max_reply takes, each counted with 160 bytes beside its own. */
BELAY_API int belay_session_read(belay_session_t *session, belay_request_t *request,
                                 belay_bytes_t user, size_t n, belay_session_cb cb);

/** Ends the user's context if it has this id (1 to BELAY_SESSION_ID_MAX bytes). An absent id (NULL, 0) ends the context
 * whatever its id is: check an id that may be NULL before belay_string(). A call without an id is never sent twice. A call
 * with an id that was sent twice, and found no context the second time, ends with BELAY_EUNKNOWN. */
BELAY_API int belay_session_end(belay_session_t *session, belay_request_t *request,
                                belay_bytes_t user, belay_bytes_t id, belay_session_cb cb);

BELAY_API void *belay_session_data(const belay_session_t *session);

/** Runs once when belay_session_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_session_close_cb)(belay_session_t *session, void *data);

/** Ends the handle, in any callback: what is pending ends with BELAY_ECANCELED. Contexts stay. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_session_close(belay_session_t *session, belay_session_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_SESSION_H */
