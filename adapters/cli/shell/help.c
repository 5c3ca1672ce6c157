#include "shell/help.h"

#include <stdio.h>
#include <string.h>

#include "shell/commands.h"
#include "shell/common.h"
#include "shell/options.h"
#include "ui/out.h"
#include "ui/status.h"

#define WIDTH 79
#define USAGE_MAX 256
#define COLUMN 14        /* column of a command's description */
#define OPTION_COLUMN 30 /* column of an option's description */
#define STATUS_COLUMN 7  /* column of an exit status's meaning */

const char *help_option(const option_t *option) {
  static char shown[USAGE_MAX];
  const char *value = option_value_name(option);
  size_t n = 0;
  if (option->letter != 0)
    n = (size_t)snprintf(shown, sizeof shown, "-%c, ", option->letter);
  (void)snprintf(shown + n, sizeof shown - n, "--%s%s%s", option->name, value != NULL ? " " : "",
                 value != NULL ? value : "");
  return shown;
}

/* Print words in lines that begin in a column. The cursor is in that column already. */
static void print_words(const char *words, size_t column) {
  size_t at = column;
  bool first = true;
  while (*words != '\0') {
    size_t len = strcspn(words, " \n");
    if (!first && at + 1 + len > WIDTH) {
      (void)printf("\n%*s", (int)column, "");
      at = column;
      first = true;
    }
    (void)printf("%s%.*s", first ? "" : " ", (int)len, words);
    at += len + !first;
    first = false;
    words += len;
    words += strspn(words, " \n");
  }
  (void)putchar('\n');
}

static void print_paragraphs(const char *text) {
  while (text != NULL && *text != '\0') {
    const char *end = strstr(text, "\n\n");
    char paragraph[4096];
    size_t len = end != NULL ? (size_t)(end - text) : strlen(text);
    (void)snprintf(paragraph, sizeof paragraph, "%.*s", (int)len, text);
    (void)putchar('\n');
    print_words(paragraph, 0);
    text = end != NULL ? end + 2 : NULL;
  }
}

/* Print a name, and its description in a column. */
static void print_entry(const char *name, size_t column, const char *what) {
  int n = printf("  %s", name);
  if (n > 0 && (size_t)n + 2 > column)
    (void)printf("\n%*s", (int)column, "");
  else
    (void)printf("%*s", (int)column - n, "");
  print_words(what, column);
}

static void print_options(const char *heading, const option_t *options) {
  if (options == NULL)
    return;
  (void)printf("\n%s:\n", heading);
  for (const option_t *o = options; o->name != NULL; o++)
    print_entry(help_option(o), OPTION_COLUMN, o->help);
}

static void print_examples(const example_t *examples) {
  for (const example_t *e = examples; e != NULL && e->line != NULL; e++)
    (void)printf("\n%s:\n\n  %s\n", e->what, e->line);
}

static void print_statuses(void) {
  (void)printf("\nexit status:\n");
#define PRINT_STATUS(name, value, text) print_entry(#value, STATUS_COLUMN, text);
  STATUSES(PRINT_STATUS)
#undef PRINT_STATUS
}

static void print_summary(const command_t *command) {
  print_entry(command->name, COLUMN, command->summary);
}

static void print_words_of(const command_t *command) {
  const char *word;
  char words[2048] = "";
  size_t n = 0;
  for (size_t i = 0; (word = command->words(i)) != NULL && n < sizeof words; i++)
    n += (size_t)snprintf(words + n, sizeof words - n, "%s ", word);
  (void)printf("\n%s: ", command->arguments);
  print_words(words, strlen(command->arguments) + 2);
}

static void print_command(const command_t *command) {
  (void)printf("usage: %s\n\nbelay %s: ", command_usage(command), command_full_name(command));
  print_words(command->summary, strlen(command_full_name(command)) + 8);
  print_paragraphs(command->text);
  if (command->words != NULL)
    print_words_of(command);
  if (command->subcommands != NULL)
    (void)putchar('\n');
  for (const command_t *sub = command->subcommands; sub != NULL && sub->name != NULL; sub++)
    print_summary(sub);
  if (command->subcommands == NULL)
    print_options("options", command->options);
  print_examples(command->examples);
  if (command->subcommands != NULL)
    return;
  if (command_urls(command) > 0)
    print_options("the server", common_server_options);
  print_options("common options", command->plain ? common_options : common_report_options);
  if (!command->plain)
    print_entry(help_option(common_options), OPTION_COLUMN, common_options->help);
  if (command->runs != RUNS_NOTHING)
    print_statuses();
}

static void print_belay(void) {
  (void)printf("usage: belay COMMAND [OPTION]... [ARGUMENT]...\n");
  (void)putchar('\n');
  for (size_t i = 0; commands[i] != NULL; i++)
    print_summary(commands[i]);
  print_paragraphs(
      "URL: redis://[user[:password]@]host[:port][/db] or unix:///path[?db=n]; rediss is over TLS, "
      "and redis+sentinel, redis+cluster and redis+replicas name several hosts.");
  print_paragraphs(
      "A password belongs in the environment (BELAY_PASSWORD, or BELAY_URL) or in a file "
      "(--password-file, or a settings file): all users may read a command line.");
  print_paragraphs("belay COMMAND --help describes a command, and man belay all of them.");
}

void help_print(const command_t *command) {
  if (command == NULL)
    print_belay();
  else
    print_command(command);
}

/* ---- belay help ---- */

static int run_help(const arguments_t *arguments) {
  int argc = (int)arguments->n;
  char **argv = arguments->item;
  common.help = true;
  const command_t *command = argc > 0 ? command_find(&argc, &argv) : NULL;
  if (arguments->n > 0 && command == NULL)
    return STATUS_USAGE;
  help_print(command);
  return STATUS_YES;
}

static const char *name_of(size_t i) {
  return commands[i] != NULL ? commands[i]->name : NULL;
}

const command_t help_command = {
    .name = "help",
    .arguments = "[COMMAND [PART]]",
    .summary = "list the commands, or describe one",
    .examples = EXAMPLES({"All about one command", "belay help count add"}),
    .words = name_of,
    .run = run_help,
    .plain = true,
};
