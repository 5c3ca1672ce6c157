/* Shared by the tests of URLs. */
#ifndef TEST_UNIT_ADAPTERS_URLS_H
#define TEST_UNIT_ADAPTERS_URLS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "belay/error.h"
#include "redis/net/url.h"
#include "support/base/test.h"

/* Parses a copy that ends where it ends, so that the sanitizer sees a read behind it. */
static inline int parse(const char *text, belay__url_t *url, const char **part, const char **why) {
  char *copy = strdup(text);
  assert_non_null(copy);
  memset(url, 0x5a, sizeof *url);
  *part = *why = NULL;
  int error = belay__url_parse(copy, url, part, why);
  free(copy);
  assert_non_null(*part);
  assert_non_null(*why);
  return error;
}

static inline int same(const char *found, const char *expected) {
  return strcmp(found, expected == NULL ? "" : expected) == 0;
}

static inline void check_bad(const char *text, const char *expected) {
  belay__url_t url, zeros;
  const char *part, *why;
  memset(&zeros, 0, sizeof zeros);
  int error = parse(text, &url, &part, &why);
  if (error != BELAY_EURL || strcmp(part, expected) != 0)
    fail_msg("\"%s\": %s, part \"%s\" (%s), not \"%s\"", text, belay_err_name(error), part, why,
             expected);
  assert_in_range(strlen(why), 5, 80);
  assert_memory_equal(url.places, zeros.places, sizeof url.places);
  assert_memory_equal(url.path, zeros.path, sizeof url.path);
  assert_memory_equal(url.master, zeros.master, sizeof url.master);
  assert_memory_equal(url.username, zeros.username, sizeof url.username);
  assert_memory_equal(url.password, zeros.password, sizeof url.password);
  assert_false(url.is_unix || url.tls || url.has_username || url.has_password);
  assert_int_equal(url.kind, BELAY__URL_SINGLE);
  assert_int_equal(url.place_count, 0);
  assert_int_equal(url.db, 0);
}

/* CHECK_BAD("host", text, text, ...) */
#define CHECK_BAD(part, ...)                                                                       \
  do {                                                                                             \
    static const char *const texts[] = {__VA_ARGS__};                                              \
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)                                      \
      check_bad(texts[i], part);                                                                   \
  } while (0)

/* head, then n times piece, then tail */
static inline char *build(const char *head, const char *piece, size_t n, const char *tail) {
  size_t head_len = strlen(head), piece_len = strlen(piece);
  char *text = malloc(head_len + n * piece_len + strlen(tail) + 1);
  assert_non_null(text);
  strcpy(text, head);
  for (size_t i = 0; i < n; i++)
    strcpy(text + head_len + i * piece_len, piece);
  strcpy(text + head_len + n * piece_len, tail);
  return text;
}

/* n pieces are just good, and give n bytes; with one more, the part is too long. */
static inline void check_limit(const char *head, const char *piece, size_t n, const char *tail,
                               const char *part, size_t offset) {
  belay__url_t url;
  const char *found, *why;
  char *text = build(head, piece, n, tail);
  if (parse(text, &url, &found, &why) != 0)
    fail_msg("%zu bytes of %s: %s: %s", n, part, found, why);
  const char *out = (const char *)&url + offset;
  assert_int_equal(strlen(out), n + (strcmp(part, "path") == 0)); /* its first '/' is in head */
  free(text);
  text = build(head, piece, n + 1, tail);
  check_bad(text, part);
  free(text);
}

#endif /* TEST_UNIT_ADAPTERS_URLS_H */
