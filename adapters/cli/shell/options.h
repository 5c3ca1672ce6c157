/* Reads command lines, by the tables of command.h. */
#ifndef BELAY_CLI_SHELL_OPTIONS_H
#define BELAY_CLI_SHELL_OPTIONS_H

#include "command.h"

#define OPTION_TABLES_MAX 8 /* that one command can have */

/* The options that a command takes: its own, and those it shares with others. */
typedef struct option_set {
  const option_t *table[OPTION_TABLES_MAX];
  size_t n;
} option_set_t;

option_set_t options_of(const command_t *command);

/* Option number i of a set; NULL behind the last one. */
const option_t *option_nth(const option_set_t *set, size_t i);

/* The name of an option's value; NULL: a flag, which has none. */
const char *option_value_name(const option_t *option);

/* Reads what stands behind the command's name into where the options say and *out. false: that is wrong, and was said.
 * --help ends it: then the rest does not matter. */
bool options_read(const command_t *command, int argc, char **argv, arguments_t *out);

/* How many words of the line that options_read() is given stood in front of the command's name:
 * they begin it. */
extern size_t options_in_front;

/* The option that a word such as "--url=X" or "-qu" is, of several letters the last one; NULL: none. *next: its value is
 * the next word. */
const option_t *option_of_word(const option_set_t *set, const char *word, bool *next);

/* Gives an option its value (NULL: a flag). NULL: done; else what is wrong with it, in words. Used
 * for settings too. */
const char *option_set_value(const option_t *option, const char *value);

/* Where a value comes from. The first source that has one counts. */
typedef enum option_source {
  FROM_NOWHERE,
  FROM_LINE,
  FROM_ENVIRONMENT,
  FROM_FILES
} option_source_t;

/* The source that has set the option; of files FROM_FILES and more. */
int option_source(const option_t *option);

/* Notes that a source has set the option. The first source stays. */
void option_mark(const option_t *option, int source);

/* The one of that name; NULL: there is none. */
const option_t *option_find(const option_set_t *set, const char *name, size_t len);

#endif /* BELAY_CLI_SHELL_OPTIONS_H */
