#include "load/report/aims.h"

#include <math.h>
#include <stdio.h>

#include "load/report/growth.h"

typedef enum want { TOLD, AT_LEAST, AT_MOST } want_t;

/* A figure of belay or of `who`, divided by the same figure of another subject. */
typedef struct aim {
  const char *what, *scenario;
  unsigned concurrency, keys; /* 0 keys: any */
  placement_t placement;      /* PLACE_ANYWHERE: any; where there are several, the last */
  load_t load;
  subject_t who;    /* SUBJECT_BELAY unless said */
  subject_t beside; /* BELAY: nobody */
  figure_t figure;
  want_t want;
  const char *unit;
  double bound;
} aim_t;

#define OF_LIMIT .beside = SUBJECT_LIMIT, .figure = FIGURE_OPS, .unit = "x the limit"
#define OF_SINGLE .beside = SUBJECT_SINGLE, .figure = FIGURE_OPS, .unit = "x the single-call limit"
#define OF_NAIVE .beside = SUBJECT_NAIVE, .figure = FIGURE_OPS, .unit = "x naive-c"
#define CPU_OF_NAIVE .beside = SUBJECT_NAIVE, .figure = FIGURE_CLIENT, .unit = "x naive-c's"
#define EXCESS .figure = FIGURE_EXCESS, .unit = "us"

static const aim_t aims[] = {
    {"lock cycles, 1,000 at once", "lock", 1000, OF_LIMIT, .want = AT_LEAST, .bound = 0.95},
    {"the same of naive-c", "lock", 1000, .who = SUBJECT_NAIVE, OF_LIMIT},
    {"lock cycles, 64 at once", "lock", 64, OF_NAIVE, .want = AT_LEAST, .bound = 1.35},
    {"lock cycles, 1 at once, beside bare round trips, on one processor", "lock", 1,
     .placement = PLACE_SAME, OF_LIMIT, .want = AT_LEAST, .bound = 0.9},
    {"lock cycles, 1 at once, beside bare round trips, on two processors", "lock", 1,
     .placement = PLACE_APART, OF_LIMIT, .want = AT_LEAST, .bound = 0.9},
    {"p99 of lock cycles at half of the reached rate, minus the control's", "lock", 1000,
     .load = LOAD_HALF, EXCESS},
    {"the same of naive-c, at half of its reached rate", "lock", 1000, .load = LOAD_HALF,
     .who = SUBJECT_NAIVE, EXCESS},
    {"client's processor time of a lock cycle, 64 at once", "lock", 64, CPU_OF_NAIVE,
     .want = AT_MOST, .bound = 0.7},
    {"client's processor time of a lock cycle, 1,000 at once", "lock", 1000, CPU_OF_NAIVE,
     .want = AT_MOST, .bound = 0.5},
    {"belay's own allocations for a lock cycle, 64 at once", "lock", 64,
     .figure = FIGURE_BELAY_ALLOCS, .unit = "", .want = AT_MOST, .bound = 0.01},
    {"belay's own allocations for a lock cycle, 1,000 at once", "lock", 1000,
     .figure = FIGURE_BELAY_ALLOCS, .unit = "", .want = AT_MOST, .bound = 0.01},
    {"all allocations for a lock cycle, 1,000 at once: two commands, and buffers", "lock", 1000,
     .figure = FIGURE_ALLOCS, .unit = "", .want = AT_MOST, .bound = 2.2},
    {"redlock cycles, 1 at once", "redlock", 1, .beside = SUBJECT_NODE_REDLOCK,
     .figure = FIGURE_OPS, .unit = "x node-redlock", .want = AT_LEAST, .bound = 1},
    {"redlock cycles, 64 at once", "redlock", 64, OF_NAIVE, .want = AT_LEAST, .bound = 1.8},
    {"the same of the servers themselves", "redlock", 64, .who = SUBJECT_LIMIT, OF_NAIVE},
    {"redlock cycles, 1,000 at once", "redlock", 1000, OF_NAIVE, .want = AT_LEAST, .bound = 1.5},
    {"the same of the servers themselves", "redlock", 1000, .who = SUBJECT_LIMIT, OF_NAIVE},
    {"belay's memory for each of 100,000 held leases", "renew", 100000, .figure = FIGURE_BYTES,
     .unit = "bytes", .want = AT_MOST, .bound = 256},
    {"takes (bucket), 1,000 at once, 10,000 keys", "limit-bucket", 1000, 10000, OF_SINGLE,
     .want = AT_LEAST, .bound = 1.3},
    {"the same of the server itself", "limit-bucket", 1000, 10000, .who = SUBJECT_LIMIT, OF_SINGLE},
    {"lock cycles, 1,000 at once, whose releases travel together", "lock", 1000, OF_SINGLE},
    {"the same of the server itself", "lock", 1000, .who = SUBJECT_LIMIT, OF_SINGLE},
    {"renewals, 1,000 at once, which travel together", "renew", 1000, OF_SINGLE},
    {"the same of the server itself", "renew", 1000, .who = SUBJECT_LIMIT, OF_SINGLE},
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

static const result_t *find(const results_t *results, const aim_t *aim, subject_t subject) {
  const result_t *found = NULL;
  for (unsigned i = 0; i < results->n; i++) {
    const result_t *r = &results->result[i];
    if (r->scenario == scenario_find(aim->scenario) && r->subject == subject &&
        r->concurrency == aim->concurrency && (aim->keys == 0 || r->keys == aim->keys) &&
        r->load == aim->load &&
        (aim->placement == PLACE_ANYWHERE || r->placement == aim->placement))
      found = r;
  }
  return found;
}

static double value_of(const results_t *results, const aim_t *aim) {
  const result_t *r = find(results, aim, aim->who), *other = NULL;
  if (r == NULL)
    return NAN;
  double value = result_median(r, aim->figure);
  if (aim->beside == SUBJECT_BELAY)
    return value;
  other = find(results, aim, aim->beside);
  return other != NULL ? value / result_median(other, aim->figure) : NAN;
}

static void judge(aim_row_t *row, double value, want_t want, double bound, const char *unit) {
  static const char *const words[] = {[AT_LEAST] = "at least", [AT_MOST] = "at most"};
  bool met = want == AT_LEAST ? value >= bound : value <= bound;
  row->asked[0] = row->measured[0] = '\0';
  if (want != TOLD)
    (void)snprintf(row->asked, sizeof row->asked, "%s %g", words[want], bound);
  if (!isnan(value))
    (void)snprintf(row->measured, sizeof row->measured, "%.*f%s%s", fabs(value) < 100 ? 3 : 0,
                   value, unit[0] != '\0' ? " " : "", unit);
  row->met = isnan(value) ? "not measured" : want == TOLD ? "" : met ? "yes" : "NO";
}

static void judge_growth(aim_row_t *row, const results_t *results, const struct growth_aim *aim) {
  curve_t curve = growth_curve(results, scenario_find(aim->scenario), SUBJECT_BELAY, aim->axis);
  bool far = curve.n > 2 && axis_of(curve.at[curve.n - 1], aim->axis) >=
                                TIMES_MIN * axis_of(curve.at[0], aim->axis);
  (void)snprintf(row->aim, sizeof row->aim, "%s: the total cost grows with %s by a power of",
                 aim->scenario, aim->axis == AXIS_KEYS ? "the keys" : "concurrency");
  judge(row, far ? growth_power(&curve, aim->axis) : NAN, AT_MOST, POWER_MAX, "");
}

bool aims_row(aim_row_t *row, const results_t *results, unsigned i) {
  if (i >= AIMS + GROWTHS)
    return false;
  if (i >= AIMS) {
    judge_growth(row, results, &growths[i - AIMS]);
    return true;
  }
  (void)snprintf(row->aim, sizeof row->aim, "%s", aims[i].what);
  judge(row, value_of(results, &aims[i]), aims[i].want, aims[i].bound, aims[i].unit);
  return true;
}
