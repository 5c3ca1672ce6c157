/* Child processes: this program in another role. A child reports to its parent line by line. */
#ifndef BELAY_DEMO_CHILD_H
#define BELAY_DEMO_CHILD_H

#include "demo/scene.h"

/* One line from a child: a word, a time (uv_hrtime() is the same for all processes), a number. */
typedef struct child_report {
  char word[16];
  uint64_t at;
  int64_t number;
} child_report_t;

typedef struct child child_t;

/* The caller zeroes it and fills in the first two fields. */
struct child {
  void (*on_report)(child_t *child, const child_report_t *report); /* NULL: a server, without one */
  void *data;

  bool over;           /* the process ended, and all its output was read */
  int error;           /* why it could not be started, or 0 */
  int64_t exit_status; /* valid when over */

  bool killed; /* by child_kill() */
  demo_t *demo;
  uv_process_t process;
  uv_pipe_t output;
  unsigned handles; /* that are open */
  size_t len;
  char buffer[1024];
};

/* Start this program in a role of main.c. args ends with NULL. */
void child_start(demo_t *demo, child_t *child, const char *role, const char *const *args);

/* Kill the child if it runs. */
void child_kill(child_t *child);

/* In a child: end when the parent ends. The parent's process id is given as text. Does nothing
 * where the system has no such function. */
void child_die_with(const char *parent);

#endif /* BELAY_DEMO_CHILD_H */
