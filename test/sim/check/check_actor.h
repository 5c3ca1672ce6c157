/* A watched lock: an actor's calls of its lock handle, and their callbacks, pass through the
 * checkers.
 *
 *    actor.c --acquire, release ...--> sim_watch_*() --> belay_lock_*()
 *       ^                                                     |
 *       +-- told(), lost() <-- rules about callbacks <-- belay's callbacks
 *
 * The functions are belay's; with `deaf` the callback is NULL. Return values are checked, too. */
#ifndef TEST_SIM_CHECK_CHECK_ACTOR_H
#define TEST_SIM_CHECK_CHECK_ACTOR_H

#include "belay/lock.h"
#include "sim/world/process.h"
#include "sim/world/world.h"

typedef struct sim_watch sim_watch_t;
typedef struct sim_token sim_token_t; /* check_state.h */

typedef enum sim_op {
  SIM_ACQUIRE,
  SIM_RELEASE,
  SIM_EXTEND,
  SIM_CLOSE, /* told when the handle is gone, also when a client's close took it along */
  SIM_OPS
} sim_op_t;

/* An operation that is to call back. Times are of the process's clock. */
typedef struct sim_pending {
  bool pending;
  uint64_t called; /* by the process's clock */
  uint64_t since;  /* and by the world's */
  uint64_t due;    /* UINT64_MAX: whenever */
  uint64_t rounds; /* not 0: time since the process last stood still; at most `limit` */
  uint64_t limit;
} sim_pending_t;

struct sim_watch {
  /* Set before sim_watch_begin(). */
  sim_process_t *process;
  unsigned index; /* among the process's actors */
  void (*told)(sim_watch_t *watch, sim_op_t op, int status);
  void (*lost)(sim_watch_t *watch, belay_lost_t reason);

  char who[16];
  belay_lock_t *lock; /* NULL: there is no handle */
  unsigned owner;     /* REENTRANT: which of its process's */
  unsigned permits;   /* SEMAPHORE: how many it asks for */
  bool writer;        /* RWLOCK: it is one, or wants to be */
  enum { SIM_STAYS, SIM_TURNS_READER, SIM_TURNS_WRITER } turning; /* RWLOCK: the present extend */
  belay_lock_options_t options;                                   /* of that */
  unsigned name;

  sim_pending_t op[SIM_OPS];
  int64_t wait_ms; /* of the present acquire */
  bool canceled;   /* the present acquire was */
  bool closing;    /* the handle or its client is closing: only its callbacks are left */
  bool taken_away; /* the client's, or belay's: the handle goes without a callback of its own */
  bool late_loss;  /* at the close, a loss was still to be reported */
  bool deaf, deaf_extend; /* released, extended without a callback: it may still go on */
  belay_client_t *with;   /* the client whose close took it along */

  /* The present hold. */
  bool held;        /* granted, and neither lost nor given back */
  bool lost_taken;  /* the last one ended so */
  uint64_t seen;    /* the deadline when it was last looked at, by the process's clock */
  uint64_t before;  /* the end of the lease if an extend fails */
  uint64_t granted; /* the world's time */
  uint64_t granted_clock, ordinal, floor, number;
  uint64_t
      floor_over; /* REENTRANT: the largest number of those that were over when it was asked for */
  uint64_t called_clock; /* when that was, by the process's clock */
  sim_token_t *token;
  unsigned counted;      /* a bit for each server whose vote counted when it was granted */
  uint64_t floor_number; /* lower bound of its number */
};

/* Chooses the options of the next handle, and its owner, permits and mode. actor_options.c */
void sim_choose_options(sim_watch_t *watch, belay_lock_options_t *options);

void sim_watch_begin(sim_watch_t *watch);
/* The process has crashed, or is closed. */
void sim_watch_end(sim_watch_t *watch);

/* Makes a handle for a name, of the scenario's kind; false if that failed. Set owner, permits
 * and writer before. */
bool sim_watch_make(sim_watch_t *watch, unsigned name, const belay_lock_options_t *options);
int sim_watch_acquire(sim_watch_t *watch, int64_t wait_ms);
int sim_watch_release(sim_watch_t *watch, int64_t timeout_ms, bool deaf);
int sim_watch_extend(sim_watch_t *watch, int64_t ttl_ms, int64_t timeout_ms, bool deaf);
/* A writer turns reader, or a reader writer: an extend that is answered as such. */
int sim_watch_turn(sim_watch_t *watch, int64_t timeout_ms);
int sim_watch_cancel(sim_watch_t *watch);
int sim_watch_close(sim_watch_t *watch);

/* Its client is about to be closed (NULL: belay is), and takes the handle along; and the client's callback has
 * come. */
void sim_watch_taken(sim_watch_t *watch, belay_client_t *with);
void sim_watch_gone(sim_watch_t *watch);

/* Pings a server, if there is a client for it. */
void sim_watch_ping(sim_process_t *process, unsigned server, int64_t timeout_ms);

/* A callback takes its time. */
void sim_watch_stall(sim_process_t *process, uint64_t ns);

/* Writes to the resource that the held lock guards; the write arrives after `delay`, in any
 * state. False: not held, or without fencing. */
bool sim_watch_write(sim_watch_t *watch, uint64_t delay);

/* A client is about to be closed (1), has been (-1), or will be together with its process (0). */
void sim_watch_client(const belay_client_t *client, int closing);

static inline bool sim_watch_is_idle(const sim_watch_t *watch) {
  return watch->lock != NULL && !watch->closing && !watch->held &&
         !watch->op[SIM_ACQUIRE].pending && !watch->op[SIM_RELEASE].pending;
}

#endif /* TEST_SIM_CHECK_CHECK_ACTOR_H */
