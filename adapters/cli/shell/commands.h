/* The list of all commands, and values that follow from a command's table. */
#ifndef BELAY_CLI_SHELL_COMMANDS_H
#define BELAY_CLI_SHELL_COMMANDS_H

#include "command.h"

/* In the order in which help lists them; ends with NULL. meson.build has their names: belay NAME is
 * NAME_command. */
extern const command_t *const commands[];

/* Return the command that has this subcommand, or NULL. */
const command_t *command_parent(const command_t *command);

/* Return the command of that name, or NULL. */
const command_t *command_named(const char *name);

/* Return the command's part of that name, or NULL. */
const command_t *command_find_subcommand(const command_t *command, const char *name);

/* Return the name with that of the parent: "count add". Valid to the next call. */
const char *command_full_name(const command_t *command);

/* Return the usage: "belay count add KEY [N] [OPTION]...". Valid to the next call. */
const char *command_usage(const command_t *command);

/* Return the least number of arguments. *most: the largest number; SIZE_MAX: no limit. */
size_t command_arguments(const command_t *command, size_t *most);

/* Return the largest number of servers of a command. */
unsigned command_urls(const command_t *command);

/* Find the command whose name, or names, the line begins with, and remove them from the line.
 * Returns NULL after printing an error. */
const command_t *command_find(int *argc, char ***argv);

#endif /* BELAY_CLI_SHELL_COMMANDS_H */
