#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shell/commands.h"
#include "shell/config.h"

/* ---- messages ---- */

static void on_log(void *ctx, belay_log_level_t level, const char *message) {
  (void)ctx;
  (void)level;
  remark("%s", message);
}

/* A password ends before the last @. */
const char *harness_url(size_t i) {
  const char *url = i < common.urls.n ? common.urls.item[i] : COMMON_URL;
  const char *host = strrchr(url, '@'), *end = strstr(url, "://");
  if (host == NULL || end == NULL)
    return out_shown(url, strlen(url));
  char shown[OUT_SHOWN_MAX];
  (void)snprintf(shown, sizeof shown, "%.*s%s", (int)(end + 3 - url), url, host + 1);
  return out_shown(shown, strlen(shown));
}

/* Returns true if the message needs the server's name. */
static bool is_of_connection(int error) {
  return status_of(error) == STATUS_UNREACHABLE || error == BELAY_EUNKNOWN || error == BELAY_EAUTH;
}

void harness_complain(const harness_t *harness, const char *what, int error) {
  const char *detail = harness->belay != NULL ? belay_detail(harness->belay) : "";
  bool named = harness->clients == 1 && is_of_connection(error);
  complain("%s: %s%s%s%s%s%s", what, belay_strerror(error), *detail != '\0' ? ": " : "", detail,
           named ? " (" : "", named ? harness_url(0) : "", named ? ")" : "");
}

void harness_fail(harness_t *harness, const char *what, int error) {
  if (error == 0 || (harness->done && error == BELAY_ECANCELED))
    return;
  harness_complain(harness, what, error);
  harness_done(harness, status_of(error));
}

bool harness_ok(harness_t *harness, int status) {
  char usual[64];
  const char *what = harness->command->what;
  (void)snprintf(usual, sizeof usual, "cannot %s", harness->command->name);
  harness_fail(harness, what != NULL ? what : usual, status);
  return status == 0;
}

void harness_answer(harness_t *harness, bool yes) {
  (void)out_end();
  harness_done(harness, yes ? STATUS_YES : STATUS_NO);
}

void harness_answer_changed(harness_t *harness, const char *name, const char *change) {
  if (out_form() == OUT_JSON) {
    out_begin();
    out_string(name, harness->arguments->item[0]);
    out_bool(change, true);
    (void)out_end();
  }
  harness_done(harness, STATUS_YES);
}

/* ---- the end ---- */

bool harness_is_done(const harness_t *harness) {
  return harness->done;
}

void harness_done(harness_t *harness, int status) {
  if (harness->done)
    return;
  harness->done = true;
  harness->status = status;
  if (harness->command->tidy != NULL)
    harness->command->tidy();
  for (unsigned i = 0; i < harness->signals; i++)
    uv_close((uv_handle_t *)&harness->signal[i], NULL);
  if (harness->belay != NULL)
    (void)belay_close(harness->belay, NULL); /* was not called before, so that it does not fail */
}

static void on_signal(uv_signal_t *watcher, int signum) {
  harness_t *harness = watcher->data;
  harness->signum = signum;
  if (harness->command->stop != NULL)
    harness->command->stop(harness, signum);
  else
    harness_done(harness, STATUS_SIGNAL + signum);
}

void harness_suspend(void) {
  struct sigaction usual = {.sa_handler = SIG_DFL}, before;
  sigset_t set, mask;
  (void)sigemptyset(&set);
  (void)sigaddset(&set, SIGTSTP);
  (void)sigaction(SIGTSTP, &usual, &before);
  (void)pthread_sigmask(SIG_UNBLOCK, &set, &mask);
  (void)raise(SIGTSTP);
  (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
  (void)sigaction(SIGTSTP, &before, NULL);
}

/* Watches the signals that end a program, except signals that were ignored at the start. */
static void watch_signals(harness_t *harness) {
  static const int signums[HARNESS_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < HARNESS_SIGNALS; i++) {
    struct sigaction now;
    uv_signal_t *watcher = &harness->signal[harness->signals];
    if (sigaction(signums[i], NULL, &now) != 0 || now.sa_handler == SIG_IGN ||
        uv_signal_init(&harness->loop, watcher) != 0)
      continue;
    watcher->data = harness;
    harness->signals++;
    if (uv_signal_start(watcher, on_signal, signums[i]) != 0)
      complain("signal %d is not watched", signums[i]);
    uv_unref((uv_handle_t *)watcher);
  }
}

/* ---- the beginning ---- */

static bool asks_tls(void) {
  return common.tls_ca != NULL || common.tls_ca_dir != NULL || common.tls_cert != NULL ||
         common.tls_key != NULL || common.tls_server_name != NULL;
}

/* *out: NULL without options for TLS. */
static int open_tls(harness_t *harness, belay_tls_t **out) {
  *out = NULL;
  if (!asks_tls())
    return 0;
  belay_tls_options_t options;
  belay_tls_options_init(&options);
  options.ca_file = common.tls_ca;
  options.ca_dir = common.tls_ca_dir;
  options.cert_file = common.tls_cert;
  options.key_file = common.tls_key;
  options.server_name = common.tls_server_name;
  return belay_tls_new(harness->belay, &options, out);
}

static int open_client(harness_t *harness, const char *url, const namespace_parts_t *parts,
                       belay_tls_t *tls) {
  belay_client_options_t options;
  belay_client_options_init(&options);
  options.username = common.user;
  options.password = url_has_password(url) ? NULL : common.password;
  options.tls = tls;
  options.owner = common.label;
  options.timeout_ms = common.timeout_ms;
  if (options.connect_timeout_ms > common.timeout_ms)
    options.connect_timeout_ms = common.timeout_ms;
  if (options.close_timeout_ms > common.timeout_ms)
    options.close_timeout_ms = common.timeout_ms;
  if (parts->n > 0) {
    options.namespace_parts = parts->part;
    options.namespace_count = parts->n;
  }
  int error = belay_connect(harness->belay, url, &options, &harness->client[harness->clients]);
  harness->clients += error == 0;
  return error;
}

static bool open_clients(harness_t *harness) {
  static const texts_t usual = {{COMMON_URL}, 1}, none = {.n = 0};
  const texts_t *urls = common.urls.n > 0 ? &common.urls : &usual;
  namespace_parts_t parts = {0};
  unsigned most = command_urls(harness->command);
  if (most == 0)
    urls = &none;
  if (urls->n > most) {
    complain("--url: at most %u", most);
    return false;
  }
  if (common.namespace_text != NULL && !namespace_divide(common.namespace_text, &parts)) {
    complain("--namespace: more than %d parts", NAMESPACE_PARTS_MAX);
    return false;
  }
  belay_options_t options;
  belay_options_init(&options);
  options.log = on_log;
  int error = belay_open(&harness->loop, &options, &harness->belay);
  belay_tls_t *tls = NULL;
  if (error == 0)
    error = open_tls(harness, &tls);
  for (size_t i = 0; i < urls->n && error == 0; i++)
    error = open_client(harness, urls->item[i], &parts, tls);
  belay_tls_close(tls); /* the clients keep it */
  harness_fail(harness, "cannot start", error);
  return error == 0;
}

void harness_refuse(harness_t *harness, const char *what) {
  complain("%s", what);
  harness_done(harness, STATUS_USAGE);
}

void harness_become(harness_t *harness, char **command) {
  if (harness->done)
    return;
  harness->become = command;
  harness_done(harness, STATUS_YES);
}

/* Replaces this program by the command. Returns only on failure: the status. The descriptors of
 * libuv close, and its signal handlers end. */
static int become(char **command) {
  out_leave();
  (void)execvp(command[0], command);
  int status = errno == ENOENT ? STATUS_NO_COMMAND : STATUS_CANNOT_RUN;
  complain("cannot run %s: %s", out_shown(command[0], strlen(command[0])), strerror(errno));
  return status;
}

/* Ends the program by the signal that ended the command, so that the parent process sees it. */
static int end(const harness_t *harness) {
  bool by_signal = harness->signum != 0 && harness->status == STATUS_SIGNAL + harness->signum;
  bool written = out_finish();
  if (by_signal) {
    (void)signal(harness->signum, SIG_DFL);
    (void)raise(harness->signum);
  }
  if (written && harness->become != NULL && harness->signum == 0)
    return become(harness->become);
  return written || harness->status >= STATUS_UNREACHABLE ? harness->status : STATUS_TROUBLE;
}

int harness_run(const command_t *command, const arguments_t *arguments) {
  belay_bytes_t *items = calloc(arguments->n + 1, sizeof *items);
  harness_t harness = {.command = command, .arguments = arguments, .items = items};
  harness.request.data = &harness;
  if (items == NULL || uv_loop_init(&harness.loop) != 0) {
    free(items);
    complain("cannot open a loop: too many files are open, or out of memory");
    return STATUS_TROUBLE;
  }
  for (size_t i = 0; i < arguments->n; i++)
    items[i] = (belay_bytes_t){arguments->item[i], strlen(arguments->item[i])};
  watch_signals(&harness);
  if (open_clients(&harness))
    command->begin(&harness);
  else
    harness_done(&harness, STATUS_USAGE);
  (void)uv_run(&harness.loop, UV_RUN_DEFAULT);
  if (!harness.done) {
    complain("the loop has ended without a result");
    harness_done(&harness, STATUS_TROUBLE);
    (void)uv_run(&harness.loop, UV_RUN_DEFAULT);
  }
  if (uv_loop_close(&harness.loop) != 0)
    complain("a handle was left open");
  free(items);
  return end(&harness);
}
