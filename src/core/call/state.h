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

/* The order follows use: the first 64 bytes are what the pool, the timers and every event read, the
 * next 64 what a send and a reply read. Some thousand calls can be pending, and each occupies lines
 * of the processor's cache. */
struct belay__call {
  /* Link in a list of the node; of the client while RESTING; of the pool while unused */
  belay__list_t node;
  belay__timer_t timer; /* The deadline, or the end of a rest */
  belay_client_t *client;

  /* Callback for the end of the call; NULL: none. It is cleared before it is called. If it is set
   * inside the callback for UNKNOWN, it is called again when the LATE call ends */
  belay__call_cb done;
  void *owner; /* Pointer for the callback */
  /* The owner's pointer to the call while it is open (belay__call_start()); NULL: none */
  belay__call_t **place;
  const belay__script_t *script; /* The script; NULL: a plain command */
  /* The command in the wire format; NULL: not built yet, or given back (belay__call_lean()) */
  char *data;
  /* Time at which the call ends for its owner, in nanoseconds. 0 before belay__call_send(): that
   * function sets the time to now plus the client's timeout_ms */
  uint64_t deadline;
  /* Earliest time at which a byte may have left, in nanoseconds; 0: none left, or the server did
   * not execute the call then (a redirection, or a script that the server does not have) */
  uint64_t first_sent;
  uint64_t started; /* Time of belay__call_send(), in nanoseconds */

  union {
    const char *command; /* Name of a plain command; a string constant */
    size_t tail;         /* Of a script: offset in data of the argument after its hash or text */
  };
  uint32_t len; /* Bytes of the command, also after it was given back */
  /* Offset in data of the publish command that the node selects (core/call/publish.h); 0: none */
  uint32_t publisher;
  uint32_t epoch; /* Number of the connection that the call was last handed to; 0: none */
  /* Calls of one connection class with the same route share a connection where their keys
   * permit. The route of a call without a key also gives the call's slot (core/key/key.h) */
  uint32_t route;
  int16_t last_error;     /* Error of the refusal before the last rest; 0: no rest yet */
  uint8_t buffer : 5;     /* With data: its size as a power of two, less BELAY__BUFFER_BITS */
  uint8_t hops : 3;       /* Redirections since the last rest */
  uint8_t tries : 5;      /* Number of rests so far, at most BELAY__TRIES_MAX */
  uint8_t state : 3;      /* A belay__call_state_t */
  uint8_t conn_class : 2; /* A belay__conn_class_t */
  uint8_t needs : 3; /* Feature that the server must have: 1 + a belay__capability_t; 0: none */
  /* true if max_bytes and max_pending do not apply, because the call gives something back */
  bool urgent : 1;
  /* true if the call is not sent again after any refusal (retry, redirection, script text): it
   * would run after calls that were sent later */
  bool no_retry : 1;
  /* true if the call must follow the previous one on the same connection. It never rests, and a
   * redirection moves it only together with the previous one */
  bool follows : 1;
  /* true if another call must follow this one. This call never rests */
  bool followed : 1;
  bool stale : 1;   /* true after belay__call_stale(): a replica may answer */
  bool as_eval : 1; /* true if the command contains the script's text instead of its hash */
  /* true if the caller has a policy for outages: the call is not sent to a server that is away,
   * but ends at once */
  bool fail_fast : 1;
  bool no_rest : 1; /* Set by the node: a temporary refusal ends the call */
  bool asking : 1;  /* Set by the node: it sends ASKING in front of the call */
  bool broken : 1;  /* true if memory ran out while the call was built */
  bool denied : 1;  /* true if the server refused the needed feature; see belay__call_needs() */
  bool lean : 1;    /* true if the owner can build the command again (belay__call_lean()) */

  uint64_t room[]; /* Memory of the node: node_ops->call_room bytes */
};

#define BELAY__BUFFER_BITS 8 /* a new buffer has 256 bytes */
#define BELAY__TRIES_MAX 31

/* Size of the buffer in bytes. */
static inline size_t belay__call_cap(const belay__call_t *call) {
  return call->data == NULL ? 0 : (size_t)1 << (BELAY__BUFFER_BITS + call->buffer);
}

/* The name of the command, or of the script. */
static inline const char *belay__call_name(const belay__call_t *call) {
  return call->script != NULL ? call->script->name : call->command;
}

#endif /* BELAY_CORE_CALL_STATE_H */
