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

bool engine_word_is(engine_word_t word, const char *text) {
  for (size_t i = 0; i < word.len; i++)
    if (text[i] == '\0' || upper(word.at[i]) != text[i])
      return false;
  return text[word.len] == '\0';
}

bool engine_word_equal(engine_word_t a, engine_word_t b) {
  return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

bool engine_word_integer(engine_word_t word, int64_t *value) {
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

bool engine_word_double(engine_word_t word, double *value) {
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

bool engine_get_integer(engine_call_t *call, engine_word_t word, int64_t *value) {
  if (engine_word_integer(word, value))
    return true;
  engine_reply_not_an_integer(call);
  return false;
}

bool engine_get_double(engine_call_t *call, engine_word_t word, double *value) {
  if (engine_word_double(word, value))
    return true;
  engine_reply_error(call, "ERR value is not a valid float");
  return false;
}

/* ---- patterns ------------------------------------------------------------------------------------------ */

/* What is between brackets: whether it has this byte in it. *pattern is behind the bracket that opens, and on the one
 * that closes then, or at the end. */
static bool in_brackets(engine_word_t pattern, size_t *at, unsigned char c) {
  size_t i = *at;
  bool inverted = i < pattern.len && pattern.at[i] == '^', found = false;
  for (i += inverted; i < pattern.len && pattern.at[i] != ']'; i++) {
    unsigned char low = (unsigned char)pattern.at[i], high = low;
    if (low == '\\' && i + 1 < pattern.len) {
      low = high = (unsigned char)pattern.at[++i];
    } else if (i + 2 < pattern.len && pattern.at[i + 1] == '-') {
      high = (unsigned char)pattern.at[i += 2];
    }
    found = found || (low <= high ? low <= c && c <= high : high <= c && c <= low);
  }
  *at = i;
  return found != inverted;
}

/* Whether one byte is what the pattern wants at that place, which is none of '*'; and goes behind it there. */
static bool matches_one(engine_word_t pattern, size_t *at, char c) {
  char wanted = pattern.at[(*at)++];
  bool is;
  switch (wanted) {
  case '?':
    return true;
  case '[':
    is = in_brackets(pattern, at, (unsigned char)c);
    *at += *at < pattern.len;
    return is;
  case '\\':
    if (*at < pattern.len)
      wanted = pattern.at[(*at)++];
    return wanted == c;
  default:
    return wanted == c;
  }
}

/* After a '*' that did not take enough, that one takes one byte more: going further back can find nothing else. */
bool engine_word_matches(engine_word_t word, engine_word_t pattern) {
  size_t at = 0, i = 0, star = SIZE_MAX, taken = 0;
  if (word.len == 0) /* which Redis does not even begin with: "*" is not like it */
    return pattern.len == 0;
  while (i < word.len) {
    if (at < pattern.len && pattern.at[at] == '*') {
      star = ++at;
      taken = i;
    } else if (at < pattern.len && matches_one(pattern, &at, word.at[i])) {
      i++;
    } else if (star != SIZE_MAX) {
      at = star;
      i = ++taken;
    } else {
      return false;
    }
  }
  while (at < pattern.len && pattern.at[at] == '*')
    at++;
  return at == pattern.len;
}
