/* Common parts of scenarios. */
#ifndef TEST_SIM_SCENARIOS_SCENARIO_WORDS_H
#define TEST_SIM_SCENARIOS_SCENARIO_WORDS_H

/* Largest drift of the clocks of processes and servers: 0.8 % between two of them, of the 1 %
 * that is taken off a ttl. */
#define DRIFT 4000000

/* Faults of network and processes for everyone; milliseconds between two of a kind. */
#define NETWORK_FAULTS                                                                             \
  [SIM_CUT_BEFORE] = 150, [SIM_CUT_AFTER] = 150, [SIM_CUT_HALF] = 200, [SIM_REPLY_LOST] = 900,     \
  [SIM_EARS_CUT] = 300, [SIM_PARTITION_UP] = 500, [SIM_PARTITION_DOWN] = 500,                      \
  [SIM_PARTITION_BOTH] = 500
#define PROCESS_FAULTS [SIM_PAUSE] = 250, [SIM_CRASH] = 700, [SIM_LEAVE] = 800
#define SERVER_FAULTS                                                                              \
  [SIM_NODE_PAUSE] = 500, [SIM_NODE_SLOW] = 700, [SIM_SCRIPT_FLUSH] = 80, [SIM_REFUSING] = 250

#define EVERYWHERE                                                                                 \
  .drift = DRIFT, .stalls = 15, .delays = 30, .delay_ms = 700, .ghosts = 300, .pause_ms = 800,     \
  .down_ms = 400, .partition_ms = 600

#define ONE_SERVER .servers = 1, .processes = 4, .actors = 3, .names = 3
#define THREE_SERVERS .servers = 3, .processes = 4, .actors = 2, .names = 2
#define QUARANTINED .quarantine = BELAY_QUARANTINE_ON, .max_ttl_ms = 400
#define QUORUM_LEASES                                                                              \
  .ttl_min_ms = 60, .ttl_max_ms = 400, .hold_ms = 40, .think_ms = 30, .wait_ms = 700
#define SHORT_LEASES .ttl_min_ms = 30, .ttl_max_ms = 400, .hold_ms = 30, .think_ms = 20
/* About half of all grants happen in each phase. */
#define BOTH_PHASES .calm_ms = 3000, .storm_ms = 12000

/* ---- bases ---- */

#define ALL_FAULTS NETWORK_FAULTS, PROCESS_FAULTS, SERVER_FAULTS

/* Locks on one server. */
#define LEASES                                                                                     \
  ONE_SERVER, SHORT_LEASES, BOTH_PHASES, EVERYWHERE, .wait_ms = 500, .served_ms = 13000,           \
                                                     .mean_ms = {ALL_FAULTS}
/* Redlocks on three. */
#define QUORUM                                                                                     \
  THREE_SERVERS, QUORUM_LEASES, BOTH_PHASES, EVERYWHERE,                                           \
      .fencing = true, .quarantine = BELAY_QUARANTINE_OFF, .served_ms = 13000,                     \
      .mean_ms = {ALL_FAULTS}
/* The other kinds of lock. */
#define KIND                                                                                       \
  LEASES, .actors = 4, .names = 2, .served_ms = 20000, .mean_ms[SIM_MEMORY] = 900,                 \
          .mean_ms[SIM_RESTART_KEPT] = 1500
/* The same on a server that loses keys. */
#define BROKEN_KIND                                                                                \
  LEASES, .broken = true, .actors = 5, .names = 2, .waiter_ttl_ms = 300, .served_ms = 20000,       \
          .mean_ms[SIM_KEY_DELETED] = 20, .mean_ms[SIM_FLUSHALL] = 500,                            \
          .mean_ms[SIM_RESTART_UNSEEN] = 1000, .mean_ms[SIM_RESTART_OLDER] = 1500,                 \
          .mean_ms[SIM_RESTART_EMPTY] = 1500
/* A network that delays and reorders; the scenario adds its faults. */
#define STORM                                                                                      \
  ONE_SERVER, SHORT_LEASES, BOTH_PHASES,                                                           \
      .wait_ms = 500, .served_ms = 13000, .drift = DRIFT, .stalls = 15, .delays = 30,              \
      .delay_ms = 900, .ghosts = 300, .pause_ms = 300, .down_ms = 300, .partition_ms = 300
/* Servers where clients may not kill connections, and connections whose bytes arrive after
 * their end. */
#define GHOSTS                                                                                     \
  ONE_SERVER, BOTH_PHASES, .secretive = true, .ttl_min_ms = 2000, .ttl_max_ms = 4000,              \
                           .hold_ms = 20, .think_ms = 20, .wait_ms = 500, .served_ms = 15000,      \
                           .drift = DRIFT, .delays = 20, .delay_ms = 40, .ghosts = 900,            \
                           .ghost_ms = 60, .pause_ms = 100, .down_ms = 200, .partition_ms = 100
/* Waiters that rely on wake-ups. */
#define ASLEEP                                                                                     \
  ONE_SERVER, BOTH_PHASES,                                                                         \
      .actors = 4, .names = 2, .waking = SIM_WAKE_NOTIFY, .ttl_min_ms = 60000,                     \
      .ttl_max_ms = 90000, .watchdog = BELAY_WATCHDOG_ON, .hold_ms = 20, .think_ms = 20,           \
      .wait_ms = 900, .served_ms = 15000, .drift = DRIFT, .delays = 30, .delay_ms = 300,           \
      .pause_ms = 300, .partition_ms = 300,                                                        \
      .mean_ms = {[SIM_CUT_BEFORE] = 300,                                                          \
                  [SIM_CUT_HALF] = 300,                                                            \
                  [SIM_EARS_CUT] = 60,                                                             \
                  [SIM_PAUSE] = 500,                                                               \
                  [SIM_SCRIPT_FLUSH] = 150}
/* Limits and data. */
#define LIMITED                                                                                    \
  EVERYWHERE, .servers = 1, .processes = 4, .actors = 4, .names = 3, .think_ms = 15,               \
              .calm_ms = 1500, .storm_ms = 8000, .served_ms = 13000,                               \
              .mean_ms = {ALL_FAULTS, [SIM_MEMORY] = 900, [SIM_RESTART_KEPT] = 1500}

#endif /* TEST_SIM_SCENARIOS_SCENARIO_WORDS_H */
