#include "run/descendants.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEPTH_MAX 64 /* of a tree that is walked */

typedef bool (*visit_fn)(pid_t pid, int depth);

static pid_t spared_group;
static int sent;

/* Of one thread. Returns how many times visit says yes. */
static size_t visit_thread(pid_t pid, const char *thread, visit_fn visit, int depth) {
  char path[64];
  long child = 0;
  size_t n = 0;
  (void)snprintf(path, sizeof path, "/proc/%ld/task/%.20s/children", (long)pid, thread);
  FILE *file = fopen(path, "re");
  if (file == NULL)
    return 0;
  while (fscanf(file, "%ld", &child) == 1) /* NOLINT(cert-err34-c): the kernel's own numbers */
    n += visit((pid_t)child, depth);
  (void)fclose(file);
  return n;
}

static size_t visit_children(pid_t pid, visit_fn visit, int depth) {
  char path[64];
  size_t n = 0;
  (void)snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
  DIR *threads = opendir(path);
  if (threads == NULL)
    return 0;
  for (const struct dirent *one; (one = readdir(threads)) != NULL;)
    if (one->d_name[0] != '.')
      n += visit_thread(pid, one->d_name, visit, depth);
  (void)closedir(threads);
  return n;
}

/* Children first: it may be gone with the signal, and they another's then. */
static bool send_one(pid_t pid, int depth) {
  if (depth < DEPTH_MAX)
    (void)visit_children(pid, send_one, depth + 1);
  if (getpgid(pid) == spared_group || kill(pid, sent) != 0)
    return false;
  (void)kill(pid, SIGCONT);
  return true;
}

void descendants_signal(pid_t but_group, int signum) {
  spared_group = but_group;
  sent = signum;
  (void)visit_children(getpid(), send_one, 0);
}

void descendants_end(void) {
  spared_group = 0; /* spare no group */
  sent = SIGKILL;
  while (visit_children(getpid(), send_one, 0) > 0 && waitpid(-1, NULL, 0) > 0) {
    /* children of a dead process become this process's */
  }
}
