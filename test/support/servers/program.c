#include "support/servers/program.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/base/unit.h"

/* Debian's redis-check-rdb is the server too, when it is called by that name. */
void program_become(char **argv) {
  static const char *const programs[] = {"redis-server", "valkey-server", "redis-check-rdb"};
  const char *chosen = getenv("BELAY_TEST_SERVER");
  argv[0] = (char *)(uintptr_t) "redis-server";
  if (chosen != NULL)
    execvp(chosen, argv);
  for (size_t i = 0; chosen == NULL && i < sizeof programs / sizeof *programs; i++)
    execvp(programs[i], argv);
  _exit(127);
}

/* "Redis server v=7.0.15 sha=…" */
static void ask_for_version(int *major, int *minor) {
  char *argv[] = {NULL, (char *)(uintptr_t) "--version", NULL}, text[128] = "";
  int out[2];
  assert_int_equal(pipe(out), 0);
  pid_t pid = fork();
  if (pid == 0) {
    dup2(out[1], STDOUT_FILENO);
    program_become(argv);
  }
  close(out[1]);
  ssize_t n = read(out[0], text, sizeof text - 1);
  close(out[0]);
  waitpid(pid, NULL, 0);
  const char *at = n > 0 ? strstr(text, " v=") : NULL;
  if (at == NULL || sscanf(at, " v=%d.%d", major, minor) != 2)
    fail_msg("no server says its version: is redis-server, or redis-check-rdb, in PATH?");
}

bool program_is_since(int major, int minor) {
  static int own_major, own_minor;
  if (own_major == 0)
    ask_for_version(&own_major, &own_minor);
  return own_major > major || (own_major == major && own_minor >= minor);
}
