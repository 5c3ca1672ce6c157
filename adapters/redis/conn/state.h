/* The state of the connections to one server (a server), and of one of them (a connection). The files of this folder work on it:
 *
 *   server.c --> subscriber.c --> connection.c --> handshake.c, loss.c --> outage.c --> queue.c --> batch.c --> dispatch.c
 *                                                                                                          --> liveness.c
 *
 * Each file calls those to its right. A file tells those to its left by belay__connection_events_t and connection->shaken. */
#ifndef BELAY_REDIS_CONN_STATE_H
#define BELAY_REDIS_CONN_STATE_H

#include "core/call/script.h"
#include "redis/conn/settings.h"
#include "redis/net/dial.h"
#include "redis/net/transport.h"

/* What the adapter keeps in each call (call->room). */
typedef struct belay__dispatch {
  belay__connection_t *at; /* the connection that it is queued or was sent on; NULL: none yet */
  uint64_t offset;         /* position of its first byte in the stream of the connection */
  bool asking; /* it goes to the server that its slot is moving to: ASKING precedes it */
} belay__dispatch_t;

static inline belay__dispatch_t *belay__dispatch(belay__call_t *call) {
  return (belay__dispatch_t *)call->room;
}

/* Events of a connection, for its server. */
typedef struct belay__connection_events {
  /* A connection is up. */
  void (*up)(belay__connection_t *connection);
  /* A connection was lost, or an attempt to connect failed. Called before the next attempt. */
  void (*lost)(belay__connection_t *connection, int error);
  /* The server was away and is back: no connection needs to wait any longer before it connects. */
  void (*retry_now)(belay__server_t *server);
} belay__connection_events_t;

struct belay__server {
  belay__list_t node; /* in settings->servers */
  belay__settings_t *settings;
  const belay__connection_events_t *ops;
  belay__target_t target;
  belay__role_t role;
  bool retired; /* set by its owner: the server gets no more calls */
  bool
      readonly; /* a cluster's replica: it answers what only reads once it is told that this is meant */
  bool
      queue_first_dial; /* all clients hear of its server at once: the first to dial waits for its turn too */
  size_t handles;            /* libuv handles that are open */
  belay__timer_t role_timer; /* the server is asked for its role again */
  void *owner;               /* its owner's */
  belay__subscriber_t *subscriber;

  /* Whether the server is away (redis/conn/outage.c). Times are nanoseconds of the loop's clock. */
  int failed; /* error of the last attempt to connect; 0: it succeeded, or there was none */
  uint64_t
      last_read; /* when a byte last came from the server, for a connection that carries calls */
  uint64_t silent_since; /* since when a call that timed out heard nothing; 0: none has timed out */
  belay__connection_t
      *probe; /* the connection that tries to connect most often while failed is set, or NULL */
  uint64_t probe_until;        /* connections try to connect until then although no call waits */
  belay__timer_t refuse_timer; /* calls with fail_fast that are queued end */
  char outage_cause[BELAY__WORDS_MAX]; /* with failed: the server and the cause */

  size_t
      connections_per_class; /* connections of LEASE and of DATA each; the other connection classes have one */
  size_t count;              /* of all connections that carry calls */
  belay__connection_t *connections;
};

typedef enum belay__connection_state {
  BELAY__CONNECTION_DOWN,      /* not connected, and nobody wants it to be */
  BELAY__CONNECTION_RESOLVING, /* it is being found out where the server is */
  BELAY__CONNECTION_DIALING,   /* looking up, connecting */
  BELAY__CONNECTION_HANDSHAKE, /* connected; the handshake is being answered */
  BELAY__CONNECTION_UP,        /* calls go through */
  BELAY__CONNECTION_DRAINING, /* the server is of no use; what it was asked is still being answered */
  BELAY__CONNECTION_CHECKING, /* was idle for long; a PING is out, calls wait for its answer */
  BELAY__CONNECTION_BACKOFF,  /* waits before it dials again; calls wait */
  BELAY__CONNECTION_REFUSED, /* the same, and the server's reason is a lasting one: calls are refused */
  BELAY__CONNECTION_CLOSED
} belay__connection_state_t;

/* Who is at the other end of a connection: enough to have it killed from the next one; and what he can do. */
typedef struct belay__peer {
  belay__server_info_t info; /* epoch 0: there was none */
  int64_t id;                /* CLIENT ID; 0: not known */
  unsigned capabilities;     /* a bit for each belay__capability_t */
} belay__peer_t;

#define BELAY__CAUSE_MAX ((size_t)160) /* bytes of a cause in words, a 0 included */

/* Calls that wait to travel as one command (batch.h). */
typedef struct belay__call_batch {
  belay__list_t calls; /* that wait, in order */
  size_t len;          /* how many */
  size_t bytes;        /* of their keys and arguments, and of those that were withdrawn */
  size_t keys, args;   /* of each */
  uint64_t affinities; /* a bit for each of theirs; one bit may be several's */
  bool off;            /* the server of the present connection does not let calls travel together */
  belay__flush_t flush;
} belay__call_batch_t;

struct belay__connection {
  belay__server_t *server;
  bool is_subscriber; /* it receives messages; false: it carries calls */
  size_t channels;    /* channels that need the connection; 0 without listens */
  belay__connection_state_t state;
  bool connect_requested; /* it is to be connected once more, although no call waits for it */
  bool extra;             /* not the first of its connection class: closed when it is idle */
  belay__scripts_t sent_scripts; /* whose text has gone over the present connection */
  bool sharded;           /* channels of its server belong to slots, and to those who serve them */
  belay__target_t target; /* of the last attempt to connect */
  belay__dial_t dial;
  belay__transport_t transport; /* open while SHAKING, UP, DRAINING, CHECKING */
  belay__timer_t timer;         /* what it waits for depends on the state */
  belay__connect_slot_t turn;   /* BACKOFF, REFUSED: to dial, once the time is over */
  belay__list_t urgent;         /* calls that were not handed to the transport, and go first */
  belay__list_t queue;          /* the others that were not */
  belay__call_batch_t batch;    /* calls of both that wait for others to travel with */
  belay__list_t dropped;        /* calls that the transport gives back while it ends */
  belay__list_t redirected;     /* calls that go elsewhere when the last of them is answered, */
  belay__redirect_t redirect;   /* and where that is */
  size_t queue_len;             /* of both, and of the batch */
  size_t in_flight;             /* calls that the server owes an answer to */
  uint64_t attempt_number;      /* the number of the last attempt to connect */
  unsigned failures;            /* consecutive connections that failed or carried no answer */
  uint64_t trouble_since;       /* with failures: when the first of them failed */
  uint64_t attempt_since;       /* when the present attempt to connect began; 0: there is none */
  /* The first of consecutive refusals that may pass; 0: the last answer was another. */
  uint64_t refusing_since;
  uint64_t stall_noticed;   /* the last_heard of a silence that was noticed already */
  uint64_t silence_noticed; /* the last_heard of a silence that somebody asked about, */
  uint64_t silence_turn;    /* and the turn of the loop in which that was */
  int error;                /* why it is not up */
  /* The same in words: the cause of the last attempt or connection that ended, or "". */
  char cause[BELAY__CAUSE_MAX];
  bool cause_set; /* the cause is that of the present attempt or connection */
  /* Called by the handshake when it is over: 0, or the error that ends the connection. */
  void (*handshake_done)(belay__connection_t *connection, int error);
  belay__peer_t peer; /* the present connection */
  belay__peer_t
      lost_peer;     /* the one before it, while the server may still execute what was sent on it */
  bool several_lost; /* and of those before that too */
  uint32_t dead_epoch; /* connections up to this one are known to be dead */
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

/* The connection of a connection, in a callback of hiredis. */
static inline belay__connection_t *belay__connection_of_context(const redisAsyncContext *ac) {
  return BELAY__CONTAINER(ac->data, belay__connection_t, transport);
}

#endif /* BELAY_REDIS_CONN_STATE_H */
