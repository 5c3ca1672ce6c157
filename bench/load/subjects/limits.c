/* belay's limiters as subjects. */
#include "bench.h"
#include "load/subjects/belay.h"

typedef struct limits {
  host_t host;
  belay_limiter_t *limiter;
  bool leased;
  uint64_t allowed, most; /* takes: those that were, and how many can be at most */
} limits_t;

#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)
#define PLENTY 1000000000 /* in a second: more than anybody can take */

static const belay_limit_t fixed = {.kind = BELAY_LIMIT_FIXED,
                                    .count = PLENTY,
                                    .period_us = SECOND},
                           bucket = {.kind = BELAY_LIMIT_BUCKET,
                                     .count = PLENTY,
                                     .period_us = SECOND},
                           single = {.kind = BELAY_LIMIT_BUCKET, .count = 1, .period_us = HOUR};

static void on_taken(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  runner_t *runner = request->data;
  limits_t *limits = runner->driver->own;
  must(status, "take");
  limits->allowed += result->verdict == BELAY_ALLOWED;
  if (limits->allowed > limits->most ||
      (limits->most == UINT64_MAX && result->verdict != BELAY_ALLOWED))
    bench_die("a take was answered with verdict %d", (int)result->verdict);
  driver_done(runner);
}

static void begin(runner_t *runner) {
  limits_t *limits = runner->driver->own;
  char key[DRIVER_KEY_LEN];
  driver_next_key_text(runner->driver, key);
  must(belay_limiter_take(limits->limiter, &runner->request, belay_bytes(key, sizeof key), 1,
                          on_taken),
       "take");
}

static void open_limits(driver_t *driver, const belay_limit_t *limit, int64_t slice,
                        uint64_t most) {
  limits_t *limits = driver->own = bench_alloc(1, sizeof *limits);
  belay_limiter_options_t options;
  host_open(&limits->host, driver);
  belay_limiter_options_init(&options);
  options.name = belay_string("bench");
  options.limits = limit;
  options.limits_len = 1;
  options.max_denied = 0; /* a cached denial would send nothing */
  options.lease_tokens = slice;
  limits->most = most;
  limits->leased = slice > 0;
  must(belay_limiter_new(limits->host.clients[0], &options, &limits->limiter), "limiter");
}

static void open_fixed(driver_t *driver) {
  open_limits(driver, &fixed, 0, UINT64_MAX);
}

static void open_bucket(driver_t *driver) {
  open_limits(driver, &bucket, 0, UINT64_MAX);
}

static void open_denied(driver_t *driver) {
  open_limits(driver, &single, 0, driver->job->keys);
}

static void open_leased(driver_t *driver) {
  open_limits(driver, &bucket, 1000, UINT64_MAX);
}

static void close_limits(driver_t *driver) {
  limits_t *limits = driver->own;
  host_close(driver, &limits->host, limits->leased ? driver->job->keys : 0); /* slices */
}

const doer_t belay_limit_fixed = {open_fixed, begin, close_limits, NULL};
const doer_t belay_limit_bucket = {open_bucket, begin, close_limits, NULL};
const doer_t belay_limit_denied = {open_denied, begin, close_limits, NULL};
const doer_t belay_limit_leased = {open_leased, begin, close_limits, NULL};
