/* IDLE --hook_tell()--> RUNNING --ended, and its handle is closed--> IDLE; RUNNING again if there was another change. */
#include "run/hook.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWN = 4 }; /* variables that the command finds */

extern char **environ;

static bool is_own(const char *variable) {
  static const char *const names[] = {
      "BELAY_NAME=", "BELAY_LEADER=", "BELAY_TERM=", "BELAY_LEADING="};
  for (size_t i = 0; i < OWN; i++)
    if (strncmp(variable, names[i], strlen(names[i])) == 0)
      return true;
  return false;
}

static void start(hook_t *hook);

/* Between the end of one and the start of the next its handle is closed. */
static void on_closed(uv_handle_t *handle) {
  hook_t *hook = handle->data;
  hook->runs = false;
  if (hook->again && !harness_is_done(hook->harness))
    start(hook);
}

static void on_ended(uv_process_t *process, int64_t status, int signum) {
  if (status != 0 || signum != 0)
    complain("--on-change ended with status %" PRId64,
             signum != 0 ? STATUS_SIGNAL + signum : status);
  uv_close((uv_handle_t *)process, on_closed);
}

static int spawn(hook_t *hook, char **env) {
  char *args[] = {"sh", "-c", (char *)hook->command, NULL};
  uv_stdio_container_t stdio[3];
  for (int i = 0; i < 3; i++)
    stdio[i] = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = i};
  uv_process_options_t options = {.exit_cb = on_ended,
                                  .file = "/bin/sh",
                                  .args = args,
                                  .env = env,
                                  .stdio_count = 3,
                                  .stdio = stdio};
  return uv_spawn(&hook->harness->loop, &hook->process, &options);
}

static void start(hook_t *hook) {
  char own[OWN][HOOK_VALUE_MAX + 32];
  size_t n = 0, kept = 0;
  while (environ[n] != NULL)
    n++;
  char **env = calloc(n + OWN + 1, sizeof *env);
  int error = env == NULL ? UV_ENOMEM : 0;
  (void)snprintf(own[0], sizeof own[0], "BELAY_NAME=%.*s", HOOK_VALUE_MAX, hook->name);
  (void)snprintf(own[1], sizeof own[1], "BELAY_LEADER=%s", hook->next.leader);
  (void)snprintf(own[2], sizeof own[2], "BELAY_TERM=%" PRIu64, hook->next.term);
  (void)snprintf(own[3], sizeof own[3], "BELAY_LEADING=%d", hook->next.ours);
  for (size_t i = 0; i < n && error == 0; i++)
    if (!is_own(environ[i]))
      env[kept++] = environ[i];
  for (size_t i = 0; i < OWN && error == 0; i++)
    env[kept++] = own[i];
  hook->again = false;
  hook->runs = true;
  if (error == 0)
    error = spawn(hook, env);
  free(env);
  hook->process.data = hook;
  if (error == 0)
    return;
  complain("--on-change cannot be run: %s", uv_strerror(error));
  if (uv_handle_get_type((uv_handle_t *)&hook->process) == UV_PROCESS)
    uv_close((uv_handle_t *)&hook->process, on_closed);
  else
    hook->runs = false;
}

void hook_tell(hook_t *hook, harness_t *harness, const hook_event_t *event) {
  hook->harness = harness;
  hook->next = *event;
  hook->again = true;
  if (!hook->runs)
    start(hook);
}

void hook_end(hook_t *hook) {
  hook->again = false;
  if (hook->runs && !uv_is_closing((uv_handle_t *)&hook->process))
    uv_close((uv_handle_t *)&hook->process, NULL);
}
