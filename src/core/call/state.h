/* belay__call_t: the struct and its states. core/call/call.h has the diagram. */
#ifndef BELAY_CORE_CALL_STATE_H
#define BELAY_CORE_CALL_STATE_H

#include "core/call/reply.h"
#include "core/call/script.h"
#include "core/loop/loop.h"

typedef struct belay__result {
  belay_outcome_t outcome;
  int error;                   /* 0 with REPLY, else the reason */
  const belay__reply_t *reply; /* with REPLY; valid until the callback returns */
} belay__result_t;

typedef void (*belay__call_cb)(belay__call_t *call, const belay__result_t *result);

typedef enum belay__call_state {
  BELAY__CALL_BUILDING, /* made; arguments are being added */
  BELAY__CALL_QUEUED,   /* submitted; no byte of it was handed to a connection */
  BELAY__CALL_SENT,     /* handed to a connection */
  BELAY__CALL_RESTING,  /* refused for a while; waits for the time to try again */
  BELAY__CALL_LATE      /* SENT, and its caller was told UNKNOWN */
} belay__call_state_t;

struct belay__call {
  belay__list_t node;   /* the node's; RESTING: the client's; in the pool: the pool's */
  belay__timer_t timer; /* the deadline, or the end of a rest */
  belay_client_t *client;
  belay__call_cb done, settled; /* either may be NULL */
  void *owner;                  /* the caller's */
  belay__call_t **
      place; /* the owner's pointer to the call while it is open: belay__call_start(); NULL: none */
  const belay__script_t *script; /* NULL for a plain command */
  const char *command;           /* its name, for traces */

  uint64_t id;      /* numbers the client's calls from 1 */
  uint64_t started; /* when it was sent by its caller */
  uint64_t
      deadline; /* when it is over for its caller; 0 before it is sent: the client's timeout_ms from then on */
  uint64_t first_sent; /* when a byte of it may first have left; 0: never */
  uint32_t epoch;      /* the connection that it was last handed to; 0: none */
  uint32_t
      route; /* calls of one connection class with the same one share a connection, as far as their keys let them; of one
                        without a key it tells the slot (core/key/key.h) */

  uint8_t state;      /* belay__call_state_t */
  uint8_t conn_class; /* belay__conn_class_t */
  uint8_t tries;      /* rests so far */
  uint8_t hops;       /* redirections since it was last sent anew */
  bool urgent;        /* not subject to the client's limits: it gives something back */
  bool no_retry;      /* not sent again after a refusal: it would come behind what was sent later */
  bool follows;       /* belongs behind the call before it, on the same connection: */
  bool followed;      /* neither of the two is sent again after a refusal */
  bool stale;         /* belay__call_stale() */
  bool as_eval;       /* the script's text is in it, not its hash */
  bool
      fail_fast; /* its caller has a policy for outages: it is not sent to a server that is away, and ends at once */
  bool no_rest;  /* the node's: a refusal that may pass ends it */
  bool broken;   /* memory ran out while it was built */
  uint8_t needs; /* what the server must be able to do: 1 + a belay__capability_t; 0: nothing new */
  bool denied;   /* belay__call_needs() */
  int last_error; /* of the refusal before a rest */

  size_t tail; /* where the arguments after the script begin */
  size_t
      publisher; /* where the word is that is decided on when it is handed over (core/call/publish.h); 0: there is none */
  size_t len, cap;
  char *data; /* the command as it goes over the wire */

  uint64_t room[]; /* the node's: node_ops->call_room bytes */
};

#endif /* BELAY_CORE_CALL_STATE_H */
