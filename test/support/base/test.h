/* Tests that register themselves. A test program is a file with TESTs; its main() is in test.c
 * and runs them in the order of their source lines.
 *
 *   program            run all tests
 *   program PATTERN    run the tests whose names match the pattern (* and ? are wildcards)
 *   program --list     print the names
 *   program WORD ...   play the TEST_ROLE of that word
 */
#ifndef TEST_SUPPORT_BASE_TEST_H
#define TEST_SUPPORT_BASE_TEST_H

#include "support/base/unit.h"

/* Functions that run before main(). */
#define TEST_REGISTER_(name)                                                                       \
  __attribute__((constructor)) static void register_##name(void);                                  \
  static void register_##name(void)

/* Defines a test: TEST(name) { ... }. */
#define TEST(name)                                                                                 \
  static void test_##name(void **test_state);                                                      \
  TEST_REGISTER_(name) {                                                                           \
    test_add(__LINE__, test_##name, NULL, "%s", #name);                                            \
  }                                                                                                \
  static void test_##name(__attribute__((unused)) void **test_state)

/* Defines a test in a fixture: TEST_IN(name, env, env_open(NULL)) { ... }. The body has a
 * `env_t *env`, which the macro opens with that expression and closes with env_close(). TEST_ON
 * ends the fixture with `_stop` instead of `_close`.
 *
 * The fixture closes after the body has returned. A test whose variables must outlive the
 * close, for example because they are the data of a handle or a uv handle on the same loop, is
 * a TEST that opens and closes its env itself. */
#define TEST_IN(name, fixture, open) TEST_WITH_(name, fixture, open, fixture##_close)
#define TEST_ON(name, fixture, start) TEST_WITH_(name, fixture, start, fixture##_stop)
#define TEST_WITH_(name, fixture, begin, end)                                                      \
  static void in_##name(fixture##_t *fixture);                                                     \
  TEST(name) {                                                                                     \
    fixture##_t *fixture = begin;                                                                  \
    in_##name(fixture);                                                                            \
    end(fixture);                                                                                  \
  }                                                                                                \
  static void in_##name(__attribute__((unused)) fixture##_t *fixture)

/* Defines code that adds tests with test_add(), for example one for each row of a table:
 * TEST_ROWS(name) { ... }. */
#define TEST_ROWS(name) TEST_REGISTER_(name)

/* Adds a test. `row` becomes the test's *state. `line` orders the tests; rows of one line keep
 * their order. */
void test_add(int line, void (*run)(void **state), const void *row, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Defines code that runs once before the first test (TEST_BEGIN { ... }) or once after the last
 * one. */
#define TEST_BEGIN TEST_HOOK_(begin)
#define TEST_END TEST_HOOK_(end)
#define TEST_HOOK_(hook)                                                                           \
  static void program_##hook(void);                                                                \
  TEST_REGISTER_(hook) {                                                                           \
    test_on_##hook(program_##hook);                                                                \
  }                                                                                                \
  static void program_##hook(void)
void test_on_begin(void (*run)(void));
void test_on_end(void (*run)(void));

/* Defines what the program does in a process of its own, which a test starts with that word as
 * the first argument: TEST_ROLE(worker, "--worker") { ... argv[2] ... }. The body returns the
 * exit status. */
#define TEST_ROLE(name, word)                                                                      \
  static int role_##name(char **argv);                                                             \
  TEST_REGISTER_(role_##name) {                                                                    \
    test_add_role(word, role_##name);                                                              \
  }                                                                                                \
  static int role_##name(__attribute__((unused)) char **argv)
void test_add_role(const char *word, int (*run)(char **argv));

#endif /* TEST_SUPPORT_BASE_TEST_H */
