/* Locks: a name with one holder at a time. */
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

/** A lock on a name. At most one handle holds it at a time, among all processes that use the same
 * name. A handle is one contender: two parts of a program that must exclude each other need a
 * handle each.
 *
 * Use a lock for work that must not run twice at the same time. Other kinds of locks:
 *
 *   - owner and fair in belay_lock_options_t: a reentrant lock, a lock with strict order
 *   - belay/redlock.h: a lock that survives the loss of a server
 *   - belay/rwlock.h: many readers or one writer
 *   - belay/semaphore.h: several holders at a time
 *   - belay/multilock.h: several names, all or none
 *   - belay/election.h: a leader that is replaced when it fails
 *
 * A lock does not make work run exactly once: for that use belay/idempotency.h.
 *
 * A lock is a lease: a key with the token of its holder and a ttl. The holder renews the key. If it
 * cannot renew the key, it stops holding the lock at its local deadline, which is earlier than the
 * end of the ttl on the server.
 *
 * While belay_lock_remaining_us() is positive, no other client that follows the same rules holds
 * the lock, as long as
 *
 *   - the clocks of this machine and of the server differ in rate, and step, by at most ttl/100 + 2
 *     ms per ttl;
 *   - no other program deletes or changes the key;
 *   - the server loses no data.
 *
 * A process that is paused after its check can act after its lease. Where a mistake is expensive,
 * the resource must refuse late holders: see options.fencing and belay/fence.h.
 *
 * @code
 * static void on_acquired(belay_lock_t *lock, int status) {
 *   if (status != 0) {
 *     printf("not acquired: %s\n", belay_strerror(status));
 *     return;
 *   }
 *   // do the work; check belay_lock_remaining_us(lock) > 0 before each step that matters
 *   belay_lock_release(lock, BELAY_DEFAULT, NULL);
 * }
 *
 * int lock_order(belay_client_t *client, belay_lock_t **out) {
 *   int error = belay_lock_new(client, belay_string("orders/42"), NULL, out);
 *   return error != 0 ? error : belay_lock_acquire(*out, 5000, on_acquired); // waits up to 5 s
 * }
 * @endcode */
typedef struct belay_lock belay_lock_t;

/** Renewal of a lease while it is held.
 *
 * A renewed lease is also checked when the connection to its server was lost and is back. If the
 * server has forgotten the lease, for example after a restart without its data, the holder gets
 * BELAY_LOST_TAKEN. Before that check, the server may grant the lock to another client. Without a
 * watchdog that risk lasts until the local deadline. A quarantine (belay_quarantine_t) prevents
 * such a grant; on one server, a fencing number makes it harmless (belay/fence.h). */
typedef enum belay_watchdog {
  BELAY_WATCHDOG_ON = 1, /**< renewed until it is released, lost, or held for max_hold_ms */
  BELAY_WATCHDOG_OFF     /**< ends after its ttl, unless belay_lock_extend() is called */
} belay_watchdog_t;

/** Reason for the loss of a lock. */
typedef enum belay_lost {
  /** The lease ran out. With a watchdog: no renewal was confirmed in time. */
  BELAY_LOST_EXPIRED = 1,
  /** The server says that the key is gone or has another token. */
  BELAY_LOST_TAKEN,
  /** The lease ran out because max_hold_ms had ended its renewal. */
  BELAY_LOST_MAX_HOLD,
  /** Multilocks only (belay/multilock.h): one of the clients was closed. */
  BELAY_LOST_CLOSED
} belay_lost_t;

/** Return the name of a reason: "expired", "taken", "max-hold" or "closed". */
BELAY_API const char *belay_lost_name(belay_lost_t reason);

/** Quarantine of servers that may have lost data.
 *
 * A server that forgot a lease can grant the same lock again. So a server that was restarted, or
 * took another server's place, does not vote until every older lease has run out.
 *
 * A server votes in two cases:
 *
 *   - It has been up for max_ttl_ms, and a marker key in the namespace says that it is the server
 *     that first wrote the marker.
 *   - The marker says that max_ttl_ms has passed since a change of server was noticed.
 *
 * belay identifies a server by its run id and by the time when it last became a primary. Limit: a
 * promoted server forgets that time when it has had no replica for an hour (repl-backlog-ttl). It
 * is then quarantined without need.
 *
 * ON and TRUST are refused with BELAY_EINVAL for a client of a cluster, because the marker is on
 * one server only.
 *
 * All clients of a namespace must have the same max_ttl_ms. The marker stores it, and an acquire
 * with another value ends with BELAY_EMISMATCH. To change it:
 *
 *   1. Stop all clients of the namespace.
 *   2. Wait for the longer of the two times.
 *   3. Delete the key NAMESPACE::node::{marker} on every server.
 *   4. Start the clients again. */
typedef enum belay_quarantine {
  BELAY_QUARANTINE_AUTO,  /**< ON for belay_redlock_new() and on several nodes, otherwise OFF */
  BELAY_QUARANTINE_ON,    /**< on; a server that hides its run id (INFO) never votes */
  BELAY_QUARANTINE_TRUST, /**< on; a server that hides its run id (INFO) always votes */
  BELAY_QUARANTINE_OFF    /**< off: for servers that lose no data (appendfsync always) */
} belay_quarantine_t;

/** Signal on which a waiter tries again. */
typedef enum belay_wakeup {
  /** A release publishes a message if a waiter has set the contention flag, and the waiter also
   * polls. The flag is a key beside the lock, with a ttl: the lock's key and "::contended". All
   * waiters of a client share one connection for the messages; in a cluster one connection to each
   * node. */
  BELAY_WAKE_NOTIFY,
  /** The waiter polls only. A release publishes nothing. */
  BELAY_WAKE_POLL
} belay_wakeup_t;

/** Reports the end of an operation: status is 0 or an error that the operation's comment lists. See
 * CALLBACKS in belay/loop.h. */
typedef void (*belay_lock_cb)(belay_lock_t *lock, int status);

/** Reports the loss of a lock that was not released. Runs exactly once for each loss, at the local
 * deadline of the lease at the latest, with or without a network. After a stalled loop it runs
 * before all other callbacks of belay.
 *
 * belay_lock_error() returns the error of the last renewal. It is 0 if no renewal failed, for
 * example after a stalled loop. */
typedef void (*belay_lock_lost_cb)(belay_lock_t *lock, belay_lost_t reason);

/** Options; belay_lock_options_init() sets the defaults. All times are in milliseconds. Options
 * that exclude each other are BELAY_EINVAL, unless a comment names another error. */
typedef struct belay_lock_options {
  /** Length of the lease, in milliseconds: 10 to 86,400,000; default BELAY_DEFAULT: 10,000. It has
   * no influence on watchdog: a lease with a ttl is renewed too. With a quarantine it is at most
   * max_ttl_ms. The defaults of renew_after_ms and drift_ms depend on it, and with several nodes
   * that of timeout_ms. */
  int64_t ttl_ms;
  /** Whether the lease is renewed while it is held; default BELAY_WATCHDOG_ON. For a lease that
   * ends after ttl_ms set BELAY_WATCHDOG_OFF. */
  belay_watchdog_t watchdog;
  /** Time between renewals: ttl/10 to ttl/2; default BELAY_DEFAULT: a third of ttl_ms. Renewals
   * start up to a third earlier, so that they can share a batch. No effect without a watchdog. */
  int64_t renew_after_ms;
  /** Longest hold that is renewed, in milliseconds: at least 1; default BELAY_FOREVER. After this
   * time renewals stop, so that the lease ends at most one ttl later. */
  int64_t max_hold_ms;
  /** Time that belay_lock_acquire() waits if its argument is BELAY_DEFAULT, in milliseconds: 0 to
   * BELAY_FOREVER; default 5000. 0: one attempt. */
  int64_t wait_ms;
  /** Shortest delay between two polls of a waiter, in milliseconds: 1 to 3,600,000; default 25.
   * Each delay is random. */
  int64_t retry_min_ms;
  /** Longest delay between two polls of a waiter, in milliseconds: retry_min_ms to 3,600,000;
   * default 75. A waiter polls earlier if the holder's ttl ends earlier. The default of
   * backoff_max_ms depends on it. */
  int64_t retry_max_ms;
  /** Upper bound of the backoff, in milliseconds: retry_max_ms to 3,600,000; default BELAY_DEFAULT:
   * 300, or retry_max_ms if that is larger. Each poll that finds the lock held doubles both
   * retry_min_ms and retry_max_ms for the next poll, until the longer delay reaches this value. */
  int64_t backoff_max_ms;
  /** Signal on which a waiter tries again. Default BELAY_WAKE_NOTIFY. */
  belay_wakeup_t wakeup;
  /** true: a holder subscribes to the channel of its key, so that it notices belay_held_break()
   * about a round trip later and reports BELAY_LOST_TAKEN. Needs a watchdog. It costs one
   * connection for all locks of the client, and per hold one subscription and one more renewal.
   *
   * false, or while that connection is down: the holder notices at its next renewal. The same holds
   * in any case for one of several readers, and for one of several holds of an owner. Default
   * false. */
  bool notice_break;
  /** Largest number of consecutive hand-overs: 0 to 1,000,000; default 16. 0: no hand-overs.
   *
   * Waiters of one client for one name, with the same waiting options, form a queue in the client.
   * Only the first one asks the server. (A waiter with an owner, or with fair, asks for itself.) A
   * release hands the lock to the next waiter with one script. After max_handovers hand-overs the
   * lock goes back to the server, so that waiters of other clients get a turn.
   *
   * Only a plain lock is handed over. With several nodes, min_replicas or a quarantine each release
   * returns the lock to the server. */
  unsigned max_handovers;
  /** Largest number of attempts of one acquire; default 0: no limit except the time. With a limit,
   * the acquire does not queue in its client. */
  unsigned max_attempts;
  /** Margin for clocks of different rates, in milliseconds: 2 to ttl/2; default BELAY_DEFAULT:
   * ttl/100 + 2. The local deadline is the ttl minus this, counted from just before the request was
   * sent. */
  int64_t drift_ms;
  /** Time of one question to a server, in milliseconds: 1 to 600,000; default BELAY_DEFAULT: the
   * timeout_ms of the client. See TIME LIMITS in belay/request.h.
   *
   * With several nodes the default is min(50, ttl/(10 * nodes)), but at least 5. The maximum is
   * then ttl/10, or 5 if that is larger, but at most 600,000. The default of replica_timeout_ms
   * depends on it. */
  int64_t timeout_ms;

  /** true: each grant gets a fencing number, which is larger than that of every earlier grant of
   * the name. See belay_lock_fence(). Not with an exact key. Default false. */
  bool fencing;

  /** Number of replicas of the server that must have a grant or a renewal before it counts (WAIT):
   * 0 to 255; default 0: none. With a quorum it applies to each node. */
  unsigned min_replicas;
  /** Time that the server waits for its replicas, in milliseconds: 1 to timeout_ms, and at most
   * half of the client's stall_timeout_ms. Default BELAY_DEFAULT: half of the smaller of timeout_ms
   * and the client's stall_timeout_ms. */
  int64_t replica_timeout_ms;

  /** true: a confirmed release is sent again if its connection is lost while the server may still
   * have the lease. A replica that takes over may not have received the release. Without this
   * option such a replica keeps the lock for the rest of its ttl. At most 4096 releases per client
   * are kept for this; none after the client was closed. Default false. */
  bool repeat_release;

  /** Quarantine of servers that may have lost data. Default BELAY_QUARANTINE_AUTO. */
  belay_quarantine_t quarantine;
  /** Longest ttl that any client of the namespace uses, in milliseconds: 10 to 86,400,000; default
   * 30,000. Used with a quarantine only. It must be the same in all clients of the namespace. */
  int64_t max_ttl_ms;
  /** true: belay_redlock_new() accepts two nodes. The lock then needs both of them. Default
   * false. */
  bool allow_small;

  /** Exact key, 1 to 1024 bytes, instead of one made of namespace and name (KEYS in
   * belay/client.h). It shares a lock with another library that does SET key token NX PX. The name
   * is not used then and may be absent. For belay_lock_new() and belay_redlock_new() only. Default:
   * absent. */
  belay_bytes_t key;

  /** Owner of a reentrant lock, 1 to 64 bytes. Default: absent, the lock is not reentrant.
   *
   *   - While an owner holds the lock, every other handle of that owner is granted at once. The
   *     lock is free when all of them have released.
   *   - An owner belongs to its client. The same bytes in another client, or after a restart, are
   *     another owner. A request that a server handles is a typical owner.
   *   - Each hold has its own ttl. All holds have the fencing number of the first one.
   *   - Each waiting handle asks the server for itself and does not queue in its client: a waiter
   *     of another owner must not block a handle that may enter.
   *   - Not with an exact key, nor with fair. On several servers: BELAY_ESINGLE, because the number
   *     of holds could differ between them. */
  belay_bytes_t owner;

  /** true: strict order of waiters among all clients, by a queue on the server. Default false.
   *
   *   - Waiters are served in the order in which their first attempts reach the server. A release
   *     wakes the first waiter only. There are no hand-overs inside a client.
   *   - All clients of the name must set it. A plain lock on the same name is excluded but does not
   *     queue. The release of a fair lock does not wake a waiter of a plain one, nor the reverse.
   *     The waiter finds the lock free at its next poll.
   *   - An attempt with a wait of 0 does not overtake any waiter, and does not queue.
   *   - The queue holds 100,000 waiters. Later waiters ask again until their time is over, and end
   *     with BELAY_EBUSY.
   *   - On one server only, otherwise BELAY_ESINGLE. Not with an owner or an exact key. */
  bool fair;
  /** Time for which a waiter keeps its place in a queue on the server without asking, in
   * milliseconds: 100 to 600,000; default 3000. A living waiter renews its place; the place of a
   * dead waiter ends after this time. Used with fair, and for readers and writers. */
  int64_t waiter_ttl_ms;

  /** Text in the tokens of the lock, behind their random bytes, that names the holder: 1 to 64
   * printable bytes without spaces; copied. Not for readers and writers, nor for multilocks.
   * Default NULL: the owner label of the client. */
  const char *label;

  /** Callback for a loss. Default NULL: losses are not reported. */
  belay_lock_lost_cb on_lost;
  /** Pointer of the caller, returned by belay_lock_data(). Default NULL. */
  void *data;
} belay_lock_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_lock_options_init(belay_lock_options_t *options);

/** Make a handle for the lock of a name (1 to 1024 bytes of any value; copied). With options.key
 * the name may be absent. It sends nothing. On error *out is NULL and belay_detail() names the
 * argument.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ESYSTEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_lock_new(belay_client_t *client, belay_bytes_t name,
                             const belay_lock_options_t *options, belay_lock_t **out);

/** Acquire the lock. wait_ms is the longest wait: BELAY_DEFAULT for options.wait_ms, 0 for one
 * attempt, BELAY_FOREVER for no limit.
 *
 * When attempts are made:
 *
 *   - The first attempt is sent at once. Exception: if other handles of this client wait for the
 *     name or hold it, the acquire queues behind them. An acquire with a wait of 0 never queues.
 *   - If this client has just released the lock and other clients wait for it, they go first. The
 *     first attempt is then delayed until at most a quarter of that hold after the release, and at
 *     most about 20 ms after it.
 *   - The second attempt follows after a short delay. Later ones follow the delays in retry_min_ms,
 *     retry_max_ms and backoff_max_ms.
 *   - A release elsewhere wakes the waiter for an attempt. The more releases a waiter has seen, the
 *     sooner it asks.
 *
 * The first attempt has its whole timeout_ms, even if the wait is shorter. (With fencing on several
 * nodes: each of its rounds has.) So the status can come that much later than wait_ms. The end of
 * the wait cuts later attempts short. If such an attempt gets no reply, the status is that of the
 * attempt before it, if that one found the lock held or its queue full.
 *
 * Status in the callback:
 *
 *   0                   held; belay_lock_remaining_us() returns the time that is left
 *   BELAY_EHELD         wait of 0, or max_attempts reached: another holder has the lock
 *   BELAY_ETIMEDOUT     wait_ms has passed: at the server's last reply another holder had the lock,
 *                       or other waiters of this client came first
 *   BELAY_EEXPIRED      granted, but the lease was over when the reply arrived
 *   BELAY_EUNKNOWN      the last attempt was sent and not answered
 *   BELAY_EUNREACHABLE  nothing was sent
 *   BELAY_ERESOLVE      nothing was sent: the server's name does not resolve
 *   BELAY_ENOQUORUM     several nodes: too few of them answered; see belay_lock_tally()
 *   BELAY_EQUARANTINED  one node: the server does not vote yet
 *   BELAY_ENOREPLICAS   one node: too few replicas of the server have the grant
 *   BELAY_EDUPLICATE    two of the clients reach the same server
 *   BELAY_ECANCELED     belay_lock_cancel() or a close
 *   BELAY_EBUSY, BELAY_ENOMEM, BELAY_ESYSTEM, BELAY_EMAXCLIENTS and the errors at belay_connect()
 *                       nothing was sent
 *   another error       the server refused the lock, WAIT, or the question of the quarantine: for
 *                       example BELAY_EAUTH, BELAY_EOOM, BELAY_EWRONGTYPE
 *
 * An error for which belay_err_retryable() returns 1, BELAY_EUNKNOWN and BELAY_EPROTO do not end
 * the wait; other errors, such as BELAY_EAUTH, do. With any status except 0 the lock is not held.
 * belay removes in the background a key that the attempt may have left on the server. If that
 * fails, the key is gone after its ttl.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (held, or an operation is pending), BELAY_ENOMEM,
 * BELAY_ESYSTEM (no random bytes; readers, writers, or with fair), BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_lock_acquire(belay_lock_t *lock, int64_t wait_ms, belay_lock_cb cb);

/** Make one attempt: belay_lock_acquire() with a wait of 0. */
BELAY_API int belay_lock_try(belay_lock_t *lock, belay_lock_cb cb);

/** Release the lock. From this call on the lock is not held, whatever the status, and no loss is
 * reported. A pending extend ends with BELAY_ECANCELED. timeout_ms limits the wait for the reply;
 * BELAY_DEFAULT for options.timeout_ms.
 *
 * Status in the callback (cb may be NULL):
 *
 *   0                   the server removed the key of this holder
 *   BELAY_ENOTOWNER     the key was gone or had another token; nothing was removed
 *   BELAY_EUNKNOWN      sent and not answered
 *   BELAY_EUNREACHABLE  not sent
 *   BELAY_ENOQUORUM     several nodes: too few of them confirmed it
 *   BELAY_ECANCELED     a close
 *   another error       the server refused it
 *
 * After BELAY_EUNKNOWN, BELAY_EUNREACHABLE, BELAY_ENOQUORUM or another error belay repeats the
 * release in the background.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOTOWNER (not held, or lost), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_lock_release(belay_lock_t *lock, int64_t timeout_ms, belay_lock_cb cb);

/** Extend the lease to ttl_ms from now: 10 to 86,400,000, at most max_ttl_ms with a quarantine;
 * BELAY_DEFAULT for its present ttl. Later renewals use ttl_ms too, until the release. If ttl_ms
 * ends earlier than the present lease, the local deadline becomes earlier at once, before anything
 * is sent. The ttl on the server is never shortened.
 *
 * Status in the callback (cb may be NULL):
 *
 *   0                   extended
 *   BELAY_ENOTOWNER     the key is gone or has another token; the loss is reported before this
 *   BELAY_ECANCELED     the lock was released, lost or closed meanwhile
 *   another error       the lease runs until the earlier of the old and the new deadline. With
 *                       several nodes it may run longer, if some of them have extended it
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOTOWNER (not held, or lost), BELAY_ESTATE (an extend is
 * pending), BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_lock_extend(belay_lock_t *lock, int64_t ttl_ms, int64_t timeout_ms,
                                belay_lock_cb cb);

/** End a pending acquire with BELAY_ECANCELED. belay removes in the background a key that the
 * acquire may have left on the server.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (no acquire is pending), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_lock_cancel(belay_lock_t *lock);

/** Return the time for which the lock is certainly held, in microseconds; 0 if it is not held. Each
 * call reads the clock. Call it before each step that needs the lock. */
BELAY_API int64_t belay_lock_remaining_us(const belay_lock_t *lock);

/** Return the error of the last attempt, renewal or undo that failed; 0 if none failed since the
 * last grant. */
BELAY_API int belay_lock_error(const belay_lock_t *lock);

/** Return the number of holds of this lock's owner when this hold was granted, this hold included.
 * 1 for a lock without an owner; 0 if the lock is not held. */
BELAY_API unsigned belay_lock_holds(const belay_lock_t *lock);

/** Last reply of a node, in an acquire or a renewal. */
typedef enum belay_vote {
  BELAY_VOTE_NONE,        /**< not asked; or no reply yet, because the other nodes had decided */
  BELAY_VOTE_GRANTED,     /**< the key has this lock's token, and counts */
  BELAY_VOTE_HELD,        /**< the key has another token, or is gone */
  BELAY_VOTE_REFUSED,     /**< the node replied with an error */
  BELAY_VOTE_TIMED_OUT,   /**< asked; the reply was late or lost */
  BELAY_VOTE_UNREACHABLE, /**< the question could not be sent */
  BELAY_VOTE_QUARANTINED, /**< the reply does not count yet: see belay_quarantine_t */
  /** The node had lost the key and has it again. It counts after the next majority that is asked,
   * if it may vote by then. */
  BELAY_VOTE_RESTORED,
  BELAY_VOTES /**< number of values above */
} belay_vote_t;

/** Return the name of a vote: "none", "granted", "held", "refused", "timed-out", "unreachable",
 * "quarantined" or "restored". */
BELAY_API const char *belay_vote_name(belay_vote_t vote);

#define BELAY_NODES_MAX 15 /**< nodes of one lock */

/** Votes of all nodes of a lock. */
typedef struct belay_lock_tally {
  unsigned nodes;              /**< number of nodes */
  unsigned quorum;             /**< number of grants that make a lock */
  unsigned votes[BELAY_VOTES]; /**< number of nodes per vote; the index is a belay_vote_t */
  struct {
    belay_vote_t vote; /**< last reply of the node */
    int error;         /**< cause if vote is not GRANTED, such as BELAY_EOOM; otherwise 0 */
    /** Time until a QUARANTINED server may vote, in milliseconds, at least 1. 0 if the time is not
     * known, and for all other votes. */
    int64_t quarantine_ms;
  } node[BELAY_NODES_MAX]; /**< the nodes, in the order of the clients */
} belay_lock_tally_t;

/** Read the current votes of the last attempt or renewal. A plain lock has one node. A reply that
 * was not needed for the decision may still change its vote later. */
BELAY_API void belay_lock_tally(const belay_lock_t *lock, belay_lock_tally_t *out);

/** Return the fencing number of the present lease, at most 2^53. 0 if the lock is not held, or has
 * no fencing.
 *
 * Send it with every request to the resource that the lock guards. The resource must refuse a
 * number smaller than the largest that it has seen, and an equal one with another token: see
 * belay/fence.h. */
BELAY_API uint64_t belay_lock_fence(const belay_lock_t *lock);

/** Write the token of the present lease, as stored on the server: 40 hexadecimal digits, a colon
 * and the label. With options.owner: 40 digits of the client, a colon and the owner. It writes a
 * terminated string of at most size bytes. Returns the full length of the token; 0, with "", if the
 * lock is not held. */
BELAY_API size_t belay_lock_token(const belay_lock_t *lock, char *buffer, size_t size);

/** Return the key on the server, not terminated; *len is its length. It is options.key, or has the
 * format in KEYS of belay/client.h. Valid until the lock is closed. */
BELAY_API const char *belay_lock_key(const belay_lock_t *lock, size_t *len);

/** Let the lock keep the loop alive while it is held. Off by default. Further calls have no
 * effect. */
BELAY_API void belay_lock_ref(belay_lock_t *lock);
/** Undo belay_lock_ref(), also if it was called several times. */
BELAY_API void belay_lock_unref(belay_lock_t *lock);

/** Set the pointer that belay_lock_data() returns. */
BELAY_API void belay_lock_set_data(belay_lock_t *lock, void *data);
/** Return options.data, or the last pointer given to belay_lock_set_data(). */
BELAY_API void *belay_lock_data(const belay_lock_t *lock);

/** Runs once when the handle is gone. data is described at CLOSING in belay/loop.h. It may call any
 * function of belay, except with this handle. */
typedef void (*belay_lock_close_cb)(belay_lock_t *lock, void *data);

/** Set the callback that runs when the handle is gone for any reason, such as the close of its
 * client. A later belay_lock_close() replaces it with its own callback, or with none if that is
 * NULL. */
BELAY_API void belay_lock_on_closed(belay_lock_t *lock, belay_lock_close_cb cb);

/** Close the handle, in any state and in any callback. Pending operations end with BELAY_ECANCELED.
 * A lease that is held, or may be, is released in the background, within the client's
 * close_timeout_ms. Then cb runs (NULL is allowed), and the memory is freed.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_lock_close(belay_lock_t *lock, belay_lock_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_LOCK_H */
