/* What many scenarios say in the same words. */
#ifndef TEST_SIM_SCENARIOS_SCENARIO_WORDS_H
#define TEST_SIM_SCENARIOS_SCENARIO_WORDS_H

/* Clocks of processes and of servers run wrong by at most this: 0.8 % between two of them, of the 1 % that is taken
 * off a ttl. */
#define DRIFT 4000000

/* What the network and processes do to everybody; milliseconds between two of a kind. */
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
/* About half of what is granted is granted in either. */
#define BOTH_PHASES .calm_ms = 3000, .storm_ms = 12000

#endif /* TEST_SIM_SCENARIOS_SCENARIO_WORDS_H */
