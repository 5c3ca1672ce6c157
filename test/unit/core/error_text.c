/* Server texts in printable form, short, and without the command's arguments. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/call/error_text.h"
#include "support/base/test.h"

TEST(printable_bytes_stay) {
  char out[BELAY__WORDS_MAX], all[96];
  for (int i = 0; i < 95; i++)
    all[i] = (char)(' ' + i);
  assert_int_equal(belay__words(out, sizeof out, all, 95), 95);
  assert_memory_equal(out, all, 95);
  assert_int_equal(out[95], '\0');
  assert_int_equal(belay__words(out, sizeof out, "", 0), 0);
  assert_string_equal(out, "");
}

TEST(other_bytes_become_hexadecimal) {
  for (int i = 0; i < 256; i++) {
    char out[8], byte = (char)i, expected[8];
    if (i >= 0x20 && i < 0x7f)
      continue;
    snprintf(expected, sizeof expected, "\\x%02x", (unsigned)i);
    assert_int_equal(belay__words(out, sizeof out, &byte, 1), 4);
    assert_string_equal(out, expected);
  }
  char out[64];
  static const char hostile[] = "\x1b[2J\r\nERROR all is lost\x9b\x00\xc3\xa4";
  belay__words(out, sizeof out, hostile, sizeof hostile - 1);
  assert_string_equal(out, "\\x1b[2J\\x0d\\x0aERROR all is lost\\x9b\\x00\\xc3\\xa4");
  char again[64];
  belay__words(again, sizeof again, out, strlen(out));
  assert_string_equal(again, out); /* printable text stays unchanged */
}

TEST(cut_is_never_inside_an_escape) {
  for (size_t size = 1; size < 20; size++) {
    char *out = malloc(size); /* so that the sanitizer sees a byte behind it */
    size_t n = belay__words(out, size, "ab\ncd\n", 6);
    assert_int_equal(n, strlen(out));
    assert_true(n < size);
    static const size_t lens[] = {0, 0, 1, 2, 2, 2, 2, 6, 7, 8, 8, 8, 8, 12};
    assert_int_equal(n, lens[size < 13 ? size : 13]);
    assert_memory_equal(out, "ab\\x0acd\\x0a", n);
    free(out);
  }
}

/* ---- arguments in a text ---- */

#define HIDDEN_MAX 4

static const char *redact(const char *text, size_t len, const char *const *arguments) {
  static char out[BELAY__WORDS_MAX];
  belay__redacted_t redacted;
  char *copy = malloc(len > 0 ? len : 1);
  memcpy(copy, text, len);
  belay__redacted_init(&redacted, copy, len);
  for (size_t i = 0; i < HIDDEN_MAX && arguments[i] != NULL; i++) {
    size_t n = strlen(arguments[i]);
    char *word = malloc(n > 0 ? n : 1);
    memcpy(word, arguments[i], n);
    belay__redacted_hide(&redacted, word, n);
    free(word);
  }
  size_t n = belay__redacted_write(&redacted, out);
  free(copy);
  assert_int_equal(n, strlen(out));
  return out;
}

TEST(arguments_are_hidden) {
  static const struct {
    const char *arguments[HIDDEN_MAX + 1], *text, *shown;
  } all[] = {
      {{NULL}, "ERR syntax error", "ERR syntax error"},
      {{"hunter2"}, "ERR no such user or password: hunter2", "ERR no such user or password: ..."},
      {{"hunter2"}, "hunter2hunter2", "..."},
      {{"hunter2"}, "ERR (hunter2) 'hunter2'", "ERR (...) '...'"},
      {{"hunter2", "alice"}, "ERR alice:hunter2@", "ERR ...:...@"},
      {{"hunter2", "alice"}, "ERR alicehunter2", "ERR ..."},
      /* the text has only the beginning, or ends in it */
      {{"hunter2hunter2hunter2"}, "ERR hunter2hu: what?", "ERR ...: what?"},
      {{"hunter2"}, "ERR hunt", "ERR ..."},
      {{"hunter2"}, "ERR hun", "ERR hun"},
      /* a short argument is hidden as a word */
      {{"7"}, "ERR 7 is not 17, 77, 7a or x7", "ERR ... is not 17, 77, 7a or x7"},
      {{"7"}, "7", "..."},
      {{"abc"}, "ERR 'abc' is no abcd", "ERR '...' is no abcd"},
      {{"ab"}, "OOM cab ab-cab", "OOM cab ...-cab"},
      {{""}, "ERR ''", "ERR ''"},
      {{"a\r\nb: secret"}, "ERR a  b: secret!", "ERR ...!"}, /* an error is one line */
      {{"\xff\xfe\xfd\xfc"}, "ERR \xff\xfe\xfd\xfc.", "ERR ...."},
      /* and the server's own list of arguments is cut off */
      {{NULL},
       "ERR unknown command 'SET', with args beginning with: 'key' 'token' ",
       "ERR unknown command 'SET'"},
      {{NULL},
       "ERR unknown command `set`, with args beginning with: ",
       "ERR unknown command `set`"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    assert_string_equal(redact(all[i].text, strlen(all[i].text), all[i].arguments), all[i].shown);
}

/* A secret may lie across the place where the text is cut. */
TEST(argument_across_the_cut_is_hidden) {
  static const char secret[] = "hunter2";
  const char *const arguments[HIDDEN_MAX] = {secret};
  char text[600];
  for (size_t at = 0; at < 300; at++) {
    memset(text, '.', sizeof text);
    memcpy(text + at, secret, sizeof secret - 1);
    const char *shown = redact(text, sizeof text, arguments);
    assert_null(strchr(shown, 'h'));
    assert_null(strchr(shown, '2'));
    assert_true(strlen(shown) < BELAY__WORDS_MAX);
  }
}

/* A hidden run takes three bytes of the output, so that there is room for the rest of the text. */
TEST(argument_behind_a_long_hidden_run_is_hidden) {
  static char run[201];
  static const char secret[] = "SECRET";
  const char *const arguments[HIDDEN_MAX] = {run, secret};
  char text[600];
  memset(run, 'r', sizeof run - 1);
  for (size_t at = 240; at < 280; at++) {
    memset(text, '.', sizeof text);
    memcpy(text, run, sizeof run - 1);
    memcpy(text + at, secret, sizeof secret - 1);
    const char *shown = redact(text, sizeof text, arguments);
    assert_int_equal(strncmp(shown, "....", 4), 0);
    assert_null(strpbrk(shown, "rSECT"));
  }
}

TEST(long_text_is_cut) {
  const char *const arguments[HIDDEN_MAX] = {NULL};
  static char text[1 << 20];
  memset(text, 'x', sizeof text);
  for (size_t n = 250; n < 260; n++)
    assert_int_equal(strlen(redact(text, n, arguments)), n < 255 ? n : 255);
  assert_int_equal(strlen(redact(text, sizeof text, arguments)), 255);
  memset(text, '\n', sizeof text);
  assert_int_equal(strlen(redact(text, sizeof text, arguments)), 252);
}

/* For random arguments and texts, no four bytes of an argument remain. */
TEST(random_arguments_are_hidden) {
  uint32_t random = 1;
#define NEXT(n) (((random = random * 1664525 + 1013904223) >> 16) % (n))
  for (int round = 0; round < 20000; round++) {
    char arguments[3][12], text[64];
    const char *words[HIDDEN_MAX] = {arguments[0], arguments[1], arguments[2]};
    for (int i = 0; i < 3; i++) {
      size_t n = 4 + NEXT(8);
      for (size_t j = 0; j < n; j++)
        arguments[i][j] = (char)('a' + NEXT(3));
      arguments[i][n - 1] = '\0';
    }
    size_t n = NEXT(64);
    for (size_t j = 0; j < n; j++)
      text[j] = (char)('a' + NEXT(3));
    const char *shown = redact(text, n, words);
    for (int i = 0; i < 3; i++) {
      char head[5] = {0};
      memcpy(head, arguments[i], 4);
      if (strlen(head) == 4)
        assert_null(strstr(shown, head));
    }
  }
#undef NEXT
}
