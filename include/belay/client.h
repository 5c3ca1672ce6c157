/* A client: one Redis deployment, as belay sees it. */
#ifndef BELAY_CLIENT_H
#define BELAY_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "belay/export.h"
#include "belay/loop.h"
#include "belay/tls.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One logical deployment: its connections, its namespace, and what is held there. */
typedef struct belay_client belay_client_t;

/** What happens to a call when max_pending calls are on the way. */
typedef enum belay_on_full {
  BELAY_FULL_REFUSE, /**< it fails at once with BELAY_EBUSY */
  BELAY_FULL_WAIT    /**< it waits for its turn, until its deadline */
} belay_on_full_t;

/** Who answers what only reads and may be a little old. */
typedef enum belay_read_from {
  BELAY_READ_PRIMARY, /**< the primary, always */
  BELAY_READ_REPLICA, /**< a replica, if there is one that is connected to its primary; else the primary */
  BELAY_READ_ANY /**< any of them in turn, the primary too */
} belay_read_from_t;

/** The stations of a call, for the trace hook. */
typedef enum belay_trace_event {
  BELAY_TRACE_STARTED, /**< belay decided to make the call */
  BELAY_TRACE_SENT,    /**< it was handed to a connection; again after a retry */
  BELAY_TRACE_DONE,    /**< it ended for its caller: outcome and error are set */
  BELAY_TRACE_SETTLED  /**< a call whose answer was late is over, one way or the other */
} belay_trace_event_t;

/** The four ways in which a call ends. */
typedef enum belay_outcome {
  BELAY_OUTCOME_REPLY,    /**< the server answered */
  BELAY_OUTCOME_REFUSED,  /**< the server refused before executing */
  BELAY_OUTCOME_NOT_SENT, /**< it never left this process */
  BELAY_OUTCOME_UNKNOWN   /**< it was sent, and what came of it is not known */
} belay_outcome_t;

/** One station of one call. Valid until the hook returns. */
typedef struct belay_trace {
  belay_trace_event_t event; /**< which station */
  uint64_t call;             /**< numbers the calls of a client from 1 */
  const char *command;       /**< the command's or the script's name, such as "SET" */
  size_t bytes;              /**< its size on the wire, if it is alone */
  uint64_t elapsed_ns;       /**< since STARTED */
  belay_outcome_t outcome;   /**< with DONE and SETTLED */
  int error;                 /**< with DONE and SETTLED: 0 or an error */
} belay_trace_t;

/** The trace hook. It is called at each station, in order, on the loop or inside the function that made
 * the call. DONE comes exactly once for each call, SETTLED at most once, after a DONE whose outcome was
 * UNKNOWN because of the deadline. It must not call into belay. Keys, tokens and values never appear. */
typedef void (*belay_trace_fn)(void *ctx, const belay_trace_t *trace);

/** Who we are to a server: what AUTH says. */
typedef struct belay_credentials {
  const char *username; /**< NULL or "": the server's default user */
  const char *password; /**< NULL: "", or, of the default user, none: then there is no AUTH */
} belay_credentials_t;

/** Tells who we are, each time that a connection has been made; with TLS, when the server has proved who it is. So a
 * password may be changed at any time. It puts its answer into *out, where both are NULL, and returns 0; what they point
 * to is read as soon as it is back, at most 65,536 bytes each, and belay keeps no copy. Anything but 0 ends the
 * connection with BELAY_EAUTH. It runs on the loop, and must not block it, or call into belay. */
typedef int (*belay_credentials_fn)(void *ctx, belay_credentials_t *out);

/* KEYS. What belay keeps on a server lies under keys of this format:
 *
 *   NAMESPACE::FAMILY::{NAME}
 *       one thing: lock, rwlock, semaphore, election, latch, barrier, topic, active, bloom, dedup,
 *       idgen, presence
 *   NAMESPACE::FAMILY::NAME::{KEY}
 *       a handle with many keys: bucket, cache, counter, idempotency, limit, permission, ranking,
 *       session; without a name NAMESPACE::FAMILY::{KEY}
 *
 * and the same with "::" and a word behind it for further parts, such as
 * NAMESPACE::lock::{orders/42}::fence. NAMESPACE is namespace_parts, joined by "::". The braces
 * keep all parts of one thing in one slot of a cluster. So the lock "orders/42" of a client with
 * the default namespace is the string belay::lock::{orders/42}, and its value is the holder's
 * token. belay_lock_key() returns the key of a handle. Locks with options.key have that key,
 * whatever its format.
 *
 * In each part of the namespace, name and key these bytes are written as % and two upper-case
 * hexadecimal digits: '%', '{', '}', bytes below 0x20, 0x7f, and ':' at an end of the part or
 * before another ':'. All other bytes stand for themselves: "a::{b}" becomes
 * a%3A:%7Bb%7D. */

/** Options of belay_connect(). A string that is not NULL overrides what the URL says. Everything is
 * copied. Times are milliseconds. */
typedef struct belay_client_options {
  const char *username; /**< default: NULL, the URL's; "" is the server's default user */
  const char *password; /**< default: NULL, the URL's */
  int db;               /**< default: -1, the URL's or 0; otherwise 0 to 65535 */
  /** asked instead of what URL and options say, at each connection; default: NULL */
  belay_credentials_fn credentials;
  void *credentials_ctx; /**< handed to credentials */
  /** for a URL that begins with rediss; default: NULL, that URL has the system's authorities. With another URL it is
   * BELAY_EINVAL. The client keeps it until it is closed. */
  belay_tls_t *tls;

  /** What sentinels want to hear before they answer; for redis+sentinel:// only. Default: NULL, nothing: the user and
   * password above are those of the servers. At most 512 bytes each */
  const char *sentinel_username;
  const char *sentinel_password; /**< see sentinel_username */

  /** Who may answer the operations whose headers say that a replica may: they only read, and are told how things were a
   * moment ago, as far as the replica is behind. So what was just written may not be found, and of two reads the later
   * one may be told what is older. What was asked of a replica that cannot answer now is asked of the primary.
   *
   * A replica is read from while it says that it is connected to its primary, which it is asked (ROLE) every five
   * seconds. One that was cut off without a word says so until its own repl-timeout, 60 s by default, has passed.
   *
   * Nothing that decides who holds something, or who is let in, is ever asked of a replica. For deployments that know
   * their replicas: not for redis:// and unix://. Default BELAY_READ_PRIMARY */
  belay_read_from_t read_from;

  /** The parts of the namespace, wide to narrow, each 1 to 128 bytes; every key of this client begins
   * with them. Default: {"belay"}. At most 8. */
  const char *const *namespace_parts;
  size_t namespace_count; /**< how many there are; default 1 */

  /** CLIENT SETNAME, 1 to 64 printable bytes without spaces; default "belay" */
  const char *client_name;
  const char *owner; /**< who we are, in every token: 1 to 64 printable bytes; default "host:pid" */

  /** connections for each kind of traffic, to each server that is used; default 1, at most 64. Calls that
   * concern one name always share one. */
  unsigned connections;
  int64_t connect_timeout_ms; /**< resolve, connect and shake hands; default 2000; 1 to 600,000 */
  /** time of one operation where neither its request nor its handle gives one (belay/request.h,
   * TIME LIMITS); default 2000; 1 to 600,000. A loop that was away for longer ends its calls so,
   * even if their answers lie in the socket: they may be about the past. */
  int64_t timeout_ms;
  /** a connection that owes an answer and is silent for so long is dropped; default 5000; 10 to
   * 600,000 */
  int64_t stall_timeout_ms;
  /** a connection idle for so long is checked with PING before it is used, and closed if it is not
   * the first of its kind; a PING that is not answered within a quarter of connect_timeout_ms
   * makes a new one; default 30,000; 10 to 86,400,000 or BELAY_FOREVER */
  int64_t idle_timeout_ms;
  /** The longest delay before the second attempt to connect; default 20; 1 to 60,000 */
  int64_t reconnect_min_ms;
  /** The longest delay between attempts to connect; default 2000; reconnect_min_ms to 600,000. Each delay is drawn at
   * random, from 0 to half of the time for which the server has been away, at least reconnect_min_ms and at most this. */
  int64_t reconnect_max_ms;
  int64_t close_timeout_ms; /**< how long a close may go on releasing; default 1000; 0 to 600,000 */
  /** TCP_USER_TIMEOUT where the platform has it; default 10,000; 0: the system's */
  int64_t tcp_user_timeout_ms;
  int64_t keepalive_ms; /**< TCP keepalive after so long; default 15,000; 0: off */

  size_t max_pending; /**< calls on the way, for each connection; default 65,536; at least 1 */
  /** bytes of calls that have not ended, for the client; over it calls fail with BELAY_EBUSY
   * whatever on_full says; default 64 MiB; at least 64 KiB */
  size_t max_bytes;
  /** bytes of one reply; over it the connection is dropped; default 16 MiB; at least 64 KiB. Messages of a topic
   * may be larger (belay/topic.h) */
  size_t max_reply;
  belay_on_full_t on_full; /**< default BELAY_FULL_REFUSE */

  belay_trace_fn trace; /**< default: NULL */
  void *trace_ctx;      /**< handed to trace */
} belay_client_options_t;

/** Fills in the defaults. */
BELAY_API void belay_client_options_init(belay_client_options_t *options);

/** Makes a client for a deployment. It connects when it is first used, and again whenever it has to.
 *
 * URLs; user, password and path may be percent-encoded, IPv6 addresses stand in brackets:
 *
 *   redis://[user[:password]@]host[:port][/db]     one server
 *   unix://[user[:password]@]/path[?db=n]          one server, by its socket
 *   redis+replicas://[user[:password]@]host[:port],host[:port]...[/db]
 *                                                  a primary and its replicas; who is who is asked (ROLE) each time
 *   redis+sentinel://[user[:password]@]host[:port],host[:port].../master[/db]
 *                                                  the hosts are sentinels (port 26379), user and password are of the
 *                                                  servers behind them
 *   redis+cluster://[user[:password]@]host[:port],host[:port]...[/db]
 *                                                  the hosts are some nodes of a cluster, the others are found
 *
 * and each of them but unix:// over TLS, "rediss" standing for "redis" (belay/tls.h). At most 16 hosts. A cluster has
 * hardly ever another db than 0. A NULL options means the defaults. On error *out is NULL and belay_detail() names the
 * part or the option.
 *
 * A server is away while no connection to it can be made, or while a call timed out on it and nothing was heard of it
 * since. The client detects this for each server, and also its return, without calls. While a server is away, operations
 * with a policy for it (belay_limiter_options_t::away, belay_cache_options_t::away) end at once; others wait for it until
 * their timeouts. belay_detail() names the server and the cause: "127.0.0.1:6379: connection refused".
 *
 * Where an operation finds nobody to ask, nothing was sent, and it ends with BELAY_EUNREACHABLE, or with what says more:
 * BELAY_ERESOLVE, BELAY_ENOSENTINEL, BELAY_ENOMASTER, BELAY_ESPLIT, BELAY_EREADONLY, BELAY_ECLUSTERDOWN, BELAY_ELOADING,
 * BELAY_EMAXCLIENTS, BELAY_ETLS, BELAY_EAUTH or BELAY_EPERM. What each deployment promises is said in
 * adapters/redis/README.md.
 *
 * Returns 0, BELAY_EINVAL, BELAY_EURL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_connect(belay_t *belay, const char *url, const belay_client_options_t *options,
                            belay_client_t **out);

typedef void (*belay_client_cb)(belay_client_t *client, int status);

/** Asks the server (the primary of several, one node of a cluster) for a sign of life (PING), on a connection that locks
 * use too, which it makes if there is none yet. timeout_ms: BELAY_DEFAULT is the client's. The callback's status is 0 or
 * an error that says why not. At most one at a time (BELAY_ESTATE).
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE, BELAY_EBUSY, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_client_ping(belay_client_t *client, int64_t timeout_ms, belay_client_cb cb);

/** Runs once when belay_client_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_client_close_cb)(belay_client_t *client, void *data);

/** Closes what was made from the client (pending operations end with BELAY_ECANCELED, what is held is
 * released), then its connections, and calls back (cb may be NULL). Takes at most close_timeout_ms,
 * plus the time of a name look-up that is under way. A handle of this client (a lock, a limiter, ...) may
 * be gone before that: after this call use it only inside its own callbacks.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_client_close(belay_client_t *client, belay_client_close_cb cb);

/** A pointer of the caller's own. */
BELAY_API void belay_client_set_data(belay_client_t *client, void *data);
BELAY_API void *belay_client_data(const belay_client_t *client);

/** The belay_t that it was made from. */
BELAY_API belay_t *belay_client_belay(const belay_client_t *client);

/** Figures of one client, counted since it was made unless they say "now". */
typedef struct belay_client_stats {
  uint64_t calls;          /**< calls that were started */
  uint64_t replies;        /**< outcome REPLY */
  uint64_t refused;        /**< outcome REFUSED */
  uint64_t not_sent;       /**< outcome NOT_SENT */
  uint64_t unknown;        /**< outcome UNKNOWN */
  uint64_t settled_late;   /**< answers that came after their deadline */
  uint64_t commands;       /**< commands handed to connections, retries included, handshakes not */
  uint64_t batched;        /**< of them: those that travelled with others, as one */
  uint64_t bytes_out;      /**< bytes written */
  uint64_t bytes_in;       /**< bytes read */
  uint64_t writes;         /**< writes to sockets */
  uint64_t connects;       /**< connections that became usable */
  uint64_t connect_errors; /**< attempts to connect that failed */
  uint64_t drops;          /**< connections that were lost or dropped */
  uint64_t undone;         /**< undos that are known to have run */
  uint64_t undo_failed;    /**< undos given up: what they would have removed is left to its ttl */
  size_t pending;          /**< now: calls that have not ended */
  size_t pending_bytes;    /**< now: their bytes */
  size_t undo_pending;     /**< now: undos under way */
  size_t objects;          /**< now: locks and the like that were made from it */
  size_t connections_up;   /**< now: connections that are usable */
} belay_client_stats_t;

BELAY_API void belay_client_stats(const belay_client_t *client, belay_client_stats_t *out);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_CLIENT_H */
