/* The port: the functions that the core needs from its environment. A host connects belay to one
 * event loop. A node connects one client to its deployment: one server, or several that Sentinels,
 * a list of addresses or a cluster combine.
 *
 *    program -> include/ -> src/lease ... -> src/core -> [ port.h ] <- adapters/{uv,redis}
 *
 * The adapters implement the port with libuv and hiredis; the simulator implements it with a
 * virtual clock. Everything runs on one thread. The core runs no completion callback of the user
 * inside these functions. Completions are tasks (core/loop/loop.h) that run at the end of an entry
 * from the loop. */
#ifndef BELAY_CORE_PORT_H
#define BELAY_CORE_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "belay/client.h"
#include "belay/features.h"
#include "belay/loop.h"

typedef struct belay__call belay__call_t;
typedef struct belay__reply belay__reply_t;
typedef struct belay__channel belay__channel_t;
typedef struct belay__flush belay__flush_t;

/* ---- host ---- */

/* The adapter wraps each callback of the loop in belay__enter() ... belay__leave()
 * (core/loop/loop.h). */
typedef struct belay__host_ops {
  /* Monotonic time in nanoseconds, never 0. The clock runs while the machine is suspended. */
  uint64_t (*now)(belay_t *belay);

  /* Wall-clock time in microseconds since 1970, never negative. It may step. */
  int64_t (*wall_us)(belay_t *belay);

  /* Enter belay at this time, or as soon as possible after it. Replaces the earlier wake-up
   * time. UINT64_MAX: never. A wake-up time alone does not keep the loop alive. */
  void (*wake_at)(belay_t *belay, uint64_t when);

  /* Enter belay in the next loop iteration, and keep the loop alive until then. */
  void (*wake_soon)(belay_t *belay);

  /* Run the flush before the loop sleeps, before everything else that waits for this moment. No
   * effect if already queued. To cancel it, remove flush->node from its list. */
  void (*before_sleep)(belay_t *belay, belay__flush_t *flush);

  /* true: keep the loop alive until the next call with false. */
  void (*keep_alive)(belay_t *belay, bool on);

  /* Fill the buffer with cryptographically secure random bytes. Returns 0 or BELAY_ESYSTEM. */
  int (*random)(belay_t *belay, void *buffer, size_t len);

  /* true if this process is a fork of the process that opened the host. */
  bool (*forked)(const belay_t *belay);

  /* true if the program closed a handle of belay in the loop; false after `close` below. The loop
   * may then never enter belay again, except after wake_soon(). */
  bool (*dead)(const belay_t *belay);

  /* Called once belay_close() was called and all clients are gone: release all resources, call
   * belay__host_closed(), then free the host. */
  void (*close)(belay_t *belay);
} belay__host_ops_t;

/* ---- node ---- */

/* Connection classes. Each class has its own connections, opened at first use. */
typedef enum belay__conn_class {
  BELAY__CLASS_LEASE,   /* acquire, renew, release; never behind a large command */
  BELAY__CLASS_DATA,    /* all other small commands */
  BELAY__CLASS_BULK,    /* large replies, sweeps */
  BELAY__CLASS_DURABLE, /* a write and its WAIT, which delays later commands */
  BELAY__LANES
} belay__conn_class_t;

/* Result of belay__call_reply(): tells the adapter what to do with the call. */
typedef enum belay__verdict {
  BELAY__VERDICT_OVER,   /* the adapter no longer owns the call */
  BELAY__VERDICT_RESEND, /* send the call again at once, on the same connection */
  /* The key belongs to another server: continue with belay__call_redirect() or
   * belay__call_stay() */
  BELAY__VERDICT_REDIRECT,
  /* as OVER; the adapter also drops the connection after the replies that are still due on it */
  BELAY__VERDICT_RECONNECT
} belay__verdict_t;

/* Features that some servers lack, or that the access rules of the server user may forbid. */
typedef enum belay__capability {
  BELAY__SET_NX_GET, /* SET with both NX and GET */
  BELAY__BITFIELD_RO,
  BELAY__SHARDED_CHANNELS, /* SSUBSCRIBE, SPUBLISH */
  BELAY__DELIFEQ,          /* compare-and-delete of Valkey */
  BELAY__DELEX             /* compare-and-delete of Redis */
} belay__capability_t;

#define BELAY__RUN_ID_MAX 40 /* bytes of a server's run id */
#define BELAY__DATA_ID_MAX 64
#define BELAY__PLACE_MAX 272 /* bytes of a server's address, terminating 0 included */

/* The server at the other end of a connection. */
typedef struct belay__server_info {
  uint32_t epoch; /* Number of the connection, counted per client from 1 */
  /* Latest time at which the server can have started, in nanoseconds of the host's clock.
   * Negative: before this machine booted */
  int64_t started_by;
  size_t run_id_len; /* Bytes of run_id; 0: the server does not report one */
  char run_id[BELAY__RUN_ID_MAX];
  /* Hash of the run id, for comparisons; 0: the server does not report a run id. Two servers with
   * equal hashes count as one: that only costs a vote */
  uint32_t mark;
  size_t data_id_len; /* Bytes of data_id */
  /* Identifies the data with which this server last became a primary. Each promotion of the server
   * changes it */
  char data_id[BELAY__DATA_ID_MAX];
} belay__server_info_t;

static inline bool belay__server_info_is(const belay__server_info_t *server, const char *run_id,
                                         size_t len) {
  return server->run_id_len == len && memcmp(server->run_id, run_id, len) == 0;
}

/* true if two connections lead to servers with the same run id. false if there is no connection
 * (NULL), or if a server reports no run id. */
static inline bool belay__server_info_same(const belay__server_info_t *a,
                                           const belay__server_info_t *b) {
  return a != NULL && b != NULL && a->run_id_len > 0 &&
         belay__server_info_is(a, b->run_id, b->run_id_len);
}

/* The node owns a call from submit until the first of these: belay__call_reply() returns OVER or
 * RECONNECT; belay__call_dropped() returns false; belay__call_stay(); belay__call_refused();
 * withdraw. While the node owns a call, it links the call in its queues by call->node. */
typedef struct belay__node_ops {
  /* Bytes of call->room, which belong to the node from submit until the call is over. The
   * content is undefined before the first submit. */
  size_t call_room;

  /* true if keys belong to slots (core/key/slot.h), which may be on several servers. Keys of
   * different slots do not share a call. */
  bool by_slots;

  /* Queue n calls, all or none.
   *
   * - Calls that are marked as following each other are contiguous on one connection.
   * - The other calls use the connection of the first one where their keys permit that.
   * - Calls of one connection class and route are sent in the order of submission. Calls of a
   *   slot that moves to another server meanwhile are an exception.
   * - The node calls belay__call_sent() when it hands a call to a connection.
   *
   * Returns 0, BELAY_EBUSY, BELAY_ECLOSING, a lasting error of the deployment (such as
   * BELAY_EAUTH), or the cause of an outage.
   *
   * A server is away for a call if the call's connection is up but silent. It is also away if the
   * connection is down, and attempts to connect fail or the server is silent. The node detects the
   * server's return without a call. If all n calls have fail_fast and a server that is away, submit
   * queues nothing and returns the cause. A queued call with fail_fast ends with
   * belay__call_refused() when its server goes away. Calls without fail_fast wait for the server
   * until their deadlines. */
  int (*submit)(belay_client_t *client, belay__call_t *const *calls, size_t n);

  /* Remove a queued call, which was not yet handed to a connection. Returns the error that explains
   * why the call had to wait, such as BELAY_EUNREACHABLE or BELAY_ERESOLVE. BELAY_EBUSY: its
   * connection is up, but the call was still queued. */
  int (*withdraw)(belay_client_t *client, belay__call_t *call);

  /* Called at the deadline of a call that was handed to a connection. Makes the cause the client's
   * last refusal (belay__client_refused()), with BELAY_EUNKNOWN. */
  void (*overdue)(belay_client_t *client, belay__call_t *call);

  /* Drop the connection of this call, if it is still up: a reply on it broke the protocol. */
  void (*distrust)(belay_client_t *client, belay__call_t *call);

  /* Concerns the connections that calls of this connection class and route used. Every
   * connection with a number up to the result is known to be closed on the server too. So the
   * server executes nothing more that was sent on these connections. */
  uint32_t (*dead_epoch)(const belay_client_t *client, belay__conn_class_t conn_class,
                         uint32_t route);

  /* The server that answers calls of this connection class and route now; NULL: no connection. */
  const belay__server_info_t *(*server)(const belay_client_t *client,
                                        belay__conn_class_t conn_class, uint32_t route);

  /* true if calls of this connection class and route await replies, and nothing arrived for
   * `limit` nanoseconds although the loop has polled. */
  bool (*silent)(belay_client_t *client, belay__conn_class_t conn_class, uint32_t route,
                 uint64_t limit);

  /* Enumerate the servers that hold the data: set *route to a route that leads to the i-th
   * server. Returns false if there is no i-th server. *version changes when the node learns that
   * data may have moved between servers. If no call uses that data, the node can learn it up to a
   * minute late. */
  bool (*shard)(const belay_client_t *client, size_t i, uint32_t *route, uint32_t *version);

  /* The number of connections that are up, for belay_client_stats(). */
  size_t (*connections_up)(const belay_client_t *client);

  /* true if all servers that the client is connected to have this feature; false without a
   * connection. */
  bool (*can)(belay_client_t *client, belay__capability_t what);

  /* listen: called for each new subscription to a channel (core/client/channel.h). A channel
   * that the node already has stays as it is; if the server had refused it, the node subscribes
   * again. unlisten: the channel has no subscription and its linger time is over, or it was
   * evicted.
   *
   * While there are channels, the node keeps one connection for them (in a cluster: one for each
   * server that has channels). The node reports with belay__channel_confirmed(),
   * belay__channel_message() and belay__channel_lost(), but never inside these two functions. It
   * reports each message once. */
  void (*listen)(belay_client_t *client, belay__channel_t *channel);
  void (*unlisten)(belay_client_t *client, belay__channel_t *channel);

#if BELAY_HAS_TOPOLOGY
  /* Enumerate the known addresses of the deployment's servers: write the i-th as "host:port" or
   * as a path to out. Returns false if there is no i-th address. */
  bool (*place)(const belay_client_t *client, size_t i, char out[BELAY__PLACE_MAX]);

  /* Create a client of the server at this address alone. The new client uses the user, password,
   * TLS settings, database, timeouts and reply limit of this client. Returns 0, BELAY_ENOMEM,
   * BELAY_ERESOLVE (not an address), or BELAY_ESINGLE (the deployment is one server, at another
   * address). */
  int (*visit)(belay_client_t *client, const char *place, belay_client_t **out);
#endif

  /* Drop all connections, end all calls, then call belay__client_node_closed(). */
  void (*close)(belay_client_t *client);

  /* Free the memory; the last call. */
  void (*free)(belay_client_t *client);
} belay__node_ops_t;

#endif /* BELAY_CORE_PORT_H */
