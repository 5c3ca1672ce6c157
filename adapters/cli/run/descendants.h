/* The descendants of a process, in any process group. Linux only; elsewhere none is found. */
#ifndef BELAY_CLI_RUN_DESCENDANTS_H
#define BELAY_CLI_RUN_DESCENDANTS_H

#include <sys/types.h>

/* Sends a signal to all of this process's that are not in that process group; and SIGCONT, in case
 * one is stopped. */
void descendants_signal(pid_t but_group, int signum);

/* Kills all descendants of this process and waits for them. The process is a subreaper, which
 * becomes the parent of orphans. Processes that it may not kill stay. */
void descendants_end(void);

#endif /* BELAY_CLI_RUN_DESCENDANTS_H */
