/* Reads command lines, by the tables of command.h. */
#ifndef BELAY_CLI_SHELL_OPTIONS_H
#define BELAY_CLI_SHELL_OPTIONS_H

#include "command.h"

#define OPTION_TABLES_MAX 8 /* of one command */

/* The options of a command: its own and the shared ones. */
typedef struct option_set {
  const option_t *table[OPTION_TABLES_MAX];
  size_t n;
} option_set_t;

option_set_t options_of(const command_t *command);

/* Option number i of a set; NULL behind the last one. */
const option_t *option_nth(const option_set_t *set, size_t i);

/* The name of an option's value; NULL: a flag, which has none. */
const char *option_value_name(const option_t *option);

/* Read the words behind the command's name into the variables of the options, and into *out.
 * Stops at --help. Returns false after printing an error. */
bool options_read(const command_t *command, int argc, char **argv, arguments_t *out);

/* Return the option of a word such as "--url=X" or "-qu" (of several letters the last one); NULL:
 * none. *next: true if the next word is its value. */
const option_t *option_of_word(const option_set_t *set, const char *word, bool *next);

/* Set an option to a value (NULL: a flag, or a missing duration). Returns NULL, or the text of an
 * error. */
const char *option_set_value(const option_t *option, const char *value);

/* Return the option of that name, or NULL. */
const option_t *option_find(const option_set_t *set, const char *name, size_t len);

#endif /* BELAY_CLI_SHELL_OPTIONS_H */
