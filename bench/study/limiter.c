/* How fast a limiter is.
 *
 * Its script is where the time goes. So belay is measured against redis-benchmark, which calls the same script with
 * the same arguments and as much in flight (parts A and B); the script against an empty one (part C); and what needs no
 * script against the clock (part D). */
#include <stdio.h>

#include "place.h"
#include "study/report.h"
#include "samples.h"
#include "server.h"
#include "study/takes/takes.h"

#define HOUR INT64_C(3600000000)
enum { PAIRS = 8 };
#define COST_CALLS 200000
#define TRIAL_CALLS 5000

static const takes_policy_t policies[] = {
    {"bucket", {{BELAY_LIMIT_BUCKET, 1, HOUR, 0, false}}, 1, {1, HOUR, 1, HOUR}},
    {"fixed window", {{BELAY_LIMIT_FIXED, 1, HOUR, 0, false}}, 1, {3, HOUR, 0, 1}},
    {"sliding window", {{BELAY_LIMIT_SLIDING, 1, HOUR, 0, false}}, 1, {2, HOUR, 0, 1}},
    {"two windows",
     {{BELAY_LIMIT_FIXED, 1, HOUR, 0, false}, {BELAY_LIMIT_FIXED, 10, 2 * HOUR, 0, false}},
     2,
     {3, HOUR, 0, 1, 3, 2 * HOUR, 0, 10}},
};
enum { POLICIES = sizeof policies / sizeof *policies, TARGETED = 3 /* of them, the first ones */ };

static const unsigned depths[] = {16, 64, 256};
enum { DEPTHS = sizeof depths / sizeof *depths, TARGETED_DEPTH = 1 };

static const report_target_t none = {TARGET_NONE, 0};

static report_target_t at_least(double limit) {
  return (report_target_t){TARGET_AT_LEAST, limit};
}

static report_target_t at_most(double limit) {
  return (report_target_t){TARGET_AT_MOST, limit};
}

/* ---- A, B: belay and redis-benchmark ------------------------------------------------------------------- */

static void add_takes(const char *part, const char *who, const takes_outcome_t *o) {
  report_add(part, who, "takes", "/s", o->rate, none);
  report_add(part, who, "client's processor time", "us", o->client_cpu / 1e3, none);
  report_add(part, who, "server's processor time", "us", o->server_cpu / 1e3, none);
}

/* One after the other, each first by turns, many times: others on this machine come and go, and both should have their
 * share of that. */
typedef struct duel {
  takes_outcome_t belay, other; /* means */
  double ratio;                 /* median */
} duel_t;

static void add_up(takes_outcome_t *sum, const takes_outcome_t *o) {
  sum->rate += o->rate / PAIRS;
  sum->client_cpu += o->client_cpu / PAIRS;
  sum->server_cpu += o->server_cpu / PAIRS;
  sum->allocations += o->allocations / PAIRS;
}

static duel_t fight(takes_t *takes, double seconds, bool compare) {
  duel_t duel = {0};
  double ratios[PAIRS];
  takes->calls = TRIAL_CALLS;
  takes->calls = (uint64_t)(takes_by_belay(takes).rate * seconds / PAIRS);
  takes->calls += takes->in_flight - takes->calls % takes->in_flight;
  for (unsigned i = 0; i < PAIRS; i++) {
    takes_outcome_t belay, other = {0};
    if (compare && i % 2 == 0)
      other = takes_by_redis_benchmark(takes);
    belay = takes_by_belay(takes);
    if (compare && i % 2 != 0)
      other = takes_by_redis_benchmark(takes);
    add_up(&duel.belay, &belay);
    add_up(&duel.other, &other);
    ratios[i] = compare ? belay.rate / other.rate : 0;
  }
  duel.ratio = samples_median(ratios, PAIRS);
  return duel;
}

static void measure_takes(const bench_options_t *options, const char *part, takes_keys_t keys,
                          size_t depth, unsigned round) {
  static const char *const belays[DEPTHS] = {"belay, 16", "belay, 64", "belay, 256"};
  static const char *const others[DEPTHS] = {"redis-b., 16", "redis-b., 64", "redis-b., 256"};
  takes_t takes = {.policy = &policies[0], .keys = keys, .in_flight = depths[depth]};
  bool compare = takes_have_redis_benchmark();
  duel_t duel = fight(&takes, options->seconds, compare);
  add_takes(part, belays[depth], &duel.belay);
  report_add(part, belays[depth], "allocations for each", "", duel.belay.allocations, none);
  if (compare) {
    report_add(part, belays[depth], "takes / redis-benchmark's", "", duel.ratio,
               depth == TARGETED_DEPTH ? at_least(0.9) : none);
    add_takes(part, others[depth], &duel.other);
  }
  fprintf(stderr, "round %u of %u: %s, %3u in flight %9.0f/s, redis-benchmark %9.0f/s\n", round,
          options->rounds, part, depths[depth], duel.belay.rate, duel.other.rate);
}

/* ---- C: the script ------------------------------------------------------------------------------------- */

static void measure_cost(const bench_options_t *options, size_t i, unsigned round) {
  const char *who = policies[i].name;
  double share = options->seconds < 1 ? options->seconds : 1;
  takes_t takes = {&policies[i], TAKES_FRESH, 1, (uint64_t)(COST_CALLS * share) + 1};
  double empty = takes_cost(&takes, true), allowed = takes_cost(&takes, false);
  takes.keys = TAKES_DENIED;
  double denied = takes_cost(&takes, false);
  report_add("C", who, "an empty script", "us", empty, none);
  report_add("C", who, "allowed", "us", allowed, none);
  report_add("C", who, "denied", "us", denied, none);
  report_add("C", who, "allowed / empty", "", allowed / empty, i < TARGETED ? at_most(4) : none);
  report_add("C", who, "denied / empty", "", denied / empty, i < TARGETED ? at_most(2.3) : none);
  fprintf(stderr, "round %u of %u: C, %-14s empty %.2f us, allowed %.2f, denied %.2f\n", round,
          options->rounds, who, empty, allowed, denied);
}

/* ---- D: what needs no server --------------------------------------------------------------------------- */

static void add_tries(const char *who, const tries_outcome_t *o) {
  report_add("D", who, "answers", "/s", o->rate, at_least(5e6));
  report_add("D", who, "allocations in all", "", o->allocations, at_most(0));
}

static void measure_tries(const bench_options_t *options, unsigned round) {
  tries_outcome_t denied = tries_denied(options->seconds / 2);
  tries_outcome_t leased = tries_leased(options->seconds / 2);
  add_tries("denials", &denied);
  add_tries("leased tokens", &leased);
  fprintf(stderr, "round %u of %u: D, %9.0f denials/s, %9.0f leased takes/s\n", round,
          options->rounds, denied.rate, leased.rate);
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

static void measure_round(const bench_options_t *options, unsigned round) {
  for (size_t i = 0; i < DEPTHS; i++) {
    if (bench_wants(options, "A"))
      measure_takes(options, "A", TAKES_FRESH, i, round);
    if (bench_wants(options, "B"))
      measure_takes(options, "B", TAKES_DENIED, i, round);
  }
  for (size_t i = 0; i < POLICIES && bench_wants(options, "C"); i++)
    measure_cost(options, i, round);
  if (bench_wants(options, "D"))
    measure_tries(options, round);
}

static void name_parts(const bench_options_t *options) {
  static const char *const parts[][2] = {
      {"A", "takes from fresh keys, a token bucket: so many in flight"},
      {"B", "the same, denied"},
      {"C", "the server's processor time for one call, by INFO cpu"},
      {"D", "belay_limiter_try(), without the server: of 1,000 keys, and of 100 that have slices"},
  };
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (bench_wants(options, parts[i][0]))
      report_part(parts[i][0], parts[i][1]);
}

static void run(const bench_options_t *options) {
  bench_begin(options);
  if (!takes_have_redis_benchmark())
    report_fact("redis-benchmark",
                "there is none here, and nothing to compare with; it belongs to redis-tools");
  name_parts(options);
  for (size_t i = 0; i < POLICIES; i++)
    takes_compare(&policies[i]);
  for (unsigned round = 1; round <= options->rounds; round++)
    measure_round(options, round);
  report_finish(bench_limiter.name, options);
}

const bench_scenario_t bench_limiter = {
    .name = "limiter",
    .about = "takes from a limiter; SECONDS for each row",
    .seconds = 2,
    .run = run,
};
