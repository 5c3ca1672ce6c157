/* The list of all commands, and facts about one that follow from its table. */
#ifndef BELAY_CLI_SHELL_COMMANDS_H
#define BELAY_CLI_SHELL_COMMANDS_H

#include "command.h"

/* In the order in which help lists them; ends with NULL. meson.build has their names: belay NAME is
 * NAME_command. */
extern const command_t *const commands[];

/* Describes the options that may stand in front of a command's name: a command without a name. */
extern const command_t in_front;

/* The command that it is a part of; NULL: none. */
const command_t *command_parent(const command_t *command);

/* The command of that name; NULL: none. */
const command_t *command_named(const char *name);

/* The part of that name of a command that has parts; NULL: none. */
const command_t *command_part(const command_t *command, const char *name);

/* Its name, with that of its parent: "count add". Valid to the next call. */
const char *command_full_name(const command_t *command);

/* Its usage in one line: "belay count add KEY [N] [OPTION]...". Valid to the next call. */
const char *command_usage(const command_t *command);

/* How many arguments it needs. *most: how many it takes; SIZE_MAX: any number. */
size_t command_arguments(const command_t *command, size_t *most);

/* How many servers it may ask; 0: none. */
unsigned command_urls(const command_t *command);

#endif /* BELAY_CLI_SHELL_COMMANDS_H */
