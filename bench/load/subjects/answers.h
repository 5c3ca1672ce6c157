/* Counts the answers in what a server sends (RESP2), and looks at no more of them than it must. */
#ifndef BENCH_LOAD_SUBJECTS_ANSWERS_H
#define BENCH_LOAD_SUBJECTS_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ANSWERS_LINE = 128 };

typedef struct answers {
  uint64_t n;     /* whole ones, so far */
  uint64_t items; /* of the one that is being read, still to come */
  size_t skip;    /* bytes of a string, still to come */
  size_t len;     /* of the line */
  char line[ANSWERS_LINE];
} answers_t;

/* The next bytes. false: an error is among them, as an answer or anywhere in an array, since that
 * is one call's of several that travel together; line is what it says. */
bool answers_count(answers_t *answers, const char *bytes, size_t n);

#endif /* BENCH_LOAD_SUBJECTS_ANSWERS_H */
