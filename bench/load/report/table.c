#include "load/report/table.h"

#include <math.h>
#include <stdio.h>

#include "load/report/growth.h"

#define BEYOND 1.05 /* of the limit */

const char *const table_titles[TABLE_COLUMNS] = {
    "subject", "at once", "keys",   "batch",  "load",   "placed", "ops/s", "+-",
    "/limit",  "/single", "/naive", "p50 us", "p99 us", "/naive", "p99.9", "excess",
    "server",  "client",  "/naive", "busy",   "cmds",   "allocs", "bytes", "gap us",
};

const char *const table_legend[] = {
    "ops/s: median of the rounds; +-: spread of the rounds; /limit: ratio to the limit of the "
    "same size and placement.",
    "limit: belay's own commands, byte for byte, written by a loop that only counts the replies, "
    "with the best number of unanswered commands (16 to 1,000, or any number). For one operation "
    "at a time: bare round trips. keys: for a limit, the number of keys in its commands.",
    "limit-single: the same without batches: each call is a command of its own; /single: ratio to "
    "that.",
    "/naive: ratio to naive-c of the same size and placement: of the operations per second; behind "
    "p99, of the p99 at the same scheduled rate; behind client, of the client's processor time.",
    "load: empty: each operation starts when another one ends (a closed loop); half: a schedule, "
    "for belay and naive-c at the same rate, half of the rate of belay's closed loop; open: the "
    "rate of --rate. Latency counts from the scheduled start. busy: the client's share of a "
    "processor then.",
    "excess: p99 in us, minus that of a control loop with the same schedule and empty operations, "
    "just before.",
    "placed: same, apart: client and server on one processor, or each on its own; empty: left to "
    "the scheduler.",
    "server, client: processor time in us for each operation, of the server's main thread and of "
    "the client's process. cmds: commands that the server counted, also those inside scripts. "
    "allocs: calls of malloc() and similar functions. bytes: belay's memory for each object, if "
    "there are at least 1,000 (locks, token leases of a limit); empty if one handle serves all. "
    "gap: longest time in which the client's loop did not wait.",
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

void table_row(row_t *row, const results_t *results, const result_t *r) {
  static const subject_t others[] = {SUBJECT_LIMIT, SUBJECT_SINGLE, SUBJECT_NAIVE};
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
  for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
    put(row->cell[n++], result_ratio(results, r, others[i], FIGURE_OPS), 2);
  for (unsigned i = 0; i < sizeof figures / sizeof *figures; i++, n++) {
    figure_t figure = figures[i].figure;
    if (figure != FIGURE_BUSY || r->load != LOAD_CLOSED)
      put(row->cell[n], result_median(r, figure), figures[i].digits);
    if (figure == FIGURE_P99 || figure == FIGURE_CLIENT) /* then its ratio */
      put(row->cell[++n], result_ratio(results, r, SUBJECT_NAIVE, figure), 2);
  }
}

static bool note_growth(char note[TABLE_NOTE], const results_t *results, const scenario_t *scenario,
                        axis_t axis) {
  curve_t curve = growth_curve(results, scenario, SUBJECT_BELAY, axis, LOAD_CLOSED);
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
  double ratio = result_ratio(results, r, SUBJECT_LIMIT, FIGURE_OPS);
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
