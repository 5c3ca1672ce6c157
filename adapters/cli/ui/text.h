/* Text that grows, and bytes made fit for a terminal or for JSON. */
#ifndef BELAY_CLI_UI_TEXT_H
#define BELAY_CLI_UI_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Begins as {0}. Without memory it stays as it was, and is spoiled. */
typedef struct text {
  char *bytes; /* a 0 behind them, once there are any */
  size_t len, size;
  bool spoiled; /* something is missing */
} text_t;

void text_add(text_t *text, const void *bytes, size_t len);
void text_print(text_t *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vprint(text_t *text, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Appends bytes; unprintable ones as a backslash, x and two hexadecimal digits. */
void text_add_shown(text_t *text, const void *bytes, size_t len);

/* Appends a quoted JSON string. Unprintable characters are escaped with four hexadecimal digits;
 * invalid UTF-8 is read as Latin-1. */
void text_add_json(text_t *text, const void *bytes, size_t len);

/* Empty again; the memory is kept. */
void text_clear(text_t *text);

/* Gives the memory back. */
void text_free(text_t *text);

/* A copy that stays until the process ends; NULL: no memory. */
char *text_keep(const char *bytes, size_t len);

/* How many bytes the character at the beginning has; 0: that is no UTF-8. */
size_t utf8_length(const unsigned char *bytes, size_t len);

#endif /* BELAY_CLI_UI_TEXT_H */
