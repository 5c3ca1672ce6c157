/* Scores as servers write them: with 17 digits, or with the fewest digits that identify the number.
 * There may be an exponent. */
#include "data/ranking/ranking.h"

#define DIGITS_MAX 17 /* maximum of digits before the exponent; they fit into 64 bits */

/* Read digits, which may contain a point. *behind: the number of digits behind the point. */
static bool read_digits(const char **at, const char *end, uint64_t *out, int *behind) {
  int digits = 0;
  bool point = false;
  uint64_t n = 0;
  *behind = 0;
  for (; *at < end; (*at)++) {
    char c = **at;
    if (c == '.' && !point && digits > 0) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9')
      break;
    n = n * 10 + (uint64_t)(c - '0');
    *behind += point;
    if (++digits > DIGITS_MAX)
      return false;
  }
  *out = n;
  return digits > 0 && (!point || *behind > 0);
}

/* Read nothing, or an "e", an optional sign, and one to three digits. */
static bool read_exponent(const char **at, const char *end, int *out) {
  *out = 0;
  if (*at == end || **at != 'e')
    return true;
  (*at)++;
  bool minus = *at < end && **at == '-';
  if (*at < end && (minus || **at == '+'))
    (*at)++;
  int digits = 0;
  for (; *at < end && **at >= '0' && **at <= '9' && digits < 3; (*at)++, digits++)
    *out = *out * 10 + (**at - '0');
  if (minus)
    *out = -*out;
  return digits > 0;
}

bool belay__ranking_score(const char *text, size_t len, int64_t *out) {
  const char *at = text, *end = text + len;
  bool minus = at < end && *at == '-';
  at += minus;
  uint64_t n;
  int behind, exponent;
  if (!read_digits(&at, end, &n, &behind) || !read_exponent(&at, end, &exponent) || at != end)
    return false;
  for (exponent -= behind; exponent > 0 && n > 0; exponent--) {
    if (n > (uint64_t)BELAY_RANKING_SCORE_MAX)
      return false;
    n *= 10;
  }
  for (; exponent < 0 && n > 0; exponent++) {
    if (n % 10 != 0)
      return false;
    n /= 10;
  }
  if (n > (uint64_t)BELAY_RANKING_SCORE_MAX)
    return false;
  *out = minus ? -(int64_t)n : (int64_t)n;
  return true;
}
