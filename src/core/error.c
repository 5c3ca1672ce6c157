#include "belay/error.h"

#include <stddef.h>

typedef struct row {
  int error, retryable;
  const char *name, *text;
} row_t;

static const row_t rows[] = {
    {0, 0, "OK", "success"},
#define ROW(name, value, retryable, text) {value, retryable, #name, text},
    BELAY_ERRORS(ROW)
#undef ROW
        {1, 0, "E?", "not an error of belay"},
};

/* The last row stands for every other number. */
static const row_t *find_row(int error) {
  const row_t *row = rows, *last = &rows[sizeof rows / sizeof *rows - 1];
  while (row < last && row->error != error)
    row++;
  return row;
}

const char *belay_strerror(int error) {
  return find_row(error)->text;
}

const char *belay_err_name(int error) {
  return find_row(error)->name;
}

int belay_err_retryable(int error) {
  return find_row(error)->retryable;
}
