/* Replies of servers about themselves, valid and malformed, and the values read from them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "admin/topology.h"
#include "support/base/test.h"

/* ---- replies ---- */

enum { REPLIES_MAX = 64 };

static belay__reply_t pool[REPLIES_MAX];
static belay__reply_t *items[REPLIES_MAX];
static size_t used, listed;

static belay__reply_t *next(belay__reply_t reply) {
  assert_true(used < REPLIES_MAX);
  pool[used] = reply;
  return &pool[used++];
}

static belay__reply_t *text(const char *str) {
  return next((belay__reply_t){.type = BELAY__REPLY_STRING, .str = str, .len = strlen(str)});
}

static belay__reply_t *number(int64_t integer) {
  return next((belay__reply_t){.type = BELAY__REPLY_INTEGER, .integer = integer});
}

/* Up to a NULL. */
static belay__reply_t *array(belay__reply_t *first, ...) {
  belay__reply_t array = {.type = BELAY__REPLY_ARRAY, .items = &items[listed]};
  va_list more;
  va_start(more, first);
  for (belay__reply_t *item = first; item != NULL; item = va_arg(more, belay__reply_t *)) {
    items[listed++] = item;
    array.count++;
  }
  va_end(more);
  return next(array);
}

static belay__topology_entry_t info;

static void begin(void) {
  used = listed = 0;
  belay__topology_entry_init(&info, "host:1");
}

/* ---- roles ---- */

TEST(a_primary) {
  char place[BELAY__PLACE_MAX];
  begin();
  belay__reply_t *one = array(text("10.0.0.2"), text("6379"), text("17"), NULL);
  belay__reply_t *other = array(text("fe80::1%eth0"), text("6380"), text("17"), NULL);
  belay__reply_t *bad = array(text("h"), text("65536"), text("17"), NULL);
  belay__reply_t *role =
      array(text("master"), number(17), array(one, other, bad, text("x"), NULL), NULL);
  belay__topology_entry_read_role(&info, role);
  assert_int_equal(info.result.role, BELAY_ROLE_PRIMARY);
  assert_int_equal(info.result.replicated, 17);
  assert_int_equal(info.result.replicas, 4);
  assert_true(belay__topology_entry_replica(role, 0, place));
  assert_string_equal(place, "10.0.0.2:6379");
  assert_true(belay__topology_entry_replica(role, 1, place));
  assert_string_equal(place, "[fe80::1%eth0]:6380");
  assert_true(belay__topology_entry_replica(role, 2, place));
  assert_string_equal(place, "");
  assert_true(belay__topology_entry_replica(role, 3, place));
  assert_string_equal(place, "");
  assert_false(belay__topology_entry_replica(role, 4, place));
}

TEST(a_replica) {
  char place[BELAY__PLACE_MAX];
  begin();
  belay__reply_t *role =
      array(text("slave"), text("db1"), number(6379), text("connected"), number(5), NULL);
  belay__topology_entry_read_role(&info, role);
  assert_int_equal(info.result.role, BELAY_ROLE_REPLICA);
  assert_string_equal(info.primary, "db1:6379");
  assert_true(info.result.in_sync);
  assert_int_equal(info.result.replicated, 5);
  assert_false(belay__topology_entry_replica(role, 0, place));
  begin();
  belay__topology_entry_read_role(
      &info, array(text("slave"), text("db1"), number(6379), text("sync"), number(-1), NULL));
  assert_false(info.result.in_sync);
  assert_int_equal(info.result.replicated, -1);
}

TEST(commands) {
  static const struct {
    const char *said;
    int64_t commands;
  } rows[] = {
      {"# Stats\r\ntotal_connections_received:9\r\ntotal_commands_processed:41\r\nx:1\r\n", 41},
      {"# Stats\r\ntotal_commands_processed:9223372036854775807\r\n", INT64_MAX},
      {"# Stats\r\ntotal_commands_processed:9223372036854775808\r\n", -1},
      {"# Stats\r\ntotal_commands_processed:\r\n", -1},
      {"# Stats\r\ntotal_commands_processed:-3\r\n", -1},
      {"# Stats\r\ntotal_commands_processed", -1},
      {"", -1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    begin();
    belay__topology_entry_read_stats(&info, text(rows[i].said));
    assert_int_equal(info.result.commands, rows[i].commands);
  }
  begin();
  belay__topology_entry_read_stats(&info, number(3));
  assert_int_equal(info.result.commands, -1);
}

TEST(unreadable_info) {
  char place[BELAY__PLACE_MAX], host[BELAY__PLACE_MAX + 1];
  begin();
  belay__topology_entry_read_role(&info, text("master"));
  belay__topology_entry_read_role(&info, next((belay__reply_t){.type = BELAY__REPLY_ARRAY}));
  belay__topology_entry_read_role(&info, array(number(1), NULL));
  belay__topology_entry_read_hello(&info, text("server"));
  belay__topology_entry_read_hello(&info, array(text("server"), number(1), text("version"), NULL));
  assert_int_equal(info.result.role, BELAY_ROLE_UNKNOWN);
  assert_string_equal(info.software, "");
  assert_false(belay__topology_entry_replica(text("master"), 0, place));
  memset(host, 'h', sizeof host - 1);
  host[sizeof host - 1] = '\0';
  belay__topology_entry_read_role(
      &info, array(text("slave"), text(host), number(1), text("connected"), number(1), NULL));
  assert_string_equal(info.primary, "");
  belay__reply_t *cut =
      next((belay__reply_t){.type = BELAY__REPLY_STRING, .str = "db1\0.other", .len = 10});
  belay__topology_entry_read_role(
      &info, array(text("slave"), cut, number(1), text("connected"), number(1), NULL));
  assert_string_equal(info.primary, "");
  belay__topology_entry_read_role(&info, array(text("sentinel"), NULL));
  assert_int_equal(info.result.role, BELAY_ROLE_SENTINEL);
  assert_string_equal(belay_role_name(BELAY_ROLE_SENTINEL), "sentinel");
  assert_string_equal(belay_role_name(BELAY_ROLE_UNKNOWN), "unknown");
  assert_string_equal(belay_role_name((belay_role_t)7), "?");
}

/* ---- clocks ---- */

/* A reply that arrived at this local time after this round-trip time, with this time of the server;
 * in microseconds. */
static bool sample(int64_t ours, int64_t took, int64_t theirs) {
  char s[24], us[24];
  (void)snprintf(s, sizeof s, "%lld", (long long)(theirs / 1000000));
  (void)snprintf(us, sizeof us, "%lld", (long long)(theirs % 1000000));
  used = listed = 0;
  return belay__topology_entry_read_time(&info, array(text(s), text(us), NULL),
                                         (uint64_t)took * 1000, ours);
}

/* The error is larger if the middle is between two microseconds. */
static void expect_between(int64_t min, int64_t max) {
  belay__topology_entry_sum_up(&info);
  int64_t least = info.result.clock_ahead_us - info.result.clock_error_us;
  assert_true(least == min || least == min - 1);
  assert_int_equal(info.result.clock_ahead_us + info.result.clock_error_us, max);
}

TEST(one_sample) {
  begin();
  assert_true(sample(1000000500, 400, 1000000300)); /* 200 in each direction */
  expect_between(-201, 202);
  assert_int_equal(info.result.rtt_min_us, 400);
  begin();
  assert_true(sample(1000000500, 400, 1003000300));
  expect_between(2999799, 3000202);
}

/* A late reply gives a wide range; two replies late in different directions give a narrow one. */
TEST(samples_together) {
  begin();
  assert_true(sample(1000900, 900, 1000800)); /* the way there took long */
  assert_true(sample(2000900, 900, 2000100)); /* the way back did */
  assert_true(sample(3000100, 100, 3000050));
  expect_between(-51, 52);
  assert_int_equal(info.result.samples, 3);
  assert_int_equal(info.result.rtt_min_us, 100);
  assert_int_equal(info.result.rtt_median_us, 900);
  begin();
  assert_true(sample(1000900, 900, 1000800));
  assert_true(sample(2000900, 900, 2000100));
  expect_between(-101, 102);
}

TEST(server_clock_that_steps) {
  begin();
  assert_true(sample(1000100, 100, 1000050));
  assert_true(sample(2000100, 100, 9000050));
  expect_between(6999949, 7000052);
}

TEST(server_without_time) {
  begin();
  assert_false(belay__topology_entry_read_time(&info, text("1"), 1, 1));
  assert_false(belay__topology_entry_read_time(&info, array(text("1"), NULL), 1, 1));
  assert_false(
      belay__topology_entry_read_time(&info, array(text("1"), text("1000000"), NULL), 1, 1));
  assert_false(belay__topology_entry_read_time(&info, array(text("x"), text("1"), NULL), 1, 1));
  assert_false(belay__topology_entry_read_time(
      &info, array(text("9223372036854775807"), text("1"), NULL), 1, 1));
  belay__topology_entry_sum_up(&info);
  assert_int_equal(info.result.samples, 0);
  for (int i = 0; i < BELAY_TOPOLOGY_SAMPLES_MAX; i++)
    assert_true(sample(1000100, 100, 1000050));
  assert_false(sample(1000100, 100, 1000050));
}
