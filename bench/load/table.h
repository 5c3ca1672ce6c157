/* The table: one row for each result, the same wherever it is shown. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include "load/results.h"

enum { TABLE_COLUMNS = 19, TABLE_CELL = 24, TABLE_NOTE = 200 };

typedef struct row {
  char cell[TABLE_COLUMNS][TABLE_CELL]; /* empty: not measured */
} row_t;

extern const char *const table_titles[TABLE_COLUMNS];

/* What the columns mean, and what is left out; until NULL. */
extern const char *const table_legend[];

void table_row(row_t *row, const results_t *results, const result_t *result);

/* How what belay's operations cost grows; false: there is no curve. */
bool table_growth(char note[TABLE_NOTE], const results_t *results, const scenario_t *scenario,
                  unsigned axis);

#endif /* BENCH_TABLE_H */
