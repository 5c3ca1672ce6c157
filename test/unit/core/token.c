/* A token's text: 40 hexadecimal digits, a colon, the owner's label. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/key/token.h"
#include "support/base/test.h"

static const belay__token_t token = {{0x00, 0x01, 0x0f, 0x10, 0x7f, 0x80, 0x9a, 0xab, 0xbc, 0xcd,
                                      0xde, 0xef, 0xf0, 0xff, 0x12, 0x34, 0x56, 0x78, 0x90, 0x00}};
#define DIGITS "00010f107f809aabbccddeeff0ff123456789000"
#define LONGEST "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"

/* The text is exact, and no byte is written behind it. */
TEST(text_is_digits_a_colon_and_the_label) {
  static const struct {
    const char *owner;
    size_t owner_len;
    const char *text;
  } rows[] = {
      {"worker-7:1234", 13, DIGITS ":worker-7:1234"},
      {"a", 1, DIGITS ":a"},
      {LONGEST, BELAY__OWNER_MAX, DIGITS ":" LONGEST},
      {"label", 3, DIGITS ":lab"},
  };
  assert_int_equal(sizeof DIGITS ":" LONGEST - 1, BELAY__TOKEN_TEXT_MAX);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char out[BELAY__TOKEN_TEXT_MAX + 8];
    size_t len = strlen(rows[i].text);
    memset(out, '#', sizeof out);
    assert_int_equal(belay__token_text(out, &token, rows[i].owner, rows[i].owner_len), len);
    assert_memory_equal(out, rows[i].text, len);
    for (size_t j = len; j < sizeof out; j++)
      assert_int_equal(out[j], '#');
  }
}

TEST(every_bit_of_a_token_changes_its_text) {
  char plain[BELAY__TOKEN_TEXT_MAX], changed[BELAY__TOKEN_TEXT_MAX];
  size_t len = belay__token_text(plain, &token, "x", 1);
  for (size_t bit = 0; bit < 8 * (size_t)BELAY__TOKEN_BYTES; bit++) {
    belay__token_t other = token;
    other.bytes[bit / 8] = (uint8_t)(other.bytes[bit / 8] ^ 1u << bit % 8);
    assert_int_equal(belay__token_text(changed, &other, "x", 1), len);
    assert_memory_not_equal(plain, changed, len);
  }
}
