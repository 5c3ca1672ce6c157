/* Worlds of what has no handle for each key: limits, and data. */
#include "sim/scenarios/scenario.h"

#include "sim/scenarios/scenario_words.h"

#define LIMITED                                                                                    \
  .servers = 1, .processes = 4, .actors = 4, .names = 3, .think_ms = 15, .calm_ms = 1500,          \
  .storm_ms = 8000

const sim_scenario_t sim_scenarios_of_keys[] = {
    {
        .name = "limiter",
        .about = "keys that are taken from under every policy there is, with refunds and penalties",
        .kind = SIM_LIMITER,
        LIMITED,
        .served_ms = 13000,
        EVERYWHERE,
        .mean_ms = {NETWORK_FAULTS, PROCESS_FAULTS,
                    SERVER_FAULTS, [SIM_MEMORY] = 900, [SIM_RESTART_KEPT] = 1500},
    },
    {
        .name = "limiter-reserve",
        .about = "reservations and waits, that are given back, and asked for again",
        .kind = SIM_RESERVE,
        LIMITED,
        .wait_ms = 800,
        .served_ms = 13000,
        EVERYWHERE,
        .mean_ms = {NETWORK_FAULTS, PROCESS_FAULTS,
                    SERVER_FAULTS, [SIM_MEMORY] = 900, [SIM_RESTART_KEPT] = 1500},
    },
    {
        .name = "limiter-slice",
        .about = "tokens that processes take ahead and use for a while",
        .kind = SIM_SLICE,
        LIMITED,
        .served_ms = 13000,
        EVERYWHERE,
        .mean_ms = {NETWORK_FAULTS, PROCESS_FAULTS,
                    SERVER_FAULTS, [SIM_MEMORY] = 900, [SIM_RESTART_KEPT] = 1500},
    },
    {
        .name = "bucket",
        .about = "buckets that many fetch from and many fill, and of those who fill one does",
        .kind = SIM_BUCKET,
        LIMITED,
        .served_ms = 13000,
        EVERYWHERE,
        .mean_ms = {NETWORK_FAULTS, PROCESS_FAULTS,
                    SERVER_FAULTS, [SIM_MEMORY] = 900, [SIM_RESTART_KEPT] = 1500},
    },
    {
        .name = "data",
        .about = "counters, ids, dedup, records, rankings, Bloom filters, whose answers are lost",
        .kind = SIM_DATA,
        LIMITED,
        .served_ms = 13000,
        EVERYWHERE,
        .mean_ms = {NETWORK_FAULTS, PROCESS_FAULTS,
                    SERVER_FAULTS, [SIM_MEMORY] = 900, [SIM_RESTART_KEPT] = 1500},
    },
    {
        .name = "users",
        .about =
            "sessions, permissions, presence, active users, snowflakes, whose answers are lost",
        .kind = SIM_USERS,
        LIMITED,
        .served_ms = 13000,
        EVERYWHERE,
        .mean_ms = {NETWORK_FAULTS, PROCESS_FAULTS,
                    SERVER_FAULTS, [SIM_MEMORY] = 900, [SIM_RESTART_KEPT] = 1500},
    },
    {
        .name = "records",
        .about = "idempotency records that many begin, and some come too late to finish",
        .kind = SIM_DATA,
        .craft = "record",
        LIMITED,
        .served_ms = 13000,
        EVERYWHERE,
        .mean_ms = {NETWORK_FAULTS, PROCESS_FAULTS,
                    SERVER_FAULTS, [SIM_MEMORY] = 900, [SIM_RESTART_KEPT] = 1500},
    },
    {
        .name = "cache",
        .about = "a cache whose keys are loaded, invalidated, put and lost all the time",
        .kind = SIM_CACHE,
        LIMITED,
        .served_ms = 13000,
        EVERYWHERE,
        .mean_ms = {NETWORK_FAULTS, PROCESS_FAULTS, SERVER_FAULTS, [SIM_MEMORY] = 900,
                    [SIM_RESTART_KEPT] = 1500, [SIM_KEY_DELETED] = 60, [SIM_FLUSHALL] = 2000},
    },
    {
        .name = "cache-orders",
        .about = "all orders of what two processes do with a cache; a seed is a part of them",
        .kind = SIM_ORDERS,
        .servers = 1,
        .processes = 2,
        .names = 1,
    },
    {
        .name = "outage",
        .about = "200 clients lose their server for a minute, and connect again",
        .kind = SIM_OUTAGE,
        .servers = 1,
        .processes = 4,
        .clients = 50,
    },
    {
        .name = "outage-10000",
        .about = "10,000 clients lose their server for a minute, and connect again",
        .kind = SIM_OUTAGE,
        .servers = 1,
        .processes = 8,
        .clients = 1250,
    },
};

const size_t sim_scenarios_of_keys_len =
    sizeof sim_scenarios_of_keys / sizeof *sim_scenarios_of_keys;
