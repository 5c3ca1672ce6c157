#include "core/key/key.h"

#include <string.h>

#include "core/key/slot.h"

static bool must_escape(const char *part, size_t len, size_t i) {
  unsigned char c = (unsigned char)part[i];
  if (c == ':')
    return i == 0 || i + 1 == len || part[i + 1] == ':';
  return c < 0x20 || c == 0x7f || c == '%' || c == '{' || c == '}';
}

/* Return the length of a beginning of the part that needs no escaping. In most keys, it is most or
 * all of the part. */
static size_t plain_len(const char *part, size_t len) {
  size_t n = 0;
  while (n < len && part[n] > '%' && part[n] < '{' && part[n] != ':')
    n++;
  return n;
}

size_t belay__key_escape(char *out, const char *part, size_t len) {
  static const char digits[] = "0123456789ABCDEF";
  size_t n = plain_len(part, len);
  if (out != NULL && n > 0)
    memcpy(out, part, n);
  for (size_t i = n; i < len; i++) {
    unsigned char c = (unsigned char)part[i];
    bool escape = must_escape(part, len, i);
    if (out != NULL && escape) {
      out[n] = '%';
      out[n + 1] = digits[c >> 4];
      out[n + 2] = digits[c & 15];
    } else if (out != NULL) {
      out[n] = part[i];
    }
    n += escape ? 3 : 1;
  }
  return n;
}

static int hex_value(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool belay__key_unescape(char *out, size_t *out_len, const char *text, size_t len) {
  size_t n = 0;
  for (size_t i = 0; i < len; i++) {
    if (text[i] != '%') {
      out[n++] = text[i];
      continue;
    }
    if (len - i < 3)
      return false;
    int high = hex_value(text[i + 1]), low = hex_value(text[i + 2]);
    if (high < 0 || low < 0)
      return false;
    out[n++] = (char)(high << 4 | low);
    i += 2;
  }
  *out_len = n;
  /* Reject a text with other escapes than those that belay__key_escape() would write. */
  size_t again = 0;
  for (size_t i = 0; i < n; i++) {
    size_t width = must_escape(out, n, i) ? 3 : 1;
    if (again >= len || (text[again] == '%') != (width == 3))
      return false;
    again += width;
  }
  return again == len;
}

static size_t put(char *out, size_t at, const char *text, size_t len) {
  if (out != NULL)
    memcpy(out + at, text, len);
  return at + len;
}

size_t belay__key_namespace(char *out, const char *const *parts, size_t count) {
  size_t n = 0;
  for (size_t i = 0; i < count; i++) {
    if (i > 0)
      n = put(out, n, "::", 2);
    n += belay__key_escape(out == NULL ? NULL : out + n, parts[i], strlen(parts[i]));
  }
  return n;
}

size_t belay__key_build(char *out, const char *prefix, size_t prefix_len, const char *family,
                        const char *name, size_t name_len) {
  size_t n = put(out, 0, prefix, prefix_len);
  n = put(out, n, "::", 2);
  n = put(out, n, family, strlen(family));
  n = put(out, n, "::{", 3);
  n += belay__key_escape(out == NULL ? NULL : out + n, name, name_len);
  return put(out, n, "}", 1);
}

uint32_t belay__key_hash(const char *key, size_t len) {
  uint32_t hash = UINT32_C(2166136261); /* FNV-1a */
  for (size_t i = 0; i < len; i++)
    hash = (hash ^ (unsigned char)key[i]) * UINT32_C(16777619);
  return hash;
}

/* Two keys that differ only in their last bytes have hashes that differ in the lower bits. The
 * slot replaces these bits, so they are first mixed into the upper bits. */
uint32_t belay__key_route(const char *key, size_t len) {
  uint32_t hash = belay__key_hash(key, len) * UINT32_C(0x9e3779b1);
  hash ^= hash >> 15;
  hash *= UINT32_C(0x85ebca77);
  return (hash & ~(uint32_t)(BELAY__SLOTS - 1)) | belay__slot(key, len);
}

size_t belay__glob_quote(char *out, const char *text, size_t len) {
  size_t n = 0;
  for (size_t i = 0; i < len; i++) {
    if (strchr("*?[]\\", text[i]) != NULL && text[i] != '\0')
      out[n++] = '\\';
    out[n++] = text[i];
  }
  return n;
}
