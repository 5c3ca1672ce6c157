#include "load/report/growth.h"

#include <math.h>

enum { FAR = 10 };

const char *const axis_names[AXES] = {[AXIS_CONCURRENCY] = "at once", [AXIS_KEYS] = "keys"};

unsigned axis_of(const result_t *result, axis_t axis) {
  return axis == AXIS_CONCURRENCY ? result->concurrency : result->keys;
}

double growth_cost(const result_t *result) {
  return result_median(result, FIGURE_SERVER) + result_median(result, FIGURE_CLIENT);
}

/* Where each operation has a key of its own, keys grow with the concurrency: that is no
 * difference. */
static bool agree(const result_t *a, const result_t *b, axis_t axis) {
  bool own_a = a->keys == a->concurrency, own_b = b->keys == b->concurrency;
  if (a->scenario != b->scenario || a->subject != b->subject || a->batch != b->batch ||
      a->load != b->load || a->placement != b->placement)
    return false;
  return axis == AXIS_KEYS ? a->concurrency == b->concurrency
                           : a->keys == b->keys || (own_a && own_b);
}

static void insert(curve_t *curve, const result_t *result, axis_t axis) {
  unsigned i = curve->n++;
  for (; i > 0 && axis_of(curve->at[i - 1], axis) > axis_of(result, axis); i--)
    curve->at[i] = curve->at[i - 1];
  curve->at[i] = result;
}

curve_t growth_curve(const results_t *results, const scenario_t *scenario, subject_t subject,
                     axis_t axis, load_t load) {
  curve_t longest = {0};
  for (unsigned i = 0; i < results->n; i++) {
    const result_t *first = &results->result[i];
    curve_t curve = {0};
    if (first->scenario != scenario || first->subject != subject || first->load != load)
      continue;
    for (unsigned k = 0; k < results->n && curve.n < CURVE_MAX; k++)
      if (agree(first, &results->result[k], axis))
        insert(&curve, &results->result[k], axis);
    if (curve.n > longest.n)
      longest = curve;
  }
  return longest;
}

const result_t *growth_base(const curve_t *curve, axis_t axis) {
  const result_t *base = curve->at[0];
  unsigned last = axis_of(curve->at[curve->n - 1], axis);
  for (unsigned i = 1; i < curve->n && axis_of(curve->at[i], axis) <= last / FAR; i++)
    if (growth_cost(curve->at[i]) < growth_cost(base))
      base = curve->at[i];
  return base;
}

double growth_power(const curve_t *curve, axis_t axis) {
  const result_t *first = growth_base(curve, axis), *last = curve->at[curve->n - 1];
  double n = axis_of(first, axis), m = axis_of(last, axis);
  return log(growth_cost(last) * m / (growth_cost(first) * n)) / log(m / n);
}
