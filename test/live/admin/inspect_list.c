/* All that is held in a namespace is listed, and nothing else. */
#include <stdio.h>

#include "support/fixtures/admin/sweeps.h"
#include "support/fixtures/admin/views.h"

enum { LISTED_MAX = 4096 };

/* The reported leases: kind and name as text, and the first one as a whole. */
typedef struct listing {
  unsigned n;
  char word[LISTED_MAX][64];
  size_t holders[LISTED_MAX];
  unsigned stop_at; /* number of listed objects after which the run ends; 0: never */
  bool closes;      /* by a close */
  view_t first;
} listing_t;

static listing_t listing;

static void on_held(belay_sweep_t *sweep, const belay_held_t *held) {
  sweeper_t *sweeper = belay_sweep_data(sweep);
  sweeper->env->wrong += sweeper->done == sweeper->begun || sweeper->env->inside > 0;
  assert_true(listing.n < LISTED_MAX);
  if (listing.n == 0)
    view_copy(&listing.first, held);
  assert_true(held->holders_len > 0 && held->holders_len <= BELAY_HELD_LISTED_MAX);
  listing.holders[listing.n] = held->holders_count;
  snprintf(listing.word[listing.n++], sizeof *listing.word, "%s %s",
           belay_held_kind_name(held->kind), held->name);
  if (listing.n == listing.stop_at)
    assert_error(listing.closes ? begin_close_sweeper(sweeper) : belay_sweep_cancel(sweep), 0);
}

static belay_sweep_options_t list_options(void) {
  belay_sweep_options_t options = sweep_options("", false);
  options.pattern = belay_string(NULL);
  options.on_held = on_held;
  listing = (listing_t){0};
  return options;
}

static unsigned times_listed(const char *word) {
  unsigned n = 0;
  for (unsigned i = 0; i < listing.n; i++)
    n += strcmp(listing.word[i], word) == 0;
  return n;
}

static size_t holders_of(const char *word) {
  for (unsigned i = 0; i < listing.n; i++)
    if (strcmp(listing.word[i], word) == 0)
      return listing.holders[i];
  return 0;
}

static void make_locks(server_t *server, unsigned n) {
  char key[64];
  for (unsigned i = 1; i <= n; i++) {
    snprintf(key, sizeof key, "belay::lock::{u%u}", i);
    server_do(server, "SET", key, "0123456789012345678901234567890123456789:db", "PX", "600000",
              NULL);
  }
}

static void all_are_listed(unsigned n) {
  char word[64];
  for (unsigned i = 1; i <= n; i++) {
    snprintf(word, sizeof word, "lock u%u", i);
    if (times_listed(word) == 0)
      fail_msg("%s is not listed", word);
  }
}

static void hold(env_t *env, belay_held_kind_t kind, const char *name, bool writes) {
  belay_lock_options_t o = with_ttl(60000);
  contender_t *c = contender_blank(env, &o);
  belay_client_t **client = &env->client;
  size_t len = strlen(name);
  int error =
      kind == BELAY_HELD_LOCK ? belay_lock_new(*client, belay_bytes(name, len), &o, &c->lock)
      : kind == BELAY_HELD_SEMAPHORE
          ? belay_semaphore_new(client, 1, belay_bytes(name, len),
                                &(belay_semaphore_size_t){.limit = 100, .permits = 1}, &o, &c->lock)
          : belay_rwlock_new(client, 1, belay_bytes(name, len),
                             writes ? BELAY_RWLOCK_WRITE : BELAY_RWLOCK_READ, &o, &c->lock);
  assert_error(error, 0);
  assert_error(try_lock(c), 0);
}

static void make_noise(server_t *server) {
  static const char *const keys[] = {"belay::lock::{gone}::fence", "belay::lock::{}",
                                     "belay::lock::{a}b",          "belay::locks::{a}",
                                     "belay::lock::x::{a}",        "belay::sub::lock::{a}",
                                     "other::lock::{a}",           "belay::lock::a",
                                     "belay::limit::login::{a}",   "belay::lock::{a"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    server_do(server, "SET", keys[i], "1", NULL);
  server_do(server, "RPUSH", "belay::lock::{wrong}", "1", NULL);
  server_do(server, "SET", "belay::semaphore::{wrong}", "1", NULL);
  server_do(server, "ZADD", "belay::semaphore::{over}", "1", "a token that has run out", NULL);
}

ENV_TEST_OF(list_of_all_kinds, o.owner = "db7:4711") {
  make_noise(env->server);
  hold(env, BELAY_HELD_LOCK, "a{b}::c", false);
  hold(env, BELAY_HELD_RWLOCK, "read", false);
  hold(env, BELAY_HELD_RWLOCK, "read", false);
  hold(env, BELAY_HELD_RWLOCK, "written", true);
  for (int i = 0; i < 20; i++)
    hold(env, BELAY_HELD_SEMAPHORE, "pool", false);
  belay_sweep_options_t options = list_options();
  (void)sweep_once(env, &options);
  assert_int_equal(listing.n, 4);
  assert_int_equal(holders_of("lock a{b}::c"), 1);
  assert_int_equal(holders_of("rwlock read"), 2);
  assert_int_equal(holders_of("rwlock written"), 1);
  assert_int_equal(holders_of("semaphore pool"), 20); /* of which some are listed */
  options = list_options();
  options.pattern = belay_string("lock::*");
  (void)sweep_once(env, &options);
  assert_int_equal(listing.n, 1);
  assert_holder(&listing.first, 0, "db7:4711", 60000);
  assert_int_equal(server_calls(env->server, "keys"), 0);
}

/* Values of other programs are read as far as possible. One such key does not spoil the list. */
static void make_nonsense(server_t *server) {
  char large[40001], digits[401];
  memset(large, 'x', sizeof large - 1);
  memset(digits, '9', sizeof digits - 1);
  large[sizeof large - 1] = digits[sizeof digits - 1] = '\0';
  memcpy(digits + 390, " 1", 3);
  server_do(server, "ZADD", "belay::semaphore::{minus}", "9e15", "t", NULL);
  server_do(server, "HSET", "belay::semaphore::{minus}::permits", "t", "-5", "limit", "-7", "used",
            "-9", NULL);
  server_do(server, "ZADD", "belay::semaphore::{ever}", "inf", "t", "-inf", "u", NULL);
  server_do(server, "HSET", "belay::semaphore::{ever}::permits", "t", "1e300", "limit", "inf",
            "used", "1e300", "u", "inf", NULL);
  server_do(server, "ZADD", "belay::semaphore::{none}", "inf", "t", NULL);
  server_do(server, "HSET", "belay::semaphore::{none}::permits", "t", "nan", "limit", "x", "used",
            "nan", NULL);
  server_do(server, "ZADD", "belay::semaphore::{large}", "9e15", large, NULL);
  large[40000 - 1] = 'y';
  server_do(server, "ZADD", "belay::semaphore::{large}", "9e15", large, NULL);
  server_do(server, "ZADD", "belay::rwlock::{ever}::readers", "inf", "t", "9e15", large, NULL);
  server_do(server, "HSET", "belay::rwlock::{ever}::fence", "number", large, NULL);
  server_do(server, "HSET", "belay::lock::{ever}::holds", "owner", "o", "t", digits, large, digits,
            NULL);
  server_do(server, "HSET", "belay::lock::{ever}::fence", "number", large, NULL);
  server_do(server, "SET", "belay::lock::{ever}", "o", NULL);
}

ENV_TEST_OF(list_with_foreign_values, o.max_reply = o.max_bytes = 65536) {
  static view_t view;
  make_nonsense(env->server);
  belay_sweep_options_t options = list_options();
  (void)sweep_once(env, &options);
  assert_int_equal(listing.n, 6);
  assert_int_equal(holders_of("semaphore minus"), 1);
  assert_int_equal(holders_of("semaphore ever"), 1);
  assert_int_equal(holders_of("semaphore none"), 1);
  assert_int_equal(holders_of("semaphore large"), 2);
  assert_int_equal(holders_of("rwlock ever"), 2);
  assert_int_equal(holders_of("lock ever"), 2);
  assert_error(view_held(env, BELAY_HELD_SEMAPHORE, "minus", &view), 0);
  assert_true(view.held.limit == 0 && view.held.used == 0);
  assert_true(view.holders[0].permits == 0 && view.holders[0].remaining_ms > 0);
  assert_error(view_held(env, BELAY_HELD_SEMAPHORE, "ever", &view), 0);
  assert_true(view.held.limit == UINT32_MAX && view.held.used == 0);
  assert_true(view.holders[0].permits == UINT32_MAX);
  assert_true(view.holders[0].remaining_ms == INT64_C(1) << 53);
  assert_error(view_held(env, BELAY_HELD_SEMAPHORE, "none", &view), 0);
  assert_true(view.held.limit == 0 && view.held.used == 0 && view.holders[0].permits == 0);
  assert_error(view_held(env, BELAY_HELD_LOCK, "ever", &view), 0);
  assert_true(view.held.fence == 0 && view.holders[0].remaining_ms == INT64_C(1) << 53);
  assert_int_equal(client_stats(env).drops, 0);
}

ENV_TEST(empty_list) {
  make_noise(env->server);
  belay_sweep_options_t options = list_options();
  (void)sweep_once(env, &options);
  assert_int_equal(listing.n, 0);
}

ENV_TEST(list_of_many) {
  make_locks(env->server, 1500);
  make_keys(env->server, "belay::session::{u", 3000);
  belay_sweep_options_t options = list_options();
  (void)sweep_once(env, &options);
  all_are_listed(1500);
  assert_between(listing.n, 1500, 1700);
}

/* Keys whose reply came before the connection ended are reported once after the retry. */
static void cut(sweeper_t *sweeper, sweeper_event_t event) {
  if (event == SWEEPER_KEYS && sweeper->pages % 3 == 1)
    server_do(sweeper->env->server, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
}

ENV_TEST(list_with_lost_connections) {
  make_locks(env->server, 900);
  belay_sweep_options_t options = list_options();
  options.batch = 100;
  sweeper_t *sweeper = sweeper_new(env, env->client, &options);
  sweeper->then = cut;
  expect_sweep(sweeper, 0);
  all_are_listed(900);
  assert_true(client_stats(env).drops > 0);
}

ENV_TEST(cancel_in_any_callback) {
  make_locks(env->server, 300);
  for (unsigned at = 1; at <= 300; at += 60)
    for (int closes = 0; closes < 2; closes++) {
      belay_sweep_options_t options = list_options();
      listing.stop_at = at;
      listing.closes = closes == 1;
      sweeper_t *sweeper = sweeper_new(env, env->client, &options);
      expect_sweep(sweeper, BELAY_ECANCELED);
      assert_int_equal(listing.n, at);
      if (closes == 0)
        close_sweeper(sweeper);
    }
}

ENV_TEST(options_are_checked) {
  belay_sweep_t *out;
  belay_sweep_options_t options = list_options();
  options.remove = true;
  assert_error(belay_sweep_new(env->client, &options, &out), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "remove: not with on_held");
}
