#include "support/servers/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/base/unit.h"

const char *process_self(void) {
  static char path[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  assert_true(n > 0);
  path[n] = '\0';
  return path;
}

static void become(const char *const *argv, int in, int out, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(126);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  execvp(argv[0], (char *const *)(uintptr_t)argv);
  _exit(127);
}

process_t process_start(const char *const *argv) {
  int in[2], out[2];
  assert_int_equal(pipe2(in, O_CLOEXEC), 0);
  assert_int_equal(pipe2(out, O_CLOEXEC), 0);
  fflush(NULL);
  pid_t parent = getpid(), pid = fork();
  if (pid == 0)
    become(argv, in[0], out[1], parent);
  assert_true(pid > 0);
  close(in[0]);
  close(out[1]);
  return (process_t){.pid = pid, .in = in[1], .out = out[0]};
}

bool process_read_line(process_t *process, char *line, size_t size) {
  size_t n = 0;
  char c;
  for (;;) {
    ssize_t got = read(process->out, &c, 1);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return false;
    if (c == '\n')
      break;
    if (n + 1 < size)
      line[n++] = c;
  }
  line[n] = '\0';
  return true;
}

void process_write_line(process_t *process, const char *line) {
  char text[512];
  int n = snprintf(text, sizeof text, "%s\n", line);
  assert_int_equal(write(process->in, text, (size_t)n), n);
}

void process_kill(process_t *process, int signal_number) {
  kill(process->pid, signal_number);
}

int process_wait(process_t *process) {
  int status = 0;
  char rest[256];
  ssize_t n;
  close(process->in);
  do /* a process that still writes must not die of SIGPIPE */
    n = read(process->out, rest, sizeof rest);
  while (n > 0 || (n < 0 && errno == EINTR));
  close(process->out);
  while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR) {
  }
  process->pid = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void process_finish(process_t *process) {
  process_kill(process, SIGKILL);
  assert_int_equal(process_wait(process), -SIGKILL);
}

void process_expect_line(process_t *process, const char *expected) {
  char line[64];
  assert_true(process_read_line(process, line, sizeof line));
  assert_string_equal(line, expected);
}
