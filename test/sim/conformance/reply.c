#include "sim/conformance/conformance.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS_MAX 4096

/* ---- finding the end ---- */

static size_t line_length(const char *at, size_t len) {
  const char *end = len > 0 ? memchr(at, '\n', len) : NULL;
  return end == NULL ? 0 : (size_t)(end - at) + 1;
}

size_t conformance_reply_length(const char *at, size_t len) {
  size_t n = line_length(at, len);
  if (n == 0 || strchr("$=*~>%", at[0]) == NULL)
    return n;
  long count = strtol(at + 1, NULL, 10);
  if (count < 0)
    return n;
  if (at[0] == '$' || at[0] == '=')
    return n + (size_t)count + 2 <= len ? n + (size_t)count + 2 : 0;
  for (long i = 0; i < (at[0] == '%' ? 2 * count : count); i++) {
    size_t item = conformance_reply_length(at + n, len - n);
    if (item == 0)
      return 0;
    n += item;
  }
  return n;
}

/* ---- looking in ---- */

static bool equal(engine_bytes_t a, engine_bytes_t b) {
  return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static bool is_type(engine_bytes_t reply, char type) {
  return reply.len > 0 && reply.at[0] == type;
}

static int64_t integer_of(engine_bytes_t reply) {
  return strtoll(reply.at + 1, NULL, 10); /* there is a line end behind it */
}

/* Of a string that is one; not valid for others. */
static engine_bytes_t text_of(engine_bytes_t reply) {
  size_t n = line_length(reply.at, reply.len);
  long len = strtol(reply.at + 1, NULL, 10);
  return len < 0 ? (engine_bytes_t){"", 0} : (engine_bytes_t){reply.at + n, (size_t)len};
}

/* Takes replies apart that stand one behind the other. */
static size_t split(engine_bytes_t bytes, engine_bytes_t items[ITEMS_MAX]) {
  size_t count = 0;
  while (count < ITEMS_MAX) {
    size_t n = conformance_reply_length(bytes.at, bytes.len);
    if (n == 0)
      break;
    items[count++] = (engine_bytes_t){bytes.at, n};
    bytes = (engine_bytes_t){bytes.at + n, bytes.len - n};
  }
  return count;
}

/* An array of a kind: RESP3 has several. */
static bool is_array(engine_bytes_t reply) {
  return reply.len > 0 && strchr("*~>%", reply.at[0]) != NULL;
}

/* Of an array, one level deep. */
static size_t items_of(engine_bytes_t reply, engine_bytes_t items[ITEMS_MAX]) {
  if (!is_array(reply))
    return 0;
  size_t n = line_length(reply.at, reply.len);
  return split((engine_bytes_t){reply.at + n, reply.len - n}, items);
}

static uint64_t distance(int64_t a, int64_t b) {
  return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

/* ---- what is in any order ---- */

static int by_bytes(const void *one, const void *other) {
  const engine_bytes_t *a = one, *b = other;
  size_t least = a->len < b->len ? a->len : b->len;
  int order = memcmp(a->at, b->at, least);
  return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

/* Sorts the items in groups of `each`, which become one. */
static size_t sorted_items(engine_bytes_t reply, size_t each, engine_bytes_t items[ITEMS_MAX]) {
  size_t count = items_of(reply, items) / each;
  for (size_t i = 0; i < count; i++) {
    engine_bytes_t last = items[i * each + each - 1];
    items[i].at = items[i * each].at;
    items[i].len = (size_t)(last.at + last.len - items[i].at);
  }
  qsort(items, count, sizeof *items, by_bytes);
  return count;
}

static bool are_same_items(engine_bytes_t a, engine_bytes_t b, size_t each) {
  static engine_bytes_t as[ITEMS_MAX], bs[ITEMS_MAX];
  if (!is_array(a) || !is_array(b) || a.at[0] != b.at[0] || a.len != b.len)
    return false;
  size_t count = sorted_items(a, each, as);
  if (count != sorted_items(b, each, bs))
    return false;
  for (size_t i = 0; i < count; i++)
    if (!equal(as[i], bs[i]))
      return false;
  return true;
}

/* ---- what depends on time ---- */

static bool are_near(const conformance_times_t *times, engine_bytes_t a, engine_bytes_t b,
                     uint64_t us_per_unit) {
  if (!is_type(a, ':') || !is_type(b, ':') || integer_of(a) <= 0 || integer_of(b) <= 0)
    return false;
  uint64_t units = (times->tolerance_us + us_per_unit - 1) / us_per_unit;
  return distance(integer_of(a), integer_of(b)) <= units;
}

/* A decimal number less than a minute from the clock, in microseconds; 0: it is none. */
static uint64_t clock_of(const conformance_times_t *times, engine_bytes_t reply) {
  char text[24] = "";
  if (!is_type(reply, '$'))
    return 0;
  engine_bytes_t word = text_of(reply);
  if (word.len != 13 && word.len != 16)
    return 0;
  memcpy(text, word.at, word.len);
  if (strspn(text, "0123456789") != word.len)
    return 0;
  uint64_t us = strtoull(text, NULL, 10) * (word.len == 13 ? 1000 : 1);
  return distance((int64_t)us, (int64_t)times->now_us) < 60000000 ? us : 0;
}

/* Strings that are the clock, and integers that are the rest of a ttl, are near each other. All
 * other items are equal. */
static bool are_clocks(const conformance_times_t *times, engine_bytes_t a, engine_bytes_t b) {
  static engine_bytes_t as[ITEMS_MAX], bs[ITEMS_MAX];
  size_t count = 1;
  as[0] = a;
  bs[0] = b;
  if (is_type(a, '*') && ((count = items_of(a, as)) == 0 || count != items_of(b, bs)))
    return false;
  for (size_t i = 0; i < count; i++) {
    if (equal(as[i], bs[i]) || are_near(times, as[i], bs[i], 1000))
      continue;
    uint64_t x = clock_of(times, as[i]), y = clock_of(times, bs[i]);
    if (x == 0 || y == 0 || as[i].len != bs[i].len ||
        distance((int64_t)x, (int64_t)y) > times->tolerance_us)
      return false;
  }
  return true;
}

/* Two numbers in strings: seconds, and microseconds. */
static bool are_times(const conformance_times_t *times, engine_bytes_t a, engine_bytes_t b) {
  engine_bytes_t replies[2] = {a, b};
  static engine_bytes_t items[ITEMS_MAX];
  int64_t us[2];
  for (size_t i = 0; i < 2; i++) {
    if (items_of(replies[i], items) != 2 || !is_type(items[0], '$') || !is_type(items[1], '$'))
      return false;
    us[i] =
        strtoll(text_of(items[0]).at, NULL, 10) * 1000000 + strtoll(text_of(items[1]).at, NULL, 10);
  }
  return distance(us[0], us[1]) <= times->tolerance_us;
}

/* {ms, max_ttl, server} */
static bool are_quarantines(const conformance_times_t *times, engine_bytes_t a, engine_bytes_t b) {
  static engine_bytes_t as[ITEMS_MAX], bs[ITEMS_MAX];
  if (items_of(a, as) != 3 || items_of(b, bs) != 3 || !is_type(as[0], ':') || !is_type(bs[0], ':'))
    return false;
  uint64_t off = distance(integer_of(as[0]), integer_of(bs[0]));
  return off <= times->tolerance_us / 1000 + 1 && equal(as[1], bs[1]) && equal(as[2], bs[2]);
}

/* ---- what a server says of itself ---- */

static bool are_hellos(engine_bytes_t a, engine_bytes_t b) {
  static engine_bytes_t as[ITEMS_MAX], bs[ITEMS_MAX];
  size_t count = items_of(a, as);
  if (count == 0 || count != items_of(b, bs) || a.at[0] != b.at[0])
    return false;
  for (size_t i = 0; i < count; i++) {
    bool is_version = i % 2 != 0 && equal(text_of(as[i - 1]), (engine_bytes_t){"version", 7});
    if (!is_version && !equal(as[i], bs[i]))
      return false;
  }
  return true;
}

static bool are_commands(engine_bytes_t a, engine_bytes_t b) {
  static engine_bytes_t as[ITEMS_MAX], bs[ITEMS_MAX], of_a[ITEMS_MAX], of_b[ITEMS_MAX];
  size_t count = items_of(a, as);
  if (!is_array(a) || !is_array(b) || count != items_of(b, bs))
    return false;
  for (size_t i = 0; i < count; i++) {
    size_t items = items_of(as[i], of_a);
    if (items != items_of(bs[i], of_b))
      return false;
    if (items == 0 ? !equal(as[i], bs[i]) : !equal(of_a[0], of_b[0]) || !equal(of_a[1], of_b[1]))
      return false;
  }
  return true;
}

/* The value of a field; at NULL: it is not there. */
static engine_bytes_t info_field(engine_bytes_t text, const char *name) {
  size_t n = strlen(name);
  for (size_t i = 0; i < text.len; i += line_length(text.at + i, text.len - i)) {
    size_t len = line_length(text.at + i, text.len - i);
    if (len == 0)
      break;
    if (len > n + 2 && memcmp(text.at + i, name, n) == 0 && text.at[i + n] == ':')
      return (engine_bytes_t){text.at + i + n + 1, len - n - 3};
  }
  return (engine_bytes_t){NULL, 0};
}

static bool are_infos(engine_bytes_t a, engine_bytes_t b) {
  static const char *const same[] = {"run_id", "role", "master_replid2", "second_repl_offset"};
  if (a.len == 0 || strchr("$=", a.at[0]) == NULL || !is_type(b, a.at[0]))
    return false;
  engine_bytes_t x = text_of(a), y = text_of(b);
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    engine_bytes_t is = info_field(x, same[i]), should = info_field(y, same[i]);
    if (is.len != should.len || (is.at == NULL) != (should.at == NULL) || !equal(is, should))
      return false;
  }
  engine_bytes_t is = info_field(x, "uptime_in_seconds"),
                 should = info_field(y, "uptime_in_seconds");
  if (is.at == NULL || should.at == NULL)
    return is.at == should.at;
  return distance(strtoll(is.at, NULL, 10), strtoll(should.at, NULL, 10)) <= 1;
}

bool conformance_is_like(conformance_like_t like, const conformance_times_t *times,
                         engine_bytes_t engines, engine_bytes_t servers) {
  engine_bytes_t a = engines, b = servers;
  if (equal(a, b))
    return true;
  switch (like) {
  case LIKE_BYTES:
    return false;
  case LIKE_SET:
    return are_same_items(a, b, 1);
  case LIKE_PAIRS:
    return are_same_items(a, b, 2);
  case LIKE_MS:
    return are_near(times, a, b, 1000);
  case LIKE_TIME:
    return are_times(times, a, b);
  case LIKE_CLOCK:
    return are_clocks(times, a, b);
  case LIKE_FENCE:
    return are_clocks(times, a, b) || are_near(times, a, b, 1000);
  case LIKE_QUARANTINE:
    return are_quarantines(times, a, b);
  case LIKE_HELLO:
    return are_hellos(a, b);
  case LIKE_COMMANDS:
    return are_commands(a, b);
  case LIKE_INFO:
    return are_infos(a, b);
  }
  return false;
}

/* ---- telling ---- */

void conformance_print(FILE *out, engine_bytes_t bytes) {
  for (size_t i = 0; i < bytes.len && i < 1000; i++) {
    unsigned char c = (unsigned char)bytes.at[i];
    if (c == '\r')
      fputs("\\r", out);
    else if (c == '\n')
      fputs("\\n", out);
    else if (c < ' ' || c > '~' || c == '"' || c == '\\')
      fprintf(out, "\\x%02x", c);
    else
      fputc(c, out);
  }
  if (bytes.len > 1000)
    fputs("...", out);
}
