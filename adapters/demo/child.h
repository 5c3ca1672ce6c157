/* Child processes: this program in another role. A child tells its parent what it does, line by
 * line. */
#ifndef BELAY_DEMO_CHILD_H
#define BELAY_DEMO_CHILD_H

#include "demo/scene.h"

/* One line from a child: a word, a time (uv_hrtime() is the same for all processes), a number. */
typedef struct news {
  char word[16];
  uint64_t at;
  int64_t number;
} news_t;

typedef struct child child_t;

/* The caller zeroes it and fills in the first three fields. */
struct child {
  void (*on_news)(child_t *child, const news_t *news); /* NULL: the output is discarded */
  void *data;
  bool may_fail; /* a bad end is not printed */

  bool over;           /* the process ended, and all its output was read */
  int error;           /* why it could not be started, or 0; then: */
  int64_t exit_status; /* what it returned */
  int exit_signal;     /* the signal that killed it, or 0 */

  bool killed; /* by child_kill() */
  demo_t *demo;
  child_t *next;
  uv_process_t process;
  uv_pipe_t output;
  unsigned handles; /* that are open */
  size_t len;
  char buffer[1024];
};

/* Start this program in a role of main.c. args ends with NULL; the first one is the child's owner
 * name. */
void child_start(demo_t *demo, child_t *child, const char *role, const char *const *args);

/* Send a signal to the child if it runs. */
void child_kill(child_t *child, int signum);

/* Kill all children and wait for their end without the loop. For a program that is about to end. */
void children_kill(demo_t *demo);

/* In a child: end when the parent ends. The parent's process id is given as text. Does nothing
 * where the system has no such function. */
void child_die_with(const char *parent);

#endif /* BELAY_DEMO_CHILD_H */
