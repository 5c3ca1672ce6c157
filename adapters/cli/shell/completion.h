/* Completion of command lines in shells. */
#ifndef BELAY_CLI_SHELL_COMPLETION_H
#define BELAY_CLI_SHELL_COMPLETION_H

#include <stddef.h>

#define COMPLETE_NAME "complete-words"

/* Print the candidates for the last of the words behind "belay":
 *
 *   a line for each candidate, with a tab and its description
 *   or ":files", for a file or folder
 *   or ":command N": word N of the line, counted from 0, begins another program's command line
 *
 * Returns the exit status. */
int completion_words(size_t n, char **words);

#endif /* BELAY_CLI_SHELL_COMPLETION_H */
