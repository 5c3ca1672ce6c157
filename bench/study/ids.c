/* How fast ids are given: belay_idgen_next(), from segments that are fetched meanwhile. The clock runs on while there is
 * none, and each is looked at: it is larger than the one before. */
#include <belay.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "place.h"
#include "study/report.h"
#include "server.h"

enum {
  BURST = 2000
}; /* of ids, before the loop looks at its sockets: as between two events of a program */

typedef struct giver {
  uv_loop_t loop;
  uv_timer_t
      alive; /* what is fetched ahead does not keep the loop running; a program's own work does */
  belay_t *belay;
  belay_client_t *client;
  belay_idgen_t *idgen;
  belay_request_t request;
  bool waits;
  int64_t last;
} giver_t;

typedef struct outcome {
  double rate, fetches, waits, longest_ms;
} outcome_t;

static void must(int status, const char *what) {
  if (status != 0)
    bench_die("%s: %s", what, belay_strerror(status));
}

static void on_timer(uv_timer_t *timer) {
  (void)timer;
  bench_die("this takes too long");
}

static void open_giver(giver_t *giver, int64_t step) {
  char url[256];
  belay_idgen_options_t options;
  memset(giver, 0, sizeof *giver);
  giver->request.data = giver;
  if (uv_loop_init(&giver->loop) != 0)
    bench_die("out of memory");
  (void)uv_timer_init(&giver->loop, &giver->alive);
  (void)uv_timer_start(&giver->alive, on_timer, 7200000, 0);
  servers_flush();
  must(belay_open(&giver->loop, NULL, &giver->belay), "open");
  (void)snprintf(url, sizeof url, "unix://%s", server_path());
  must(belay_connect(giver->belay, url, NULL, &giver->client), "connect");
  belay_idgen_options_init(&options);
  options.name = "bench";
  options.name_len = strlen(options.name);
  options.step = step;
  must(belay_idgen_new(giver->client, &options, &giver->idgen), "idgen");
}

static void close_giver(giver_t *giver) {
  must(belay_close(giver->belay, NULL), "close");
  uv_close((uv_handle_t *)&giver->alive, NULL);
  (void)uv_run(&giver->loop, UV_RUN_DEFAULT);
  if (uv_loop_close(&giver->loop) != 0)
    bench_die("something is left in the loop");
}

static void see(giver_t *giver, int64_t id) {
  if (id <= giver->last)
    bench_die("an id is not larger than the one before");
  giver->last = id;
}

static void on_id(belay_request_t *request, int status, int64_t id) {
  giver_t *giver = request->data;
  must(status, "get");
  see(giver, id);
  giver->waits = false;
}

static void wait_for_one(giver_t *giver) {
  giver->waits = true;
  must(belay_idgen_get(giver->idgen, &giver->request, on_id), "get");
  while (giver->waits)
    (void)uv_run(&giver->loop, UV_RUN_ONCE);
}

/* Returns how many were here. */
static unsigned give_some(giver_t *giver) {
  for (unsigned i = 0; i < BURST; i++) {
    int64_t id;
    int status = belay_idgen_next(giver->idgen, &id);
    if (status == BELAY_EAGAIN)
      return i;
    must(status, "next");
    see(giver, id);
  }
  return BURST;
}

static outcome_t give_for(int64_t step, double seconds) {
  giver_t giver;
  belay_client_stats_t before, after;
  outcome_t outcome = {0};
  uint64_t given = 0;
  open_giver(&giver, step);
  wait_for_one(&giver);
  belay_client_stats(giver.client, &before);
  int64_t began = bench_now(), now = began, length = (int64_t)(seconds * 1e9);
  while (now - began < length) {
    unsigned n = give_some(&giver);
    given += n;
    if (n < BURST) {
      wait_for_one(&giver);
      given++;
      outcome.waits++;
    } else {
      (void)uv_run(&giver.loop, UV_RUN_NOWAIT);
    }
    int64_t then = now;
    now = bench_now();
    if ((double)(now - then) / 1e6 > outcome.longest_ms)
      outcome.longest_ms = (double)(now - then) / 1e6;
  }
  belay_client_stats(giver.client, &after);
  outcome.rate = (double)given * 1e9 / (double)(now - began);
  outcome.fetches = (double)(after.calls - before.calls);
  close_giver(&giver);
  return outcome;
}

static const struct {
  int64_t step;
  const char *name;
} rows[] = {{10000, "step 10,000"}, {100000, "step 100,000"}, {1000000, "step 1,000,000"}};
enum { ROWS = sizeof rows / sizeof *rows };

static void measure(const bench_options_t *options, unsigned i, unsigned round) {
  static const report_target_t none = {TARGET_NONE, 0};
  outcome_t o = give_for(rows[i].step, options->seconds);
  const report_target_t target = {TARGET_AT_LEAST, 20e6};
  report_add("A", rows[i].name, "ids", "/s", o.rate, target);
  report_add("A", rows[i].name, "fetches", "/s", o.fetches / options->seconds, none);
  report_add("A", rows[i].name, "waits for one", "/s", o.waits / options->seconds, none);
  report_add("A", rows[i].name, "longest turn", "ms", o.longest_ms, none);
  fprintf(stderr, "round %u of %u: %-15s %11.0f ids/s, %6.0f fetches, %6.0f waits\n", round,
          options->rounds, rows[i].name, o.rate, o.fetches, o.waits);
}

static void run(const bench_options_t *options) {
  bench_begin(options);
  report_part("A", "belay_idgen_next(), 2,000 in a turn of the loop, fetching ahead all the while");
  for (unsigned round = 1; round <= options->rounds; round++)
    for (unsigned i = 0; i < ROWS; i++)
      measure(options, i, round);
  report_finish(bench_ids.name, options);
}

const bench_scenario_t bench_ids = {
    .name = "ids",
    .about = "ids from segments; SECONDS for each row",
    .seconds = 2,
    .run = run,
};
