#include "demo/child.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { ARGS_MAX = 8, ARGS_BEFORE = 5 };

static void on_closed(uv_handle_t *handle) {
  child_t *child = handle->data;
  if (--child->handles > 0)
    return;
  child_t **link = &child->demo->children;
  while (*link != child)
    link = &(*link)->next;
  *link = child->next;
  child->over = true;
  bool well = child->error == 0 && child->exit_status == 0 && child->exit_signal == 0;
  if (!well && !child->killed && !child->may_fail)
    demo_trouble(child->demo, "a process did not end as it should", 0);
}

static void on_exit_status(uv_process_t *process, int64_t status, int signum) {
  child_t *child = process->data;
  child->exit_status = status;
  child->exit_signal = signum;
  uv_close((uv_handle_t *)process, on_closed);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  (void)suggested;
  child_t *child = handle->data;
  if (child->len == sizeof child->buffer) /* no line of ours is so long */
    child->len = 0;
  *buf = uv_buf_init(child->buffer + child->len, (unsigned)(sizeof child->buffer - child->len));
}

static void read_line(child_t *child, const char *line) {
  news_t news;
  if (sscanf(line, "%15s %" SCNu64 " %" SCNd64, news.word, &news.at, &news.number) != 3)
    return;
  if (strcmp(news.word, DEMO_FAILED) == 0)
    demo_trouble(child->demo, "a process gave up", (int)news.number);
  else
    child->on_news(child, &news);
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

/* Ctrl-C does not reach a session of its own: the parent ends its children itself. */
static int spawn(child_t *child, char **args) {
  uv_stdio_container_t stdio[3] = {
      {.flags = UV_IGNORE},
      {.flags = UV_IGNORE},
      {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
  };
  if (child->on_news != NULL) {
    stdio[1].flags = (uv_stdio_flags)(UV_CREATE_PIPE | UV_WRITABLE_PIPE);
    stdio[1].data.stream = (uv_stream_t *)&child->output;
  }
  uv_process_options_t options = {
      .exit_cb = on_exit_status,
      .file = args[0],
      .args = args,
      .flags = UV_PROCESS_DETACHED,
      .stdio_count = 3,
      .stdio = stdio,
  };
  int error = uv_spawn(&child->demo->loop, &child->process, &options);
  child->process.data = child;
  child->handles++;
  return error;
}

void child_start(demo_t *demo, child_t *child, const char *role, const char *const *args) {
  char exe[PATH_MAX], parent[24];
  char *argv[ARGS_BEFORE + ARGS_MAX + 1] = {exe, (char *)role, parent, (char *)demo->space[1],
                                            (char *)demo->name};
  size_t size = sizeof exe;
  for (size_t n = 0; n < ARGS_MAX && args[n] != NULL; n++)
    argv[ARGS_BEFORE + n] = (char *)args[n];
  (void)snprintf(parent, sizeof parent, "%ld", (long)getpid());
  child->demo = demo;
  child->next = demo->children;
  demo->children = child;
  if (child->on_news != NULL) {
    (void)uv_pipe_init(&demo->loop, &child->output, 0); /* only fails on Windows */
    child->output.data = child;
    child->handles++;
  }
  if (uv_exepath(exe, &size) != 0)
    exe[0] = '\0'; /* the spawn fails */
  child->error = spawn(child, argv);
  if (child->error != 0)
    uv_close((uv_handle_t *)&child->process, on_closed);
  if (child->on_news != NULL && child->error != 0)
    uv_close((uv_handle_t *)&child->output, on_closed);
  else if (child->on_news != NULL)
    (void)uv_read_start((uv_stream_t *)&child->output, on_alloc, on_read); /* the pipe is open */
}

void child_kill(child_t *child, int signum) {
  if (child->handles == 0 || !uv_is_active((uv_handle_t *)&child->process))
    return;
  child->killed = signum == SIGKILL;
  (void)uv_process_kill(&child->process, signum);
}

void children_kill(demo_t *demo) {
  for (child_t *child = demo->children; child != NULL; child = child->next) {
    if (!uv_is_active((uv_handle_t *)&child->process))
      continue;
    child_kill(child, SIGKILL);
    while (waitpid(uv_process_get_pid(&child->process), NULL, 0) < 0 && errno == EINTR) {
    }
  }
}

void child_die_with(const char *parent) {
#ifdef __linux__
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || strtol(parent, NULL, 10) != (long)getppid())
    exit(1);
#else
  (void)parent;
#endif
}
