/* Bytes of other programs, escaped for a terminal and for JSON. */
#include <string.h>

#include "cli/ui/out.h"
#include "cli/ui/text.h"
#include "support/base/test.h"

typedef void (*add_fn)(text_t *text, const void *bytes, size_t len);

static void expect(add_fn add, const char *bytes, size_t len, const char *what) {
  text_t text = {0};
  add(&text, bytes, len);
  text_add(&text, "", 0);
  assert_false(text.spoiled);
  assert_string_equal(text.bytes, what);
  text_free(&text);
}

#define SHOWN(bytes, what) expect(text_add_shown, bytes, sizeof bytes - 1, what)
#define JSON(bytes, what) expect(text_add_json, bytes, sizeof bytes - 1, "\"" what "\"")

TEST(control_characters_are_escaped) {
  SHOWN("", "");
  SHOWN("plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80",
        "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
  SHOWN("a\0b", "a\\x00b");
  SHOWN("\033[31m\x7f\n\t", "\\x1b[31m\\x7f\\x0a\\x09");
  SHOWN("\xc2\x9b"
        "31m",
        "\\xc2\\x9b31m"); /* CSI in one character */
  SHOWN("\xe2\x80\xae"
        "x",
        "\\xe2\\x80\\xaex");                                  /* right to left from here */
  SHOWN("\xff\xc3", "\\xff\\xc3");                            /* not UTF-8; cut off */
  SHOWN("\xc0\xaf\xe0\x80\xaf", "\\xc0\\xaf\\xe0\\x80\\xaf"); /* overlong */
  SHOWN("\xed\xa0\x80", "\\xed\\xa0\\x80");                   /* half of a surrogate pair */
  SHOWN("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");          /* beyond Unicode */
}

TEST(json_strings) {
  JSON("", "");
  JSON("a\"b\\c", "a\\\"b\\\\c");
  JSON("a\0\n\x1f\x7f", "a\\u0000\\u000a\\u001f\\u007f");
  JSON("\xc3\xa4\xf0\x9f\x98\x80", "\xc3\xa4\xf0\x9f\x98\x80");
  JSON("\xc2\x9b"
       "31m \xe2\x80\xae \xe2\x81\xa9",
       "\\u009b31m \\u202e \\u2069"); /* control characters of a terminal */
  JSON("\xc2\xa0\xe2\x80\xaf", "\xc2\xa0\xe2\x80\xaf");
  JSON("\xc3\xa4\xff", "\\u00c3\\u00a4\\u00ff"); /* not UTF-8: Latin-1 */
}

TEST(long_texts_are_shortened) {
  char bytes[2 * OUT_SHOWN_MAX];
  memset(bytes, 'x', sizeof bytes);
  const char *shown = out_shown(bytes, OUT_SHOWN_MAX - 1);
  assert_int_equal(strlen(shown), OUT_SHOWN_MAX - 1);
  assert_int_equal(shown[OUT_SHOWN_MAX - 2], 'x');
  shown = out_shown(bytes, sizeof bytes);
  assert_int_equal(strlen(shown), OUT_SHOWN_MAX - 1);
  assert_string_equal(shown + OUT_SHOWN_MAX - 4, "...");
  for (size_t i = 0; i < sizeof bytes; i++)
    bytes[i] = i % 2 == 0 ? '\xc3' : '\xa4';
  for (size_t len = OUT_SHOWN_MAX - 8; len < OUT_SHOWN_MAX + 8; len++) {
    shown = out_shown(bytes, len - len % 2);
    size_t rest = strcspn(shown, ".");
    assert_int_equal(rest % 2, 0); /* whole characters only */
  }
  assert_string_equal(out_shown("", 0), "");
}

TEST(text_grows) {
  text_t text = {0};
  for (int i = 0; i < 10000; i++)
    text_print(&text, "%d,", i % 10);
  assert_int_equal(text.len, 20000);
  assert_memory_equal(text.bytes + 19996, "8,9,", 5);
  text_clear(&text);
  assert_string_equal(text.bytes, "");
  text_free(&text);
  char *kept = text_keep("abc", 2);
  assert_string_equal(kept, "ab");
}
