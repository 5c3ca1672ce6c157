/* A waiter: waits until a question has the answer that one wants. waiter.c has the diagram. */
#ifndef BELAY_SYNC_WAITER_H
#define BELAY_SYNC_WAITER_H

#include "core/call/call.h"
#include "core/client/channel.h"
#include "core/client/client.h"

#define BELAY__NOT_YET 1 /* an answer, but not the one that is wanted */
#define BELAY__FORGOTTEN                                                                           \
  2 /* it will never come: what was waited for is forgotten. BELAY_EUNKNOWN */

typedef struct belay__waiter belay__waiter_t;

/* What is asked, and of whom the waiter is. Nothing here may call a user's function: the waiter is in the middle of a
 * transition. */
typedef struct belay__waiter_ops {
  /* Fills in the question. */
  void (*ask)(belay__waiter_t *waiter, belay__call_t *call);

  /* Reads the answer: 0 it is what was waited for; BELAY__NOT_YET (*holds_ms is how long that will stay so at most,
   * if it is known); BELAY__FORGOTTEN; BELAY_EPROTO or another error. */
  int (*read)(belay__waiter_t *waiter, const belay__reply_t *reply, int64_t *holds_ms);

  /* What to say when the wait ends without the answer, because what was asked has left something on the server; and
   * how that is answered: 0 the answer had come after all; BELAY__NOT_YET it is taken back. NULL: nothing. */
  void (*leave)(belay__waiter_t *waiter, belay__call_t *call);
  int (*left)(belay__waiter_t *waiter, const belay__reply_t *reply);

  /* The question was not answered, or refused. NULL: nobody wants to know. */
  void (*missed)(belay__waiter_t *waiter, int status);

  /* The wait is over: waiter->status says how. */
  void (*over)(belay__waiter_t *waiter);
} belay__waiter_ops_t;

/* How it is waited; milliseconds. */
typedef struct belay__waiter_terms {
  uint32_t retry_min, retry_max, backoff_max, timeout;
  /* It asks so often at least, and four times in forgotten_after; 0: as the others say. */
  uint32_t most_apart;
  /* Who has not been answered for so long, after something was asked, cannot know any more: BELAY_EUNKNOWN; 0:
   * never. */
  uint32_t forgotten_after;
  bool stubborn; /* refusals that last are sat out too */
} belay__waiter_terms_t;

typedef enum belay__waiter_state {
  BELAY__WAITER_IDLE,    /* made; or the wait is over */
  BELAY__WAITER_ASKING,  /* the question is out */
  BELAY__WAITER_WAITING, /* it was answered otherwise, or not at all; the next one is not due yet */
  BELAY__WAITER_LEAVING  /* nobody waits any more, and that is being said */
} belay__waiter_state_t;

struct belay__waiter {
  const belay__waiter_ops_t *ops;
  belay_client_t *client;
  belay__waiter_terms_t terms;
  belay__ear_t ear;
  belay__timer_t timer; /* WAITING: when to ask again, or the end */
  belay__call_t *call;  /* ASKING, LEAVING */
  const char
      *channel; /* the owner's memory; what is said there means that it may be worth asking */
  size_t channel_len;
  uint64_t wait_until; /* 0: asks once */
  uint64_t asked_at;
  uint64_t sure_at; /* the server has answered what was asked then, or was first asked then */
  uint32_t affinity;
  uint32_t vain, failures; /* answers in a row that were not the one; that were none */
  int last;                /* what the wait ends with if nothing better comes */
  int status;              /* what it has ended with */
  uint8_t state;
  bool limited; /* ASKING: the question may be cut short by the end of the wait */
  bool again;   /* ASKING: something was heard meanwhile */
  bool maybe;   /* the server may have been asked */
  bool
      astray; /* something that was asked in this wait, or the last one, may be executed at any time */
  bool gap; /* messages were lost: everybody else has that too */
};

/* The channel stays the owner's. */
void belay__waiter_init(belay__waiter_t *waiter, const belay__waiter_ops_t *ops,
                        belay_client_t *client, const belay__waiter_terms_t *terms,
                        const char *channel, size_t channel_len);

/* Begins: asks at once. wait_ms: for so long; 0: asks once; BELAY_FOREVER. Not while one is going on. */
void belay__waiter_start(belay__waiter_t *waiter, int64_t wait_ms);

/* Ends the wait with a status: takes back what is to be taken back first. Not in IDLE. */
void belay__waiter_cancel(belay__waiter_t *waiter, int status);

/* Something has happened that makes it worth asking. */
void belay__waiter_look(belay__waiter_t *waiter);

/* Ends at once, if it is on: with BELAY_ECANCELED, or BELAY_EUNKNOWN if something may be left on the server. */
void belay__waiter_stop(belay__waiter_t *waiter);

static inline bool belay__waiter_is_on(const belay__waiter_t *waiter) {
  return waiter->state != BELAY__WAITER_IDLE;
}

#endif /* BELAY_SYNC_WAITER_H */
