#include "core/call/reply.h"

#include <string.h>

bool belay__reply_integer(const belay__reply_t *reply, int64_t min, int64_t max, int64_t *out) {
  if (reply->type != BELAY__REPLY_INTEGER || reply->integer < min || reply->integer > max)
    return false;
  *out = reply->integer;
  return true;
}

static bool read_number(const char *text, size_t len, uint64_t min, uint64_t max, uint64_t *out) {
  if (len == 0 || len > 20)
    return false;
  uint64_t n = 0;
  for (size_t i = 0; i < len; i++) {
    if (text[i] < '0' || text[i] > '9')
      return false;
    uint64_t digit = (uint64_t)(text[i] - '0');
    if (n > (UINT64_MAX - digit) / 10)
      return false;
    n = n * 10 + digit;
  }
  if (n < min || n > max)
    return false;
  *out = n;
  return true;
}

bool belay__reply_number(const belay__reply_t *reply, uint64_t min, uint64_t max, uint64_t *out) {
  return reply->type == BELAY__REPLY_STRING && read_number(reply->str, reply->len, min, max, out);
}

bool belay__reply_int64(const belay__reply_t *reply, int64_t *out) {
  if (reply->type != BELAY__REPLY_STRING || reply->len == 0)
    return false;
  size_t minus = reply->str[0] == '-';
  const char *digits = reply->str + minus;
  uint64_t n;
  if (digits[0] == '0' && reply->len > 1)
    return false;
  if (!read_number(digits, reply->len - minus, 0, (uint64_t)INT64_MAX + minus, &n))
    return false;
  *out = minus ? (int64_t)(0 - n) : (int64_t)n;
  return true;
}

const char *belay__info_field(const belay__reply_t *info, const char *name, size_t *len) {
  size_t name_len = strlen(name);
  if (info->type != BELAY__REPLY_STRING)
    return NULL;
  for (const char *line = info->str; line != NULL; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, name, name_len) == 0 && line[name_len] == ':') {
      *len = strcspn(line + name_len + 1, "\r\n");
      return line + name_len + 1;
    }
  }
  return NULL;
}

bool belay__info_number(const belay__reply_t *info, const char *name, uint64_t min, uint64_t max,
                        uint64_t *out) {
  size_t len;
  const char *text = belay__info_field(info, name, &len);
  return text != NULL && read_number(text, len, min, max, out);
}

bool belay__reply_is(const belay__reply_t *reply, const char *str, size_t len) {
  return (reply->type == BELAY__REPLY_STRING || reply->type == BELAY__REPLY_STATUS) &&
         reply->len == len && memcmp(reply->str, str, len) == 0;
}

const belay__reply_t *belay__reply_field(const belay__reply_t *reply, const char *name) {
  if (reply->type != BELAY__REPLY_ARRAY)
    return NULL;
  for (size_t i = 0; i + 1 < reply->count; i += 2)
    if (belay__reply_is(reply->items[i], name, strlen(name)))
      return reply->items[i + 1];
  return NULL;
}
