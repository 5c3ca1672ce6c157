#include "load/table.h"

#include <math.h>
#include <stdio.h>

#include "load/growth.h"

const char *const table_titles[TABLE_COLUMNS] = {
    "subject", "at once", "keys",   "batch",  "load",   "placed", "ops/s",
    "+-",      "/limit",  "p50 us", "p99 us", "p99.9",  "excess", "server",
    "client",  "cmds",    "allocs", "bytes",  "gap us",
};

const char *const table_legend[] = {
    "ops/s: medians of the rounds; +-: their spread; /limit: the ratio to the limit of the same "
    "size and placement.",
    "limit: belay's own commands, word for word, written without end by a loop that only counts "
    "the answers. At 1 at once it is the bare round trips: a command, its answer, then the next.",
    "load: empty where each operation begins when another one ends (a closed loop); half: so many "
    "begin each second, by a schedule, as are half of what the closed loop has done; open: as many "
    "as --rate says. Latency counts from when an operation was to begin.",
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
    {FIGURE_P50, 0},    {FIGURE_P99, 0},    {FIGURE_P999, 0},     {FIGURE_EXCESS, 0},
    {FIGURE_SERVER, 2}, {FIGURE_CLIENT, 2}, {FIGURE_COMMANDS, 2}, {FIGURE_ALLOCS, 2},
    {FIGURE_BYTES, 0},  {FIGURE_GAP, 0},
};

static void put(char cell[TABLE_CELL], double n, int digits) {
  if (!isnan(n))
    (void)snprintf(cell, TABLE_CELL, "%.*f", digits, n);
}

void table_row(row_t *row, const results_t *results, const result_t *r) {
  unsigned n = 0;
  *row = (row_t){0};
  (void)snprintf(row->cell[n++], TABLE_CELL, "%s", subject_names[r->subject]);
  put(row->cell[n++], r->concurrency, 0);
  put(row->cell[n++], r->keys, 0);
  put(row->cell[n++], r->batch > 1 ? (double)r->batch : (double)NAN, 0);
  (void)snprintf(row->cell[n++], TABLE_CELL, "%s", r->load > 0 ? load_names[r->load] : "");
  (void)snprintf(row->cell[n++], TABLE_CELL, "%s",
                 r->placement > 0 ? placement_names[r->placement] : "");
  put(row->cell[n++], result_median(r, FIGURE_OPS), 0);
  if (r->runs > 1)
    (void)snprintf(row->cell[n], TABLE_CELL, "%.0f%%", 100 * result_spread(r));
  n++;
  put(row->cell[n++], r->subject == SUBJECT_LIMIT ? NAN : result_ratio(results, r), 2);
  for (unsigned i = 0; i < sizeof figures / sizeof *figures; i++)
    put(row->cell[n++], result_median(r, figures[i].figure), figures[i].digits);
}

bool table_growth(char note[TABLE_NOTE], const results_t *results, const scenario_t *scenario,
                  unsigned axis) {
  curve_t curve = growth_curve(results, scenario, SUBJECT_BELAY, axis);
  if (curve.n < 3)
    return false;
  const result_t *first = curve.at[0], *last = curve.at[curve.n - 1];
  double from = growth_cost(first), to = growth_cost(last);
  double power = log(to * axis_of(last, axis) / (from * axis_of(first, axis))) /
                 log((double)axis_of(last, axis) / axis_of(first, axis));
  (void)snprintf(note, TABLE_NOTE,
                 "From %u to %u %s, belay's operation costs %.1f us of processor time, then %.1f: "
                 "for all of them that grows with the power of %.2f.",
                 axis_of(first, axis), axis_of(last, axis), axis_names[axis], from, to, power);
  return true;
}
