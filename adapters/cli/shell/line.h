/* The command that a command line names. */
#ifndef BELAY_CLI_SHELL_LINE_H
#define BELAY_CLI_SHELL_LINE_H

#include "command.h"

/* The one that the line begins with; its name, or names, are left out of the rest. Options in front
 * of it are put behind it, where the others are. NULL: there is none, which was said. */
const command_t *command_find(int *argc, char ***argv);

#endif /* BELAY_CLI_SHELL_LINE_H */
