#include "load/report/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench.h"
#include "load/report/aims.h"
#include "load/report/plots.h"
#include "load/report/table.h"

enum { PATH_SIZE = 512 };

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

/* Return the next scenario with results, from number i on; NULL: there is none. */
static const scenario_t *next(const results_t *results, unsigned *i) {
  for (; *i < scenarios_len; ++*i)
    for (unsigned k = 0; k < results->n; k++)
      if (results->result[k].scenario == &scenarios[*i])
        return &scenarios[(*i)++];
  return NULL;
}

static bool is_next(const results_t *results, const scenario_t *scenario, row_t *row, unsigned *i) {
  for (; *i < results->n; ++*i)
    if (results->result[*i].scenario == scenario) {
      table_row(row, results, &results->result[(*i)++]);
      return true;
    }
  return false;
}

static void print_cells(const char *const *titles, const row_t *row) {
  static const int widths[TABLE_COLUMNS] = {-13, 7, 8, 5, 5, 6, 9, 4, 6, 7, 6, 7,
                                            7,   6, 7, 7, 7, 7, 6, 5, 6, 6, 6, 6};
  for (unsigned c = 0; c < TABLE_COLUMNS; c++)
    printf(c > 0 ? " %*s" : "%*s", widths[c], titles != NULL ? titles[c] : row->cell[c]);
  putchar('\n');
}

void report_print(const results_t *results) {
  const scenario_t *scenario;
  char note[TABLE_NOTE];
  aim_row_t aim;
  row_t row;
  for (unsigned i = 0; i < results->facts; i++)
    printf("%s: %s\n", results->fact[i], results->value[i]);
  for (unsigned i = 0; (scenario = next(results, &i)) != NULL;) {
    printf("\n%s: %s\n", scenario->name, scenario->about);
    print_cells(table_titles, NULL);
    for (unsigned k = 0; is_next(results, scenario, &row, &k);)
      print_cells(NULL, &row);
    if (scenario->limit != NULL)
      printf("limit: %s\n", scenario->limit);
    for (unsigned k = 0; table_note(note, results, scenario, &k);)
      printf("%s\n", note);
  }
  printf("\naims, except those that were not measured\n");
  for (unsigned i = 0; aims_row(&aim, results, i); i++)
    if (aim.measured[0] != '\0')
      printf("%-8s  %-15s  %-24s  %s\n", aim.met, aim.asked, aim.measured, aim.aim);
}

static void put_text(FILE *out, const char *text) {
  fputc('"', out);
  for (; *text != '\0'; text++) {
    if (*text == '"' || *text == '\\')
      fprintf(out, "\\%c", *text);
    else if ((unsigned char)*text >= ' ')
      fputc(*text, out);
  }
  fputc('"', out);
}

static void put_figure(FILE *out, const char *name, double n) {
  if (isfinite(n))
    fprintf(out, ", \"%s\": %.9g", name, n);
  else
    fprintf(out, ", \"%s\": null", name);
}

static void put_result(FILE *out, const results_t *results, const result_t *r) {
  fprintf(out,
          "{\"scenario\": \"%s\", \"subject\": \"%s\", \"concurrency\": %u, \"keys\": %u, "
          "\"batch\": %u, \"load\": \"%s\", \"placement\": \"%s\"",
          r->scenario->name, subject_names[r->subject], r->concurrency, r->keys, r->batch,
          load_names[r->load], placement_names[r->placement]);
  for (unsigned f = 0; f < FIGURES; f++)
    put_figure(out, figure_names[f], result_median(r, f));
  put_figure(out, "ratio_to_limit", result_ratio(results, r, SUBJECT_LIMIT, FIGURE_OPS));
  put_figure(out, "ratio_to_single", result_ratio(results, r, SUBJECT_SINGLE, FIGURE_OPS));
  put_figure(out, "ratio_to_naive", result_ratio(results, r, SUBJECT_NAIVE, FIGURE_OPS));
  put_figure(out, "client_ratio_to_naive", result_ratio(results, r, SUBJECT_NAIVE, FIGURE_CLIENT));
  put_figure(out, "p99_ratio_to_naive", result_ratio(results, r, SUBJECT_NAIVE, FIGURE_P99));
  fputs(", \"runs\": [", out);
  for (unsigned i = 0; i < r->runs; i++)
    fprintf(out, "%s%.9g", i > 0 ? ", " : "", r->figure[FIGURE_OPS][i]);
  fputs("]}", out);
}

void report_json(const results_t *results, const char *path) {
  FILE *out = create(path);
  aim_row_t aim;
  fputs("{\"facts\": {", out);
  for (unsigned i = 0; i < results->facts; i++) {
    fputs(i > 0 ? ", " : "", out);
    put_text(out, results->fact[i]);
    fputs(": ", out);
    put_text(out, results->value[i]);
  }
  fputs("},\n\"results\": [\n", out);
  for (unsigned i = 0; i < results->n; i++) {
    put_result(out, results, &results->result[i]);
    fputs(i + 1 < results->n ? ",\n" : "\n", out);
  }
  fputs("],\n\"aims\": [\n", out);
  for (unsigned i = 0; aims_row(&aim, results, i); i++) {
    fputs(i > 0 ? ",\n{\"aim\": " : "{\"aim\": ", out);
    put_text(out, aim.aim);
    fputs(", \"asked\": ", out);
    put_text(out, aim.asked);
    fputs(", \"measured\": ", out);
    put_text(out, aim.measured);
    fputs(", \"met\": ", out);
    put_text(out, aim.met);
    fputc('}', out);
  }
  fputs("\n]}\n", out);
  finish(out, path);
}

static void put_rows(FILE *out, const results_t *results, const scenario_t *scenario) {
  row_t row;
  for (unsigned c = 0; c < TABLE_COLUMNS; c++)
    fprintf(out, "| %s ", table_titles[c]);
  fputs("|\n|", out);
  for (unsigned c = 0; c < TABLE_COLUMNS; c++)
    fputs(c > 0 ? "--:|" : "---|", out);
  fputc('\n', out);
  for (unsigned i = 0; is_next(results, scenario, &row, &i);) {
    for (unsigned c = 0; c < TABLE_COLUMNS; c++)
      fprintf(out, row.cell[c][0] != '\0' ? "| %s " : "|%s ", row.cell[c]);
    fputs("|\n", out);
  }
}

/* Write a plot and its link, if there is one. folder: that of the Markdown file, which ends with a
 * slash or is empty. */
static void write_plot(FILE *markdown, const results_t *results, const scenario_t *scenario,
                       plots_fn *plots, const char *folder, const char *suffix) {
  static panel_t panels[PLOT_PANELS];
  char path[PATH_SIZE + TABLE_CELL];
  unsigned n = plots(panels, results, scenario);
  if (n == 0)
    return;
  (void)snprintf(path, sizeof path, "%splots", folder);
  if (mkdir(path, 0777) != 0 && errno != EEXIST)
    bench_die("%s: %s", path, strerror(errno));
  (void)snprintf(path, sizeof path, "%splots/%s%s.svg", folder, scenario->name, suffix);
  FILE *out = create(path);
  plot_write(out, panels, n);
  finish(out, path);
  fprintf(markdown, "\n![%s](plots/%s%s.svg)\n", panels[0].title, scenario->name, suffix);
}

void report_markdown(const results_t *results, const char *path) {
  const scenario_t *scenario;
  const char *stroke = strrchr(path, '/');
  char folder[PATH_SIZE], note[TABLE_NOTE];
  aim_row_t aim;
  (void)snprintf(folder, sizeof folder, "%.*s", stroke != NULL ? (int)(stroke + 1 - path) : 0,
                 path);
  FILE *out = create(path);
  fputs("# Results\n\nWritten by `bench --markdown`. On a shared machine only ratios of "
        "one run mean something.\n\n| | |\n|---|---|\n",
        out);
  for (unsigned i = 0; i < results->facts; i++)
    fprintf(out, "| %s | %s |\n", results->fact[i], results->value[i]);
  fputs("\n## Columns\n\n", out);
  for (unsigned i = 0; table_legend[i] != NULL; i++)
    fprintf(out, "- %s\n", table_legend[i]);
  for (unsigned i = 0; (scenario = next(results, &i)) != NULL;) {
    fprintf(out, "\n## %s\n\nIn words: %s.\n\n", scenario->name, scenario->about);
    put_rows(out, results, scenario);
    if (scenario->limit != NULL)
      fprintf(out, "\nThe limit: %s.\n", scenario->limit);
    for (unsigned k = 0; table_note(note, results, scenario, &k);)
      fprintf(out, "\n%s\n", note);
    write_plot(out, results, scenario, plots_throughput, folder, "");
    write_plot(out, results, scenario, plots_latency, folder, "-latency");
  }
  fputs("\n## Aims\n\n| aim | asked | measured | met |\n|---|--:|--:|---|\n", out);
  for (unsigned i = 0; aims_row(&aim, results, i); i++)
    fprintf(out, "| %s | %s | %s | %s |\n", aim.aim, aim.asked, aim.measured, aim.met);
  finish(out, path);
}
