/* The world: a clock that jumps, the queue of events, and all actors.
 *
 *    seed, scenario --> sim_run() --> a verdict, and the same every time
 *
 *    processes: belay itself, unchanged, from its public    process.h, host.c, dial.c, socket.c
 *               functions down to hiredis
 *    actors:    programs that use locks and all others      actor.h, hand.h
 *    network:   connections, delays, partitions             net.h
 *    servers:   real scripts in real Lua over a small store server.h, engine/
 *    faults:                                                fault.h
 *    checkers:  rules that must hold                        check.h
 *    orders:    exhaustive orders instead of random ones    orders.h
 *
 * One thread, one random generator, no real time: an event happens at an instant. The next event
 * has the smallest time; equal times keep their order. */
#ifndef TEST_SIM_WORLD_WORLD_H
#define TEST_SIM_WORLD_WORLD_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/world/fault.h"
#include "sim/world/random.h"

#define SIM_US UINT64_C(1000)
#define SIM_MS UINT64_C(1000000)
#define SIM_S UINT64_C(1000000000)
#define SIM_NEVER UINT64_MAX

typedef struct sim_world sim_world_t;
typedef struct sim_event sim_event_t;
typedef struct sim_scenario sim_scenario_t; /* scenario.h */
typedef struct sim_server sim_server_t;     /* server.h */
typedef struct sim_process sim_process_t;   /* process.h */
typedef struct sim_net sim_net_t;           /* net.h */
typedef struct sim_check sim_check_t;       /* check.h */

/* ---- what is to happen ---- */

/* Zeros, and `run`, before it is first set; embedded in what it concerns. */
struct sim_event {
  uint64_t at, order;
  size_t slot; /* its place in the heap + 1; 0: it is not set */
  void (*run)(sim_event_t *event);
};

/* Sets it, also one that is set already; a time that is past is now. */
void sim_event_set(sim_world_t *world, sim_event_t *event, uint64_t at);
void sim_event_cancel(sim_world_t *world, sim_event_t *event);

static inline bool sim_event_is_set(const sim_event_t *event) {
  return event->slot != 0;
}

#define SIM_CONTAINER(member_ptr, type, member)                                                    \
  ((type *)(void *)((char *)(member_ptr)-offsetof(type, member)))

/* ---- figures of a run, and of many ---- */

#define SIM_STATES 12 /* belay__lease_state_t */
#define SIM_EVENTS 13 /* belay__lease_event_t */

typedef struct sim_figures {
  uint64_t runs, violations;
  uint64_t commands;         /* that servers executed */
  uint64_t grants;           /* acquires that ended with 0 */
  uint64_t grants_in_faults; /* of them: while faults struck */
  uint64_t operations;       /* that called back */
  uint64_t losses;
  uint64_t writes, stale_writes; /* to guarded resources: accepted, refused */
  uint64_t orders;               /* in which the same steps were taken */
  uint64_t virtual_ns;
  uint64_t slowest_ns; /* the longest that it took until all were served after the faults */
  uint64_t faults[SIM_FAULTS];
  uint64_t steps[SIM_STATES][SIM_EVENTS]; /* of the lease machine: state before x event */
} sim_figures_t;

/* ---- the world ---- */

typedef enum sim_phase {
  SIM_CALM,   /* no faults */
  SIM_STORM,  /* faults strike */
  SIM_HEALED, /* no faults any more: all waiters are served within a limit */
  SIM_CLOSING /* everything is closed */
} sim_phase_t;

struct sim_world {
  const sim_scenario_t *scenario;
  uint64_t seed;
  uint64_t now; /* nanoseconds since the beginning: the true time, hidden from processes */
  sim_phase_t phase;
  sim_random_t random;

  sim_event_t **events; /* a binary heap */
  size_t events_len, events_cap;
  uint64_t order;

  sim_server_t *server; /* scenario->servers of them */
  sim_process_t *process;
  sim_net_t *net;
  sim_check_t *check;
  struct sim_strikes *strikes; /* fault.c's */

  sim_figures_t figures;
  /* orders.h: commands and replies wait until each is let through. */
  bool held;
  bool answering; /* the present command was let through: its replies wait */

  FILE *timeline; /* NULL: not wanted */
  bool failed;    /* a violation was found: the run ends */
  char verdict[512];
};

/* Runs one world to its end and adds its figures. Returns true if no rule was violated;
 * otherwise verdict has the violation. timeline may be NULL. */
bool sim_run(const sim_scenario_t *scenario, uint64_t seed, FILE *timeline, sim_figures_t *figures,
             char *verdict, size_t verdict_size);

/* The same in parts, for callers that choose the events (orders.h): opens a world at rest; runs
 * the next event up to a time, false if there is none; closes it. */
void sim_world_open(sim_world_t *world);
bool sim_world_turn(sim_world_t *world, uint64_t until);
void sim_world_close(sim_world_t *world);

/* Writes a line of the timeline: time, subject, event. Does nothing without a timeline. */
#define sim_note(world, ...)                                                                       \
  do {                                                                                             \
    if ((world)->timeline != NULL)                                                                 \
      sim_write((world), __VA_ARGS__);                                                             \
  } while (0)
__attribute__((format(printf, 3, 4))) void sim_write(sim_world_t *world, const char *who,
                                                     const char *format, ...);

/* Ends the run with a violation of a rule. The first one counts. */
__attribute__((format(printf, 2, 3))) void sim_violation(sim_world_t *world, const char *format,
                                                         ...);

static inline void sim_count(sim_world_t *world, sim_fault_t fault) {
  world->figures.faults[fault]++;
}

/* Memory of the simulator's own; it never fails. */
void *sim_alloc(size_t size); /* zeros */

#endif /* TEST_SIM_WORLD_WORLD_H */
