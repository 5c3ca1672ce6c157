/* A shell command that is run at each change: one at a time, and of several changes meanwhile the last one counts. */
#ifndef BELAY_CLI_RUN_HOOK_H
#define BELAY_CLI_RUN_HOOK_H

#include <uv.h>

#include "harness.h"

enum { HOOK_VALUE_MAX = 512 };

/* What has changed, as the command finds it in its environment. */
typedef struct hook_event {
  char leader[HOOK_VALUE_MAX]; /* BELAY_LEADER: what the leader calls itself; "": nobody leads */
  uint64_t term;               /* BELAY_TERM; 0: nobody leads */
  bool ours;                   /* BELAY_LEADING: 1, this process leads; else 0 */
} hook_event_t;

/* The caller zeroes it and fills in these: */
typedef struct hook {
  const char *command; /* for sh -c */
  const char *name;    /* BELAY_NAME */

  /* Of hook.c. */
  harness_t *harness;
  uv_process_t process;
  bool runs, again; /* again: `next` is to be told when it has ended */
  hook_event_t next;
} hook_t;

/* Runs the command, or runs it again when it has ended. */
void hook_tell(hook_t *hook, harness_t *harness, const hook_event_t *event);

/* Before the harness is done: a command that runs is not waited for, and goes on. */
void hook_end(hook_t *hook);

#endif /* BELAY_CLI_RUN_HOOK_H */
