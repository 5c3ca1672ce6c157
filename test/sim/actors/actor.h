/* Actors: programs that call the library at random, in every permitted order. Each has one handle.
 *
 *    process.c --sim_actors_*()--> actor.c --type->act()--> lock.c, latch.c, cache.c ...
 *                                     ^                        |
 *                                     +-- operations: callbacks that must come, once and in time
 *
 * All calls and callbacks pass through the checkers (check.h). */
#ifndef TEST_SIM_ACTORS_ACTOR_H
#define TEST_SIM_ACTORS_ACTOR_H

#include "belay/request.h"
#include "sim/check/check.h"
#include "sim/scenarios/scenario.h"
#include "sim/world/net.h"
#include "sim/world/server.h"

#define SIM_OPERATIONS 4 /* of an actor */
#define SIM_ANY 1
#define SIM_CALL_MS 2000      /* default timeout_ms of a client */
#define SIM_TICK (2 * SIM_MS) /* limit of delay for due events */

typedef struct sim_actor sim_actor_t;

/* An operation that is to call back. Times without another clock are of the process's clock. */
typedef struct sim_pending {
  bool pending;
  uint64_t called;
  uint64_t since;  /* time of the call by the world's clock */
  uint64_t due;    /* UINT64_MAX: no limit */
  uint64_t rounds; /* not 0: limit from the end of the last pause, at most `limit` */
  uint64_t limit;
} sim_pending_t;

/* The functions of one type of actor. All but act may be NULL. */
typedef struct sim_actor_type {
  size_t size;                    /* of the struct that begins with the sim_actor_t */
  const char *op[SIM_OPERATIONS]; /* names of its operations; the last one is the close */
  /* Permitted statuses of an operation, besides 0, failures of the network or the server, and
   * BELAY_ECANCELED after a cancel. SIM_ANY: every status. */
  int ends[SIM_OPERATIONS][3];
  bool patient;      /* a canceled operation may call back later than at once */
  bool keeps_limits; /* the limits of its operations hold while its process is closed, too */
  /* Call the library to make and to close the handle; return its error. The callback of the close:
   * sim_actor_closed(). */
  int (*make)(sim_actor_t *actor);
  int (*close)(sim_actor_t *actor);
  void (*act)(sim_actor_t *actor); /* its alarm rings */
  void (*ask)(sim_actor_t *actor); /* sends a request: for sim_actor_send_requests() */
  void (*start)(sim_actor_t *actor);
  void (*after_turn)(sim_actor_t *actor); /* a turn of its process's loop is over */
  void (*heal)(sim_actor_t *actor);       /* faults have stopped */
  void (*stop)(sim_actor_t *actor);       /* its process is about to be closed */
  void (*ended)(sim_actor_t *actor);      /* its process has crashed, or is closed */
  /* A server has executed a command of any of these actors. */
  void (*executed)(sim_server_t *server, const engine_bytes_t *argv, size_t argc,
                   engine_bytes_t reply);
} sim_actor_type_t;

extern const sim_actor_type_t sim_lock_type, sim_multilock_type, sim_latch_type, sim_barrier_type,
    sim_election_type, sim_limiter_type, sim_bucket_type, sim_group_type, sim_data_type,
    sim_cache_type, sim_orders_type;

struct sim_actor {
  const sim_actor_type_t *type;
  sim_world_t *world;
  sim_process_t *process;
  unsigned index; /* among the actors of its process */
  char who[16];   /* "p0.1" */
  void *handle;   /* of the library; NULL: none */
  sim_alarm_t alarm;
  bool stopping; /* its process is being closed: nothing new is started */
  bool healing;  /* faults have stopped: it only does what it needs to be served */
  bool served;   /* since then */
  sim_pending_t op[SIM_OPERATIONS];
  bool canceled[SIM_OPERATIONS];
  belay_request_t request[SIM_OPERATIONS - 1]; /* of the operations before the close */
};

/* ---- all actors of a process ---- */

/* Makes the actors of a process that is UP. They begin to act by themselves. */
void sim_actors_start(sim_process_t *process);
/* The process has crashed, or is closed: frees its actors. */
void sim_actors_end(sim_process_t *process);
/* The process is being closed: its actors start nothing new. */
void sim_actors_stop(sim_process_t *process);
/* Faults have stopped: each actor succeeds once more, waiting as long as it takes, and then
 * stops. */
void sim_actors_heal(sim_process_t *process);
/* True if all actors were served since then. */
bool sim_actors_served(const sim_process_t *process);
void sim_actors_after_turn(sim_process_t *process);
void sim_actors_executed(sim_server_t *server, const engine_bytes_t *argv, size_t argc,
                         engine_bytes_t reply);

/* Actor i of all processes; NULL: its process is down. */
sim_actor_t *sim_actor_at(const sim_world_t *world, unsigned i);
unsigned sim_actors_count(const sim_world_t *world);

/* State that all actors of the world share: zeros at first. */
void *sim_shared(sim_world_t *world, size_t size);

/* ---- for the types of actors ---- */

bool sim_actor_chance(sim_actor_t *actor, unsigned per_mille);
uint64_t sim_actor_between(sim_actor_t *actor, uint64_t min, uint64_t max);
/* Sets its alarm, unless it is stopping. */
void sim_actor_later(sim_actor_t *actor, uint64_t ns);
/* The same, with the scenario's think time; shorter while healing. */
void sim_actor_think(sim_actor_t *actor);

/* Calls the library and checks the return value, which may be 0, `may`, or BELAY_ENOMEM while
 * allocations fail. Returns true if it is 0. */
#define SIM_CALL(actor, name, may, call)                                                           \
  (sim_actor_enter(actor), sim_actor_leave(actor, name, call, may))
void sim_actor_enter(sim_actor_t *actor);
bool sim_actor_leave(sim_actor_t *actor, const char *name, int error, int may);
/* The same with one expected return value, or `may`. */
void sim_actor_expect_return(sim_actor_t *actor, const char *name, int error, int expected,
                             int may);

/* Calls the library to start operation i. If that fails the actor thinks, and false is returned. */
#define SIM_START(actor, i, within_ms, name, may, call)                                            \
  (SIM_CALL(actor, name, may, call) ? (sim_actor_expect(actor, i, within_ms), true)                \
                                    : (sim_actor_think(actor), false))
/* Operation i has to call back within that time. */
void sim_actor_expect(sim_actor_t *actor, unsigned i, int64_t within_ms);
/* The operation is to call back at once. */
void sim_actor_hurry(sim_actor_t *actor, unsigned i);
/* Operation i has called back. The second function checks the status, too. */
void sim_actor_called_back(sim_actor_t *actor, unsigned i, int status);
void sim_actor_ended(sim_actor_t *actor, unsigned i, int status);
/* Operation i was canceled. */
void sim_actor_canceled(sim_actor_t *actor, unsigned i);

/* Makes the handle. */
void sim_actor_make(sim_actor_t *actor);
/* Closes the handle; false if the library refused. All other operations are canceled. */
bool sim_actor_close(sim_actor_t *actor);
/* The callback of a close. */
void sim_actor_closed(sim_actor_t *actor);
bool sim_actor_is_closing(const sim_actor_t *actor);

/* Defines close_FAMILY(), for handles of that family whose data is the actor. */
#define SIM_ACTOR_CLOSE(family)                                                                    \
  static void on_##family##_closed(belay_##family##_t *handle, void *data) {                       \
    (void)handle;                                                                                  \
    sim_actor_closed(data);                                                                        \
  }                                                                                                \
  static int close_##family(sim_actor_t *actor) {                                                  \
    return belay_##family##_close(actor->handle, on_##family##_closed);                            \
  }

/* Initializes request i, with a timeout by chance. Its data is the actor. */
belay_request_t *sim_actor_request(sim_actor_t *actor, unsigned i);
void sim_actor_cancel_request(sim_actor_t *actor, unsigned i);
/* An act(): makes the handle, sends one request after another, cancels a few, closes at times. */
void sim_actor_send_requests(sim_actor_t *actor);

/* Counts a grant. */
void sim_actor_granted(sim_actor_t *actor);
/* During faults a few callbacks take up to 3/2 of a ttl. */
void sim_actor_stall(sim_actor_t *actor, int64_t ttl_ms);
/* Checks "revival" and "loss" of an actor that was granted something. left: nanoseconds for which
 * the library reports it as held. *seen: the deadline at the last check. */
void sim_actor_check_held(const sim_actor_t *actor, uint64_t *seen, uint64_t left);

/* Sets the poll intervals of waiters, if the scenario has them. */
#define SIM_SET_POLLS(options, scenario)                                                           \
  do {                                                                                             \
    if ((scenario)->asleep_ms > 0) {                                                               \
      (options)->retry_min_ms = (scenario)->asleep_ms;                                             \
      (options)->retry_max_ms = (options)->backoff_max_ms = 2 * (scenario)->asleep_ms;             \
    }                                                                                              \
  } while (0)

#endif /* TEST_SIM_ACTORS_ACTOR_H */
