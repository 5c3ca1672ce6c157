#include "support/models/reply_form.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_MAX INT64_C(9007199254740992) /* 2^53 */

/* The end of the part that begins at form: at the separator, or at `end`. */
static const char *part_end(const char *form, const char *end, char separator) {
  int depth = 0;
  for (; form < end && (depth > 0 || *form != separator); form++)
    depth += (*form == '[') - (*form == ']');
  return form;
}

static bool is_number(const resp_t *reply, const char *least, const char *most) {
  if (reply->type != RESP_STRING || reply->len == 0 || reply->len > 20)
    return false;
  bool minus = reply->str[0] == '-';
  const char *digits = reply->str + minus, *bound = minus ? least : most;
  size_t len = reply->len - minus;
  if (strspn(digits, "0123456789") != len || (digits[0] == '0' && reply->len > 1))
    return false;
  return len < strlen(bound) || (len == strlen(bound) && strcmp(digits, bound) <= 0);
}

static bool is_integer(const resp_t *reply, const char *bounds, const char *end) {
  char *colon;
  int64_t least = 0, most = EXACT_MAX;
  if (bounds < end) {
    least = strtoll(bounds, &colon, 10);
    if (colon + 1 < end)
      most = strtoll(colon + 1, NULL, 10);
  }
  return reply->type == RESP_INTEGER && reply->integer >= least && reply->integer <= most;
}

/* The first one, which is answered, may be a fraction or -1, and a ban may be before 1970. */
static bool is_doubles(const resp_t *reply) {
  if (reply->type != RESP_STRING || reply->len < 56 || reply->len % 8 != 0)
    return false;
  for (size_t i = 0; i < reply->len; i += 8) {
    double number;
    memcpy(&number, reply->str + i, sizeof number);
    if (!(fabs(number) <= (double)EXACT_MAX) || (number != floor(number) && i > 0) ||
        (number < -1 && i == 0) || (number < 0 && i >= 32))
      return false;
  }
  return true;
}

static bool matches(const resp_t *reply, const char *form, const char *end);

static bool is_array(const resp_t *reply, const char *form, const char *end) {
  if (reply->type != RESP_ARRAY)
    return false;
  size_t i = 0;
  while (form < end) {
    const char *item = part_end(form, end, ',');
    if (item[-1] == '*') {
      for (; i < reply->count; i++)
        if (!matches(reply->items[i], form, item - 1))
          return false;
    } else if (i >= reply->count || !matches(reply->items[i++], form, item)) {
      return false;
    }
    form = item < end ? item + 1 : end;
  }
  return i == reply->count;
}

static bool matches_one(const resp_t *reply, const char *form, const char *end) {
  switch (form[0]) {
  case 'i':
    return is_integer(reply, form + 1, end);
  case 'n':
    return is_number(reply, "", "9007199254740992") && reply->str[0] != '0';
  case 'N':
    return is_number(reply, "9223372036854775808", "9223372036854775807");
  case 'b':
    return reply->type == RESP_STRING && strspn(reply->str, "012") == reply->len;
  case 'd':
    return is_doubles(reply);
  case 's':
    return reply->type == RESP_STRING &&
           (form + 1 == end || reply->len == (size_t)strtoul(form + 1, NULL, 10));
  case '[':
    return is_array(reply, form + 1, end - 1);
  case 't':
    return reply->type == RESP_STATUS;
  case 'x':
    return reply->type == RESP_ERROR;
  default:
    return false;
  }
}

static bool matches(const resp_t *reply, const char *form, const char *end) {
  for (; form < end; form++) {
    const char *one = part_end(form, end, '|');
    if (matches_one(reply, form, one))
      return true;
    form = one;
  }
  return false;
}

bool reply_has_form(const resp_t *reply, const char *form) {
  return matches(reply, form, form + strlen(form));
}

static void put(FILE *out, const resp_t *reply) {
  switch (reply->type) {
  case RESP_NIL:
    fputs("nil", out);
    break;
  case RESP_STATUS:
  case RESP_ERROR:
    fprintf(out, "%c%s", reply->type == RESP_STATUS ? '+' : '-', reply->str);
    break;
  case RESP_INTEGER:
    fprintf(out, "%lld", (long long)reply->integer);
    break;
  case RESP_STRING:
    for (size_t i = 0; i < reply->len && i < 200; i++)
      fprintf(out, reply->str[i] >= ' ' && reply->str[i] <= '~' ? "%c" : "\\%02x",
              (unsigned char)reply->str[i]);
    break;
  case RESP_ARRAY:
    for (size_t i = 0; i < reply->count; i++) {
      fputs(i == 0 ? "[" : ", ", out);
      put(out, reply->items[i]);
    }
    fputs(reply->count == 0 ? "[]" : "]", out);
  }
}

const char *reply_in_words(const resp_t *reply, char *out, size_t size) {
  FILE *memory = fmemopen(out, size, "w");
  put(memory, reply);
  fclose(memory);
  out[size - 1] = '\0';
  return out;
}
