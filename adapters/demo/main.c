/* The demo of belay: a private server, and one chapter after the other. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demo/chapters.h"
#include "demo/server.h"
#include "ui/status.h"

enum { GUARD_S = 90, SIGNALS = 4 };

static const struct {
  const char *title, *text;
  const char *name;
  void (*run)(demo_t *demo);
} chapters[] = {
#define CHAPTER_ROW(name, title, text) {title, text, #name, chapter_##name},
    CHAPTERS(CHAPTER_ROW)
#undef CHAPTER_ROW
};

static char folder[SERVER_FOLDER_MAX];
static demo_t demo = {.folder = folder, .url = "", .name = ""};
static server_t server;

static void run_chapter(size_t i) {
  demo_print("\n%s%zu  %s%s\n%s\n\n", demo_style(&demo, DEMO_BOLD), i + 1, chapters[i].title,
             demo_style(&demo, DEMO_NORMAL), chapters[i].text);
  demo.name = chapters[i].name;
  demo.began = uv_hrtime();
  chapters[i].run(&demo);
  demo_run(&demo);
}

static void run_chapters(void) {
  uint64_t began = uv_hrtime();
  demo_print(
      "%sbelay: locks and limits on Redis, for programs on a libuv loop%s\n\n"
      "  This is the library itself, with real processes and servers that the demo starts.\n",
      demo_style(&demo, DEMO_BOLD), demo_style(&demo, DEMO_NORMAL));
  for (size_t i = 0; i < sizeof chapters / sizeof *chapters && !server.child.over; i++)
    run_chapter(i);
  if (server.child.over)
    demo_trouble(&demo, "the server ended early", 0);
  demo_print("\n%s%u of %u facts hold%s  (%.1f s)\n",
             demo_style(&demo, demo.failed == 0 ? DEMO_GOOD : DEMO_BAD), demo.facts - demo.failed,
             demo.facts, demo_style(&demo, DEMO_NORMAL), demo_seconds(began, uv_hrtime()));
}

/* A signal ends the demo: remove the folder, and die of the signal. The children end too. */
static void on_signal(uv_signal_t *watcher, int signum) {
  (void)watcher;
  server_folder_remove(folder);
  (void)signal(signum, SIG_DFL);
  (void)raise(signum);
}

static int run_demo(void) {
  static const int signums[SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGALRM};
  static uv_signal_t watchers[SIGNALS];
  if (!demo_open(&demo) || server_folder_make(folder) != 0) {
    (void)fprintf(stderr, "belay-demo: cannot start: %s\n", strerror(errno));
    return STATUS_TROUBLE;
  }
  (void)alarm(GUARD_S);
  for (size_t i = 0; i < SIGNALS; i++) {
    (void)uv_signal_init(&demo.loop, &watchers[i]);
    (void)uv_signal_start(&watchers[i], on_signal, signums[i]);
    uv_unref((uv_handle_t *)&watchers[i]);
  }
  const char *error = server_start(&server, &demo, "redis");
  demo.url = server.url;
  if (error != NULL)
    (void)fprintf(stderr, "belay-demo: cannot start a server: %s\n", error);
  else if (demo_connect(&demo, DEMO_A) && demo_connect(&demo, DEMO_B))
    run_chapters();
  server_stop(&server);
  for (size_t i = 0; i < SIGNALS; i++)
    uv_close((uv_handle_t *)&watchers[i], NULL);
  demo_close(&demo);
  server_folder_remove(folder);
  if (error != NULL)
    return STATUS_UNREACHABLE;
  if (fflush(stdout) != 0 || ferror(stdout))
    return STATUS_TROUBLE;
  return demo.failed == 0 ? STATUS_YES : STATUS_NO;
}

/* ---- child processes ---- */

static const struct {
  const char *name;
  int args;
  void (*run)(demo_t *demo, char **args);
} roles[] = {
    {"worker", 2, worker_run},
    {"holder", 0, holder_run},
    {"visitor", 1, visitor_run},
};

/* The arguments of a child process: role, parent, url, name, and those of the role. */
static int run_child(int argc, char **argv) {
  char **args = argv + 5;
  child_die_with(argv[2]);
  if (strcmp(argv[1], "server") == 0)
    return argc == 7 ? server_become(args) : STATUS_USAGE;
  demo.is_child = true;
  demo.url = argv[3];
  demo.name = argv[4];
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
    if (strcmp(roles[i].name, argv[1]) != 0 || argc != 5 + roles[i].args)
      continue;
    if (!demo_open(&demo))
      return STATUS_TROUBLE;
    if (demo_connect(&demo, DEMO_A))
      roles[i].run(&demo, args);
    demo_close(&demo);
    return demo.failed == 0 ? STATUS_YES : STATUS_TROUBLE;
  }
  return STATUS_USAGE;
}

int main(int argc, char **argv) {
  (void)signal(SIGPIPE, SIG_DFL); /* the end of the reader ends the demo */
  if (argc >= 5)
    return run_child(argc, argv);
  if (argc == 1)
    return run_demo();
  (void)fputs("usage: belay-demo\n", stderr);
  return STATUS_USAGE;
}
