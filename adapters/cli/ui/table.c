#include "ui/table.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "ui/out.h"

#define GAP 2 /* between columns */

/* Return the width of a text in UTF-8, in characters. */
static size_t utf8_width(const char *text) {
  size_t width = 0;
  for (; *text != '\0'; text++)
    width += ((unsigned char)*text & 0xc0) != 0x80;
  return width;
}

void table_begin(table_t *table, const column_t *columns) {
  text_t bytes = table->bytes;
  text_clear(&bytes);
  *table = (table_t){.columns = columns, .bytes = bytes};
  while (columns[table->n].heading != NULL)
    table->n++;
  for (size_t i = 0; i < table->n; i++)
    table_cell(table, "%s", columns[i].heading);
}

void table_cell(table_t *table, const char *format, ...) {
  size_t begin = table->bytes.len, column = table->cells++ % table->n;
  va_list args;
  va_start(args, format);
  text_vprint(&table->bytes, format, args);
  va_end(args);
  text_add(&table->bytes, "", 1);
  if (table->bytes.spoiled)
    return;
  size_t width = utf8_width(table->bytes.bytes + begin);
  if (width > table->width[column])
    table->width[column] = width;
}

size_t utf8_add_cut(text_t *out, const char *text, size_t width) {
  size_t n = 0, bytes = 0;
  for (; text[bytes] != '\0'; bytes++) {
    bool begins = ((unsigned char)text[bytes] & 0xc0) != 0x80;
    if (begins && n == width)
      break;
    n += begins;
  }
  text_add(out, text, bytes);
  return n;
}

static size_t add_spaces(text_t *out, size_t n, size_t room) {
  n = n < room ? n : room;
  text_print(out, "%*s", (int)n, "");
  return n;
}

bool table_line(table_t *table, text_t *out, size_t width) {
  if (table->bytes.spoiled || table->next >= table->bytes.len)
    return false;
  size_t at = 0, gap = 0; /* no spaces at the end of a row */
  for (size_t i = 0; i < table->n && table->next < table->bytes.len; i++) {
    const char *cell = table->bytes.bytes + table->next;
    size_t pad = table->width[i] - utf8_width(cell);
    table->next += strlen(cell) + 1;
    if (*cell != '\0') {
      at += add_spaces(out, gap + (table->columns[i].right ? pad : 0), width - at);
      at += utf8_add_cut(out, cell, width - at);
      gap = table->columns[i].right ? 0 : pad;
    } else
      gap += pad;
    gap += GAP;
  }
  return true;
}

bool table_write(table_t *table) {
  text_t line = {0};
  bool written = true;
  while (written && table_line(table, &line, SIZE_MAX)) {
    out_begin();
    out_say("%s", line.bytes);
    written = out_end();
    text_clear(&line);
  }
  bool whole = !line.spoiled && !table->bytes.spoiled;
  if (!whole)
    complain("out of memory");
  text_free(&line);
  return written && whole;
}

void table_free(table_t *table) {
  text_free(&table->bytes);
}
