/* Texts and bytes: a text whose length is 0 is a terminated string, in every function and in every option; the length of
 * bytes is exact. And an exact key needs no name. */
#include <stdio.h>

#include "support/fixtures/bed.h"

#define TEXT "text-under-test"
#define OTHER "other-text"

static struct {
  bed_t *bed;
  belay_request_t request;
  unsigned told;
  belay_active_t *active;
  belay_bucket_t *bucket;
  belay_cache_t *cache;
  belay_config_t *config;
  belay_counter_t *counter;
  belay_dedup_t *dedup;
  belay_idempotency_t *records;
  belay_latch_t *latch;
  belay_limiter_t *limiter;
  belay_permission_t *permission;
  belay_ranking_t *ranking;
  belay_session_t *session;
  belay_receipt_t receipt;
  belay_reservation_t reservation;
  belay_idempotency_token_t token;
} t;

/* ---- callbacks ------------------------------------------------------------------------------------------ */

static void over(belay_request_t *request, int status) {
  assert_ptr_equal(request, &t.request);
  assert_error(status == BELAY_EINVAL ? status : 0, 0);
  t.told++;
}

#define TELLS(name, type)                                                                          \
  static void name(belay_request_t *request, int status, type result) {                            \
    (void)result;                                                                                  \
    over(request, status);                                                                         \
  }
#define TELLS_MANY(name, type)                                                                     \
  static void name(belay_request_t *request, int status, const type *items, size_t n) {            \
    (void)items;                                                                                   \
    (void)n;                                                                                       \
    over(request, status);                                                                         \
  }

TELLS(on_bucket, const belay_bucket_state_t *)
TELLS(on_cache, const belay_cache_result_t *)
TELLS(on_change, bool)
TELLS(on_counter, const belay_counter_result_t *)
TELLS(on_verdict, belay_dedup_verdict_t)
TELLS(on_count, int64_t)
TELLS(on_held, const belay_held_t *)
TELLS(on_record, const belay_idempotency_state_t *)
TELLS(on_left, unsigned)
TELLS(on_semaphore, const belay_semaphore_state_t *)
TELLS(on_session, const belay_session_state_t *)
static void on_limiter(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  static const belay_receipt_t none;
  if (memcmp(&result->receipt, &none, sizeof none) != 0)
    t.receipt = result->receipt;
  over(request, status);
}

TELLS_MANY(on_config, belay_config_field_t)
TELLS_MANY(on_counts, int64_t)
TELLS_MANY(on_counters, belay_counter_result_t)
TELLS_MANY(on_fields, belay_counter_field_t)
TELLS_MANY(on_verdicts, belay_dedup_verdict_t)
TELLS_MANY(on_permissions, belay_permission_result_t)
TELLS_MANY(on_entries, belay_ranking_entry_t)
TELLS_MANY(on_holders, belay_semaphore_holder_t)

/* ---- the operations ------------------------------------------------------------------------------------- */

static const belay_bytes_t member = {"m", 1};
static const belay_counter_add_item_t field = {.key = OTHER, .delta = 1};
static const belay_config_field_t setting = {.name = "width", .value = "3"};
static const belay_permission_field_t one_field = {.index = 1, .value = 1};
static const uint64_t one_index = 1;
static const belay_ranking_page_t page = {.n = 1};
static const belay_ranking_around_t around = {.member = OTHER, .before = 1, .after = 1};
static const belay_ranking_score_t score = {.member = {"m", 1}, .score = 1};

#define R &t.request
/* What is asked, with each of its texts of length 0. */
#define OPERATIONS(X)                                                                              \
  X(active_archive, t.active, R, BELAY_ACTIVE_NOW, BELAY_ACTIVE_NOW, TEXT, 0, on_counts)           \
  X(bucket_fetch, t.bucket, R, TEXT, 0, 1, on_bucket)                                              \
  X(bucket_add, t.bucket, R, TEXT, 0, 1, 0, on_bucket)                                             \
  X(bucket_read, t.bucket, R, TEXT, 0, on_bucket)                                                  \
  X(bucket_delete, t.bucket, R, TEXT, 0, on_bucket)                                                \
  X(cache_put, t.cache, R, TEXT, 0, "v", 1, BELAY_DEFAULT, on_change)                              \
  X(cache_get, t.cache, R, TEXT, 0, on_cache)                                                      \
  X(cache_get_late, t.cache, R, TEXT, 0, BELAY_CACHE_LATE_FAIL, on_cache)                          \
  X(cache_touch, t.cache, R, TEXT, 0, BELAY_DEFAULT, on_change)                                    \
  X(cache_invalidate, t.cache, R, TEXT, 0, on_change)                                              \
  X(cache_invalidate_tag, t.cache, R, TEXT, 0, on_change)                                          \
  X(config_open, t.config, R, TEXT, 0, &setting, 1, on_config)                                     \
  X(config_read, t.config, R, TEXT, 0, on_config)                                                  \
  X(counter_add, t.counter, R, TEXT, 0, 1, on_counter)                                             \
  X(counter_add_bounded, t.counter, R, TEXT, 0, 1, 0, 9, on_counter)                               \
  X(counter_add_once, t.counter, R, TEXT, 0, 1, "id", 2, on_counter)                               \
  X(counter_get, t.counter, R, TEXT, 0, on_counter)                                                \
  X(counter_set, t.counter, R, TEXT, 0, 1, on_counter)                                             \
  X(counter_delete, t.counter, R, TEXT, 0, on_counter)                                             \
  X(counter_add_field, t.counter, R, TEXT, 0, OTHER, 0, 1, on_counter)                             \
  X(counter_add_fields, t.counter, R, TEXT, 0, &field, 1, on_counters)                             \
  X(counter_get_field, t.counter, R, TEXT, 0, OTHER, 0, on_counter)                                \
  X(counter_get_fields, t.counter, R, TEXT, 0, &member, 1, on_counters)                            \
  X(counter_get_all, t.counter, R, TEXT, 0, 9, on_fields)                                          \
  X(counter_delete_fields, t.counter, R, TEXT, 0, &member, 1, on_counter)                          \
  X(dedup_mark, t.dedup, R, TEXT, 0, "i", 1, on_verdict)                                           \
  X(dedup_mark_many, t.dedup, R, TEXT, 0, &member, 1, on_verdicts)                                 \
  X(dedup_mark_once, t.dedup, R, TEXT, 0, &member, 1, "id", 2, on_verdicts)                        \
  X(dedup_seen, t.dedup, R, TEXT, 0, "i", 1, on_verdict)                                           \
  X(dedup_seen_many, t.dedup, R, TEXT, 0, &member, 1, on_verdicts)                                 \
  X(dedup_forget, t.dedup, R, TEXT, 0, &member, 1, on_count)                                       \
  X(dedup_count, t.dedup, R, TEXT, 0, on_count)                                                    \
  X(dedup_store, t.dedup, R, BELAY_DEDUP_UNION, &member, 1, TEXT, 0, on_count)                     \
  X(dedup_clear, t.dedup, R, TEXT, 0, on_count)                                                    \
  X(held_read, t.bed->client, R, BELAY_HELD_LOCK, TEXT, 0, on_held)                                \
  X(idempotency_begin, t.records, R, TEXT, 0, NULL, 0, 0, on_record)                               \
  X(idempotency_extend, t.records, R, TEXT, 0, &t.token, 0, on_record)                             \
  X(idempotency_finish, t.records, R, TEXT, 0, &t.token, "r", 1, 0, on_record)                     \
  X(idempotency_abandon, t.records, R, TEXT, 0, &t.token, on_record)                               \
  X(idempotency_read, t.records, R, TEXT, 0, on_record)                                            \
  X(idempotency_forget, t.records, R, TEXT, 0, on_record)                                          \
  X(latch_count_down, t.latch, R, TEXT, 0, on_left)                                                \
  X(limiter_take, t.limiter, R, TEXT, 0, 1, on_limiter)                                            \
  X(limiter_peek, t.limiter, R, TEXT, 0, on_limiter)                                               \
  X(limiter_penalty, t.limiter, R, TEXT, 0, 1, on_limiter)                                         \
  X(limiter_refund, t.limiter, R, TEXT, 0, &t.receipt, 1, on_limiter)                              \
  X(limiter_ban, t.limiter, R, TEXT, 0, 1000, on_limiter)                                          \
  X(limiter_reset, t.limiter, R, TEXT, 0, on_limiter)                                              \
  X(limiter_reserve, t.limiter, R, TEXT, 0, 1, 0, on_limiter)                                      \
  X(limiter_cancel_reservation, t.limiter, R, TEXT, 0, &t.reservation, on_limiter)                 \
  X(limiter_wait, t.limiter, R, TEXT, 0, 1, 0, on_limiter)                                         \
  X(permission_get, t.permission, R, TEXT, 0, &one_index, 1, on_permissions)                       \
  X(permission_has, t.permission, R, TEXT, 0, &one_field, 1, on_permissions)                       \
  X(permission_set, t.permission, R, TEXT, 0, &one_field, 1, on_permissions)                       \
  X(permission_grant, t.permission, R, TEXT, 0, &one_field, 1, on_permissions)                     \
  X(permission_revoke, t.permission, R, TEXT, 0, &one_field, 1, on_permissions)                    \
  X(permission_compare_and_set, t.permission, R, TEXT, 0, 1, 0, 1, on_permissions)                 \
  X(permission_clear, t.permission, R, TEXT, 0, on_permissions)                                    \
  X(ranking_submit, t.ranking, R, TEXT, 0, BELAY_RANKING_SET, &score, 1, on_entries)               \
  X(ranking_find, t.ranking, R, TEXT, 0, &member, 1, on_entries)                                   \
  X(ranking_top, t.ranking, R, TEXT, 0, 1, on_entries)                                             \
  X(ranking_page, t.ranking, R, TEXT, 0, &page, on_entries)                                        \
  X(ranking_around, t.ranking, R, TEXT, 0, &around, on_entries)                                    \
  X(ranking_count, t.ranking, R, TEXT, 0, on_count)                                                \
  X(ranking_count_by_score, t.ranking, R, TEXT, 0, 0, 9, on_count)                                 \
  X(ranking_remove, t.ranking, R, TEXT, 0, &member, 1, on_count)                                   \
  X(ranking_trim, t.ranking, R, TEXT, 0, 1, on_count)                                              \
  X(ranking_clear, t.ranking, R, TEXT, 0, on_count)                                                \
  X(semaphore_read, t.bed->client, R, TEXT, 0, on_semaphore)                                       \
  X(semaphore_holders, t.bed->client, R, TEXT, 0, on_holders)                                      \
  X(semaphore_resize, t.bed->client, R, TEXT, 0, 1, on_semaphore)                                  \
  X(session_touch, t.session, R, TEXT, 0, NULL, on_session)                                        \
  X(session_exists, t.session, R, TEXT, 0, on_session)                                             \
  X(session_read, t.session, R, TEXT, 0, 1, on_session)                                            \
  X(session_end, t.session, R, TEXT, 0, NULL, 0, on_session)                                       \
  X(topic_publish, t.bed->client, R, TEXT, 0, "m", 1, on_count)

#define FUNCTION(name, ...)                                                                        \
  static int run_##name(void) {                                                                    \
    return belay_##name(__VA_ARGS__);                                                              \
  }
OPERATIONS(FUNCTION)

#define WORDS(name, ...) {#name, run_##name, #__VA_ARGS__},

static const struct {
  const char *name;
  int (*run)(void);
  const char *arguments;
} operations[] = {OPERATIONS(WORDS)};

/* ---- what the server was asked -------------------------------------------------------------------------- */

static bool has(const resp_t *reply, const char *text) {
  if (reply->type == RESP_STRING && strstr(reply->str, text) != NULL)
    return true;
  for (size_t i = 0; reply->type == RESP_ARRAY && i < reply->count; i++)
    if (has(reply->items[i], text))
      return true;
  return false;
}

/* Since it last forgot. */
static bool was_asked(const char *text) {
  return has(server_ask(t.bed->server, "SLOWLOG", "GET", "1000", NULL), text);
}

static void forget(void) {
  server_do(t.bed->server, "SLOWLOG", "RESET", NULL);
}

static void open_bed(void) {
  static const server_options_t options = {
      .arguments = {"--slowlog-log-slower-than", "0", "--slowlog-max-len", "1000", NULL}};
  if (deployment_is_cluster())
    skip(); /* whose nodes have a log each */
  memset(&t, 0, sizeof t);
  t.bed = bed_open_with(server_start(&options), NULL);
}

/* ---- the handles ---------------------------------------------------------------------------------------- */

static void on_load(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  (void)arg;
  assert_int_equal(key_len, strlen(TEXT));
  assert_memory_equal(key, TEXT, key_len);
  assert_error(belay_cache_load_done(load, "v", 1), 0);
}

#define INIT(type, variable)                                                                       \
  belay_##type##_options_t variable;                                                               \
  belay_##type##_options_init(&variable)

static const belay_limit_t limit = {
    .kind = BELAY_LIMIT_BUCKET, .count = 10, .period_us = 1000000, .burst = 20};

static void make_handles(const char *name) {
  belay_client_t *client = t.bed->client;
  INIT(active, active);
  INIT(bucket, bucket);
  INIT(cache, cache);
  INIT(config, config);
  INIT(counter, counter);
  INIT(dedup, dedup);
  INIT(idempotency, records);
  INIT(limiter, limiter);
  INIT(permission, permission);
  INIT(ranking, ranking);
  INIT(session, session);
  active.name = bucket.name = cache.name = config.name = counter.name = dedup.name = records.name =
      name;
  limiter.name = permission.name = ranking.name = session.name = name;
  bucket.capacity = 9;
  cache.load = on_load;
  limiter.limits = &limit;
  limiter.limits_len = 1;
  permission.width = 4;
  assert_error(belay_active_new(client, &active, &t.active), 0);
  assert_error(belay_bucket_new(client, &bucket, &t.bucket), 0);
  assert_error(belay_cache_new(client, &cache, &t.cache), 0);
  assert_error(belay_config_new(client, &config, &t.config), 0);
  assert_error(belay_counter_new(client, &counter, &t.counter), 0);
  assert_error(belay_dedup_new(client, &dedup, &t.dedup), 0);
  assert_error(belay_idempotency_new(client, &records, &t.records), 0);
  assert_error(belay_latch_new(client, name, 0, NULL, &t.latch), 0);
  assert_error(belay_limiter_new(client, &limiter, &t.limiter), 0);
  assert_error(belay_permission_new(client, &permission, &t.permission), 0);
  assert_error(belay_ranking_new(client, &ranking, &t.ranking), 0);
  assert_error(belay_session_new(client, &session, &t.session), 0);
}

/* ---- tests ---------------------------------------------------------------------------------------------- */

TEST(a_text_of_length_0_is_terminated_in_every_operation) {
  open_bed();
  make_handles("handle-name");
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
    bool other = strstr(operations[i].arguments, "OTHER") != NULL ||
                 strstr(operations[i].arguments, "&field") != NULL ||
                 strstr(operations[i].arguments, "&around") != NULL;
    unsigned told = t.told;
    t.request = (belay_request_t){.data = NULL};
    forget();
    int error = operations[i].run();
    if (error != 0)
      fail_msg("belay_%s(): %s, %s", operations[i].name, belay_err_name(error),
               belay_detail(t.bed->belay));
    bed_until(t.bed, t.told == told + 1);
    if (!was_asked(TEXT) || (other && !was_asked(OTHER)))
      fail_msg("belay_%s(): the text did not reach the server", operations[i].name);
  }
  bed_close(t.bed);
}

/* Each kind of handle asks about the same key, and its name must be in it. */
TEST(the_name_of_a_handle_of_length_0_is_terminated) {
  static const char *const asks[] = {"active_archive",   "bucket_fetch",  "cache_put",
                                     "config_open",      "counter_add",   "dedup_mark",
                                     "idempotency_read", "limiter_take",  "permission_set",
                                     "ranking_submit",   "session_touch", "latch_count_down"};
  open_bed();
  make_handles("handle-name");
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
    for (size_t j = 0; j < sizeof asks / sizeof *asks; j++) {
      if (strcmp(asks[j], operations[i].name) != 0)
        continue;
      unsigned told = t.told;
      t.request = (belay_request_t){.data = NULL};
      forget();
      assert_error(operations[i].run(), 0);
      bed_until(t.bed, t.told == told + 1);
      if (!was_asked("handle-name"))
        fail_msg("belay_%s(): the name of the handle did not reach the server", asks[j]);
    }
  bed_close(t.bed);
}

TEST(limiters_of_two_names_do_not_share_a_key) {
  open_bed();
  belay_client_t *client = t.bed->client;
  belay_limiter_t *limiters[2];
  static const char *const names[] = {"one", "two"};
  for (int i = 0; i < 2; i++) {
    INIT(limiter, options);
    options.name = names[i];
    options.limits = &limit;
    options.limits_len = 1;
    assert_error(belay_limiter_new(client, &options, &limiters[i]), 0);
    t.request = (belay_request_t){.data = NULL};
    assert_error(belay_limiter_take(limiters[i], R, "k", 0, 1, on_limiter), 0);
    bed_until(t.bed, t.told == (unsigned)i + 1);
  }
  assert_int_equal(server_integer(t.bed->server, "EXISTS", "belay::limit::one::{k}",
                                  "belay::limit::two::{k}", NULL),
                   2);
  bed_close(t.bed);
}

/* Those that answer at once, or later than they return. */
TEST(a_text_of_length_0_is_terminated_in_what_needs_no_request) {
  open_bed();
  make_handles("handle-name");
  belay_limiter_result_t limited;
  belay_cache_result_t cached;
  belay_refiller_t *refiller;
  INIT(refiller, o);
  assert_error(belay_limiter_try(t.limiter, TEXT, 0, 1, &limited), BELAY_EAGAIN);
  assert_error(belay_cache_peek(t.cache, TEXT, 0, &cached), BELAY_EAGAIN);
  assert_error(belay_counter_add_local(t.counter, TEXT, 0, 1), 0);
  bed_until(t.bed, was_asked("counter::handle-name::{" TEXT "}"));
  assert_error(belay_cache_pin(t.cache, TEXT, 0), 0);
  bed_until(t.bed, was_asked("cache::handle-name::{" TEXT "}"));
  assert_error(belay_cache_unpin(t.cache, TEXT, strlen(TEXT)), 0);
  assert_error(belay_cache_unpin(t.cache, TEXT, 0), BELAY_ESTATE);
  o.name = "refiller-name";
  assert_error(belay_refiller_new(t.bucket, &o, &refiller), 0);
  assert_error(belay_refiller_add(refiller, TEXT, 0, 1), 0);
  bed_until(t.bed, was_asked("refiller-name") && was_asked("bucket::handle-name::{" TEXT "}"));
  assert_error(belay_refiller_remove(refiller, TEXT, strlen(TEXT)), 0);
  assert_error(belay_refiller_close(refiller, NULL), 0);
  bed_close(t.bed);
}

static void expect_key(belay_lock_t *lock, const char *expected) {
  size_t len;
  const char *key = belay_lock_key(lock, &len);
  assert_int_equal(len, strlen(expected));
  assert_memory_equal(key, expected, len);
}

static void on_message(belay_subscription_t *subscription, belay_topic_event_t event,
                       const void *message, size_t len, int status) {
  (void)subscription;
  (void)event;
  (void)message;
  (void)len;
  (void)status;
}

TEST(a_name_of_length_0_is_terminated_in_every_constructor) {
  open_bed();
  belay_client_t *client = t.bed->client;
  belay_lock_t *lock;
  belay_election_t *election;
  belay_barrier_t *barrier;
  belay_multilock_t *many;
  belay_idgen_t *ids;
  belay_subscription_t *subscription;
  const belay_multilock_name_t name = {client, TEXT, 0};
  const char *const none[] = {"", NULL};
  assert_error(belay_lock_new(client, TEXT, 0, NULL, &lock), 0);
  expect_key(lock, "belay::lock::{" TEXT "}");
  assert_error(belay_rwlock_new(&client, 1, TEXT, 0, BELAY_RWLOCK_READ, NULL, &lock), 0);
  expect_key(lock, "belay::rwlock::{" TEXT "}");
  assert_error(belay_semaphore_new(&client, 1, TEXT, 0, 2, 1, NULL, &lock), 0);
  expect_key(lock, "belay::semaphore::{" TEXT "}");
  assert_error(belay_election_new(&client, 1, TEXT, 0, NULL, &election), 0);
  assert_error(belay_barrier_new(client, TEXT, 0, NULL, &barrier), 0);
  assert_error(belay_multilock_new(&name, 1, NULL, NULL, &many), 0);
  assert_error(belay_topic_subscribe(client, TEXT, 0, on_message, NULL, &subscription), 0);
  INIT(idgen, sequence);
  sequence.name = TEXT;
  sequence.mode = BELAY_IDGEN_SEQUENCE;
  sequence.kind = OTHER;
  assert_error(belay_idgen_new(client, &sequence, &ids), 0);
  for (int i = 0; i < 2; i++) { /* an empty text stays one, and there is no name of that */
    assert_error(belay_lock_new(client, none[i], 0, NULL, &lock), BELAY_EINVAL);
    assert_error(belay_barrier_new(client, none[i], 0, NULL, &barrier), BELAY_EINVAL);
    assert_error(belay_election_new(&client, 1, none[i], 0, NULL, &election), BELAY_EINVAL);
  }
  belay_fence_t fence = {0};
  assert_error(belay_fence_guard(&fence, 7, TEXT, 0), BELAY_EINVAL); /* bytes, not a text */
  assert_int_equal(fence.token_len, 0);
  assert_error(belay_fence_guard(&fence, 7, TEXT, strlen(TEXT)), 0);
  bed_close(t.bed);
}

TEST(a_text_without_an_end_is_too_long) {
  static char text[8192];
  belay_lock_t *lock;
  open_bed();
  memset(text, 'x', sizeof text);
  assert_error(belay_lock_new(t.bed->client, text, 0, NULL, &lock), BELAY_EINVAL);
  bed_close(t.bed);
}

/* ---- exact keys ------------------------------------------------------------------------------------------ */

BED_TEST(an_exact_key_needs_no_name) {
  belay_lock_options_t options = lock_options();
  belay_lock_t *exact, *named;
  options.key = "somebody's:key";
  assert_error(belay_lock_new(bed->client, NULL, 0, &options, &exact), 0);
  expect_key(exact, options.key);
  assert_error(belay_lock_new(bed->client, "not used", 0, &options, &named), 0);
  expect_key(named, options.key);
  assert_error(belay_lock_new(bed->client, NULL, 3, &options, &named), BELAY_EINVAL);
  options.key = "";
  assert_error(belay_lock_new(bed->client, NULL, 0, &options, &named), BELAY_EINVAL);
  options.key = NULL;
  assert_error(belay_lock_new(bed->client, NULL, 0, &options, &named), BELAY_EINVAL);
}

TEST(exact_keys_of_several_servers_need_no_name) {
  bed_t *bed = bed_open(NULL);
  belay_client_t *clients[3] = {bed->client};
  belay_lock_options_t options = lock_options();
  belay_lock_t *lock;
  if (deployment_is_cluster()) {
    bed_close(bed);
    skip(); /* where there is no quarantine */
  }
  for (int i = 1; i < 3; i++)
    clients[i] = bed_connect(bed, server_url(bed->server), NULL);
  options.key = "somebody's:key";
  assert_error(belay_redlock_new(clients, 3, NULL, 0, &options, &lock), 0);
  expect_key(lock, options.key);
  bed_close(bed);
}
