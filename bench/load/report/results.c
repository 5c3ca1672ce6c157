#include "load/report/results.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "samples.h"

#define BEYOND_MIN 3 /* latencies that are longer than a percentile */

const char *const figure_names[FIGURES] = {
    [FIGURE_OPS] = "ops_per_s",
    [FIGURE_RATE] = "rate",
    [FIGURE_P50] = "p50_us",
    [FIGURE_P99] = "p99_us",
    [FIGURE_P999] = "p999_us",
    [FIGURE_CONTROL] = "p99_control_us",
    [FIGURE_EXCESS] = "p99_excess_us",
    [FIGURE_SERVER] = "server_us_per_op",
    [FIGURE_CLIENT] = "client_us_per_op",
    [FIGURE_COMMANDS] = "commands_per_op",
    [FIGURE_ALLOCS] = "allocs_per_op",
    [FIGURE_BELAY_ALLOCS] = "belay_allocs_per_op",
    [FIGURE_BYTES] = "bytes_per_object",
    [FIGURE_GAP] = "max_gap_us",
    [FIGURE_BUSY] = "client_share",
    [FIGURE_LATENCIES] = "latencies",
    [FIGURE_SECONDS] = "seconds",
    [FIGURE_KEYS] = "tape_keys",
    [FIGURE_WINDOW] = "tape_window",
};

const char *const load_names[LOADS] = {
    [LOAD_CLOSED] = "closed", [LOAD_OPEN] = "open", [LOAD_HALF] = "half"};

void results_fact(results_t *results, const char *name, const char *value) {
  if (results->facts == FACTS_MAX)
    bench_die("too many facts");
  (void)snprintf(results->fact[results->facts], FACT_NAME, "%s", name);
  (void)snprintf(results->value[results->facts], FACT_VALUE, "%s", value);
  results->facts++;
}

static bool is_of(const result_t *r, const scenario_t *scenario, subject_t subject,
                  const job_t *job) {
  return r->scenario == scenario && r->subject == subject && r->concurrency == job->concurrency &&
         r->keys == job->keys && r->batch == job->batch && r->placement == job->placement &&
         r->load == job->load;
}

static result_t *find(results_t *results, const scenario_t *scenario, subject_t subject,
                      const job_t *job) {
  for (unsigned i = 0; i < results->n; i++)
    if (is_of(&results->result[i], scenario, subject, job))
      return &results->result[i];
  if (results->n == RESULTS_MAX)
    bench_die("too many results");
  result_t *r = &results->result[results->n++];
  *r = (result_t){.scenario = scenario,
                  .subject = subject,
                  .concurrency = job->concurrency,
                  .keys = job->keys,
                  .batch = job->batch,
                  .placement = job->placement,
                  .load = job->load};
  return r;
}

/* Of too few it would be the largest, whatever that is. */
static double percentile(const hist_t *latency, double share) {
  return (double)latency->total * (1 - share) >= BEYOND_MIN ? (double)hist_at(latency, share) / 1e3
                                                            : NAN;
}

void results_add(results_t *results, const scenario_t *scenario, subject_t subject,
                 const job_t *job, const outcome_t *o) {
  result_t *r = find(results, scenario, subject, job);
  double n = (double)o->operations, p99 = percentile(&o->latency, 0.99);
  bool ours = subject == SUBJECT_BELAY || subject == SUBJECT_NAIVE;
  double control = o->control_p99 > 0 ? o->control_p99 * 1e6 : NAN;
  if (r->runs == RUNS_MAX || o->operations == 0)
    bench_die("%s of %s: nothing was done", scenario->name, subject_names[subject]);
  const double values[FIGURES] = {
      [FIGURE_OPS] = n / o->elapsed,
      [FIGURE_RATE] = job->rate > 0 ? job->rate * job->batch : NAN,
      [FIGURE_P50] = percentile(&o->latency, 0.5),
      [FIGURE_P99] = p99,
      [FIGURE_P999] = percentile(&o->latency, 0.999),
      [FIGURE_CONTROL] = control,
      [FIGURE_EXCESS] = p99 - control,
      [FIGURE_SERVER] = o->server_cpu * 1e6 / n,
      [FIGURE_CLIENT] = o->client_cpu * 1e6 / n,
      [FIGURE_COMMANDS] = (double)o->commands / n,
      [FIGURE_ALLOCS] = ours ? (double)o->allocations / n : NAN,
      [FIGURE_BELAY_ALLOCS] = subject == SUBJECT_BELAY ? (double)o->belay_allocations / n : NAN,
      [FIGURE_BYTES] = o->bytes_per_object > 0 ? o->bytes_per_object : NAN,
      [FIGURE_GAP] = ours ? o->gap * 1e6 : NAN,
      [FIGURE_BUSY] = o->client_cpu / o->elapsed,
      [FIGURE_LATENCIES] = (double)o->latency.total,
      [FIGURE_SECONDS] = o->elapsed,
      [FIGURE_KEYS] = o->keys > 0 ? (double)o->keys : NAN,
      [FIGURE_WINDOW] = o->window > 0 && o->window < UINT64_MAX ? (double)o->window : NAN,
  };
  for (unsigned f = 0; f < FIGURES; f++)
    r->figure[f][r->runs] = values[f];
  r->runs++;
}

double result_median(const result_t *result, figure_t figure) {
  double values[RUNS_MAX];
  unsigned n = 0;
  for (unsigned i = 0; i < result->runs; i++)
    if (!isnan(result->figure[figure][i]))
      values[n++] = result->figure[figure][i];
  return n > 0 ? samples_median(values, n) : NAN;
}

double result_spread(const result_t *result) {
  double values[RUNS_MAX];
  memcpy(values, result->figure[FIGURE_OPS], result->runs * sizeof *values);
  double low = samples_at(values, result->runs, 0), high = samples_at(values, result->runs, 1);
  return (high - low) / samples_median(values, result->runs);
}

bool result_is_beside(const result_t *a, const result_t *b) {
  return a->scenario == b->scenario && a->concurrency == b->concurrency && a->keys == b->keys &&
         a->batch == b->batch && a->placement == b->placement && a->load == b->load;
}

double result_ratio(const results_t *results, const result_t *result, subject_t other,
                    figure_t figure) {
  bool limit = other == SUBJECT_LIMIT || other == SUBJECT_SINGLE;
  if (result->subject == other || (limit && result->scenario->arithmetic) ||
      (result->load == LOAD_CLOSED) != (figure != FIGURE_P99))
    return NAN;
  for (unsigned i = 0; i < results->n; i++)
    if (results->result[i].subject == other && result_is_beside(result, &results->result[i]))
      return result_median(result, figure) / result_median(&results->result[i], figure);
  return NAN;
}
