/* Slot maps in the replies of several server versions, and malformed ones. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/deployment/redirect.h"
#include "redis/deployment/slot_map.h"
#include "support/base/test.h"

/* ---- replies, written down: 1, 'string', [list], - for nil --------------------------------------------- */

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

/* ---- maps, as text ------------------------------------------------------------------------------------- */

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
static void expect(const char *reply, bool tls, const char *ranges, size_t slots) {
  char out[4096] = "";
  const belay__reply_t *value = read_value(&reply);
  belay__slot_map_read(value, &here, tls, put_range, out);
  assert_string_equal(out, ranges);
  assert_int_equal(belay__slot_map_count(value, &here, tls), slots);
  forget();
}

/* ---- CLUSTER SLOTS ------------------------------------------------------------------------------------- */

TEST(slots_of_redis_4) {
  expect("[[0, 5460, ['10.0.0.1', 7000, 'id1'], ['10.0.0.4', 7003, 'id4']],"
         " [5461, 16383, ['10.0.0.2', 7001, 'id2']]]",
         false, "0-5460 10.0.0.1:7000 10.0.0.4:7003; 5461-16383 10.0.0.2:7001", 16384);
}

/* Where there are host names, they stand behind the address, if they are not what is preferred. */
TEST(slots_of_redis_7) {
  expect("[[0, 16383, ['10.0.0.1', 7000, 'id1', []],"
         "            ['10.0.0.2', 7001, 'id2', ['hostname', 'two']]]]",
         false, "0-16383 10.0.0.1:7000 10.0.0.2:7001", 16384);
  expect("[[0, 16383, ['one', 7000, 'id1', ['ip', '10.0.0.1']],"
         "            ['fe80::2', 7001, 'id2', ['ip', '10.0.0.2']]]]",
         true, "0-16383 one:7000 fe80::2:7001", 16384);
}

TEST(a_host_that_is_left_out_is_the_one_that_was_asked) {
  expect("[[0, 1, [-, 7000, 'id1', []]], [2, 3, ['', 7001]]]", false, "0-1 me:7000; 2-3 me:7001",
         4);
}

TEST(a_host_that_is_not_known_is_left_out) {
  expect("[[0, 1, ['?', 7000]], [2, 3, ['a', 7001], ['?', 7002], ['b', 7003]]]", false,
         "2-3 a:7001 b:7003", 2);
}

TEST(maps_may_be_partial) {
  expect("[[5, 5, ['a', 1]], [7, 9, ['b', 2]]]", false, "5-5 a:1; 7-9 b:2", 4);
  expect("[]", false, "", 0);
}

TEST(what_is_malformed_is_left_out) {
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
      "['slots']",
      "['slots', 0]",
      "['slots', [0, 1]]",
      "['slots', [0, 1], 'nodes', 0]",
      "['slots', 0, 'nodes', [['port', 1, 'endpoint', 'a', 'role', 'master']]]",
  };
  char text[256];
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    snprintf(text, sizeof text, "[[9, 9, ['z', 1]], %s, [8, 8, ['z', 2]]]", ranges[i]);
    expect(text, false, "9-9 z:1; 8-8 z:2", 2);
    expect(ranges[i], false, "", 0);
  }
}

TEST(a_host_that_is_too_long_is_left_out) {
  char host[BELAY__HOST_MAX + 2], text[2 * sizeof host], wanted[sizeof host + 32];
  memset(host, 'h', sizeof host);
  host[BELAY__HOST_MAX] = '\0';
  snprintf(text, sizeof text, "[[0, 1, ['%s', 1]]]", host);
  snprintf(wanted, sizeof wanted, "0-1 %s:1", host);
  expect(text, false, wanted, 2);
  host[BELAY__HOST_MAX] = 'h';
  host[BELAY__HOST_MAX + 1] = '\0';
  snprintf(text, sizeof text, "[[0, 1, ['%s', 1]]]", host);
  expect(text, false, "", 0);
}

TEST(a_host_with_a_zero_is_left_out) {
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
  assert_int_equal(belay__slot_map_count(&reply, &here, false), 0);
}

TEST(more_replicas_than_there_is_room_for_are_left_out) {
  char text[2048] = "[[0, 0, ['p', 1]", wanted[1024] = "0-0 p:1";
  for (int i = 0; i < 2 * BELAY__SHARD_REPLICAS; i++) {
    sprintf(text + strlen(text), ", ['r', %d]", i + 2);
    if (i < BELAY__SHARD_REPLICAS)
      sprintf(wanted + strlen(wanted), " r:%d", i + 2);
  }
  strcat(text, "]]");
  expect(text, false, wanted, 1);
}

/* Such a map could be endless. */
TEST(a_map_that_tells_a_slot_twice_is_none) {
  expect("[[0, 9, ['a', 1]], [9, 12, ['b', 2]]]", false, "0-9 a:1; 9-12 b:2", 0);
  expect("[[0, 16383, ['a', 1]], [0, 16383, ['a', 1]]]", false, "0-16383 a:1; 0-16383 a:1", 0);
  expect("[['slots', [0, 1, 1, 2], 'nodes', [['port', 1, 'endpoint', 'a', 'role', 'master']]]]",
         false, "0-1 a:1; 1-2 a:1", 0);
}

/* ---- CLUSTER SHARDS ------------------------------------------------------------------------------------ */

#define NODE(host, port, role, health)                                                             \
  "['id', 'x', 'port', " port ", 'ip', '10.0.0.9', 'endpoint', " host ", 'role', '" role           \
  "', 'replication-offset', 72156, 'health', '" health "']"

#define NODE_A NODE("'a'", "1", "master", "online")
#define NODE_B NODE("'b'", "2", "replica", "online")
#define NODE_C NODE("'c'", "3", "master", "online")
#define NODE_D NODE("'d'", "4", "master", "online")

TEST(shards_of_redis_7) {
  static const char reply[] =
      "[['slots', [0, 5460, 10000, 10000], 'nodes', [" NODE_A ", " NODE_B "]],"
      " ['slots', [5461, 9999], 'nodes', [" NODE_C "]],"
      " ['slots', [], 'nodes', [" NODE_D "]]]";
  expect(reply, false, "0-5460 a:1 b:2; 10000-10000 a:1 b:2; 5461-9999 c:3", 10001);
}

/* A failed primary stays in its shard beside the one that has replaced it. */
TEST(who_is_not_online_is_left_out) {
  expect("[['slots', [0, 1], 'nodes', [" NODE("'a'", "1", "master", "fail") ", " NODE(
             "'b'", "2", "master", "online") ", " NODE("'c'", "3", "replica", "loading") "]]]",
         false, "0-1 b:2", 2);
  expect("[['slots', [0, 1], 'nodes', [" NODE("'a'", "1", "master", "fail") "]]]", false, "", 0);
}

/* Valkey 8 tells host names and zones too, and the roles by the same words. */
TEST(shards_of_valkey_8) {
  expect("[['slots', [0, 1], 'nodes', [['id', 'x', 'port', 1, 'tls-port', 2, 'ip', '10.0.0.9',"
         " 'endpoint', 'a', 'hostname', 'a', 'role', 'replica', 'replication-offset', 0,"
         " 'health', 'online', 'availability-zone', ''],"
         " ['endpoint', -, 'role', 'master', 'port', 3, 'tls-port', 4, 'health', 'online']],"
         " 'id', 'y']]",
         true, "0-1 me:4 a:2", 2);
}

/* Of two ports the one that is spoken to; one that has no such port is left out. */
TEST(ports_are_chosen) {
  static const char both[] = "[['slots', [0, 1], 'nodes', [['port', 1, 'tls-port', 2,"
                             " 'endpoint', 'a', 'role', 'master', 'health', 'online']]]]";
  static const char plain[] = "[['slots', [0, 1], 'nodes', [['port', 1,"
                              " 'endpoint', 'a', 'role', 'master']]]]";
  expect(both, false, "0-1 a:1", 2);
  expect(both, true, "0-1 a:2", 2);
  expect(plain, false, "0-1 a:1", 2);
  expect(plain, true, "", 0);
}

TEST(malformed_shards_are_left_out) {
  static const char *const shards[] = {
      "'slots', [0], 'nodes', [" NODE_A "]",      "'slots', ['0', '1'], 'nodes', [" NODE_A "]",
      "'slots', [1, 0], 'nodes', [" NODE_A "]",   "'slots', [0, 16384], 'nodes', [" NODE_A "]",
      "'slots', [[0, 1]], 'nodes', [" NODE_A "]", "'slots', 0, 'nodes', [" NODE_A "]",
      "'slots', [0, 1], 'nodes', " NODE_A,        "'slots', [0, 1], 'nodes', [[" NODE_A "]]",
      "'slots', [0, 1], 'nodes', [0, 'a', -]",    "'slots', [0, 1], 'node', [" NODE_A "]",
      "'slot', [0, 1], 'nodes', [" NODE_A "]",    "'nodes', [" NODE_A "]",
  };
  static const char *const nodes[] = {
      "'port', 1, 'endpoint', 'a'",
      "'port', 1, 'role', 'master'",
      "'endpoint', 'a', 'role', 'master'",
      "'port', '1', 'endpoint', 'a', 'role', 'master'",
      "'port', 70000, 'endpoint', 'a', 'role', 'master'",
      "'port', 1, 'endpoint', 1, 'role', 'master'",
      "'port', 1, 'endpoint', '?', 'role', 'master'",
      "'port', 1, 'endpoint', 'a', 'role', 1",
      "'port', 1, 'endpoint', 'a', 'role', 'master', 'health', 1",
      "'port'",
      "",
  };
  char text[512];
  for (size_t i = 0; i < sizeof shards / sizeof *shards; i++) {
    snprintf(text, sizeof text, "[[%s]]", shards[i]);
    expect(text, false, "", 0);
  }
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
    snprintf(text, sizeof text, "[['slots', [0, 1], 'nodes', [[%s]]]]", nodes[i]);
    expect(text, false, "", 0);
  }
}

/* ---- MOVED, ASK ---------------------------------------------------------------------------------------- */

static bool read_redirect(const char *text, size_t len, belay__redirect_t *out) {
  const belay__reply_t reply = {.type = BELAY__REPLY_ERROR, .str = text, .len = len};
  return belay__redirect_parse(&reply, &here, out);
}

TEST(redirects_tell_where) {
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

TEST(malformed_redirects_tell_nothing) {
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
TEST(parts_of_redirects_tell_nothing) {
  static const char whole[] = "MOVED 1234 127.0.0.1:7000";
  belay__redirect_t to;
  for (size_t len = 0; len < sizeof whole - 5; len++) {
    char *part = malloc(len + 1); /* so that a tool sees who reads behind it */
    memcpy(part, whole, len);
    part[len] = '\0';
    assert_false(read_redirect(part, len, &to));
    free(part);
  }
}
