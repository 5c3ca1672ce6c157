/* The cost of many held leases, each renewed by its watchdog at its own time. All are acquired;
 * then the program does nothing else, and is measured once the first renewals are over. */
#include <belay.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <uv.h>

#include "server.h"
#include "study/report.h"

enum { AT_ONCE = 500, NAME_SIZE = 32 };

static const struct row {
  const char *part, *name;
  unsigned leases;
  int64_t ttl_ms;
  double bytes_max, share_max;
} rows[] = {{"A", "100,000 leases of 30 s", 100000, 30000, 256, 0.1},
            {"B", "1,000 leases of 1 s", 1000, 1000, 0, 0}};
enum { ROWS = sizeof rows / sizeof *rows };

typedef struct watched {
  const struct row *row;
  const bench_options_t *options;
  uv_loop_t loop;
  uv_timer_t timer;
  belay_t *belay;
  belay_client_t *client;
  belay_lock_t **locks;
  unsigned begun, held;
  size_t bytes;
  bool measures;
  int64_t began;
  double cpu, share, bytes_each, renewals;
  uint64_t calls;
} watched_t;

static void must(int status, const char *what) {
  if (status != 0)
    bench_die("%s: %s", what, belay_strerror(status));
}

static double cpu_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t bytes_now(const watched_t *watched) {
  belay_stats_t stats;
  belay_stats(watched->belay, &stats);
  return stats.memory_bytes;
}

static uint64_t calls_now(const watched_t *watched) {
  belay_client_stats_t stats;
  belay_client_stats(watched->client, &stats);
  return stats.calls;
}

static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  (void)lock;
  bench_die("a lease is lost: %s", belay_lost_name(reason));
}

/* First the renewals come close together, as the leases were taken; after a ttl they are all over
 * it. */
static void on_timer(uv_timer_t *timer) {
  watched_t *watched = timer->data;
  if (!watched->measures) {
    watched->measures = true;
    watched->bytes_each =
        (double)(bytes_now(watched) - watched->bytes) / (double)watched->row->leases;
    watched->began = bench_now();
    watched->cpu = cpu_now();
    watched->calls = calls_now(watched);
    return;
  }
  double elapsed = (double)(bench_now() - watched->began) / 1e9;
  watched->share = (cpu_now() - watched->cpu) / elapsed;
  watched->renewals = (double)(calls_now(watched) - watched->calls) / elapsed;
  must(belay_close(watched->belay, NULL), "close");
  uv_close((uv_handle_t *)timer, NULL);
}

static void on_held(belay_lock_t *lock, int status) {
  watched_t *watched = belay_lock_data(lock);
  must(status, "acquire");
  if (watched->begun < watched->row->leases)
    must(belay_lock_try(watched->locks[watched->begun++], on_held), "acquire");
  if (++watched->held == watched->row->leases)
    (void)uv_timer_start(&watched->timer, on_timer, (uint64_t)watched->row->ttl_ms,
                         (uint64_t)(watched->options->seconds * 1e3));
}

static void make_all(watched_t *watched) {
  belay_lock_options_t options;
  char name[NAME_SIZE];
  belay_lock_options_init(&options);
  options.ttl_ms = watched->row->ttl_ms;
  options.watchdog = BELAY_WATCHDOG_ON;
  options.on_lost = on_lost;
  options.data = watched;
  for (unsigned i = 0; i < watched->row->leases; i++) {
    int len = snprintf(name, sizeof name, "lease-%07u", i);
    must(belay_lock_new(watched->client, belay_bytes(name, (size_t)len), &options,
                        &watched->locks[i]),
         "lock");
  }
}

static void hold(watched_t *watched) {
  belay_client_options_t options;
  char url[256];
  servers_flush();
  if (uv_loop_init(&watched->loop) != 0)
    bench_die("out of memory");
  (void)uv_timer_init(&watched->loop, &watched->timer);
  watched->timer.data = watched;
  belay_client_options_init(&options);
  (void)snprintf(url, sizeof url, "unix://%s", server_path());
  must(belay_open(&watched->loop, NULL, &watched->belay), "open");
  must(belay_connect(watched->belay, url, &options, &watched->client), "connect");
  watched->bytes = bytes_now(watched);
  watched->locks = bench_alloc(watched->row->leases, sizeof(belay_lock_t *));
  make_all(watched);
  while (watched->begun < AT_ONCE)
    must(belay_lock_try(watched->locks[watched->begun++], on_held), "acquire");
  (void)uv_run(&watched->loop, UV_RUN_DEFAULT);
  if (uv_loop_close(&watched->loop) != 0)
    bench_die("something is left in the loop");
  free(watched->locks);
}

static void measure(const bench_options_t *options, const struct row *row, unsigned round) {
  watched_t watched = {.row = row, .options = options};
  const report_target_t none = {TARGET_NONE, 0};
  const report_target_t bytes = {row->bytes_max > 0 ? TARGET_AT_MOST : TARGET_NONE, row->bytes_max};
  const report_target_t share = {row->share_max > 0 ? TARGET_AT_MOST : TARGET_NONE, row->share_max};
  hold(&watched);
  report_add(row->part, row->name, "belay's memory for each", "bytes", watched.bytes_each, bytes);
  report_add(row->part, row->name, "share of a processor", "", watched.share, share);
  report_add(row->part, row->name, "renewals", "/s", watched.renewals, none);
  fprintf(stderr, "round %u of %u: %s: %.0f bytes, %.4f of a processor, %.0f renewals/s\n", round,
          options->rounds, row->name, watched.bytes_each, watched.share, watched.renewals);
}

static void run(const bench_options_t *options) {
  bench_begin(options);
  for (unsigned i = 0; i < ROWS; i++)
    if (bench_wants(options, rows[i].part))
      report_part(rows[i].part, rows[i].name);
  for (unsigned round = 1; round <= options->rounds; round++)
    for (unsigned i = 0; i < ROWS; i++)
      if (bench_wants(options, rows[i].part))
        measure(options, &rows[i], round);
  report_finish(bench_watched.name, options);
}

const bench_scenario_t bench_watched = {
    .name = "watched",
    .about = "many leases, held and renewed by their watchdogs; SECONDS, after a ttl",
    .seconds = 30,
    .run = run,
};
