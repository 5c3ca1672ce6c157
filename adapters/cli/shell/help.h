/* Help texts from the tables of commands. */
#ifndef BELAY_CLI_SHELL_HELP_H
#define BELAY_CLI_SHELL_HELP_H

#include "command.h"
#include "ui/text.h"

/* How an option is written: "--ttl DURATION", "-q, --quiet". Valid to the next call. */
const char *help_option(const option_t *option);

/* Where they are to be, and where not. */
extern const char help_about_passwords[];

/* All about a command, or about belay (NULL). */
void help_print(const command_t *command);

#endif /* BELAY_CLI_SHELL_HELP_H */
