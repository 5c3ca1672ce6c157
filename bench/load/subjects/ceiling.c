#include "load/subjects/ceiling.h"

#include <stdlib.h>

#include "bench.h"
#include "load/driver/meter.h"
#include "load/subjects/player.h"
#include "load/subjects/single.h"
#include "load/subjects/tap.h"

#define RECORD_S 0.25    /* of belay's commands are enough, */
#define RECORD_MAX_S 2.0 /* or until each key is among them, but no longer than this */

static tap_t *taps[JOB_SERVERS_MAX];
static uint64_t turns; /* while they write: keys, from the first on */

static void on_quiet(driver_t *driver, bool before) {
  turns = before ? driver->turn : driver->turn - turns;
  for (unsigned i = 0; i < driver->job->servers; i++)
    tap_write(taps[i], before);
}

/* Returns how many operations it was. */
static uint64_t record(const job_t *job, const doer_t *belay, bool single, player_t *players) {
  job_t tapped = *job;
  job_shared_t *unused = bench_alloc(1, sizeof *unused);
  tapped.rate = 0;
  tapped.warm_up = 0;
  tapped.seconds = RECORD_S;
  tapped.cover = RECORD_MAX_S;
  for (unsigned i = 0; i < job->servers; i++)
    taps[i] = tap_open(job->urls[i], tapped.urls[i], sizeof tapped.urls[i]);
  uint64_t operations = driver_run_watched(&tapped, unused, belay, on_quiet);
  for (unsigned i = 0; i < job->servers; i++) {
    tape_t tape = tap_close(taps[i]);
    redisContext *server = meter_dial(job->urls[i]);
    if (single) {
      tape_t joined = tape;
      tape = single_calls(&joined, server);
      free(joined.bytes);
    }
    redisFree(server);
    if (tape.commands == 0)
      bench_die("%s: belay sent no command", job->scenario);
    player_open(&players[i], job->urls[i], tape);
  }
  free(unused);
  return operations * job->batch;
}

/* With few unanswered commands a server waits; with very many it must buffer its replies. A client
 * that sleeps must be woken by the server; a client that polls takes processor time from it. */
static play_options_t best_options(const job_t *job, player_t *players) {
  static const uint64_t windows[] = {16, 64, 256, 1000, PLAYER_NO_WINDOW};
  enum { VARIANTS = 2 * sizeof windows / sizeof *windows, PROBES = 2 * VARIANTS };
  double best = 0;
  play_options_t options = {0};
  for (unsigned i = 0; i < PROBES; i++) {
    play_options_t probe = {.window = windows[i % VARIANTS / 2], .awake = i % 2 != 0};
    int64_t began = bench_now();
    double times = players_play(players, job->servers, &probe, job->seconds / PROBES);
    double rate = times / (double)(bench_now() - began);
    if (rate > best) {
      best = rate;
      options = probe;
    }
  }
  return options;
}

static void measure(const job_t *job, player_t *players, uint64_t operations, outcome_t *o) {
  meter_t meter;
  reading_t before, after;
  bool one_at_a_time = job->concurrency == 1 || job->hold > 0;
  double each = job->hold > 0 ? 1 : (double)players[0].tape.commands / (double)operations;
  uint64_t steps = each < 1 ? 1 : (uint64_t)(each + 0.5);
  hist_t unused = {0};
  play_options_t options = {0};
  meter_open(&meter, job);
  if (one_at_a_time)
    (void)players_walk(job, players, steps, job->warm_up, &unused);
  else
    options = best_options(job, players);
  meter_read(&meter, &before);
  int64_t began = bench_now();
  o->operations =
      one_at_a_time
          ? (uint64_t)((double)players_walk(job, players, steps, job->seconds, &o->latency) / each)
          : (uint64_t)(players_play(players, job->servers, &options, job->seconds) *
                       (double)operations);
  o->elapsed = (double)(bench_now() - began) / 1e9;
  meter_read(&meter, &after);
  meter_add(&meter, &before, &after, o);
  meter_close(&meter);
  o->window = options.window;
}

void ceiling_run(const job_t *job, outcome_t *outcome, const doer_t *belay, bool single) {
  player_t *players = bench_alloc(job->servers, sizeof *players);
  uint64_t operations = record(job, belay, single, players);
  measure(job, players, operations, outcome);
  outcome->keys = turns > 0 && turns < job->keys ? (unsigned)turns : job->keys;
  outcome->done = true;
  for (unsigned i = 0; i < job->servers; i++)
    player_close(&players[i]);
  free(players);
}
