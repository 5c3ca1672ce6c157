/* An actor: one lock handle in a process, and a program that calls the public functions at
 * random, in every permitted order.
 *
 *    without a handle --make--> IDLE --acquire, try--> ACQUIRING --held--> HELD --release, close, loss--> ...
 *
 * All calls and callbacks pass through the checkers (check.h). */
#ifndef TEST_SIM_ACTORS_ACTOR_H
#define TEST_SIM_ACTORS_ACTOR_H

#include "belay/lock.h"
#include "sim/world/process.h"
#include "sim/world/world.h"

typedef struct sim_actor sim_actor_t;

#define SIM_ACTORS_MAX 32 /* in a process */

/* Makes the process's actors, or makes them anew after a crash; they begin to act by themselves. The process is UP. */
void sim_actors_start(sim_process_t *process);
/* The process has crashed, or is closed: they are no more. */
void sim_actors_end(sim_process_t *process);
/* The process is being closed: they do nothing new. */
void sim_actors_rest(sim_process_t *process);
/* Faults have stopped: each tries to get its lock once more, waiting for as long as it takes, gives it back and
 * rests. */
void sim_actors_heal(sim_process_t *process);
/* Whether all have been served since. */
bool sim_actors_served(const sim_process_t *process);

#endif /* TEST_SIM_ACTORS_ACTOR_H */
