/* Many want one lock. How much faster could anybody be?
 *
 * A lock that is handed over by asking the server cannot change hands more often than one
 * connection gets answers to the script that does it (part A), nor, if it is held for a while, more
 * often than once in that while and one round trip (parts B and C). Everything is measured against
 * that, in the same round, in processes of its own. */
#include "study/study.h"

#include <stdio.h>
#include <string.h>

#include "place.h"
#include "study/report.h"
#include "scripts.gen.h"
#include "server.h"
#include "study/team.h"

#define MS INT64_C(1000000)
#define BRIEF 0.2 /* of the run's seconds */

static const char delete_script[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
/* required values of the medians; 0: none */
typedef struct goals {
  double ratio, commands, share, across_ms;
} goals_t;

static const goals_t none = {.ratio = 0};
static const goals_t goals_a = {.ratio = 0.8, .commands = 1.2};
static const goals_t goals_b = {.ratio = 0.9};
static const goals_t goals_c = {.ratio = 0.8, .commands = 6, .share = 1.5, .across_ms = 0.5};

typedef struct row {
  const char *part, *who;
  group_name_t group;
  bool poll;
  unsigned interval_ms, processes, waiters;
  int64_t hold;
  double length; /* in the run's seconds */
  const goals_t *goals;
} row_t;

static const row_t rows[] = {
    /* the reference of all others comes first */
    {"A", "hiredis alone", GROUP_BARE, false, 0, 1, 1, 0, BRIEF, &none},
    {"A", "belay", GROUP_BELAY, false, 0, 1, 1000, 0, BRIEF, &goals_a},
    {"A", "belay, polling", GROUP_BELAY, true, 0, 1, 1000, 0, BRIEF, &goals_a},
    {"B", "hiredis alone", GROUP_BARE, false, 0, 1, 1, MS, BRIEF, &none},
    {"B", "belay", GROUP_BELAY, false, 0, 1, 100, MS, BRIEF, &goals_b},
    {"B", "belay, polling", GROUP_BELAY, true, 0, 1, 100, MS, BRIEF, &goals_b},
    {"B", "naive C, 1 ms", GROUP_NAIVE, false, 1, 1, 100, MS, BRIEF, &none},
    {"B", "naive C, 10 ms", GROUP_NAIVE, false, 10, 1, 100, MS, BRIEF, &none},
    {"C", "belay", GROUP_BELAY, false, 0, 4, 25, MS, 1, &goals_c},
    {"C", "belay, polling", GROUP_BELAY, true, 0, 4, 25, MS, 1, &none},
    {"C", "naive C, 1 ms", GROUP_NAIVE, false, 1, 4, 25, MS, BRIEF, &none},
    {"C", "naive C, 10 ms", GROUP_NAIVE, false, 10, 4, 25, MS, BRIEF, &none},
};
#define ROWS (sizeof rows / sizeof *rows)

static report_target_t at_least(double limit) {
  return (report_target_t){limit > 0 ? TARGET_AT_LEAST : TARGET_NONE, limit};
}

static report_target_t at_most(double limit) {
  return (report_target_t){limit > 0 ? TARGET_AT_MOST : TARGET_NONE, limit};
}

static void add(const row_t *row, const char *what, const char *unit, double value,
                report_target_t target) {
  report_add(row->part, row->who, what, unit, value, target);
}

static void add_plain(const row_t *row, const char *what, const char *unit, double value) {
  add(row, what, unit, value, (report_target_t){TARGET_NONE, 0});
}

/* The upper limit: one grant for each measured hold and round trip. */
static double ceiling(const outcome_t *o, double round_trip_ns) {
  return 1e9 / (o->held + round_trip_ns);
}

static void add_outcome(const row_t *row, const outcome_t *o, double round_trip_ns) {
  bool reference = row->group == GROUP_BARE && row->hold == 0;
  add_plain(row, "grants", "/s", o->grants);
  if (row->group != GROUP_BARE) {
    add_plain(row, "of these to another waiter", "/s", o->passed);
    add_plain(row, "longest wait", "ms", o->longest_wait / 1e6);
  }
  if (!reference) {
    add(row, row->hold == 0 ? "hand-overs / serial rate" : "grants / ceiling", "",
        row->hold == 0 && row->group != GROUP_BARE ? o->passed * round_trip_ns / 1e9
                                                   : o->grants / ceiling(o, round_trip_ns),
        at_least(row->goals->ratio));
    add(row, "commands for each grant", "", o->commands, at_most(row->goals->commands));
  }
  if (row->hold > 0)
    add_plain(row, "hold, as it was", "ms", o->held / 1e6);
  if (row->hold > 0 || row->group != GROUP_BARE)
    add_plain(row, "release to grant, inside", "ms", o->within_median / 1e6);
  if (row->processes > 1) {
    add(row, "release to grant, across", "ms", o->across_median / 1e6,
        at_most(row->goals->across_ms));
    add_plain(row, "the same, 99 % within", "ms", o->across_p99 / 1e6);
    add_plain(row, "changes of process", "/s", o->changes);
    add(row, "largest over smallest share", "", o->share, at_most(row->goals->share));
  }
  add_plain(row, "beside the server", "%", o->beside * 100);
  add_plain(row, "clients' processor time", "us", o->client_cpu / 1e3);
  add_plain(row, "server's processor time", "us", o->server_cpu / 1e3);
}

static outcome_t measure(const row_t *row, const bench_options_t *options, const job_t *scripts) {
  job_t job = *scripts;
  job.group = row->group;
  job.poll = row->poll;
  job.interval_ms = row->interval_ms;
  job.processes = row->processes;
  job.waiters = row->waiters;
  job.hold = row->hold;
  job.seconds = options->seconds * row->length;
  job.pin = options->pin;
  return team_run(&job);
}

static void measure_round(const bench_options_t *options, const job_t *scripts, unsigned round) {
  double round_trip_ns = 0;
  for (size_t i = 0; i < ROWS; i++) {
    if (i != 0 && !bench_wants(options, rows[i].part))
      continue;
    outcome_t o = measure(&rows[i], options, scripts);
    if (i == 0)
      round_trip_ns = 1e9 / o.grants;
    add_outcome(&rows[i], &o, round_trip_ns);
    fprintf(stderr, "round %u of %u: %s, %-14s %9.0f/s\n", round, options->rounds, rows[i].part,
            rows[i].who, o.grants);
  }
}

static void name_parts(const bench_options_t *options) {
  static const char *const parts[][2] = {
      {"A", "1,000 waiters in one process; released as soon as it is granted"},
      {"B", "100 waiters in one process; held for 1 ms"},
      {"C", "4 processes with 25 waiters each; held for 1 ms"},
  };
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (i == 0 || bench_wants(options, parts[i][0]))
      report_part(parts[i][0], parts[i][1]);
}

static void run(const bench_options_t *options) {
  char place[512];
  job_t scripts = {0};
  place_describe(options->pin, place, sizeof place);
  server_start(options->pin);
  server_load(belay__script_lock_hand_over.text, scripts.pass_sha);
  server_load(delete_script, scripts.delete_sha);
  report_fact("placement", place);
  report_fact("server", server_version());
  name_parts(options);
  for (unsigned round = 1; round <= options->rounds; round++)
    measure_round(options, &scripts, round);
  report_finish(bench_contention.name, options);
}

const bench_scenario_t bench_contention = {
    .name = "contention",
    .about = "many waiters for one lock; SECONDS for each row of 4 processes, a fifth for others",
    .seconds = 10,
    .run = run,
};
