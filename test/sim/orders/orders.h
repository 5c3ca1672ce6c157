/* All orders of two processes' steps, instead of random ones.
 *
 *    part k of a scenario --> steps for each process --> a run for each order --> a verdict
 *
 * The next event is an act: a process takes its next step; a server executes the next command of
 * a connection; a reply or message arrives. The search is depth-first, from the beginning each
 * time: a run takes the acts of the search, then the first possible ones. After each act the
 * world runs until it is at rest.
 *
 * Two independent acts are tried in one order only (sleep sets: Godefroid, "Partial-Order
 * Methods for the Verification of Concurrent Systems", 1996). So each distinguishable order is
 * tried once.
 *
 * In worlds that are not held (world->held) only steps are acts: all else happens before the
 * next step. */
#ifndef TEST_SIM_ORDERS_ORDERS_H
#define TEST_SIM_ORDERS_ORDERS_H

#include "sim/world/net.h"
#include "sim/world/world.h"

#define SIM_ACTS 64 /* of a run at most */
#define SIM_CHOICES 24

typedef enum sim_act_kind {
  SIM_ACT_STEP,
  SIM_ACT_EXECUTE,
  SIM_ACT_ANSWER,
  SIM_ACT_LOSE /* the process loses the connection and everything in flight to it */
} sim_act_kind_t;

typedef struct sim_act {
  uint8_t kind, process, conn; /* conn: the how manieth of the process's */
  uint8_t touches, changes;    /* bits chosen by the subject; changed ones are touched, too */
} sim_act_t;

/* The possible acts at a point of a run, and those that were tried. */
typedef struct sim_choice {
  sim_act_t act[SIM_CHOICES];
  bool done[SIM_CHOICES]; /* it was tried here, or need not be */
  unsigned len, at;
} sim_choice_t;

typedef struct sim_search {
  sim_choice_t choice[SIM_ACTS];
  unsigned depth, at; /* that are chosen; where the run is */
  uint64_t runs;
} sim_search_t;

/* What is ordered. */
typedef struct sim_subject {
  sim_world_t *world;
  bool lossy; /* a connection is lost, once in a run, anywhere */
  bool lost;
  /* True if the process can take its next step; takes it. */
  bool (*can_step)(struct sim_subject *subject, unsigned process);
  void (*step)(struct sim_subject *subject, unsigned process);
  /* Sets what an act touches and changes besides the state of its process. EXECUTE: the command. */
  void (*mark)(struct sim_subject *subject, sim_act_t *act, const engine_bytes_t *argv,
               size_t argc);
} sim_subject_t;

/* Runs everything that happens at once; and everything within a time. */
void sim_orders_settle(sim_world_t *world);
void sim_orders_wait(sim_world_t *world, uint64_t ns);

/* Holds the world, or lets everything through. */
void sim_orders_hold(sim_world_t *world, bool on);

/* One run, until no act is possible. False: it was not finished, because all possible acts were
 * tried elsewhere. */
bool sim_orders_follow(sim_search_t *search, sim_subject_t *subject);
/* Goes on to the next run; false: there is none. */
bool sim_orders_advance(sim_search_t *search);

/* Prints the acts of the run: p0 steps, e1 the server executes a command of p1, a1 a reply
 * arrives, x0 loses a connection. */
void sim_orders_tell(const sim_search_t *search, char *text, size_t size);

/* Runs a whole part: seeds are numbers of parts, from 1. As sim_run(), of a world that has a
 * scenario, a seed and a timeline. orders_cache.c */
bool sim_orders_run(sim_world_t *world, sim_figures_t *figures, char *verdict, size_t verdict_size);

#endif /* TEST_SIM_ORDERS_ORDERS_H */
