#include "support/models/glob.h"

/* How long the class at p is, which begins with '['; *has: whether it has the byte. One without
 * an end has all that is left. */
static size_t class_of(const char *p, size_t len, char c, bool *has) {
  size_t i = 1;
  bool negated = i < len && p[i] == '^', found = false;
  i += negated;
  while (i < len && p[i] != ']') {
    char from = p[i], to = from;
    if (from == '\\' && i + 1 < len) {
      from = to = p[++i];
    } else if (i + 2 < len && p[i + 1] == '-') {
      i += 2;
      to = p[i];
    }
    found |= from <= to ? c >= from && c <= to : c >= to && c <= from;
    i++;
  }
  *has = found != negated;
  return i < len ? i + 1 : len;
}

/* How much of the pattern at p, which is no '*', is for one byte; *has: whether it is this one. */
static size_t one(const char *p, size_t len, char c, bool *has) {
  if (*p == '[')
    return class_of(p, len, c, has);
  bool quoted = *p == '\\' && len > 1;
  *has = *p == '?' || p[quoted] == c;
  return (size_t)1 + quoted;
}

bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t len) {
  size_t p = 0, t = 0, after = 0,
         from = 0; /* after the last star, which has taken all before `from` */
  bool star = false;
  while (t < len) {
    if (p < pattern_len && pattern[p] == '*') {
      star = true;
      after = ++p;
      from = t;
      continue;
    }
    bool has = false;
    size_t width = p < pattern_len ? one(pattern + p, pattern_len - p, text[t], &has) : 0;
    if (has) {
      p += width;
      t++;
    } else if (star) { /* it takes one more */
      p = after;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern_len && pattern[p] == '*')
    p++;
  return p == pattern_len;
}
