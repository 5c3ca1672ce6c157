/* What the demo writes: in colour on a terminal, as plain lines elsewhere. */
#ifndef BELAY_DEMO_TERM_H
#define BELAY_DEMO_TERM_H

#include <stdbool.h>

typedef enum term_style {
  TERM_NORMAL,
  TERM_BOLD,
  TERM_DIM,
  TERM_GOOD,
  TERM_BAD,
  TERM_A, /* the first of two contenders */
  TERM_B  /* the other one */
} term_style_t;

typedef enum term_glyph {
  TERM_TICK,   /* a fact that holds */
  TERM_CROSS,  /* one that does not */
  TERM_RULE,   /* under a heading */
  TERM_HOLDS,  /* has the lock */
  TERM_WAITS,  /* would like to have it */
  TERM_HOLLOW, /* has it, but that does not count */
  TERM_AWAY    /* cannot be asked */
} term_glyph_t;

typedef struct term {
  bool fancy; /* a terminal, and NO_COLOR is not set */
  bool utf8;  /* it shows more than ASCII */
} term_t;

void term_init(term_t *term);

/* What switches a style on; TERM_NORMAL switches all off. "" where there are no colours. */
const char *term_style(const term_t *term, term_style_t style);
const char *term_glyph(const term_t *term, term_glyph_t glyph);

/* As printf, at once. */
void term_print(term_t *term, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether everything could be written. */
bool term_flush(void);

#endif /* BELAY_DEMO_TERM_H */
