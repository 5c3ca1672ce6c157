#include "load/report/plots.h"

#include "load/report/growth.h"
#include "load/report/plot.h"

static bool is_beside(const result_t *a, const result_t *b) {
  return a->scenario == b->scenario && a->concurrency == b->concurrency && a->keys == b->keys &&
         a->batch == b->batch && a->placement == b->placement && a->load == b->load;
}

/* The size that most subjects have in common; of these the last. */
static const result_t *common(const results_t *results, const scenario_t *scenario) {
  const result_t *best = NULL;
  unsigned most = 0;
  for (unsigned i = 0; i < results->n; i++) {
    const result_t *r = &results->result[i];
    unsigned n = 0;
    for (unsigned k = 0; k < results->n && r->load != LOAD_HALF; k++)
      n += is_beside(r, &results->result[k]);
    if (r->scenario == scenario && n >= most) {
      best = r;
      most = n;
    }
  }
  return best;
}

static series_t *add(panel_t *panel, subject_t subject) {
  series_t *s = &panel->series[panel->n++];
  *s = (series_t){.name = subject_names[subject], .colour = subject};
  return s;
}

/* Subjects side by side: how many each does, and how long one takes. */
static unsigned put_common(panel_t *panels, const results_t *results, const scenario_t *scenario) {
  static const char *const words[] = {"p50", "p99", "p99.9", NULL};
  static const figure_t figures[] = {FIGURE_P50, FIGURE_P99, FIGURE_P999};
  const result_t *first = common(results, scenario);
  panel_t *bars = &panels[0], *lines = &panels[1];
  *bars = (panel_t){.bars = true};
  *lines = (panel_t){.words = words};
  (void)snprintf(bars->title, PLOT_TITLE, "operations/s, %u at once, %u keys", first->concurrency,
                 first->keys);
  (void)snprintf(lines->title, PLOT_TITLE, "latency in µs, %u at once", first->concurrency);
  for (unsigned i = 0; i < results->n; i++) {
    const result_t *r = &results->result[i];
    if (!is_beside(first, r))
      continue;
    add(bars, r->subject)->y[0] = result_median(r, FIGURE_OPS);
    if (!(result_median(r, FIGURE_P50) > 0))
      continue;
    series_t *s = add(lines, r->subject);
    for (s->n = 0; s->n < 3; s->n++) {
      s->x[s->n] = 1 << s->n;
      s->y[s->n] = result_median(r, figures[s->n]);
    }
  }
  return lines->n > 0 ? 2 : 1;
}

static double ops_of(const result_t *result) {
  return result_median(result, FIGURE_OPS);
}

static unsigned put_growth(panel_t *panel, const results_t *results, const scenario_t *scenario,
                           axis_t axis, unsigned points, const char *what,
                           double (*value)(const result_t *result)) {
  unsigned longest = 0;
  *panel = (panel_t){.n = 0};
  (void)snprintf(panel->title, PLOT_TITLE, "%s over %s", what,
                 axis == AXIS_KEYS ? "keys" : "how many are at once");
  for (subject_t subject = 0; subject < SUBJECTS; subject++) {
    curve_t curve = growth_curve(results, scenario, subject, axis);
    longest = curve.n > longest ? curve.n : longest;
    if (curve.n < 2)
      continue;
    series_t *s = add(panel, subject);
    for (; s->n < curve.n; s->n++) {
      s->x[s->n] = axis_of(curve.at[s->n], axis);
      s->y[s->n] = value(curve.at[s->n]);
    }
  }
  return longest >= points;
}

void plots_write(FILE *out, const results_t *results, const scenario_t *scenario) {
  static panel_t panels[PLOT_PANELS];
  unsigned n = put_common(panels, results, scenario);
  for (axis_t axis = 0; axis < AXES; axis++) {
    n += put_growth(&panels[n], results, scenario, axis, 2, "operations/s", ops_of);
    n += put_growth(&panels[n], results, scenario, axis, 3, "processor µs of one", growth_cost);
  }
  plot_write(out, panels, n);
}
