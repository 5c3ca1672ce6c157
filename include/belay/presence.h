/* Presence: which users are online, with one bit per user. */
#ifndef BELAY_PRESENCE_H
#define BELAY_PRESENCE_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Presence of users with ids from 0 to max_id: a set marks a user as online, a clear as offline.
 * Without a window a user stays online until a clear. With a window a user also goes offline by
 * itself, some time after the last set.
 *
 * Use it for "is online" and "how many are online" with numeric user ids. To count users per day,
 * use belay/active.h. For a history of a user's events, use belay/session.h.
 *
 * Window: window_ms is divided into R = options.slices slices of window_ms / R, rounded up to whole
 * milliseconds. A set writes to the bitmap of the present slice. A user is online if its bit is in
 * that bitmap or in one of the R bitmaps before it. So a user is online for at least window_ms
 * after a set, and for at most window_ms plus one slice. Each bitmap expires by itself.
 *
 * Clock: the server's clock decides the present slice. belay reads it again after a minute; after
 * 5 s if the read took more than 100 ms; at once if another server answers. A read is one more
 * round trip of an operation, and is wrong by at most half of that round trip. Meanwhile other
 * operations use the last read, if it is at most 10 minutes old. Writers and readers can disagree
 * by that error; if it is shorter than a slice, they see each other's bits at once. If the server's
 * clock steps, the slices step with it.
 *
 * Keys: a bitmap is split into segments of 2^23 bits, at most 1 MiB each, which are made when their
 * first bit is set. Their keys are NAMESPACE::presence::{NAME}::SEGMENT, with a window
 * NAMESPACE::presence::{NAME}::SLICE::SEGMENT. All are in one slot of a cluster. So no command
 * takes the server long, however large max_id is. If a server evicts a segment, its users are
 * offline; belay cannot notice that.
 *
 * All programs that share a name must use the same window and slices (belay/config.h turns a
 * difference into an error), and should use the same ttl.
 *
 * @code
 * static void on_set(belay_request_t *request, int status) {
 *   (void)request;
 *   if (status != 0)
 *     printf("not set: %s\n", belay_strerror(status));
 * }
 *
 * static void on_count(belay_request_t *request, int status, int64_t count) {
 *   (void)request;
 *   if (status == 0)
 *     printf("%lld are online\n", (long long)count);
 * }
 *
 * int seen(belay_presence_t *site, belay_request_t *set, belay_request_t *count, uint32_t user) {
 *   int error = belay_presence_set(site, set, user, on_set);
 *   return error != 0 ? error : belay_presence_count(site, count, on_count);
 * }
 * @endcode */
typedef struct belay_presence belay_presence_t;

#define BELAY_PRESENCE_IDS_MAX 16384 /**< ids in one operation */

/** Options; belay_presence_options_init() sets the defaults. */
typedef struct belay_presence_options {
  /** Name of the presence, 1 to 128 bytes; copied. It is part of the keys. Required. */
  belay_bytes_t name;
  /** Largest id. Default 2^24 - 1. A bitmap is as long as the largest id that was set requires: at
   * most 512 MiB in 512 segments. A count reads them one after the other. */
  uint32_t max_id;
  /** Minimum time that a user is online after a set, in milliseconds: 100 to 31,536,000,000.
   * Default 0: no window; a user is online until a clear. */
  int64_t window_ms;
  /** With window_ms: number of slices of the window, 1 to 14. Default 4. n slices need n + 2
   * bitmaps. */
  uint32_t slices;
  /** Without window_ms: lifetime of a segment after the last set in it, in milliseconds: 1,000 to
   * 31,536,000,000. Default 86,400,000, a day. 0: until belay_presence_reset(), unless another
   * program gives it a ttl. */
  int64_t ttl_ms;
  /** Pointer of the caller, returned by belay_presence_data(). Default NULL. */
  void *data;
} belay_presence_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_presence_options_init(belay_presence_options_t *options);

/** Make a handle, without the server. Returns 0, BELAY_EINVAL (belay_detail() names the option),
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_presence_new(belay_client_t *client, const belay_presence_options_t *options,
                                 belay_presence_t **out);

/** Receives the result of a set, clear or reset. CALLBACKS in belay/request.h has the common rules
 * and errors. Other values of status, for all operations:
 *
 *   0                    done
 *   BELAY_EUNKNOWN       it may have been executed (belay/request.h). The caller may repeat it
 *   BELAY_EMISMATCH      of a count: a key has more than 2^23 bits set, or the key
 *                        NAMESPACE::presence::{NAME}::union exists
 *   another error        the server's refusal, such as BELAY_EWRONGTYPE
 *
 * All operations are retried until the deadline if the reply is lost, because repetition does no
 * harm. A retried set can be executed after a clear that was started later, and a retried clear
 * after a set. An operation on ids of several segments is one call per segment: calls that were
 * executed stay so if another one fails. */
typedef void (*belay_presence_cb)(belay_request_t *request, int status);

/** Receives for each of the n ids, in their order, true if the user is online; n is 0 if status is
 * not 0. online is valid until it returns. The rules of belay_presence_cb apply. */
typedef void (*belay_presence_is_cb)(belay_request_t *request, int status, const bool *online,
                                     size_t n);

/** Receives the number of users that are online; 0 if status is not 0. The rules of
 * belay_presence_cb apply. */
typedef void (*belay_presence_count_cb)(belay_request_t *request, int status, int64_t count);

/* ---- operations ----
 *
 * Each function returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY,
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. After an error the callback does not run. An id is 0
 * to max_id. An array of ids has 1 to BELAY_PRESENCE_IDS_MAX entries in any order, may contain an
 * id several times, and is copied. */

/** Mark a user as online. */
BELAY_API int belay_presence_set(belay_presence_t *presence, belay_request_t *request, uint32_t id,
                                 belay_presence_cb cb);
/** Mark n users as online. */
BELAY_API int belay_presence_set_many(belay_presence_t *presence, belay_request_t *request,
                                      const uint32_t *ids, size_t n, belay_presence_cb cb);

/** Mark a user as offline, as at a logout. It makes no key and does not start ttl_ms again. */
BELAY_API int belay_presence_clear(belay_presence_t *presence, belay_request_t *request,
                                   uint32_t id, belay_presence_cb cb);
/** Mark n users as offline. */
BELAY_API int belay_presence_clear_many(belay_presence_t *presence, belay_request_t *request,
                                        const uint32_t *ids, size_t n, belay_presence_cb cb);

/** Read whether a user is online. A replica may answer (belay_client_options_t.read_from). */
BELAY_API int belay_presence_is(belay_presence_t *presence, belay_request_t *request, uint32_t id,
                                belay_presence_is_cb cb);
/** Read which of n users are online, as belay_presence_is(). */
BELAY_API int belay_presence_is_many(belay_presence_t *presence, belay_request_t *request,
                                     const uint32_t *ids, size_t n, belay_presence_is_cb cb);

/** Count the users that are online. It reads four segments at a time, each of which takes the
 * server about a millisecond. Changes meanwhile may be counted or not. With a window the server
 * makes a temporary union of the slices, which takes 1 MiB of memory. Without a window a replica
 * may answer (belay_client_options_t.read_from). */
BELAY_API int belay_presence_count(belay_presence_t *presence, belay_request_t *request,
                                   belay_presence_count_cb cb);

/** Mark all users as offline: unlink the segments up to that of max_id, up to 1,024 keys at a time,
 * and the configuration record (belay/config.h). Higher segments, which a program with a larger
 * max_id has made, stay. */
BELAY_API int belay_presence_reset(belay_presence_t *presence, belay_request_t *request,
                                   belay_presence_cb cb);

/** Return options.data. */
BELAY_API void *belay_presence_data(const belay_presence_t *presence);

/** Runs once, on the loop, after a close. See CLOSING in belay/loop.h. */
typedef void (*belay_presence_close_cb)(belay_presence_t *presence, void *data);

/** Close the handle, as CLOSING in belay/loop.h says. The bits stay on the server. Returns 0,
 * BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_presence_close(belay_presence_t *presence, belay_presence_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_PRESENCE_H */
