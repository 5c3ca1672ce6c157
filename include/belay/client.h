/* Clients: the connections of a program to one Redis or Valkey deployment. */
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

/** A client: one logical deployment, its connections, its namespace, and the handles that were made
 * from it. All locks, limiters, caches and other handles are made from a client.
 *
 * One client per deployment is enough for a program. Use several clients for several deployments,
 * namespaces, users, or for different limits and timeouts. A client belongs to the thread of its
 * loop.
 *
 * @code
 * int open_client(belay_t *belay, belay_client_t **out) {
 *   static const char *const parts[] = {"shop", "eu"}; // keys begin with shop::eu::
 *   belay_client_options_t options;
 *   belay_client_options_init(&options);
 *   options.namespace_parts = parts;
 *   options.namespace_count = 2;
 *   options.timeout_ms = 500;
 *   return belay_connect(belay, "redis://redis.example.com:6379", &options, out);
 * }
 * @endcode */
typedef struct belay_client belay_client_t;

/** Treatment of a new call when a connection already has max_pending calls. */
typedef enum belay_on_full {
  BELAY_FULL_REFUSE, /**< the call fails at once with BELAY_EBUSY */
  BELAY_FULL_WAIT    /**< the call waits in a queue; BELAY_EBUSY at its deadline, not sent */
} belay_on_full_t;

/** Servers that answer reads which may be slightly old. */
typedef enum belay_read_from {
  BELAY_READ_PRIMARY, /**< always the primary */
  BELAY_READ_REPLICA, /**< a replica that is connected to its primary; otherwise the primary */
  BELAY_READ_ANY      /**< the primary and such replicas in turn */
} belay_read_from_t;

/** Steps of a call that the trace hook reports. */
typedef enum belay_trace_event {
  BELAY_TRACE_STARTED, /**< belay created the call */
  BELAY_TRACE_SENT,    /**< belay gave the call to a connection; repeated for each retry */
  BELAY_TRACE_DONE,    /**< the call ended for its caller; outcome and error are set */
  BELAY_TRACE_SETTLED  /**< after DONE, the reply of a call arrived or its connection ended */
} belay_trace_event_t;

/** Outcome of a call. */
typedef enum belay_outcome {
  BELAY_OUTCOME_REPLY,    /**< the server answered */
  BELAY_OUTCOME_REFUSED,  /**< the server refused the call before execution */
  BELAY_OUTCOME_NOT_SENT, /**< no byte of the call left this process */
  BELAY_OUTCOME_UNKNOWN   /**< the call was sent, and its effect is not known */
} belay_outcome_t;

/** One step of one call. Valid until the hook returns. */
typedef struct belay_trace {
  belay_trace_event_t event; /**< step that the call has reached */
  uint64_t call;             /**< number of the call; each client counts from 1 */
  const char *command;       /**< name of the command or of the script, such as "SET" */
  size_t bytes;              /**< size of the call on the wire, if it is not part of a batch */
  uint64_t elapsed_ns;       /**< time since STARTED, in nanoseconds */
  belay_outcome_t outcome;   /**< outcome; valid with DONE and SETTLED */
  int error;                 /**< 0 or an error; valid with DONE and SETTLED */
} belay_trace_t;

/** Trace hook. Runs at each step of each call, in order, on the loop or inside the function that
 * made the call. It must not call belay. The trace never contains keys, tokens or values.
 *
 * DONE comes exactly once per call. SETTLED comes at most once, after a DONE whose outcome was
 * UNKNOWN because the call was sent and then reached its deadline or was canceled. */
typedef void (*belay_trace_fn)(void *ctx, const belay_trace_t *trace);

/** User and password for AUTH. */
typedef struct belay_credentials {
  const char *username; /**< terminated; NULL or "": the default user of the server */
  const char *password; /**< terminated; NULL: "", and no AUTH for the default user */
} belay_credentials_t;

/** Supplies user and password for a new connection. Runs on the loop, once per connection. With TLS
 * it runs after the server has proved its identity. So passwords can change at any time.
 *
 * It writes to *out, where both pointers are NULL, and returns 0. Any other value ends the
 * connection with BELAY_EAUTH. belay reads the strings, of at most 65,536 bytes each, right after
 * it returns, and keeps no copy. It must not block the loop or call belay. */
typedef int (*belay_credentials_fn)(void *ctx, belay_credentials_t *out);

/* KEYS. belay stores its data under keys of these formats:
 *
 *   NAMESPACE::FAMILY::{NAME}
 *       one object: lock, rwlock, semaphore, election, latch, barrier, topic, active, bloom, dedup,
 *       idgen, presence
 *   NAMESPACE::FAMILY::NAME::{KEY}
 *       a handle with many keys: bucket, cache, counter, idempotency, limit, permission, ranking,
 *       session; without a name NAMESPACE::FAMILY::{KEY}
 *
 * NAMESPACE is namespace_parts, joined by "::". Further parts of an object have the same key, "::"
 * and a word. Example: the lock "orders/42" in the default namespace is the string
 * belay::lock::{orders/42}, whose value is the holder's token; its fencing number is
 * belay::lock::{orders/42}::fence, and belay::lock::{orders/42}::contended exists while another
 * client waits for it. The braces keep all parts of one object in one cluster slot.
 *
 * Escapes: in each part of the namespace, name and key, some bytes are written as % and two
 * upper-case hexadecimal digits. These are '%', '{', '}', bytes below 0x20, 0x7f, and ':' at an end
 * of the part or before another ':'. So "a::{b}" becomes a%3A:%7Bb%7D. */

/** Options; belay_client_options_init() sets the defaults. A string that is not NULL overrides that
 * part of the URL. Everything is copied, except tls. All times are in milliseconds. */
typedef struct belay_client_options {
  /** User for AUTH, at most 256 bytes. Default NULL: that of the URL. "": the default user of the
   * server. */
  const char *username;
  const char *password; /**< password for AUTH, at most 512 bytes; default NULL: that of the URL */
  int db; /**< number of the database: 0 to 65535; default -1: that of the URL, or 0 */
  /** Function that supplies user and password for each connection, instead of the URL and the
   * options. Default NULL. */
  belay_credentials_fn credentials;
  void *credentials_ctx; /**< first argument of credentials; default NULL */
  /** TLS configuration for a URL that begins with rediss. The client keeps a reference until it is
   * closed. With another URL: BELAY_EINVAL. Default NULL: a rediss URL uses the certificate
   * authorities of the system. */
  belay_tls_t *tls;

  /** User for AUTH on Sentinels, at most 512 bytes. For redis+sentinel:// only. Default NULL: no
   * AUTH on Sentinels. username and password are those of the servers. */
  const char *sentinel_username;
  /** Password for AUTH on Sentinels, at most 512 bytes. For redis+sentinel:// only. Default
   * NULL. */
  const char *sentinel_password;

  /** Servers that answer the reads whose headers allow a replica. Default BELAY_READ_PRIMARY. Not
   * for redis:// and unix://, which have no known replicas.
   *
   *   - A replica returns an older state. A read may miss a write that this program just made. A
   *     later read may return an older state than an earlier one.
   *   - A replica is used while it says that it is connected to its primary. The client asks it
   *     (ROLE) every five seconds. A replica whose connection broke silently says so only after its
   *     repl-timeout, by default 60 s.
   *   - If the chosen replica cannot answer, the primary answers.
   *   - Operations that decide about a holder or an admission never use a replica. */
  belay_read_from_t read_from;

  /** Parts of the namespace, from wide to narrow: 1 to 8 strings of 1 to 128 bytes. Every key of
   * this client begins with them. Default {"belay"}. */
  const char *const *namespace_parts;
  size_t namespace_count; /**< number of namespace_parts, 1 to 8; default 1 */

  /** Name of the connections on the server (CLIENT SETNAME): 1 to 64 printable bytes without
   * spaces. Default "belay". */
  const char *client_name;
  /** Owner label in every token of this client, 1 to 64 printable bytes without spaces. Default
   * NULL: "host:pid". */
  const char *owner;

  /** Number of connections per server for leases, and the same number for other small commands: 1
   * to 64; default 1. Calls for one name always use the same connection. */
  unsigned connections;
  /** Time to resolve the name, connect and complete the handshake, in milliseconds: 1 to 600,000;
   * default 2000. */
  int64_t connect_timeout_ms;
  /** Time of an operation if neither its request nor its handle sets one, in milliseconds: 1 to
   * 600,000; default 2000. See TIME LIMITS in belay/request.h.
   *
   * If the loop was blocked for longer than this, its calls time out, even if their replies are
   * already in the socket: such replies may be out of date. */
  int64_t timeout_ms;
  /** Time without any byte after which a connection that owes a reply is dropped, in milliseconds:
   * 10 to 600,000; default 5000. For a replica it is at most 1000. */
  int64_t stall_timeout_ms;
  /** Time without use after which a connection is idle, in milliseconds: 10 to 86,400,000, or
   * BELAY_FOREVER; default 30,000.
   *
   * The first connection of its kind stays open when idle, and is checked with a PING before its
   * next use. If the PING is not answered within a quarter of connect_timeout_ms, a new connection
   * replaces it. Other idle connections are closed. */
  int64_t idle_timeout_ms;
  /** Longest delay before the second attempt to connect, in milliseconds: 1 to 60,000; default
   * 20. See reconnect_max_ms for exceptions. */
  int64_t reconnect_min_ms;
  /** Longest delay between two attempts to connect, in milliseconds: reconnect_min_ms to 600,000;
   * default 2000. Each delay is random, from 0 to half of the time for which the server has been
   * away. That upper bound is at least reconnect_min_ms and at most this. Exceptions:
   *
   *   - After BELAY_EAUTH, BELAY_ETLS, BELAY_EPERM or BELAY_EREFUSED, each delay is from half of
   *     this to this.
   *   - The same holds for all but one of the connections to a server that is away.
   *   - The delays of a connection for subscriptions grow to 5 minutes after BELAY_EREFUSED. */
  int64_t reconnect_max_ms;
  /** Longest time for which a close continues to release leases, in milliseconds: 0 to 600,000;
   * default 1000. */
  int64_t close_timeout_ms;
  /** Value of TCP_USER_TIMEOUT, where the platform has it, in milliseconds: 0 to 86,400,000;
   * default 10,000. 0: the default of the system. */
  int64_t tcp_user_timeout_ms;
  /** Idle time before TCP keepalive probes, in milliseconds: 0 to 86,400,000; default 15,000. It is
   * rounded up to seconds. 0: no probes. */
  int64_t keepalive_ms;

  /** Largest number of pending calls per connection: at least 1; default 65,536. on_full says what
   * happens to further calls. */
  size_t max_pending;
  /** Largest total size of the pending calls of the client, in bytes: at least 65,536; default
   * 67,108,864 (64 MiB). Further calls fail with BELAY_EBUSY, whatever on_full is. */
  size_t max_bytes;
  /** Largest size of one reply, in bytes: at least 65,536; default 16,777,216 (16 MiB). A larger
   * reply drops the connection. Messages of a topic may be larger (belay/topic.h). */
  size_t max_reply;
  belay_on_full_t on_full; /**< treatment of calls beyond max_pending; default BELAY_FULL_REFUSE */

  belay_trace_fn trace; /**< trace hook; default NULL */
  void *trace_ctx;      /**< first argument of trace; default NULL */
} belay_client_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_client_options_init(belay_client_options_t *options);

/** Make a client for a deployment. It sends nothing: connections are opened at their first use, and
 * reopened when needed. On error *out is NULL, and belay_detail() names the part of the URL or the
 * option.
 *
 * URLs:
 *
 *   redis://[user[:password]@]host[:port][/db]
 *       one server
 *   unix://[user[:password]@]/path[?db=n]
 *       one server, by its Unix socket
 *   redis+replicas://[user[:password]@]host[:port],host[:port]...[/db]
 *       a primary and its replicas; belay asks each server for its role (ROLE)
 *   redis+sentinel://[user[:password]@]host[:port],host[:port].../master[/db]
 *       the hosts are Sentinels (default port 26379); user and password are those of the servers
 *   redis+cluster://[user[:password]@]host[:port],host[:port]...[/db]
 *       the hosts are some nodes of a cluster; belay finds the others
 *
 * With "rediss" instead of "redis" the connections use TLS (belay/tls.h). A URL has at most
 * 2048 bytes and 16 hosts, a user at most 256 bytes, a password at most 512 bytes. User, password
 * and path may be percent-encoded. IPv6 addresses stand in brackets. Most clusters have database 0
 * only.
 *
 * A server is away while no connection to it can be made, or while a call on it has timed out and
 * no byte has arrived since. The client detects for each server that it is away, and that it is
 * back, without calls of the program. While a server is away:
 *
 *   - Operations with a policy for it end at once: away in belay_limiter_options_t and in
 *     belay_cache_options_t.
 *   - Other operations wait for the server, until their timeouts. But after BELAY_EAUTH,
 *     BELAY_ETLS, BELAY_EPERM or BELAY_EREFUSED of their connection, waiting and new operations
 *     end at once with that error.
 *   - belay_detail() names server and cause: "127.0.0.1:6379: connection refused".
 *
 * An operation that finds no server was not sent. It ends with BELAY_EUNREACHABLE, or with a more
 * precise error: BELAY_ERESOLVE, BELAY_ENOSENTINEL, BELAY_ENOMASTER, BELAY_ESPLIT, BELAY_EREADONLY,
 * BELAY_ECLUSTERDOWN, BELAY_ELOADING, BELAY_EMAXCLIENTS, BELAY_ETLS, BELAY_EAUTH, BELAY_EPERM or
 * BELAY_EREFUSED.
 *
 * adapters/redis/README.md has the guarantees of each deployment.
 *
 * Returns 0, BELAY_EINVAL, BELAY_EURL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_connect(belay_t *belay, const char *url, const belay_client_options_t *options,
                            belay_client_t **out);

/** Reports the end of a ping: status is 0 or the cause of the failure. */
typedef void (*belay_client_cb)(belay_client_t *client, int status);

/** Send a PING to the server: the primary, or one node of a cluster. It uses a connection that
 * locks use too, and opens it if needed. timeout_ms is 1 to 600,000; BELAY_DEFAULT for the
 * timeout_ms of the client. A client has at most one pending ping.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (a ping is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_client_ping(belay_client_t *client, int64_t timeout_ms, belay_client_cb cb);

/** Runs once when the client is gone; see CLOSING in belay/loop.h. */
typedef void (*belay_client_close_cb)(belay_client_t *client, void *data);

/** Close the client: its handles, then its connections. Then cb runs; NULL is allowed. Pending
 * operations end with BELAY_ECANCELED, and held leases are released. It takes at most
 * close_timeout_ms, plus the rest of a name lookup, which cannot be canceled.
 *
 * A handle of this client can be gone before cb runs. After this call use a handle only inside its
 * own callbacks.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_client_close(belay_client_t *client, belay_client_close_cb cb);

/** Set the pointer that belay_client_data() returns. */
BELAY_API void belay_client_set_data(belay_client_t *client, void *data);
/** Return the last pointer given to belay_client_set_data(); NULL if there is none. */
BELAY_API void *belay_client_data(const belay_client_t *client);

/** Return the belay_t of the client. */
BELAY_API belay_t *belay_client_belay(const belay_client_t *client);

/** Statistics of one client, since it was made. The fields from pending on are present values. */
typedef struct belay_client_stats {
  uint64_t calls;          /**< number of calls that were started */
  uint64_t replies;        /**< number of calls with outcome REPLY */
  uint64_t refused;        /**< number of calls with outcome REFUSED */
  uint64_t not_sent;       /**< number of calls with outcome NOT_SENT */
  uint64_t unknown;        /**< number of calls with outcome UNKNOWN */
  uint64_t settled_late;   /**< number of replies after the deadline or cancel of their call */
  uint64_t commands;       /**< number of commands sent, with retries, without handshakes */
  uint64_t batched;        /**< number of commands that were sent as part of a batch */
  uint64_t grouped;        /**< number of requests that shared their command with other requests */
  uint64_t bytes_out;      /**< number of bytes written */
  uint64_t bytes_in;       /**< number of bytes read */
  uint64_t writes;         /**< number of writes to sockets */
  uint64_t connects;       /**< number of connections that became usable */
  uint64_t connect_errors; /**< number of failed attempts to connect */
  uint64_t drops;          /**< number of connections that were lost or dropped */
  uint64_t undone;         /**< number of undos that were confirmed */
  uint64_t undo_failed;    /**< number of undos given up; their keys end with their ttl */
  size_t pending;          /**< present number of calls that have not ended */
  size_t pending_bytes;    /**< present size of the calls that have not ended, in bytes */
  size_t undo_pending;     /**< present number of undos that have not ended */
  size_t objects;          /**< present number of locks and other handles of the client */
  size_t connections_up;   /**< present number of usable connections */
} belay_client_stats_t;

/** Read the statistics of a client. All are 0 if client is NULL. */
BELAY_API void belay_client_stats(const belay_client_t *client, belay_client_stats_t *out);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_CLIENT_H */
