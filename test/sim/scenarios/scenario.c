/* Scenarios of locks and Redlocks. The others are in scenario_kinds.c. */
#include "sim/scenarios/scenario.h"

#include <string.h>

#include "sim/scenarios/scenario_words.h"

/* A row is a name, a base, and the fields that differ: the later initializer of a field counts. */
#pragma GCC diagnostic ignored "-Woverride-init"

// clang-format off
static const sim_scenario_t of_locks[] = {
    {.name = "plain", .about = "a lock on one server", LEASES, .mean_ms[SIM_RESTART_KEPT] = 1500},
    {.name = "fenced", .about = "a lock on one server, with fencing numbers and a guarded resource",
     LEASES, .fencing = true, .mean_ms[SIM_RESTART_KEPT] = 1500},
    {.name = "quarantined", .about = "a lock on one server that loses its data when it restarts",
     LEASES, QUARANTINED, .fencing = true, .wait_ms = 900, .served_ms = 15000,
     .mean_ms = {PROCESS_FAULTS, SERVER_FAULTS, [SIM_CUT_BEFORE] = 50, [SIM_CUT_AFTER] = 50,
                 [SIM_CUT_HALF] = 50, [SIM_PARTITION_BOTH] = 700, [SIM_RESTART_KEPT] = 3000,
                 [SIM_RESTART_OLDER] = 2000, [SIM_RESTART_EMPTY] = 2000}},
    {.name = "durable",
     .about = "a lock on one server, whose replica takes over with all granted leases", LEASES,
     .fencing = true, .min_replicas = 1, .ttl_min_ms = 100, .ttl_max_ms = 600, .hold_ms = 120,
     .down_ms = 50, .mean_ms[SIM_RESTART_KEPT] = 2000, .mean_ms[SIM_BEHIND] = 150,
     .mean_ms[SIM_FAILOVER] = 150},
    {.name = "refusals", .about = "a server that refuses commands, for every reason", LEASES,
     QUARANTINED, .fencing = true,
     .mean_ms = {[SIM_REFUSING] = 40, [SIM_LEAVE] = 120, [SIM_CUT_BEFORE] = 60, [SIM_CUT_HALF] = 60,
                 [SIM_SCRIPT_FLUSH] = 80, [SIM_PAUSE] = 500}},
    {.name = "links",
     .about = "many names over several connections, and a network that reorders them", STORM,
     .actors = 6, .names = 10, .links = 3, .fencing = true, .wait_ms = 300, .delays = 150,
     .mean_ms = {NETWORK_FAULTS, [SIM_SCRIPT_FLUSH] = 40, [SIM_PAUSE] = 400}},
    {.name = "ghosts",
     .about = "late bytes of dead connections that a client may not kill",
     GHOSTS, .mean_ms[SIM_CUT_HALF] = 40, .mean_ms[SIM_CUT_BEFORE] = 300,
     .mean_ms[SIM_SCRIPT_FLUSH] = 100},
    {.name = "late", .about = "the same with short leases, and bytes that arrive at any time",
     STORM, .secretive = true, .fencing = true, .delays = 60, .delay_ms = 1500, .ghosts = 800,
     .mean_ms = {NETWORK_FAULTS, PROCESS_FAULTS, [SIM_SCRIPT_FLUSH] = 150}},
    {.name = "extended",
     .about = "leases that are extended all the time, also by late bytes",
     LEASES, .names = 6, .secretive = true, .ttl_min_ms = 100, .watchdog = BELAY_WATCHDOG_OFF,
     .timeout_ms = 60, .hold_ms = 400, .think_ms = 5, .extends = 400, .calm_ms = 500,
     .storm_ms = 15000, .stalls = 0, .delays = 150, .delay_ms = 300, .ghosts = 1000, .pause_ms = 0,
     .down_ms = 0, .partition_ms = 0, .mean_ms = {[SIM_CUT_HALF] = 60}},
    {.name = "clocks",
     .about = "clocks with the largest drift, and leases that are held until they expire",
     STORM, .ttl_min_ms = 300, .ttl_max_ms = 1000, .watchdog = BELAY_WATCHDOG_OFF, .hold_ms = 800,
     .think_ms = 5, .wait_ms = 2000, .drift = 4900000, .stalls = 0, .delays = 0, .delay_ms = 0,
     .ghosts = 0, .down_ms = 0, .partition_ms = 0, .mean_ms[SIM_PAUSE] = 400},
    {.name = "strays",
     .about = "long leases that no process must leave behind, over several connections", STORM,
     .actors = 2, .names = 4, .links = 3, .ttl_min_ms = 2000, .ttl_max_ms = 4000, .hold_ms = 20,
     .think_ms = 40, .served_ms = 15000, .delays = 50, .ghosts = 500,
     .mean_ms[SIM_CUT_BEFORE] = 600, .mean_ms[SIM_CUT_AFTER] = 600, .mean_ms[SIM_CUT_HALF] = 600,
     .mean_ms[SIM_SCRIPT_FLUSH] = 150, .mean_ms[SIM_PAUSE] = 1000},
    {.name = "pauses", .about = "renewals whose reply arrives while their process is paused",
     LEASES, .ttl_min_ms = 60, .ttl_max_ms = 200, .watchdog = BELAY_WATCHDOG_ON, .hold_ms = 300,
     .think_ms = 5, .calm_ms = 500, .storm_ms = 14500, .delays = 500, .delay_ms = 30, .ghosts = 0,
     .pause_ms = 600, .down_ms = 0, .partition_ms = 0, .mean_ms = {[SIM_PAUSE] = 40}},
    {.name = "redlock-ghosts", .about = "the same on three servers", GHOSTS, .servers = 3,
     .actors = 2, .quarantine = BELAY_QUARANTINE_OFF, .mean_ms[SIM_CUT_HALF] = 15,
     .mean_ms[SIM_SCRIPT_FLUSH] = 100},
    {.name = "memory", .about = "failing allocations of belay and hiredis", LEASES, .fencing = true,
     .mean_ms = {[SIM_MEMORY] = 150, [SIM_CUT_BEFORE] = 300, [SIM_CUT_HALF] = 300,
                 [SIM_PAUSE] = 900, [SIM_CRASH] = 900, [SIM_SCRIPT_FLUSH] = 200}},
    {.name = "rewritten",
     .about = "leases that are extended over lost connections, and late replicas",
     LEASES, .min_replicas = 1, .ttl_min_ms = 60, .ttl_max_ms = 200, .watchdog = BELAY_WATCHDOG_OFF,
     .timeout_ms = 40, .client = {.stall_ms = 100}, .hold_ms = 300, .think_ms = 10, .extends = 500,
     .calm_ms = 500, .served_ms = 6000, .drift = 0, .stalls = 0, .delay_ms = 30, .ghosts = 0,
     .pause_ms = 600, .down_ms = 5, .partition_ms = 0,
     .mean_ms = {[SIM_CUT_AFTER] = 30, [SIM_CUT_HALF] = 30, [SIM_BEHIND] = 200,
                 [SIM_FAILOVER] = 200}},
    {.name = "tiny", .about = "the shortest leases, and clocks with the largest drift", LEASES,
     .processes = 6, .actors = 4, .names = 2, .fencing = true, .ttl_min_ms = 10, .ttl_max_ms = 30,
     .hold_ms = 8, .think_ms = 5, .wait_ms = 300, .drift = 4900000, .stalls = 30, .delays = 200,
     .delay_ms = 60, .ghosts = 500, .pause_ms = 60, .down_ms = 100, .partition_ms = 60},
    {.name = "idle", .about = "connections that are checked, retired and abandoned all the time",
     QUORUM, QUARANTINED, .processes = 3, .names = 6, .links = 2,
     .client = {.idle_ms = 10, .connect_ms = 50, .stall_ms = 60, .close_ms = 30}, .hold_ms = 100,
     .think_ms = 100, .wait_ms = 900, .served_ms = 8000, .skew_ms = 100, .mean_ms[SIM_MEMORY] = 400,
     .mean_ms[SIM_RESTART_KEPT] = 1500, .mean_ms[SIM_RESTART_EMPTY] = 2000},
    {.name = "full", .about = "connections that take one call at a time", LEASES, .fencing = true,
     .min_replicas = 1, .client = {.max_pending = 1, .on_full = BELAY_FULL_REFUSE}},
    {.name = "slow", .about = "partitions, pauses and leases of many seconds", LIMITED,
     .links = 2, .fencing = true, .ttl_min_ms = 500, .ttl_max_ms = 20000, .hold_ms = 2000,
     .think_ms = 500, .wait_ms = 20000, .calm_ms = 30000, .storm_ms = 200000, .served_ms = 90000,
     .delay_ms = 12000, .ghosts = 500, .pause_ms = 60000, .down_ms = 9000, .partition_ms = 60000,
     .mean_ms = {[SIM_CUT_BEFORE] = 3000, [SIM_CUT_AFTER] = 3000, [SIM_CUT_HALF] = 3000,
                 [SIM_REPLY_LOST] = 9000, [SIM_PARTITION_UP] = 9000, [SIM_PARTITION_DOWN] = 9000,
                 [SIM_PARTITION_BOTH] = 9000, [SIM_PAUSE] = 9000, [SIM_NODE_PAUSE] = 20000,
                 [SIM_NODE_SLOW] = 9000, [SIM_RESTART_KEPT] = 30000, [SIM_SCRIPT_FLUSH] = 3000}},
    {.name = "starved", .about = "many handles on few connections, and failing allocations", QUORUM,
     .processes = 2, .actors = 28, .names = 8, .fencing = false, .hold_ms = 20, .think_ms = 10,
     .calm_ms = 500, .storm_ms = 8000, .delays = 300, .delay_ms = 30, .starvation = 100,
     .pause_ms = 400, .down_ms = 100, .partition_ms = 200,
     .mean_ms = {[SIM_MEMORY] = 60, [SIM_PAUSE] = 100, [SIM_CUT_HALF] = 500}},
    {.name = "redlock",
     .about = "a lock on five servers, any of which may restart without its data", QUORUM,
     QUARANTINED, .servers = 5, .fencing = false, .skew_ms = 100, .mean_ms[SIM_RESTART_KEPT] = 3000,
     .mean_ms[SIM_RESTART_OLDER] = 2500, .mean_ms[SIM_RESTART_EMPTY] = 1500},
    {.name = "redlock-fenced",
     .about = "a lock on three servers with fencing numbers and a guarded resource", QUORUM,
     QUARANTINED, .skew_ms = 100, .mean_ms[SIM_RESTART_KEPT] = 3000,
     .mean_ms[SIM_RESTART_OLDER] = 2500, .mean_ms[SIM_RESTART_EMPTY] = 1500},
    {.name = "redlock-memory", .about = "the same, and allocations fail", QUORUM, QUARANTINED,
     .processes = 3, .actors = 3, .names = 3,
     /* A question in two calls, one with its text, takes memory. */
     .min_replicas = 1, .skew_ms = 100, .delays = 300, .delay_ms = 30, .pause_ms = 300,
     .down_ms = 100, .partition_ms = 200,
     .mean_ms = {[SIM_MEMORY] = 30, [SIM_CUT_BEFORE] = 200, [SIM_CUT_HALF] = 200, [SIM_PAUSE] = 900,
                 [SIM_CRASH] = 500, [SIM_LEAVE] = 200, [SIM_RESTART_EMPTY] = 2000,
                 [SIM_SCRIPT_FLUSH] = 60}},
    {.name = "redlock-durable",
     .about = "a lock on three servers, each with a replica that must have it", QUORUM,
     .processes = 3, .min_replicas = 1, .ttl_min_ms = 100, .mean_ms[SIM_RESTART_KEPT] = 1500,
     .mean_ms[SIM_BEHIND] = 300, .mean_ms[SIM_FAILOVER] = 700},
    {.name = "redlock-late",
     .about = "a lock on three servers without INFO, with bytes that arrive at any time",
     QUORUM, .secretive = true, .skew_ms = 50, .delays = 60, .delay_ms = 1500, .ghosts = 800,
     .pause_ms = 300, .down_ms = 300, .partition_ms = 300,
     .mean_ms = {NETWORK_FAULTS, PROCESS_FAULTS, [SIM_SCRIPT_FLUSH] = 150}},
    {.name = "contention", .about = "many contenders for one name on five servers", QUORUM,
     .servers = 5, .processes = 8, .names = 1, .fencing = false, .ttl_min_ms = 200, .hold_ms = 5,
     .think_ms = 5, .wait_ms = 2000, .mean_ms = {NETWORK_FAULTS, PROCESS_FAULTS}},
    {.name = "line", .about = "many waiters for few names, in queues with hand-overs", STORM,
     .actors = 8, .names = 2, .fencing = true, .wait_ms = 900, .delays = 150, .delay_ms = 400,
     .mean_ms = {NETWORK_FAULTS, PROCESS_FAULTS, SERVER_FAULTS, [SIM_RESTART_KEPT] = 1500}},
    {.name = "asleep",
     .about = "waiters that rely on wake-ups, because their polls are rare", ASLEEP,
     .asleep_ms = 60000, .wait_ms = 3000, .free_ms = 2500, .ghosts = 100,
     .mean_ms[SIM_CUT_AFTER] = 300, .mean_ms[SIM_EARS_CUT] = 30},
    {.name = "polling", .about = "waiters without wake-ups", LEASES, .waking = SIM_WAKE_POLL},
};
// clang-format on

/* ---- all scenarios ---- */

#define OF_LOCKS (sizeof of_locks / sizeof *of_locks)

size_t sim_scenarios_count(void) {
  return OF_LOCKS + sim_scenarios_of_kinds_len;
}

const sim_scenario_t *sim_scenario_at(size_t i) {
  return i < OF_LOCKS ? &of_locks[i] : &sim_scenarios_of_kinds[i - OF_LOCKS];
}

size_t sim_scenario_find(const char *name) {
  size_t i = 0;
  while (i < sim_scenarios_count() && strcmp(sim_scenario_at(i)->name, name) != 0)
    i++;
  return i;
}
