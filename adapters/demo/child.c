#include "demo/child.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { ARGS_MAX = 4, ARGS_BEFORE = 5 };

static void on_closed(uv_handle_t *handle) {
  child_t *child = handle->data;
  if (--child->handles > 0)
    return;
  child->over = true;
  if (child->on_report != NULL && !child->killed && (child->error | child->exit_status) != 0)
    demo_trouble(child->demo, "a process has failed", 0);
}

static void on_exit_status(uv_process_t *process, int64_t status, int signum) {
  child_t *child = process->data;
  child->exit_status = status != 0 ? status : signum;
  uv_close((uv_handle_t *)process, on_closed);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  (void)suggested;
  child_t *child = handle->data;
  if (child->len == sizeof child->buffer) /* no line of a child is this long */
    child->len = 0;
  *buf = uv_buf_init(child->buffer + child->len, (unsigned)(sizeof child->buffer - child->len));
}

static void read_line(child_t *child, const char *line) {
  child_report_t report;
  if (sscanf(line, "%15s %" SCNu64 " %" SCNd64, report.word, &report.at, &report.number) != 3)
    return;
  if (strcmp(report.word, DEMO_FAILED) == 0)
    demo_trouble(child->demo, "a process gave up", (int)report.number);
  else if (child->on_report != NULL)
    child->on_report(child, &report);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  (void)buf;
  child_t *child = stream->data;
  if (n < 0) {
    uv_close((uv_handle_t *)stream, on_closed);
    return;
  }
  child->len += (size_t)n;
  char *line = child->buffer, *rest = child->buffer + child->len, *end;
  while ((end = memchr(line, '\n', (size_t)(rest - line))) != NULL) {
    *end = '\0';
    read_line(child, line);
    line = end + 1;
  }
  child->len = (size_t)(rest - line);
  memmove(child->buffer, line, child->len);
}

void child_start(demo_t *demo, child_t *child, const char *role, const char *const *args) {
  char exe[PATH_MAX] = "", parent[24];
  char *argv[ARGS_BEFORE + ARGS_MAX + 1] = {exe, (char *)role, parent, (char *)demo->url,
                                            (char *)demo->name};
  size_t size = sizeof exe;
  for (size_t n = 0; n < ARGS_MAX && args[n] != NULL; n++)
    argv[ARGS_BEFORE + n] = (char *)args[n];
  (void)snprintf(parent, sizeof parent, "%ld", (long)getpid());
  (void)uv_exepath(exe, &size);                       /* without a path the spawn fails */
  (void)uv_pipe_init(&demo->loop, &child->output, 0); /* only fails on Windows */
  child->demo = demo;
  child->handles = 2;
  child->process.data = child->output.data = child;
  uv_stdio_container_t stdio[3] = {
      {.flags = UV_IGNORE},
      {.flags = (uv_stdio_flags)(UV_CREATE_PIPE | UV_WRITABLE_PIPE),
       .data.stream = (uv_stream_t *)&child->output},
      {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
  };
  uv_process_options_t options = {
      .exit_cb = on_exit_status, .file = exe, .args = argv, .stdio_count = 3, .stdio = stdio};
  child->error = uv_spawn(&demo->loop, &child->process, &options);
  if (child->error == 0) {
    (void)uv_read_start((uv_stream_t *)&child->output, on_alloc, on_read); /* the pipe is open */
    return;
  }
  uv_close((uv_handle_t *)&child->process, on_closed);
  uv_close((uv_handle_t *)&child->output, on_closed);
}

void child_kill(child_t *child) {
  if (child->handles == 0 || !uv_is_active((uv_handle_t *)&child->process))
    return;
  child->killed = true;
  (void)uv_process_kill(&child->process, SIGKILL);
}

void child_die_with(const char *parent) {
#ifdef __linux__
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || strtol(parent, NULL, 10) != (long)getppid())
    exit(1);
#else
  (void)parent;
#endif
}
