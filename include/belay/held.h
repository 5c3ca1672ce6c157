/* What is held: by whom, for how much longer, and how it is taken away. For people who look
 * after it, not for programs. */
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

/** Maximum number of holders that a query of one object returns. */
#define BELAY_HELD_HOLDERS_MAX 1000
#define BELAY_HELD_LISTED_MAX 16 /**< and where all are listed */

/** The kind of a held object. Fair and reentrant locks, and each name of a multilock, are locks.
 * A Redlock's key on one of its servers is a lock, too. */
typedef enum belay_held_kind {
  BELAY_HELD_LOCK,      /**< belay/lock.h, belay/redlock.h, belay/multilock.h */
  BELAY_HELD_RWLOCK,    /**< belay/rwlock.h */
  BELAY_HELD_SEMAPHORE, /**< belay/semaphore.h; also the fillers of a refiller */
  BELAY_HELD_ELECTION,  /**< belay/election.h; also the election of refillers */
  BELAY_HELD_KINDS      /**< how many kinds there are */
} belay_held_kind_t;

/** The kind's name, as it stands in its keys: "lock", "rwlock", "semaphore", "election"; "?" for
 * another number. */
BELAY_API const char *belay_held_kind_name(belay_held_kind_t kind);

/** One who holds something: each handle that does, by itself. */
typedef struct belay_holder {
  /** The holder's label: the option label, or its client's owner. NULL: belay did not make its
   * token. */
  const char *label;
  int64_t remaining_ms; /**< of its lease, by the server's clock, at least 1; -1: it has no end */
  /** of a semaphore: how many it has, 0: the server has forgotten how many; else 1 */
  unsigned permits;
  bool writes; /**< of readers and writers: it is the writer */
  /** Tells this hold from others, from later ones of the same holder too, as far as 64 bits can.
   * It is made of the token; one of belay's cannot be made of it, or guessed: so it may be
   * shown. Equal marks of several locks are one multilock's (of a cluster: no), or one Redlock's
   * on several servers. */
  uint64_t mark;
} belay_holder_t;

/** One thing, and its holders. In a callback whose status is not 0, name is "" and listening is
 * -1; a holders_count of 0 does not mean then that the thing is free. */
typedef struct belay_held {
  belay_held_kind_t kind; /**< what it is */
  const char *name;       /**< as the handles are given it; name_len bytes, and a 0 */
  size_t name_len;        /**< bytes of the name */
  /** the writer first, and then whose lease lasts longest. NULL: nobody holds it */
  const belay_holder_t *holders;
  size_t holders_len;   /**< number of returned holders */
  size_t holders_count; /**< how many there are, which may be more */
  /** The last fencing number, or an election's last term; it stays after a release. 0: none. */
  uint64_t fence;
  /** places in the server's queue: of fair locks, semaphores with the option fair, readers and
   * writers. A client in which several wait in a line may have one for all of them */
  size_t waiting;
  /** Number of connections that a release notifies, about one per client with waiters; for an
   * election also those of observers. Some waiters poll instead, and a connection stays
   * subscribed for a second after a wait. -1: the server does not tell. */
  int64_t listening;
  unsigned limit; /**< of a semaphore, as it was set; 0 if it was not */
  unsigned used;  /**< of a semaphore: permits that are out */
  /** Of an election: the leader's value. Of a reentrant lock: its owner. owner_len bytes and a 0;
   * else NULL. */
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

/** Reads one held object. Returns at most BELAY_HELD_HOLDERS_MAX holders, or as many as fit
 * into the client's max_reply: the first in that order. The name has 1 to 1024 bytes. To list held
 * objects, use on_held of belay_sweep_options_t (belay/sweep.h).
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
 *     printf("%s holds it for %lld ms\n", held->holders[i].label != NULL ? held->holders[i].label : "?",
 *            (long long)held->holders[i].remaining_ms);
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
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_held_read(belay_client_t *client, belay_request_t *request,
                              belay_held_kind_t kind, belay_bytes_t name, belay_held_cb cb);

/** The result of a break. */
typedef struct belay_broken {
  size_t removed; /**< holds that were there, and are not any more */
  size_t
      missed; /**< holds that were to go and were not there any more: given back, run out, or broken */
  /** Number of listed holds of unknown state: the object has more holders than the query returns,
   * and these were not among them. They are unchanged. Try again with fewer holders or a larger
   * max_reply. */
  size_t unseen;
  /** holds that were there and were none of those that were to go, unless they are unseen: they
   * are as they were */
  size_t others;
  /** Number of connections that got the message of a release; the largest of all releases. */
  size_t notified;
} belay_broken_t;

/** A callback of the shape of belay/request.h. status: as with belay_held_read(). BELAY_EUNKNOWN:
 * sent without a reply, and not sent again. Some or all of the listed holds may be released, now
 * or later; no others. */
typedef void (*belay_broken_cb)(belay_request_t *request, int status, const belay_broken_t *broken);

/** Releases the holds of the holders in `held`, by their marks; later holders keep theirs.
 * Waiters are woken as by a normal release. It takes two round trips: the first finds the
 * tokens, the second releases each by its token.
 *
 * THE HOLDER IS NOT STOPPED: it believes in its hold until its next renewal or its deadline.
 * Only a holder with the option notice_break (belay/lock.h) checks at once, usually within a few
 * round trips; its message may be lost. So use this for holders that are known to be dead, or
 * whose work fencing numbers protect. Fencing numbers stay and keep growing. For a Redlock, do
 * it on most of its servers.
 *
 * Of `held`, the fields kind, name, name_len, holders and holders_len are used, and of holders
 * the marks. All of it is copied: `held` may be a callback's argument or a copy of it. 1 to
 * BELAY_HELD_HOLDERS_MAX holders. A token of more than 256 bytes, which belay did not make,
 * stays.
 *
 * Returns as belay_held_read() does. */
BELAY_API int belay_held_break(belay_client_t *client, belay_request_t *request,
                               const belay_held_t *held, belay_broken_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_HELD_H */
