/* What the completions of several shells share. */
#ifndef BELAY_CLI_SHELL_COMPLETION_H
#define BELAY_CLI_SHELL_COMPLETION_H

#include "command.h"

/* Calls for each command that does something (not for one that consists of others); path is "count add". */
void completion_each(void (*print)(const command_t *command, const char *path));

/* Whether a value of the option is a file or a folder. */
bool completion_is_file(const option_t *option);

/* Print the script for one shell. */
void completion_zsh(void);
void completion_fish(void);

#endif /* BELAY_CLI_SHELL_COMPLETION_H */
