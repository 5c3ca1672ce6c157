/* Columns that stand below each other. */
#ifndef BELAY_CLI_UI_TABLE_H
#define BELAY_CLI_UI_TABLE_H

#include "ui/text.h"

#define TABLE_COLUMNS_MAX 12

/* An array of them ends with {0}. */
typedef struct column {
  const char *heading;
  bool right; /* its cells end below each other: numbers */
} column_t;

/* Begins by table_begin(). Cells are written row by row, from left to right; the first row are the
 * headings. */
typedef struct table {
  const column_t *columns;
  size_t n, cells; /* columns; cells that are there, headings too */
  size_t width[TABLE_COLUMNS_MAX];
  text_t bytes; /* the cells, a 0 behind each */
  size_t next;  /* of table_line(): where the next cell begins */
} table_t;

void table_begin(table_t *table, const column_t *columns);

/* Adds a cell. Pass foreign texts through text_add_shown() or out_shown() first. */
void table_cell(table_t *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends the next row, from that of the headings on, as a line without an end: at most so many
 * characters wide. false: there is none. */
bool table_line(table_t *table, text_t *out, size_t width);

/* Writes all rows by out.h, a line each; with --json and --quiet nothing. Returns as out_end(). */
bool table_write(table_t *table);

/* Gives the memory back. */
void table_free(table_t *table);

/* How many characters wide a text in UTF-8 is. */
size_t utf8_width(const char *text);

/* Appends at most `width` characters; returns their number. */
size_t utf8_add_cut(text_t *out, const char *text, size_t width);

#endif /* BELAY_CLI_UI_TABLE_H */
