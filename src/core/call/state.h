/* belay__call_t: the struct and its states. core/call/call.h has the diagram. */
#ifndef BELAY_CORE_CALL_STATE_H
#define BELAY_CORE_CALL_STATE_H

#include "core/call/reply.h"
#include "core/call/script.h"
#include "core/loop/loop.h"

typedef struct belay__result {
  belay_outcome_t outcome;
  int error;                   /* 0 with REPLY; else the cause */
  const belay__reply_t *reply; /* The reply, with REPLY; valid until the callback returns */
} belay__result_t;

typedef void (*belay__call_cb)(belay__call_t *call, const belay__result_t *result);

typedef enum belay__call_state {
  BELAY__CALL_BUILDING, /* created; arguments are being added */
  BELAY__CALL_QUEUED,   /* submitted; no byte was handed to a connection */
  BELAY__CALL_SENT,     /* handed to a connection */
  BELAY__CALL_RESTING,  /* refused temporarily; waits for the time to try again */
  BELAY__CALL_LATE      /* SENT, and its owner was notified of UNKNOWN */
} belay__call_state_t;

struct belay__call {
  /* Link in a list of the node; of the client while RESTING; of the pool while unused */
  belay__list_t node;
  belay__timer_t timer; /* The deadline, or the end of a rest */
  belay_client_t *client;
  belay__call_cb done, settled; /* Either may be NULL */
  void *owner;                  /* Pointer for the callbacks */
  /* The owner's pointer to the call while it is open (belay__call_start()); NULL: none */
  belay__call_t **place;
  const belay__script_t *script; /* The script; NULL: a plain command */
  const char *command;           /* Name of the command, for traces */

  uint64_t id;      /* Number of the call, counted per client from 1 */
  uint64_t started; /* Time of belay__call_send(), in nanoseconds */
  /* Time at which the call ends for its owner, in nanoseconds. 0 before belay__call_send(): the
   * client's timeout_ms after that call */
  uint64_t deadline;
  /* Earliest time at which a byte may have left, in nanoseconds; 0: none left, or the server did
   * not execute the call then (a redirection, or a script that the server does not have) */
  uint64_t first_sent;
  uint32_t epoch; /* Number of the connection that the call was last handed to; 0: none */
  /* Calls of one connection class with the same route share a connection where their keys
   * permit. The route of a call without a key also gives the call's slot (core/key/key.h) */
  uint32_t route;

  uint8_t state;      /* A belay__call_state_t */
  uint8_t conn_class; /* A belay__conn_class_t */
  uint8_t tries;      /* Number of rests so far */
  uint8_t hops;       /* Redirections since the last rest */
  /* true if max_bytes and max_pending do not apply, because the call gives something back */
  bool urgent;
  /* true if the call is not sent again after any refusal (retry, redirection, script text): it
   * would run after calls that were sent later */
  bool no_retry;
  /* true if the call must follow the previous one on the same connection. It never rests, and a
   * redirection moves it only together with the previous one */
  bool follows;
  /* true if another call must follow this one. This call never rests */
  bool followed;
  bool stale;   /* true after belay__call_stale(): a replica may answer */
  bool as_eval; /* true if the command contains the script's text instead of its hash */
  /* true if the caller has a policy for outages: the call is not sent to a server that is away,
   * but ends at once */
  bool fail_fast;
  bool no_rest;   /* Set by the node: a temporary refusal ends the call */
  bool broken;    /* true if memory ran out while the call was built */
  uint8_t needs;  /* Feature that the server must have: 1 + a belay__capability_t; 0: none */
  bool denied;    /* true if the server refused the needed feature; see belay__call_needs() */
  int last_error; /* Error of the refusal before the last rest; 0: no rest yet */

  size_t tail; /* Offset in data of the argument after the script's hash or text */
  /* Offset in data of the publish command that the node selects (core/call/publish.h); 0: none */
  size_t publisher;
  size_t len, cap;
  char *data; /* The command in the wire format */

  uint64_t room[]; /* Memory of the node: node_ops->call_room bytes */
};

#endif /* BELAY_CORE_CALL_STATE_H */
