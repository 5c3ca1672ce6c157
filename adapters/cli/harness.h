/* What a command hangs in that asks servers: a loop, belay on it, and a client for each server.
 *
 *   main -> harness_run() -> command->begin(): starts something, and returns
 *                            ... the loop turns: callbacks, timers ...
 *                            harness_done(), from any of these: everything of belay's is closed, the loop runs
 *                            until nothing is left on it, harness_run() returns the exit status
 */
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
  /* in the order of --url; of those that ask one the first is there */
  belay_client_t *client[URLS_MAX];
  size_t clients;
  const arguments_t *arguments;
  const belay_bytes_t *items; /* arguments->item, with their lengths */
  /* for a command that makes one request at a time; its data is the harness */
  belay_request_t request;

  const command_t *command;
  uv_signal_t signal[HARNESS_SIGNALS];
  unsigned signals; /* that are watched */
  int signum;       /* the one that ended it */
  int status;
  bool done;
  char **become; /* harness_become() */
};

/* For main.c. Returns the exit status; what is wrong was said. If a signal has ended it, it ends
 * the process by that. */
int harness_run(const command_t *command, const arguments_t *arguments);

/* It is over, with that exit status; the first call counts. Legal in begin, in every callback, and
 * for whoever is in begin also before anything was started. What is pending ends with
 * BELAY_ECANCELED after it: those callbacks still come. */
void harness_done(harness_t *harness, int status);

/* For callbacks whose command may be over: what comes then does not matter any more. */
bool harness_is_done(const harness_t *harness);

/* Says what is wrong with what was asked for, in words, and is done with STATUS_USAGE. */
void harness_refuse(harness_t *harness, const char *what);

/* As harness_done() with STATUS_YES; and once everything is closed and written, that command, with
 * its arguments and a NULL behind them, takes the place of this process. If it cannot, that is
 * said, and the status is STATUS_NO_COMMAND or STATUS_CANNOT_RUN. */
void harness_become(harness_t *harness, char **command);

/* Is stopped by SIGTSTP as if nobody watched it, until SIGCONT comes; where no shell would continue
 * it the system does not stop it, and it goes on. */
void harness_suspend(void);

/* As harness_fail(), with the words of the command's table. Returns whether the status is 0. */
bool harness_ok(harness_t *harness, int status);

/* Writes the line of results that out_begin() has begun, and is done: STATUS_YES or STATUS_NO. */
void harness_answer(harness_t *harness, bool yes);

/* Reports a change for which there is nothing to say: with --json a line that has argument 0 as member `name`, and `change`
 * as true. Is done with STATUS_YES. */
void harness_answer_changed(harness_t *harness, const char *name, const char *change);

/* Says what did not work and why: "cannot add: no server could be reached", with what belay knows
 * of it, and is done with status_of(error). Call it in the callback that was told of the error,
 * before anything else. Does nothing if error is 0, or is BELAY_ECANCELED and it is done
 * already. */
void harness_fail(harness_t *harness, const char *what, int error);

/* The URL of the i-th client as it may be shown: without user and password. Valid as what
 * out_shown() returns. */
const char *harness_url(size_t i);

/* So that what the server says is said too: harness_fail() without the end. */
void harness_complain(const harness_t *harness, const char *what, int error);

#endif /* BELAY_CLI_HARNESS_H */
