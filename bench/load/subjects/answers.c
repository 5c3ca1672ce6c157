#include "load/subjects/answers.h"

#include <stdlib.h>

static bool end_line(answers_t *answers) {
  const char *line = answers->line;
  answers->line[answers->len] = '\0';
  answers->len = 0;
  if (line[0] == '-')
    return false;
  long n = strtol(line + 1, NULL, 10);
  if (answers->items == 0)
    answers->items = 1;
  answers->items--;
  if (line[0] == '*')
    answers->items += n > 0 ? (uint64_t)n : 0;
  else if (line[0] == '$' && n >= 0)
    answers->skip = (size_t)n + 2;
  return true;
}

bool answers_count(answers_t *answers, const char *bytes, size_t n) {
  for (size_t i = 0; i < n;) {
    if (answers->skip > 0) {
      size_t skip = answers->skip < n - i ? answers->skip : n - i;
      answers->skip -= skip;
      i += skip;
    } else if (bytes[i++] != '\n') {
      if (answers->len < ANSWERS_LINE - 1)
        answers->line[answers->len++] = bytes[i - 1];
      continue;
    } else if (!end_line(answers)) {
      return false;
    }
    answers->n += answers->skip == 0 && answers->items == 0;
  }
  return true;
}
