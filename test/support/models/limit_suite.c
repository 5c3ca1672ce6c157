#include "support/models/limit_suite.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/base/random.h"

char *limit_suite_script(const limit_suite_t *suite) {
  size_t size = strlen(suite->head) + suite->script->len + strlen(suite->tail) + 1;
  char *whole = malloc(size);
  if (whole == NULL)
    abort();
  snprintf(whole, size, "%s%s%s", suite->head, suite->script->text, suite->tail);
  return whole;
}

static uint64_t from_environment(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

uint64_t limit_suite_ops(uint64_t otherwise) {
  return from_environment("BELAY_LIMIT_OPS", otherwise);
}

uint64_t limit_suite_seed(void) {
  return from_environment("BELAY_LIMIT_SEED", 1);
}

/* ---- words ---- */

static char *room(limit_words_t *words, size_t size) {
  char *at = words->bytes + words->used;
  words->used += size;
  if (words->used > sizeof words->bytes)
    abort();
  return at;
}

static void add_word(limit_words_t *words, const char *at, size_t len) {
  if (words->argc == LIMIT_ARGC)
    abort();
  words->argv[words->argc] = at;
  words->len[words->argc++] = len;
}

void limit_words_text(limit_words_t *words, const char *text) {
  add_word(words, text, strlen(text));
}

void limit_words_integer(limit_words_t *words, int64_t value) {
  char *at = room(words, 24);
  add_word(words, at, (size_t)snprintf(at, 24, "%" PRId64, value));
}

void limit_words_doubles(limit_words_t *words, const int64_t *values, size_t count) {
  char *at = room(words, 8 * count);
  add_word(words, at, 8 * count);
  for (size_t i = 0; i < count; i++) {
    double number = (double)values[i];
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    for (int j = 0; j < 8; j++)
      *at++ = (char)(bits >> 8 * j & 255);
  }
}

void limit_words_both(limit_words_t *words, int64_t value, int64_t integer) {
  limit_words_doubles(words, &value, 1);
  limit_words_integer(words, integer);
  size_t last = --words->argc; /* the two are neighbors in memory */
  words->len[last - 1] += words->len[last];
}

void limit_words_begin(limit_words_t *words, size_t keys) {
  words->argc = words->used = 0;
  limit_words_text(words, "EVALSHA");
  limit_words_text(words, "");
  limit_words_integer(words, (int64_t)keys);
  for (size_t i = 0; i < keys; i++) {
    char *at = room(words, 24);
    add_word(words, at, (size_t)snprintf(at, 24, "{limit}:%zu", i));
  }
}

/* ---- numbers ---- */

static bool read_number(const char *at, double *number, int64_t *value) {
  uint64_t bits = 0;
  for (int i = 0; i < 8; i++)
    bits |= (uint64_t)(unsigned char)at[i] << 8 * i;
  memcpy(number, &bits, sizeof *number);
  if (!(fabs(*number) <= 0x1p62))
    return false;
  *value = (int64_t)floor(*number);
  return true;
}

bool limit_numbers_read(const char *at, size_t len, limit_numbers_t *out) {
  out->count = len / 8;
  if (at == NULL || len % 8 != 0 || out->count > LIMIT_NUMBERS)
    return false;
  for (size_t i = 0; i < out->count; i++) {
    double number;
    if (!read_number(at + 8 * i, &number, &out->at[i]))
      return false;
    if (i == 0)
      out->first = number;
    else if (number > (double)out->at[i])
      return false;
  }
  return true;
}

/* ---- chance ---- */

int64_t limit_below(limit_chance_t *chance, int64_t n) {
  return (int64_t)(next_random(&chance->state) % (uint64_t)n);
}

bool limit_once_in(limit_chance_t *chance, int64_t n) {
  return limit_below(chance, n) == 0;
}

int64_t limit_clamped(int64_t value, int64_t from, int64_t to) {
  return value < from ? from : value > to ? to : value;
}

/* Often where it is tight. */
int64_t limit_sized(limit_chance_t *chance, int64_t most) {
  int64_t bits = 64 - __builtin_clzll((uint64_t)most), value;
  switch (limit_below(chance, 8)) {
  case 0:
    value = INT64_C(1) << limit_below(chance, bits);
    break;
  case 1:
    value = most - limit_below(chance, 3);
    break;
  case 2:
    value = 1 + limit_below(chance, 12);
    break;
  default:
    value = limit_below(chance, INT64_C(1) << (1 + limit_below(chance, bits)));
  }
  return limit_clamped(value, 1, most);
}

int64_t limit_near(limit_chance_t *chance, int64_t value) {
  return value - 1 + limit_below(chance, 3);
}
