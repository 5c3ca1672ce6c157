/* Session contexts: the events of a user, grouped until the user is idle. */
#ifndef BELAY_SESSION_H
#define BELAY_SESSION_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Session contexts of one kind (shopping, reading, an API), one for each user. A touch finds the
 * user's context, or makes one with a new id; it stores an event in it; and it keeps the context
 * alive for ttl_ms more, by the server's clock. A context that is not touched for ttl_ms ends. The
 * next touch begins a new one.
 *
 * Use it to group the actions of a user, and to learn when a new visit begins. To list the users
 * that are online, use belay/presence.h. For a store of session data of any shape, use the cache
 * (belay/cache.h) or your own keys.
 *
 *   - Both keys of a context expire together and are in one slot: NAMESPACE::session::KIND::{USER}
 *     and NAMESPACE::session::KIND::{USER}::events.
 *   - An id that the program chooses must not be used again, because it names one context.
 *   - The end of a context runs no callback. A server with notify-keyspace-events Ex publishes the
 *     expired key on __keyevent@DB__:expired, at most once. A belay_sweep_t lists the contexts that
 *     exist (belay/sweep.h).
 *
 * @code
 * static void on_touched(belay_request_t *request, int status,
 *                        const belay_session_state_t *state) {
 *   (void)request;
 *   if (status == 0)
 *     printf("%s visit, event %lld\n", state->is_new ? "new" : "same", (long long)state->count);
 * }
 *
 * int clicked(belay_session_t *session, belay_request_t *request, const char *user,
 *             const char *page) {
 *   belay_session_touch_t touch = {.event = belay_string(page)};
 *   return belay_session_touch(session, request, belay_string(user), &touch, on_touched);
 * }
 * @endcode */
typedef struct belay_session belay_session_t;

#define BELAY_SESSION_USER_MAX ((size_t)1024)   /**< bytes of a user */
#define BELAY_SESSION_ID_MAX ((size_t)64)       /**< bytes of a context's id */
#define BELAY_SESSION_OP_ID_MAX ((size_t)40)    /**< bytes of an operation id */
#define BELAY_SESSION_EVENT_MAX ((size_t)16384) /**< bytes of an event */
#define BELAY_SESSION_EVENTS_MAX 10000          /**< events that a context keeps */

/** Options; belay_session_options_init() sets the defaults. They should be the same in all programs
 * that touch contexts of a kind. */
typedef struct belay_session_options {
  /** Kind of the contexts, 0 to 128 bytes; copied. It is part of the keys:
   * NAMESPACE::session::KIND::{USER}. Default: no kind. */
  belay_bytes_t name;
  /** Lifetime of a context after its last touch, in milliseconds: 1,000 to 31,536,000,000. Default
   * 1,800,000, half an hour. */
  int64_t ttl_ms;
  /** Number of last events that a context keeps, 0 to BELAY_SESSION_EVENTS_MAX. Default 100. 0:
   * none. */
  int64_t max_events;
  /** Time that the server remembers an operation id and its result, in milliseconds: 1,000 to
   * 86,400,000. It is longer if the request may be retried for longer. Default 60,000, a minute. */
  int64_t op_ttl_ms;
  /** Pointer of the caller, returned by belay_session_data(). Default NULL. */
  void *data;
} belay_session_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_session_options_init(belay_session_options_t *options);

/** Make a handle, without the server. Returns 0, BELAY_EINVAL (belay_detail() names the option),
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_session_new(belay_client_t *client, const belay_session_options_t *options,
                                belay_session_t **out);

/** State of a context. */
typedef struct belay_session_state {
  /** true if there is a context. After belay_session_end(): true if there is one with another id,
   * which was not ended. */
  bool exists;
  /** true if a touch began the context. */
  bool is_new;
  /** true if belay_session_end() ended the context. */
  bool ended;
  /** Id of the context, any bytes. NULL: there is none. */
  const void *id;
  /** Length of the id, in bytes. 0: there is no context. */
  size_t id_len;
  /** Number of events since the context began. */
  int64_t count;
  /** Number of events that the context keeps now. */
  int64_t kept;
  /** Number of events that the context should keep and does not: the server evicted the list, or
   * another program shortened it. 0: none. It becomes 0 again after as many new events as are
   * kept. */
  int64_t lost;
  /** Time when the context began, in milliseconds since 1970, by the server's clock. */
  int64_t since_ms;
  /** Of exists and read: time until the context ends without a touch, in milliseconds. -1: it has
   * no ttl, because another program removed it. Otherwise 0: after a touch the remaining time is
   * ttl_ms. */
  int64_t remaining_ms;
  /** Of belay_session_read(): the last events, the oldest first. Otherwise NULL. */
  const belay_bytes_t *events;
  /** Number of events. */
  size_t events_len;
} belay_session_state_t;

/** Receives the state of a context; all fields are 0 if status is not 0. CALLBACKS in
 * belay/request.h has the common rules and errors. Other values of status:
 *
 *   BELAY_EUNKNOWN       sent and not answered; it may have been executed. Retried until the
 *                        deadline: exists, read, a touch with an operation id, an end with an id
 *   BELAY_EMISMATCH      the keys do not hold a context */
typedef void (*belay_session_cb)(belay_request_t *request, int status,
                                 const belay_session_state_t *state);

/** Content of a touch. {0}: no event, a random id, no operation id. */
typedef struct belay_session_touch {
  /** Event, 0 to BELAY_SESSION_EVENT_MAX bytes; an empty event is an event too. NULL: no event, the
   * context only lives on. */
  belay_bytes_t event;
  /** Id of the context if this touch begins one, such as the digits of a snowflake: 1 to
   * BELAY_SESSION_ID_MAX bytes. NULL: a UUID of version 7, as text. */
  belay_bytes_t id;
  /** Operation id: 1 to BELAY_SESSION_OP_ID_MAX bytes, such as the id of the message that caused
   * the touch. NULL: none.
   *
   * With an operation id the touch is done once within op_ttl_ms, however often and by whichever
   * program it is sent. Repetitions get the result of the first one, also if the context has ended.
   * The event of a repetition is not stored, even if it is another one. The touch is then retried
   * if the reply is lost. It costs a key of its own, the context's key with "::op::" and this
   * id. */
  belay_bytes_t op_id;
} belay_session_touch_t;

/* ---- operations ----
 *
 * Each function returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY,
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. After an error the callback does not run. A user has
 * 1 to BELAY_SESSION_USER_MAX bytes. Arguments are copied. */

/** Touch the context of a user, or begin one. touch may be NULL, which is the same as {0}. Retried
 * only with an operation id. Also returns BELAY_ESYSTEM if there are no random bytes for an id. */
BELAY_API int belay_session_touch(belay_session_t *session, belay_request_t *request,
                                  belay_bytes_t user, const belay_session_touch_t *touch,
                                  belay_session_cb cb);

/** Read the state of a user's context, without its events. It does not touch the context. Retried
 * if the reply is lost. */
BELAY_API int belay_session_exists(belay_session_t *session, belay_request_t *request,
                                   belay_bytes_t user, belay_session_cb cb);

/** Read the state of a user's context with its last n events, 0 to BELAY_SESSION_EVENTS_MAX. It
 * does not touch the context. There are fewer events if they exceed half of the client's max_reply,
 * where each counts its length plus 160 bytes. Retried if the reply is lost. */
BELAY_API int belay_session_read(belay_session_t *session, belay_request_t *request,
                                 belay_bytes_t user, size_t n, belay_session_cb cb);

/** End the user's context if it has this id, 1 to BELAY_SESSION_ID_MAX bytes. An absent id (NULL,
 * 0) ends the context whatever its id is: check an id that may be NULL before belay_string().
 *
 * Retried only with an id. A retry that ends nothing ends with BELAY_EUNKNOWN, also if there is a
 * context with another id. */
BELAY_API int belay_session_end(belay_session_t *session, belay_request_t *request,
                                belay_bytes_t user, belay_bytes_t id, belay_session_cb cb);

/** Return options.data. */
BELAY_API void *belay_session_data(const belay_session_t *session);

/** Runs once, on the loop, after a close. See CLOSING in belay/loop.h. */
typedef void (*belay_session_close_cb)(belay_session_t *session, void *data);

/** Close the handle, as CLOSING in belay/loop.h says. Contexts stay on the server. Returns 0,
 * BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_session_close(belay_session_t *session, belay_session_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_SESSION_H */
