/* A waiter asks the server a question again and again, until the reply is the wanted one.
 * waiter.c has the diagram. */
#ifndef BELAY_SYNC_WAITER_H
#define BELAY_SYNC_WAITER_H

#include "core/call/call.h"
#include "core/client/channel.h"
#include "core/client/client.h"

/* Returned by ops->read beside 0 and errors. BELAY__NOT_YET: another reply. BELAY__FORGOTTEN: the
 * server has forgotten the object, and the wait ends with BELAY_EUNKNOWN. */
#define BELAY__NOT_YET 1
#define BELAY__FORGOTTEN 2

typedef struct belay__waiter belay__waiter_t;

/* The question. No function may call back into the program: they run inside a transition of the
 * waiter. */
typedef struct belay__waiter_ops {
  /* Adds the words of the question. */
  void (*build_query)(belay__waiter_t *waiter, belay__call_t *call);

  /* Reads the reply. Returns 0 (the wanted one), BELAY__NOT_YET, BELAY__FORGOTTEN, BELAY_EPROTO
   * or another error. *holds_ms: time for which "not yet" stays true at most, if the reply
   * tells; else unchanged. */
  int (*read)(belay__waiter_t *waiter, const belay__reply_t *reply, int64_t *holds_ms);

  /* Adds the words of the call that undoes a question, for a wait that ends without the wanted
   * reply; and reads its reply: 0 (the wanted reply had come after all), BELAY__NOT_YET
   * (undone), or an error. NULL: a question leaves nothing on the server. */
  void (*build_withdraw)(belay__waiter_t *waiter, belay__call_t *call);
  int (*read_withdraw)(belay__waiter_t *waiter, const belay__reply_t *reply);

  /* The question was not answered, or refused. May be NULL. */
  void (*failed)(belay__waiter_t *waiter, int status);

  /* The wait is over, with waiter->status. */
  void (*finished)(belay__waiter_t *waiter);
} belay__waiter_ops_t;

/* Times in milliseconds. */
typedef struct belay__waiter_config {
  uint32_t retry_min, retry_max, backoff_max, timeout;
  uint32_t max_interval; /* upper limit of the time between questions; 0: none */
  /* The server forgets a waiter that did not ask for this time: then the wait ends with
   * BELAY_EUNKNOWN. Waiters ask at least four times in it. 0: never. */
  uint32_t forgotten_after;
  bool retry_lasting; /* asks again after lasting refusals, too */
} belay__waiter_config_t;

typedef enum belay__waiter_state {
  BELAY__WAITER_IDLE,
  BELAY__WAITER_ASKING,  /* the question was sent */
  BELAY__WAITER_WAITING, /* until the next question is due */
  BELAY__WAITER_LEAVING  /* the command of ops->build_withdraw was sent */
} belay__waiter_state_t;

struct belay__waiter {
  const belay__waiter_ops_t *ops;
  belay_client_t *client;
  belay__waiter_config_t config;
  belay__subscription_t subscription;
  belay__timer_t timer; /* WAITING: the next question, or the end of the wait */
  belay__call_t *call;  /* ASKING, LEAVING */
  const char *channel;  /* a message on it is a reason to ask; memory of the owner */
  size_t channel_len;
  uint64_t wait_until; /* 0: asks once */
  uint64_t asked_at;   /* time of the last question */
  uint64_t known_at;   /* time of the first question, or of the last one with a reply */
  uint32_t route;
  uint32_t not_yet_count, failures; /* consecutive replies of "not yet"; consecutive failures */
  int last;                         /* status of the wait if nothing better comes */
  int status;                       /* IDLE: of the last wait */
  uint8_t state;
  bool limited;      /* ASKING: the end of the wait may cut the question short */
  bool ask_again;    /* ASKING: a message came meanwhile */
  bool may_exist;    /* the server may have executed a question */
  bool may_run_late; /* a question of this wait or the last one may be executed at any time */
  bool gap;          /* messages were lost, for all waiters of the connection */
};

/* channel: stays valid as long as the waiter is used. */
void belay__waiter_init(belay__waiter_t *waiter, const belay__waiter_ops_t *ops,
                        belay_client_t *client, const belay__waiter_config_t *config,
                        const char *channel, size_t channel_len);

/* Begins a wait and asks at once. wait_ms: 0: asks once; BELAY_FOREVER: no limit. In IDLE only. */
void belay__waiter_start(belay__waiter_t *waiter, int64_t wait_ms);

/* Ends the wait with a status, after a withdrawal where that is needed. Not in IDLE. */
void belay__waiter_cancel(belay__waiter_t *waiter, int status);

/* Asks soon: something happened that may change the reply. */
void belay__waiter_ask_soon(belay__waiter_t *waiter);

/* Ends a wait that is on at once: with BELAY_ECANCELED, or BELAY_EUNKNOWN if something may stay
 * on the server. */
void belay__waiter_stop(belay__waiter_t *waiter);

static inline bool belay__waiter_is_on(const belay__waiter_t *waiter) {
  return waiter->state != BELAY__WAITER_IDLE;
}

#endif /* BELAY_SYNC_WAITER_H */
