/* Output that is written only if its command fails. */
#ifndef BELAY_CLI_RUN_CAPTURE_H
#define BELAY_CLI_RUN_CAPTURE_H

#include <stdbool.h>
#include <stdio.h>

/* Standard output and standard error of a command, in files without a name. */
typedef struct capture {
  FILE *file[2];
} capture_t;

/* Opens the files. false: errno says why not. */
bool capture_open(capture_t *capture);

/* Writes what the files hold to this process's standard output, and then standard error, and closes
 * the files. Does nothing if they are not open. */
void capture_show(capture_t *capture);

#endif /* BELAY_CLI_RUN_CAPTURE_H */
