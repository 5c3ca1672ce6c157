#include "core/call/error_text.h"

#include <string.h>

#define HEAD_MAX ((size_t)4) /* bytes at the start of an argument that suffice to recognize it */

/* ---- in print ---- */

/* Write the printable form of one byte; returns its length. */
static size_t put(char out[4], char byte) {
  static const char digits[] = "0123456789abcdef";
  unsigned char c = (unsigned char)byte;
  if (c >= 0x20 && c < 0x7f) {
    out[0] = byte;
    return 1;
  }
  memcpy(out, "\\x", 2);
  out[2] = digits[c >> 4];
  out[3] = digits[c & 15];
  return 4;
}

/* Append text if all of it fits; otherwise return false. */
static bool add(char *out, size_t size, size_t *n, const char *more, size_t len) {
  if (*n + len >= size)
    return false;
  memcpy(out + *n, more, len);
  *n += len;
  return true;
}

static size_t write(char *out, size_t size, const char *text, size_t len, const bool *hidden) {
  size_t n = 0;
  for (size_t i = 0; i < len; i++) {
    char shown[4] = "...";
    size_t shown_len = 3;
    if (hidden == NULL || !hidden[i])
      shown_len = put(shown, text[i]);
    else if (i > 0 && hidden[i - 1])
      continue;
    if (!add(out, size, &n, shown, shown_len))
      break;
  }
  out[n] = '\0';
  return n;
}

size_t belay__words(char *out, size_t size, const char *text, size_t len) {
  return write(out, size, text, len, NULL);
}

/* ---- what a server repeats ---- */

/* The byte as it appears in an error, which is one line. */
static char in_a_line(char c) {
  return c == '\r' || c == '\n' ? ' ' : c;
}

/* The bit for these bytes. */
static size_t bit_of(const char *data, size_t len) {
  uint32_t hash = (uint32_t)len * UINT32_C(2654435761);
  for (size_t i = 0; i < len; i++)
    hash = (hash ^ (unsigned char)in_a_line(data[i])) * UINT32_C(16777619);
  return (hash >> 7) % BELAY__WORDS_BITS;
}

void belay__redacted_init(belay__redacted_t *redacted, const char *text, size_t len) {
  static const char arguments[] = ", with args";
  const char *cut = memmem(text, len, arguments, sizeof arguments - 1);
  memset(redacted, 0, sizeof *redacted);
  redacted->text = text;
  redacted->len = redacted->shown = cut != NULL ? (size_t)(cut - text) : len;
  if (redacted->shown > BELAY__WORDS_MAX)
    redacted->shown = BELAY__WORDS_MAX;
  for (size_t i = 0; i < redacted->shown; i++)
    for (size_t n = 1; n <= HEAD_MAX && n <= redacted->len - i; n++) {
      size_t bit = bit_of(text + i, n);
      redacted->there[bit / 64] |= UINT64_C(1) << bit % 64;
    }
}

static bool is_letter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(const belay__redacted_t *redacted, size_t at, size_t len) {
  return (at == 0 || !is_letter(redacted->text[at - 1])) &&
         (at + len == redacted->len || !is_letter(redacted->text[at + len]));
}

/* The number of bytes of the argument that appear at this position: 0, or at least its head. */
static size_t match(const belay__redacted_t *redacted, size_t at, const char *data, size_t len) {
  size_t n = 0;
  while (n < len && at + n < redacted->len &&
         in_a_line(redacted->text[at + n]) == in_a_line(data[n]))
    n++;
  if (n >= HEAD_MAX || (n == len && is_word(redacted, at, n)))
    return n;
  return 0;
}

void belay__redacted_hide(belay__redacted_t *redacted, const char *data, size_t len) {
  if (len == 0)
    return;
  size_t bit = bit_of(data, len < HEAD_MAX ? len : HEAD_MAX);
  if ((redacted->there[bit / 64] >> bit % 64 & 1) == 0)
    return; /* the usual case, and there may be thousands of arguments */
  for (size_t i = 0; i < redacted->shown; i++) {
    size_t n = match(redacted, i, data, len), room = redacted->shown - i;
    memset(redacted->hidden + i, true, n < room ? n : room);
  }
}

size_t belay__redacted_write(const belay__redacted_t *redacted, char out[BELAY__WORDS_MAX]) {
  return write(out, BELAY__WORDS_MAX, redacted->text, redacted->shown, redacted->hidden);
}
