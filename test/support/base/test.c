#include "support/base/test.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROLES_MAX = 8 };

static struct {
  struct CMUnitTest *cases;
  int *lines; /* of the cases */
  size_t len;
  struct {
    const char *word;
    int (*run)(char **argv);
  } roles[ROLES_MAX];
  size_t roles_len;
  void (*begin)(void), (*end)(void);
} tests;

static void *grow(void *array, size_t len, size_t size) {
  void *grown = realloc(array, len * size);
  if (grown == NULL)
    abort();
  return grown;
}

void test_add(int line, void (*run)(void **state), const void *row, const char *format, ...) {
  va_list args;
  char name[256];
  va_start(args, format);
  vsnprintf(name, sizeof name, format, args);
  va_end(args);
  tests.cases = grow(tests.cases, tests.len + 1, sizeof *tests.cases);
  tests.lines = grow(tests.lines, tests.len + 1, sizeof *tests.lines);
  size_t at = tests.len++;
  for (; at > 0 && tests.lines[at - 1] > line; at--) {
    tests.cases[at] = tests.cases[at - 1];
    tests.lines[at] = tests.lines[at - 1];
  }
  tests.lines[at] = line;
  tests.cases[at] = (struct CMUnitTest){
      .name = strdup(name), .test_func = run, .initial_state = (void *)(uintptr_t)row};
}

void test_on_begin(void (*run)(void)) {
  tests.begin = run;
}

void test_on_end(void (*run)(void)) {
  tests.end = run;
}

void test_add_role(const char *word, int (*run)(char **argv)) {
  if (tests.roles_len == ROLES_MAX)
    abort();
  tests.roles[tests.roles_len].word = word;
  tests.roles[tests.roles_len++].run = run;
}

static int begin_program(void **state) {
  (void)state;
  if (tests.begin != NULL)
    tests.begin();
  return 0;
}

static int end_program(void **state) {
  (void)state;
  if (tests.end != NULL)
    tests.end();
  return 0;
}

/* A filter without a match would pass. */
static bool has_match(const char *pattern) {
  bool any = false;
  for (size_t i = 0; i < tests.len && !any; i++)
    any = fnmatch(pattern, tests.cases[i].name, 0) == 0;
  return any;
}

static int list(void) {
  for (size_t i = 0; i < tests.len; i++)
    printf("%s\n", tests.cases[i].name);
  return 0;
}

int main(int argc, char **argv) {
  for (size_t i = 0; argc > 1 && i < tests.roles_len; i++)
    if (strcmp(argv[1], tests.roles[i].word) == 0)
      return tests.roles[i].run(argv);
  if (argc > 1 && strcmp(argv[1], "--list") == 0)
    return list();
  if (argc > 1 && !has_match(argv[1])) {
    fprintf(stderr, "%s: no test of that name\n", argv[1]);
    return 2;
  }
  if (argc > 1)
    cmocka_set_test_filter(argv[1]);
  const char *program = strrchr(argv[0], '/');
  return _cmocka_run_group_tests(program != NULL ? program + 1 : argv[0], tests.cases, tests.len,
                                 begin_program, end_program);
}
