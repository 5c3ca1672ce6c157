/* What somebody may have meant: the name with the fewest slips of the hand between. */
#include <string.h>

#include "shell/options.h"

#define WORD_MAX 32

static unsigned least(unsigned a, unsigned b) {
  return a < b ? a : b;
}

/* How many letters are wrong, missing, too many, or swapped with their neighbour. */
static unsigned slips(const char *a, size_t a_len, const char *b, size_t b_len) {
  unsigned rows[3][WORD_MAX + 1], *before = rows[0], *last = rows[1], *row = rows[2];
  for (size_t j = 0; j <= b_len; j++)
    row[j] = (unsigned)j;
  for (size_t i = 1; i <= a_len; i++) {
    unsigned *oldest = before;
    before = last;
    last = row;
    row = oldest;
    row[0] = (unsigned)i;
    for (size_t j = 1; j <= b_len; j++) {
      row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = least(row[j], before[j - 2] + 1);
    }
  }
  return row[b_len];
}

const char *nearest(const char *word, size_t len, const char *const *names, size_t n) {
  const char *best = NULL;
  unsigned fewest = 0;
  for (size_t i = 0; i < n && len <= WORD_MAX; i++) {
    size_t name_len = strlen(names[i]);
    if (name_len > WORD_MAX)
      continue;
    bool begins = len >= 2 && len < name_len && memcmp(word, names[i], len) == 0;
    unsigned few = begins ? 1 : slips(word, len, names[i], name_len);
    unsigned bearable = begins ? 1 : (unsigned)(least((unsigned)len, (unsigned)name_len) + 1) / 3;
    if (few <= bearable && (best == NULL || few < fewest)) {
      best = names[i];
      fewest = few;
    }
  }
  return best;
}
