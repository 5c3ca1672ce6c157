/* Reads from replicas are limited to calls that permit it. Decisions about holders, limits and
 * newness go to the primary, and fail if it does not reply. */
#include "support/fixtures/limit/asks.h"
#include "support/fixtures/limit/buckets.h"
#include "support/fixtures/data/counters.h"
#include "support/fixtures/data/ids.h"
#include "support/deployments/replicas.h"

enum { OPERATIONS_MAX = 24, PATIENCE_MS = 400 };

typedef struct operation {
  belay_request_t request;
  const char *what;
  bool ended;
  int status;
} operation_t;

typedef struct handles {
  env_t *env;
  contender_t *lock, *fair;
  belay_limiter_t *limiter;
  belay_bucket_t *bucket;
  belay_dedup_t *dedup;
  belay_idempotency_t *records;
  belay_idgen_t *ids;
  belay_permission_t *permission;
  belay_session_t *session;
  belay_cache_t *cache;
  belay_counter_t *counter;
  operation_t operation[OPERATIONS_MAX];
  unsigned asked;
} handles_t;

/* ---- the ends of requests ---- */

static void record_end(belay_request_t *request, int status) {
  operation_t *operation = request->data;
  operation->ended = true;
  operation->status = status;
}

static void on_limited(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  (void)result;
  record_end(request, status);
}

static void on_bucket_state(belay_request_t *request, int status,
                            const belay_bucket_state_t *state) {
  (void)state;
  record_end(request, status);
}

static void on_verdict(belay_request_t *request, int status, belay_dedup_verdict_t verdict) {
  (void)verdict;
  record_end(request, status);
}

static void on_record(belay_request_t *request, int status,
                      const belay_idempotency_state_t *state) {
  (void)state;
  record_end(request, status);
}

static void on_id(belay_request_t *request, int status, int64_t id) {
  (void)id;
  record_end(request, status);
}

static void on_permission(belay_request_t *request, int status,
                          const belay_permission_result_t *results, size_t n) {
  (void)results, (void)n;
  record_end(request, status);
}

static void on_permits(belay_request_t *request, int status, const belay_semaphore_state_t *state) {
  (void)state;
  record_end(request, status);
}

static void on_holders(belay_request_t *request, int status,
                       const belay_semaphore_holder_t *holders, size_t n) {
  (void)holders, (void)n;
  record_end(request, status);
}

static void on_session(belay_request_t *request, int status, const belay_session_state_t *state) {
  (void)state;
  record_end(request, status);
}

static void on_changed(belay_request_t *request, int status, bool applied) {
  (void)applied;
  record_end(request, status);
}

static void on_cached(belay_request_t *request, int status, const belay_cache_result_t *result) {
  (void)result;
  record_end(request, status);
}

static void on_counted(belay_request_t *request, int status, const belay_counter_result_t *result) {
  (void)result;
  record_end(request, status);
}

/* ---- what is asked ---- */

static void build(handles_t *handles) {
  belay_client_t *client = handles->env->client;
  belay_lock_options_t fair = lock_options();
  belay_limit_t limit = bucket_limit(1000, 1000000, 1000);
  belay_bucket_options_t bucket;
  belay_dedup_options_t dedup;
  belay_idgen_options_t ids = idgen_options(BELAY_IDGEN_SEQUENCE);
  belay_permission_options_t permission;
  fair.fair = true;
  belay_bucket_options_init(&bucket);
  bucket.capacity = 10;
  belay_dedup_options_init(&dedup);
  dedup.name = belay_string("orders");
  belay_permission_options_init(&permission);
  permission.width = 4;
  handles->lock = contender_new(handles->env, "door", NULL);
  handles->fair = contender_new(handles->env, "desk", &fair);
  handles->limiter = limiter_new(handles->env, &limit, 1);
  assert_error(belay_bucket_new(client, &bucket, &handles->bucket), 0);
  assert_error(belay_dedup_new(client, &dedup, &handles->dedup), 0);
  assert_error(belay_idempotency_new(client, NULL, &handles->records), 0);
  assert_error(belay_idgen_new(client, &ids, &handles->ids), 0);
  assert_error(belay_permission_new(client, &permission, &handles->permission), 0);
  assert_error(belay_session_new(client, NULL, &handles->session), 0);
  assert_error(belay_cache_new(client, NULL, &handles->cache), 0);
  assert_error(belay_counter_new(client, NULL, &handles->counter), 0);
}

static belay_request_t *next(handles_t *handles, const char *what) {
  operation_t *operation = &handles->operation[handles->asked++];
  *operation = (operation_t){.what = what};
  operation->request = (belay_request_t){.data = operation, .timeout_ms = PATIENCE_MS * slow()};
  assert_true(handles->asked <= OPERATIONS_MAX);
  return &operation->request;
}

/* Begins it; `call` says r for its request. */
#define ASK(handles, call)                                                                         \
  do {                                                                                             \
    belay_request_t *r = next((handles), #call);                                                   \
    assert_error((call), 0);                                                                       \
  } while (0)

static void ask_all(handles_t *h) {
  static const uint64_t index = 3;
  belay_client_t *client = h->env->client;
  h->asked = 0;
  ASK(h, belay_limiter_take(h->limiter, r, belay_string("k"), 1, on_limited));
  ASK(h, belay_limiter_peek(h->limiter, r, belay_string("k"), on_limited));
  ASK(h, belay_bucket_fetch(h->bucket, r, belay_string("k"), 1, on_bucket_state));
  ASK(h, belay_bucket_read(h->bucket, r, belay_string("k"), on_bucket_state));
  ASK(h, belay_dedup_mark(h->dedup, r, belay_string("k"), belay_string("x"), on_verdict));
  ASK(h, belay_idempotency_begin(h->records, r, belay_string("k"), belay_string("f"), 60000,
                                 on_record));
  ASK(h, belay_idempotency_read(h->records, r, belay_string("k"), on_record));
  ASK(h, belay_idgen_get(h->ids, r, on_id));
  ASK(h, belay_permission_get(h->permission, r, belay_string("k"), &index, 1, on_permission));
  ASK(h, belay_semaphore_read(client, r, belay_string("pool"), on_permits));
  ASK(h, belay_semaphore_holders(client, r, belay_string("pool"), on_holders));
  ASK(h, belay_session_touch(h->session, r, belay_string("ann"), NULL, on_session));
  ASK(h, belay_session_read(h->session, r, belay_string("ann"), 1, on_session));
  ASK(h, belay_cache_put(h->cache, r, belay_string("page"), belay_string("P"), BELAY_DEFAULT,
                         on_changed));
  ASK(h, belay_cache_get(h->cache, r, belay_string("page"),
                         on_cached)); /* its option says nothing of replicas */
}

static bool all_have_ended(const handles_t *handles) {
  for (unsigned i = 0; i < handles->asked; i++)
    if (!handles->operation[i].ended)
      return false;
  return true;
}

/* All go well, or none does: the first that does not do so; NULL: there is none. */
static const operation_t *find_other(const handles_t *handles, bool well) {
  for (unsigned i = 0; i < handles->asked; i++)
    if ((handles->operation[i].status == 0) != well)
      return &handles->operation[i];
  return NULL;
}

static void expect_all(const handles_t *handles, bool well) {
  const operation_t *other = find_other(handles, well);
  if (other != NULL)
    fail_msg("%s: %s", other->what, belay_err_name(other->status));
}

/* ---- where ---- */

/* The number of reads and refused commands on the replicas. */
static int64_t asked_of_replicas(replicas_t *replicas) {
  int64_t sum = 0;
  for (unsigned i = 1; i < REPLICAS_NODES; i++) {
    server_t *replica = replicas_node(replicas, i);
    sum += server_info(replica, "stats", "keyspace_hits") +
           server_info(replica, "stats", "keyspace_misses") +
           server_info(replica, "stats", "total_error_replies");
  }
  return sum;
}

/* It may be read from, and is. */
static void expect_replica_read(handles_t *handles, replicas_t *replicas) {
  int64_t before = asked_of_replicas(replicas);
  handles->asked = 0;
  ASK(handles, belay_counter_get(handles->counter, r, belay_string("n"), on_counted));
  env_until(handles->env, all_have_ended(handles));
  expect_all(handles, true);
  assert_int_equal(asked_of_replicas(replicas), before + 1);
}

/* A busy machine may need longer than the timeout. A put value is read by the next get at the
 * latest. */
static void expect_all_to_be_answered(handles_t *handles) {
  int64_t began = clock_now();
  do {
    ask_all(handles);
    env_until(handles->env, all_have_ended(handles));
  } while (find_other(handles, true) != NULL && clock_since_ms(began) < 15000 * slow());
  expect_all(handles, true);
  assert_error(acquire(handles->lock, 10000), 0);
  assert_error(release(handles->lock), 0);
}

TEST_ON(decisions_use_the_primary, replicas, replicas_start(NULL)) {
  static handles_t handles;
  belay_client_options_t options = client_options();
  options.read_from = BELAY_READ_REPLICA;
  options.timeout_ms = PATIENCE_MS * slow();
  options.stall_timeout_ms = 60000;
  handles = (handles_t){.env = env_open_at(replicas_url(replicas), &options)};
  build(&handles);
  expect_all_to_be_answered(&handles);
  env_until(handles.env, client_stats(handles.env).connections_up >= 3);
  replicas_wait(replicas, 0);

  server_pause(replicas_node(replicas, 0));
  expect_replica_read(&handles, replicas);
  int64_t before = asked_of_replicas(replicas);
  ask_all(&handles);
  assert_error(begin_acquire(handles.lock, 0), 0);
  assert_error(begin_acquire(handles.fair, 0), 0);
  env_until(handles.env, all_have_ended(&handles));
  assert_true(outcome(handles.lock) != 0);
  assert_true(outcome(handles.fair) != 0);
  expect_all(&handles, false);
  assert_int_equal(asked_of_replicas(replicas), before);
  server_resume(replicas_node(replicas, 0));
  env_close(handles.env);
}
