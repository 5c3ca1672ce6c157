/* The public interface against a hostile server: after a correct handshake, or none, it answers
 * each command with the next bytes of the input, or hangs up. Each operation must end exactly once,
 * and all memory must be freed. */
#include <belay.h>
#include <string.h>
#include <uv.h>

#include "fuzz/fuzz.h"
#include "support/deployments/fake.h"

#define TIMEOUT_MS 4
#define OPERATIONS 12

/* The input, as the server uses it. Only the thread of the fake server touches it meanwhile. */
typedef struct script {
  const uint8_t *at, *end;
  bool greets; /* the handshake is correct */
} script_t;

typedef struct client {
  belay_t *belay;
  belay_client_t *client;
  belay_request_t requests[OPERATIONS];
  unsigned started, ended;
  bool closed;
} client_t;

/* ---- the server's thread ---- */

static void on_command(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  script_t *script = arg;
  if (script->greets && fake_is_handshake(words)) {
    fake_behave(link, words, count);
    return;
  }
  size_t left = (size_t)(script->end - script->at);
  if (left == 0 || script->at[0] == 0) {
    script->at += left > 0;
    fake_hang_up(link);
    return;
  }
  size_t len = script->at[0] < left ? script->at[0] : left - 1;
  fake_say_bytes(link, (const char *)script->at + 1, len);
  script->at += 1 + len;
}

/* ---- the client ---- */

static void on_closed(belay_t *belay, void *data) {
  (void)belay;
  ((client_t *)data)->closed = true;
}

static void end_one(belay_request_t *request) {
  client_t *c = request->data;
  REQUIRE(c->ended < c->started);
  if (++c->ended == c->started)
    REQUIRE(belay_close(c->belay, on_closed) == 0);
}

static void on_cached(belay_request_t *request, int status, const belay_cache_result_t *result) {
  REQUIRE(result->status == status && result->data != NULL);
  end_one(request);
}

static void on_taken(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  REQUIRE((status == 0) == (result->verdict != BELAY_INDETERMINATE));
  end_one(request);
}

static void on_counted(belay_request_t *request, int status, const belay_counter_result_t *result) {
  REQUIRE(result != NULL && (status == 0 || status < -20000));
  end_one(request);
}

static void on_begun(belay_request_t *request, int status, const belay_idempotency_state_t *state) {
  REQUIRE((status == 0 || status == BELAY_ENOTOWNER) ==
          (state->outcome != BELAY_IDEMPOTENCY_UNKNOWN));
  end_one(request);
}

static void on_held(belay_request_t *request, int status, const belay_held_t *held) {
  REQUIRE(held->name != NULL && (status != 0 || held->holders_len <= held->holders_count));
  end_one(request);
}

static void on_acquired(belay_lock_t *lock, int status) {
  REQUIRE((belay_lock_remaining_us(lock) > 0) <= (status == 0));
  end_one(belay_lock_data(lock));
}

static void on_ranked(belay_request_t *request, int status, const belay_ranking_entry_t *entries,
                      size_t n) {
  REQUIRE(n == 0 || (status == 0 && entries[n - 1].member.data != NULL));
  end_one(request);
}

static void on_marked(belay_request_t *request, int status, belay_dedup_verdict_t verdict) {
  (void)status, (void)verdict;
  end_one(request);
}

static void on_tested(belay_request_t *request, int status, bool answer) {
  REQUIRE(status == 0 || !answer);
  end_one(request);
}

/* The request of the next operation. */
static belay_request_t *next(client_t *c) {
  REQUIRE(c->started < OPERATIONS);
  belay_request_t *request = &c->requests[c->started++];
  request->data = c;
  request->timeout_ms = TIMEOUT_MS;
  return request;
}

static void start_counts(client_t *c, belay_bytes_t x) {
  belay_counter_t *counter;
  belay_ranking_t *ranking;
  belay_dedup_t *dedup;
  belay_bloom_t *bloom;
  belay_ranking_page_t page = {.n = 10};
  belay_dedup_options_t dedup_options;
  belay_bloom_options_t bloom_options;
  belay_dedup_options_init(&dedup_options);
  dedup_options.name = x;
  belay_bloom_options_init(&bloom_options);
  bloom_options.name = x;
  bloom_options.capacity = 1000;
  REQUIRE(belay_counter_new(c->client, NULL, &counter) == 0);
  REQUIRE(belay_ranking_new(c->client, NULL, &ranking) == 0);
  REQUIRE(belay_dedup_new(c->client, &dedup_options, &dedup) == 0);
  REQUIRE(belay_bloom_new(c->client, &bloom_options, &bloom) == 0);
  REQUIRE(belay_counter_add(counter, next(c), x, 1, on_counted) == 0);
  REQUIRE(belay_ranking_page(ranking, next(c), x, &page, on_ranked) == 0);
  REQUIRE(belay_dedup_mark(dedup, next(c), x, x, on_marked) == 0);
  REQUIRE(belay_bloom_add(bloom, next(c), x, on_tested) == 0);
}

static void start_decisions(client_t *c, belay_bytes_t x) {
  static const belay_limit_t limit = {
      .kind = BELAY_LIMIT_BUCKET, .count = 10, .period_us = 1000000};
  belay_limiter_t *limiter;
  belay_cache_t *cache;
  belay_idempotency_t *records;
  belay_lock_t *lock;
  belay_limiter_options_t limiter_options;
  belay_lock_options_t lock_options;
  belay_limiter_options_init(&limiter_options);
  limiter_options.limits = &limit;
  limiter_options.limits_len = 1;
  belay_lock_options_init(&lock_options);
  lock_options.fencing = true;
  lock_options.timeout_ms = TIMEOUT_MS;
  lock_options.data = next(c);
  REQUIRE(belay_limiter_new(c->client, &limiter_options, &limiter) == 0);
  REQUIRE(belay_cache_new(c->client, NULL, &cache) == 0);
  REQUIRE(belay_idempotency_new(c->client, NULL, &records) == 0);
  REQUIRE(belay_lock_new(c->client, x, &lock_options, &lock) == 0);
  REQUIRE(belay_lock_try(lock, on_acquired) == 0);
  REQUIRE(belay_limiter_take(limiter, next(c), x, 1, on_taken) == 0);
  REQUIRE(belay_cache_get(cache, next(c), x, on_cached) == 0);
  REQUIRE(belay_idempotency_begin(records, next(c), x, x, 1000, on_begun) == 0);
  REQUIRE(belay_held_read(c->client, next(c), BELAY_HELD_SEMAPHORE, x, on_held) == 0);
}

/* Runs all operations to their ends, through a URL with this scheme and path. */
static void run(uv_loop_t *loop, const char *url) {
  client_t *c = calloc(1, sizeof *c);
  belay_client_options_t options;
  belay_client_options_init(&options);
  options.timeout_ms = options.connect_timeout_ms = TIMEOUT_MS;
  options.reconnect_min_ms = options.reconnect_max_ms = 1;
  options.close_timeout_ms = TIMEOUT_MS;
  REQUIRE(c != NULL && belay_open(loop, NULL, &c->belay) == 0);
  REQUIRE(belay_connect(c->belay, url, &options, &c->client) == 0);
  belay_set_data(c->belay, c);
  start_counts(c, belay_string("x"));
  start_decisions(c, belay_string("x"));
  REQUIRE(uv_run(loop, UV_RUN_DEFAULT) == 0);
  REQUIRE(c->closed && c->ended == c->started);
  free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
  static const char *const schemes[] = {"redis", "redis+replicas", "redis+sentinel",
                                        "redis+cluster"};
  if (len == 0)
    return 0;
  unsigned scheme = data[0] & 3;
  char url[96];
  uv_loop_t loop;
  script_t script = {.at = data + 1, .end = data + len, .greets = (data[0] & 4) == 0};
  fake_t *fake = fake_start(&(fake_options_t){.on_command = on_command, .arg = &script});
  snprintf(url, sizeof url, "%s%s%s", schemes[scheme], strchr(fake_url(fake), ':'),
           scheme == 2 ? "/main" : "");
  REQUIRE(uv_loop_init(&loop) == 0);
  run(&loop, url);
  REQUIRE(uv_loop_close(&loop) == 0);
  fake_stop(fake);
  return 0;
}
