/* A waiter asks the server a question again and again, until the reply is the wanted one.
 * waiter.c has the diagram. */
#ifndef BELAY_SYNC_WAITER_H
#define BELAY_SYNC_WAITER_H

#include "core/call/call.h"
#include "core/client/channel.h"
#include "core/client/client.h"

/* Returned by ops->read beside 0 and errors. BELAY__NOT_YET: a valid reply, but not the wanted one;
 * the waiter asks again. BELAY__FORGOTTEN: the server has forgotten the object, and the wait ends
 * with BELAY_EUNKNOWN. */
#define BELAY__NOT_YET 1
#define BELAY__FORGOTTEN 2

typedef struct belay__waiter belay__waiter_t;

/* The functions of a question. None of them may run a callback of the program, because they run
 * inside a transition of the waiter. */
typedef struct belay__waiter_ops {
  /* Adds the words of the question to a new call. */
  void (*build_query)(belay__waiter_t *waiter, belay__call_t *call);

  /* Reads the reply. Returns 0 (the wanted one), BELAY__NOT_YET, BELAY__FORGOTTEN, BELAY_EPROTO
   * or another error. *holds_ms: longest time in ms for which the reply "not yet" can stay true;
   * unchanged if the reply does not have it. */
  int (*read)(belay__waiter_t *waiter, const belay__reply_t *reply, int64_t *holds_ms);

  /* The withdrawal: a call that undoes a question, after a wait without the wanted reply.
   * build_withdraw adds its words. read_withdraw reads its reply, and returns 0 (the wanted
   * condition was met after all), BELAY__NOT_YET (undone), or an error. NULL: a question leaves
   * nothing on the server. */
  void (*build_withdraw)(belay__waiter_t *waiter, belay__call_t *call);
  int (*read_withdraw)(belay__waiter_t *waiter, const belay__reply_t *reply);

  /* A question failed: it was not sent, not answered, or refused. May be NULL. */
  void (*failed)(belay__waiter_t *waiter, int status);

  /* The wait is over, with waiter->status. */
  void (*finished)(belay__waiter_t *waiter);
} belay__waiter_ops_t;

/* Times in milliseconds. */
typedef struct belay__waiter_config {
  uint32_t retry_min, retry_max, backoff_max, timeout;
  uint32_t max_interval; /* upper limit of the time between questions; 0: none */
  /* After this time without a reply the server may have forgotten the waiter: the wait ends with
   * BELAY_EUNKNOWN. A waiter asks at least four times in this time. 0: the server never forgets. */
  uint32_t forgotten_after;
  bool retry_lasting; /* true if a refusal that is lasting does not end the wait */
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
  /* Time when the last question with the reply "not yet" was sent; before that reply: the first
   * question that the server may have executed */
  uint64_t known_at;
  uint32_t route;
  uint32_t not_yet_count, failures; /* consecutive replies of "not yet"; consecutive failures */
  int last;   /* status with which the wait ends, unless a later reply changes it */
  int status; /* IDLE: of the last wait */
  uint8_t state;
  bool limited;   /* ASKING: true if the deadline of the question is the end of the wait */
  bool ask_again; /* true if a message came since the question was sent */
  bool may_exist; /* true if the server may have executed a question of this wait */
  /* true if a call of this wait has no reply and may be executed later; IDLE: of the last wait */
  bool may_run_late;
  bool gap; /* true from a loss of messages until the subscription is confirmed again */
};

/* Initializes a waiter in the state IDLE. The memory of `channel` must stay valid as long as the
 * waiter is used. */
void belay__waiter_init(belay__waiter_t *waiter, const belay__waiter_ops_t *ops,
                        belay_client_t *client, const belay__waiter_config_t *config,
                        const char *channel, size_t channel_len);

/* Begins a wait and asks at once. wait_ms: 0: asks once; BELAY_FOREVER: no limit. In IDLE only. */
void belay__waiter_start(belay__waiter_t *waiter, int64_t wait_ms);

/* Ends the wait with a status. If the server may have executed a question, a withdrawal comes
 * first; it can change the status to 0 or BELAY_EUNKNOWN. Not in IDLE. */
void belay__waiter_cancel(belay__waiter_t *waiter, int status);

/* Sends the next question soon. The caller calls this when the reply may have changed. No effect in
 * IDLE. */
void belay__waiter_ask_soon(belay__waiter_t *waiter);

/* Ends the wait at once, without a withdrawal. The status is BELAY_ECANCELED, or BELAY_EUNKNOWN if
 * a question may have left something on the server. In LEAVING, an error that ended the wait stays
 * the status. No effect in IDLE. */
void belay__waiter_stop(belay__waiter_t *waiter);

static inline bool belay__waiter_is_on(const belay__waiter_t *waiter) {
  return waiter->state != BELAY__WAITER_IDLE;
}

#endif /* BELAY_SYNC_WAITER_H */
