#include "shell/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit {
  const char *name, *word; /* word: its long form */
  int64_t ms;
} unit_t;

/* From large to small: as they are written. */
static const unit_t units[] = {
    {"w", "weeks", 604800000}, {"d", "days", 86400000}, {"h", "hours", 3600000},
    {"m", "minutes", 60000},   {"s", "seconds", 1000},  {"ms", "milliseconds", 1},
};
#define UNITS (sizeof units / sizeof *units)

/* Find a unit by its name, its long form, or the first three letters of that, with or without an s:
 * m, min, mins, minute. */
static const unit_t *find_unit(const char *name, size_t len) {
  size_t word = len > 3 && name[len - 1] == 's' ? len - 1 : len;
  for (size_t i = 0; i < UNITS; i++) {
    bool is_name = strlen(units[i].name) == len && memcmp(units[i].name, name, len) == 0;
    bool is_word = word == 3 || word == strlen(units[i].word) - 1;
    if (is_name || (is_word && strncmp(units[i].word, name, word) == 0))
      return &units[i];
  }
  return NULL;
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool units_number(const char *text, int64_t *out) {
  char *end;
  if (!is_digit(text[text[0] == '-' || text[0] == '+']))
    return false;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno != 0 || *end != '\0')
    return false;
  *out = value;
  return true;
}

/* Reads digits and a fraction, which must be a whole number of milliseconds. Advances *text. */
static bool read_part(const char **text, const unit_t *unit, size_t digits, int64_t *sum) {
  int64_t whole = 0, fraction = 0, part = unit->ms;
  for (; is_digit(**text); ++*text, digits--)
    if (__builtin_mul_overflow(whole, 10, &whole) ||
        __builtin_add_overflow(whole, **text - '0', &whole))
      return false;
  if (**text == '.') {
    ++*text;
    for (digits--; digits > 0; ++*text, digits--) {
      if ((part == 0 || part % 10 != 0) && **text != '0')
        return false;
      part /= 10;
      fraction += part * (**text - '0');
    }
  }
  *text += strcspn(*text, "0123456789");
  return !__builtin_mul_overflow(whole, unit->ms, &whole) &&
         !__builtin_add_overflow(whole, fraction, &whole) &&
         !__builtin_add_overflow(*sum, whole, sum);
}

bool units_duration(const char *text, int64_t *out_ms) {
  int64_t sum = 0;
  if (strcmp(text, "0") == 0) {
    *out_ms = 0;
    return true;
  }
  const char *rest = text;
  int64_t last_ms = INT64_MAX; /* of the unit before */
  while (*rest != '\0') {
    size_t digits = strspn(rest, "0123456789");
    if (digits == 0)
      return false;
    if (rest[digits] == '.') {
      size_t behind = strspn(rest + digits + 1, "0123456789");
      if (behind == 0)
        return false;
      digits += 1 + behind;
    }
    const unit_t *unit = find_unit(rest + digits, strcspn(rest + digits, "0123456789"));
    if (unit == NULL || unit->ms >= last_ms || !read_part(&rest, unit, digits, &sum))
      return false;
    last_ms = unit->ms;
  }
  if (rest == text)
    return false;
  *out_ms = sum;
  return true;
}

bool units_rate(const char *text, rate_t *out) {
  char count[24];
  rate_t rate = {0};
  const char *slash = strchr(text, '/');
  if (slash == NULL || (size_t)(slash - text) >= sizeof count)
    return false;
  memcpy(count, text, (size_t)(slash - text));
  count[slash - text] = '\0';
  const unit_t *unit = find_unit(slash + 1, strlen(slash + 1));
  if (unit != NULL)
    rate.per_ms = unit->ms;
  else if (!units_duration(slash + 1, &rate.per_ms))
    return false;
  if (!units_number(count, &rate.count) || rate.count < 1 || rate.per_ms < 1)
    return false;
  *out = rate;
  return true;
}

/* Format in at most n units. */
static const char *show(char buffer[UNITS_DURATION_MAX], int64_t ms, size_t n) {
  size_t len = 0, left = n;
  (void)snprintf(buffer, UNITS_DURATION_MAX, "0s");
  for (size_t i = 1; i < UNITS && left > 0; i++) { /* not weeks: days are read more quickly */
    int64_t count = ms / units[i].ms;
    if (count > 0)
      len += (size_t)snprintf(buffer + len, UNITS_DURATION_MAX - len, "%" PRId64 "%s", count,
                              units[i].name);
    left -= len > 0;
    ms %= units[i].ms;
  }
  return buffer;
}

const char *units_show_duration(char buffer[UNITS_DURATION_MAX], int64_t ms) {
  return show(buffer, ms, 2);
}

const char *units_show_exactly(char buffer[UNITS_DURATION_MAX], int64_t ms) {
  return show(buffer, ms, UNITS);
}
