/* Names in keys: an escape is reversible, and a quoted pattern matches one text. */
#include <string.h>

#include "core/key/key.h"
#include "fuzz/fuzz.h"
#include "support/models/glob.h"

static void check_escape(const char *name, size_t len) {
  char *escaped = malloc(3 * len + 1), *back = malloc(3 * len + 1);
  size_t back_len;
  REQUIRE(escaped != NULL && back != NULL);
  size_t escaped_len = belay__key_escape(escaped, name, len);
  REQUIRE(escaped_len == belay__key_escape(NULL, name, len));
  REQUIRE(escaped_len <= 3 * len);
  escaped[escaped_len] = 0;
  REQUIRE(strpbrk(escaped, "{}") == NULL && strstr(escaped, "::") == NULL);
  REQUIRE(belay__key_unescape(back, &back_len, escaped, escaped_len));
  REQUIRE(back_len == len && memcmp(back, name, len) == 0);
  free(escaped);
  free(back);
}

/* The input as an escaped text: it is refused, or it is the escape of its result. */
static void check_unescape(const char *text, size_t len) {
  char *name = malloc(len + 1), *again = malloc(3 * len + 1);
  size_t name_len;
  REQUIRE(name != NULL && again != NULL);
  if (belay__key_unescape(name, &name_len, text, len)) {
    REQUIRE(name_len <= len);
    REQUIRE(belay__key_escape(again, name, name_len) == len);
    REQUIRE(memcmp(again, text, len) == 0);
  }
  free(name);
  free(again);
}

static void check_pattern(char *text, size_t len) {
  char *pattern = malloc(2 * len + 1);
  REQUIRE(pattern != NULL);
  size_t pattern_len = belay__glob_quote(pattern, text, len);
  REQUIRE(pattern_len <= 2 * len);
  REQUIRE(glob_match(pattern, pattern_len, text, len));
  for (size_t i = 0; i < len && i < 64; i++) {
    text[i] ^= 1;
    REQUIRE(!glob_match(pattern, pattern_len, text, len));
    text[i] ^= 1;
  }
  if (len > 0)
    REQUIRE(!glob_match(pattern, pattern_len, text, len - 1));
  free(pattern);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
  if (len > BELAY__NAME_MAX)
    return 0;
  char *text = fuzz_copy(data, len);
  check_escape(text, len);
  check_unescape(text, len);
  check_pattern(text, len);
  free(text);
  return 0;
}
