/* Slot maps in the replies of several server versions, and malformed ones. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/deployment/redirect.h"
#include "redis/deployment/slot_map.h"
#include "support/base/test.h"

/* ---- replies, written down: 1, 'string', [list], - for nil ---- */

#define VALUES 4096

static belay__reply_t values[VALUES];
static size_t values_len;

static belay__reply_t *new_value(belay__reply_type_t type) {
  assert_true(values_len < VALUES);
  values[values_len] = (belay__reply_t){.type = type};
  return &values[values_len++];
}

static belay__reply_t *read_value(const char **at);

static void read_list(const char **at, belay__reply_t *list) {
  belay__reply_t *items[256];
  while (**at != ']') {
    assert_true(list->count < sizeof items / sizeof *items);
    items[list->count++] = read_value(at);
    *at += strspn(*at, ", \n");
  }
  ++*at;
  list->items = malloc((list->count + 1) * sizeof *items);
  memcpy(list->items, items, list->count * sizeof *items);
}

static belay__reply_t *read_value(const char **at) {
  belay__reply_t *value;
  *at += strspn(*at, " \n");
  char first = **at;
  if (first == '[') {
    ++*at;
    value = new_value(BELAY__REPLY_ARRAY);
    read_list(at, value);
  } else if (first == '\'') {
    value = new_value(BELAY__REPLY_STRING);
    value->str = ++*at;
    value->len = strcspn(*at, "'");
    *at += value->len + 1;
  } else if (first == '-' && ((*at)[1] < '0' || (*at)[1] > '9')) {
    ++*at;
    value = new_value(BELAY__REPLY_NIL);
  } else {
    value = new_value(BELAY__REPLY_INTEGER);
    char *end;
    value->integer = strtoll(*at, &end, 10);
    assert_ptr_not_equal(end, *at);
    *at = end;
  }
  return value;
}

static void forget(void) {
  for (size_t i = 0; i < values_len; i++)
    free(values[i].items);
  values_len = 0;
}

/* ---- maps, as text ---- */

static const belay__place_t here = {.host = "me", .port = 7};

static void put_place(char *out, const belay__place_t *place) {
  sprintf(out + strlen(out), " %s:%u", place->host, place->port);
}

static void put_range(const belay__range_t *range, void *arg) {
  char *out = arg;
  sprintf(out + strlen(out), "%s%u-%u", out[0] == '\0' ? "" : "; ", range->from, range->to);
  put_place(out, &range->primary);
  for (size_t i = 0; i < range->replica_count; i++)
    put_place(out, &range->replicas[i]);
}

/* The visited ranges, and the number of slots. */
static void expect(const char *reply, const char *ranges, size_t slots) {
  char out[4096] = "";
  const belay__reply_t *value = read_value(&reply);
  belay__slot_map_read(value, &here, put_range, out);
  assert_string_equal(out, ranges);
  assert_int_equal(belay__slot_map_count(value, &here), slots);
  forget();
}

/* ---- CLUSTER SLOTS ---- */

TEST(slots_of_redis_4) {
  expect("[[0, 5460, ['10.0.0.1', 7000, 'id1'], ['10.0.0.4', 7003, 'id4']],"
         " [5461, 16383, ['10.0.0.2', 7001, 'id2']]]",
         "0-5460 10.0.0.1:7000 10.0.0.4:7003; 5461-16383 10.0.0.2:7001", 16384);
}

/* A server that prefers addresses adds the host name as metadata, and vice versa. */
TEST(slots_of_redis_7) {
  expect("[[0, 16383, ['10.0.0.1', 7000, 'id1', []],"
         "            ['10.0.0.2', 7001, 'id2', ['hostname', 'two']]]]",
         "0-16383 10.0.0.1:7000 10.0.0.2:7001", 16384);
  expect("[[0, 16383, ['one', 7000, 'id1', ['ip', '10.0.0.1']],"
         "            ['fe80::2', 7001, 'id2', ['ip', '10.0.0.2']]]]",
         "0-16383 one:7000 fe80::2:7001", 16384);
}

TEST(an_empty_host_is_the_asked_server) {
  expect("[[0, 1, [-, 7000, 'id1', []]], [2, 3, ['', 7001]]]", "0-1 me:7000; 2-3 me:7001", 4);
}

TEST(unknown_hosts_are_skipped) {
  expect("[[0, 1, ['?', 7000]], [2, 3, ['a', 7001], ['?', 7002], ['b', 7003]]]",
         "2-3 a:7001 b:7003", 2);
}

TEST(maps_may_be_partial) {
  expect("[[5, 5, ['a', 1]], [7, 9, ['b', 2]]]", "5-5 a:1; 7-9 b:2", 4);
  expect("[]", "", 0);
}

TEST(malformed_ranges_are_skipped) {
  static const char *const ranges[] = {
      "[]",
      "[0]",
      "[0, 1]",
      "[0, 1, []]",
      "[0, 1, ['a']]",
      "[0, 1, [7000, 'a']]",
      "[0, 1, 'a']",
      "[0, 1, ['a', '7000']]",
      "[0, 1, ['a', 0]]",
      "[0, 1, ['a', 65536]]",
      "[0, 1, ['a', -1]]",
      "[0, 1, [['a'], 7000]]",
      "[0, 1, [0, 7000]]",
      "[-1, 1, ['a', 7000]]",
      "[0, 16384, ['a', 7000]]",
      "[2, 1, ['a', 7000]]",
      "['0', '1', ['a', 7000]]",
      "[-, 1, ['a', 7000]]",
      "0",
      "'a'",
      "-",
      "[['a', 7000], 0, 1]",
  };
  char text[256];
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    snprintf(text, sizeof text, "[[9, 9, ['z', 1]], %s, [8, 8, ['z', 2]]]", ranges[i]);
    expect(text, "9-9 z:1; 8-8 z:2", 2);
    expect(ranges[i], "", 0);
  }
}

TEST(too_long_hosts_are_skipped) {
  char host[BELAY__HOST_MAX + 2], text[2 * sizeof host], wanted[sizeof host + 32];
  memset(host, 'h', sizeof host);
  host[BELAY__HOST_MAX] = '\0';
  snprintf(text, sizeof text, "[[0, 1, ['%s', 1]]]", host);
  snprintf(wanted, sizeof wanted, "0-1 %s:1", host);
  expect(text, wanted, 2);
  host[BELAY__HOST_MAX] = 'h';
  host[BELAY__HOST_MAX + 1] = '\0';
  snprintf(text, sizeof text, "[[0, 1, ['%s', 1]]]", host);
  expect(text, "", 0);
}

TEST(hosts_with_a_zero_byte_are_skipped) {
  belay__reply_t items[] = {
      {.type = BELAY__REPLY_STRING, .str = "a\0b", .len = 3},
      {.type = BELAY__REPLY_INTEGER, .integer = 1},
  };
  belay__reply_t *node[] = {&items[0], &items[1]};
  belay__reply_t parts[] = {
      {.type = BELAY__REPLY_INTEGER, .integer = 0},
      {.type = BELAY__REPLY_INTEGER, .integer = 1},
      {.type = BELAY__REPLY_ARRAY, .items = node, .count = 2},
  };
  belay__reply_t *range[] = {&parts[0], &parts[1], &parts[2]};
  belay__reply_t entry = {.type = BELAY__REPLY_ARRAY, .items = range, .count = 3};
  belay__reply_t *entries[] = {&entry};
  const belay__reply_t reply = {.type = BELAY__REPLY_ARRAY, .items = entries, .count = 1};
  assert_int_equal(belay__slot_map_count(&reply, &here), 0);
}

TEST(replicas_above_the_limit_are_skipped) {
  char text[2048] = "[[0, 0, ['p', 1]", wanted[1024] = "0-0 p:1";
  for (int i = 0; i < 2 * BELAY__SHARD_REPLICAS; i++) {
    sprintf(text + strlen(text), ", ['r', %d]", i + 2);
    if (i < BELAY__SHARD_REPLICAS)
      sprintf(wanted + strlen(wanted), " r:%d", i + 2);
  }
  strcat(text, "]]");
  expect(text, wanted, 1);
}

/* Such a map could be endless. */
TEST(maps_with_a_repeated_slot_are_rejected) {
  expect("[[0, 9, ['a', 1]], [9, 12, ['b', 2]]]", "0-9 a:1; 9-12 b:2", 0);
  expect("[[0, 16383, ['a', 1]], [0, 16383, ['a', 1]]]", "0-16383 a:1; 0-16383 a:1", 0);
}

/* ---- MOVED, ASK ---- */

static bool read_redirect(const char *text, size_t len, belay__redirect_t *out) {
  const belay__reply_t reply = {.type = BELAY__REPLY_ERROR, .str = text, .len = len};
  return belay__redirect_parse(&reply, &here, out);
}

TEST(redirects_are_parsed) {
  const struct {
    const char *text;
    bool ask;
    unsigned slot;
    const char *place;
  } rows[] = {
      {"MOVED 3999 127.0.0.1:6381", false, 3999, " 127.0.0.1:6381"},
      {"ASK 3999 127.0.0.1:6381", true, 3999, " 127.0.0.1:6381"},
      {"MOVED 0 host.example:1", false, 0, " host.example:1"},
      {"MOVED 16383 fd00::1:65535", false, 16383, " fd00::1:65535"},
      {"ASK 1 :7001", true, 1, " me:7001"},
      {"MOVED 866 ::1:7000", false, 866, " ::1:7000"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    belay__redirect_t to;
    char place[BELAY__HOST_MAX + 16] = "";
    assert_true(read_redirect(rows[i].text, strlen(rows[i].text), &to));
    put_place(place, &to.place);
    assert_int_equal(to.ask, rows[i].ask);
    assert_int_equal(to.slot, rows[i].slot);
    assert_string_equal(place, rows[i].place);
  }
}

TEST(malformed_redirects_are_rejected) {
  static const char *const texts[] = {
      "",
      "MOVED",
      "MOVED ",
      "ASK",
      "ASK ",
      "MOVED 1",
      "MOVED 1 ",
      "MOVED 1 a",
      "MOVED 1 a:",
      "MOVED 1 a:0",
      "MOVED 1 a:65536",
      "MOVED 1 a:99999999999999999999",
      "MOVED 1 a:1 ",
      "MOVED 1 a:1x",
      "MOVED 1 a:-1",
      "MOVED 16384 a:1",
      "MOVED 99999999999999999999 a:1",
      "MOVED -1 a:1",
      "MOVED x a:1",
      "MOVED  1 a:1",
      "MOVED 1a:1",
      "MOVED 1 ?:1",
      "MOVEDX 1 a:1",
      "moved 1 a:1",
      "ASKING 1 a:1",
      "TRYAGAIN 1 a:1",
  };
  belay__redirect_t to;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (read_redirect(texts[i], strlen(texts[i]), &to))
      fail_msg("\"%s\"", texts[i]);
  assert_false(read_redirect("MOVED 1 a\0b:1", 13, &to));
  char text[BELAY__HOST_MAX + 32] = "MOVED 1 ";
  memset(text + 8, 'h', BELAY__HOST_MAX + 1);
  strcpy(text + 8 + BELAY__HOST_MAX, ":1");
  assert_true(read_redirect(text, strlen(text), &to));
  strcpy(text + 8 + BELAY__HOST_MAX, "h:1");
  assert_false(read_redirect(text, strlen(text), &to));
}

/* A truncated text is not read past its end. */
TEST(truncated_redirects_are_rejected) {
  static const char whole[] = "MOVED 1234 127.0.0.1:7000";
  belay__redirect_t to;
  for (size_t len = 0; len < sizeof whole - 5; len++) {
    char *part = malloc(len + 1); /* a sanitizer reports a read past its end */
    memcpy(part, whole, len);
    part[len] = '\0';
    assert_false(read_redirect(part, len, &to));
    free(part);
  }
}
