/* A scenario: actors, actions and faults, as data: scenario.c, scenario_kinds.c. */
#ifndef TEST_SIM_SCENARIOS_SCENARIO_H
#define TEST_SIM_SCENARIOS_SCENARIO_H

#include "belay/lock.h"
#include "sim/world/fault.h"
#include "sim/world/world.h"

/* The handles of actors. Down to the semaphore they belong to belay/lock.h: actors/lock.c. */
typedef enum sim_kind {
  SIM_LOCK,
  SIM_REENTRANT,
  SIM_FAIR,
  SIM_RWLOCK,
  SIM_SEMAPHORE,
  SIM_MULTILOCK,
  SIM_LATCH,
  SIM_BARRIER,
  SIM_ELECTION,
  SIM_LIMITER, /* takes */
  SIM_RESERVE, /* and reservations */
  SIM_SLICE,   /* takes of leased tokens */
  SIM_BUCKET,
  SIM_GROUP, /* requests that share calls */
  SIM_DATA,  /* the subjects of data.h */
  SIM_USERS,
  SIM_CACHE,
  SIM_ORDERS, /* orders.h: nothing by chance */
  SIM_OUTAGE  /* outage.h: clients without actors */
} sim_kind_t;

typedef enum sim_waking { SIM_WAKE_BOTH, SIM_WAKE_NOTIFY, SIM_WAKE_POLL } sim_waking_t;

struct sim_scenario {
  const char *name, *about;
  sim_kind_t kind;
  const char *subject; /* DATA: the only one; NULL: any */
  bool broken;         /* an assumption is: two holders may be, everything else must hold */

  unsigned servers;   /* each lock is on all of them: 1, or a Redlock on 3 to 7 */
  unsigned processes; /* at most SIM_PROCESSES_MAX */
  unsigned actors;    /* handles in each process */
  unsigned names;     /* that they contend for */
  unsigned clients;   /* OUTAGE: of each process */
  unsigned links;     /* connections of each client for each kind of traffic; 0 is 1 */
  bool secretive;     /* servers permit neither HELLO, COMMAND, INFO nor CLIENT KILL */

  /* The locks' options. */
  bool fencing;
  bool counters_kept; /* another program deletes locks, but no fencing counters */
  belay_quarantine_t quarantine;
  int64_t max_ttl_ms;
  int64_t ttl_min_ms, ttl_max_ms; /* each handle has one between these */
  int watchdog;                   /* belay_watchdog_t; 0: some have one, some have not */
  int64_t timeout_ms;             /* 0: the default */
  unsigned min_replicas;
  sim_waking_t waking;   /* BOTH: each handle in its own way */
  int64_t asleep_ms;     /* poll interval of waiters; 0: at most 600 ms */
  int64_t waiter_ttl_ms; /* 0: the default */
  unsigned owners;       /* REENTRANT: in each process */
  unsigned limit;        /* SEMAPHORE: permits; LATCH, BARRIER: the count */
  bool fair;             /* SEMAPHORE */
  bool resized;          /* SEMAPHORE: all the time, to the limit at most */

  /* The clients' options; 0: the default. */
  struct {
    int64_t stall_ms, idle_ms, connect_ms, close_ms;
    size_t max_pending;
    belay_on_full_t on_full;
  } client;

  /* What actors do; times in milliseconds. */
  uint64_t hold_ms, think_ms; /* means */
  uint64_t wait_ms;           /* longest wait of an acquire; some do not wait */
  unsigned stalls;            /* of a thousand callbacks: take their time */
  unsigned extends; /* of a thousand times that a holder does something: extends; 0 is 90 */

  /* The run. */
  uint64_t calm_ms, storm_ms; /* either may be 0 */
  /* After the faults every waiter is served within this time. A dead connection is detected
   * within stall_timeout_ms (5 s), a new one is up within 2 s, then leftovers expire. */
  uint64_t served_ms;
  uint64_t free_ms; /* not 0: time for which nothing may be free while a waiter wants it */

  /* The world's faults. */
  int64_t drift;       /* clocks of processes and servers run at most so wrong, in billionths */
  uint64_t skew_ms;    /* largest difference of the servers' wall clocks */
  unsigned delays;     /* of a thousand segments: travel for long, */
  uint64_t delay_ms;   /* up to this */
  unsigned ghosts;     /* per mille of closed connections whose bytes in flight arrive late, */
  uint64_t ghost_ms;   /* at most so late; 0: as late as delay_ms */
  unsigned starvation; /* of a thousand times that memory runs out, all of it does; 0 is 300 */
  uint64_t pause_ms, down_ms, partition_ms, step_ms; /* at most, each time */
  uint32_t mean_ms[SIM_FAULTS_SCHEDULED];            /* between two of a kind; 0: never */
};

size_t sim_scenarios_count(void);
const sim_scenario_t *sim_scenario_at(size_t i);
/* Its number; sim_scenarios_count(): there is none of that name. */
size_t sim_scenario_find(const char *name);

/* scenario_kinds.c */
extern const sim_scenario_t sim_scenarios_of_kinds[];
extern const size_t sim_scenarios_of_kinds_len;

#endif /* TEST_SIM_SCENARIOS_SCENARIO_H */
