/* The time until a server that was away is used again, and the cost of calls meanwhile.
 *
 * There is one server, and each client reaches it by a symbolic link of its own. For an outage, all
 * connections are killed and the links lead to a socket that refuses connections. Then each link
 * leads to the server again, at a time of its own. Each client asks a limiter with a policy for
 * outages, one take after the other. */
#include <belay.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "server.h"
#include "study/report.h"

enum { CLIENTS = 20, TAKE_EVERY_MS = 2, SPREAD_MS = 500, PATH = 108 };

static const struct row {
  const char *part, *name;
  unsigned away_ms;
  double target_ms;
} rows[] = {{"A", "away for 1 s", 1000, 300}, {"B", "away for 1 min", 60000, 1000}};
enum { ROWS = sizeof rows / sizeof *rows };

typedef struct study study_t;

typedef struct user {
  study_t *study;
  char path[PATH];
  belay_client_t *client;
  belay_limiter_t *limiter;
  belay_request_t request;
  uv_timer_t next, back;
  int64_t asked, returned, longest; /* ns; returned: 0: the server is away, or was not yet */
  bool ready;                       /* the server has answered before the outage */
  bool pending;                     /* a take is under way */
  bool was_away;                    /* a take was answered by the policy */
  double used_after_ms;             /* since its return; negative: not yet */
} user_t;

struct study {
  const struct row *row;
  uv_loop_t loop;
  belay_t *belay;
  char folder[64], closed[PATH];
  unsigned ready, used;
  user_t users[CLIENTS];
};

static void must(int status, const char *what) {
  if (status != 0)
    bench_die("%s: %s", what, belay_strerror(status));
}

/* In one step, so that the name always leads somewhere. */
static void lead_to(const user_t *user, const char *target) {
  char other[PATH + 4];
  (void)snprintf(other, sizeof other, "%s.new", user->path);
  if (symlink(target, other) != 0 || rename(other, user->path) != 0)
    bench_die("cannot make %s", user->path);
}

/* A socket that was bound and closed refuses connections. */
static void make_closed(study_t *study) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  (void)snprintf(study->closed, sizeof study->closed, "%s/closed", study->folder);
  memcpy(address.sun_path, study->closed, strlen(study->closed) + 1);
  if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0)
    bench_die("cannot bind %s", study->closed);
  close(fd);
}

static void remove_names(const study_t *study) {
  for (int i = 0; i < CLIENTS; i++)
    (void)unlink(study->users[i].path);
  (void)unlink(study->closed);
  (void)rmdir(study->folder);
}

static void begin_outage(study_t *study);

static void on_back(uv_timer_t *timer) {
  user_t *user = timer->data;
  lead_to(user, server_path());
  user->returned = bench_now();
}

static void end(study_t *study) {
  for (int i = 0; i < CLIENTS; i++) {
    uv_close((uv_handle_t *)&study->users[i].next, NULL);
    uv_close((uv_handle_t *)&study->users[i].back, NULL);
  }
  must(belay_close(study->belay, NULL), "close");
}

/* A take that began after one that the policy answered should not have waited. */
static void note_answer(user_t *user, bool by_server) {
  study_t *study = user->study;
  int64_t now = bench_now(), took = now - user->asked;
  if (user->was_away && took > user->longest)
    user->longest = took;
  user->was_away = user->was_away || !by_server;
  if (user->returned == 0 || !by_server)
    return;
  user->used_after_ms = (double)(now - user->returned) / 1e6;
  if (++study->used == CLIENTS)
    end(study);
}

static void on_taken(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  user_t *user = request->data;
  study_t *study = user->study;
  bool by_server = result->source == BELAY_SOURCE_SERVER;
  (void)status;
  user->pending = false;
  if (study->ready == CLIENTS) {
    if (user->used_after_ms < 0)
      note_answer(user, by_server);
  } else if (!user->ready && by_server) {
    user->ready = true;
    if (++study->ready == CLIENTS)
      begin_outage(study);
  }
}

static void on_next(uv_timer_t *timer) {
  user_t *user = timer->data;
  if (user->pending)
    return;
  user->pending = true;
  user->asked = bench_now();
  must(belay_limiter_take(user->limiter, &user->request, belay_string("k"), 1, on_taken), "take");
}

static void begin_outage(study_t *study) {
  for (int i = 0; i < CLIENTS; i++) {
    user_t *user = &study->users[i];
    lead_to(user, study->closed);
    uint64_t spread = (uint64_t)(i * SPREAD_MS / CLIENTS);
    (void)uv_timer_start(&user->back, on_back, study->row->away_ms + spread, 0);
  }
  server_hang_up();
}

static void make_user(study_t *study, int i) {
  user_t *user = &study->users[i];
  belay_client_options_t client;
  belay_limiter_options_t options;
  belay_limit_t limit = {
      .kind = BELAY_LIMIT_BUCKET, .count = 1000000, .period_us = 1000000, .burst = 1000000};
  char url[PATH + 16];
  *user = (user_t){.study = study, .request.data = user, .used_after_ms = -1};
  (void)snprintf(user->path, sizeof user->path, "%s/%02d", study->folder, i);
  lead_to(user, server_path());
  (void)snprintf(url, sizeof url, "unix://%s", user->path);
  belay_client_options_init(&client);
  must(belay_connect(study->belay, url, &client, &user->client), "connect");
  belay_limiter_options_init(&options);
  options.limits = &limit;
  options.limits_len = 1;
  options.away = BELAY_AWAY_OPEN;
  must(belay_limiter_new(user->client, &options, &user->limiter), "limiter");
  (void)uv_timer_init(&study->loop, &user->next);
  (void)uv_timer_init(&study->loop, &user->back);
  user->next.data = user->back.data = user;
  (void)uv_timer_start(&user->next, on_next, 0, TAKE_EVERY_MS);
}

static void measure(const struct row *row) {
  study_t *study = bench_alloc(1, sizeof *study);
  const report_target_t target = {TARGET_AT_MOST, row->target_ms};
  const report_target_t none = {TARGET_NONE, 0};
  study->row = row;
  (void)snprintf(study->folder, sizeof study->folder, "/tmp/belay-bench-XXXXXX");
  if (mkdtemp(study->folder) == NULL || uv_loop_init(&study->loop) != 0)
    bench_die("cannot begin");
  make_closed(study);
  must(belay_open(&study->loop, NULL, &study->belay), "open");
  for (int i = 0; i < CLIENTS; i++)
    make_user(study, i);
  (void)uv_run(&study->loop, UV_RUN_DEFAULT);
  if (uv_loop_close(&study->loop) != 0)
    bench_die("something is left in the loop");
  remove_names(study);
  for (int i = 0; i < CLIENTS; i++) {
    const user_t *user = &study->users[i];
    report_add(row->part, row->name, "used again after its return", "ms", user->used_after_ms,
               target);
    report_add(row->part, row->name, "longest take but the first", "ms",
               (double)user->longest / 1e6, none);
  }
  free(study);
}

static void run(const bench_options_t *options) {
  bench_begin(options);
  for (int i = 0; i < ROWS; i++)
    if (bench_wants(options, rows[i].part)) {
      report_part(rows[i].part, rows[i].name);
      measure(&rows[i]);
    }
  report_finish(bench_reconnect.name, options);
}

const bench_scenario_t bench_reconnect = {
    .name = "reconnect",
    .about = "how soon 20 clients use a server again that was away (SECONDS is ignored)",
    .seconds = 1,
    .run = run};
