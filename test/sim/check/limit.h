/* The outside view of limits in a world: requests, the server's actions, and times.
 * check_limit.c has the rules, limiter.c the requests.
 *
 *    bound    in any interval of the server's clock, a key admits at most its policy's tokens;
 *             reservations count at their time
 *    due      no request is denied while there is room
 *    truth    a request is executed at most once; callbacks agree with the server
 *    order    a wait does not end before its reservation's time; waits of one key and handle end
 *             in the server's order
 *
 * All costs of a world differ, so a cost identifies its request: its remainder is a number. */
#ifndef TEST_SIM_CHECK_LIMIT_H
#define TEST_SIM_CHECK_LIMIT_H

#include "belay/limiter.h"
#include "sim/actors/actor.h"

#define SIM_LIMIT_REQUESTS 32768
#define SIM_LIMIT_HEALING_REQUESTS 2048 /* when the storm is over */
#define SIM_LIMIT_MOST                                                                             \
  (INT64_C(64) << 15) /* tokens: the largest burst, or count; 64 SIM_LIMIT_REQUESTS */
#define SIM_LIMIT_KEYS SIM_KEYS
#define SIM_LIMIT_LONGEST_MS UINT64_C(5000) /* waits, when the storm is over */
#define SIM_LIMIT_ID 32                     /* a reservation's, as text */

typedef enum sim_limit_kind {
  SIM_LIMIT_TAKE = 1,
  SIM_LIMIT_PENALTY,
  SIM_LIMIT_REFUND,
  SIM_LIMIT_RESERVE,
  SIM_LIMIT_WAIT,
  SIM_LIMIT_SLICE /* by the library itself, ahead */
} sim_limit_kind_t;

typedef struct sim_limit_request {
  uint8_t kind; /* 0: none */
  uint8_t key;
  bool unsent;    /* true if a callback said that it was not sent or was refused */
  bool admitted;  /* by the server */
  bool canceled;  /* it has executed that the reservation be given back */
  bool forgotten; /* true after a reset */
  bool acted;     /* true after the request was admitted in a callback */
  unsigned executed;
  unsigned of; /* REFUND: the refunded request */
  int64_t cost;
  int64_t returned;       /* canceled: so much */
  uint64_t at_us;         /* when it was executed first, by the server's clock */
  uint64_t acts_us;       /* when it may act */
  uint64_t remembered_us; /* until then a reservation is the same one, */
  uint64_t rest_us;       /* and cancelled requests stay so */
  char id[SIM_LIMIT_ID];  /* RESERVE, WAIT: as far as the server has seen it */
  unsigned next;          /* in its slot */
  uint8_t process;        /* SLICE: whose it is, */
  unsigned life;          /* and of which life */
} sim_limit_request_t;

/* Sets the policy of the world, by chance, before anything else. */
typedef struct sim_limits sim_limits_t;
sim_limits_t *sim_limits_of(sim_world_t *world);
const belay_limit_t *sim_limits_policy(const sim_limits_t *limits, size_t *n);
/* Slices: how many tokens, for how long. */
int64_t sim_limits_slice(const sim_limits_t *limits, uint32_t *lease_ms);
int64_t sim_limits_most(const sim_limits_t *limits); /* the smallest burst, or count */

/* Registers a request; returns its number, or 0 if there are no more. cost becomes cost *
 * SIM_LIMIT_REQUESTS plus the number. */
unsigned sim_limits_number(sim_world_t *world, sim_limit_kind_t kind, unsigned key, uint64_t times);
sim_limit_request_t *sim_limits_request(sim_world_t *world, unsigned number);

/* Checks that the status of a callback fits its verdict. */
void sim_limits_status(const sim_actor_t *actor, int status, const belay_limiter_result_t *result);
/* Checks the result of a callback. */
void sim_limits_result(sim_actor_t *actor, unsigned number, const belay_limiter_result_t *result);

/* The process of the actor has crashed, or is closed. */
void sim_limits_ended(sim_actor_t *actor);

/* A server has executed this. */
void sim_limits_executed(sim_server_t *server, const engine_bytes_t *argv, size_t argc,
                         engine_bytes_t reply);

#endif /* TEST_SIM_CHECK_LIMIT_H */
