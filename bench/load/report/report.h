/* Writes results: a table on the terminal, JSON, Markdown with plots. */
#ifndef BENCH_LOAD_REPORT_REPORT_H
#define BENCH_LOAD_REPORT_REPORT_H

#include <stdio.h>

#include "load/report/results.h"

void report_print(const results_t *results);
void report_json(const results_t *results, const char *path);

/* The plots are in plots/, in the same folder. */
void report_markdown(const results_t *results, const char *path);

#endif /* BENCH_LOAD_REPORT_REPORT_H */
