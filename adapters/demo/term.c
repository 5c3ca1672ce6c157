#include "demo/term.h"

#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void term_init(term_t *term) {
  const char *no_color = getenv("NO_COLOR"), *type = getenv("TERM");
  bool dumb = type == NULL || strcmp(type, "dumb") == 0;
  bool unwanted = no_color != NULL && *no_color != '\0';
  *term = (term_t){.fancy = isatty(STDOUT_FILENO) && !dumb && !unwanted};
  if (term->fancy && setlocale(LC_CTYPE, "") != NULL)
    term->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

const char *term_style(const term_t *term, term_style_t style) {
  static const char *const codes[] = {
      [TERM_NORMAL] = "\033[0m", [TERM_BOLD] = "\033[1m", [TERM_DIM] = "\033[2m",
      [TERM_GOOD] = "\033[32m",  [TERM_BAD] = "\033[31m", [TERM_A] = "\033[36m",
      [TERM_B] = "\033[33m",
  };
  return term->fancy ? codes[style] : "";
}

const char *term_glyph(const term_t *term, term_glyph_t glyph) {
  static const char *const glyphs[][2] = {
      [TERM_TICK] = {"ok    ", "✓"}, [TERM_CROSS] = {"FAILED", "✗"}, [TERM_RULE] = {"-", "─"},
      [TERM_HOLDS] = {"#", "■"},     [TERM_WAITS] = {".", "·"},      [TERM_HOLLOW] = {"o", "□"},
      [TERM_AWAY] = {"x", "✗"},
  };
  return glyphs[glyph][term->utf8];
}

/* What could not be written is noticed once, at the end, by term_flush(). */
void term_print(term_t *term, const char *format, ...) {
  va_list args;
  (void)term;
  va_start(args, format);
  (void)vprintf(format, args);
  (void)fflush(stdout);
  va_end(args);
}

bool term_flush(void) {
  return fflush(stdout) == 0 && !ferror(stdout);
}
