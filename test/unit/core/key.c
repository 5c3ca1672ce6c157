/* Keys: reversible escapes, unambiguous joins. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/key/key.h"
#include "support/base/random.h"
#include "support/base/test.h"
#include "support/models/glob.h"

#define ROUNDS 100000

/* Fill part with 1 to max random bytes; half of them are special. */
static size_t random_part(uint64_t *seed, char *part, size_t max) {
  static const char special[] = {':', ':', ':', '%', '{', '}', '3', 'A', '\0', '\x1f', '\x7f', ' '};
  size_t len = 1 + next_random(seed) % max;
  for (size_t i = 0; i < len; i++) {
    uint64_t r = next_random(seed);
    part[i] = r & 1 ? special[(r >> 1) % sizeof special] : (char)(r >> 1 & 0xff);
  }
  return len;
}

/* ---- escaping ---- */

#define EXAMPLE(part, escaped)                                                                     \
  { part, sizeof part - 1, escaped }

static const struct {
  const char *part;
  size_t len;
  const char *escaped;
} examples[] = {
    EXAMPLE("orders", "orders"),
    EXAMPLE("a b-c_d/e.f@g", "a b-c_d/e.f@g"),
    EXAMPLE("user:42", "user:42"),
    EXAMPLE("a:b:c", "a:b:c"),
    EXAMPLE("a::b", "a%3A:b"),
    EXAMPLE("a:::b", "a%3A%3A:b"),
    EXAMPLE(":", "%3A"),
    EXAMPLE("::", "%3A%3A"),
    EXAMPLE(":a", "%3Aa"),
    EXAMPLE("a:", "a%3A"),
    EXAMPLE(":a:b:", "%3Aa:b%3A"),
    EXAMPLE("{x}", "%7Bx%7D"),
    EXAMPLE("100%", "100%25"),
    EXAMPLE("%3A", "%253A"),
    EXAMPLE("\0\x01\x1f\x20\x7e\x7f", "%00%01%1F ~%7F"),
    EXAMPLE("line\r\nend", "line%0D%0Aend"),
    EXAMPLE("\x80\xff", "\x80\xff"),
    EXAMPLE("Stra\xc3\x9f"
            "e",
            "Stra\xc3\x9f"
            "e"),
    EXAMPLE("", ""),
};

TEST(escape_and_unescape_of_examples) {
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
    char out[64];
    const char *escaped = examples[i].escaped;
    size_t len = strlen(escaped), part_len = 99;
    memset(out, '#', sizeof out);
    assert_int_equal(belay__key_escape(out, examples[i].part, examples[i].len), len);
    assert_memory_equal(out, escaped, len);
    assert_int_equal(out[len], '#');
    assert_true(belay__key_unescape(out, &part_len, escaped, len));
    assert_int_equal(part_len, examples[i].len);
    assert_memory_equal(out, examples[i].part, part_len);
  }
}

/* Escapes of the separators and of the characters that select cluster slots. */
static void check_escaped(const char *text, size_t len) {
  assert_int_not_equal(text[0], ':');
  assert_int_not_equal(text[len - 1], ':');
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)text[i];
    assert_true(c >= 0x20 && c != 0x7f && c != '{' && c != '}');
    assert_false(c == ':' && text[i + 1] == ':' && i + 1 < len);
  }
}

TEST(random_bytes_survive_escape_and_unescape) {
  uint64_t seed = 2;
  char part[40], escaped[120], back[120];
  for (int i = 0; i < ROUNDS; i++) {
    size_t len = random_part(&seed, part, i % 4 == 0 ? 1 : sizeof part), back_len = 0;
    size_t escaped_len = belay__key_escape(escaped, part, len);
    assert_int_equal(belay__key_escape(NULL, part, len), escaped_len);
    assert_in_range(escaped_len, len, 3 * len);
    check_escaped(escaped, escaped_len);
    assert_true(belay__key_unescape(back, &back_len, escaped, escaped_len));
    assert_int_equal(back_len, len);
    assert_memory_equal(back, part, len);
  }
}

/* ---- unescaping ---- */

TEST(unescape_refuses_other_texts) {
  static const char *const texts[] = {
      "%",          "%2",   "a%",    "a%7",  "%%",   "%G0",    "%0G",   "% 0",
      "%3a",        "%7b",  "%1f",   "%41",  "%20",  "%80",    "%FF",   "a%3Ab",
      "a%3A%3A:b:", "a::b", ":",     "a:",   ":a",   "a:%3Ab", "{",     "}",
      "a{b}",       "\x01", "a\x1f", "\x7f", "\r\n", "%253A:", "%3A%3", "%3Ax%3Ay",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char out[64];
    size_t len = 0;
    if (belay__key_unescape(out, &len, texts[i], strlen(texts[i])))
      fail_msg("\"%s\"", texts[i]);
  }
  char out[1];
  size_t len = 0;
  assert_false(belay__key_unescape(out, &len, "\0", 1));
}

/* All short texts of these bytes: a text is accepted only if escaping produces it. */
TEST(unescape_accepts_only_the_result_of_escape) {
  static const char alphabet[] = {'%', '3', 'A', 'a', ':', '7', 'B', '{', 'x'};
  enum { LETTERS = sizeof alphabet, LONGEST = 6 };
  size_t accepted = 0;
  for (int len = 0, texts = 1; len <= LONGEST; len++, texts *= LETTERS)
    for (int number = 0; number < texts; number++) {
      char text[LONGEST], part[LONGEST], again[3 * LONGEST];
      for (int i = 0, rest = number; i < len; i++, rest /= LETTERS)
        text[i] = alphabet[rest % LETTERS];
      size_t part_len = 0;
      if (!belay__key_unescape(part, &part_len, text, (size_t)len))
        continue;
      accepted++;
      if (belay__key_escape(again, part, part_len) != (size_t)len ||
          memcmp(again, text, (size_t)len) != 0)
        fail_msg("\"%.*s\"", len, text);
    }
  assert_true(accepted > 1000);
}

/* The memory has exactly the size that the header requires, so that the sanitizer finds an
 * overflow. */
TEST(unescape_writes_at_most_the_length) {
  uint64_t seed = 4;
  char text[40];
  for (int i = 0; i < ROUNDS; i++) {
    size_t len = random_part(&seed, text, sizeof text), out_len = 0;
    char *out = malloc(len);
    assert_non_null(out);
    if (belay__key_unescape(out, &out_len, text, len))
      assert_true(out_len <= len);
    free(out);
  }
}

/* ---- building ---- */

static size_t build(char *out, const char *prefix, const char *family, const char *name) {
  return belay__key_build(out, prefix, strlen(prefix), family, name, strlen(name));
}

static void check_key(const char *prefix, const char *family, const char *name,
                      const char *expected) {
  char out[128];
  size_t len = strlen(expected);
  memset(out, '#', sizeof out);
  assert_int_equal(build(NULL, prefix, family, name), len);
  assert_int_equal(build(out, prefix, family, name), len);
  assert_memory_equal(out, expected, len);
  assert_int_equal(out[len], '#');
}

TEST(key_is_namespace_family_and_name_in_braces) {
  check_key("belay", "lock", "orders", "belay::lock::{orders}");
  check_key("shop::eu", "lock", "user:42", "shop::eu::lock::{user:42}");
  check_key("belay", "lock", "a}::{b", "belay::lock::{a%7D%3A:%7Bb}");
}

TEST(longest_name_has_the_measured_length) {
  char name[BELAY__NAME_MAX];
  memset(name, '{', sizeof name);
  size_t len = belay__key_build(NULL, "belay", 5, "lock", name, sizeof name);
  assert_int_equal(len, strlen("belay::lock::{}") + 3 * BELAY__NAME_MAX);
  char *out = malloc(len);
  assert_non_null(out);
  assert_int_equal(belay__key_build(out, "belay", 5, "lock", name, sizeof name), len);
  assert_memory_equal(out, "belay::lock::{%7B%7B", 20);
  assert_memory_equal(out + len - 7, "%7B%7B}", 7);
  free(out);
}

#define LETTERS 5
#define PARTS (LETTERS + LETTERS * LETTERS) /* of one or two letters */
#define PREFIXES (PARTS + PARTS * PARTS)    /* of one or two parts */
#define FAMILIES 2
#define KEYS ((size_t)PREFIXES * FAMILIES * PARTS)

typedef struct text {
  char bytes[48];
} text_t;

static int compare(const void *a, const void *b) {
  return strcmp(((const text_t *)a)->bytes, ((const text_t *)b)->bytes);
}

/* The index-th part over an alphabet of ambiguous characters. */
static text_t part(size_t index) {
  static const char alphabet[LETTERS] = {':', 'a', '%', '{', '}'};
  text_t out = {""};
  if (index < LETTERS) {
    out.bytes[0] = alphabet[index];
    return out;
  }
  out.bytes[0] = alphabet[(index - LETTERS) / LETTERS];
  out.bytes[1] = alphabet[(index - LETTERS) % LETTERS];
  return out;
}

/* The index-th namespace, escaped and joined. */
static text_t prefix(size_t index) {
  text_t out = {""}, first = part(index < PARTS ? index : (index - PARTS) / PARTS);
  size_t n = belay__key_escape(out.bytes, first.bytes, strlen(first.bytes));
  if (index >= PARTS) {
    text_t second = part((index - PARTS) % PARTS);
    memcpy(out.bytes + n, "::", 2);
    belay__key_escape(out.bytes + n + 2, second.bytes, strlen(second.bytes));
  }
  return out;
}

TEST(different_namespaces_families_and_names_never_share_a_key) {
  static const char *const families[FAMILIES] = {"a", "aa"};
  text_t *keys = calloc(KEYS, sizeof *keys);
  assert_non_null(keys);
  size_t n = 0;
  for (size_t i = 0; i < PREFIXES; i++)
    for (size_t j = 0; j < FAMILIES; j++)
      for (size_t k = 0; k < PARTS; k++)
        build(keys[n++].bytes, prefix(i).bytes, families[j], part(k).bytes);
  assert_int_equal(n, KEYS);
  qsort(keys, n, sizeof *keys, compare);
  for (size_t i = 1; i < n; i++)
    if (compare(&keys[i - 1], &keys[i]) == 0)
      fail_msg("%s", keys[i].bytes);
  free(keys);
}

/* A cluster hashes the text between the first '{' and the next '}'. */
TEST(the_first_braces_of_a_key_enclose_the_name) {
  char key[64], escaped[16];
  for (size_t i = 0; i < PREFIXES; i += 7)
    for (size_t k = 0; k < PARTS; k++) {
      text_t name = part(k);
      size_t len = build(key, prefix(i).bytes, "lock", name.bytes);
      size_t name_len = belay__key_escape(escaped, name.bytes, strlen(name.bytes));
      char *open = memchr(key, '{', len), *close = memchr(key, '}', len);
      assert_non_null(open);
      assert_ptr_equal(close, open + 1 + name_len);
      assert_ptr_equal(close, key + len - 1);
      assert_memory_equal(open + 1, escaped, name_len);
    }
}

/* ---- glob patterns ---- */

/* A quoted text matches only itself. */
TEST(a_quoted_text_matches_itself) {
  static const char bytes[] = "::::ab{}%*?[]\\^-\x01\x7f";
  uint64_t seed = 1;
  unsigned single = 0;
  for (int i = 0; i < 2 * ROUNDS; i++) {
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
