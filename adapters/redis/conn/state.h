/* The state of the connections to one server (a cable), and of one of them (a link). The files of this folder work on it:
 *
 *   server.c --> subscriber.c --> connection.c --> handshake.c, loss.c --> outage.c --> queue.c --> batch.c --> dispatch.c
 *                                                                                                          --> liveness.c
 *
 * Each file calls those to its right. A file tells those to its left by belay__cable_ops_t and link->shaken. */
#ifndef BELAY_REDIS_CONN_STATE_H
#define BELAY_REDIS_CONN_STATE_H

#include "core/call/script.h"
#include "redis/conn/settings.h"
#include "redis/net/dial.h"
#include "redis/net/transport.h"

/* What the adapter keeps in each call (call->room). */
typedef struct belay__trip {
  belay__link_t *at; /* the link that it is queued or was sent on; NULL: none yet */
  uint64_t offset;   /* position of its first byte in the stream of the connection */
  bool asking;       /* it goes to the server that its slot is moving to: ASKING precedes it */
} belay__trip_t;

static inline belay__trip_t *belay__trip(belay__call_t *call) {
  return (belay__trip_t *)call->room;
}

/* Events of a link, for its cable. */
typedef struct belay__cable_ops {
  /* A connection is up. */
  void (*up)(belay__link_t *link);
  /* A connection was lost, or an attempt to connect failed. Called before the next attempt. */
  void (*lost)(belay__link_t *link, int error);
  /* The server was away and is back: no link needs to wait any longer before it connects. */
  void (*hurry)(belay__cable_t *cable);
} belay__cable_ops_t;

struct belay__cable {
  belay__list_t node; /* in trunk->cables */
  belay__trunk_t *trunk;
  const belay__cable_ops_t *ops;
  belay__target_t target;
  belay__role_t role;
  bool retired; /* set by its owner: the server gets no more calls */
  bool
      readonly; /* a cluster's replica: it answers what only reads once it is told that this is meant */
  bool
      rushed; /* all clients hear of its server at once: the first to dial waits for its turn too */
  size_t handles;            /* libuv handles that are open */
  belay__timer_t role_timer; /* the server is asked for its role again */
  void *of;                  /* its owner's */
  belay__listener_t *listener;

  /* Whether the server is away (redis/conn/outage.c). Times are nanoseconds of the loop's clock. */
  int failed;        /* error of the last attempt to connect; 0: it succeeded, or there was none */
  uint64_t heard_at; /* when a byte last came from the server, for a link that carries calls */
  uint64_t silent_since; /* since when a call that timed out heard nothing; 0: none has timed out */
  belay__link_t *probe; /* the link that tries to connect most often while failed is set, or NULL */
  uint64_t probe_until; /* links try to connect until then although no call waits */
  belay__timer_t refuse;      /* calls with fail_fast that are queued end */
  char why[BELAY__WORDS_MAX]; /* with failed: the server and the cause */

  size_t lane_links; /* links of LEASE and of DATA each; the other lanes have one */
  size_t count;      /* of all links that carry calls */
  belay__link_t *links;
};

typedef enum belay__link_state {
  BELAY__LINK_DOWN,     /* not connected, and nobody wants it to be */
  BELAY__LINK_FINDING,  /* it is being found out where the server is */
  BELAY__LINK_DIALING,  /* looking up, connecting */
  BELAY__LINK_SHAKING,  /* connected; the handshake is being answered */
  BELAY__LINK_UP,       /* calls go through */
  BELAY__LINK_DRAINING, /* the server is of no use; what it was asked is still being answered */
  BELAY__LINK_CHECKING, /* was idle for long; a PING is out, calls wait for its answer */
  BELAY__LINK_BACKOFF,  /* waits before it dials again; calls wait */
  BELAY__LINK_REFUSED,  /* the same, and the server's reason is a lasting one: calls are refused */
  BELAY__LINK_CLOSED
} belay__link_state_t;

/* Who is at the other end of a connection: enough to have it killed from the next one; and what he can do. */
typedef struct belay__peer {
  belay__server_t server; /* epoch 0: there was none */
  int64_t id;             /* CLIENT ID; 0: not known */
  unsigned can;           /* a bit for each belay__capability_t */
} belay__peer_t;

#define BELAY__CAUSE_MAX ((size_t)160) /* bytes of a cause in words, a 0 included */

/* Calls that wait to travel as one command (batch.h). */
typedef struct belay__convoy {
  belay__list_t calls; /* that wait, in order */
  size_t len;          /* how many */
  size_t bytes;        /* of their keys and arguments, and of those that were withdrawn */
  size_t keys, args;   /* of each */
  uint64_t affinities; /* a bit for each of theirs; one bit may be several's */
  bool off;            /* the server of the present connection does not let calls travel together */
  belay__flush_t flush;
} belay__convoy_t;

struct belay__link {
  belay__cable_t *cable;
  bool listens;    /* it receives messages; false: it carries calls */
  size_t channels; /* channels that need the connection; 0 without listens */
  belay__link_state_t state;
  bool wanted;              /* it is to be connected once more, although no call waits for it */
  bool extra;               /* not the first of its lane: closed when it is idle */
  belay__scripts_t brought; /* whose text has gone over the present connection */
  bool sharded;           /* channels of its server belong to slots, and to those who serve them */
  belay__target_t target; /* of the last attempt to connect */
  belay__dial_t dial;
  belay__wire_t wire;         /* open while SHAKING, UP, DRAINING, CHECKING */
  belay__timer_t timer;       /* what it waits for depends on the state */
  belay__turn_t turn;         /* BACKOFF, REFUSED: to dial, once the time is over */
  belay__list_t urgent;       /* calls that were not handed to the wire, and go first */
  belay__list_t queue;        /* the others that were not */
  belay__convoy_t convoy;     /* calls of both that wait for others to travel with */
  belay__list_t dropped;      /* calls that the wire gives back while it ends */
  belay__list_t parted;       /* calls that go elsewhere when the last of them is answered, */
  belay__redirect_t redirect; /* and where that is */
  size_t queue_len;           /* of both, and of the convoy */
  size_t in_flight;           /* calls that the server owes an answer to */
  uint64_t dialed;            /* the number of the last attempt to connect */
  unsigned failures;          /* consecutive connections that failed or carried no answer */
  uint64_t trouble_since;     /* with failures: when the first of them failed */
  uint64_t attempt_since;     /* when the present attempt to connect began; 0: there is none */
  /* The first of consecutive refusals that may pass; 0: the last answer was another. */
  uint64_t refusing_since;
  uint64_t suspect_since; /* the last_heard of a silence that was noticed already */
  uint64_t quiet_since;   /* the last_heard of a silence that somebody asked about, */
  uint64_t quiet_turn;    /* and the turn of the loop in which that was */
  int error;              /* why it is not up */
  /* The same in words: the cause of the last attempt or connection that ended, or "". */
  char cause[BELAY__CAUSE_MAX];
  bool blamed; /* the cause is that of the present attempt or connection */
  /* Called by the handshake when it is over: 0, or the error that ends the connection. */
  void (*shaken)(belay__link_t *link, int error);
  belay__peer_t peer; /* the present connection */
  belay__peer_t
      ghost; /* the one before it, while the server may still execute what was sent on it */
  bool several_ghosts; /* and of those before that too */
  uint32_t dead_epoch; /* connections up to this one are known to be dead */
};

static inline bool belay__link_is_up(const belay__link_t *link) {
  return link->state == BELAY__LINK_UP || link->state == BELAY__LINK_CHECKING ||
         link->state == BELAY__LINK_DRAINING;
}

static inline belay_t *belay__cable_loop(const belay__cable_t *cable) {
  return &cable->trunk->host->base;
}

static inline belay_t *belay__link_loop(const belay__link_t *link) {
  return belay__cable_loop(link->cable);
}

/* The link of a connection, in a callback of hiredis. */
static inline belay__link_t *belay__link_of(const redisAsyncContext *ac) {
  return BELAY__CONTAINER(ac->data, belay__link_t, wire);
}

#endif /* BELAY_REDIS_CONN_STATE_H */
