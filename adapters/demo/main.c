/* The demo of belay. Each chapter is a process of its own, and several run at the same time: most of them wait most of the
 * time. Their output is shown in the order of the chapters. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo/chapters.h"
#include "demo/refiller.h"
#include "demo/scratch.h"
#include "demo/server.h"
#include "demo/stampede.h"
#include "ui/status.h"

enum { AT_ONCE = 4, RULE_WIDTH = 78, GUARD_MS = 60000, SIGNALS = 4 };

static const struct {
  const char *title, *text;
  const char *name;
  void (*run)(demo_t *demo);
} chapters[] = {
#define CHAPTER_ROW(name, title, text) {title, text, #name, chapter_##name},
    CHAPTERS(CHAPTER_ROW)
#undef CHAPTER_ROW
};
enum { COUNT = sizeof chapters / sizeof *chapters };

/* ---- one chapter --------------------------------------------------------------------------------------- */

static void print_heading(demo_t *demo, size_t i) {
  const term_t *term = &demo->term;
  const char *normal = term_style(term, TERM_NORMAL);
  term_print(&demo->term, "\n%s%zu  %s%s\n%s", term_style(term, TERM_BOLD), i + 1,
             chapters[i].title, normal, term_style(term, TERM_DIM));
  for (unsigned n = 0; n < RULE_WIDTH; n++)
    term_print(&demo->term, "%s", term_glyph(term, TERM_RULE));
  term_print(&demo->term, "%s\n%s\n\n", normal, chapters[i].text);
}

/* The hidden subcommand: PARENT RUN FOLDER INDEX. */
static int run_chapter(int argc, char **argv) {
  static demo_t demo;
  size_t i = argc == 6 ? strtoul(argv[5], NULL, 10) : COUNT;
  if (i >= COUNT)
    return 2;
  child_die_with(argv[2]);
  if (demo_open(&demo, argv[3], argv[4], chapters[i].name)) {
    print_heading(&demo, i);
    chapters[i].run(&demo);
  }
  demo_close(&demo);
  term_print(&demo.term, "%c%u %u\n", DEMO_RESULT, demo.facts, demo.failed);
  return demo.failed == 0 ? 0 : 1;
}

/* ---- all chapters -------------------------------------------------------------------------------------- */

/* A running chapter. Its output is kept until all earlier chapters are over. */
typedef struct player {
  struct program *program;
  child_t child;
  size_t index;
  char *text;
  size_t len;
  bool over, told; /* it has ended; it has printed its result */
} player_t;

typedef struct program {
  uv_loop_t loop;
  family_t family;
  demo_t
      demo; /* prints, and counts the facts of all chapters; its own loop runs before and after them */
  server_t server;
  uv_timer_t guard;
  uv_signal_t signal[SIGNALS];
  unsigned signals; /* that are watched */
  char run[17], folder[SCRATCH_PATH_MAX];
  player_t player[COUNT];
  size_t begun, running,
      shown; /* chapters that were started, that run now, that are over and shown */
} program_t;

static void start_chapters(program_t *program);

/* Kill the processes and remove the files. */
static void abandon(program_t *program) {
  family_kill(&program->family);
  scratch_remove(program->folder);
}

static void put_line(player_t *player, const char *line) {
  if (player->index == player->program->shown) {
    term_print(&player->program->demo.term, "%s\n", line);
    return;
  }
  size_t len = strlen(line);
  char *text = realloc(player->text, player->len + len + 2);
  if (text == NULL) {
    demo_trouble(&player->program->demo, "no memory for the output of a chapter", 0);
    return;
  }
  player->text = text;
  memcpy(text + player->len, line, len);
  memcpy(text + player->len + len, "\n", 2);
  player->len += len + 1;
}

static void on_line(child_t *child, const char *line) {
  player_t *player = child->data;
  demo_t *demo = &player->program->demo;
  unsigned facts, failed;
  if (line[0] != DEMO_RESULT) {
    put_line(player, line);
  } else if (sscanf(line + 1, "%u %u", &facts, &failed) == 2) {
    player->told = true;
    demo->facts += facts;
    demo->failed += failed;
  }
}

/* Show what the next chapters have printed, up to one that still runs. */
static void show(program_t *program) {
  while (program->shown < COUNT && program->player[program->shown].over) {
    player_t *next = &program->player[++program->shown];
    if (program->shown < COUNT && next->len > 0)
      term_print(&program->demo.term, "%s", next->text);
    if (program->shown < COUNT) {
      free(next->text);
      next->text = NULL;
    }
  }
}

static void on_end(child_t *child) {
  player_t *player = child->data;
  program_t *program = player->program;
  player->over = true;
  program->running--;
  if (!player->told) {
    char text[128];
    (void)snprintf(text, sizeof text, "the chapter \"%s\" ended early (status %d, signal %d)",
                   chapters[player->index].name, (int)child->exit_status, child->exit_signal);
    demo_trouble(&program->demo, text, 0);
  }
  show(program);
  start_chapters(program);
}

static void start_chapters(program_t *program) {
  while (program->running < AT_ONCE && program->begun < COUNT && !program->server.over) {
    size_t i = program->begun++;
    player_t *player = &program->player[i];
    char index[24];
    (void)snprintf(index, sizeof index, "%zu", i);
    *player = (player_t){.program = program, .index = i};
    player->child = (child_t){.on_line = on_line, .on_end = on_end, .data = player};
    const char *args[] = {"chapter", program->run, program->folder, index, NULL};
    program->running++;
    child_start(&program->family, &player->child, args);
  }
}

/* ---- ending before the end ----------------------------------------------------------------------------- */

static void on_guard(uv_timer_t *timer) {
  program_t *program = timer->data;
  (void)fputs("belay-demo: this takes far too long\n", stderr);
  abandon(program);
  exit(1);
}

static void on_signal(uv_signal_t *watcher, int signum) {
  abandon(watcher->data);
  /* The parent learns which signal ended the demo. */
  (void)signal(signum, SIG_DFL);
  (void)raise(signum);
}

/* Watch the signals that usually end a program, except ignored ones. */
static void watch_signals(program_t *program) {
  static const int signums[SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
  for (size_t i = 0; i < SIGNALS; i++) {
    struct sigaction now;
    uv_signal_t *watcher = &program->signal[program->signals];
    if (sigaction(signums[i], NULL, &now) != 0 || now.sa_handler == SIG_IGN ||
        uv_signal_init(&program->loop, watcher) != 0)
      continue;
    watcher->data = program;
    program->signals++;
    (void)uv_signal_start(watcher, on_signal, signums[i]);
    uv_unref((uv_handle_t *)watcher);
  }
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

/* Tell the processes of the demo which server they use and how their output is shown. */
static bool set_environment(const char *url) {
  term_t term;
  term_init(&term);
  char look[2] = {(char)('0' + term.fancy + 2 * term.utf8), '\0'};
  return setenv(DEMO_TERM, look, 1) == 0 && setenv(WORKER_URL, url, 1) == 0;
}

/* url: NULL: starts a server. Returns an exit status. */
static int open_program(program_t *program, const char *url) {
  uint64_t random;
  if (uv_random(NULL, NULL, &random, sizeof random, 0, NULL) != 0)
    random = uv_hrtime();
  (void)snprintf(program->run, sizeof program->run, "%016llx", (unsigned long long)random);
  if (uv_loop_init(&program->loop) != 0)
    return STATUS_TROUBLE;
  program->family.loop = &program->loop;
  (void)uv_timer_init(&program->loop, &program->guard); /* never fails */
  program->guard.data = program;
  (void)uv_timer_start(&program->guard, on_guard, GUARD_MS, 0);
  uv_unref((uv_handle_t *)&program->guard);
  watch_signals(program);
  if (scratch_make(program->folder) != 0) {
    (void)fprintf(stderr, "belay-demo: no temporary folder: %s\n", strerror(errno));
    return STATUS_TROUBLE;
  }
  if (url == NULL &&
      server_start(&program->server, &program->family, program->folder, "redis") != 0) {
    server_complain(&program->server);
    return STATUS_UNREACHABLE;
  }
  if (!set_environment(url != NULL ? url : program->server.url))
    return STATUS_TROUBLE;
  return demo_open(&program->demo, program->run, program->folder, "demo") ? STATUS_YES
                                                                          : STATUS_UNREACHABLE;
}

static void introduce(demo_t *demo, bool own_server) {
  const char *where = own_server ? "a server that was started for it"
                                 : "the server that was named, in a namespace of its own";
  term_print(&demo->term,
             "%sbelay: locks and limits on Redis, for programs on a libuv loop%s\n\n"
             "  Nothing here is staged: the library as it is, real processes, and\n"
             "  %s.\n",
             term_style(&demo->term, TERM_BOLD), term_style(&demo->term, TERM_NORMAL), where);
}

/* Some keys live on after their chapter: a record that answers a repeated request stays for an hour. */
static void leave_nothing(demo_t *demo) {
  term_print(&demo->term, "\n");
  demo_fact(demo, demo_sweep(demo, "lock::*", false).matched == 0, "no lock is left on the server");
  (void)demo_sweep(demo, "*", true);
  demo_fact(demo, demo_sweep(demo, "*", false).matched == 0,
            "and no key of the demo, after a last sweep");
}

static void conclude(demo_t *demo, uint64_t began) {
  const term_t *term = &demo->term;
  term_print(&demo->term, "\n%s%u of %u facts hold%s  (%.1f s)\n",
             term_style(term, demo->failed == 0 ? TERM_GOOD : TERM_BAD), demo->facts - demo->failed,
             demo->facts, term_style(term, TERM_NORMAL), demo_seconds(began, uv_hrtime()));
}

static void close_program(program_t *program) {
  if (program->demo.belay != NULL)
    demo_close(&program->demo);
  if (program->family.loop != NULL) {
    server_stop(&program->server);
    demo_timer_close(&program->guard);
    for (unsigned i = 0; i < program->signals; i++)
      uv_close((uv_handle_t *)&program->signal[i], NULL);
    (void)uv_run(&program->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&program->loop);
  }
  scratch_remove(program->folder);
}

static int run(const char *url) {
  static program_t program;
  uint64_t began = uv_hrtime();
  demo_t *demo = &program.demo;
  int status = open_program(&program, url);
  if (status == STATUS_YES) {
    introduce(demo, url == NULL);
    start_chapters(&program);
    (void)uv_run(&program.loop, UV_RUN_DEFAULT);
    if (program.server.over)
      demo_trouble(demo, "the server ended early", 0);
    else
      leave_nothing(demo);
    conclude(demo, began);
    status = demo->failed == 0 ? STATUS_YES : STATUS_NO;
  }
  close_program(&program);
  return term_flush() ? status : STATUS_TROUBLE;
}

/* The other processes of the demo are this program as well. argv[1] is the name. */
static const struct {
  const char *name;
  int (*run)(int argc, char **argv);
} hidden[] = {
    {"chapter", run_chapter},   {"worker", run_worker}, {"refiller", run_refiller},
    {"visitors", run_visitors}, {"server", run_server},
};

int main(int argc, char **argv) {
  (void)signal(SIGPIPE, SIG_DFL); /* the end of the reader ends the demo */
  for (size_t i = 0; argc > 2 && i < sizeof hidden / sizeof *hidden; i++)
    if (strcmp(hidden[i].name, argv[1]) == 0)
      return hidden[i].run(argc, argv);
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
