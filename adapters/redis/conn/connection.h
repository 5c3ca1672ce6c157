/* A link: the place of one connection to one server, which is made, lost and made again. connection.c has the
 * diagram. */
#ifndef BELAY_REDIS_CONN_CONNECTION_H
#define BELAY_REDIS_CONN_CONNECTION_H

#include "redis/conn/server.h"
#include "redis/conn/batch.h"
#include "redis/net/transport.h"

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

struct belay__link {
  belay__cable_t *cable;
  belay__listener_t *listener; /* NULL: it carries calls */
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
  bool blamed;        /* the cause is that of the present attempt or connection */
  belay__peer_t peer; /* the present connection */
  belay__peer_t
      ghost; /* the one before it, while the server may still execute what was sent on it */
  bool several_ghosts; /* and of those before that too */
  uint32_t dead_epoch; /* connections up to this one are known to be dead */
};

void belay__link_init(belay__link_t *link, belay__cable_t *cable, bool extra);

/* 0, BELAY_EBUSY, or the error of a link that is REFUSED. */
int belay__link_submit(belay__link_t *link, belay__call_t *const *calls, size_t n);
int belay__link_withdraw(belay__link_t *link, belay__call_t *call);

/* The error with which it would not take n more calls; 0: it would. */
int belay__link_admits(const belay__link_t *link, bool urgent, size_t n);
/* Queues a call that was queued before: there is no limit for it, and if it can be queued no more it is refused. */
void belay__link_adopt(belay__link_t *link, belay__call_t *call);
/* Takes back all that is queued, in order. */
void belay__link_surrender(belay__link_t *link, belay__list_t *out);

/* What the cable is told (redis/conn/server.h). */
void belay__link_found(belay__link_t *link, int error);
void belay__link_hurry(belay__link_t *link);
void belay__link_leave(belay__link_t *link, int error, const char *cause);
void belay__link_drain(belay__link_t *link, int error, const char *cause);

/* Drops the connection, if it is the one of that number. */
void belay__link_distrust(belay__link_t *link, uint32_t epoch);

/* Ends everything at once. The link is over when belay__link_is_over(). */
void belay__link_close(belay__link_t *link);
bool belay__link_is_over(const belay__link_t *link);
/* Gives back what it still has; called last. */
void belay__link_fini(belay__link_t *link);

/* Connects, unless it does or waits until it may, although no call asks for it. */
void belay__link_want(belay__link_t *link);

/* What follows is for a link that listens. One that is REFUSED: there is reason to try again at once. */
void belay__link_try_again(belay__link_t *link);
/* Nobody needs the connection any more. Not in a callback of the wire's. */
void belay__link_retire(belay__link_t *link);
/* The server owes something. */
void belay__link_owed(belay__link_t *link);
/* The server has answered all that it was asked up to here. */
void belay__link_paid(belay__link_t *link);

/* A reason that will not go away by itself: who asks is told at once, and nobody knocks too often. */
bool belay__link_is_lasting(int error);

static inline bool belay__link_is_up(const belay__link_t *link) {
  return link->state == BELAY__LINK_UP || link->state == BELAY__LINK_CHECKING ||
         link->state == BELAY__LINK_DRAINING;
}

/* ---- redis/conn/outage.c ------------------------------------------------------------------------------------- */

/* For a call with fail_fast: 0; or the server is away, and the error with which the call ends in place
 * of being queued, which the client knows in words. Then the link connects, unless it tries already. */
int belay__outage_check(belay__link_t *link);

/* For a call that is about to be queued: whether a refusal that may pass ends it. */
bool belay__outage_refuses(const belay__link_t *link, const belay__call_t *call);
/* The server answered a call. */
void belay__outage_answered(belay__link_t *link, const belay__reply_t *reply);

/* An attempt to connect failed; a connection was made; something was read. */
void belay__outage_failed(belay__link_t *link, int error);
void belay__outage_connected(belay__link_t *link);
void belay__outage_heard(belay__link_t *link);

/* The deadline of a call is over that was sent on the link. The same of a call that was queued; returns
 * the error with which it ends. */
void belay__outage_overdue(belay__link_t *link, const belay__call_t *call);
int belay__outage_unsent(belay__link_t *link);

/* Calls with fail_fast that are queued for a server that is away end; from the loop. */
void belay__outage_refuse_soon(belay__cable_t *cable);
void belay__outage_on_refuse(belay__timer_t *timer);

/* Whether the link is to go on trying although no call waits: calls with fail_fast were refused of
 * late. And it does not try any more: if no other does, it is not known whether the server is away. */
bool belay__outage_probes(const belay__link_t *link);
void belay__outage_rests(belay__link_t *link);

/* Whether the link is to try less often to connect than another one of the cable does. */
bool belay__outage_spares(belay__link_t *link);

/* Why the link's connection or attempt ends, unless that is known already. */
void belay__link_blame(belay__link_t *link, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The cause that the link knows becomes the client's last refusal, behind the server's place. */
void belay__link_explain(const belay__link_t *link, int error);

/* What a call ends with that was not sent because there was no connection, for this reason or none. */
int belay__link_unsent(int error);

/* ---- redis/conn/loss.c --------------------------------------------------------------------------------------- */

/* The wire is gone: sets the cause, unless the one that ended the connection has set it. */
void belay__link_blame_wire(belay__link_t *link, int error);
/* An attempt to connect failed; the connection is lost, and its calls are still to be settled. */
void belay__link_fail(belay__link_t *link, int error);
void belay__link_lose(belay__link_t *link, int error);

/* ---- redis/conn/dispatch.c -------------------------------------------------------------------------------------- */

/* Hands queued calls to the wire, as many as it may carry. */
void belay__link_pump(belay__link_t *link);

/* Hands one to the wire, and those that belong behind it, from the front of its queue; if the wire does not take all of
 * them, the rest is still there, and the wire is broken. */
void belay__link_hand_over(belay__link_t *link, belay__call_t *call);

/* In a callback of the wire's: the reply to a call that is not in flight any more; and when all are given that the
 * callback has. */
void belay__link_answer(belay__link_t *link, belay__call_t *call, const belay__reply_t *reply);
void belay__link_answered(belay__link_t *link);

/* The same: it was refused before anything was executed, and is sent again at once. */
void belay__link_resend(belay__link_t *link, belay__call_t *call);

/* What was to go elsewhere does not. */
void belay__link_stay(belay__link_t *link, const belay__reply_t *reply);

/* ---- redis/conn/liveness.c -------------------------------------------------------------------------------------- */

/* Whether answers are owed, and nothing has been heard for so many nanoseconds. */
bool belay__link_owes(const belay__link_t *link, uint64_t limit);

/* The same. A loop that was away has heard nothing either: so the answer is yes only if the loop has turned since it was
 * first asked about. */
bool belay__link_is_silent(belay__link_t *link, uint64_t limit);

/* What is watched for may have changed. */
void belay__link_watch(belay__link_t *link);
/* Asks for a sign of life, unless an answer is owed anyway. */
void belay__link_ping(belay__link_t *link);
/* A connection that nothing was heard of for long may be dead, and would tell so only after a time-out: it is asked. */
void belay__link_check_if_idle(belay__link_t *link);

/* ---- redis/conn/requeue.c ------------------------------------------------------------------------------------- */

/* What is queued is refused. */
void belay__link_refuse(belay__link_t *link, int error);

/* Judges the calls that a connection that is gone has dropped. */
void belay__link_settle(belay__link_t *link, int error);

/* ---- redis/conn/handshake.c --------------------------------------------------------------------------------- */

/* Sends what must be agreed on before the first call, or before listening. */
void belay__handshake_start(belay__link_t *link);

/* The cause in words when a server does not have that role any more. */
const char *belay__role_words(belay__role_t role);

/* Whether that is the answer to ROLE of a server that is this. */
bool belay__role_is(const belay__reply_t *reply, belay__role_t role);

/* The handshake is through: 0, or the error that ends the connection. */
void belay__link_shaken(belay__link_t *link, int error);

#endif /* BELAY_REDIS_CONN_CONNECTION_H */
