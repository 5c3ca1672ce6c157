#include "load/report/plots.h"

#include "load/report/growth.h"

enum { CURVE_MIN = 3 }; /* points of a curve that is drawn */

static const char *const x_names[AXES] = {
    [AXIS_CONCURRENCY] = "operations in flight (log)", [AXIS_KEYS] = "keys (log)"};

/* The size that most subjects have in common; of these the last. */
static const result_t *common(const results_t *results, const scenario_t *scenario) {
  const result_t *best = NULL;
  unsigned most = 0;
  for (unsigned i = 0; i < results->n; i++) {
    const result_t *r = &results->result[i];
    unsigned n = 0;
    for (unsigned k = 0; k < results->n && r->load != LOAD_HALF; k++)
      n += result_is_beside(r, &results->result[k]);
    if (r->scenario == scenario && n >= most) {
      best = r;
      most = n;
    }
  }
  return best;
}

static series_t *add(panel_t *panel, subject_t subject) {
  series_t *s = &panel->series[panel->n++];
  *s = (series_t){.name = subject_names[subject],
                  .colour = subject,
                  .look = subject == SUBJECT_BELAY   ? LOOK_STRONG
                          : subject == SUBJECT_LIMIT ? LOOK_FAINT
                                                     : LOOK_PLAIN};
  return s;
}

static void entitle(panel_t *panel, const scenario_t *scenario, const char *title,
                    const char *about) {
  (void)snprintf(panel->title, PLOT_TEXT, "%s: %s", scenario->name, title);
  (void)snprintf(panel->about, PLOT_TEXT, "%s", about);
}

static void put_common(panel_t *panel, const results_t *results, const scenario_t *scenario) {
  const result_t *first = common(results, scenario);
  char title[PLOT_TEXT - 32];
  *panel = (panel_t){.bars = true, .y_name = "operations per second; more is better"};
  (void)snprintf(title, sizeof title, "throughput with %u operations in flight and %u keys",
                 first->concurrency, first->keys);
  entitle(panel, scenario, title, scenario->about);
  for (unsigned i = 0; i < results->n; i++)
    if (result_is_beside(first, &results->result[i]))
      add(panel, results->result[i].subject)->y[0] = result_median(&results->result[i], FIGURE_OPS);
}

/* Returns false if belay has too few points. */
static bool put_curves(panel_t *panel, const results_t *results, const scenario_t *scenario,
                       axis_t axis, load_t load, figure_t figure) {
  *panel = (panel_t){.x_name = x_names[axis]};
  for (subject_t subject = 0; subject < SUBJECTS; subject++) {
    curve_t curve = growth_curve(results, scenario, subject, axis, load);
    if (curve.n < (subject == SUBJECT_BELAY ? CURVE_MIN : 1) || subject == SUBJECT_SINGLE)
      continue;
    series_t *s = add(panel, subject);
    for (; s->n < curve.n; s->n++) {
      s->x[s->n] = axis_of(curve.at[s->n], axis);
      s->y[s->n] = result_median(curve.at[s->n], figure);
    }
  }
  return panel->n > 0 && panel->series[0].colour == SUBJECT_BELAY;
}

unsigned plots_throughput(panel_t *panels, const results_t *results, const scenario_t *scenario) {
  static const char *const titles[AXES] = {[AXIS_CONCURRENCY] =
                                               "throughput by number of operations in flight",
                                           [AXIS_KEYS] = "throughput by number of keys"};
  unsigned n = 0;
  for (axis_t axis = 0; axis < AXES; axis++) {
    panel_t *panel = &panels[n];
    if (!put_curves(panel, results, scenario, axis, LOAD_CLOSED, FIGURE_OPS))
      continue;
    panel->y_name = "operations per second; more is better";
    entitle(panel, scenario, titles[axis], scenario->about);
    n++;
  }
  if (n == 0)
    put_common(&panels[n++], results, scenario);
  return n;
}

unsigned plots_latency(panel_t *panels, const results_t *results, const scenario_t *scenario) {
  if (!put_curves(panels, results, scenario, AXIS_CONCURRENCY, LOAD_HALF, FIGURE_P99))
    return 0;
  panels->time = true;
  panels->y_name = "99th percentile of the latency (log); less is better";
  entitle(panels, scenario, "latency at half load",
          "each point: all start the same operations per second, half of what belay reaches there");
  return 1;
}
