/* A hand: an actor with another handle than a lock of belay/lock.h, and the common part of all
 * of them.
 *
 *    actor.c --sim_hands_*()--> hand.c --trade->act()--> multilock.c, latch.c, election.c, limiter.c ...
 *                                  ^                           |
 *                                  +-- promises: callbacks that must come, once and in time */
#ifndef TEST_SIM_ACTORS_HAND_H
#define TEST_SIM_ACTORS_HAND_H

#include "sim/check/check_state.h"
#include "sim/scenarios/scenario.h"

#define SIM_PROMISES 3 /* of a hand */
#define SIM_ANY 1

typedef struct sim_hand sim_hand_t;

/* The functions of one kind of hands. */
typedef struct sim_trade {
  size_t size;                  /* of the struct that begins with the sim_hand_t */
  const char *op[SIM_PROMISES]; /* names of its promises; the last one is the close */
  /* Other ends of a promise than success, a failure of the network or the server, and BELAY_ECANCELED after a
   * cancel. SIM_ANY: every status. */
  int ends[SIM_PROMISES][3];
  bool patient;                   /* a canceled promise need not be kept at once */
  void (*act)(sim_hand_t *hand);  /* it is time to do something */
  void (*turn)(sim_hand_t *hand); /* a turn of its process's loop is over; may be NULL */
  void (*rest)(sim_hand_t *hand); /* its process is about to be closed; may be NULL */
  void (*gone)(sim_hand_t *hand); /* its process has crashed, or is closed; may be NULL */
  /* A server has executed this, for any of them; may be NULL. */
  void (*executed)(sim_server_t *server, const engine_word_t *argv, size_t argc,
                   engine_word_t reply);
} sim_trade_t;

extern const sim_trade_t sim_multilock_trade, sim_latch_trade, sim_barrier_trade,
    sim_election_trade, sim_limiter_trade, sim_bucket_trade, sim_data_trade, sim_cache_trade,
    sim_orders_trade;

struct sim_hand {
  const sim_trade_t *trade;
  sim_process_t *process;
  unsigned index;
  char who[16];
  sim_alarm_t alarm;
  bool resting; /* its process is being closed: nothing new is started */
  bool healing; /* faults have stopped: it does what has to be done to be served */
  bool cured;   /* it was */
  sim_pending_t promise[SIM_PROMISES];
  bool canceled[SIM_PROMISES];
};

/* As sim_actors_*() of actor.h. */
void sim_hands_start(sim_process_t *process);
void sim_hands_end(sim_process_t *process);
void sim_hands_rest(sim_process_t *process);
void sim_hands_heal(sim_process_t *process);
bool sim_hands_served(const sim_process_t *process);
/* A turn of its loop is over. */
void sim_hands_turn(sim_process_t *process);

/* Hand number i of the world's, of all processes; NULL: its process is down. */
sim_hand_t *sim_hand_at(const sim_world_t *world, unsigned i);
unsigned sim_hands_count(const sim_world_t *world);

static inline sim_world_t *sim_world_of(const sim_hand_t *hand) {
  return hand->process->world;
}

bool sim_hand_chance(sim_hand_t *hand, unsigned per_mille);
uint64_t sim_hand_between(sim_hand_t *hand, uint64_t min, uint64_t max);
void sim_hand_later(sim_hand_t *hand, uint64_t ns);
/* Waits like the scenario's programs; shorter at the end, when waiters must be served. */
void sim_hand_think(sim_hand_t *hand);

/* Around each call; leave tells whether it has succeeded, and it has failed otherwise only as it may. */
void sim_hand_enter(sim_hand_t *hand);
bool sim_hand_leave(sim_hand_t *hand, const char *what, int error, int may);

/* a client's default timeout_ms */
#define SIM_CALL_MS 2000 /* a client's timeout_ms where nothing else is said */
void sim_hand_promise(sim_hand_t *hand, unsigned i, int64_t within_ms);
/* It is kept, with a status that it may have. */
void sim_hand_kept(sim_hand_t *hand, unsigned i, int status);
/* It is canceled, and due now. */
void sim_hand_cancel(sim_hand_t *hand, unsigned i);
/* The handle's close was called with this result: all promises are canceled, and the close is promised. */
bool sim_hand_close(sim_hand_t *hand, int error);
/* The handle is closed. */
void sim_hand_closed(sim_hand_t *hand);
/* Whether its close is under way. */
bool sim_hand_is_closing(const sim_hand_t *hand);

/* A request with a timeout by chance, whose data is the hand. */
belay_request_t sim_hand_request(sim_hand_t *hand);
/* Cancels the request of promise i. */
void sim_hand_cancel_request(sim_hand_t *hand, unsigned i, belay_request_t *request);

/* Count a grant. */
void sim_hand_granted(sim_hand_t *hand);
/* Now and then, while there are faults, a callback takes its time: up to 3/2 of a ttl. */
void sim_hand_stall(sim_hand_t *hand, int64_t ttl_ms);
/* Check "revival" and "loss" of a hand that was granted something. left: nanoseconds for which the library calls it
 * held. *seen: the deadline at the last check. A grant that has ended must be reported, and must not come back. */
void sim_hand_believes(const sim_hand_t *hand, uint64_t *seen, uint64_t left);

/* The kind's own account of the world, of that size and zeros at first. */
void *sim_ledger(sim_world_t *world, size_t size);

/* True for each error that a request to a server may end with. */
bool sim_hand_may_fail(const sim_hand_t *hand, int status);

/* A server has executed this. */
void sim_hands_executed(sim_server_t *server, const engine_word_t *argv, size_t argc,
                        engine_word_t reply);

#endif /* TEST_SIM_ACTORS_HAND_H */
