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
        .peers = {[SUBJECT_NODE_REDLOCK] = 1000, [SUBJECT_REDIS_PY] = 64},
        .cells = {{IN_TABLE, 1, .placement = PLACE_SAME},
                  {IN_ALL, 1, .placement = PLACE_APART},
                  {IN_CURVE, 4, .placement = PLACE_APART},
                  {IN_CURVE, 16, .placement = PLACE_APART},
                  {IN_CURVE, 64, .placement = PLACE_APART},
                  {IN_CURVE, 256, .placement = PLACE_APART},
                  {IN_CURVE, 1000, .placement = PLACE_APART},
                  {IN_CURVE, 4000, .placement = PLACE_APART},
                  {IN_CURVE, 10000, .placement = PLACE_APART},
                  {IN_TABLE, 64},
                  {IN_TABLE, 1000, .half = true},
                  {IN_FULL, 10000}},
    },
    {
        .name = "redlock",
        .about = "the same on five servers",
        .servers = 5,
        .belay = &belay_redlock,
        .naive = &naive_lock,
        .peers = {[SUBJECT_NODE_REDLOCK] = 1000},
        .cells = {{IN_TABLE, 1}, {IN_TABLE, 64}, {IN_TABLE, 1000}},
    },
    {
        .name = "contention",
        .about = "four processes want one lock, and hold it for a millisecond",
        .limit =
            "the hold and one round trip of the same commands: the next one cannot have it sooner",
        .servers = 1,
        .belay = &belay_contention,
        .naive = &naive_contention,
        .cells = {{IN_TABLE, 100, .processes = 4, .hold = 0.001}},
    },
    {
        .name = "renew",
        .about = "what is held is renewed",
        .servers = 1,
        .belay = &belay_renew,
        .naive = &naive_renew,
        .cells = {{IN_TABLE, 1000}, {IN_FULL, 100000}},
    },
    {
        .name = "limit-fixed",
        .about = "a token is taken: fixed window",
        .servers = 1,
        .belay = &belay_limit_fixed,
        .fill = true,
        .naive = &naive_limit,
        .peers = {[SUBJECT_NODE_LIMITER] = 1000},
        .cells = {{IN_TABLE, 64, .keys = 1},
                  {IN_TABLE, 1000, .keys = 10000},
                  {IN_FULL, 1000, .keys = 1000000}},
    },
    {
        .name = "limit-bucket",
        .about = "a token is taken: token bucket",
        .servers = 1,
        .belay = &belay_limit_bucket,
        .fill = true,
        .cells = {{IN_TABLE, 64, .keys = 1},
                  {IN_TABLE, 1000, .keys = 10000},
                  {IN_FULL, 1000, .keys = 1000000},
                  {IN_FULL, 10000, .keys = 1000000},
                  {IN_CURVE, 1, .keys = 10000, .placement = PLACE_APART},
                  {IN_CURVE, 4, .keys = 10000, .placement = PLACE_APART},
                  {IN_CURVE, 16, .keys = 10000, .placement = PLACE_APART},
                  {IN_CURVE, 64, .keys = 10000, .placement = PLACE_APART},
                  {IN_CURVE, 256, .keys = 10000, .placement = PLACE_APART},
                  {IN_CURVE, 1000, .keys = 10000, .placement = PLACE_APART},
                  {IN_CURVE, 4000, .keys = 10000, .placement = PLACE_APART},
                  {IN_CURVE, 10000, .keys = 10000, .placement = PLACE_APART},
                  {IN_CURVE, 1000, .keys = 1, .placement = PLACE_APART},
                  {IN_CURVE, 1000, .keys = 1000, .placement = PLACE_APART},
                  {IN_CURVE, 1000, .keys = 100000, .placement = PLACE_APART},
                  {IN_CURVE, 1000, .keys = 1000000, .placement = PLACE_APART}},
    },
    {
        .name = "limit-denied",
        .about = "no token is left, and the server says so",
        .servers = 1,
        .belay = &belay_limit_denied,
        .fill = true,
        .cells = {{IN_TABLE, 1000, .keys = 1000}},
    },
    {
        .name = "limit-leased",
        .about = "a token is taken from a slice that was fetched",
        .limit = "how many tokens the server could give away in slices; no client wants as many",
        .servers = 1,
        .belay = &belay_limit_leased,
        .cells = {{IN_TABLE, 1000, .keys = 100}, {IN_FULL, 1000, .keys = 10000}},
    },
    {
        .name = "bloom-add",
        .about = "items are added to a Bloom filter",
        .servers = 1,
        .belay = &belay_bloom_adds,
        .cells = {{IN_TABLE, 1000, .keys = 1000000}, {IN_TABLE, 64, .keys = 1000000, .batch = 100}},
    },
    {
        .name = "bloom-exists",
        .about = "it is asked whether they are there",
        .servers = 1,
        .belay = &belay_bloom_finds,
        .fill = true,
        .cells = {{IN_TABLE, 1000, .keys = 1000000}, {IN_TABLE, 64, .keys = 1000000, .batch = 100}},
    },
    {
        .name = "counter",
        .about = "one is added to a counter",
        .servers = 1,
        .belay = &belay_counts,
        .fill = true,
        .naive = &naive_counter,
        .cells = {{IN_TABLE, 64, .keys = 10000}, {IN_TABLE, 1000, .keys = 10000}},
    },
    {
        .name = "ids",
        .about = "an id is drawn from a segment",
        .limit = "how many ids the server could give away in segments; no client wants as many",
        .servers = 1,
        .belay = &belay_ids,
        .naive = &naive_ids,
        .cells = {{IN_TABLE, 1000, .keys = 1}},
    },
    {
        .name = "cache-hit",
        .about = "a value of 1 KB is got from the server",
        .servers = 1,
        .belay = &belay_cache_hit,
        .fill = true,
        .naive = &naive_cache,
        .cells = {{IN_TABLE, 64, .keys = 10000}, {IN_TABLE, 1000, .keys = 10000}},
    },
    {
        .name = "cache-stampede",
        .about = "all want what is not there; it is loaded once",
        .servers = 1,
        .belay = &belay_cache_stampede,
        .cells = {{IN_TABLE, 1000, .keys = 1}},
    },
    {
        .name = "semaphore",
        .about = "one of ten permits is acquired and released; all want one",
        .limit = "what the server can do with these commands if nobody has to wait for another "
                 "one's release",
        .servers = 1,
        .belay = &belay_semaphore,
        .cells = {{IN_TABLE, 64}},
    },
    {
        .name = "fair",
        .about = "one lock goes from one to the next, in the order of the queue",
        .limit = "what the server can do with these commands if nobody has to wait for another "
                 "one's release",
        .servers = 1,
        .belay = &belay_fair,
        .cells = {{IN_TABLE, 64}},
    },
};
const unsigned scenarios_len = sizeof scenarios / sizeof *scenarios;

const scenario_t *scenario_find(const char *name) {
  for (unsigned i = 0; i < scenarios_len; i++)
    if (strcmp(scenarios[i].name, name) == 0)
      return &scenarios[i];
  return NULL;
}
