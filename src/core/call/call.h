/* A call: one command on its way to a server and back.
 *
 *   new --args--> BUILDING --send--> QUEUED --handed to a connection--> SENT --reply--> over
 *                                     ^  |                              |  |
 *          RESTING --time to retry----+  +--deadline: NOT_SENT--> over  |  +--drop--> UNKNOWN, over;
 *             ^                      ^                                 |  |           or back to QUEUED
 *             +--------a refusal that may pass, deadline ahead---------+  |           if not a byte left
 *                                    +--MOVED, ASK: five times in a row---+
 *                                                                      |
 *                                        deadline: UNKNOWN, then LATE -+--reply or drop--> settled, over
 *
 * done is called exactly once, settled at most once and after it. When the last of them has returned the call
 * goes back to its client's pool. Neither is called inside belay__call_send(). */
#ifndef BELAY_CORE_CALL_CALL_H
#define BELAY_CORE_CALL_CALL_H

#include "core/loop/loop.h"
#include "core/call/reply.h"
#include "core/call/script.h"

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
  belay__call_cb done, settled;  /* either may be NULL */
  void *owner;                   /* the caller's */
  const belay__script_t *script; /* NULL for a plain command */
  const char *command;           /* its name, for traces */

  uint64_t id;         /* numbers the client's calls from 1 */
  uint64_t started;    /* when it was sent by its caller */
  uint64_t deadline;   /* when it is over for its caller */
  uint64_t first_sent; /* when a byte of it may first have left; 0: never */
  uint64_t offset;     /* the node's: where it begins in the connection's stream of bytes */
  uint32_t epoch;      /* the connection that it was last handed to; 0: none */
  uint32_t part;       /* its owner's: which of its calls it is */
  uint32_t
      affinity; /* calls of one lane with the same one share a connection, as far as their keys let them; of one
                        without a key it tells the slot (core/key/key.h) */
  void *at; /* the node's: in which of its queues it stands */

  uint8_t state; /* belay__call_state_t */
  uint8_t lane;  /* belay__lane_t */
  uint8_t tries; /* rests so far */
  uint8_t hops;  /* redirections since it was last sent anew */
  bool urgent;   /* not subject to the client's limits: it gives something back */
  bool once;     /* not sent again after a refusal: it would come behind what was sent later */
  bool follows;  /* belongs behind the call before it, on the same connection: */
  bool followed; /* neither of the two is sent again after a refusal */
  bool apart;    /* its owner's: it is sent together with others, and belongs behind none of them */
  bool stale;    /* belay__call_stale() */
  bool asking;   /* the node's: it goes where its slot is on its way to */
  bool repeated; /* its owner's: it is sent again, and what became of the first time is not known */
  bool as_eval;  /* the script's text is in it, not its hash */
  bool
      fail_fast; /* its caller has a policy for outages: it is not sent to a server that is away, and ends at once */
  bool no_rest;  /* the node's: a refusal that may pass ends it */
  bool broken;   /* memory ran out while it was built */
  bool counted;  /* it is in the client's figures */
  uint8_t needs; /* what the server must be able to do: 1 + a belay__capability_t; 0: nothing new */
  bool denied;   /* belay__call_needs() */
  int last_error; /* of the refusal before a rest */

  size_t tail; /* where the arguments after the script begin */
  size_t
      publisher; /* where the word is that is decided on when it is handed over (core/call/publish.h); 0: there is none */
  size_t len, cap;
  char *data; /* the command as it goes over the wire */
};

/* Takes a call from the pool; NULL if memory is out. It has no deadline yet: set call->deadline,
 * call->affinity, call->done, call->owner before it is sent. */
belay__call_t *belay__call_new(belay_client_t *client, belay__lane_t lane);

/* Begins a command of argc words (its name included), or a script with that many keys and other arguments: by its
 * hash, unless it is the first on its connection (belay__call_bring_script()). */
void belay__call_command(belay__call_t *call, const char *name, size_t argc);
void belay__call_script(belay__call_t *call, const belay__script_t *script, size_t keys,
                        size_t args);
/* The same with the script's text in any case, for a call that is followed: it could not fall back to it later. */
void belay__call_script_text(belay__call_t *call, const belay__script_t *script, size_t keys,
                             size_t args);

/* For the node, before it hands over a call: of a script whose text has not gone over this connection yet it has the text
 * in it from now on. One that the server does not know would need a second trip, and a call behind it would overtake it.
 * brought: of the connection, nothing at its beginning. */
void belay__call_bring_script(belay__call_t *call, belay__scripts_t *brought);

/* Adds one argument; and one that is made of two pieces. */
void belay__call_arg(belay__call_t *call, const char *data, size_t len);
void belay__call_arg_joined(belay__call_t *call, const char *a, size_t a_len, const char *b,
                            size_t b_len);
void belay__call_arg_int(belay__call_t *call, int64_t value);
void belay__call_arg_uint(belay__call_t *call, uint64_t value);

/* It only reads, and what is a little old will do: a replica may answer it, if the client wants that. NULL, which it may
 * be given, or the call. */
belay__call_t *belay__call_stale(belay__call_t *call);

/* The command is one that not every server has, and there is another way. If it is refused because of that, call->denied
 * is set in done: the user may not run it, or it came to another server than it was made for. Then it is not used any more
 * while that connection lasts. */
void belay__call_needs(belay__call_t *call, belay__capability_t what);
/* For the node, before belay__call_reply(): what the connection counts as unable to do from now on, a bit of a
 * belay__capability_t; 0: nothing new. */
unsigned belay__call_denied(belay__call_t *call, const belay__reply_t *reply);

/* The first key of a script that was called; of another command the first word behind its name. NULL: it has no key. */
const char *belay__call_key(const belay__call_t *call, size_t *len);

/* What is kept at that key is not what it must be: makes text, behind the key, the detail of the error, which is
 * returned. */
int belay__call_blame(const belay__call_t *call, int error, const char *text);
/* The same of another of its keys. */
int belay__call_blame_key(const belay__call_t *call, const char *key, size_t key_len, int error,
                          const char *text, size_t text_len);

/* The slot that it belongs to: its first key's; of one that has none, the affinity's. */
uint16_t belay__call_slot(const belay__call_t *call);

/* The words of another call, which is not broken, for a call that has none yet. */
void belay__call_repeat(belay__call_t *call, const belay__call_t *said);

/* The same command again, to be sent by itself, from inside done: with its deadline, affinity, owner and settled;
 * done is to be set. NULL if memory is out. */
belay__call_t *belay__call_copy(const belay__call_t *call);

/* Sends n calls, all or none, on one connection: contiguous there, but for those that are apart. On an error nothing was
 * sent, none of them calls back, and all are given back to the pool. Returns 0, BELAY_ENOMEM, BELAY_EBUSY or a lasting
 * error of the deployment, such as BELAY_EAUTH. */
int belay__call_send(belay__call_t **calls, size_t n);

/* The caller is not interested any more: neither done nor settled will be called, no retry and no
 * fallback is made. Returns true if the server may have executed the call, or still may. */
bool belay__call_abandon(belay__call_t *call);

/* Gives back n calls that were not sent: they were built for nothing. */
void belay__calls_discard(belay__call_t *const *calls, size_t n);

/* The client closes: what rests is over. */
void belay__call_end_rests(belay_client_t *client);

/* There is a new connection, and so reason to hope: what rests does not rest for long any more. */
void belay__call_hurry_rests(belay_client_t *client);

/* The caller cannot read the reply. A plain command's reply then comes from a connection that cannot be trusted, and so
 * does a nil or a status to a script, since no script replies these: the connection is dropped. What else a script
 * replies is made of what its keys hold, and says nothing about the connection: only this call fails. Is called from
 * inside done or settled. */
void belay__call_distrust(belay__call_t *call, const belay__reply_t *reply);

/* ---- for the node --------------------------------------------------------------------------------------- */

/* A call was handed to the connection of that number. */
void belay__call_sent(belay__call_t *call, uint32_t epoch);

/* Its reply came. */
belay__verdict_t belay__call_reply(belay__call_t *call, const belay__reply_t *reply);

/* After BELAY__VERDICT_REDIRECT, for it and all that belong behind it, when they have been answered too: whether it may
 * go elsewhere; it does, and is as if it had not been sent; or it does not, with that error. With BELAY_ECLUSTERDOWN it is
 * tried again later where it may be and there is time, else it is over. reply: which tells why, or NULL. */
bool belay__call_may_redirect(const belay__call_t *call);
void belay__call_redirect(belay__call_t *call);
void belay__call_stay(belay__call_t *call, const belay__reply_t *reply, int error);

/* Its connection is gone, or will never be. If no byte of the call left and its caller still waits, it is to
 * be queued again and true is returned; else it is over, and error says why. */
bool belay__call_dropped(belay__call_t *call, bool sent, int error);

/* The deployment refuses every call for a lasting reason: a queued call is over. */
void belay__call_refused(belay__call_t *call, int error);

#endif /* BELAY_CORE_CALL_CALL_H */
