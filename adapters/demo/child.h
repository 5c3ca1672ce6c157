/* Child processes: other faces of this very program, and what they say, line by line. */
#ifndef BELAY_DEMO_CHILD_H
#define BELAY_DEMO_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

typedef struct child child_t;

/* All children that are alive. */
typedef struct family {
  uv_loop_t *loop;
  child_t *first;
} family_t;

/* A line that it wrote to its standard output, without the line end. */
typedef void (*child_line_cb)(child_t *child, const char *line);

/* It is over, and all that it wrote was read: the struct is the caller's again. */
typedef void (*child_end_cb)(child_t *child);

/* The caller zeroes it and fills in the callbacks and data. */
struct child {
  child_line_cb on_line; /* NULL: its output goes nowhere */
  child_end_cb on_end;
  void *data;

  int error;           /* at the end: why it could not be started; or 0, and then: */
  int64_t exit_status; /* what it returned */
  int exit_signal;     /* or what killed it */

  family_t *family;
  child_t *next;
  uv_process_t process;
  uv_pipe_t output;
  unsigned handles; /* that are not closed yet */
  size_t len;
  char buffer[1024];
};

/* Starts this program with arguments: a hidden subcommand, then ours, which find the parent's process id
 * between them. args ends with NULL. on_end comes in any case, later. */
void child_start(family_t *family, child_t *child, const char *const *args);

/* Ends it by a signal, if it is alive. */
void child_kill(child_t *child, int signum);

/* Whether it ended as a program should. */
bool child_ended_well(const child_t *child);

/* Kills all children and waits until they are gone, without the loop, of which nothing is left to be
 * expected: for a program that is about to end itself. */
void family_kill(family_t *family);

/* In a child: says that it is not to outlive its parent, whose process id is given as text. Ends the process
 * if it does already. Does nothing where the system has no such thing. */
void child_die_with(const char *parent);

#endif /* BELAY_DEMO_CHILD_H */
