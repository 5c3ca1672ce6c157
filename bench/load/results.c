#include "load/results.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "page.gen.h"
#include "samples.h"

enum { FACTS_MAX = 16 };

static struct {
  unsigned n;
  char name[FACTS_MAX][32], value[FACTS_MAX][160];
} facts;

static const char *const figure_names[FIGURES] = {
    [FIGURE_OPS] = "ops_per_s",
    [FIGURE_P50] = "p50_us",
    [FIGURE_P99] = "p99_us",
    [FIGURE_P999] = "p999_us",
    [FIGURE_SERVER] = "server_us_per_op",
    [FIGURE_CLIENT] = "client_us_per_op",
    [FIGURE_COMMANDS] = "commands_per_op",
    [FIGURE_ALLOCS] = "allocs_per_op",
    [FIGURE_BYTES] = "bytes_per_object",
    [FIGURE_GAP] = "max_gap_us",
};

void results_fact(const char *name, const char *value) {
  if (facts.n == FACTS_MAX)
    bench_die("too many facts");
  (void)snprintf(facts.name[facts.n], sizeof facts.name[0], "%s", name);
  (void)snprintf(facts.value[facts.n], sizeof facts.value[0], "%s", value);
  facts.n++;
}

/* ---- figures ----------------------------------------------------------------------------------------------- */

static bool is_of(const result_t *r, const scenario_t *scenario, subject_t subject,
                  const job_t *job) {
  return r->scenario == scenario && r->subject == subject && r->concurrency == job->concurrency &&
         r->keys == job->keys && r->batch == job->batch && r->rate == job->rate;
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
                  .rate = job->rate};
  return r;
}

void results_add(results_t *results, const scenario_t *scenario, subject_t subject,
                 const job_t *job, const outcome_t *o) {
  result_t *r = find(results, scenario, subject, job);
  double n = (double)o->operations;
  if (r->runs == RUNS_MAX || o->operations == 0)
    bench_die("%s of %s: nothing was done", scenario->name, subject_names[subject]);
  const double values[FIGURES] = {
      [FIGURE_OPS] = n / o->elapsed,
      [FIGURE_P50] = (double)hist_at(&o->latency, 0.5) / 1e3,
      [FIGURE_P99] = (double)hist_at(&o->latency, 0.99) / 1e3,
      [FIGURE_P999] = (double)hist_at(&o->latency, 0.999) / 1e3,
      [FIGURE_SERVER] = o->server_cpu * 1e6 / n,
      [FIGURE_CLIENT] = o->client_cpu * 1e6 / n,
      [FIGURE_COMMANDS] = (double)o->commands / n,
      [FIGURE_ALLOCS] = (double)o->allocations / n,
      [FIGURE_BYTES] = o->bytes_per_object,
      [FIGURE_GAP] = o->gap * 1e6,
  };
  for (unsigned f = 0; f < FIGURES; f++)
    r->figure[f][r->runs] = values[f];
  r->runs++;
}

double result_median(const result_t *result, figure_t figure) {
  double values[RUNS_MAX];
  memcpy(values, result->figure[figure], result->runs * sizeof *values);
  return samples_at(values, result->runs, 0.5);
}

/* Of all runs, the largest less the smallest, over the median. */
static double spread(const result_t *result) {
  double values[RUNS_MAX], median = result_median(result, FIGURE_OPS);
  memcpy(values, result->figure[FIGURE_OPS], result->runs * sizeof *values);
  double low = samples_at(values, result->runs, 0), high = samples_at(values, result->runs, 1);
  return median > 0 ? (high - low) / median : 0;
}

double result_ratio(const results_t *results, const result_t *result) {
  for (unsigned i = 0; i < results->n; i++) {
    const result_t *r = &results->result[i];
    if (r->scenario == result->scenario && r->subject == SUBJECT_LIMIT &&
        r->concurrency == result->concurrency && r->keys == result->keys &&
        r->batch == result->batch)
      return result_median(result, FIGURE_OPS) / result_median(r, FIGURE_OPS);
  }
  return 0;
}

/* ---- a table --------------------------------------------------------------------------------------------------- */

static void print_result(const results_t *results, const result_t *r) {
  printf("%-13s %-14s %7u %8u %5u %11.0f %4.0f%% %6.2f %9.0f %9.0f %9.0f %7.2f %7.2f %6.2f %6.2f "
         "%8.0f\n",
         subject_names[r->subject], r->scenario->name, r->concurrency, r->keys, r->batch,
         result_median(r, FIGURE_OPS), 100 * spread(r), result_ratio(results, r),
         result_median(r, FIGURE_P50), result_median(r, FIGURE_P99), result_median(r, FIGURE_P999),
         result_median(r, FIGURE_SERVER), result_median(r, FIGURE_CLIENT),
         result_median(r, FIGURE_COMMANDS), result_median(r, FIGURE_ALLOCS),
         result_median(r, FIGURE_GAP));
}

void results_print(const results_t *results) {
  for (unsigned i = 0; i < facts.n; i++)
    printf("%s: %s\n", facts.name[i], facts.value[i]);
  printf("\n%-13s %-14s %7s %8s %5s %11s %5s %6s %9s %9s %9s %7s %7s %6s %6s %8s\n", "subject",
         "scenario", "at once", "keys", "batch", "ops/s", "+-", "/limit", "p50 us", "p99 us",
         "p99.9 us", "server", "client", "cmds", "allocs", "gap us");
  for (unsigned i = 0; i < results->n; i++) {
    const result_t *r = &results->result[i];
    if (i == 0 || r->scenario != r[-1].scenario)
      printf("\n%s: %s\n", r->scenario->name, r->scenario->about);
    print_result(results, r);
  }
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static FILE *create(const char *path) {
  FILE *out = fopen(path, "w");
  if (out == NULL)
    bench_die("%s: %s", path, strerror(errno));
  return out;
}

static void finish(FILE *out, const char *path) {
  bool failed = ferror(out) != 0;
  if (fclose(out) != 0 || failed)
    bench_die("%s could not be written", path);
}

static void put_text(FILE *out, const char *text) {
  fputc('"', out);
  for (; *text != '\0'; text++) {
    if (*text == '"' || *text == '\\' || *text == '<')
      fprintf(out, "\\u%04x", (unsigned)*text);
    else if ((unsigned char)*text >= ' ')
      fputc(*text, out);
  }
  fputc('"', out);
}

static void put_result(FILE *out, const results_t *results, const result_t *r) {
  fprintf(
      out,
      "{\"scenario\": \"%s\", \"subject\": \"%s\", \"concurrency\": %u, \"keys\": %u, \"batch\": "
      "%u, \"rate\": %g",
      r->scenario->name, subject_names[r->subject], r->concurrency, r->keys, r->batch, r->rate);
  for (unsigned f = 0; f < FIGURES; f++)
    fprintf(out, ", \"%s\": %.6g", figure_names[f], result_median(r, f));
  fprintf(out, ", \"ratio_to_limit\": %.4g, \"runs\": [", result_ratio(results, r));
  for (unsigned i = 0; i < r->runs; i++)
    fprintf(out, "%s%.6g", i > 0 ? ", " : "", r->figure[FIGURE_OPS][i]);
  fputs("]}", out);
}

static void put_all(FILE *out, const results_t *results) {
  fputs("{\"facts\": {", out);
  for (unsigned i = 0; i < facts.n; i++) {
    fputs(i > 0 ? ", " : "", out);
    put_text(out, facts.name[i]);
    fputs(": ", out);
    put_text(out, facts.value[i]);
  }
  fputs("},\n\"results\": [\n", out);
  for (unsigned i = 0; i < results->n; i++) {
    put_result(out, results, &results->result[i]);
    fputs(i + 1 < results->n ? ",\n" : "\n", out);
  }
  fputs("]}\n", out);
}

void results_write_json(const results_t *results, const char *path) {
  FILE *out = create(path);
  put_all(out, results);
  finish(out, path);
}

/* One line of the page stands for the results, which it draws by itself. */
void results_write_page(const results_t *results, const char *path) {
  FILE *out = create(path);
  for (size_t i = 0; i < sizeof bench_page / sizeof *bench_page; i++) {
    if (strcmp(bench_page[i], "RESULTS_GO_HERE") == 0)
      put_all(out, results);
    else
      fprintf(out, "%s\n", bench_page[i]);
  }
  finish(out, path);
}
