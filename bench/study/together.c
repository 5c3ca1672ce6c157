/* What a server saves when calls of one script travel together, as one command: releases, takes and renewals, by bytes that
 * are ready, so that nothing but the server decides. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "load/subjects/player.h"
#include "samples.h"
#include "scripts.gen.h"
#include "server.h"
#include "study/report.h"
#include "study/study.h"

enum { CALLS = 9600 /* a multiple of all sizes */, ARGS_MAX = 3, KEY_SIZE = 40, IN_FLIGHT = 512 };
#define TOKEN "0123456789abcdef0123456789abcdef"

static const unsigned sizes[] = {1, 4, 8, 16, 32};
static const char *const names[] = {"one by one", "by 4", "by 8", "by 16", "by 32"};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* A bucket of a million tokens; one leaks in 100 seconds, so that none is forgotten here (lua/limit/limit.lua). */
static const double bucket[] = {1, 1e8, 1, 1e14};

typedef struct word {
  const void *at;
  size_t len;
} word_t;

static const struct kind {
  const char *part, *title;
  const belay__script_t *script;
  bool held; /* the keys are locks, each held when it is called for */
  unsigned n;
  word_t args[ARGS_MAX];
  unsigned asked_of; /* the size that a target is for */
  double target;     /* how many times the server's processor time one by one is that */
} kinds[] = {
    {"A",
     "releases of locks that are held",
     &belay__script_lock_release,
     true,
     3,
     {{TOKEN, sizeof TOKEN - 1}, {"", 0}, {"", 0}},
     32,
     1.2},
    {"B",
     "takes from a token bucket, of as many keys",
     &belay__script_limit,
     false,
     3,
     {{"take", 4}, {bucket, sizeof bucket}, {"1", 1}},
     8,
     1.3},
    {"C",
     "renewals of locks that are held",
     &belay__script_lock_extend,
     true,
     3,
     {{TOKEN, sizeof TOKEN - 1}, {"600000", 6}, {"0", 1}},
     32,
     1.2},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- tapes ------------------------------------------------------------------------------------------------- */

static void put_number(tape_t *tape, size_t n) {
  char text[24];
  tape_word(tape, text, (size_t)snprintf(text, sizeof text, "%zu", n));
}

static void put_key(tape_t *tape, unsigned i) {
  char key[KEY_SIZE];
  tape_word(tape, key, (size_t)snprintf(key, sizeof key, "bench::together::{%08u}", i));
}

/* So many calls in each command. */
static tape_t calls_by(const struct kind *kind, unsigned size) {
  const belay__script_t *script = size > 1 ? kind->script->many : kind->script;
  tape_t tape = {0};
  for (unsigned i = 0; i < CALLS; i += size) {
    tape_command(&tape, 3 + size + (size > 1) + size * kind->n);
    tape_word(&tape, "EVALSHA", 7);
    tape_word(&tape, script->sha1, strlen(script->sha1));
    put_number(&tape, size);
    for (unsigned k = 0; k < size; k++)
      put_key(&tape, i + k);
    if (size > 1)
      put_number(&tape, size);
    for (unsigned k = 0; k < size * kind->n; k++)
      tape_word(&tape, kind->args[k % kind->n].at, kind->args[k % kind->n].len);
  }
  return tape;
}

static tape_t acquires(void) {
  tape_t tape = {0};
  for (unsigned i = 0; i < CALLS; i++) {
    tape_command(&tape, 5);
    tape_word(&tape, "SET", 3);
    put_key(&tape, i);
    tape_word(&tape, TOKEN, sizeof TOKEN - 1);
    tape_word(&tape, "PX", 2);
    tape_word(&tape, "300000", 6);
  }
  return tape;
}

/* ---- measuring --------------------------------------------------------------------------------------------- */

typedef struct cost {
  double rate, server_us; /* of a call */
} cost_t;

static void check(const struct kind *kind) {
  uint64_t expected = kind->script == &belay__script_lock_release ? 0 : CALLS;
  if (server_keys() != expected)
    bench_die("%s: not what they were to be", kind->title);
}

static cost_t measure(const struct kind *kind, unsigned size, const bench_options_t *options) {
  const pace_t pace = {
      .window = IN_FLIGHT / size, .awake = options->pin == PLACE_APART, .once = true};
  player_t calls, before;
  int64_t elapsed = 0, cpu = 0;
  unsigned passes = 0;
  servers_flush();
  player_open(&calls, server_url(0), calls_by(kind, size));
  player_open(&before, server_url(0), acquires());
  do {
    if (kind->held)
      (void)players_play(&before, 1, &pace, 0);
    int64_t began = bench_now(), used = server_cpu();
    (void)players_play(&calls, 1, &pace, 0);
    elapsed += bench_now() - began;
    cpu += server_cpu() - used;
    check(kind);
    passes++;
  } while ((double)elapsed / 1e9 < options->seconds);
  player_close(&calls);
  player_close(&before);
  double n = (double)CALLS * passes;
  return (cost_t){.rate = n * 1e9 / (double)elapsed, .server_us = (double)cpu / 1e3 / n};
}

static void measure_round(const bench_options_t *options, unsigned round) {
  for (size_t k = 0; k < KINDS; k++) {
    const struct kind *kind = &kinds[k];
    cost_t single = {0};
    for (size_t i = 0; i < SIZES && bench_wants(options, kind->part); i++) {
      cost_t cost = measure(kind, sizes[i], options);
      report_target_t target = {sizes[i] == kind->asked_of ? TARGET_AT_LEAST : TARGET_NONE,
                                kind->target};
      report_target_t none = {TARGET_NONE, 0};
      single = i == 0 ? cost : single;
      report_add(kind->part, names[i], "calls", "/s", cost.rate, none);
      report_add(kind->part, names[i], "server's processor time", "us", cost.server_us, none);
      if (i == 0)
        continue;
      report_add(kind->part, names[i], "x the single-call limit", "", cost.rate / single.rate,
                 none);
      report_add(kind->part, names[i], "the same by processor time", "",
                 single.server_us / cost.server_us, target);
      fprintf(stderr, "round %u of %u: %s, %-6s x %.2f\n", round, options->rounds, kind->part,
              names[i], cost.rate / single.rate);
    }
  }
}

static void run(const bench_options_t *options) {
  bench_begin(options);
  for (size_t k = 0; k < KINDS; k++) {
    char sha[ASK_SHA_SIZE];
    server_load(kinds[k].script->text, sha);
    server_load(kinds[k].script->many->text, sha);
    if (bench_wants(options, kinds[k].part))
      report_part(kinds[k].part, kinds[k].title);
  }
  for (unsigned round = 1; round <= options->rounds; round++)
    measure_round(options, round);
  report_finish(bench_together.name, options);
}

const bench_scenario_t bench_together = {
    .name = "together",
    .about = "calls of one script, one by one and several in one command; SECONDS for each",
    .seconds = 0.5,
    .run = run,
};
