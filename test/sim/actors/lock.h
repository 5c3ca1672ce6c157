/* An actor with a handle of belay/lock.h. Its calls and callbacks pass through the checkers.
 *
 *    lock.c --acquire, release ...--> sim_lock_*(), check_lock.c --> belay_lock_*()
 *       ^                                                                |
 *       +-- sim_lock_ended(), sim_lock_lost() <-- check_result.c <-- callbacks of the library
 *
 * The functions are those of belay; with `silent` the callback is NULL. Return values are
 * checked. */
#ifndef TEST_SIM_ACTORS_LOCK_H
#define TEST_SIM_ACTORS_LOCK_H

#include "belay/lock.h"
#include "lease/kinds/lock.h"
#include "lease/machine/deadline.h"
#include "sim/actors/actor.h"

typedef struct sim_lock sim_lock_t;
typedef struct sim_token sim_token_t; /* check_state.h */

/* SIM_CLOSE ends when the handle is gone, also by the close of a client. */
typedef enum sim_op { SIM_ACQUIRE, SIM_RELEASE, SIM_EXTEND, SIM_CLOSE } sim_op_t;

struct sim_lock {
  sim_actor_t base; /* first */
  belay_lock_t *handle;
  unsigned name;
  unsigned owner;   /* REENTRANT: one of those of its process */
  unsigned permits; /* SEMAPHORE */
  bool writer;      /* RWLOCK: the present or the wanted mode */
  enum { SIM_STAYS, SIM_TURNS_READER, SIM_TURNS_WRITER } turning; /* RWLOCK: the present extend */
  belay_lock_options_t options;

  /* Plans of the program. */
  uint64_t hold_until; /* by the clock of the process */
  bool last;           /* the present acquire, or hold, began while healing */
  bool resizes;        /* a resize of the semaphore is pending */
  bool resized;        /* healing: the semaphore has all its permits again */

  int64_t wait_ms; /* of the present acquire */
  bool canceled;   /* the present acquire was */
  bool closing;    /* the handle or its client is closing: only its callbacks are left */
  bool taken_away; /* by the close of a client, or of the process: without a callback of its own */
  bool late_loss;  /* at the close, a loss was still to be reported */
  bool silent, silent_extend; /* released, extended without a callback: it may not have ended */
  belay_client_t *with;       /* the client whose close took the handle along */

  /* The present hold. */
  bool held;        /* granted, and neither lost nor released */
  bool lost_taken;  /* the last one ended with BELAY_LOST_TAKEN */
  uint64_t seen;    /* the deadline at the last check, by the clock of the process */
  uint64_t before;  /* the end of the lease if an extend fails */
  uint64_t granted; /* the world's time */
  uint64_t granted_clock, ordinal, number;
  uint64_t floor;        /* grants of the name when it was requested */
  uint64_t floor_number; /* lower bound of its number */
  uint64_t floor_over;   /* REENTRANT: largest number of an ended ownership at the request */
  uint64_t called_clock; /* time of the request by the clock of the process */
  sim_token_t *token;
  unsigned counted; /* a bit for each server whose vote counted at the grant */
};

/* The next lock of all processes, from number *i on; NULL: there are no more. */
sim_lock_t *sim_next_lock(const sim_world_t *world, unsigned *i);

static inline const belay__lease_t *sim_lock_lease(const sim_lock_t *lock) {
  return belay__lock_lease(lock->handle);
}

/* Draws the options of the next handle, and its owner, permits and mode. lock_options.c */
void sim_lock_draw_options(sim_lock_t *lock, belay_lock_options_t *options);

/* ---- calls (check_lock.c) ---- */

/* Makes a handle for a name, of the scenario's kind; false if that failed. */
bool sim_lock_make(sim_lock_t *lock, unsigned name, const belay_lock_options_t *options);
int sim_lock_acquire(sim_lock_t *lock, int64_t wait_ms);
int sim_lock_release(sim_lock_t *lock, int64_t timeout_ms, bool silent);
int sim_lock_extend(sim_lock_t *lock, int64_t ttl_ms, int64_t timeout_ms, bool silent);
/* Upgrades a reader or downgrades a writer: an extend. */
int sim_lock_turn(sim_lock_t *lock, int64_t timeout_ms);
int sim_lock_cancel(sim_lock_t *lock);
int sim_lock_close(sim_lock_t *lock);

/* A client is about to be closed (NULL: the process is) and takes the handle along. */
void sim_lock_taken(sim_lock_t *lock, belay_client_t *with);
/* The close of that client has called back. */
void sim_lock_gone(sim_lock_t *lock);
/* Its process has crashed, or is closed. */
void sim_lock_let_go(sim_lock_t *lock);

/* Writes to the resource that the held lock guards; the write arrives after `delay`, in any state.
 * False: not held, or without fencing. register.c */
bool sim_lock_write(sim_lock_t *lock, uint64_t delay);

static inline bool sim_lock_is_idle(const sim_lock_t *lock) {
  return lock->handle != NULL && !lock->closing && !lock->held &&
         !lock->base.op[SIM_ACQUIRE].pending && !lock->base.op[SIM_RELEASE].pending;
}

/* ---- callbacks (lock.c) ---- */

void sim_lock_ended(sim_lock_t *lock, sim_op_t op, int status);
void sim_lock_lost(sim_lock_t *lock);

#endif /* TEST_SIM_ACTORS_LOCK_H */
