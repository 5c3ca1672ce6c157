/* Slots: the checksum, and the hashed part of a key. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/key/key.h"
#include "core/key/slot.h"
#include "support/base/test.h"

static uint16_t slot_of(const char *key) {
  return belay__slot(key, strlen(key));
}

/* The results of CLUSTER KEYSLOT. The first one is the test value of the checksum, 0x31c3, without
 * the upper bits. */
TEST(known_keys_have_their_slots) {
  const struct {
    const char *key;
    unsigned slot;
  } rows[] = {
      {"123456789", 0x31c3}, {"", 0},        {"foo", 12182},          {"bar", 5061}, {"a", 15495},
      {"somekey", 11058},    {"hello", 866}, {"foo{hash_tag}", 2515},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_int_equal(slot_of(rows[i].key), rows[i].slot);
}

TEST(slot_depends_on_every_byte) {
  static const char key[] = {'\0', '\xff', '\r', '\0', '{', '\x80'};
  assert_int_not_equal(belay__slot(key, 3), belay__slot(key, 4));
  assert_int_not_equal(belay__slot("\x7f", 1), belay__slot("\xff", 1));
}

TEST(first_braces_select_the_slot) {
  const struct {
    const char *key, *same;
  } rows[] = {
      {"{user1000}.following", "user1000"},
      {"{user1000}.followers", "user1000"},
      {"a{b}c{d}", "b"},         /* the first */
      {"foo{{bar}}zap", "{bar"}, /* up to the first that closes */
      {"foo{bar}{zap}", "bar"},
      {"}{a}", "a"},
      {"a}b{c}", "c"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_int_equal(slot_of(rows[i].key), slot_of(rows[i].same));
}

/* The whole key selects the slot if the first braces are empty or not closed. */
TEST(empty_and_open_braces_select_no_slot) {
  static const char *const keys[] = {"foo{}{bar}", "{}bar", "{}", "{", "}", "a{b", "a}b{c", "{}{}"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    char other[32];
    size_t n = strlen(keys[i]);
    memcpy(other, keys[i], n + 1);
    other[n] = 'x';
    assert_int_not_equal(belay__slot(other, n + 1), slot_of(keys[i]));
  }
  assert_int_not_equal(slot_of("foo{}{bar}"), slot_of("bar"));
}

TEST(route_contains_the_slot) {
  static const char *const keys[] = {"belay::lock::{name}", "belay::lock::{name}::fence", "plain"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    uint32_t route = belay__key_route(keys[i], strlen(keys[i]));
    assert_int_equal(route % BELAY__SLOTS, slot_of(keys[i]));
  }
  assert_int_equal(slot_of(keys[0]), slot_of(keys[1]));
}
