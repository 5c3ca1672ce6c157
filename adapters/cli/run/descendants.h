/* What a process has started, and what that has, whatever process group it has gone to. Linux;
 * elsewhere nothing is found. */
#ifndef BELAY_CLI_RUN_DESCENDANTS_H
#define BELAY_CLI_RUN_DESCENDANTS_H

#include <sys/types.h>

/* Sends a signal to all of this process's that are not in that process group; and SIGCONT, in case
 * one is stopped. */
void descendants_signal(pid_t but_group, int signum);

/* Kills all of this process's, and waits for them: for a subreaper, to which comes who loses its
 * parent. What it may not kill is left. */
void descendants_end(void);

#endif /* BELAY_CLI_RUN_DESCENDANTS_H */
