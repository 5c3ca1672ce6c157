#include "core/key/glob.h"

#include <string.h>

#include "core/key/key.h"

#define STARS_MAX 8 /* in a widened pattern: what a server has to do doubles with each, at worst */

/* ---- matching ------------------------------------------------------------------------------------------ */

/* How long the class at p is, which begins with '['; *has: whether it has the byte. One without an end has all that
 * is left. */
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

bool belay__glob_match(const char *pattern, size_t pattern_len, const char *text, size_t len) {
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

/* ---- making -------------------------------------------------------------------------------------------- */

size_t belay__glob_quote(char *out, const char *text, size_t len) {
  size_t n = 0;
  for (size_t i = 0; i < len; i++) {
    if (strchr("*?[]\\", text[i]) != NULL && text[i] != '\0')
      out[n++] = '\\';
    out[n++] = text[i];
  }
  return n;
}

/* The byte that the pattern at *p asks for, which moves behind it; -1: it asks for no certain one. */
static int literal(const char **p, const char *end) {
  bool has;
  const char *at = *p;
  *p += *at == '*' ? 1 : one(at, (size_t)(end - at), '\0', &has);
  if (*at == '*' || *at == '?' || *at == '[')
    return -1;
  return (unsigned char)(*p)[-1];
}

/* Whether a colon is written as it is: it is where it has neighbours, and the next is none. */
static bool is_plain_colon(int before, const char *rest, const char *end) {
  if (before < 0 || rest == end)
    return false;
  int next = literal(&rest, end);
  return next >= 0 && next != ':';
}

size_t belay__glob_widen(char *out, const char *pattern, size_t len) {
  const char *p = pattern, *end = pattern + len;
  size_t n = 0;
  int before = -1, stars = 0;
  bool star = false;
  while (p < end && stars < STARS_MAX) {
    int c = literal(&p, end);
    if (c < 0 || (c == ':' && !is_plain_colon(before, p, end))) {
      if (!star) {
        out[n++] = '*';
        stars++;
      }
      star = true;
    } else {
      char byte = (char)c, text[3];
      size_t width = c == ':' ? 1 : belay__key_escape(text, &byte, 1);
      n += belay__glob_quote(out + n, c == ':' ? &byte : text, width);
      star = false;
    }
    before = c;
  }
  return n; /* where it ends early it ends with a star */
}
