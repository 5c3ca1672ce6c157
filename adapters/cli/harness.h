/* The harness of commands that query servers: a loop, belay on it, and a client for each server.
 *
 *    main -> harness_run() -> command->begin(): starts an operation, and returns
 *                             ... the loop runs: callbacks, timers ...
 *                             harness_done(), from any of these: closes all of belay
 *                             ... the loop runs until no handle is left ...
 *         <- the exit status */
#ifndef BELAY_CLI_HARNESS_H
#define BELAY_CLI_HARNESS_H

#include <uv.h>

#include "belay.h"
#include "command.h"
#include "shell/common.h"
#include "ui/out.h"
#include "ui/status.h"

enum { HARNESS_SIGNALS = 3 };

struct harness {
  uv_loop_t loop;
  belay_t *belay;
  /* in the order of --url; a command for one server uses the first */
  belay_client_t *client[URLS_MAX];
  size_t clients;
  const arguments_t *arguments;
  const belay_bytes_t *items; /* arguments->item, with their lengths */
  /* for a command that makes one request at a time; its data is the harness */
  belay_request_t request;

  const command_t *command;
  uv_signal_t signal[HARNESS_SIGNALS];
  unsigned signals; /* number of signals that are watched */
  int signum;       /* the signal that ended the command */
  int status;
  bool done;
  char **become; /* harness_become() */
};

/* Run a command, for main.c. Returns the exit status; errors were reported. If a signal ended the
 * command, the process ends by that signal. */
int harness_run(const command_t *command, const arguments_t *arguments);

/* End the command with an exit status; the first call counts. May be called in begin and in every
 * callback. Pending operations end with BELAY_ECANCELED: their callbacks are still called. */
void harness_done(harness_t *harness, int status);

/* Return true if the command has ended, so that a callback can ignore its result. */
bool harness_is_done(const harness_t *harness);

/* Report what is wrong with the command line, and end with STATUS_USAGE. */
void harness_refuse(harness_t *harness, const char *what);

/* End with STATUS_YES, and replace this process with another command (NULL-terminated) when
 * everything is closed and written. If that fails, it is reported, and the status is
 * STATUS_NO_COMMAND or STATUS_CANNOT_RUN. */
void harness_become(harness_t *harness, char **command);

/* Stop this process as SIGTSTP does by default, until SIGCONT comes. The system does not stop a
 * process that no shell could continue; then the function returns at once. */
void harness_suspend(void);

/* As harness_fail(), with the text of the command's table. Returns true if status is 0. */
bool harness_ok(harness_t *harness, int status);

/* Write the line of results that out_begin() has begun, and end with STATUS_YES or STATUS_NO. */
void harness_answer(harness_t *harness, bool yes);

/* Report a change that needs no text: with --json, write a line with argument 0 as member `name`,
 * and `change` as true. Ends with STATUS_YES. */
void harness_answer_changed(harness_t *harness, const char *name, const char *change);

/* Print the failed action and its cause: "cannot add: no server could be reached", with belay's
 * detail, and end with status_of(error). Call it first in the callback that got the error. Does
 * nothing if error is 0, or if it is BELAY_ECANCELED and the command is done already. */
void harness_fail(harness_t *harness, const char *what, int error);

/* Return the URL of client i without user and password. Valid as the result of out_shown(). */
const char *harness_url(size_t i);

/* Print an error as harness_fail() does, without ending the command. */
void harness_complain(const harness_t *harness, const char *what, int error);

#endif /* BELAY_CLI_HARNESS_H */
