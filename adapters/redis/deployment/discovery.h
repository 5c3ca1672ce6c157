/* A discovery: asks one of several servers about the deployment, on a connection of its own.
 * discovery.c has the diagram.
 *
 * The servers are tried one after the other, each for a short time. The one that answered is asked
 * first the next time, and the connection to it stays open. */
#ifndef BELAY_REDIS_DEPLOYMENT_DISCOVERY_H
#define BELAY_REDIS_DEPLOYMENT_DISCOVERY_H

#include "redis/conn/settings.h"
#include "redis/net/dial.h"
#include "redis/net/transport.h"

#define BELAY__DISCOVERY_PLACES 64

typedef struct belay__discovery belay__discovery_t;

typedef enum belay__discovery_verdict {
  BELAY__DISCOVERY_DONE, /* the query is answered */
  BELAY__DISCOVERY_MORE, /* more replies are due */
  BELAY__DISCOVERY_NEXT  /* this server is of no use; ask the next one */
} belay__discovery_verdict_t;

typedef struct belay__discovery_ops {
  /* Sends the commands of a query by belay__discovery_send(). */
  void (*ask)(belay__discovery_t *discovery);
  /* Reads a reply or an error reply, in the order of the commands. */
  belay__discovery_verdict_t (*answer)(belay__discovery_t *discovery, const belay__reply_t *reply);
  /* The query has ended: 0, or the reason for which no server answered it.
   * belay__discovery_report() reports it to the client. Another query may begin in this
   * callback. */
  void (*on_over)(belay__discovery_t *discovery, int error);
  /* The connection was lost between two queries. May be NULL. */
  void (*lost)(belay__discovery_t *discovery);
  /* A message arrived on one of the channels. */
  void (*on_message)(belay__discovery_t *discovery, const belay__reply_t *channel,
                     const belay__reply_t *message);
} belay__discovery_ops_t;

typedef enum belay__discovery_state {
  BELAY__DISCOVERY_IDLE,    /* no connection, no query */
  BELAY__DISCOVERY_WAITING, /* waits for a slot of the connect limiter */
  BELAY__DISCOVERY_DIALING, /* name lookup, connect */
  BELAY__DISCOVERY_ASKING,  /* commands are sent, replies are due */
  BELAY__DISCOVERY_READY,   /* connected, no query */
  BELAY__DISCOVERY_CLOSED
} belay__discovery_state_t;

struct belay__discovery {
  belay__settings_t *settings;
  const belay__discovery_ops_t *ops;
  belay__login_t login;
  /* Channels to subscribe to, if the server has RESP3; ends with NULL. NULL: none. */
  const char *const *channels;
  belay__discovery_state_t state;
  belay__place_t places[BELAY__DISCOVERY_PLACES];
  size_t count;
  size_t at;           /* index of the present or last server */
  size_t places_left;  /* number of servers that were not asked yet in this query */
  bool has_dialed;     /* it has dialed before */
  unsigned subscribes; /* number of SUBSCRIBE replies that come next */
  bool was_answered;   /* true if a server has replied on this connection */
  int system_error;    /* error of the last connection, as libuv has it; 0: none */
  /* Why the servers of this query are of no use. */
  int error;
  bool has_cause; /* true if a server gave the reason, as text */
  belay__place_t cause_place;
  char cause_text[BELAY__WORDS_MAX];
  /* The last error that was logged, and its text; 0: none since the last useful answer. */
  int logged_error;
  char logged_cause[BELAY__WORDS_MAX];
  belay__target_t target;
  belay__dial_t dial;
  belay__transport_t transport;
  belay__timer_t timer;
  belay__connect_slot_t turn; /* slot of the connect limiter */
  size_t handles;             /* number of open libuv handles */
};

/* Initializes a discovery whose channels are set. places: the servers to ask. */
void belay__discovery_init(belay__discovery_t *discovery, belay__settings_t *settings,
                           const belay__discovery_ops_t *ops, belay__login_t login,
                           const belay__place_t *places, size_t n);

/* Replaces the servers to ask. Repeated ones and those above BELAY__DISCOVERY_PLACES are left out.
 * n 0: no change. */
void belay__discovery_set_places(belay__discovery_t *discovery, const belay__place_t *places,
                                 size_t n);

/* Begins a query, unless one is in progress. No callback runs inside this call. */
void belay__discovery_ask(belay__discovery_t *discovery);

/* The next query begins with the first server, not with the last one that answered. */
void belay__discovery_restart_list(belay__discovery_t *discovery);

/* The next query begins with this server. False, without effect, if it is not in the list or a
 * query is in progress. */
bool belay__discovery_prefer(belay__discovery_t *discovery, const belay__place_t *place);

/* The next query begins with another server. */
void belay__discovery_pick_other(belay__discovery_t *discovery);

/* Called in ask() or answer(): sends one command, whose reply goes to answer(). */
void belay__discovery_send(belay__discovery_t *discovery, size_t argc, const char *const *argv);

/* Called in answer(): notes why the present server is of no use. */
void belay__discovery_set_cause(belay__discovery_t *discovery, int error, const char *words);

/* Called in on_over(): reports the error and its cause to the client. */
void belay__discovery_report(belay__discovery_t *discovery, int error);

/* The server of the present or last query. */
const belay__place_t *belay__discovery_place(const belay__discovery_t *discovery);

void belay__discovery_close(belay__discovery_t *discovery);
bool belay__discovery_is_over(const belay__discovery_t *discovery);
void belay__discovery_deinit(belay__discovery_t *discovery);

#endif /* BELAY_REDIS_DEPLOYMENT_DISCOVERY_H */
