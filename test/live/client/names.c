/* Names are bytes with a length; and a lock with an exact key needs no name. */
#include "support/fixtures/bed.h"

static void expect_key(belay_lock_t *lock, belay_bytes_t expected) {
  size_t len;
  const char *key = belay_lock_key(lock, &len);
  assert_int_equal(len, expected.len);
  assert_memory_equal(key, expected.data, len);
}

/* The length is exact: a byte behind the name is not read, and a 0 in it is escaped as other bytes are. */
BED_TEST(names_have_exact_lengths) {
  belay_lock_t *lock;
  assert_error(belay_lock_new(bed->client, belay_bytes("door!", 4), NULL, &lock), 0);
  expect_key(lock, belay_string("belay::lock::{door}"));
  assert_error(belay_lock_new(bed->client, belay_bytes("a\0b", 3), NULL, &lock), 0);
  expect_key(lock, belay_string("belay::lock::{a%00b}"));
}

BED_TEST(an_empty_name_is_refused) {
  const belay_bytes_t none[] = {belay_string(""), belay_string(NULL), {NULL, 3}};
  belay_lock_t *lock;
  belay_barrier_t *barrier;
  belay_election_t *election;
  belay_subscription_t *subscription;
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    assert_error(belay_lock_new(bed->client, none[i], NULL, &lock), BELAY_EINVAL);
    assert_error(belay_barrier_new(bed->client, none[i], NULL, &barrier), BELAY_EINVAL);
    assert_error(belay_election_new(&bed->client, 1, none[i], NULL, &election), BELAY_EINVAL);
    assert_error(belay_topic_subscribe(bed->client, none[i], NULL, NULL, &subscription),
                 BELAY_EINVAL);
  }
}

BED_TEST(a_fence_takes_no_empty_token) {
  belay_fence_t fence = {0};
  (void)bed;
  assert_error(belay_fence_guard(&fence, 7, belay_bytes("token", 0)), BELAY_EINVAL);
  assert_int_equal(fence.token_len, 0);
  assert_error(belay_fence_guard(&fence, 7, belay_string("token")), 0);
}

static void on_taken(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  assert_error(status, 0);
  assert_int_equal(result->verdict, BELAY_ALLOWED);
  ++*(unsigned *)request->data;
}

BED_TEST(limiters_of_two_names_do_not_share_a_key) {
  static const char *const names[] = {"one", "two"};
  const belay_limit_t limit = {.kind = BELAY_LIMIT_FIXED, .count = 1, .period_us = 60000000};
  unsigned taken = 0;
  for (unsigned i = 0; i < 2; i++) {
    belay_limiter_options_t options;
    belay_limiter_t *limiter;
    belay_request_t request = {.data = &taken};
    belay_limiter_options_init(&options);
    options.name = belay_string(names[i]);
    options.limits = &limit;
    options.limits_len = 1;
    assert_error(belay_limiter_new(bed->client, &options, &limiter), 0);
    assert_error(belay_limiter_take(limiter, &request, belay_string("k"), 1, on_taken), 0);
    bed_until(bed, taken == i + 1);
  }
  assert_int_equal(server_integer(bed->server, "EXISTS", "belay::limit::one::{k}",
                                  "belay::limit::two::{k}", NULL),
                   2);
}

BED_TEST(an_exact_key_needs_no_name) {
  belay_lock_options_t options = lock_options();
  belay_lock_t *exact, *named;
  options.key = belay_string("somebody's:key");
  assert_error(belay_lock_new(bed->client, belay_string(NULL), &options, &exact), 0);
  expect_key(exact, options.key);
  assert_error(belay_lock_new(bed->client, belay_string("not used"), &options, &named), 0);
  expect_key(named, options.key);
  assert_error(belay_lock_new(bed->client, belay_bytes(NULL, 3), &options, &named), BELAY_EINVAL);
  options.key = belay_string("");
  assert_error(belay_lock_new(bed->client, belay_string(NULL), &options, &named), BELAY_EINVAL);
  options.key = belay_string(NULL);
  assert_error(belay_lock_new(bed->client, belay_string(NULL), &options, &named), BELAY_EINVAL);
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
  options.key = belay_string("somebody's:key");
  assert_error(belay_redlock_new(clients, 3, belay_string(NULL), &options, &lock), 0);
  expect_key(lock, options.key);
  bed_close(bed);
}
