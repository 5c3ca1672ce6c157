/* A lock: one holder at a time, for as long as its lease runs. */
#ifndef BELAY_LOCK_H
#define BELAY_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belay/client.h"
#include "belay/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A lock on a name. The handle is one contender: it holds the lock or does not. Two parts of a program
 * that are to exclude each other take a handle each.
 *
 * A lock is a lease: the server forgets it after its ttl unless it is renewed, and a holder that does
 * not hear from the server stops believing in it in time. What this means, and what it cannot mean:
 * it excludes others as long as clocks run at about the same rate (within ttl/100 + 2 ms in a ttl),
 * nobody else deletes the key, and the server loses no data. Where a mistake would be expensive, guard
 * the resource itself as well. */
typedef struct belay_lock belay_lock_t;

/** Whether the lease is renewed while it is held. A lease that is renewed is also asked about at once when the
 * connection to its server was lost and is back. If the server has forgotten it, as after a restart without data, the
 * loss is told then: BELAY_LOST_TAKEN. Until then, and without a watchdog until the local deadline, another client may
 * be granted it by the server that forgot: belay_quarantine_t, and for one server a number: belay/fence.h. */
typedef enum belay_watchdog {
  BELAY_WATCHDOG_ON = 1, /**< it is renewed until it is released, lost, or held for max_hold_ms */
  BELAY_WATCHDOG_OFF     /**< it ends after its ttl, unless belay_lock_extend() is called */
} belay_watchdog_t;

/** Why a lock was lost. */
typedef enum belay_lost {
  BELAY_LOST_EXPIRED =
      1,               /**< the lease ran out; with a watchdog: no renewal was confirmed in time */
  BELAY_LOST_TAKEN,    /**< the server says that the key is gone, or is someone else's */
  BELAY_LOST_MAX_HOLD, /**< the lease ran out because max_hold_ms had ended its renewal */
  BELAY_LOST_CLOSED    /**< of several names (belay/multilock.h): one of the clients was closed */
} belay_lost_t;

/** A word for it: "expired", "taken", "max-hold", "closed". */
BELAY_API const char *belay_lost_name(belay_lost_t reason);

/** Whether a server that may have lost data has a vote. A lock that is granted by a server which has
 * forgotten that somebody else holds it is a wrong grant; so a server that was restarted, or took another's
 * place, does not vote until every lease from before has run out.
 *
 * A server votes if it has been up for max_ttl_ms, and a key in the namespace says that it is the server that wrote
 * there first, or that max_ttl_ms has passed since another one was noticed. A server is known by its run id
 * and by when it last became a primary. (One that once was promoted forgets that when it has had no replica for
 * an hour, repl-backlog-ttl: then it is quarantined for nothing.) It is one server that is asked: with a client of a
 * cluster ON and TRUST are refused (BELAY_EINVAL).
 * All who use a namespace must have the same max_ttl_ms; it is stored in that key, and a lock with another one
 * ends with BELAY_EMISMATCH. To change it: stop all who use the namespace, wait for the longer of the two times,
 * delete the key NAMESPACE::node::{marker} on every server, and start them again. */
typedef enum belay_quarantine {
  BELAY_QUARANTINE_AUTO,  /**< ON for belay_redlock_new(), OFF for belay_lock_new() */
  BELAY_QUARANTINE_ON,    /**< and a server that does not tell its run id (INFO) has no vote */
  BELAY_QUARANTINE_TRUST, /**< ON, but a server that does not tell its run id votes */
  BELAY_QUARANTINE_OFF    /**< for servers that lose nothing: appendfsync always */
} belay_quarantine_t;

/** How a waiter learns that it may ask again. */
typedef enum belay_wakeup {
  /** it is told of releases, through a connection that listens for all waiters of the client (in a cluster one to each
   * node), and asks now and then all the same */
  BELAY_WAKE_NOTIFY,
  BELAY_WAKE_POLL /**< it asks now and then; and a release tells nobody */
} belay_wakeup_t;

/** How an operation ended: 0 or an error. Runs exactly once for each operation that returned 0, on the
 * loop, never inside the call that started it. Anything of belay's may be called in it, a close too. */
typedef void (*belay_lock_cb)(belay_lock_t *lock, int status);

/** The lock is held no more, and nobody asked for that. Runs exactly once for each loss, at the lease's
 * local deadline at the latest, whether there is a network or not, and after a stalled loop before any
 * other callback of belay's. belay_lock_error() tells the error of the last
 * renewal; 0 if none failed, as after a stalled loop. */
typedef void (*belay_lock_lost_cb)(belay_lock_t *lock, belay_lost_t reason);

/** Options of belay_lock_new(). Times are milliseconds. */
typedef struct belay_lock_options {
  /** Length of the lease: 10 to 86,400,000; default BELAY_DEFAULT: 10,000. It has no influence on
   * watchdog: a lease that is given a ttl is renewed too. The defaults of renew_after_ms and
   * drift_ms depend on it, and with several nodes that of timeout_ms. With a quarantine it is at
   * most max_ttl_ms. */
  int64_t ttl_ms;
  /** Whether the lease is renewed while it is held; default BELAY_WATCHDOG_ON. For a lease that
   * ends after ttl_ms set BELAY_WATCHDOG_OFF. */
  belay_watchdog_t watchdog;
  /** Time between renewals: ttl/10 to ttl/2; default BELAY_DEFAULT: a third of ttl_ms. Renewals
   * start up to a third earlier, so that they can share a batch. No effect without a watchdog. */
  int64_t renew_after_ms;
  /** no renewal after so long a hold, so that it ends at most a ttl later; default BELAY_FOREVER;
   * at least 1 */
  int64_t max_hold_ms;
  /** how long belay_lock_acquire() waits when it is not told; default 5000; 0 to BELAY_FOREVER */
  int64_t wait_ms;
  /** a waiter asks again after a random time from here ... default 25; 1 to 3,600,000 */
  int64_t retry_min_ms;
  /** ... to here, or when the holder's ttl ends if that is sooner; default 75; retry_min_ms to
   * 3,600,000. The default of backoff_max_ms depends on it */
  int64_t retry_max_ms;
  /** both double with each time that it was held, until the larger one is this; default BELAY_DEFAULT: 300, or
   * retry_max_ms if that is more (so it depends on retry_max_ms); retry_max_ms to 3,600,000 */
  int64_t backoff_max_ms;
  belay_wakeup_t wakeup; /**< default BELAY_WAKE_NOTIFY */
  /** true if a holder with a watchdog listens to the channel of its key, and asks the server at once when
   * belay_held_break() takes the hold away: BELAY_LOST_TAKEN about a round trip later. That costs one connection that
   * listens for all locks of the client, and for each hold a subscription and one more renewal. Without it, and while
   * that connection is away, the holder learns of the break at its next renewal. One of several readers, and one of
   * several holds of an owner, learns of it then in any case. Default: false. */
  bool notice_break;
  /** Of the waiters for one name in one client, with the same options for waiting, one asks the server, and the
   * others queue behind it in order (with an owner, or fair, each asks for itself). A release hands the lock to the
   * next one, with one script; after so many times in a row it is given back to the server, since others may be
   * waiting elsewhere. Default 16; 0 to 1,000,000. Only the plain lock is handed over, and not with several nodes, min_replicas or a
   * quarantine: there a release gives it back each time. */
  unsigned max_handovers;
  unsigned
      max_attempts; /**< attempts of one acquire, which then does not queue in its client; default 0: no limit but
                           the time */
  /** taken off each ttl for clocks that run apart; default BELAY_DEFAULT: ttl/100 + 2; 2 to ttl/2 */
  int64_t drift_ms;
  /** Time of one question to a server: 1 to 600,000; default BELAY_DEFAULT: the client's
   * (belay/request.h, TIME LIMITS). With several nodes the default depends on ttl_ms: min(50,
   * ttl/(10 * nodes)), but at least 5; and it is at most ttl/10, or 5 if that is more. The default
   * of replica_timeout_ms depends on it */
  int64_t timeout_ms;

  /** With each grant goes a number that is larger than that of every grant of this name before:
   * belay_lock_fence(). Not with an exact key. Default: false. */
  bool fencing;

  /** A grant or a renewal counts once so many replicas of the server have it (WAIT); default 0; at most
   * 255. On each node of a quorum. */
  unsigned min_replicas;
  /** how long that may take; default BELAY_DEFAULT: half of timeout_ms; 1 to timeout_ms, and
   * at most half of the client's stall_timeout_ms */
  int64_t replica_timeout_ms;

  /** true: a release that was confirmed is sent once more if its connection is lost while the server may still have the
   * lease. A replica that takes over may not have been told of the release: without this option it keeps the lock for the
   * rest of its ttl. At most 4096 releases of a client at a time; none after the client is closed. Default: false */
  bool repeat_release;

  belay_quarantine_t quarantine; /**< default BELAY_QUARANTINE_AUTO */
  /** with a quarantine: the longest ttl that anybody uses in this namespace; default 30,000; 10 to
   * 86,400,000 */
  int64_t max_ttl_ms;
  /** for belay_redlock_new(): two nodes are enough, although the lock then needs both; default: false */
  bool allow_small;

  /** The exact key, 1 to 1024 bytes, instead of one made of namespace and name (belay/client.h,
   * KEYS): to share a lock with another library that does SET key token NX PX. The name is not used
   * then, and may be NULL. Of belay_lock_new() and belay_redlock_new() only. Default: NULL. */
  belay_bytes_t key;

  /** Makes the lock reentrant: who waits for it is this owner (1 to 64 bytes), of this client; while it holds the
   * lock, every other handle of the same owner is granted at once, and it is free when all of them have released.
   * Each hold has its ttl; the fencing number is that of the first. All handles that wait ask the server for
   * themselves, and none queues in its client: another owner there must not keep out who holds it already. A
   * request that a server works on is an owner, for instance. Not the same owner in another client, or after a
   * restart. Not with an exact key, nor fair; on several servers BELAY_ESINGLE: how many holds there are may differ
   * between them. Default: NULL. */
  belay_bytes_t owner;

  /** First come, first served among all clients: waiters queue on the server, in the order in which their first
   * attempts arrive there, and whoever releases wakes the first of them. All who use the name must say so: a plain
   * lock is excluded, but keeps to no queue, and a release of a fair one wakes no waiter of a plain one: that one
   * finds it free when it asks next. Nothing is handed over inside a client. An attempt that does not wait (a wait
   * of 0) overtakes nobody, and does not queue. Behind 100,000 waiters there is no place: whoever comes then asks again and again, and
   * ends with BELAY_EBUSY when its time is over. On one
   * server only (otherwise BELAY_ESINGLE), and not with an owner or an exact key. Default: false. */
  bool fair;
  /** with fair, and for readers and writers: a waiter that dies keeps its place in the queue for so long; who lives
   * renews it; default 3000; 100 to 600,000 */
  int64_t waiter_ttl_ms;

  /** Who holds it, behind the random bytes of its tokens: 1 to 64 printable bytes without spaces; copied. Not for readers
   * and writers, nor for several names. Default: NULL, the client's owner label. */
  const char *label;

  belay_lock_lost_cb on_lost; /**< default: NULL */
  void *data;                 /**< belay_lock_data(); default: NULL */
} belay_lock_options_t;

/** Fills in the defaults. */
BELAY_API void belay_lock_options_init(belay_lock_options_t *options);

/** Makes a handle for the lock of that name (1 to 1024 bytes, any bytes; copied). NULL and 0 with
 * options.key. Sends nothing. On error *out is NULL and belay_detail() names the argument.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ESYSTEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_lock_new(belay_client_t *client, belay_bytes_t name,
                             const belay_lock_options_t *options, belay_lock_t **out);

/** Takes the lock, waiting at most wait_ms for it: BELAY_DEFAULT is the option's, 0 is one attempt,
 * BELAY_FOREVER has no limit. The first attempt goes out at once, unless other handles of this client wait
 * for the name or hold it: then it queues behind them (one attempt never does). After a release of this client that
 * other clients were told of, they go first: the first attempt goes out a quarter of that hold after the release at the
 * latest, and at most about 20 ms after it. Attempts after the first are made when a release is heard of, the sooner the
 * more releases the waiter has heard of, and as retry_min_ms, retry_max_ms and backoff_max_ms say, the second one after a
 * short delay.
 * The end of the wait cuts short every attempt but the first, which has its whole timeout_ms (with fencing on several
 * nodes, for each round). So a wait that is shorter than a round trip ends with an answer too, at most that much later.
 * An attempt that was cut short says nothing: if the one before it found the lock held, or its queue full, the status
 * says that. The caller holds nothing then, and what the attempt may have left on the server is undone.
 *
 * The callback's status:
 *   0                   held, and the lease is running: see belay_lock_remaining_us()
 *   BELAY_EHELD         one attempt, or max_attempts, and someone else holds it
 *   BELAY_ETIMEDOUT     waited for wait_ms, and someone else held it when the server last answered, or others of this
 *                       client still came first
 *   BELAY_EEXPIRED      granted, but so late that the lease was over; it is being undone
 *   BELAY_EUNKNOWN      the last attempt was sent and not answered, and the one before it did not find the lock held;
 *                       it is being undone
 *   BELAY_EUNREACHABLE  nothing could be sent (BELAY_ERESOLVE: the name does not resolve)
 *   BELAY_ENOQUORUM     several nodes: too few of them answered, see belay_lock_tally()
 *   BELAY_EQUARANTINED  one node, and it does not vote yet
 *   BELAY_ENOREPLICAS   one node, and too few of its replicas have it; it is being undone
 *   BELAY_EDUPLICATE    two of the clients reach the same server
 *   BELAY_ECANCELED     belay_lock_cancel() or a close
 *   another error       the server's refusal, such as BELAY_EAUTH, BELAY_EOOM, BELAY_EWRONGTYPE, of the lock itself or
 *                       of what makes it count (WAIT, the quarantine's question); or what kept it
 *                       from being sent: BELAY_EBUSY, BELAY_ENOMEM, BELAY_EMAXCLIENTS, or what belay_connect() says of
 *                       a deployment that is away
 * In all but the first the lock is not held, and a key that the attempt may have left on the server is
 * removed in the background, or is gone after its ttl at the latest.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (held, or an operation is pending), BELAY_ENOMEM, BELAY_ECLOSING,
 * BELAY_EFORK. */
BELAY_API int belay_lock_acquire(belay_lock_t *lock, int64_t wait_ms, belay_lock_cb cb);

/** One attempt: belay_lock_acquire() with a wait of 0. */
BELAY_API int belay_lock_try(belay_lock_t *lock, belay_lock_cb cb);

/** Gives the lock back. From this call on it is not held any more, whatever the answer, and no
 * loss is told. timeout_ms: how long to wait for the answer; BELAY_DEFAULT is the option's.
 * A pending extend ends with BELAY_ECANCELED.
 *
 * The callback's status (cb may be NULL):
 *   0                   the server removed our key
 *   BELAY_ENOTOWNER     the key was not ours any more; nothing was removed
 *   BELAY_EUNKNOWN      sent and not answered; belay goes on trying in the background
 *   BELAY_EUNREACHABLE  could not be sent; belay goes on trying in the background
 *   BELAY_ENOQUORUM     several nodes: too few of them confirmed it; belay goes on trying in the background
 *   BELAY_ECANCELED     a close
 *   another error       it was refused; belay goes on trying in the background
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOTOWNER (not held, or lost), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_lock_release(belay_lock_t *lock, int64_t timeout_ms, belay_lock_cb cb);

/** Makes the lease run for ttl_ms from now (BELAY_DEFAULT: its present ttl), and later renewals too, until
 * it is released. A ttl that ends earlier than the present lease shortens the local deadline at once,
 * before anything is sent; the server's own ttl is never shortened.
 *
 * The callback's status (cb may be NULL):
 *   0                   extended
 *   BELAY_ENOTOWNER     the key is not ours any more: the loss is told as well
 *   BELAY_ECANCELED     it was released, lost or closed meanwhile
 *   another error       the lease still runs, until the earlier of the old and the new deadline; with several
 *                       nodes it may run longer, if some of them have extended it
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOTOWNER (not held, or lost), BELAY_ESTATE (one is pending),
 * BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_lock_extend(belay_lock_t *lock, int64_t ttl_ms, int64_t timeout_ms,
                                belay_lock_cb cb);

/** Ends a pending acquire with BELAY_ECANCELED; what it may have left on the server is undone.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (no acquire is pending), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_lock_cancel(belay_lock_t *lock);

/** How long the lease still runs for certain, in microseconds: 0 if it is not held. Reads the clock each
 * time: this is the question to ask before each step that needs the lock. */
BELAY_API int64_t belay_lock_remaining_us(const belay_lock_t *lock);

/** What the last attempt, renewal or undo that failed ended with; 0 if none did since the last grant. */
BELAY_API int belay_lock_error(const belay_lock_t *lock);

/** With an owner: how many holds the owner had, this one included, when this one was granted; otherwise 1. 0 if the
 * lock is not held. */
BELAY_API unsigned belay_lock_holds(const belay_lock_t *lock);

/** What a node of the lock said last, in an acquire or a renewal. */
typedef enum belay_vote {
  BELAY_VOTE_NONE,        /**< not asked, or not answered yet: the others had decided */
  BELAY_VOTE_GRANTED,     /**< the key is ours, and counts */
  BELAY_VOTE_HELD,        /**< the key is someone else's, or gone */
  BELAY_VOTE_REFUSED,     /**< it answered with an error */
  BELAY_VOTE_TIMED_OUT,   /**< asked, and the answer did not come in time, or never will */
  BELAY_VOTE_UNREACHABLE, /**< it could not be asked */
  /** what it says does not count yet: belay_quarantine_t */
  BELAY_VOTE_QUARANTINED,
  /** it had lost the key, and has it again: counts after the next majority that is asked, if it may vote by then */
  BELAY_VOTE_RESTORED,
  BELAY_VOTES
} belay_vote_t;

/** A word for it: "none", "granted", "held", "refused", "timed-out", "unreachable", "quarantined",
 * "restored". */
BELAY_API const char *belay_vote_name(belay_vote_t vote);

#define BELAY_NODES_MAX 15 /**< nodes of one lock */

/** What each node said. */
typedef struct belay_lock_tally {
  unsigned nodes;              /**< how many there are */
  unsigned quorum;             /**< how many of them make a lock */
  unsigned votes[BELAY_VOTES]; /**< how many said what; by belay_vote_t */
  struct {
    belay_vote_t vote;
    int error; /**< why it is not GRANTED: BELAY_EOOM, BELAY_EAUTH ...; otherwise 0 */
    /** QUARANTINED: milliseconds until the server may vote, at least 1; 0 if that is not known. Otherwise 0 */
    int64_t quarantine_ms;
  } node[BELAY_NODES_MAX]; /**< in the order of the clients */
} belay_lock_tally_t;

/** The votes of the last attempt or renewal, as they stand. For a plain lock: of one node. An answer that
 * was not needed for the decision may still come in later. */
BELAY_API void belay_lock_tally(const belay_lock_t *lock, belay_lock_tally_t *out);

/** The fencing number of the present lease, at most 2^53; 0 if the lock is not held, or has no fencing.
 * It goes with every request to the resource that the lock guards, which refuses a smaller number than it
 * has seen, and an equal one with another token: belay/fence.h. */
BELAY_API uint64_t belay_lock_fence(const belay_lock_t *lock);

/** The token of the present lease, as it stands in the server: 40 hexadecimal digits, a colon, and the
 * label; with options.owner: 40 digits that are the client's, a colon, and that owner. Writes a
 * terminated string of at most size bytes and returns its full length; 0 and "" if the lock is not held. */
BELAY_API size_t belay_lock_token(const belay_lock_t *lock, char *buffer, size_t size);

/** The key on the server, not terminated; *len is its length. Its format is that of KEYS in
 * belay/client.h, or it is options.key. Valid until the lock is closed. */
BELAY_API const char *belay_lock_key(const belay_lock_t *lock, size_t *len);

/** Whether the lock, while it is held, keeps the loop alive. It does not, unless asked to. Asking twice
 * is asking once. */
BELAY_API void belay_lock_ref(belay_lock_t *lock);
BELAY_API void belay_lock_unref(belay_lock_t *lock);

/** A pointer of the caller's own. */
BELAY_API void belay_lock_set_data(belay_lock_t *lock, void *data);
BELAY_API void *belay_lock_data(const belay_lock_t *lock);

/** Runs once when belay_lock_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_lock_close_cb)(belay_lock_t *lock, void *data);

/** Who is told when the handle is gone, whoever ends it, its client too; belay_lock_close() names another one, or none. */
BELAY_API void belay_lock_on_closed(belay_lock_t *lock, belay_lock_close_cb cb);

/** Ends the handle, in any state and in any callback. Pending operations end with BELAY_ECANCELED; what is
 * held, or may be, is released in the background, for at most the client's close_timeout_ms; then the
 * callback runs (cb may be NULL) and the memory is gone.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_lock_close(belay_lock_t *lock, belay_lock_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_LOCK_H */
