/* The table: one row for each result, the same wherever it is shown. */
#ifndef BENCH_LOAD_REPORT_TABLE_H
#define BENCH_LOAD_REPORT_TABLE_H

#include "load/report/results.h"

enum { TABLE_COLUMNS = 24, TABLE_CELL = 24, TABLE_NOTE = 200 };

typedef struct row {
  char cell[TABLE_COLUMNS][TABLE_CELL]; /* empty: not measured */
} row_t;

extern const char *const table_titles[TABLE_COLUMNS];

/* The meanings of the columns, and the omissions; NULL ends the list. */
extern const char *const table_legend[];

void table_row(row_t *row, const results_t *results, const result_t *result);

/* Find the next note of a scenario from number i on. Returns false if there are no more. */
bool table_note(char note[TABLE_NOTE], const results_t *results, const scenario_t *scenario,
                unsigned *i);

#endif /* BENCH_LOAD_REPORT_TABLE_H */
