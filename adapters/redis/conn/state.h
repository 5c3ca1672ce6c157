/* The state of one server and of one connection to it. The files of this folder work on it:
 *
 *    server.c --> subscriber.c --> connection.c --> handshake.c, reconnect_delay.c --> outage.c
 *                                       |                                                  |
 *                                       +--> call_queue.c --> batch.c --> dispatch.c       |
 *                                                                             |            |
 *                                                                             v            |
 *                                                                        liveness.c <------+
 *
 * Each file calls files to its right. A file reaches files to its left through
 * belay__connection_events_t and connection->handshake_done. */
#ifndef BELAY_REDIS_CONN_STATE_H
#define BELAY_REDIS_CONN_STATE_H

#include "core/call/script.h"
#include "redis/conn/settings.h"
#include "redis/net/dial.h"
#include "redis/net/transport.h"

/* The adapter's data in each call (call->room). */
typedef struct belay__dispatch {
  /* The connection on which the call is queued or was sent; NULL: none yet. */
  belay__connection_t *at;
  /* Position of the call's first byte in the connection's stream of bytes. */
  uint64_t offset;
} belay__dispatch_t;

static inline belay__dispatch_t *belay__dispatch(belay__call_t *call) {
  return (belay__dispatch_t *)call->room;
}

/* Removes the first call of a list. NULL: the list is empty. */
static inline belay__call_t *belay__pop_call(belay__list_t *calls) {
  belay__list_t *node = belay__list_pop(calls);
  return node == NULL ? NULL : BELAY__CONTAINER(node, belay__call_t, node);
}

/* Events of a connection, for its server. */
typedef struct belay__connection_events {
  /* The connection is usable. */
  void (*up)(belay__connection_t *connection);
  /* The connection was lost, or an attempt failed. Called before the next attempt. */
  void (*lost)(belay__connection_t *connection, int error);
  /* The server was away and is back: no connection needs to wait before it connects. */
  void (*retry_now)(belay__server_t *server);
} belay__connection_events_t;

struct belay__server {
  belay__list_t node; /* entry in settings->servers */
  belay__settings_t *settings;
  const belay__connection_events_t *ops;
  belay__target_t target;
  belay__role_t role;
  bool retired;  /* Set by the deployment: the server gets no more calls. */
  bool readonly; /* True for a replica of a cluster, which serves reads only after READONLY. */
  /* True if many clients learn of this server at once: even the first attempt takes a slot of
   * the connect limiter. */
  bool queue_first_dial;
  size_t handles;            /* number of open libuv handles */
  belay__timer_t role_timer; /* time of the next ROLE */
  void *owner;               /* for the deployment */
  belay__subscriber_t *subscriber;

  /* Outage (redis/conn/outage.c). Times are ns of the loop's clock. */
  int failed; /* Error of the last attempt to connect; 0: it succeeded, or there was none. */
  uint64_t last_read; /* Time of the last read on a connection that carries calls. */
  /* Start of the silence in which a sent call timed out; 0: no call has timed out. */
  uint64_t silent_since;
  /* The connection that tries most often during an outage; NULL: none. */
  belay__connection_t *probe;
  /* Until this time connections try to connect without a queued call. */
  uint64_t probe_until;
  belay__timer_t refuse_timer; /* Ends queued calls with fail_fast. */
  /* Address and cause of the outage; valid while failed is set. */
  char outage_cause[BELAY__WORDS_MAX];

  size_t count; /* number of all connections that carry calls */
  belay__connection_t *connections;
};

typedef enum belay__connection_state {
  BELAY__CONNECTION_DOWN,      /* not connected, and not needed */
  BELAY__CONNECTION_RESOLVING, /* the deployment looks for the server's address */
  BELAY__CONNECTION_DIALING,   /* name lookup, connect */
  BELAY__CONNECTION_HANDSHAKE, /* connected; replies of the handshake are due */
  BELAY__CONNECTION_UP,        /* calls are sent */
  BELAY__CONNECTION_DRAINING,  /* the server is the wrong one now; due replies are still received */
  BELAY__CONNECTION_CHECKING,  /* was idle for long; PING is sent, and calls wait for PONG */
  BELAY__CONNECTION_BACKOFF,   /* waits before the next attempt; calls wait */
  /* waits before the next attempt after a lasting error; calls are refused */
  BELAY__CONNECTION_REFUSED,
  BELAY__CONNECTION_CLOSED
} belay__connection_state_t;

/* The server at the other end, as far as the next connection needs it to kill this one, and its
 * capabilities. */
typedef struct belay__peer {
  belay__server_info_t info; /* epoch 0: no connection */
  int64_t id;                /* CLIENT ID; 0: unknown */
  unsigned capabilities;     /* one bit for each belay__capability_t */
} belay__peer_t;

#define BELAY__CAUSE_MAX ((size_t)160) /* bytes of a cause's text, with the terminating 0 */

/* Calls that wait to be sent as one command (batch.h). */
typedef struct belay__call_batch {
  belay__list_t calls; /* in order of their arrival */
  size_t len;          /* number of calls */
  size_t bytes;        /* Bytes of keys and arguments, those of withdrawn calls included. */
  size_t keys, args;   /* number of keys and of arguments of each call */
  uint64_t affinities; /* Bit set of hashed affinities; several affinities may share a bit. */
  /* True if this connection sends no batches any more, because the server refused one. */
  bool off;
  belay__flush_t flush;
} belay__call_batch_t;

struct belay__connection {
  belay__server_t *server;
  bool is_subscriber; /* True if the connection receives messages; false if it carries calls. */
  size_t channels;    /* number of channels that need the connection; 0 without is_subscriber */
  belay__connection_state_t state;
  bool connect_requested; /* connect even if no call waits */
  bool extra;             /* true if it is not the first of its class: it is closed when idle */
  belay__scripts_t sent_scripts; /* scripts whose text was sent on the present connection */
  bool sharded;                  /* true if the server has sharded channels */
  belay__target_t target;        /* of the last attempt to connect */
  belay__dial_t dial;
  belay__transport_t transport; /* open while HANDSHAKE, UP, DRAINING, CHECKING */
  belay__timer_t timer;         /* its purpose depends on the state */
  belay__connect_slot_t turn;   /* BACKOFF, REFUSED: slot of the connect limiter */
  belay__list_t urgent;         /* queued calls that go first */
  belay__list_t queue;          /* the other queued calls */
  belay__call_batch_t batch;    /* queued calls that will be sent as one command */
  belay__list_t dropped;        /* calls that the transport returned because it ended */
  belay__list_t redirected;     /* calls that go to another server after their last reply */
  belay__redirect_t redirect;   /* the server for `redirected` */
  size_t queue_len;             /* number of calls in urgent, queue and batch */
  size_t in_flight;             /* number of calls whose reply is due */
  uint64_t attempt_number;      /* number of the last attempt to connect */
  unsigned failures;            /* consecutive attempts that failed or brought no reply */
  uint64_t trouble_since;       /* with failures: time of the first one */
  uint64_t attempt_since;       /* start of the present attempt to connect; 0: none */
  /* The first of consecutive refusals that may pass; 0: the last answer was another. */
  uint64_t refusing_since;
  /* transport.last_activity of the silence that the stall check has noticed */
  uint64_t stall_noticed;
  /* transport.last_activity of the silence that belay__connection_is_silent() has noticed */
  uint64_t silence_noticed;
  uint64_t silence_turn; /* The turn of the loop in which silence_noticed was set. */
  int error;             /* Error of the last attempt or connection; 0 while up. */
  /* Text of the cause of the last attempt or connection that ended; "" if there is none. */
  char cause[BELAY__CAUSE_MAX];
  bool cause_set; /* True if the cause belongs to the present attempt or connection. */
  /* Called at the end of the handshake: 0, or the error that must end the connection. */
  void (*handshake_done)(belay__connection_t *connection, int error);
  belay__peer_t peer; /* of the present connection */
  /* Of the connection before, while the server may still execute calls that were sent on it. */
  belay__peer_t lost_peer;
  bool several_lost;   /* True if even older connections may still be alive. */
  uint32_t dead_epoch; /* Connections with numbers up to this one are known to be dead. */
};

static inline bool belay__connection_is_up(const belay__connection_t *connection) {
  return connection->state == BELAY__CONNECTION_UP ||
         connection->state == BELAY__CONNECTION_CHECKING ||
         connection->state == BELAY__CONNECTION_DRAINING;
}

static inline belay_t *belay__server_loop(const belay__server_t *server) {
  return &server->settings->host->base;
}

static inline belay_t *belay__connection_loop(const belay__connection_t *connection) {
  return belay__server_loop(connection->server);
}

/* Returns the connection of a hiredis context, in a callback of hiredis. */
static inline belay__connection_t *belay__connection_of_context(const redisAsyncContext *ac) {
  return BELAY__CONTAINER(ac->data, belay__connection_t, transport);
}

#endif /* BELAY_REDIS_CONN_STATE_H */
