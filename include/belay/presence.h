/* Presence: who is online, a bit for each. */
#ifndef BELAY_PRESENCE_H
#define BELAY_PRESENCE_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Who of those that have an id from 0 to max_id is online: a request of somebody's sets his bit, a logout clears it.
 * Either bits stay until they are cleared; or, with a window, for as long as it was said after they were set last.
 *
 * With a window of T in R slices of T/R each (rounded up to whole milliseconds), a bit is set in the bitmap of the
 * present slice, and whoever is in that one or in one of the R before it is online. So who was seen is online for at
 * least T after that, and for R + 1 slices, T + T/R, at most: that is the resolution. Each slice's bitmap ends by itself.
 * Which slice it is, is told by the server's clock, whatever the caller's says: it is learnt once a minute, by an
 * operation that takes one more round trip for it, and is off by at most half of that. By so much those who say and those
 * who ask may disagree; if it is less than a slice they see each other's bits at once. A server's clock that steps takes
 * the slices with it.
 *
 * A bitmap is cut into segments of 2^23 bits, each a key of its own (NAMESPACE::presence::{NAME}::SEGMENT, or
 * ...::SLICE::SEGMENT) of at most 1 MiB, which is made when the first of its bits is set; all are in one slot of a
 * cluster. So no command keeps the server for long, however large max_id is. All who share a name must say the same
 * window and slices (belay/config.h makes others an error), and should say the same ttl. A segment that was evicted is one in which nobody is online: there is no telling.
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

#define BELAY_PRESENCE_IDS_MAX 16384 /**< at once */

/** Options; belay_presence_options_init() sets the defaults. */
typedef struct belay_presence_options {
  belay_bytes_t name; /**< 1 to 128 bytes; copied. Must be given */
  /** The largest id; default 2^24 - 1. The bitmaps are as long as the largest id that was set: up to 512 MiB each, in
   * 512 segments, which a count reads one after the other */
  uint32_t max_id;
  /** Who was seen is online for so long at least: 100 to 31,536,000,000. 0, the default: until he is cleared */
  int64_t window_ms;
  uint32_t slices; /**< of the window: 1 to 14; default 4. Each is one more bitmap */
  /** Without a window: a segment in which nobody was set for so long is gone: 1,000 to 31,536,000,000; default a day.
   * 0: it stays for ever, until belay_presence_reset(), unless somebody else gives it a ttl */
  int64_t ttl_ms;
  void *data; /**< belay_presence_data() */
} belay_presence_options_t;

BELAY_API void belay_presence_options_init(belay_presence_options_t *options);

/** Sends nothing. Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_presence_new(belay_client_t *client, const belay_presence_options_t *options,
                                 belay_presence_t **out);

/** A callback of the shape of belay/request.h: how an operation ended. None says what was before, and
 * each may be done more than once: so every one is sent again, until its deadline, where an answer was lost. (A set that is sent again may come behind a clear that was asked for in
 * the meantime, and a clear behind a set.) Those on ids of several segments are a call for each of them: what is
 * executed of them stays executed where another one fails.
 *
 *   0                    done
 *   BELAY_EUNREACHABLE   nothing was sent (also BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM)
 *   BELAY_EUNKNOWN       sent, and not answered by the deadline: it may have been executed. It can be asked again
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   BELAY_EMISMATCH      of a count: a key is longer than a segment, or NAMESPACE::presence::{NAME}::union is there
 *   another error        the server's refusal, such as BELAY_EWRONGTYPE */
typedef void (*belay_presence_cb)(belay_request_t *request, int status);

/** online: for each of the n ids, in their order; n is 0 unless status is 0. */
typedef void (*belay_presence_is_cb)(belay_request_t *request, int status, const bool *online,
                                     size_t n);

/** count: how many are online; 0 unless status is 0. */
typedef void (*belay_presence_count_cb)(belay_request_t *request, int status, int64_t count);

/* All that follow return 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. An id is 0 to max_id; of many there are 1 to BELAY_PRESENCE_IDS_MAX, which are copied,
 * in any order, the same one more than once if need be. */

/** He is online, or they are. */
BELAY_API int belay_presence_set(belay_presence_t *presence, belay_request_t *request, uint32_t id,
                                 belay_presence_cb cb);
BELAY_API int belay_presence_set_many(belay_presence_t *presence, belay_request_t *request,
                                      const uint32_t *ids, size_t n, belay_presence_cb cb);

/** He is not any more (a logout), or they are not. */
BELAY_API int belay_presence_clear(belay_presence_t *presence, belay_request_t *request,
                                   uint32_t id, belay_presence_cb cb);
BELAY_API int belay_presence_clear_many(belay_presence_t *presence, belay_request_t *request,
                                        const uint32_t *ids, size_t n, belay_presence_cb cb);

/** Whether he is online, or which of them are. Writes nothing. A replica may answer (read_from). */
BELAY_API int belay_presence_is(belay_presence_t *presence, belay_request_t *request, uint32_t id,
                                belay_presence_is_cb cb);
BELAY_API int belay_presence_is_many(belay_presence_t *presence, belay_request_t *request,
                                     const uint32_t *ids, size_t n, belay_presence_is_cb cb);

/** How many are online. Four segments at a time, of which each keeps the server for about a millisecond: what changes meanwhile may be counted or not. With a window the
 * slices' union is made on the server for a moment, which takes 1 MiB of memory; without one a replica may answer (read_from). */
BELAY_API int belay_presence_count(belay_presence_t *presence, belay_request_t *request,
                                   belay_presence_count_cb cb);

/** Nobody is online any more: the server unlinks the keys, up to 1,024 at a time, and the configuration record
 * (belay/config.h). */
BELAY_API int belay_presence_reset(belay_presence_t *presence, belay_request_t *request,
                                   belay_presence_cb cb);

BELAY_API void *belay_presence_data(const belay_presence_t *presence);

/** Runs once when belay_presence_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_presence_close_cb)(belay_presence_t *presence, void *data);

/** Ends it, in any callback: what is pending ends with BELAY_ECANCELED. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_presence_close(belay_presence_t *presence, belay_presence_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_PRESENCE_H */
