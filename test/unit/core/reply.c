/* Strict reading: a reply has the expected type and range, or the function refuses it. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/call/reply.h"
#include "support/base/test.h"

#define UNTOUCHED 4711

static belay__reply_t text(belay__reply_type_t type, const char *str) {
  return (belay__reply_t){.type = type, .str = str, .len = strlen(str), .integer = 1};
}

/* ---- numbers ---- */

TEST(integers_in_their_range) {
  const struct {
    int64_t value, min, max;
    bool read;
  } rows[] = {
      {0, 0, 1, true},
      {1, 0, 1, true},
      {-2, -2, -1, true},
      {-1, -2, -1, true},
      {5, 5, 5, true},
      {INT64_MIN, INT64_MIN, INT64_MAX, true},
      {INT64_MAX, INT64_MIN, INT64_MAX, true},
      {-1, 0, 1, false},
      {2, 0, 1, false},
      {0, 1, 0, false}, /* an empty range */
      {INT64_MIN, INT64_MIN + 1, INT64_MAX, false},
      {INT64_MAX, INT64_MIN, INT64_MAX - 1, false},
      {INT64_C(0x100000001), 0, 1, false}, /* 1, if it were cut to 32 bits */
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    belay__reply_t reply = {.type = BELAY__REPLY_INTEGER, .integer = rows[i].value};
    int64_t out = UNTOUCHED;
    assert_int_equal(belay__reply_integer(&reply, rows[i].min, rows[i].max, &out), rows[i].read);
    assert_true(out == (rows[i].read ? rows[i].value : UNTOUCHED));
  }
}

/* The same text as a string reply and as a field of INFO. */
TEST(numbers_are_digits_in_their_range) {
  const struct {
    const char *text;
    uint64_t min, max, value;
    bool read;
  } rows[] = {
      {"0", 0, 0, 0, true},
      {"17", 0, 17, 17, true},
      {"17", 0, 16, 0, false},
      {"17", 18, 100, 0, false},
      {"4294967296", 0, UINT64_MAX, 4294967296, true},
      {"18446744073709551615", 0, UINT64_MAX, UINT64_MAX, true},
      {"18446744073709551616", 0, UINT64_MAX, 0, false},
      {"28446744073709551615", 0, UINT64_MAX, 0, false},
      {"99999999999999999999", 0, UINT64_MAX, 0, false},
      {"9223372036854775808999", 0, UINT64_MAX, 0, false},
      {"000000000000000000001", 0, UINT64_MAX, 0, false},
      {"", 0, UINT64_MAX, 0, false},
      {"-1", 0, UINT64_MAX, 0, false},
      {"-9223372036854775808", 0, UINT64_MAX, 0, false},
      {"+1", 0, UINT64_MAX, 0, false},
      {" 1", 0, UINT64_MAX, 0, false},
      {"1 ", 0, UINT64_MAX, 0, false},
      {"1.5", 0, UINT64_MAX, 0, false},
      {"0x10", 0, UINT64_MAX, 0, false},
      {"nan", 0, UINT64_MAX, 0, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char lines[128] = "# Server\r\nuptime:";
    strcat(strcat(lines, rows[i].text), "\r\nhz:10\r\n");
    const belay__reply_t reply = text(BELAY__REPLY_STRING, rows[i].text),
                         info = text(BELAY__REPLY_STRING, lines);
    uint64_t expected = rows[i].read ? rows[i].value : UNTOUCHED, out = UNTOUCHED;
    assert_int_equal(belay__reply_number(&reply, rows[i].min, rows[i].max, &out), rows[i].read);
    assert_true(out == expected);
    out = UNTOUCHED;
    assert_int_equal(belay__info_number(&info, "uptime", rows[i].min, rows[i].max, &out),
                     rows[i].read);
    assert_true(out == expected);
  }
}

/* ---- strings ---- */

TEST(strings_match_as_a_whole) {
  const struct {
    const char *reply;
    size_t reply_len;
    const char *str;
    size_t len;
    bool is;
  } rows[] = {
      {"PONG", 4, "PONG", 4, true},   {"", 0, "", 0, true},          {"a\0b", 3, "a\0b", 3, true},
      {"PONG", 4, "PING", 4, false},  {"PONG", 4, "pong", 4, false}, {"PONG", 4, "PON", 3, false},
      {"PONG", 4, "PONGS", 5, false}, {"PONG", 4, "", 0, false},     {"", 0, "PONG", 4, false},
      {"a\0b", 3, "a\0c", 3, false},  {"a\0b", 3, "a", 1, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    belay__reply_t reply = {
        .type = BELAY__REPLY_STRING, .str = rows[i].reply, .len = rows[i].reply_len};
    assert_int_equal(belay__reply_is(&reply, rows[i].str, rows[i].len), rows[i].is);
  }
}

TEST(each_function_accepts_its_types_only) {
  for (int type = BELAY__REPLY_NIL; type <= BELAY__REPLY_ARRAY; type++) {
    const bool is_string = type == BELAY__REPLY_STRING;
    belay__reply_t name = text(BELAY__REPLY_STRING, "1"), *items[2] = {&name, &name};
    belay__reply_t reply = text((belay__reply_type_t)type, "1"), info = reply;
    int64_t integer = UNTOUCHED;
    uint64_t number;
    size_t len;
    reply.items = items;
    reply.count = 2;
    info.str = "run_id:1";
    info.len = 8;
    assert_int_equal(belay__reply_integer(&reply, 0, 1, &integer), type == BELAY__REPLY_INTEGER);
    assert_true(integer == (type == BELAY__REPLY_INTEGER ? 1 : UNTOUCHED));
    assert_int_equal(belay__reply_number(&reply, 0, 1, &number), is_string);
    assert_int_equal(belay__reply_int64(&reply, &integer), is_string);
    assert_int_equal(belay__reply_is(&reply, "1", 1), is_string || type == BELAY__REPLY_STATUS);
    assert_int_equal(belay__info_field(&info, "run_id", &len) != NULL, is_string);
    assert_int_equal(belay__reply_field(&reply, "1") != NULL, type == BELAY__REPLY_ARRAY);
  }
}

/* ---- fields ---- */

/* "role" is also the value of "id", a number is in the place of a name, and the last name has no
 * value. */
TEST(a_field_is_the_value_behind_its_name) {
  belay__reply_t replies[] = {
      text(BELAY__REPLY_STRING, "role"), text(BELAY__REPLY_STRING, "replica"),
      text(BELAY__REPLY_STATUS, "id"),   text(BELAY__REPLY_STRING, "role"),
      text(BELAY__REPLY_INTEGER, "5"),   text(BELAY__REPLY_STRING, "id2"),
      text(BELAY__REPLY_STRING, "odd"),
  };
  belay__reply_t *items[7], array = {.type = BELAY__REPLY_ARRAY, .items = items};
  const struct {
    size_t count; /* of the array */
    const char *name;
    const belay__reply_t *value;
  } rows[] = {
      {7, "role", &replies[1]}, {7, "id", &replies[3]}, {4, "id", &replies[3]},
      {2, "role", &replies[1]}, {2, "id", NULL},        {0, "role", NULL},
      {7, "replica", NULL},     {7, "id2", NULL},       {7, "rol", NULL},
      {7, "roles", NULL},       {7, "ROLE", NULL},      {7, "", NULL},
      {7, "odd", NULL},
  };
  for (size_t i = 0; i < 7; i++)
    items[i] = &replies[i];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    array.count = rows[i].count;
    assert_ptr_equal(belay__reply_field(&array, rows[i].name), rows[i].value);
  }
}

TEST(fields_of_info_are_lines) {
  const belay__reply_t reply = text(
      BELAY__REPLY_STRING, "# Server\r\nrun_id:abc\r\nuptime:5\r\nempty:\r\nxuptime:6\r\nlast:x:y");
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
}
