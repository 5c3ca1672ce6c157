#include "load/scenarios.h"

#include <string.h>

#include "load/belay.h"
#include "load/naive.h"

const char *const subject_names[SUBJECTS] = {
    [SUBJECT_BELAY] = "belay",
    [SUBJECT_LIMIT] = "limit",
    [SUBJECT_NAIVE] = "naive-c",
    [SUBJECT_NODE_REDLOCK] = "node-redlock",
    [SUBJECT_NODE_LIMITER] = "node-limiter",
    [SUBJECT_REDIS_PY] = "redis-py",
};

const scenario_t scenarios[] = {
    {
        .name = "lock",
        .about = "a lock is acquired and released; each operation has a key of its own",
        .servers = 1,
        .belay = &belay_lock,
        .naive = &naive_lock,
        .peers = {[SUBJECT_NODE_REDLOCK] = true, [SUBJECT_REDIS_PY] = true},
        .cells = {{.concurrency = 1, .quick = true},
                  {.concurrency = 64, .quick = true},
                  {.concurrency = 1000, .quick = true},
                  {.concurrency = 10000}},
    },
    {
        .name = "redlock",
        .about = "the same on five servers",
        .servers = 5,
        .belay = &belay_redlock,
        .naive = &naive_lock,
        .peers = {[SUBJECT_NODE_REDLOCK] = true},
        .cells = {{.concurrency = 1, .quick = true},
                  {.concurrency = 64, .quick = true},
                  {.concurrency = 1000, .quick = true}},
    },
    {
        .name = "contention",
        .about = "four processes want one lock, and hold it for a millisecond",
        .servers = 1,
        .belay = &belay_contention,
        .naive = &naive_contention,
        .cells = {{.concurrency = 100, .processes = 4, .hold = 0.001, .quick = true}},
    },
    {
        .name = "renew",
        .about = "what is held is renewed",
        .servers = 1,
        .belay = &belay_renew,
        .naive = &naive_renew,
        .cells = {{.concurrency = 1000, .quick = true}, {.concurrency = 100000}},
    },
    {
        .name = "limit-fixed",
        .about = "a token is taken: fixed window",
        .servers = 1,
        .belay = &belay_limit_fixed,
        .fill = true,
        .naive = &naive_limit,
        .peers = {[SUBJECT_NODE_LIMITER] = true},
        .cells = {{.concurrency = 64, .keys = 1, .quick = true},
                  {.concurrency = 1000, .keys = 10000, .quick = true},
                  {.concurrency = 1000, .keys = 1000000}},
    },
    {
        .name = "limit-bucket",
        .about = "a token is taken: token bucket",
        .servers = 1,
        .belay = &belay_limit_bucket,
        .fill = true,
        .cells = {{.concurrency = 64, .keys = 1, .quick = true},
                  {.concurrency = 1000, .keys = 10000, .quick = true},
                  {.concurrency = 1000, .keys = 1000000},
                  {.concurrency = 10000, .keys = 1000000}},
    },
    {
        .name = "limit-denied",
        .about = "no token is left, and the server says so",
        .servers = 1,
        .belay = &belay_limit_denied,
        .fill = true,
        .cells = {{.concurrency = 1000, .keys = 1000, .quick = true}},
    },
    {
        .name = "limit-leased",
        .about = "a token is taken from a slice that was fetched",
        .servers = 1,
        .belay = &belay_limit_leased,
        .cells = {{.concurrency = 1000, .keys = 100, .quick = true}},
    },
    {
        .name = "bloom-add",
        .about = "items are added to a Bloom filter",
        .servers = 1,
        .belay = &belay_bloom_adds,
        .cells = {{.concurrency = 1000, .keys = 1000000, .quick = true},
                  {.concurrency = 64, .keys = 1000000, .batch = 100, .quick = true}},
    },
    {
        .name = "bloom-exists",
        .about = "it is asked whether they are there",
        .servers = 1,
        .belay = &belay_bloom_finds,
        .fill = true,
        .cells = {{.concurrency = 1000, .keys = 1000000, .quick = true},
                  {.concurrency = 64, .keys = 1000000, .batch = 100, .quick = true}},
    },
    {
        .name = "counter",
        .about = "one is added to a counter",
        .servers = 1,
        .belay = &belay_counts,
        .fill = true,
        .naive = &naive_counter,
        .cells = {{.concurrency = 64, .keys = 10000, .quick = true},
                  {.concurrency = 1000, .keys = 10000, .quick = true}},
    },
    {
        .name = "ids",
        .about = "an id is drawn from a segment",
        .servers = 1,
        .belay = &belay_ids,
        .naive = &naive_ids,
        .cells = {{.concurrency = 1000, .keys = 1, .quick = true}},
    },
    {
        .name = "cache-hit",
        .about = "a value of 1 KB is got from the server",
        .servers = 1,
        .belay = &belay_cache_hit,
        .fill = true,
        .naive = &naive_cache,
        .cells = {{.concurrency = 64, .keys = 10000, .quick = true},
                  {.concurrency = 1000, .keys = 10000, .quick = true}},
    },
    {
        .name = "cache-stampede",
        .about = "all want what is not there; it is loaded once",
        .servers = 1,
        .belay = &belay_cache_stampede,
        .cells = {{.concurrency = 1000, .keys = 1, .quick = true}},
    },
    {
        .name = "semaphore",
        .about = "one of ten permits is acquired and released; all want one",
        .servers = 1,
        .belay = &belay_semaphore,
        .cells = {{.concurrency = 64, .quick = true}},
    },
    {
        .name = "fair",
        .about = "one lock goes from one to the next, in the order of the queue",
        .servers = 1,
        .belay = &belay_fair,
        .cells = {{.concurrency = 64, .quick = true}},
    },
};
const unsigned scenarios_len = sizeof scenarios / sizeof *scenarios;

const scenario_t *scenario_find(const char *name) {
  for (unsigned i = 0; i < scenarios_len; i++)
    if (strcmp(scenarios[i].name, name) == 0)
      return &scenarios[i];
  return NULL;
}
