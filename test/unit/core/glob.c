/* Patterns that match one text. */
#include "core/key/key.h"

#include <stdlib.h>
#include <string.h>

#include "support/base/random.h"
#include "support/base/test.h"
#include "support/models/glob.h"

#define ROUNDS 200000

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
    assert_true(glob_match(quoted, quoted_len, text, len));
    bool same = memcmp(text, other, len) == 0;
    single += !same;
    assert_int_equal(glob_match(quoted, quoted_len, other, len), same);
  }
  assert_true(single > 1000);
}
