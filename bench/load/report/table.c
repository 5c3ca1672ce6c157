#include "load/report/table.h"

#include <math.h>
#include <stdio.h>

#include "load/report/growth.h"

#define BEYOND 1.05 /* of the limit */

const char *const table_titles[TABLE_COLUMNS] = {
    "subject", "at once", "keys",    "batch",  "load",   "placed", "ops/s",
    "+-",      "/limit",  "/single", "p50 us", "p99 us", "p99.9",  "excess",
    "server",  "client",  "busy",    "cmds",   "allocs", "bytes",  "gap us",
};

const char *const table_legend[] = {
    "ops/s: medians of the rounds; +-: their spread; /limit: the ratio to the limit of the same "
    "size and placement.",
    "limit: belay's own commands, word for word, written by a loop that only counts the answers, "
    "with as many unanswered "
    "(16 to 1,000, or no matter how many) as suit the server best. At 1 at once it is the bare "
    "round trips: a command, its answer, then the next. "
    "keys: of a limit, how many its commands touch.",
    "limit-single: the same, but calls that belay lets travel together, as one command, go each by "
    "itself; /single: the ratio to that.",
    "load: empty where each operation begins when another one ends (a closed loop); half: so many "
    "begin each second, by a schedule, as are half of what the closed loop has done; open: as many "
    "as --rate says. Latency counts from when an "
    "operation was to begin. busy: the client's share of a processor then.",
    "excess: of p99, in us, what an idle control loop has not: one that begins as many operations, "
    "which do nothing, just before.",
    "placed: same, apart: client and server on one processor, or each on its own; empty: left to "
    "the scheduler.",
    "server, client: processor time in us for each operation, of the server's main thread and of "
    "the client's process. cmds: that the server counted, those inside scripts too. allocs: calls "
    "of malloc() and the like. bytes: of belay's memory for each object, where there are at least "
    "1,000 of them (locks, slices of a limit); empty where one handle does it all. gap: the "
    "longest "
    "that the client's loop computed at a stretch.",
    "redis-py has a thread for each operation, which takes turns with all others: it is left out "
    "beyond 64.",
    NULL};

static const struct {
  figure_t figure;
  int digits;
} figures[] = {
    {FIGURE_P50, 0},    {FIGURE_P99, 0},    {FIGURE_P999, 0}, {FIGURE_EXCESS, 0},
    {FIGURE_SERVER, 2}, {FIGURE_CLIENT, 2}, {FIGURE_BUSY, 2}, {FIGURE_COMMANDS, 2},
    {FIGURE_ALLOCS, 2}, {FIGURE_BYTES, 0},  {FIGURE_GAP, 0},
};

static void put(char cell[TABLE_CELL], double n, int digits) {
  if (!isnan(n))
    (void)snprintf(cell, TABLE_CELL, "%.*f", digits, n);
}

/* Not of what is no limit to be near to, and of nobody to himself. */
static void put_ratio(char cell[TABLE_CELL], const results_t *results, const result_t *r,
                      subject_t limit) {
  if (r->subject == limit)
    return;
  if (limit == SUBJECT_LIMIT && r->scenario->arithmetic && r->load == LOAD_CLOSED)
    (void)snprintf(cell, TABLE_CELL, "-");
  else
    put(cell, result_ratio(results, r, limit), 2);
}

void table_row(row_t *row, const results_t *results, const result_t *r) {
  unsigned n = 0;
  double keys = result_median(r, FIGURE_KEYS);
  *row = (row_t){0};
  (void)snprintf(row->cell[n++], TABLE_CELL, "%s", subject_names[r->subject]);
  put(row->cell[n++], r->concurrency, 0);
  put(row->cell[n++], isnan(keys) ? (double)r->keys : keys, 0);
  put(row->cell[n++], r->batch > 1 ? (double)r->batch : (double)NAN, 0);
  (void)snprintf(row->cell[n++], TABLE_CELL, "%s", r->load > 0 ? load_names[r->load] : "");
  (void)snprintf(row->cell[n++], TABLE_CELL, "%s",
                 r->placement > 0 ? placement_names[r->placement] : "");
  put(row->cell[n++], result_median(r, FIGURE_OPS), 0);
  if (r->runs > 1)
    (void)snprintf(row->cell[n], TABLE_CELL, "%.0f%%", 100 * result_spread(r));
  n++;
  put_ratio(row->cell[n++], results, r, SUBJECT_LIMIT);
  put_ratio(row->cell[n++], results, r, SUBJECT_SINGLE);
  for (unsigned i = 0; i < sizeof figures / sizeof *figures; i++, n++)
    if (figures[i].figure != FIGURE_BUSY || r->load != LOAD_CLOSED)
      put(row->cell[n], result_median(r, figures[i].figure), figures[i].digits);
}

static bool note_growth(char note[TABLE_NOTE], const results_t *results, const scenario_t *scenario,
                        axis_t axis) {
  curve_t curve = growth_curve(results, scenario, SUBJECT_BELAY, axis);
  if (curve.n < 3)
    return false;
  const result_t *first = growth_base(&curve, axis), *last = curve.at[curve.n - 1];
  (void)snprintf(note, TABLE_NOTE,
                 "At its cheapest, with %u %s, belay's operation costs %.1f us of processor time; "
                 "with %u it costs %.1f: for all of them that grows with the power of %.2f.",
                 axis_of(first, axis), axis_names[axis], growth_cost(first), axis_of(last, axis),
                 growth_cost(last), growth_power(&curve, axis));
  return true;
}

/* belay sends what its limit does: it cannot be faster, unless the limit was measured while others
 * had the machine. */
static bool note_beyond(char note[TABLE_NOTE], const results_t *results, const scenario_t *scenario,
                        const result_t *r) {
  double ratio = result_ratio(results, r, SUBJECT_LIMIT);
  if (r->scenario != scenario || r->subject != SUBJECT_BELAY || !(ratio > BEYOND))
    return false;
  (void)snprintf(note, TABLE_NOTE,
                 "Beware: with %u at once and %u keys belay was %.2f times as fast as its limit, "
                 "which then is none: the machine was not quiet.",
                 r->concurrency, r->keys, ratio);
  return true;
}

bool table_note(char note[TABLE_NOTE], const results_t *results, const scenario_t *scenario,
                unsigned *i) {
  while (*i < AXES + results->n) {
    unsigned k = (*i)++;
    if (k < AXES ? note_growth(note, results, scenario, k)
                 : note_beyond(note, results, scenario, &results->result[k - AXES]))
      return true;
  }
  return false;
}
