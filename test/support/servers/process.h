/* Processes that a test starts: mostly this very program, in another role. */
#ifndef TEST_SUPPORT_SERVERS_PROCESS_H
#define TEST_SUPPORT_SERVERS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct process {
  pid_t pid;   /* 0: not running */
  int in, out; /* pipes: to its standard input, from its standard output */
} process_t;

/* The path of this program. */
const char *process_self(void);

/* Starts a program found in PATH; argv ends with NULL. It dies with the thread that started it. */
process_t process_start(const char *const *argv);

/* A line of its output, without the end; false if there will be none any more. */
bool process_read_line(process_t *process, char *line, size_t size);

/* A line to its input. */
void process_write_line(process_t *process, const char *line);

void process_kill(process_t *process, int signal_number);

/* Closes its input, reads its output to the end, and waits for its end. Returns the exit status, or
 * minus the signal. */
int process_wait(process_t *process);

/* Kills it with SIGKILL, and waits for its end. */
void process_finish(process_t *process);

/* Reads a line that must be this one. */
void process_expect_line(process_t *process, const char *expected);

#endif /* TEST_SUPPORT_SERVERS_PROCESS_H */
