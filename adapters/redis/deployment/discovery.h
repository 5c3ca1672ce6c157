/* A scout: asks one of several servers about the deployment, on a connection of its own. discovery.c has the diagram.
 *
 * The servers are tried one after the other, each for a short time; the one that has answered is asked first next time,
 * and the connection to it stays open. */
#ifndef BELAY_REDIS_DEPLOYMENT_DISCOVERY_H
#define BELAY_REDIS_DEPLOYMENT_DISCOVERY_H

#include "redis/conn/settings.h"
#include "redis/net/dial.h"
#include "redis/net/transport.h"

#define BELAY__SCOUT_PLACES 64

typedef struct belay__scout belay__scout_t;

typedef enum belay__scout_verdict {
  BELAY__SCOUT_DONE, /* the question is answered */
  BELAY__SCOUT_MORE, /* more answers are to come */
  BELAY__SCOUT_NEXT  /* this one is of no use: the next is asked */
} belay__scout_verdict_t;

typedef struct belay__scout_ops {
  /* It is connected: says what there is to ask, by belay__scout_say(). */
  void (*ask)(belay__scout_t *scout);
  /* An answer, in the order of what was said; an error too. */
  belay__scout_verdict_t (*answer)(belay__scout_t *scout, const belay__reply_t *reply);
  /* The question is over: 0, or why nobody has answered it; belay__scout_explain() tells the client. Another one may be
   * begun in it. */
  void (*over)(belay__scout_t *scout, int error);
  /* The connection was lost while nothing was being asked; may be NULL. */
  void (*lost)(belay__scout_t *scout);
  /* A message came on one of the channels that are listened to. */
  void (*heard)(belay__scout_t *scout, const belay__reply_t *channel,
                const belay__reply_t *message);
} belay__scout_ops_t;

typedef enum belay__scout_state {
  BELAY__SCOUT_IDLE,    /* no connection, and nothing to ask */
  BELAY__SCOUT_WAITING, /* a turn to dial is waited for */
  BELAY__SCOUT_DIALING, /* looking up, connecting */
  BELAY__SCOUT_ASKING,  /* what was said is being answered */
  BELAY__SCOUT_READY,   /* connected, nothing to ask */
  BELAY__SCOUT_CLOSED
} belay__scout_state_t;

struct belay__scout {
  belay__trunk_t *trunk;
  const belay__scout_ops_t *ops;
  belay__identity_t identity;
  const char *const *
      channels; /* to listen to, where the server can do both at once, up to a NULL; or NULL: none */
  belay__scout_state_t state;
  belay__place_t places[BELAY__SCOUT_PLACES];
  size_t count;
  size_t at;             /* the one that is being asked */
  size_t left;           /* that were not asked yet, of this round */
  bool knocked;          /* it has dialed before */
  unsigned subscribes;   /* so many answers to SUBSCRIBE come next */
  bool met;              /* somebody has answered something on this connection */
  int reason;            /* the system's error of the last connection, as libuv has it; 0: none */
  int error;             /* why those that were asked in this round are of no use, */
  bool said;             /* as one of them has said, */
  belay__place_t blamed; /* this one, */
  char why[BELAY__WORDS_MAX]; /* in words */
  int told; /* what the log was told since somebody last was of use; 0: nothing, */
  char told_why[BELAY__WORDS_MAX]; /* and why */
  belay__target_t target;
  belay__dial_t dial;
  belay__wire_t wire;
  belay__timer_t timer;
  belay__turn_t turn; /* to dial again */
  size_t handles;     /* libuv handles that are open */
};

/* Fills in a scout that is zeros, or whose channels are set. It may ask at the places. */
void belay__scout_init(belay__scout_t *scout, belay__trunk_t *trunk, const belay__scout_ops_t *ops,
                       belay__identity_t identity, const belay__place_t *places, size_t n);

/* Where it may ask, and nowhere else: one more than there is room for is left out, and so is one that is there already.
 * Those that there are are kept if n is 0. */
void belay__scout_set(belay__scout_t *scout, const belay__place_t *places, size_t n);

/* Begins to ask, unless it does. Nothing is told inside this. */
void belay__scout_ask(belay__scout_t *scout);

/* The next question goes to the first of them first, not to whoever has answered last. */
void belay__scout_first(belay__scout_t *scout);

/* The next question goes to that place first; false, and nothing is changed, if the scout may not ask there or is asking
 * now. */
bool belay__scout_prefer(belay__scout_t *scout, const belay__place_t *place);

/* The next question goes to somebody else first, if one is to be begun. */
void belay__scout_turn(belay__scout_t *scout);

/* In ask(): one command, whose answer comes to answer(). */
void belay__scout_say(belay__scout_t *scout, size_t argc, const char *const *argv);

/* In answer(): the one that is asked is of no use, in its words, for that reason. */
void belay__scout_blame(belay__scout_t *scout, int error, const char *words);

/* In over(): the client is going to be told of that error, and why. */
void belay__scout_explain(belay__scout_t *scout, int error);

/* Whom it asks, or asked last. */
const belay__place_t *belay__scout_place(const belay__scout_t *scout);

void belay__scout_close(belay__scout_t *scout);
bool belay__scout_is_over(const belay__scout_t *scout);
void belay__scout_fini(belay__scout_t *scout);

#endif /* BELAY_REDIS_DEPLOYMENT_DISCOVERY_H */
