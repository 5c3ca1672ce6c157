/* belay_limiter_try(): answers that need no server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "server.h"
#include "study/takes/takes.h"

enum { KEYS = 1000, LEASED_KEYS = 100, SLICE = 10000, BURST = 1000 };
#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)
#define PLENTY INT64_C(1000000000)
#define REFILLS                                                                                    \
  3 /* of each slice, before anything is measured: all have the memory that they need then */

typedef struct trier {
  uv_loop_t loop;
  belay_t *belay;
  belay_client_t *client;
  belay_limiter_t *limiter;
  belay_request_t request;
  bool answered;
  belay_verdict_t verdict; /* of the request */
  uint64_t allocations;    /* of belay's, so far */
  unsigned keys, next;
  char key[KEYS][TAKES_DIGITS];
} trier_t;

static void must(int status, const char *what) {
  if (status != 0)
    bench_die("%s: %s", what, belay_strerror(status));
}

static void *count_alloc(void *ctx, size_t size) {
  trier_t *trier = ctx;
  trier->allocations++;
  return malloc(size);
}

static void count_free(void *ctx, void *memory) {
  (void)ctx;
  free(memory);
}

/* ---- what asks the server ------------------------------------------------------------------------------ */

static void on_taken(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  trier_t *trier = request->data;
  must(status, "take");
  trier->answered = true;
  trier->verdict = result->verdict;
}

/* Takes from a key, whoever says so. */
static belay_verdict_t take(trier_t *trier, const char *key) {
  trier->answered = false;
  must(belay_limiter_take(trier->limiter, &trier->request, key, TAKES_DIGITS, 1, on_taken), "take");
  while (!trier->answered)
    (void)uv_run(&trier->loop, UV_RUN_ONCE);
  return trier->verdict;
}

/* ---- tries --------------------------------------------------------------------------------------------- */

/* A burst of them, by keys in turn. Returns how many were answered. */
static unsigned try_some(trier_t *trier, belay_verdict_t verdict, belay_source_t source) {
  unsigned answered = 0;
  for (unsigned i = 0; i < BURST; i++) {
    belay_limiter_result_t result;
    const char *key = trier->key[trier->next];
    int status = belay_limiter_try(trier->limiter, key, TAKES_DIGITS, 1, &result);
    trier->next = trier->next + 1 < trier->keys ? trier->next + 1 : 0;
    if (status == BELAY_EAGAIN) {
      if (take(trier, key) != verdict)
        bench_die("a take ended with verdict %d", (int)trier->verdict);
      continue;
    }
    must(status, "try");
    if (result.verdict != verdict || result.source != source)
      bench_die("a try ended with verdict %d, by %d", (int)result.verdict, (int)result.source);
    answered++;
  }
  return answered;
}

static tries_outcome_t try_for(trier_t *trier, double seconds, belay_verdict_t verdict,
                               belay_source_t source) {
  int64_t began = bench_now(), length = (int64_t)(seconds * 1e9), now;
  uint64_t allocations = trier->allocations, answered = 0;
  do {
    answered += try_some(trier, verdict, source);
    (void)uv_run(&trier->loop,
                 UV_RUN_NOWAIT); /* slices are filled, as between two events of a program */
    now = bench_now();
  } while (now - began < length);
  return (tries_outcome_t){.rate = (double)answered * 1e9 / (double)(now - began),
                           .allocations = (double)(trier->allocations - allocations)};
}

/* ---- from begin to end --------------------------------------------------------------------------------- */

static trier_t *open_trier(const belay_limit_t *limit, int64_t slice, unsigned keys) {
  char url[256];
  belay_options_t belay;
  belay_limiter_options_t options;
  trier_t *trier = calloc(1, sizeof *trier);
  if (trier == NULL || uv_loop_init(&trier->loop) != 0)
    bench_die("out of memory");
  trier->request.data = trier;
  trier->keys = keys;
  for (unsigned i = 0; i < keys; i++)
    takes_digits(i, trier->key[i]);
  servers_flush();
  belay_options_init(&belay);
  belay.allocator = (belay_allocator_t){.alloc = count_alloc, .free = count_free, .ctx = trier};
  must(belay_open(&trier->loop, &belay, &trier->belay), "open");
  (void)snprintf(url, sizeof url, "unix://%s", server_path());
  must(belay_connect(trier->belay, url, NULL, &trier->client), "connect");
  belay_limiter_options_init(&options);
  options.name = TAKES_NAME;
  options.name_len = strlen(TAKES_NAME);
  options.limits = limit;
  options.limits_len = 1;
  options.slice = slice;
  must(belay_limiter_new(trier->client, &options, &trier->limiter), "limiter");
  return trier;
}

static void close_trier(trier_t *trier) {
  must(belay_close(trier->belay, NULL), "close");
  (void)uv_run(&trier->loop, UV_RUN_DEFAULT);
  if (uv_loop_close(&trier->loop) != 0)
    bench_die("something is left in the loop");
  free(trier);
}

tries_outcome_t tries_denied(double seconds) {
  static const belay_limit_t limit = {.kind = BELAY_LIMIT_BUCKET, .count = 1, .period_us = HOUR};
  trier_t *trier = open_trier(&limit, 0, KEYS);
  for (unsigned i = 0; i < KEYS; i++) {
    belay_verdict_t first = take(trier, trier->key[i]), second = take(trier, trier->key[i]);
    if (first != BELAY_ALLOWED || second != BELAY_DENIED)
      bench_die("no denial");
  }
  tries_outcome_t outcome = try_for(trier, seconds, BELAY_DENIED, BELAY_SOURCE_DENIAL);
  close_trier(trier);
  return outcome;
}

tries_outcome_t tries_leased(double seconds) {
  static const belay_limit_t limit = {
      .kind = BELAY_LIMIT_BUCKET, .count = PLENTY, .period_us = SECOND};
  trier_t *trier = open_trier(&limit, SLICE, LEASED_KEYS);
  belay_limiter_stats_t stats;
  do {
    (void)try_for(trier, 0, BELAY_ALLOWED, BELAY_SOURCE_SLICE);
    belay_limiter_stats(trier->limiter, &stats);
  } while (stats.asked < (REFILLS + UINT64_C(1)) * LEASED_KEYS);
  tries_outcome_t outcome = try_for(trier, seconds, BELAY_ALLOWED, BELAY_SOURCE_SLICE);
  close_trier(trier);
  return outcome;
}
