#include "demo/demo.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell/commands.h"
#include "ui/out.h"
#include "ui/status.h"

#define GUARD_MS 60000 /* no chapter takes a fourth of it */
#define RULE_WIDTH 78

typedef struct chapter {
  const char *lock_name, *title;
  void (*play)(demo_t *demo);
  bool lock; /* it has a lock of that name on the demo's server */
} chapter_t;

static const chapter_t chapters[] = {
    {"counter", "Five processes and one counter", play_counter, true},
    {"killed", "A holder is killed", play_killed, true},
    {"watchdog", "Work that takes longer than the ttl", play_watchdog, true},
    {"overrun", "The same without the watchdog", play_overrun, true},
    {"stalled", "A holder stands still", play_stalled, true},
    {"deleted", "Somebody deletes the lock", play_deleted, true},
    {"quorum", "Five servers, and three of them make a lock", play_quorum, false},
    {"rate", "Two at once, then one a second", play_rate, false},
    {"windows", "Three limits at once", play_windows, false},
    {"address", "Ten calls by one address", play_address, false},
    {"refillers", "A refiller is killed", play_refillers, false},
    {"letter", "Who has had this letter?", play_bloom, false},
    {"tally", "A hundred thousand views, and ten seats", play_tally, false},
    {"ids", "Numbers for users, orders and parcels", play_ids, false},
    {"dedup", "Delivered three times, worked on once", play_dedup, false},
    {"once", "An order that is sent three times", play_once, false},
    {"active", "How many came, and who archives it", play_active, false},
    {"presence", "Who is online", play_presence, false},
    {"ranking", "Three places, and two with the same score", play_ranking, false},
    {"permission", "Two keepers change one user's permissions", play_permission, false},
    {"session", "A visitor clicks, goes, and comes back", play_session, false},
    {"site", "Three visitors of a site", play_site, false},
    {"stampede", "A thousand ask for the same page", play_stampede, false},
    {"sweep", "What was left behind is swept up", play_sweep, false},
};
#define CHAPTERS (sizeof chapters / sizeof *chapters)

/* ---- ending before the end ----------------------------------------------------------------------------- */

/* Takes back what the system would not: processes and files. What is held on a server of somebody else's is
 * gone with its ttl. */
static void abandon(demo_t *demo) {
  family_kill(&demo->family);
  scratch_remove(demo->folder);
}

static void on_guard(uv_timer_t *timer) {
  demo_t *demo = timer->data;
  demo_trouble(demo, "this takes far too long", 0);
  abandon(demo);
  exit(1);
}

static void on_signal(uv_signal_t *watcher, int signum) {
  demo_t *demo = watcher->data;
  abandon(demo);
  if (signum != SIGPIPE)
    term_print(&demo->term, "\n");
  /* Whoever started us learns what ended us. */
  (void)signal(signum, SIG_DFL);
  (void)raise(signum);
}

/* All that usually end a program, except those that it was told to ignore. */
static void watch_signals(demo_t *demo) {
  static const int signums[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
  _Static_assert(sizeof signums / sizeof *signums == sizeof demo->signal / sizeof *demo->signal,
                 "a watcher for each");
  for (size_t i = 0; i < sizeof signums / sizeof *signums; i++) {
    struct sigaction now;
    uv_signal_t *watcher = &demo->signal[demo->signals];
    if (sigaction(signums[i], NULL, &now) != 0 || now.sa_handler == SIG_IGN)
      continue;
    if (uv_signal_init(&demo->loop, watcher) != 0)
      continue;
    watcher->data = demo;
    demo->signals++;
    if (uv_signal_start(watcher, on_signal, signums[i]) != 0)
      complain("a signal will not find everything tidied up");
    uv_unref((uv_handle_t *)watcher);
  }
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

static void cannot(demo_t *demo, const char *what, int error) {
  const char *detail = demo->belay != NULL ? belay_detail(demo->belay) : "";
  complain("%s: %s%s%s", what, belay_strerror(error), *detail != '\0' ? ": " : "", detail);
  demo->status = status_of(error);
}

static void on_ping(belay_client_t *client, int status) {
  demo_t *demo = belay_client_data(client);
  demo->connect_error = status;
  if (status != 0)
    cannot(demo, "cannot use the server", status);
}

/* belay, and two clients of the same server. */
static bool open_clients(demo_t *demo, const char *url) {
  static const char *const owners[DEMO_CONTENDERS] = {[DEMO_A] = "A", [DEMO_B] = "B"};
  int error = belay_open(&demo->loop, NULL, &demo->belay);
  for (unsigned i = 0; i < DEMO_CONTENDERS && error == 0; i++) {
    belay_client_options_t options;
    const char *parts[2];
    worker_client_options(&options, parts, demo->run, owners[i]);
    error = belay_connect(demo->belay, url, &options, &demo->client[i]);
  }
  if (error != 0) {
    cannot(demo, "cannot start", error);
    return false;
  }
  for (unsigned i = 0; i < DEMO_CONTENDERS && demo->connect_error == 0; i++) {
    belay_client_set_data(demo->client[i], demo);
    demo->connect_error = belay_client_ping(demo->client[i], BELAY_DEFAULT, on_ping);
    (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
  }
  return demo->connect_error == 0;
}

/* Everything that the chapters need. url: NULL for a server of our own. */
static bool open_demo(demo_t *demo, const char *url) {
  uint64_t random;
  if (uv_random(NULL, NULL, &random, sizeof random, 0, NULL) != 0)
    random = uv_hrtime();
  (void)snprintf(demo->run, sizeof demo->run, "%016llx", (unsigned long long)random);
  if (uv_loop_init(&demo->loop) != 0)
    return false;
  demo->loop_open = true;
  demo->family.loop = &demo->loop;
  demo_timer_open(demo, &demo->guard, demo);
  demo_timer_open(demo, &demo->pause, demo);
  uv_unref((uv_handle_t *)&demo->guard);
  watch_signals(demo);
  if (scratch_make(demo->folder) != 0) {
    complain("no temporary folder: %s", strerror(errno));
    return false;
  }
  if (url == NULL && server_start(&demo->server, &demo->family, demo->folder, "redis") != 0) {
    server_complain(&demo->server);
    return false;
  }
  if (url == NULL)
    url = demo->server.url;
  return setenv(WORKER_URL, url, 1) == 0 && open_clients(demo, url);
}

/* Returns whether nothing was left open. */
static bool close_demo(demo_t *demo) {
  bool well = true;
  if (demo->loop_open) {
    if (demo->belay != NULL)
      well = belay_close(demo->belay, NULL) == 0;
    (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
    server_stop(&demo->server);
    demo_timer_close(&demo->guard);
    demo_timer_close(&demo->pause);
    for (unsigned i = 0; i < demo->signals; i++)
      uv_close((uv_handle_t *)&demo->signal[i], NULL);
    (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
    well = uv_loop_close(&demo->loop) == 0 && well;
  }
  scratch_remove(demo->folder);
  if (!well)
    complain("something was left open");
  return well;
}

/* ---- the chapters -------------------------------------------------------------------------------------- */

static void print_heading(demo_t *demo, size_t number, const char *title) {
  const term_t *term = &demo->term;
  char rule[RULE_WIDTH * 4 + 1];
  size_t n = 0;
  for (unsigned i = 0; i < RULE_WIDTH; i++)
    n += (size_t)snprintf(rule + n, sizeof rule - n, "%s", term_glyph(term, TERM_RULE));
  const char *normal = term_style(term, TERM_NORMAL);
  term_print(&demo->term, "\n%s%zu  %s%s\n%s%s%s\n", term_style(term, TERM_BOLD), number, title,
             normal, term_style(term, TERM_DIM), rule, normal);
}

static void play(demo_t *demo, size_t i) {
  print_heading(demo, i + 1, chapters[i].title);
  demo->lock_name = chapters[i].lock_name;
  demo->began = uv_hrtime();
  demo_timer_start(demo, &demo->guard, on_guard, GUARD_MS, 0);
  chapters[i].play(demo);
}

/* ---- what is left -------------------------------------------------------------------------------------- */

static void on_reply(child_t *child, const char *line) {
  int64_t *left = child->data;
  news_t news;
  if (news_parse(line, &news) && strcmp(news.word, NEWS_REPLY) == 0)
    *left = news.number;
}

static void on_asked(child_t *child) {
  (void)child;
}

/* Everything that the chapters used has been there, so that none may be there now. */
static void look_for_keys(demo_t *demo) {
  const char *args[DEMO_USED_MAX + 3] = {"demo-raw", "EXISTS"};
  for (size_t i = 0; i < CHAPTERS; i++) {
    if (!chapters[i].lock)
      continue;
    demo->lock_name = chapters[i].lock_name;
    belay_lock_t *lock = demo_lock(demo, DEMO_A, NULL);
    if (lock == NULL)
      return;
    size_t len;
    const char *key = belay_lock_key(lock, &len);
    demo_used(demo, "%.*s", (int)len, key);
    demo_lock_close(&lock);
  }
  for (size_t i = 0; i < demo->used_len; i++)
    args[i + 2] = demo->used[i];
  int64_t left = -1;
  child_t child = {.on_line = on_reply, .on_end = on_asked, .data = &left};
  child_start(&demo->family, &child, args);
  (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
  term_print(&demo->term, "\n");
  demo_fact(demo, child_ended_well(&child) && left == 0,
            "and nothing that the chapters locked or counted is left on the server");
}

static void on_swept(belay_sweep_t *sweep, int status, const belay_sweep_totals_t *totals) {
  uint64_t *matched = belay_sweep_data(sweep);
  *matched = status == 0 ? totals->matched : UINT64_MAX;
  (void)belay_sweep_close(sweep, NULL);
}

/* Sweeps the namespace of the demo: how many keys there are; UINT64_MAX: that is not known. */
static uint64_t sweep(demo_t *demo, bool removes) {
  belay_sweep_options_t options;
  belay_sweep_t *sweep;
  uint64_t matched = UINT64_MAX;
  belay_sweep_options_init(&options);
  options.pattern = "*";
  options.pattern_len = 1;
  options.remove = removes;
  options.keys_per_s = 1000000;
  options.batch = 10000;
  options.data = &matched;
  int error = belay_sweep_new(demo->client[DEMO_A], &options, &sweep);
  if (error == 0)
    error = belay_sweep_start(sweep, on_swept);
  if (error != 0)
    demo_trouble(demo, "beginning to sweep", error);
  (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
  return matched;
}

/* Records that answer a repeated request stay for an hour: nothing repeats one here. */
static void leave_nothing(demo_t *demo) {
  look_for_keys(demo);
  (void)sweep(demo, true);
  demo_fact(demo, sweep(demo, false) == 0, "nor is any other key of the demo");
}

/* ---- the command --------------------------------------------------------------------------------------- */

static void introduce(demo_t *demo, bool own_server) {
  const char *where = own_server ? "a server that was started for it"
                                 : "the server that was named, in a namespace of its own";
  term_print(&demo->term,
             "%sbelay: locks and limits on Redis, for programs on a libuv loop%s\n\n"
             "  Nothing of what follows is staged: the library as it is, real processes, and\n"
             "  %s.\n",
             term_style(&demo->term, TERM_BOLD), term_style(&demo->term, TERM_NORMAL), where);
}

static void conclude(demo_t *demo, uint64_t began) {
  const term_t *term = &demo->term;
  double seconds = demo_seconds(began, uv_hrtime());
  const char *normal = term_style(term, TERM_NORMAL);
  if (demo->failed == 0)
    term_print(&demo->term, "\n%s%u facts were checked, and all of them hold%s  (%.1f s)\n",
               term_style(term, TERM_GOOD), demo->facts, normal, seconds);
  else
    term_print(&demo->term, "\n%s%u of %u facts do not hold%s  (%.1f s)\n",
               term_style(term, TERM_BAD), demo->failed, demo->facts, normal, seconds);
}

/* The URL of a command line that names none; NULL: a server of our own is started. */
static const char *url_of_environment(void) {
  const char *url = getenv("BELAY_URL");
  return url == NULL || *url == '\0' ? NULL : url;
}

static const char *asked_url;

static int run(const arguments_t *arguments) {
  (void)arguments;
  const char *url = asked_url != NULL ? asked_url : url_of_environment();
  uint64_t began = uv_hrtime();
  demo_t demo = {.status = STATUS_TROUBLE};
  (void)signal(SIGPIPE, SIG_DFL); /* who looks on no more ends it */
  term_init(&demo.term);
  if (open_demo(&demo, url)) {
    introduce(&demo, url == NULL);
    for (size_t i = 0; i < CHAPTERS && !demo.server.over; i++)
      play(&demo, i);
    if (demo.server.over)
      demo_trouble(&demo, "the server ended all of a sudden", 0);
    else
      leave_nothing(&demo);
    conclude(&demo, began);
    demo.status = demo.failed == 0 ? STATUS_YES : STATUS_NO;
  }
  return close_demo(&demo) ? demo.status : STATUS_TROUBLE;
}

const command_t demo_command = {
    .name = "demo",
    .summary = "watch locks at work, and check what they promise",
    .text = "Without --url, or BELAY_URL, the demo starts a server of its own, which is gone when "
            "it ends. The "
            "status is 1 if something is not as it was promised.",
    .examples =
        (const example_t[]){
            {"On a server that is there already", "belay demo --url redis://localhost"}, {0}},
    .options = (const option_t[]){{.name = "url",
                                   .letter = 'u',
                                   .kind = OPTION_TEXT,
                                   .value = "URL",
                                   .to.text = &asked_url,
                                   .help = "play on this server, in a namespace of its own"},
                                  {0}},
    .run = run,
};
