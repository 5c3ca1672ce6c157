/* Help texts from the tables of commands. */
#ifndef BELAY_CLI_SHELL_HELP_H
#define BELAY_CLI_SHELL_HELP_H

#include "command.h"
#include "ui/text.h"

/* Return an option as help prints it: "--ttl DURATION", "-q, --quiet". Valid to the next call. */
const char *help_option(const option_t *option);

/* Print the help of a command, or of belay (NULL). */
void help_print(const command_t *command);

#endif /* BELAY_CLI_SHELL_HELP_H */
