/* Patterns: as servers match them, and widened to what is escaped. */
#include "core/key/glob.h"

#include <stdlib.h>
#include <string.h>

#include "support/base/test.h"

#define ROUNDS 200000

static bool matches(const char *pattern, const char *text) {
  return belay__glob_match(pattern, strlen(pattern), text, strlen(text));
}

TEST(it_matches_as_servers_do) {
  static const struct {
    const char *pattern, *text;
    bool matches;
  } rows[] = {
      {"", "", true},
      {"", "a", false},
      {"*", "", true},
      {"*", "abc", true},
      {"**", "abc", true},
      {"a*", "abc", true},
      {"*c", "abc", true},
      {"a*c", "abc", true},
      {"a*b", "abc", false},
      {"a*b*c", "axbxbc", true},
      {"a*bc", "abcbd", false},
      {"?", "", false},
      {"?", "a", true},
      {"a?c", "abc", true},
      {"a?c", "ac", false},
      {"abc", "abc", true},
      {"abc", "ab", false},
      {"ab", "abc", false},
      {"\\*", "*", true},
      {"\\*", "a", false},
      {"\\a", "a", true},
      {"\\", "\\", true},
      {"a\\", "a\\", true},
      {"[abc]", "b", true},
      {"[abc]", "d", false},
      {"[^abc]", "b", false},
      {"[^abc]", "d", true},
      {"[a-c]x", "bx", true},
      {"[c-a]", "b", true},
      {"[a-c]", "d", false},
      {"[a-]", "_", true},
      {"[-a]", "-", true},
      {"[\\]]", "]", true},
      {"[\\]]", "\\", false},
      {"[]", "a", false},
      {"[]a]", "a]", false},
      {"[^]", "a", true},
      {"[ab", "b", true},
      {"[ab", "bb", false},
      {"[^", "a", true},
      {"[a-", "-", true},
      {"[", "a", false},
      {"a[b]*[d]", "abxxd", true},
      {"[\\a-c]", "-", true},
      {"*[x]", "abx", true},
      {"h[\x80-\xff]", "h\x90", true},
      {"[a-z]", "\x90", false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (matches(rows[i].pattern, rows[i].text) != rows[i].matches)
      fail_msg("%s %s", rows[i].pattern, rows[i].text);
  assert_true(belay__glob_match("a*\0b", 4, "ax\0b", 4));
  assert_false(belay__glob_match("a\0b", 3, "a\0c", 3));
}

/* It takes no longer the more stars there are. */
TEST(many_stars_are_no_burden) {
  char pattern[1024], text[1024];
  memset(text, 'a', sizeof text);
  for (size_t i = 0; i < sizeof pattern; i++)
    pattern[i] = i % 2 ? 'a' : '*';
  pattern[sizeof pattern - 1] = 'b';
  assert_false(belay__glob_match(pattern, sizeof pattern, text, sizeof text));
}

/* Always the same numbers, so that a failure can be seen again. */
static uint64_t next_random(uint64_t *seed) {
  uint64_t z = (*seed += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* A quoted text matches itself alone. */
TEST(a_quoted_text_matches_itself) {
  static const char bytes[] = "::::ab{}%*?[]\\^-\x01\x7f";
  uint64_t seed = 1;
  unsigned single = 0;
  for (int i = 0; i < ROUNDS; i++) {
    char text[6], quoted[12], other[6];
    size_t len = 1 + next_random(&seed) % sizeof text;
    for (size_t j = 0; j < len; j++) {
      text[j] = bytes[next_random(&seed) % (sizeof bytes - 1)];
      other[j] = next_random(&seed) % 8 ? text[j] : 'a';
    }
    size_t quoted_len = belay__glob_quote(quoted, text, len);
    assert_true(belay__glob_match(quoted, quoted_len, text, len));
    bool same = memcmp(text, other, len) == 0;
    single += !same;
    assert_int_equal(belay__glob_match(quoted, quoted_len, other, len), same);
  }
  assert_true(single > 1000);
}
