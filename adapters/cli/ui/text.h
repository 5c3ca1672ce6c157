/* Text that grows, and bytes escaped for a terminal or for JSON. */
#ifndef BELAY_CLI_UI_TEXT_H
#define BELAY_CLI_UI_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Initialize it with {0}. If memory is out, it stays unchanged and becomes spoiled. */
typedef struct text {
  char *bytes; /* terminated; NULL: none yet */
  size_t len, size;
  bool spoiled; /* true if a part is missing */
} text_t;

void text_add(text_t *text, const void *bytes, size_t len);
void text_print(text_t *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vprint(text_t *text, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Append bytes; unprintable ones as a backslash, x and two hexadecimal digits. */
void text_add_shown(text_t *text, const void *bytes, size_t len);

/* Append a quoted JSON string. Unprintable characters are escaped with four hexadecimal digits;
 * invalid UTF-8 is read as Latin-1. */
void text_add_json(text_t *text, const void *bytes, size_t len);

/* Make it empty, and keep the memory. */
void text_clear(text_t *text);

/* Free the memory. */
void text_free(text_t *text);

/* Return a copy that lives to the end of the process; NULL: out of memory. */
char *text_keep(const char *bytes, size_t len);

#endif /* BELAY_CLI_UI_TEXT_H */
