/* Fairness between processes: each has one waiter, which releases the lock after a while and asks
 * for it again at once. A fair turn is one hold of every process; the ceiling is one grant for each
 * hold. */
#include "study/study.h"

#include <stdio.h>

#include "server.h"
#include "study/report.h"
#include "study/team.h"

#define MS INT64_C(1000000)

static const struct row {
  const char *part, *title;
  unsigned processes;
  int64_t hold;
  double length; /* of the run's seconds */
  /* Aims; 0: none. commands_max is what was measured before wake-ups were spread by how long each
   * had waited, and 2. */
  double share_max, wait_max_ms, ratio_min, commands_max, across_max_ms;
} rows[] = {
    {"A", "20 processes, held for 40 ms", 20, 40 * MS, 1, 2, 3000, 0.95, 29, 0},
    {"B", "20 processes, held for 5 ms", 20, 5 * MS, 0.25, 0, 0, 0, 0, 0},
    {"C", "2 processes, held for 5 ms", 2, 5 * MS, 0.25, 2, 0, 0, 0, 0},
};
enum { ROWS = sizeof rows / sizeof *rows };

static report_target_t at_least(double limit) {
  return (report_target_t){limit > 0 ? TARGET_AT_LEAST : TARGET_NONE, limit};
}

static report_target_t at_most(double limit) {
  return (report_target_t){limit > 0 ? TARGET_AT_MOST : TARGET_NONE, limit};
}

static void measure(const bench_options_t *options, const struct row *row) {
  job_t job = {.group = GROUP_BELAY,
               .processes = row->processes,
               .waiters = 1,
               .hold = row->hold,
               .seconds = options->seconds * row->length,
               .pin = options->pin};
  const char *who = "belay";
  outcome_t o = team_run(&job);
  report_add(row->part, who, "smallest share", "", o.least, at_most(0));
  report_add(row->part, who, "largest share", "", o.most, at_most(0));
  report_add(row->part, who, "largest over smallest share", "", o.share, at_most(row->share_max));
  report_add(row->part, who, "longest wait", "ms", o.longest_wait / 1e6, at_most(row->wait_max_ms));
  report_add(row->part, who, "grants / ceiling", "", o.grants * (double)row->hold / 1e9,
             at_least(row->ratio_min));
  report_add(row->part, who, "commands for each grant", "", o.commands, at_most(row->commands_max));
  report_add(row->part, who, "release to grant, across", "ms", o.across_median / 1e6,
             at_most(row->across_max_ms));
  report_add(row->part, who, "the same, 99 % within", "ms", o.across_p99 / 1e6, at_most(0));
}

static void run(const bench_options_t *options) {
  bench_begin(options);
  for (unsigned i = 0; i < ROWS; i++)
    if (bench_wants(options, rows[i].part))
      report_part(rows[i].part, rows[i].title);
  for (unsigned round = 1; round <= options->rounds; round++)
    for (unsigned i = 0; i < ROWS; i++)
      if (bench_wants(options, rows[i].part)) {
        measure(options, &rows[i]);
        fprintf(stderr, "round %u of %u: %s\n", round, options->rounds, rows[i].title);
      }
  report_finish(bench_fairness.name, options);
}

const bench_scenario_t bench_fairness = {
    .name = "fairness",
    .about = "processes take turns with one lock; SECONDS for part A, a quarter for others",
    .seconds = 40,
    .run = run,
};
