/* A discovery: asks one of several servers about the deployment, on a connection of its own. discovery.c has the diagram.
 *
 * The servers are tried one after the other, each for a short time; the one that has answered is asked first next time,
 * and the connection to it stays open. */
#ifndef BELAY_REDIS_DEPLOYMENT_DISCOVERY_H
#define BELAY_REDIS_DEPLOYMENT_DISCOVERY_H

#include "redis/conn/settings.h"
#include "redis/net/dial.h"
#include "redis/net/transport.h"

#define BELAY__DISCOVERY_PLACES 64

typedef struct belay__discovery belay__discovery_t;

typedef enum belay__discovery_verdict {
  BELAY__DISCOVERY_DONE, /* the question is answered */
  BELAY__DISCOVERY_MORE, /* more answers are to come */
  BELAY__DISCOVERY_NEXT  /* this one is of no use: the next is asked */
} belay__discovery_verdict_t;

typedef struct belay__discovery_ops {
  /* It is connected: says what there is to ask, by belay__discovery_send(). */
  void (*ask)(belay__discovery_t *discovery);
  /* Reads a reply, in the order of the commands; also an error. */
  belay__discovery_verdict_t (*answer)(belay__discovery_t *discovery, const belay__reply_t *reply);
  /* The query has ended: 0, or the reason why no server answered it. belay__discovery_report()
   * tells the client. Another query may begin in this callback. */
  void (*on_over)(belay__discovery_t *discovery, int error);
  /* The connection was lost while nothing was being asked; may be NULL. */
  void (*lost)(belay__discovery_t *discovery);
  /* A message came on one of the channels that are listened to. */
  void (*on_message)(belay__discovery_t *discovery, const belay__reply_t *channel,
                     const belay__reply_t *message);
} belay__discovery_ops_t;

typedef enum belay__discovery_state {
  BELAY__DISCOVERY_IDLE,    /* no connection, and nothing to ask */
  BELAY__DISCOVERY_WAITING, /* a turn to dial is waited for */
  BELAY__DISCOVERY_DIALING, /* looking up, connecting */
  BELAY__DISCOVERY_ASKING,  /* commands are sent, replies are due */
  BELAY__DISCOVERY_READY,   /* connected, nothing to ask */
  BELAY__DISCOVERY_CLOSED
} belay__discovery_state_t;

struct belay__discovery {
  belay__settings_t *settings;
  const belay__discovery_ops_t *ops;
  belay__login_t login;
  const char *const *
      channels; /* to listen to, where the server can do both at once, up to a NULL; or NULL: none */
  belay__discovery_state_t state;
  belay__place_t places[BELAY__DISCOVERY_PLACES];
  size_t count;
  size_t at;           /* the one that is being asked */
  size_t places_left;  /* that were not asked yet, of this round */
  bool has_dialed;     /* it has dialed before */
  unsigned subscribes; /* number of SUBSCRIBE replies that come next */
  bool was_answered;   /* true if a server has replied on this connection */
  int system_error;    /* the system's error of the last connection, as libuv has it; 0: none */
  int error;           /* why those that were asked in this round are of no use, */
  bool has_cause;      /* as one of them has said, */
  belay__place_t cause_place;        /* this one, */
  char cause_text[BELAY__WORDS_MAX]; /* in words */
  int logged_error; /* error that was logged since the last useful answer; 0: none */
  char logged_cause[BELAY__WORDS_MAX]; /* and why */
  belay__target_t target;
  belay__dial_t dial;
  belay__transport_t transport;
  belay__timer_t timer;
  belay__connect_slot_t turn; /* to dial again */
  size_t handles;             /* libuv handles that are open */
};

/* Fills in a discovery that is zeros, or whose channels are set. It may ask at the places. */
void belay__discovery_init(belay__discovery_t *discovery, belay__settings_t *settings,
                           const belay__discovery_ops_t *ops, belay__login_t login,
                           const belay__place_t *places, size_t n);

/* Where it may ask, and nowhere else: one more than there is room for is left out, and so is one that is there already.
 * Those that there are are kept if n is 0. */
void belay__discovery_set_places(belay__discovery_t *discovery, const belay__place_t *places,
                                 size_t n);

/* Begins a query, unless one is in progress. No callback runs inside this call. */
void belay__discovery_ask(belay__discovery_t *discovery);

/* The next query begins with the first server, not with the last one that answered. */
void belay__discovery_restart_list(belay__discovery_t *discovery);

/* The next question goes to that place first; false, and nothing is changed, if the discovery may not ask there or is asking
 * now. */
bool belay__discovery_prefer(belay__discovery_t *discovery, const belay__place_t *place);

/* The next query begins with another server. */
void belay__discovery_pick_other(belay__discovery_t *discovery);

/* In ask(): one command, whose answer comes to answer(). */
void belay__discovery_send(belay__discovery_t *discovery, size_t argc, const char *const *argv);

/* In answer(): the one that is asked is of no use, in its words, for that reason. */
void belay__discovery_set_cause(belay__discovery_t *discovery, int error, const char *words);

/* Called in on_over(): reports the error and its cause to the client. */
void belay__discovery_report(belay__discovery_t *discovery, int error);

/* The server of the present or last query. */
const belay__place_t *belay__discovery_place(const belay__discovery_t *discovery);

void belay__discovery_close(belay__discovery_t *discovery);
bool belay__discovery_is_over(const belay__discovery_t *discovery);
void belay__discovery_deinit(belay__discovery_t *discovery);

#endif /* BELAY_REDIS_DEPLOYMENT_DISCOVERY_H */
