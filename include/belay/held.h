/* Held objects: read the holders of a lock, and break a hold. For operators, not for programs. */
#ifndef BELAY_HELD_H
#define BELAY_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belay/client.h"
#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BELAY_HELD_HOLDERS_MAX 1000 /**< maximum number of holders that a query returns */
#define BELAY_HELD_LISTED_MAX 16    /**< the same for each object of a list */

/** Kind of a held object. Fair and reentrant locks, each name of a multilock, and the key of a
 * Redlock on one of its servers are locks. */
typedef enum belay_held_kind {
  BELAY_HELD_LOCK,      /**< belay/lock.h, belay/redlock.h, belay/multilock.h */
  BELAY_HELD_RWLOCK,    /**< belay/rwlock.h */
  BELAY_HELD_SEMAPHORE, /**< belay/semaphore.h; also the fillers of a refiller */
  BELAY_HELD_ELECTION,  /**< belay/election.h; also the election of refillers */
  BELAY_HELD_KINDS      /**< number of kinds */
} belay_held_kind_t;

/** Return the family in the keys of a kind: "lock", "rwlock", "semaphore", "election"; "?" for
 * another number. */
BELAY_API const char *belay_held_kind_name(belay_held_kind_t kind);

/** A holder: one handle that holds the object. */
typedef struct belay_holder {
  /** Label of the holder: the option label, or its client's owner. NULL: belay did not make its
   * token. */
  const char *label;
  /** Remaining time of the lease by the server's clock, in milliseconds, at least 1. -1: no end. */
  int64_t remaining_ms;
  /** Semaphore: number of its permits, 0: unknown. Other kinds: 1. */
  unsigned permits;
  /** true if it is the writer of a read/write lock. */
  bool writes;
  /** Number that differs between holds, also between holds of one holder. It does not reveal the
   * token, so it may be shown. The holds of a multilock on one server have the same mark, and so
   * have the holds of a Redlock on its servers. */
  uint64_t mark;
} belay_holder_t;

/** A held object. In a callback whose status is not 0, name is "", listening is -1, and
 * holders_count does not mean anything. */
typedef struct belay_held {
  belay_held_kind_t kind; /**< kind of the object */
  const char *name;       /**< name of the object, name_len bytes and a 0 */
  size_t name_len;        /**< bytes of the name */
  /** Holders: the writer first, then by remaining time, longest first. NULL: none. */
  const belay_holder_t *holders;
  size_t holders_len;   /**< number of returned holders */
  size_t holders_count; /**< number of all holders */
  /** Last fencing number, or last term of an election; it stays after a release. 0: none. */
  uint64_t fence;
  /** Length of the server's queue of a fair lock, a semaphore with the option fair, or a read/write
   * lock. Several waiters of one client may have one entry. */
  size_t waiting;
  /** Number of connections that a release notifies, about one per client with waiters; for an
   * election also those of observers. Some waiters poll instead, and a connection stays
   * subscribed for a second after a wait. -1: unknown. */
  int64_t listening;
  unsigned limit; /**< semaphore: limit as it was set; 0: not set */
  unsigned used;  /**< semaphore: number of held permits */
  /** Election: the leader's value. Reentrant lock: its owner. owner_len bytes and a 0. Otherwise
   * NULL. */
  const char *owner;
  size_t owner_len; /**< bytes of the owner */
} belay_held_t;

/** A callback of the shape of belay/request.h. status:
 *
 *   0                    the server answered; if the object is free, held->holders_count is 0
 *   BELAY_EWRONGTYPE     the key has another type
 *   BELAY_EUNREACHABLE   nothing was sent (BELAY_ERESOLVE: the name does not resolve)
 *   BELAY_EUNKNOWN       sent, and no reply in time
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   another error        the server's refusal */
typedef void (*belay_held_cb)(belay_request_t *request, int status, const belay_held_t *held);

/** Read one held object. Returns at most BELAY_HELD_HOLDERS_MAX holders, and at most one per 1,024
 * bytes of the client's max_reply. Retried if the reply is lost. The name has 1 to 1024 bytes. To
 * list held objects, use on_held of belay_sweep_options_t (belay/sweep.h).
 *
 * @code
 * static void on_broken(belay_request_t *request, int status, const belay_broken_t *broken) {
 *   (void)request;
 *   printf("%s: %zu taken away\n", belay_strerror(status), status == 0 ? broken->removed : 0);
 * }
 * static void on_held(belay_request_t *request, int status, const belay_held_t *held) {
 *   if (status != 0)
 *     return;
 *   for (size_t i = 0; i < held->holders_len; i++)
 *     printf("held for %lld ms\n", (long long)held->holders[i].remaining_ms);
 *   if (held->holders_len > 0)
 *     (void)belay_held_break((belay_client_t *)request->data, request, held, on_broken);
 * }
 *
 * int free_orders(belay_client_t *client, belay_request_t *request) {
 *   request->data = client;
 *   return belay_held_read(client, request, BELAY_HELD_LOCK, belay_string("orders"), on_held);
 * }
 * @endcode
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_held_read(belay_client_t *client, belay_request_t *request,
                              belay_held_kind_t kind, belay_bytes_t name, belay_held_cb cb);

/** Result of a break. */
typedef struct belay_broken {
  size_t removed; /**< number of released holds */
  size_t missed;  /**< number of listed holds that were gone, or whose token is too long */
  /** Number of listed holds of unknown state: the object has more holders than the query returns,
   * and these were not among them. They are unchanged. Try again with fewer holders or a larger
   * max_reply. */
  size_t unseen;
  size_t others; /**< number of holds that were not listed; they are unchanged */
  /** Number of connections that got the message of a release; the largest of all releases. */
  size_t notified;
} belay_broken_t;

/** A callback of the shape of belay/request.h. status: as with belay_held_read(). BELAY_EUNKNOWN:
 * sent without a reply, and not sent again. Some or all of the listed holds may be released, now
 * or later; no others. */
typedef void (*belay_broken_cb)(belay_request_t *request, int status, const belay_broken_t *broken);

/** Release the holds of the holders in `held`, by their marks; later holders keep theirs.
 * Waiters are woken as by a normal release. It takes two round trips: the first finds the
 * tokens, the second releases each by its token.
 *
 * THE HOLDER IS NOT STOPPED: it relies on its hold until its next renewal or its deadline. Only a
 * holder with the option notice_break (belay/lock.h) checks at once, if it gets the message. So use
 * this for holders that are known to be dead, or whose work fencing numbers protect. Fencing
 * numbers stay and keep growing. For a Redlock, break it on most of its servers.
 *
 * Used and copied are kind, name, name_len, holders and holders_len (1 to BELAY_HELD_HOLDERS_MAX),
 * and the marks. A hold whose token has more than 256 bytes, which belay did not make, stays.
 *
 * Returns as belay_held_read() does. */
BELAY_API int belay_held_break(belay_client_t *client, belay_request_t *request,
                               const belay_held_t *held, belay_broken_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_HELD_H */
