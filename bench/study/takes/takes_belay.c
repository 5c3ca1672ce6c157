/* The calls, by belay: so many requests in flight, each begun anew where it ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

#include "server.h"
#include "study/takes/takes.h"

#define PATIENCE_MS 60000 /* nothing is to end because the machine is busy */

typedef struct taker {
  const takes_t *takes;
  uv_loop_t loop;
  belay_t *belay;
  belay_client_t *client;
  belay_limiter_t *limiter;
  belay_verdict_t expected;
  uint64_t asked, answered;
  belay_request_t request[TAKES_IN_FLIGHT_MAX];
} taker_t;

static void must(int status, const char *what) {
  if (status != 0)
    bench_die("%s: %s", what, belay_strerror(status));
}

/* ---- the calls ----------------------------------------------------------------------------------------- */

static void on_taken(belay_request_t *request, int status, const belay_limiter_result_t *result);

static void take(taker_t *taker, belay_request_t *request) {
  char key[TAKES_DIGITS];
  uint64_t i = taker->asked++;
  takes_digits(taker->takes->keys == TAKES_DENIED ? i % TAKES_SPENT : i, key);
  must(belay_limiter_take(taker->limiter, request, key, sizeof key, 1, on_taken), "take");
}

static void on_taken(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  taker_t *taker = request->data;
  if (result->verdict != taker->expected || result->source != BELAY_SOURCE_SERVER)
    bench_die("a take ended with %s, verdict %d", belay_err_name(status), (int)result->verdict);
  taker->answered++;
  if (taker->asked < taker->takes->calls)
    take(taker, request);
}

/* The connection is there, and the script known, before anything is measured: by a key that comes after all others. */
static void warm_up(taker_t *taker) {
  taker->asked = taker->takes->calls;
  take(taker, &taker->request[0]);
  (void)uv_run(&taker->loop, UV_RUN_DEFAULT);
  if (taker->answered != 1)
    bench_die("a take was not answered");
  taker->asked = 0;
  taker->answered = 0;
}

static double cpu_now(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return 1e9 * ((double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec) +
         1e3 * ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec);
}

static uint64_t allocations(const taker_t *taker) {
  belay_stats_t stats;
  belay_stats(taker->belay, &stats);
  return stats.allocations;
}

static takes_outcome_t measure(taker_t *taker) {
  double calls = (double)taker->takes->calls;
  uint64_t allocated = allocations(taker);
  int64_t server = server_cpu(), began = bench_now();
  double client = cpu_now();
  for (unsigned i = 0; i < taker->takes->in_flight && taker->asked < taker->takes->calls; i++)
    take(taker, &taker->request[i]);
  (void)uv_run(&taker->loop, UV_RUN_DEFAULT);
  int64_t ended = bench_now();
  if (taker->answered != taker->takes->calls)
    bench_die("%llu takes were answered", (unsigned long long)taker->answered);
  return (takes_outcome_t){.rate = calls * 1e9 / (double)(ended - began),
                           .client_cpu = (cpu_now() - client) / calls,
                           .server_cpu = (double)(server_cpu() - server) / calls,
                           .allocations = (double)(allocations(taker) - allocated) / calls};
}

/* ---- from begin to end ----------------------------------------------------------------------------------- */

static void open_taker(taker_t *taker, const takes_t *takes) {
  char url[256];
  belay_client_options_t client;
  belay_limiter_options_t options;
  *taker = (taker_t){.takes = takes};
  taker->expected = takes->keys == TAKES_DENIED ? BELAY_DENIED : BELAY_ALLOWED;
  for (unsigned i = 0; i < TAKES_IN_FLIGHT_MAX; i++)
    taker->request[i].data = taker;
  if (uv_loop_init(&taker->loop) != 0)
    bench_die("no loop");
  must(belay_open(&taker->loop, NULL, &taker->belay), "open");
  (void)snprintf(url, sizeof url, "unix://%s", server_path());
  belay_client_options_init(&client);
  client.timeout_ms = PATIENCE_MS;
  must(belay_connect(taker->belay, url, &client, &taker->client), "connect");
  belay_limiter_options_init(&options);
  options.name = TAKES_NAME;
  options.name_len = strlen(TAKES_NAME);
  options.limits = takes->policy->limits;
  options.limits_len = takes->policy->n;
  options.max_denied = 0; /* every call is the server's */
  must(belay_limiter_new(taker->client, &options, &taker->limiter), "limiter");
}

takes_outcome_t takes_by_belay(const takes_t *takes) {
  taker_t *taker = malloc(sizeof *taker);
  if (taker == NULL)
    bench_die("out of memory");
  takes_prepare(takes);
  open_taker(taker, takes);
  warm_up(taker);
  takes_outcome_t outcome = measure(taker);
  must(belay_close(taker->belay, NULL), "close");
  (void)uv_run(&taker->loop, UV_RUN_DEFAULT);
  if (uv_loop_close(&taker->loop) != 0)
    bench_die("something is left in the loop");
  free(taker);
  return outcome;
}
