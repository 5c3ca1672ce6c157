/* A token's text: 40 hexadecimal digits, a colon, the owner's label. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/key/token.h"
#include "support/base/test.h"

#define CANARY '#'

static const belay__token_t token = {{0x00, 0x01, 0x0f, 0x10, 0x7f, 0x80, 0x9a, 0xab, 0xbc, 0xcd,
                                      0xde, 0xef, 0xf0, 0xff, 0x12, 0x34, 0x56, 0x78, 0x90, 0x00}};
#define DIGITS "00010f107f809aabbccddeeff0ff123456789000"

/* The text is exactly this, and nothing is written behind it. */
static void check(const char *owner, const char *expected) {
  char out[BELAY__TOKEN_TEXT_MAX + 8];
  size_t len = strlen(expected);
  memset(out, CANARY, sizeof out);
  assert_int_equal(belay__token_text(out, &token, owner, strlen(owner)), len);
  assert_memory_equal(out, expected, len);
  for (size_t i = len; i < sizeof out; i++)
    assert_int_equal(out[i], CANARY);
}

TEST(text_is_40_hexadecimal_digits_a_colon_and_the_label) {
  check("worker-7:1234", DIGITS ":worker-7:1234");
}

TEST(label_of_one_byte) {
  check("a", DIGITS ":a");
}

TEST(longest_label_fills_the_buffer) {
  char owner[BELAY__OWNER_MAX + 1], expected[BELAY__TOKEN_TEXT_MAX + 1] = DIGITS ":";
  memset(owner, 'z', BELAY__OWNER_MAX);
  owner[BELAY__OWNER_MAX] = '\0';
  strcat(expected, owner);
  assert_int_equal(strlen(expected), BELAY__TOKEN_TEXT_MAX);
  check(owner, expected);
}

TEST(only_as_much_of_the_label_is_used_as_was_said) {
  char out[BELAY__TOKEN_TEXT_MAX];
  assert_int_equal(belay__token_text(out, &token, "label", 3), 44);
  assert_memory_equal(out, DIGITS ":lab", 44);
}

TEST(every_bit_of_a_token_shows_in_its_text) {
  char plain[BELAY__TOKEN_TEXT_MAX], changed[BELAY__TOKEN_TEXT_MAX];
  size_t len = belay__token_text(plain, &token, "x", 1);
  for (size_t bit = 0; bit < 8 * (size_t)BELAY__TOKEN_BYTES; bit++) {
    belay__token_t other = token;
    other.bytes[bit / 8] = (uint8_t)(other.bytes[bit / 8] ^ 1u << bit % 8);
    assert_int_equal(belay__token_text(changed, &other, "x", 1), len);
    assert_memory_not_equal(plain, changed, len);
  }
}
