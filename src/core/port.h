/* The port: what the core asks of the world. A host is a loop's side, a node one logical deployment.
 *
 *   your server -> include/ -> src/lease ... -> src/core -> [ this page ] <- adapters/uv, adapters/redis
 *
 * adapters/ keep it on libuv and hiredis; a simulation keeps it on a virtual clock. Everything runs on one
 * thread. The core never calls a user's function from inside these calls: completions are tasks
 * (core/loop/loop.h) that run when the world has left belay or is about to. */
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

/* ---- host ---------------------------------------------------------------------------------------------- */

/* Whatever the loop calls in the adapter is wrapped in belay__enter() ... belay__leave() (core/loop/loop.h). */
typedef struct belay__host_ops {
  /* Nanoseconds, monotonic, running while the machine is suspended. Never 0. */
  uint64_t (*now)(belay_t *belay);

  /* What the machine takes for the time of day: microseconds since 1970, which may step. Never negative. */
  int64_t (*wall_us)(belay_t *belay);

  /* Enter belay at that time or as soon after it as can be; replaces the time before. UINT64_MAX: never.
   * By itself this does not keep the loop alive. */
  void (*wake_at)(belay_t *belay, uint64_t when);

  /* Enter belay in the loop's next turn, and keep the loop alive until then. */
  void (*wake_soon)(belay_t *belay);

  /* Whether the loop is to be kept alive. */
  void (*keep_alive)(belay_t *belay, bool on);

  /* Random bytes fit for a token; 0 or BELAY_ESYSTEM. */
  int (*random)(belay_t *belay, void *buffer, size_t len);

  /* Whether this process is a fork of the one that opened the host. */
  bool (*forked)(const belay_t *belay);

  /* Whether the loop's handles were closed by somebody else, so that nothing will ever call again. */
  bool (*dead)(const belay_t *belay);

  /* All clients are gone: give back everything, call belay__gone(), then free the host. */
  void (*close)(belay_t *belay);
} belay__host_ops_t;

/* ---- node ---------------------------------------------------------------------------------------------- */

/* Kinds of traffic. Each has its own connections, opened when first used. */
typedef enum belay__conn_class {
  BELAY__CLASS_LEASE,   /* acquire, renew, release: never behind anything big */
  BELAY__CLASS_DATA,    /* everything else that is small */
  BELAY__CLASS_BULK,    /* large replies, sweeps */
  BELAY__CLASS_DURABLE, /* a write followed by WAIT, which holds up what comes behind it */
  BELAY__LANES
} belay__conn_class_t;

/* What the adapter does next with a call whose reply it handed over (belay__call_reply()). */
typedef enum belay__verdict {
  BELAY__VERDICT_OVER,   /* the call is not the adapter's any more */
  BELAY__VERDICT_RESEND, /* send it again, now, on the same connection */
  BELAY__VERDICT_REDIRECT, /* its key is with another server: belay__call_redirect() or belay__call_stay() */
  BELAY__VERDICT_RECONNECT /* as OVER, and the connection is of no use: drop it */
} belay__verdict_t;

/* What not every server can do, or lets us do. */
typedef enum belay__capability {
  BELAY__SET_NX_GET, /* SET with NX and GET */
  BELAY__BITFIELD_RO,
  BELAY__SHARDED_CHANNELS, /* SSUBSCRIBE, SPUBLISH */
  BELAY__DELIFEQ,          /* Valkey's compare and delete */
  BELAY__DELEX             /* Redis's */
} belay__capability_t;

#define BELAY__RUN_ID_MAX 40 /* bytes of a server's run id */
#define BELAY__DATA_ID_MAX 64
#define BELAY__PLACE_MAX 272 /* bytes of where a server is, a 0 included */

/* The server at the other end of a connection. */
typedef struct belay__server_info {
  uint32_t epoch;     /* the connection's number */
  int64_t started_by; /* by then it was running; negative: before this machine was */
  size_t run_id_len;  /* 0: it does not tell */
  char run_id[BELAY__RUN_ID_MAX];
  uint64_t
      mark; /* stands for the run id where that would be long to compare; 0: it does not tell */
  size_t
      data_id_len; /* when it last became a primary, and after whom: another one after each time */
  char data_id[BELAY__DATA_ID_MAX];
} belay__server_info_t;

static inline bool belay__server_info_is(const belay__server_info_t *server, const char *run_id,
                                         size_t len) {
  return server->run_id_len == len && memcmp(server->run_id, run_id, len) == 0;
}

/* True if two connections (NULL: there is none) are known to lead to the same server. */
static inline bool belay__server_info_same(const belay__server_info_t *a,
                                           const belay__server_info_t *b) {
  return a != NULL && b != NULL && a->run_id_len > 0 &&
         belay__server_info_is(a, b->run_id, b->run_id_len);
}

/* Between submit and belay__call_reply() or belay__call_dropped() a call is the node's: it stands in one
 * of its queues by call->node. */
typedef struct belay__node_ops {
  /* Bytes that the node keeps in each call (call->room): its own, from submit until the call is over. Undefined before
   * the first submit. */
  size_t call_room;

  /* Keys belong to slots (core/key/slot.h), which may lie on several servers: those of two do not share a call. */
  bool by_slots;

  /* Queues n calls, all or none. Those that follow each other are contiguous on one connection, and the others go
   * where the first goes as far as their keys let them; calls of one connection class and route are sent in the order of their
   * submission, but for those whose slot moves to another server meanwhile. Returns 0, BELAY_EBUSY or a lasting error of the deployment
   * (BELAY_EAUTH). The node tells belay__call_sent() when a call is handed to a connection.
   *
   * A server is away while no connection to it can be made, or none that it has is answered. The node detects this for each
   * server, and detects its return by itself: no call is needed to find out. Calls with fail_fast whose servers are all
   * away are not queued: the error that says why is returned. A queued call with fail_fast ends with
   * belay__call_refused() when its server goes away. Other calls wait for the server until their deadlines. */
  int (*submit)(belay_client_t *client, belay__call_t *const *calls, size_t n);

  /* Takes a call that was not handed to a connection out of its queue. Returns the error that explains
   * why it was not: BELAY_EUNREACHABLE, BELAY_ERESOLVE, BELAY_EAUTH, BELAY_EBUSY. */
  int (*withdraw)(belay_client_t *client, belay__call_t *call);

  /* The deadline of a call that was handed to a connection is over. Makes the reason the client's last refusal
   * (belay__client_refused()) with BELAY_EUNKNOWN. */
  void (*overdue)(belay_client_t *client, belay__call_t *call);

  /* The call's connection broke the protocol: drop it. */
  void (*distrust)(belay_client_t *client, belay__call_t *call);

  /* Of the connections that calls of this connection class and route travelled on: all numbered up to the result
   * are known to be dead on the server's side too, so that nothing sent on them can still be executed. */
  uint32_t (*dead_epoch)(const belay_client_t *client, belay__conn_class_t conn_class,
                         uint32_t route);

  /* Who answers calls of this connection class and route now; NULL while they have no connection. */
  const belay__server_info_t *(*server)(const belay_client_t *client,
                                        belay__conn_class_t conn_class, uint32_t route);

  /* Whether calls of this connection class and route are owed answers, and nothing has been heard for so many
   * nanoseconds, in which the loop has looked. */
  bool (*silent)(belay_client_t *client, belay__conn_class_t conn_class, uint32_t route,
                 uint64_t limit);

  /* Goes through the servers that have the data: an route that leads to the i-th of them, false if there are not
   * so many. *version is another one whenever it is known here that data may have moved from one to
   * another since; which may be a minute after it has, if nobody asks for that data. */
  bool (*shard)(const belay_client_t *client, size_t i, uint32_t *route, uint32_t *version);

  /* What belay_client_stats() does not count itself: connections_up. */
  size_t (*connections_up)(const belay_client_t *client);

  /* Whether all servers that the client is connected to can do that; false while there is none. */
  bool (*can)(belay_client_t *client, belay__capability_t what);

  /* A channel is wanted, by one more who listens; or is not any more (core/client/channel.h). One that is wanted already
   * stays as it is, and if the server had refused it, it is asked for again. The node keeps one connection for all
   * of them while there are any, and tells belay__channel_confirmed(), belay__channel_message()
   * and belay__channel_lost(), none of them inside these two. Each message comes once. */
  void (*listen)(belay_client_t *client, belay__channel_t *channel);
  void (*unlisten)(belay_client_t *client, belay__channel_t *channel);

#if BELAY_HAS_TOPOLOGY
  /* Goes through the places where servers of the deployment are known to be by now: writes the i-th in words, "host:port"
   * or a path, at out; false if there are not so many. */
  bool (*place)(const belay_client_t *client, size_t i, char out[BELAY__PLACE_MAX]);

  /* Makes a client of the server in that place alone, with this one's user, password, TLS, database, timeouts and largest reply. Returns
   * 0, BELAY_ENOMEM, BELAY_ERESOLVE: that is no place, or BELAY_ESINGLE: the
   * deployment is one server, and that is another. */
  int (*visit)(belay_client_t *client, const char *place, belay_client_t **out);
#endif

  /* Drop every connection, end every call, then call belay__client_gone(). */
  void (*close)(belay_client_t *client);

  /* Give the memory back; called last. */
  void (*free)(belay_client_t *client);
} belay__node_ops_t;

#endif /* BELAY_CORE_PORT_H */
