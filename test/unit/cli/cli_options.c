/* The table-driven command line parser. test/cli checks its messages. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "belay/export.h"
#include "cli/shell/commands.h"
#include "cli/shell/common.h"
#include "cli/shell/options.h"
#include "support/base/test.h"

#define WORDS_MAX 16

static struct {
  bool flag, other;
  const char *text;
  texts_t texts;
  int64_t number, wait, bare;
  rate_t rate;
} asked;

static const option_t options[] = {
    FLAG("flag", &asked.flag, "-", .letter = 'f'),
    FLAG("other", &asked.other, "-", .letter = 'o'),
    TEXT("text", "T", &asked.text, NULL, .letter = 't'),
    TEXTS("texts", "T", &asked.texts, NULL),
    NUMBER("number", -5, 5, &asked.number, NULL),
    DURATION("wait", 0, 1000, &asked.wait, NULL, .forever = true),
    DURATION("bare", 0, 1000, &asked.bare, NULL, .bare = true),
    RATE("rate", &asked.rate, NULL, .min = 1, .max = 100),
    {0},
};

static arguments_t arguments;

/* Parse a line of words for a command with these arguments. */
static bool read_with(command_runs_t runs, const char *names, const char *line) {
  static char copy[256], *words[WORDS_MAX + 1];
  size_t n = 0;
  const command_t command = {
      .name = "test", .summary = "", .options = options, .arguments = names, .runs = runs};
  memset(&asked, 0, sizeof asked);
  snprintf(copy, sizeof copy, "%s", line);
  for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
    words[n++] = word;
  words[n] = NULL;
  return options_read(&command, (int)n, words, &arguments);
}

static bool reads(const char *line) {
  return read_with(RUNS_NOTHING, "[A] [B] [C]", line);
}

TEST(options_in_all_forms) {
  assert_true(reads("a --flag b --text=x --texts 1 --texts=2 --number -5 --wait 1s --rate 10/s c"));
  assert_true(asked.flag && !asked.other);
  assert_string_equal(asked.text, "x");
  assert_int_equal(asked.texts.n, 2);
  assert_string_equal(asked.texts.item[1], "2");
  assert_int_equal(asked.number, -5);
  assert_int_equal(asked.wait, 1000);
  assert_int_equal(asked.rate.count, 10);
  assert_int_equal(arguments.n, 3);
  assert_string_equal(arguments.item[2], "c");
  assert_null(arguments.command);

  assert_true(reads("-foft y"));
  assert_true(asked.flag && asked.other);
  assert_string_equal(asked.text, "y");
  assert_true(reads("-ftz --wait forever"));
  assert_string_equal(asked.text, "z");
  assert_true(asked.wait == BELAY_FOREVER);
  assert_true(reads("--text= -5 - "));
  assert_string_equal(asked.text, "");
  assert_int_equal(arguments.n, 2); /* a number and "-" are arguments */
}

TEST(repeated_options) {
  assert_true(reads("--text a --number 1 --text b --wait 1s --wait 500ms --number 2 -f -f"));
  assert_string_equal(asked.text, "b");
  assert_int_equal(asked.number, 2);
  assert_int_equal(asked.wait, 500);
  assert_true(asked.flag);
  assert_false(reads("--number x --number 1"));
}

TEST(a_duration_that_may_be_missing) {
  static const struct {
    const char *line;
    int64_t bare;
    size_t n; /* arguments */
  } cases[] = {
      {"--bare a", 1000, 1}, {"--bare 500ms a", 500, 1},    {"a --bare", 1000, 1},
      {"--bare=0", 0, 0},    {"--bare=20ms 1s", 20, 1},     {"--bare --flag", 1000, 0},
      {"--bare", 1000, 0},   {"--bare --bare 1s", 1000, 0}, {"--bare 1ms --bare", 1000, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (!reads(cases[i].line) || asked.bare != cases[i].bare || arguments.n != cases[i].n)
      fail_msg("read wrongly: %s", cases[i].line);
  assert_true(read_with(RUNS_MAYBE, NULL, "--bare -- ls"));
  assert_string_equal(arguments.command[0], "ls");
  assert_int_equal(asked.bare, 1000);
  assert_false(reads("--bare 2s"));
  assert_false(reads("--bare=x"));
}

TEST(words_stay_in_the_line) {
  assert_true(read_with(RUNS_MAYBE, "A [B]", "-f a --text x b -- ls -f"));
  static const char *const words[] = {"a", "b", "-f", "--text", "x", "--", "ls", "-f"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    assert_string_equal(arguments.item[i], words[i]);
  assert_null(arguments.item[sizeof words / sizeof *words]);
}

TEST(words_behind_dashes) {
  assert_true(reads("-f -- --text -o"));
  assert_int_equal(arguments.n, 2);
  assert_false(asked.other);
  assert_true(read_with(RUNS_ALWAYS, "A", "name -f -- ls -o -- x"));
  assert_int_equal(arguments.n, 1);
  assert_string_equal(arguments.command[0], "ls");
  assert_string_equal(arguments.command[2], "--");
  assert_null(arguments.command[4]);
  assert_false(asked.other);
  assert_false(read_with(RUNS_ALWAYS, "A", "name ls"));
  assert_false(read_with(RUNS_ALWAYS, "A", "name"));
  assert_false(read_with(RUNS_ALWAYS, "A", "name --"));
  assert_false(read_with(RUNS_ALWAYS, "A", "-- ls"));
  assert_true(read_with(RUNS_MAYBE, "A", "name"));
  assert_true(read_with(RUNS_MAYBE, "A", "name -- ls"));
}

TEST(invalid_options_are_refused) {
  static const char *const lines[] = {
      "a b c d",  "--flags",      "--fla",      "-x",          "-fx",        "--flag=yes",
      "--text",   "-t",           "--number 6", "--number -6", "--number x", "--wait 2s",
      "--wait 5", "--rate 101/s", "--rate x",   "--=x",
  };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    if (reads(lines[i]))
      fail_msg("accepted: %s", lines[i]);
}

TEST(too_many_texts) {
  const option_t *texts = &options[3];
  asked.texts.n = 0;
  for (size_t i = 0; i < TEXTS_MAX; i++)
    assert_null(option_set_value(texts, "x"));
  assert_non_null(option_set_value(texts, "x"));
  assert_int_equal(asked.texts.n, TEXTS_MAX);
}

TEST(namespaces) {
  namespace_parts_t parts;
  assert_true(namespace_divide("a::b:c::d", &parts));
  assert_int_equal(parts.n, 3);
  assert_string_equal(parts.part[1], "b:c");
  assert_true(namespace_divide("1::2::3::4::5::6::7::8", &parts));
  assert_int_equal(parts.n, 8);
  assert_false(namespace_divide("1::2::3::4::5::6::7::8::9", &parts));
}

/* ---- the tables of all commands ---- */

static void check_option(const option_set_t *set, const option_t *option) {
  for (const char *c = option->name; *c != '\0'; c++)
    assert_true((*c >= 'a' && *c <= 'z') || *c == '-');
  assert_ptr_equal(option_find(set, option->name, strlen(option->name)), option); /* once */
  assert_non_null(option->to.flag);
  assert_int_equal(option_value_name(option) == NULL, option->kind == OPTION_FLAG);
  assert_true(option->help != NULL && *option->help != '\0');
  assert_true(option->min <= option->max);
  assert_true(option->help[strlen(option->help) - 1] != '.');
}

static void check_command(const command_t *command) {
  bool letters[256] = {false};
  option_set_t set = options_of(command);
  assert_int_equal((command->run != NULL) + (command->begin != NULL), command->subcommands == NULL);
  size_t most, least = command_arguments(command, &most);
  assert_true(least <= most);
  assert_true((most > 0) == (command->arguments != NULL));
  assert_true(command_urls(command) == 0 || command->begin != NULL);
  assert_true(command->summary[strlen(command->summary) - 1] != '.');
  for (size_t i = 0; i < set.n; i++) {
    for (const option_t *o = set.table[i]; o->name != NULL; o++) {
      check_option(&set, o);
      assert_false(o->letter != 0 && letters[(unsigned char)o->letter]);
      letters[(unsigned char)o->letter] = true;
    }
  }
}

/* Each option and each letter is unique; each command has either a function or subcommands. */
TEST(all_commands) {
  for (size_t i = 0; commands[i] != NULL; i++) {
    assert_true(i == 0 || strcmp(commands[i - 1]->name, commands[i]->name) < 0);
    check_command(commands[i]);
    for (const command_t *sub = commands[i]->subcommands; sub != NULL && sub->name != NULL; sub++) {
      check_command(sub);
      assert_ptr_equal(command_parent(sub), commands[i]);
    }
  }
}
