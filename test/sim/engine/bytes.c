/* Words and the numbers in them. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "command.h"

enum { DOUBLE_MAX = 256 }; /* bytes; a number of more is none that anybody wrote */

static char upper(char c) {
  return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

bool engine_bytes_is(engine_bytes_t word, const char *text) {
  for (size_t i = 0; i < word.len; i++)
    if (text[i] == '\0' || upper(word.at[i]) != text[i])
      return false;
  return text[word.len] == '\0';
}

bool engine_bytes_equal(engine_bytes_t a, engine_bytes_t b) {
  return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

bool engine_bytes_integer(engine_bytes_t word, int64_t *value) {
  bool negative = word.len > 0 && word.at[0] == '-';
  size_t i = negative, digits = word.len - i;
  if (digits == 1 && word.at[i] == '0' && !negative) {
    *value = 0;
    return true;
  }
  if (digits < 1 || digits > 19 || word.at[i] == '0')
    return false;
  uint64_t sum = 0; /* 19 digits fit */
  for (; i < word.len; i++) {
    if (word.at[i] < '0' || word.at[i] > '9')
      return false;
    sum = sum * 10 + (uint64_t)(word.at[i] - '0');
  }
  if (sum > (uint64_t)INT64_MAX + negative)
    return false;
  *value = negative ? (int64_t)(0 - sum) : (int64_t)sum;
  return true;
}

bool engine_bytes_double(engine_bytes_t word, double *value) {
  char text[DOUBLE_MAX + 1], *end;
  if (word.len < 1 || word.len > DOUBLE_MAX || isspace((unsigned char)word.at[0]))
    return false;
  memcpy(text, word.at, word.len);
  text[word.len] = '\0';
  errno = 0;
  *value = strtod(text, &end);
  bool too_much = errno == ERANGE && (isinf(*value) || *value == 0);
  return end == text + word.len && !too_much && !isnan(*value);
}

bool engine_get_integer(engine_call_t *call, engine_bytes_t word, int64_t *value) {
  if (engine_bytes_integer(word, value))
    return true;
  engine_reply_not_an_integer(call);
  return false;
}

bool engine_get_double(engine_call_t *call, engine_bytes_t word, double *value) {
  if (engine_bytes_double(word, value))
    return true;
  engine_reply_error(call, "ERR value is not a valid float");
  return false;
}
