/* The aims of belay, and whether this run reaches them. Only a report. */
#ifndef BENCH_LOAD_REPORT_AIMS_H
#define BENCH_LOAD_REPORT_AIMS_H

#include "load/report/results.h"

enum { AIMS_CELL = 160 };

typedef struct aim_row {
  char aim[AIMS_CELL], asked[AIMS_CELL], measured[AIMS_CELL]; /* measured: empty if it was not */
  const char *met;                                            /* reached, MISSED, not measured */
} aim_row_t;

/* Number i, from 0 on; false: there are no more. */
bool aims_row(aim_row_t *row, const results_t *results, unsigned i);

#endif /* BENCH_LOAD_REPORT_AIMS_H */
