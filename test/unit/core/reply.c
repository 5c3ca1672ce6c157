/* Strict reading: a reply is what was expected or it is wrong. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/call/reply.h"
#include "support/base/test.h"

#define UNTOUCHED INT64_C(4711)

static belay__reply_t integer(int64_t value) {
  return (belay__reply_t){.type = BELAY__REPLY_INTEGER, .integer = value};
}

static belay__reply_t text(belay__reply_type_t type, const char *str) {
  return (belay__reply_t){.type = type, .str = str, .len = strlen(str)};
}

/* ---- integers ------------------------------------------------------------------------------------------ */

TEST(integer_within_the_range_is_read) {
  const struct {
    int64_t value, min, max;
  } rows[] = {
      {0, 0, 1},
      {1, 0, 1},
      {-2, -2, -1},
      {-1, -2, -1},
      {5, 5, 5},
      {INT64_MIN, INT64_MIN, INT64_MAX},
      {INT64_MAX, INT64_MIN, INT64_MAX},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    belay__reply_t reply = integer(rows[i].value);
    int64_t out = UNTOUCHED;
    assert_true(belay__reply_integer(&reply, rows[i].min, rows[i].max, &out));
    assert_true(out == rows[i].value);
  }
}

TEST(numbers_are_digits_within_the_range) {
  const struct {
    const char *text;
    uint64_t min, max, value;
    bool read;
  } rows[] = {
      {"0", 0, 0, 0, true},
      {"17", 0, 17, 17, true},
      {"17", 0, 16, 0, false},
      {"17", 18, 100, 0, false},
      {"18446744073709551615", 0, UINT64_MAX, UINT64_MAX, true},
      {"18446744073709551616", 0, UINT64_MAX, 0, false},
      {"28446744073709551615", 0, UINT64_MAX, 0, false},
      {"99999999999999999999", 0, UINT64_MAX, 0, false},
      {"000000000000000000001", 0, UINT64_MAX, 0, false},
      {"", 0, UINT64_MAX, 0, false},
      {"-1", 0, UINT64_MAX, 0, false},
      {"1 ", 0, UINT64_MAX, 0, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    belay__reply_t reply = {
        .type = BELAY__REPLY_STRING, .str = rows[i].text, .len = strlen(rows[i].text)};
    uint64_t out = 0;
    assert_int_equal(belay__reply_number(&reply, rows[i].min, rows[i].max, &out), rows[i].read);
    assert_true(out == rows[i].value);
  }
}

TEST(integer_outside_the_range_is_refused) {
  const struct {
    int64_t value, min, max;
  } rows[] = {
      {-1, 0, 1},
      {2, 0, 1},
      {0, 1, 0}, /* an empty range */
      {INT64_MIN, INT64_MIN + 1, INT64_MAX},
      {INT64_MAX, INT64_MIN, INT64_MAX - 1},
      {INT64_C(0x100000001), 0, 1}, /* 1, if it were cut to 32 bits */
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    belay__reply_t reply = integer(rows[i].value);
    int64_t out = UNTOUCHED;
    assert_false(belay__reply_integer(&reply, rows[i].min, rows[i].max, &out));
    assert_true(out == UNTOUCHED);
  }
}

TEST(other_types_are_no_integer) {
  const belay__reply_type_t types[] = {BELAY__REPLY_NIL, BELAY__REPLY_STATUS, BELAY__REPLY_STRING,
                                       BELAY__REPLY_ERROR, BELAY__REPLY_ARRAY};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    belay__reply_t reply = text(types[i], "1");
    reply.integer = 1;
    int64_t out = UNTOUCHED;
    assert_false(belay__reply_integer(&reply, 0, 1, &out));
    assert_true(out == UNTOUCHED);
  }
}

/* ---- strings ------------------------------------------------------------------------------------------- */

TEST(strings_and_statuses_are_what_they_say) {
  belay__reply_t string = text(BELAY__REPLY_STRING, "PONG"),
                 status = text(BELAY__REPLY_STATUS, "OK");
  belay__reply_t empty = text(BELAY__REPLY_STRING, "");
  assert_true(belay__reply_is(&string, "PONG", 4));
  assert_true(belay__reply_is(&status, "OK", 2));
  assert_true(belay__reply_is(&empty, "", 0));
}

TEST(other_bytes_are_not_the_string) {
  belay__reply_t reply = text(BELAY__REPLY_STRING, "PONG"), empty = text(BELAY__REPLY_STRING, "");
  assert_false(belay__reply_is(&reply, "PING", 4));
  assert_false(belay__reply_is(&reply, "pong", 4));
  assert_false(belay__reply_is(&reply, "PON", 3));
  assert_false(belay__reply_is(&reply, "PONGS", 5));
  assert_false(belay__reply_is(&reply, "", 0));
  assert_false(belay__reply_is(&empty, "PONG", 4));
}

TEST(zero_bytes_count_as_bytes) {
  belay__reply_t reply = {.type = BELAY__REPLY_STRING, .str = "a\0b", .len = 3};
  assert_true(belay__reply_is(&reply, "a\0b", 3));
  assert_false(belay__reply_is(&reply, "a\0c", 3));
  assert_false(belay__reply_is(&reply, "a", 1));
}

TEST(other_types_are_no_string) {
  const belay__reply_type_t types[] = {BELAY__REPLY_NIL, BELAY__REPLY_INTEGER, BELAY__REPLY_ERROR,
                                       BELAY__REPLY_ARRAY};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    belay__reply_t reply = text(types[i], "OK");
    assert_false(belay__reply_is(&reply, "OK", 2));
  }
}

/* ---- fields -------------------------------------------------------------------------------------------- */

#define FIELDS 7

typedef struct fixture {
  belay__reply_t replies[FIELDS], *items[FIELDS], array;
} fixture_t;

/* role, replica, id, role, 5, id2, odd: "role" is also the value of "id", a number stands where a name
 * should, and a last name has no value. */
static void init(fixture_t *f) {
  f->replies[0] = text(BELAY__REPLY_STRING, "role");
  f->replies[1] = text(BELAY__REPLY_STRING, "replica");
  f->replies[2] = text(BELAY__REPLY_STATUS, "id");
  f->replies[3] = text(BELAY__REPLY_STRING, "role");
  f->replies[4] = integer(5);
  f->replies[5] = text(BELAY__REPLY_STRING, "id2");
  f->replies[6] = text(BELAY__REPLY_STRING, "odd");
  for (size_t i = 0; i < FIELDS; i++)
    f->items[i] = &f->replies[i];
  f->array = (belay__reply_t){.type = BELAY__REPLY_ARRAY, .items = f->items, .count = FIELDS};
}

TEST(field_is_what_follows_its_name) {
  fixture_t f;
  init(&f);
  assert_ptr_equal(belay__reply_field(&f.array, "role"), &f.replies[1]);
  assert_ptr_equal(belay__reply_field(&f.array, "id"), &f.replies[3]);
}

TEST(last_field_is_found) {
  fixture_t f;
  init(&f);
  f.array.count = 4;
  assert_ptr_equal(belay__reply_field(&f.array, "id"), &f.replies[3]);
  f.array.count = 2;
  assert_ptr_equal(belay__reply_field(&f.array, "role"), &f.replies[1]);
  assert_null(belay__reply_field(&f.array, "id"));
}

TEST(value_is_not_taken_for_a_name) {
  fixture_t f;
  init(&f);
  assert_null(belay__reply_field(&f.array, "replica"));
  assert_null(belay__reply_field(&f.array, "id2"));
}

TEST(name_matches_as_a_whole) {
  fixture_t f;
  init(&f);
  assert_null(belay__reply_field(&f.array, "rol"));
  assert_null(belay__reply_field(&f.array, "roles"));
  assert_null(belay__reply_field(&f.array, "ROLE"));
  assert_null(belay__reply_field(&f.array, ""));
}

TEST(name_without_a_value_is_no_field) {
  fixture_t f;
  init(&f);
  assert_null(belay__reply_field(&f.array, "odd"));
}

TEST(empty_array_has_no_fields) {
  belay__reply_t array = {.type = BELAY__REPLY_ARRAY};
  assert_null(belay__reply_field(&array, "role"));
}

TEST(other_types_have_no_fields) {
  const belay__reply_type_t types[] = {BELAY__REPLY_NIL, BELAY__REPLY_STATUS, BELAY__REPLY_STRING,
                                       BELAY__REPLY_INTEGER, BELAY__REPLY_ERROR};
  fixture_t f;
  init(&f);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    f.array.type = types[i];
    assert_null(belay__reply_field(&f.array, "role"));
  }
}

/* ---- INFO ----------------------------------------------------------------------------------------------- */

TEST(fields_of_info_are_lines) {
  static const char info[] =
      "# Server\r\nrun_id:abc\r\nuptime:5\r\nempty:\r\nxuptime:6\r\nlast:x:y";
  const belay__reply_t reply = text(BELAY__REPLY_STRING, info);
  const struct {
    const char *name, *value;
  } rows[] = {{"run_id", "abc"}, {"uptime", "5"}, {"empty", ""}, {"last", "x:y"},
              {"time", NULL},    {"run", NULL},   {"abc", NULL}, {"", NULL}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    size_t len = 0;
    const char *value = belay__info_field(&reply, rows[i].name, &len);
    assert_int_equal(value == NULL, rows[i].value == NULL);
    if (value == NULL)
      continue;
    assert_int_equal(len, strlen(rows[i].value));
    assert_memory_equal(value, rows[i].value, len);
  }
  const belay__reply_t error = text(BELAY__REPLY_ERROR, info);
  size_t len;
  assert_null(belay__info_field(&error, "run_id", &len));
}

/* A server may send anything. */
TEST(numbers_of_info_are_checked) {
  const struct {
    const char *value;
    uint64_t number;
    bool read;
  } rows[] = {
      {"0", 0, true},
      {"4294967296", 4294967296, true},
      {"18446744073709551615", UINT64_MAX, true},
      {"18446744073709551616", 0, false},
      {"-9223372036854775808", 0, false},
      {"-1", 0, false},
      {"9223372036854775808999", 0, false},
      {"+1", 0, false},
      {" 1", 0, false},
      {"1 ", 0, false},
      {"1.5", 0, false},
      {"0x10", 0, false},
      {"", 0, false},
      {"nan", 0, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char info[128] = "# Server\r\nuptime_in_seconds:";
    strcat(strcat(info, rows[i].value), "\r\nhz:10\r\n");
    const belay__reply_t reply = text(BELAY__REPLY_STRING, info);
    uint64_t number = UNTOUCHED;
    assert_int_equal(belay__info_number(&reply, "uptime_in_seconds", 0, UINT64_MAX, &number),
                     rows[i].read);
    assert_true(number == (rows[i].read ? rows[i].number : (uint64_t)UNTOUCHED));
  }
}
