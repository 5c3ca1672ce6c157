#include "ui/text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(text_t *text, size_t len) {
  if (text->spoiled || len >= SIZE_MAX / 4 - text->len) {
    text->spoiled = true;
    return false;
  }
  if (text->len + len < text->size)
    return true;
  size_t size = (text->len + len + 1) * 2;
  char *bytes = realloc(text->bytes, size);
  if (bytes == NULL) {
    text->spoiled = true;
    return false;
  }
  text->bytes = bytes;
  text->size = size;
  return true;
}

void text_add(text_t *text, const void *bytes, size_t len) {
  if (!make_room(text, len))
    return;
  if (len > 0)
    memcpy(text->bytes + text->len, bytes, len);
  text->len += len;
  text->bytes[text->len] = '\0';
}

void text_vprint(text_t *text, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int len = vsnprintf(NULL, 0, format, args);
  if (len < 0)
    text->spoiled = true;
  else if (make_room(text, (size_t)len))
    text->len += (size_t)vsnprintf(text->bytes + text->len, (size_t)len + 1, format, again);
  va_end(again);
}

void text_print(text_t *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  text_vprint(text, format, args);
  va_end(args);
}

void text_clear(text_t *text) {
  text->len = 0;
  text->spoiled = false;
  if (text->bytes != NULL)
    *text->bytes = '\0';
}

void text_free(text_t *text) {
  free(text->bytes);
  *text = (text_t){0};
}

char *text_keep(const char *bytes, size_t len) {
  typedef struct kept {
    struct kept *next;
    char bytes[];
  } kept_t;
  static kept_t *all; /* for tools that look for leaks */
  kept_t *kept = malloc(sizeof *kept + len + 1);
  if (kept == NULL)
    return NULL;
  kept->next = all;
  all = kept;
  memcpy(kept->bytes, bytes, len);
  kept->bytes[len] = '\0';
  return kept->bytes;
}

/* ---- bytes of other programs ---- */

/* Decode the first character. Returns its number of bytes; 0: it is not UTF-8. */
static size_t decode(const unsigned char *bytes, size_t len, unsigned *out) {
  static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned code = len > 0 ? bytes[0] : 0;
  *out = code;
  if (len == 0 || code < 0x80)
    return len > 0;
  size_t n = code >= 0xf0 ? 4 : code >= 0xe0 ? 3 : 2;
  if (code < 0xc2 || code > 0xf4 || n > len)
    return 0;
  code &= 0xffu >> (n + 1);
  for (size_t i = 1; i < n; i++) {
    if ((bytes[i] & 0xc0) != 0x80)
      return 0;
    code = code << 6 | (bytes[i] & 0x3fu);
  }
  *out = code;
  return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

/* Returns false for characters that control a terminal (below 0x20, 0x7f to 0x9f), that reverse a
 * line (U+202A and so on), or that are invisible. */
static bool is_printable(unsigned code) {
  static const struct {
    unsigned from, to;
  } controls[] = {{0, 0x1f}, {0x7f, 0x9f}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
  for (size_t i = 0; i < sizeof controls / sizeof *controls; i++)
    if (code >= controls[i].from && code <= controls[i].to)
      return false;
  return true;
}

void text_add_shown(text_t *text, const void *bytes, size_t len) {
  const unsigned char *c = bytes, *end = len > 0 ? c + len : c;
  while (c < end) {
    unsigned code;
    size_t n = decode(c, (size_t)(end - c), &code);
    if (n > 0 && is_printable(code)) {
      text_add(text, c, n);
      c += n;
      continue;
    }
    for (n = n > 0 ? n : 1; n > 0; n--, c++)
      text_print(text, "\\x%02x", *c);
  }
}

static bool is_utf8(const unsigned char *c, size_t len) {
  unsigned code;
  for (size_t n; len > 0; c += n, len -= n)
    if ((n = decode(c, len, &code)) == 0)
      return false;
  return true;
}

/* Unprintable characters have at most four hexadecimal digits: see is_printable(). */
void text_add_json(text_t *text, const void *bytes, size_t len) {
  const unsigned char *c = bytes;
  bool utf8 = is_utf8(c, len);
  text_add(text, "\"", 1);
  for (size_t n; len > 0; c += n, len -= n) {
    unsigned code = *c;
    n = utf8 ? decode(c, len, &code) : 1;
    if (code == '"' || code == '\\')
      text_print(text, "\\%c", (int)code);
    else if (!is_printable(code) || (code >= 0x80 && !utf8))
      text_print(text, "\\u%04x", code);
    else
      text_add(text, c, n);
  }
  text_add(text, "\"", 1);
}
