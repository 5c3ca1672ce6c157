/* The live line of a terminal. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "cli/ui/term.h"
#include "support/base/test.h"

/* What is written to standard output between these two. */
static int saved;
static FILE *file;

static void capture(void) {
  (void)fflush(stdout);
  saved = dup(STDOUT_FILENO);
  file = tmpfile();
  assert_non_null(file);
  assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
}

static size_t captured(char *out, size_t size) {
  (void)fflush(stdout);
  (void)dup2(saved, STDOUT_FILENO);
  (void)close(saved);
  rewind(file);
  size_t n = fread(out, 1, size - 1, file);
  out[n] = '\0';
  (void)fclose(file);
  return n;
}

static size_t count(const char *text, const char *what) {
  size_t n = 0;
  for (; (text = strstr(text, what)) != NULL; text += strlen(what))
    n++;
  return n;
}

TEST(a_live_line_is_drawn_as_often_as_an_eye_follows) {
  static char text[65536];
  term_t term = {.fancy = true};
  capture();
  uint64_t began = uv_hrtime();
  for (int i = 0; i < 2000; i++)
    term_live(&term, "step %d", i);
  uint64_t took_ms = (uv_hrtime() - began) / 1000000;
  term_print(&term, "over\n");
  (void)captured(text, sizeof text);
  assert_in_range(count(text, "step "), 1, took_ms / 50 + 1);
  assert_non_null(strstr(text, "step 0"));
  assert_int_equal(count(text, "over"), 1);
}

TEST(after_a_line_a_live_one_is_drawn_at_once) {
  static char text[4096];
  term_t term = {.fancy = true};
  capture();
  for (int i = 0; i < 3; i++) {
    term_live(&term, "live %d", i);
    term_print(&term, "line %d\n", i);
  }
  (void)captured(text, sizeof text);
  assert_int_equal(count(text, "live "), 3);
}

TEST(without_a_terminal_there_is_none) {
  static char text[4096];
  term_t term = {.fancy = false};
  capture();
  term_live(&term, "live");
  term_print(&term, "line\n");
  (void)captured(text, sizeof text);
  assert_string_equal(text, "line\n");
}
