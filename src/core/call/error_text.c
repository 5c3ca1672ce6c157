#include "core/call/error_text.h"

#include <string.h>

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

/* Return the byte as it appears in an error: an error is one line, so a line end becomes a
 * space. */
static char in_a_line(char c) {
  return c == '\r' || c == '\n' ? ' ' : c;
}

void belay__redacted_init(belay__redacted_t *redacted, const char *text, size_t len) {
  static const char arguments[] = ", with args";
  const char *cut = memmem(text, len, arguments, sizeof arguments - 1);
  memset(redacted, 0, sizeof *redacted);
  if (cut != NULL)
    len = (size_t)(cut - text);
  redacted->text = text;
  for (; redacted->len < len && redacted->len < sizeof redacted->line; redacted->len++)
    redacted->line[redacted->len] = in_a_line(text[redacted->len]);
}

static bool is_letter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(const belay__redacted_t *redacted, size_t at, size_t len) {
  return (at == 0 || !is_letter(redacted->line[at - 1])) &&
         (at + len == redacted->len || !is_letter(redacted->line[at + len]));
}

void belay__redacted_hide(belay__redacted_t *redacted, const char *data, size_t len) {
  char head[BELAY__HEAD_MAX];
  size_t head_len = 0;
  for (; head_len < len && head_len < sizeof head; head_len++)
    head[head_len] = in_a_line(data[head_len]);
  const char *at = redacted->line, *end = at + redacted->len;
  for (; len > 0 && (at = memmem(at, (size_t)(end - at), head, head_len)) != NULL; at++) {
    size_t i = (size_t)(at - redacted->line), n = head_len;
    if (len < sizeof head && !is_word(redacted, i, len))
      continue;
    while (n < len && i + n < redacted->len && redacted->line[i + n] == in_a_line(data[n]))
      n++;
    memset(redacted->hidden + i, true, n);
  }
}

size_t belay__redacted_write(const belay__redacted_t *redacted, char out[BELAY__WORDS_MAX]) {
  size_t len = redacted->len < BELAY__WORDS_MAX ? redacted->len : BELAY__WORDS_MAX;
  return write(out, BELAY__WORDS_MAX, redacted->text, len, redacted->hidden);
}
