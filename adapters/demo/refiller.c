#include "demo/refiller.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "belay/refiller.h"
#include "demo/child.h"
#include "demo/worker.h"

typedef struct refill {
  uv_loop_t loop;
  uv_signal_t end;
  belay_t *belay;
  belay_refiller_t *refiller;
  int status; /* what the process will return */
} refill_t;

int refill_bucket(belay_client_t *client, const char *name, void *data, belay_bucket_t **out) {
  belay_bucket_options_t options;
  belay_bucket_options_init(&options);
  options.name = name;
  options.name_len = strlen(name);
  options.capacity = REFILL_CAPACITY;
  options.data = data;
  return belay_bucket_new(client, &options, out);
}

static void on_change(belay_refiller_t *refiller, belay_refiller_state_t state) {
  (void)refiller;
  news_tell(state == BELAY_REFILLER_WAITING ? NEWS_DEPOSED : NEWS_ELECTED, 0);
}

static int open_refiller(refill_t *refill, char **argv) {
  const char *run = argv[3], *owner = argv[4], *name = argv[5], *parts[2];
  belay_client_options_t client_options;
  belay_refiller_options_t options;
  belay_client_t *client;
  belay_bucket_t *bucket;
  worker_client_options(&client_options, parts, run, owner);
  belay_refiller_options_init(&options);
  options.name = name;
  options.name_len = strlen(name);
  options.refillers = REFILL_PLACES;
  options.lease_ms = REFILL_LEASE_MS;
  options.period_ms = REFILL_PERIOD_MS;
  options.tokens = REFILL_TOKENS;
  options.on_change = on_change;
  int error = belay_open(&refill->loop, NULL, &refill->belay);
  if (error == 0)
    error = belay_connect(refill->belay, getenv(WORKER_URL), &client_options, &client);
  if (error == 0)
    error = refill_bucket(client, name, NULL, &bucket);
  if (error == 0)
    error = belay_refiller_new(bucket, &options, &refill->refiller);
  if (error == 0)
    error = belay_refiller_add(refill->refiller, REFILL_KEY, strlen(REFILL_KEY), 0);
  return error;
}

static void finish(refill_t *refill) {
  uv_close((uv_handle_t *)&refill->end, NULL);
  if (refill->belay != NULL && belay_close(refill->belay, NULL) != 0)
    refill->status = 1;
}

static void on_end(uv_signal_t *watcher, int signum) {
  (void)signum;
  finish(watcher->data);
}

int run_refiller(int argc, char **argv) {
  if (argc != 6)
    return 2;
  child_die_with(argv[2]);
  refill_t refill = {0};
  if (uv_loop_init(&refill.loop) != 0)
    return 1;
  (void)uv_signal_init(&refill.loop, &refill.end); /* never fails after the loop's own */
  refill.end.data = &refill;
  int error = open_refiller(&refill, argv);
  if (error != 0) {
    news_tell(NEWS_FAILED, error);
    refill.status = 1;
  }
  if (error != 0 || uv_signal_start(&refill.end, on_end, SIGTERM) != 0)
    finish(&refill);
  (void)uv_run(&refill.loop, UV_RUN_DEFAULT);
  return uv_loop_close(&refill.loop) != 0 ? 1 : refill.status;
}
