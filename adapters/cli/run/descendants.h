/* The descendants of this process, in any process group. Linux only; elsewhere none is found. */
#ifndef BELAY_CLI_RUN_DESCENDANTS_H
#define BELAY_CLI_RUN_DESCENDANTS_H

#include <sys/types.h>

/* Send a signal to all descendants that are not in that process group, and SIGCONT, because one may
 * be stopped. */
void descendants_signal(pid_t but_group, int signum);

/* Kill all descendants and wait for them. This process is a subreaper: it becomes the parent of
 * orphans. Processes that it may not kill stay. */
void descendants_end(void);

#endif /* BELAY_CLI_RUN_DESCENDANTS_H */
