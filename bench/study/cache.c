/* The speed of a cache.
 *
 * A hit is a GET and the work on its reply. So hits are measured against GETs of the same strings,
 * as calls of the core on the same connection (parts A and D). Hits in the table of the process are
 * measured against the clock (part B), and misses for their cost (part C). */
#include <stdio.h>

#include "place.h"
#include "study/race.h"
#include "study/report.h"
#include "samples.h"
#include "server.h"

enum { PAIRS = 8, MANY_PENDING = 4, FILL_PENDING = 64, PEEKED = 100000, MISS_PENDING = 64 };
#define TRIAL_CALLS 2000
#define LOCAL_BYTES ((size_t)256 << 20)
#define FILL_PASSES 100

static const struct {
  const char *name;
  size_t len;
  unsigned keys; /* beside one */
} sizes[] = {{"16 B", 16, 100000}, {"1 KiB", 1024, 100000}, {"16 KiB", 16384, 10000}};
enum { SIZES = sizeof sizes / sizeof *sizes };

static const unsigned depths[] = {64, 1000};
enum { DEPTHS = sizeof depths / sizeof *depths };

static const report_target_t none = {TARGET_NONE, 0};
static const report_target_t most_of_the_link = {TARGET_AT_LEAST, 0.95};

/* A short run has fewer keys. */
static unsigned share_of(const bench_options_t *options, unsigned keys) {
  double share = options->seconds < 1 ? options->seconds : 1;
  return (unsigned)(keys * share) + 1;
}

static void fill(fixture_t *fixture) {
  race_plan_t plan = {.way = RACE_PUT,
                      .keys = fixture->keys_len,
                      .pending = FILL_PENDING,
                      .calls = fixture->keys_len};
  servers_flush();
  (void)race_run(fixture, &plan);
}

/* One after the other, each first by turns, many times: others on this machine come and go, and
 * both should have their share of that. */
typedef struct duel {
  race_outcome_t own, other; /* means */
  double rates, times; /* medians of ratios: of the rates, and of the client's processor times */
} duel_t;

static void add_up(race_outcome_t *sum, const race_outcome_t *o) {
  sum->rate += o->rate / PAIRS;
  sum->client_cpu += o->client_cpu / PAIRS;
  sum->server_cpu += o->server_cpu / PAIRS;
  sum->allocations += o->allocations / PAIRS;
}

/* Run both for this number of seconds; they may differ in kind and pending only. */
static duel_t fight(fixture_t *fixture, race_plan_t own, race_plan_t other, double seconds) {
  duel_t duel = {0};
  double rates[PAIRS], times[PAIRS];
  own.calls = other.calls = TRIAL_CALLS;
  own.calls = (uint64_t)(race_run(fixture, &own).rate * seconds / 2 / PAIRS) + 1;
  other.calls = (uint64_t)(race_run(fixture, &other).rate * seconds / 2 / PAIRS) + 1;
  if (own.way == RACE_MANY_GET)
    own.calls = own.calls / RACE_MANY + 1;
  for (unsigned i = 0; i < PAIRS; i++) {
    race_outcome_t a, b;
    if (i % 2 == 0)
      a = race_run(fixture, &own);
    b = race_run(fixture, &other);
    if (i % 2 != 0)
      a = race_run(fixture, &own);
    add_up(&duel.own, &a);
    add_up(&duel.other, &b);
    rates[i] = a.rate / b.rate;
    times[i] = a.client_cpu / b.client_cpu;
  }
  duel.rates = samples_median(rates, PAIRS);
  duel.times = samples_median(times, PAIRS);
  return duel;
}

static void add_duel(const char *part, const char *who, const duel_t *duel) {
  report_add(part, who, "hits", "/s", duel->own.rate, none);
  report_add(part, who, "GETs", "/s", duel->other.rate, none);
  report_add(part, who, "hits / GETs", "", duel->rates, most_of_the_link);
  report_add(part, who, "client, a hit", "us", duel->own.client_cpu / 1e3, none);
  report_add(part, who, "client, a GET", "us", duel->other.client_cpu / 1e3, none);
  report_add(part, who, "client, hit / GET", "", duel->times, none);
  report_add(part, who, "server, a hit", "us", duel->own.server_cpu / 1e3, none);
  report_add(part, who, "server, a GET", "us", duel->other.server_cpu / 1e3, none);
  report_add(part, who, "allocations for a hit", "", duel->own.allocations, none);
}

static void measure_hits(const bench_options_t *options, fixture_t *fixture, size_t size, bool one,
                         size_t depth, unsigned round) {
  static char names[SIZES][2][DEPTHS][24];
  char *who = names[size][one][depth];
  race_plan_t own = {
      .way = RACE_GET, .keys = one ? 1 : fixture->keys_len, .pending = depths[depth]};
  race_plan_t other = own;
  other.way = RACE_RAW;
  (void)snprintf(who, sizeof names[0][0][0], "%s %s/%u", sizes[size].name, one ? "one" : "many",
                 depths[depth]);
  duel_t duel = fight(fixture, own, other, options->seconds);
  add_duel("A", who, &duel);
  fprintf(stderr, "round %u of %u: A, %-16s %9.0f hits/s, %9.0f GETs/s, ratio %.2f\n", round,
          options->rounds, who, duel.own.rate, duel.other.rate, duel.rates);
}

static void measure_all_hits(const bench_options_t *options, unsigned round) {
  for (size_t i = 0; i < SIZES; i++) {
    fixture_plan_t plan = {.keys = share_of(options, sizes[i].keys), .value_len = sizes[i].len};
    fixture_t *fixture = fixture_open(&plan);
    fill(fixture);
    for (unsigned j = 0; j < 2 * DEPTHS; j++)
      measure_hits(options, fixture, i, j / DEPTHS == 0, j % DEPTHS, round);
    fixture_close(fixture);
  }
}

static void measure_many(const bench_options_t *options, unsigned round) {
  fixture_plan_t plan = {.keys = share_of(options, sizes[0].keys), .value_len = sizes[0].len};
  fixture_t *fixture = fixture_open(&plan);
  race_plan_t own = {.way = RACE_MANY_GET, .keys = fixture->keys_len, .pending = MANY_PENDING};
  race_plan_t other = {
      .way = RACE_RAW, .keys = fixture->keys_len, .pending = MANY_PENDING * RACE_MANY};
  fill(fixture);
  duel_t raw = fight(fixture, own, other, options->seconds / 2);
  other.way = RACE_GET;
  duel_t single = fight(fixture, own, other, options->seconds / 2);
  fixture_close(fixture);
  add_duel("D", "get_many", &raw);
  report_add("D", "get_many", "hits / single gets", "", single.rates, none);
  report_add("D", "get_many", "client, hit / single", "", single.times, none);
  fprintf(stderr, "round %u of %u: D, %9.0f hits/s, %9.0f GETs/s, ratio %.2f\n", round,
          options->rounds, raw.own.rate, raw.other.rate, raw.rates);
}

/* All keys are in the table: the listening connection is there, and nothing is in doubt any
 * more. */
static void fill_table(fixture_t *fixture) {
  race_plan_t plan = {.way = RACE_GET,
                      .keys = fixture->keys_len,
                      .pending = FILL_PENDING,
                      .calls = fixture->keys_len};
  belay_cache_stats_t stats;
  uint64_t hits = 0;
  fill(fixture);
  for (unsigned i = 0; i < FILL_PASSES; i++) {
    (void)race_run(fixture, &plan);
    belay_cache_stats(fixture->cache, &stats);
    if (stats.local_hits == hits + fixture->keys_len)
      return;
    hits = stats.local_hits;
  }
  bench_die("not all keys are in the table");
}

static void measure_peeks(const bench_options_t *options, unsigned round) {
  static const report_target_t ten_million = {TARGET_AT_LEAST, 10e6};
  static const report_target_t nothing = {TARGET_AT_MOST, 0};
  fixture_plan_t plan = {
      .keys = share_of(options, PEEKED), .value_len = 16, .local_bytes = LOCAL_BYTES};
  fixture_t *fixture = fixture_open(&plan);
  fill_table(fixture);
  const struct {
    const char *who;
    unsigned keys;
  } rows[] = {{"one", 1}, {"a hundredth", fixture->keys_len / 100 + 1}, {"all", fixture->keys_len}};
  enum { ROWS = sizeof rows / sizeof *rows };
  for (size_t i = 0; i < ROWS; i++) {
    peeks_outcome_t o = race_peeks(fixture, rows[i].keys, options->seconds / ROWS);
    report_add("B", rows[i].who, "hits", "/s", o.rate, ten_million);
    report_add("B", rows[i].who, "processor time", "ns", o.cpu, none);
    report_add("B", rows[i].who, "allocations in all", "", o.allocations, nothing);
    fprintf(stderr, "round %u of %u: B, %-16s %9.0f peeks/s, %.0f ns\n", round, options->rounds,
            rows[i].who, o.rate, o.cpu);
  }
  fixture_close(fixture);
}

static void measure_misses(const bench_options_t *options, bool lock, unsigned round) {
  const char *who = lock ? "with a lock" : "without a lock";
  fixture_plan_t plan = {.keys = 1, .value_len = 16, .lock = lock};
  fixture_t *fixture = fixture_open(&plan);
  race_plan_t race = {.way = RACE_MISS, .pending = MISS_PENDING, .calls = TRIAL_CALLS};
  servers_flush();
  race.calls = (uint64_t)(race_run(fixture, &race).rate * options->seconds) + 1;
  race_outcome_t o = race_run(fixture, &race);
  fixture_close(fixture);
  report_add("C", who, "misses", "/s", o.rate, none);
  report_add("C", who, "client", "us", o.client_cpu / 1e3, none);
  report_add("C", who, "server", "us", o.server_cpu / 1e3, none);
  report_add("C", who, "commands for each", "", o.commands, none);
  report_add("C", who, "allocations for each", "", o.allocations, none);
  fprintf(stderr, "round %u of %u: C, %-14s %9.0f misses/s, %.1f commands each\n", round,
          options->rounds, who, o.rate, o.commands);
}

static void measure_round(const bench_options_t *options, unsigned round) {
  if (bench_wants(options, "A"))
    measure_all_hits(options, round);
  if (bench_wants(options, "B"))
    measure_peeks(options, round);
  if (bench_wants(options, "C")) {
    measure_misses(options, true, round);
    measure_misses(options, false, round);
  }
  if (bench_wants(options, "D"))
    measure_many(options, round);
}

static void run(const bench_options_t *options) {
  static const char *const parts[][2] = {
      {"A",
       "hits of belay_cache_get(), beside GETs of the same strings: bytes of a value, one key or "
       "100,000 (of 16 KiB: 10,000) / number of pending gets; processor time for each"},
      {"B",
       "belay_cache_peek() in a table of 100,000 keys of 16 bytes: random keys of the first N"},
      {"C", "misses of belay_cache_get(), loaded at once, 64 pending"},
      {"D", "belay_cache_get_many() of 100 keys, values of 16 B, 4 pending; GETs: 400 pending"},
  };
  bench_begin(options);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (bench_wants(options, parts[i][0]))
      report_part(parts[i][0], parts[i][1]);
  for (unsigned round = 1; round <= options->rounds; round++)
    measure_round(options, round);
  report_finish(bench_cache.name, options);
}

const bench_scenario_t bench_cache = {
    .name = "cache",
    .about = "gets of a cache, beside GETs; peeks, misses; SECONDS for each row",
    .seconds = 1,
    .run = run,
};
