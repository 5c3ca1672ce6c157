#include "load/report/aims.h"

#include <math.h>
#include <stdio.h>

#include "load/report/growth.h"

typedef enum want { AT_LEAST, AT_MOST } want_t;

/* A figure of belay, or its ratio to the same figure of another subject. */
typedef struct measure {
  const char *what;
  want_t want;
  figure_t figure;
  subject_t other; /* SUBJECT_BELAY: none */
  load_t load;
} measure_t;

static const measure_t of_naive = {"operations/s, ratio to naive-c", AT_LEAST, .figure = FIGURE_OPS,
                                   .other = SUBJECT_NAIVE},
                       of_limit = {"operations/s, ratio to the limit", AT_LEAST,
                                   .figure = FIGURE_OPS, .other = SUBJECT_LIMIT},
                       of_single = {"operations/s, ratio to limit-single", AT_LEAST,
                                    .figure = FIGURE_OPS, .other = SUBJECT_SINGLE},
                       of_node = {"operations/s, ratio to node-redlock", AT_LEAST,
                                  .figure = FIGURE_OPS, .other = SUBJECT_NODE_REDLOCK},
                       rate = {"operations/s", AT_LEAST, .figure = FIGURE_OPS},
                       client = {"client's processor time, ratio to naive-c", AT_MOST,
                                 .figure = FIGURE_CLIENT, .other = SUBJECT_NAIVE},
                       p99 = {"p99 at half of belay's rate, ratio to naive-c at the same rate",
                              AT_MOST, FIGURE_P99, SUBJECT_NAIVE, LOAD_HALF},
                       allocations = {"belay's own allocations per operation", AT_MOST,
                                      .figure = FIGURE_BELAY_ALLOCS},
                       memory = {"belay's memory for each lease, in bytes", AT_MOST,
                                 .figure = FIGURE_BYTES};

static const struct aim {
  const char *scenario;
  unsigned concurrency, keys; /* 0 keys: any */
  const measure_t *measure;
  double bound;
  placement_t placement; /* PLACE_ANYWHERE: any; where there are several, the last */
} aims[] = {
    {"lock", 1, 0, &of_naive, .bound = 1.0, .placement = PLACE_APART},
    {"lock", 4, 0, &of_naive, .bound = 1.0},
    {"lock", 16, 0, &of_naive, .bound = 1.0},
    {"lock", 64, 0, &of_naive, .bound = 1.5},
    {"lock", 256, 0, &of_naive, .bound = 1.1},
    {"lock", 1000, 0, &of_naive, .bound = 1.1},
    {"lock", 4000, 0, &of_naive, .bound = 1.1},
    {"lock", 10000, 0, &of_naive, .bound = 1.1},
    {"redlock", 1, 0, &of_naive, .bound = 2.0},
    {"redlock", 64, 0, &of_naive, .bound = 1.8},
    {"redlock", 1000, 0, &of_naive, .bound = 1.2},
    {"limit-fixed", 1000, 10000, &of_naive, .bound = 0.9},
    {"lock", 64, 0, &client, .bound = 1},
    {"lock", 256, 0, &client, .bound = 1},
    {"lock", 1000, 0, &client, .bound = 1},
    {"lock", 4000, 0, &client, .bound = 1},
    {"lock", 10000, 0, &client, .bound = 1},
    {"redlock", 64, 0, &client, .bound = 1},
    {"redlock", 1000, 0, &client, .bound = 1},
    {"lock", 1, 0, &p99, .bound = 1, .placement = PLACE_APART},
    {"lock", 4, 0, &p99, .bound = 1},
    {"lock", 16, 0, &p99, .bound = 1},
    {"lock", 64, 0, &p99, .bound = 1},
    {"lock", 256, 0, &p99, .bound = 1},
    {"lock", 1000, 0, &p99, .bound = 1},
    {"lock", 4000, 0, &p99, .bound = 1},
    {"lock", 10000, 0, &p99, .bound = 1},
    {"redlock", 1, 0, &p99, .bound = 1},
    {"redlock", 64, 0, &p99, .bound = 1},
    {"redlock", 1000, 0, &p99, .bound = 1},
    {"limit-hot", 64, 0, &rate, .bound = 1e6},
    {"limit-hot", 1000, 0, &rate, .bound = 5e6},
    {"counter-hot", 64, 0, &rate, .bound = 1e6},
    {"counter-hot", 1000, 0, &rate, .bound = 5e6},
    {"lock", 1, 0, &of_limit, .bound = 0.9, .placement = PLACE_SAME},
    {"lock", 1, 0, &of_limit, .bound = 0.9, .placement = PLACE_APART},
    {"lock", 1000, 0, &of_limit, .bound = 0.95},
    {"limit-bucket", 1000, 10000, &of_single, .bound = 1.3},
    {"redlock", 1, 0, &of_node, .bound = 1},
    {"lock", 64, 0, &allocations, .bound = 0.01},
    {"lock", 1000, 0, &allocations, .bound = 0.01},
    {"renew", 100000, 0, &memory, .bound = 256},
};
enum { AIMS = sizeof aims / sizeof *aims };

/* How what all operations cost grows: linearly would be 1, and noise is not nothing. */
static const struct growth_aim {
  const char *scenario;
  axis_t axis;
} growths[] = {
    {"lock", AXIS_CONCURRENCY}, {"limit-bucket", AXIS_CONCURRENCY}, {"limit-bucket", AXIS_KEYS}};
enum { GROWTHS = sizeof growths / sizeof *growths };
#define POWER_MAX 1.05
#define TIMES_MIN 1000 /* as far as this at least */

static double value_of(const results_t *results, const struct aim *aim) {
  const measure_t *m = aim->measure;
  const result_t *found = NULL;
  for (unsigned i = 0; i < results->n; i++) {
    const result_t *r = &results->result[i];
    if (r->scenario == scenario_find(aim->scenario) && r->subject == SUBJECT_BELAY &&
        r->concurrency == aim->concurrency && (aim->keys == 0 || r->keys == aim->keys) &&
        r->load == m->load && (aim->placement == PLACE_ANYWHERE || r->placement == aim->placement))
      found = r;
  }
  if (found == NULL)
    return NAN;
  return m->other == SUBJECT_BELAY ? result_median(found, m->figure)
                                   : result_ratio(results, found, m->other, m->figure);
}

static void judge(aim_row_t *row, double value, want_t want, double bound) {
  static const char *const words[] = {[AT_LEAST] = "at least", [AT_MOST] = "at most"};
  bool reached = want == AT_LEAST ? value >= bound : value <= bound;
  row->measured[0] = '\0';
  (void)snprintf(row->asked, sizeof row->asked, "%s %.10g", words[want], bound);
  if (!isnan(value))
    (void)snprintf(row->measured, sizeof row->measured, "%.*f", value < 100 ? 3 : 0, value);
  row->met = isnan(value) ? "not measured" : reached ? "reached" : "MISSED";
}

static void judge_growth(aim_row_t *row, const results_t *results, const struct growth_aim *aim) {
  curve_t curve =
      growth_curve(results, scenario_find(aim->scenario), SUBJECT_BELAY, aim->axis, LOAD_CLOSED);
  bool far = curve.n > 2 && axis_of(curve.at[curve.n - 1], aim->axis) >=
                                TIMES_MIN * axis_of(curve.at[0], aim->axis);
  (void)snprintf(row->aim, sizeof row->aim, "%s: the total cost grows with %s by a power of",
                 aim->scenario, aim->axis == AXIS_KEYS ? "the keys" : "concurrency");
  judge(row, far ? growth_power(&curve, aim->axis) : NAN, AT_MOST, POWER_MAX);
}

bool aims_row(aim_row_t *row, const results_t *results, unsigned i) {
  if (i >= AIMS + GROWTHS)
    return false;
  if (i >= AIMS) {
    judge_growth(row, results, &growths[i - AIMS]);
    return true;
  }
  const struct aim *aim = &aims[i];
  (void)snprintf(row->aim, sizeof row->aim, "%s, %u at once%s: %s", aim->scenario, aim->concurrency,
                 aim->placement == PLACE_SAME ? ", on one processor" : "", aim->measure->what);
  judge(row, value_of(results, aim), aim->measure->want, aim->bound);
  return true;
}
