/* Tables with aligned columns. */
#ifndef BELAY_CLI_UI_TABLE_H
#define BELAY_CLI_UI_TABLE_H

#include "ui/text.h"

#define TABLE_COLUMNS_MAX 12

/* An array of them ends with {0}. */
typedef struct column {
  const char *heading;
  bool right; /* true if cells are aligned at the right, as numbers are */
} column_t;

/* Start with table_begin(). Cells are added row by row, from left to right; the headings are the
 * first row. */
typedef struct table {
  const column_t *columns;
  size_t n, cells; /* number of columns, and of cells with the headings */
  size_t width[TABLE_COLUMNS_MAX];
  text_t bytes; /* the cells, each with a 0 at its end */
  size_t next;  /* of table_line(): offset of the next cell */
} table_t;

void table_begin(table_t *table, const column_t *columns);

/* Add a cell. Pass texts of other programs through text_add_shown() or out_shown() first. */
void table_cell(table_t *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Append the next row, beginning with the headings, as a line without an end of at most `width`
 * characters. Returns false if there is none. */
bool table_line(table_t *table, text_t *out, size_t width);

/* Write all rows in plain output. Returns as out_end(). */
bool table_write(table_t *table);

/* Free the memory. */
void table_free(table_t *table);

/* Append at most `width` characters. Returns their number. */
size_t utf8_add_cut(text_t *out, const char *text, size_t width);

#endif /* BELAY_CLI_UI_TABLE_H */
