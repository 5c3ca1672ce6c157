/* The demo of belay: a server, and one chapter after the other. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demo/chapters.h"
#include "demo/server.h"
#include "ui/status.h"

enum { GUARD_S = 90, SIGNALS = 5 };

static const struct {
  const char *title, *text;
  const char *name;
  void (*run)(demo_t *demo);
} chapters[] = {
#define CHAPTER_ROW(name, title, text) {title, text, #name, chapter_##name},
    CHAPTERS(CHAPTER_ROW)
#undef CHAPTER_ROW
};

static void run_chapter(demo_t *demo, size_t i) {
  const char *normal = demo_style(demo, DEMO_NORMAL);
  demo_print("\n%s%zu  %s%s\n%s\n\n", demo_style(demo, DEMO_BOLD), i + 1, chapters[i].title, normal,
             chapters[i].text);
  demo->name = chapters[i].name;
  demo->began = uv_hrtime();
  chapters[i].run(demo);
  demo_run(demo);
}

/* ---- ending before the end ---- */

static void on_signal(uv_signal_t *watcher, int signum) {
  demo_t *demo = watcher->data;
  children_kill(demo);
  server_folder_remove(demo->folder);
  /* The parent learns which signal ended the demo. */
  (void)signal(signum, SIG_DFL);
  (void)raise(signum);
}

/* Watch the signals that usually end a program, except ignored ones. Returns their number. */
static unsigned watch_signals(demo_t *demo, uv_signal_t *watchers) {
  static const int signums[SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGALRM};
  unsigned n = 0;
  for (size_t i = 0; i < SIGNALS; i++) {
    struct sigaction now;
    if (sigaction(signums[i], NULL, &now) != 0 || now.sa_handler == SIG_IGN ||
        uv_signal_init(&demo->loop, &watchers[n]) != 0)
      continue;
    watchers[n].data = demo;
    (void)uv_signal_start(&watchers[n], on_signal, signums[i]);
    uv_unref((uv_handle_t *)&watchers[n++]);
  }
  (void)alarm(GUARD_S);
  return n;
}

/* ---- the whole ---- */

/* url: NULL: starts a server. Returns an exit status. */
static int open_server(demo_t *demo, server_t *server, const char *url) {
  if (url == NULL) {
    const char *error = server_start(server, demo, "redis");
    if (error != NULL) {
      (void)fprintf(stderr, "belay-demo: cannot start a server: %s\n", error);
      return STATUS_UNREACHABLE;
    }
    url = server->url;
  }
  if (setenv(DEMO_URL, url, 1) != 0)
    return STATUS_TROUBLE;
  return demo_connect(demo, DEMO_A, "A") && demo_connect(demo, DEMO_B, "B") ? STATUS_YES
                                                                            : STATUS_UNREACHABLE;
}

/* The chapters leave data behind, which one sweep deletes. But each lock is released. */
static void leave_nothing(demo_t *demo) {
  demo_print("\n");
  demo_fact(demo, demo_sweep(demo, "lock::*", false, 0).matched == 0,
            "no lock is left on the server");
  (void)demo_sweep(demo, "*", true, 0);
  demo_fact(demo, demo_sweep(demo, "*", false, 0).matched == 0,
            "and no key of the demo, after a last sweep");
}

static void run_chapters(demo_t *demo, const server_t *server) {
  const char *bold = demo_style(demo, DEMO_BOLD), *normal = demo_style(demo, DEMO_NORMAL);
  uint64_t began = uv_hrtime();
  demo_print("%sbelay: locks and limits on Redis, for programs on a libuv loop%s\n\n"
             "  Nothing here is staged: the library as it is, real processes, and\n"
             "  %s.\n",
             bold, normal,
             server->child.demo != NULL ? "a server that was started for it"
                                        : "the server that was named, in a namespace of its own");
  for (size_t i = 0; i < sizeof chapters / sizeof *chapters && !server->child.over; i++)
    run_chapter(demo, i);
  if (server->child.over)
    demo_trouble(demo, "the server ended early", 0);
  else
    leave_nothing(demo);
  demo_print("\n%s%u of %u facts hold%s  (%.1f s)\n",
             demo_style(demo, demo->failed == 0 ? DEMO_GOOD : DEMO_BAD), demo->facts - demo->failed,
             demo->facts, normal, demo_seconds(began, uv_hrtime()));
}

static int run(const char *url) {
  static demo_t demo;
  static server_t server;
  static uv_signal_t watchers[SIGNALS];
  char name[17], folder[SERVER_FOLDER_MAX];
  uint64_t random;
  if (uv_random(NULL, NULL, &random, sizeof random, 0, NULL) != 0)
    random = uv_hrtime();
  (void)snprintf(name, sizeof name, "%016llx", (unsigned long long)random);
  if (!demo_open(&demo, name, "demo"))
    return STATUS_TROUBLE;
  if (server_folder_make(folder) != 0)
    (void)fprintf(stderr, "belay-demo: no temporary folder: %s\n", strerror(errno));
  demo.folder = folder;
  unsigned watched = watch_signals(&demo, watchers);
  int status = *folder != '\0' ? open_server(&demo, &server, url) : STATUS_TROUBLE;
  if (status == STATUS_YES)
    run_chapters(&demo, &server);
  server_stop(&server);
  for (unsigned i = 0; i < watched; i++)
    uv_close((uv_handle_t *)&watchers[i], NULL);
  demo_close(&demo);
  server_folder_remove(folder);
  if (status == STATUS_YES && demo.failed != 0)
    status = STATUS_NO;
  return fflush(stdout) == 0 && !ferror(stdout) ? status : STATUS_TROUBLE;
}

/* ---- the other processes ---- */

static const struct {
  const char *name;
  int args;
  void (*run)(demo_t *demo, char **args);
} roles[] = {
    {"worker", 3, worker_run},
    {"holder", 1, holder_run},
    {"refiller", 1, refiller_run},
    {"visitors", 2, visitors_run},
};

/* The arguments of a child process: role, parent, run, name, and those of the role, which begin
 * with the owner. */
static int run_child(int argc, char **argv) {
  static demo_t demo;
  char **args = argv + 5;
  child_die_with(argv[2]);
  if (strcmp(argv[1], "server") == 0)
    return argc == 7 ? server_become(args) : STATUS_USAGE;
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
    if (strcmp(roles[i].name, argv[1]) != 0 || argc != 5 + roles[i].args)
      continue;
    if (!demo_open(&demo, argv[3], argv[4]))
      return STATUS_TROUBLE;
    demo.is_child = true;
    if (demo_connect(&demo, DEMO_A, args[0]))
      roles[i].run(&demo, args);
    demo_close(&demo);
    return demo.failed == 0 ? STATUS_YES : STATUS_TROUBLE;
  }
  return STATUS_USAGE;
}

int main(int argc, char **argv) {
  (void)signal(SIGPIPE, SIG_DFL); /* the end of the reader ends the demo */
  if (argc > 5)
    return run_child(argc, argv);
  const char *url = getenv("BELAY_URL");
  if (argc == 3 && (strcmp(argv[1], "--url") == 0 || strcmp(argv[1], "-u") == 0)) {
    url = argv[2];
  } else if (argc != 1) {
    (void)fputs("usage: belay-demo [--url URL]\n"
                "Without --url, or BELAY_URL, the demo starts a server of its own.\n",
                stderr);
    return STATUS_USAGE;
  }
  return run(url != NULL && *url != '\0' ? url : NULL);
}
