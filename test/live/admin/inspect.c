/* Held objects are listed exactly, and a break removes the listed holders only. */
#include <stdio.h>

#include "support/fixtures/admin/views.h"

#define TTL INT64_C(60000)

static view_t view, other;

/* Asks again and again. */
#define until(env, condition)                                                                      \
  do {                                                                                             \
    int rounds_ = 0;                                                                               \
    while (!(condition)) {                                                                         \
      assert_true(rounds_++ < 10000);                                                              \
      env_run_for(env, 5);                                                                         \
    }                                                                                              \
  } while (0)

#define OWNED_TEST(name) TEST_IN(name, env, open_env("me"))

static env_t *open_env(const char *owner) {
  belay_client_options_t options = client_options();
  options.owner = owner;
  return env_open(&options);
}

/* Read an object that has n holders. */
static void expect_view(env_t *env, belay_held_kind_t kind, const char *name, view_t *out,
                        size_t n) {
  assert_error(view_held(env, kind, name, out), 0);
  assert_int_equal(out->held.holders_count, n);
}

/* Break the holders of the view. */
static belay_broken_t expect_broken(env_t *env, size_t removed, size_t missed, size_t others) {
  belay_broken_t broken;
  assert_error(break_held(env, &view.held, &broken), 0);
  assert_int_equal(broken.removed, removed);
  assert_int_equal(broken.missed, missed);
  assert_int_equal(broken.others, others);
  return broken;
}

static contender_t *held_by(contender_t *c) {
  assert_error(try_lock(c), 0);
  return c;
}

static contender_t *rw(env_t *env, belay_rwlock_mode_t mode, int64_t ttl) {
  belay_lock_options_t o = with_ttl(ttl);
  contender_t *c = contender_blank(env, &o);
  assert_error(belay_rwlock_new(&env->client, 1, belay_string("book"), mode, &o, &c->lock), 0);
  return c;
}

static contender_t *permits(env_t *env, unsigned n, int64_t ttl) {
  belay_lock_options_t o = with_ttl(ttl);
  contender_t *c = contender_blank(env, &o);
  assert_error(belay_semaphore_new(&env->client, 1, belay_string("pool"),
                                   &(belay_semaphore_size_t){.limit = 5, .permits = n}, &o,
                                   &c->lock),
               0);
  return c;
}

TEST_IN(a_lock, env, open_env("db7:4711")) {
  belay_lock_options_t options = with_ttl(TTL);
  assert_error(view_held(env, BELAY_HELD_LOCK, "a{b}::c", &view), 0);
  assert_string_equal(view.held.name, "a{b}::c");
  assert_int_equal(view.held.holders_count, 0);
  assert_int_equal(view.held.fence, 0);
  contender_t *c = held_by(contender_new(env, "a{b}::c", &options));
  assert_error(view_held(env, BELAY_HELD_LOCK, "a{b}::c", &view), 0);
  assert_int_equal(view.held.kind, BELAY_HELD_LOCK);
  assert_string_equal(view.held.name, "a{b}::c");
  assert_int_equal(view.held.holders_count, 1);
  assert_holder(&view, 0, "db7:4711", TTL);
  assert_int_equal(view.held.holders[0].permits, 1);
  assert_false(view.held.holders[0].writes);
  assert_null(view.held.owner);
  uint64_t mark = view.held.holders[0].mark;
  assert_error(release(c), 0);
  held_by(c);
  assert_error(view_held(env, BELAY_HELD_LOCK, "a{b}::c", &view), 0);
  assert_true(view.held.holders[0].mark != mark); /* another hold, of the same holder */
  expect_view(env, BELAY_HELD_RWLOCK, "a{b}::c", &view, 0);
}

OWNED_TEST(fencing_number_after_release) {
  belay_lock_options_t options = with_ttl(TTL);
  options.fencing = true;
  contender_t *c = held_by(contender_new(env, "n", &options));
  uint64_t fence = belay_lock_fence(c->lock);
  assert_error(view_held(env, BELAY_HELD_LOCK, "n", &view), 0);
  assert_true(fence > 0 && view.held.fence == fence);
  assert_error(release(c), 0);
  assert_error(view_held(env, BELAY_HELD_LOCK, "n", &view), 0);
  assert_true(view.held.holders_count == 0 && view.held.fence == fence);
}

OWNED_TEST(foreign_tokens) {
  static const char key[] = "belay::lock::{n}";
  char large[601];
  memset(large, 'x', sizeof large - 1);
  large[sizeof large - 1] = '\0';
  const char *tokens[] = {"another's token",
                          large,
                          "",
                          "0123456789012345678901234567890123456789:a\nb",
                          "0123456789012345678901234567890123456789",
                          "012345678901234567890123456789012345678G:me"};
  for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
    server_do(env->server, "SET", key, tokens[i], NULL);
    expect_view(env, BELAY_HELD_LOCK, "n", &view, 1);
    assert_holder(&view, 0, NULL, -1);
  }
  server_do(env->server, "DEL", key, NULL);
  server_do(env->server, "RPUSH", key, "1", NULL);
  assert_error(view_held(env, BELAY_HELD_LOCK, "n", NULL), BELAY_EWRONGTYPE);
}

OWNED_TEST(reentrant_lock) {
  belay_lock_options_t brief = with_ttl(TTL), lasting = with_ttl(3 * TTL);
  brief.owner = lasting.owner = belay_string("request 7");
  held_by(contender_new(env, "n", &brief));
  contender_t *c = held_by(contender_new(env, "n", &lasting));
  expect_view(env, BELAY_HELD_LOCK, "n", &view, 2);
  assert_holder(&view, 0, "me", 3 * TTL);
  assert_holder(&view, 1, "me", TTL);
  assert_string_equal(view.held.owner, "request 7");
  /* one hold of two: the lock stays */
  belay_broken_t broken;
  view.held.holders_len = 1;
  expect_broken(env, 1, 0, 1);
  expect_view(env, BELAY_HELD_LOCK, "n", &view, 1);
  assert_holder(&view, 0, "me", TTL);
  assert_error(break_held(env, &view.held, &broken), 0);
  assert_int_equal(broken.removed, 1);
  expect_view(env, BELAY_HELD_LOCK, "n", &view, 0);
  assert_error(release(c), BELAY_ENOTOWNER);
}

OWNED_TEST(rwlock_holders) {
  contender_t *r = held_by(rw(env, BELAY_RWLOCK_READ, TTL));
  contender_t *s = held_by(rw(env, BELAY_RWLOCK_READ, 3 * TTL));
  contender_t *w = rw(env, BELAY_RWLOCK_WRITE, TTL);
  assert_error(begin_acquire(w, BELAY_FOREVER), 0);
  until(env, view_held(env, BELAY_HELD_RWLOCK, "book", &view) == 0 && view.held.waiting == 1);
  assert_int_equal(view.held.holders_count, 2);
  assert_holder(&view, 0, "me", 3 * TTL);
  assert_holder(&view, 1, "me", TTL);
  assert_false(view.held.holders[0].writes);
  until(env, view_held(env, BELAY_HELD_RWLOCK, "book", &view) == 0 && view.held.listening >= 1);
  assert_error(release(r), 0);
  assert_error(release(s), 0);
  assert_error(outcome(w), 0);
  expect_view(env, BELAY_HELD_RWLOCK, "book", &view, 1);
  assert_true(view.held.holders[0].writes);
  assert_int_equal(view.held.waiting, 0);
}

OWNED_TEST(semaphore_holders) {
  held_by(permits(env, 3, TTL));
  held_by(permits(env, 1, 3 * TTL));
  expect_view(env, BELAY_HELD_SEMAPHORE, "pool", &view, 2);
  assert_holder(&view, 0, "me", 3 * TTL);
  assert_int_equal(view.held.holders[0].permits, 1);
  assert_int_equal(view.held.holders[1].permits, 3);
  assert_int_equal(view.held.used, 4);
  assert_int_equal(view.held.limit, 0); /* it was never set */
}

static int led; /* how often a campaign has ended */

static void on_campaign(belay_election_t *election, int status) {
  (void)election;
  (void)status;
  led++;
}

static belay_election_t *campaign(belay_client_t *client, const char *value) {
  belay_election_options_t options;
  belay_election_t *election;
  belay_election_options_init(&options);
  options.value = belay_string(value);
  assert_error(belay_election_new(client, belay_string("chief"), &options, &election), 0);
  assert_error(belay_election_campaign(election, on_campaign), 0);
  return election;
}

OWNED_TEST(election_leader) {
  belay_election_t *election = campaign(env->client, "10.0.0.7:80");
  until(env,
        view_held(env, BELAY_HELD_ELECTION, "chief", &view) == 0 && view.held.holders_count == 1);
  assert_string_equal(view.held.holders[0].label, "me");
  assert_string_equal(view.held.owner, "10.0.0.7:80");
  assert_true(view.held.fence > 0);
  assert_error(belay_election_close(election, NULL), 0);
}

static void on_all(belay_multilock_t *lock, int status) {
  env_t *env = belay_multilock_data(lock);
  assert_error(status, 0);
  env->arg = lock;
}

OWNED_TEST(multilock_marks) {
  belay_lock_options_t options = with_ttl(TTL);
  belay_multilock_t *lock;
  options.data = env;
  const belay_multilock_name_t names[] = {{env->client, {"a", 1}}, {env->client, {"b", 1}}};
  assert_error(belay_multilock_new(names, 2, &options, NULL, &lock), 0);
  assert_error(belay_multilock_acquire(lock, 0, on_all), 0);
  env_until(env, env->arg == lock);
  assert_error(view_held(env, BELAY_HELD_LOCK, "a", &view), 0);
  assert_error(view_held(env, BELAY_HELD_LOCK, "b", &other), 0);
  assert_holder(&view, 0, "me", TTL);
  bool one_mark = view.held.holders[0].mark == other.held.holders[0].mark;
  assert_true(one_mark == !deployment_is_cluster()); /* there each slot is a deployment */
  assert_error(belay_multilock_close(lock, NULL), 0);
}

/* On each of its servers it is a lock, and is broken there. */
TEST(redlock_holders) {
  needs_quorum();
  env_t *env = open_env("me");
  belay_client_options_t o = client_options();
  o.owner = "me";
  server_t *more[] = {server_start(NULL), server_start(NULL)};
  belay_client_t *clients[] = {env->client, env_connect(env, server_url(more[0]), &o),
                               env_connect(env, server_url(more[1]), &o)};
  belay_lock_options_t options = with_ttl(TTL);
  options.quarantine = BELAY_QUARANTINE_OFF;
  options.timeout_ms = 5000; /* each client still has to find its primary */
  contender_t *c = contender_blank(env, &options);
  assert_error(belay_redlock_new(clients, 3, belay_string("n"), &options, &c->lock), 0);
  held_by(c);
  env_settle(env);
  assert_error(view_held(env, BELAY_HELD_LOCK, "n", &view), 0);
  for (int i = 1; i < 3; i++) {
    assert_error(view_held_of(env, clients[i], BELAY_HELD_LOCK, "n", &other), 0);
    assert_holder(&other, 0, "me", TTL);
    assert_true(other.held.holders[0].mark == view.held.holders[0].mark);
  }
  belay_broken_t broken;
  assert_error(break_held(env, &view.held, &broken), 0);
  assert_int_equal(broken.removed, 1);
  assert_error(view_held_of(env, clients[1], BELAY_HELD_LOCK, "n", &other), 0);
  assert_int_equal(other.held.holders_count, 1);
  env_close(env);
  server_stop(more[0]);
  server_stop(more[1]);
}

TEST_IN(waiter_gets_a_broken_lock, env, open_env("dead")) {
  belay_client_options_t o = client_options();
  o.owner = "next";
  belay_client_t *client = env_connect(env, server_url(env->server), &o);
  belay_lock_options_t options = with_ttl(TTL);
  options.retry_min_ms = options.retry_max_ms = options.backoff_max_ms =
      3600000; /* it does not poll */
  contender_t *c = held_by(contender_new(env, "n", &options));
  contender_t *d = contender_of(env, client, "n", &options);
  assert_error(begin_acquire(d, BELAY_FOREVER), 0);
  until(env, view_held(env, BELAY_HELD_LOCK, "n", &view) == 0 && view.held.listening == 1);
  assert_holder(&view, 0, "dead", TTL);
  belay_broken_t broken = expect_broken(env, 1, 0, 0);
  assert_int_equal(broken.notified, 1);
  assert_error(outcome(d), 0);
  assert_error(view_held(env, BELAY_HELD_LOCK, "n", &other), 0);
  assert_holder(&other, 0, "next", TTL);
  assert_true(other.held.holders[0].mark != view.held.holders[0].mark);
  /* again with the old list: the newer holder keeps its hold */
  expect_broken(env, 0, 1, 1);
  assert_true(is_on_server(d));
  assert_error(extend(c, TTL), BELAY_ENOTOWNER);
  env_until(env, c->lost == 1);
}

/* The same holder takes it again: that is another hold. */
OWNED_TEST(break_keeps_a_later_hold) {
  belay_lock_options_t options = with_ttl(TTL);
  contender_t *c = held_by(contender_new(env, "n", &options));
  assert_error(view_held(env, BELAY_HELD_LOCK, "n", &view), 0);
  assert_error(release(c), 0);
  held_by(c);
  expect_broken(env, 0, 1, 1);
  assert_true(is_on_server(c));
  assert_int_equal(c->lost, 0);
}

OWNED_TEST(break_one_of_several) {
  held_by(permits(env, 3, 3 * TTL));
  contender_t *stays = held_by(permits(env, 2, TTL)), *next = permits(env, 2, TTL);
  assert_error(begin_acquire(next, BELAY_FOREVER), 0);
  assert_error(view_held(env, BELAY_HELD_SEMAPHORE, "pool", &view), 0);
  assert_int_equal(view.held.holders_len, 2);
  view.held.holders_len = 1; /* the holder with the longest lease */
  expect_broken(env, 1, 0, 1);
  assert_error(outcome(next), 0);
  assert_error(view_held(env, BELAY_HELD_SEMAPHORE, "pool", &view), 0);
  assert_int_equal(view.held.used, 4);
  assert_error(release(stays), 0);
}

OWNED_TEST(break_readers_then_writer) {
  belay_broken_t broken;
  for (int i = 0; i < 20; i++)
    held_by(rw(env, BELAY_RWLOCK_READ, TTL));
  contender_t *w = rw(env, BELAY_RWLOCK_WRITE, TTL);
  assert_error(begin_acquire(w, BELAY_FOREVER), 0);
  assert_error(view_held(env, BELAY_HELD_RWLOCK, "book", &view), 0);
  assert_int_equal(view.held.holders_len, 20);
  assert_error(break_held(env, &view.held, &broken), 0);
  assert_int_equal(broken.removed, 20);
  assert_error(outcome(w), 0);
  assert_error(view_held(env, BELAY_HELD_RWLOCK, "book", &view), 0);
  assert_error(break_held(env, &view.held, &broken), 0);
  assert_int_equal(broken.removed, 1);
  assert_int_equal(server_keys(env->server), 0);
}

OWNED_TEST(break_leader) {
  belay_broken_t broken;
  belay_client_t *client = env_connect(env, server_url(env->server), NULL);
  belay_election_t *first = campaign(env->client, "first");
  until(env,
        view_held(env, BELAY_HELD_ELECTION, "chief", &view) == 0 && view.held.holders_count == 1);
  belay_election_t *second = campaign(client, "second");
  assert_string_equal(view.held.owner, "first");
  assert_error(break_held(env, &view.held, &broken), 0);
  assert_int_equal(broken.removed, 1);
  until(env,
        view_held(env, BELAY_HELD_ELECTION, "chief", &other) == 0 && other.held.holders_count == 1);
  assert_string_equal(other.held.owner, "second");
  assert_true(other.held.fence > view.held.fence);
  assert_error(belay_election_close(first, NULL), 0);
  assert_error(belay_election_close(second, NULL), 0);
}

static void never(belay_request_t *request, int status, const belay_held_t *held) {
  (void)request;
  (void)status;
  (void)held;
  fail_msg("a callback of a refused operation");
}

static void never_broken(belay_request_t *request, int status, const belay_broken_t *broken) {
  (void)request;
  (void)status;
  (void)broken;
  fail_msg("a callback of a refused operation");
}

static void expect_detail(env_t *env, int error, const char *detail) {
  assert_error(error, BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), detail);
}

OWNED_TEST(arguments_are_checked) {
  belay_request_t request = {0};
  belay_client_t *c = env->client;
  const belay_holder_t holder = {.mark = 1};
  belay_held_t held = {.kind = BELAY_HELD_LOCK, .name = "n", .name_len = 1, .holders = &holder};
  expect_detail(env, belay_held_read(c, &request, BELAY_HELD_KINDS, belay_string("n"), never),
                "kind: not from 0 to 3");
  expect_detail(env, belay_held_read(c, &request, BELAY_HELD_LOCK, belay_string(""), never),
                "name: not 1 to 1024 bytes");
  expect_detail(env, belay_held_break(c, &request, NULL, never_broken), "held: NULL");
  expect_detail(env, belay_held_break(c, &request, &held, never_broken),
                "holders_len: not from 1 to 1000");
  held.holders_len = BELAY_HELD_HOLDERS_MAX + 1;
  expect_detail(env, belay_held_break(c, &request, &held, never_broken),
                "holders_len: not from 1 to 1000");
  held.holders = NULL;
  expect_detail(env, belay_held_break(c, &request, &held, never_broken), "holders: NULL");
  held.holders = &holder;
  held.holders_len = 1;
  expect_detail(env, belay_held_break(c, &request, &held, NULL), "cb: NULL");
  assert_string_equal(belay_held_kind_name(BELAY_HELD_RWLOCK), "rwlock");
  assert_string_equal(belay_held_kind_name(BELAY_HELD_KINDS), "?");
}

/* Whenever it is cancelled, it ends once, and nothing is left. */
static void note(belay_request_t *request, int status, const belay_broken_t *broken) {
  int *calls = request->data;
  (void)broken;
  assert_true(status == 0 || status == BELAY_ECANCELED);
  calls[0]++;
  calls[1] += status == 0;
}

OWNED_TEST(cancel_break) {
  belay_lock_options_t options = with_ttl(TTL);
  int calls[2] = {0};
  for (int turns = 0; turns < 8; turns++) {
    belay_request_t request = {.data = calls};
    contender_t *c = held_by(contender_new(env, "n", &options));
    assert_error(view_held(env, BELAY_HELD_LOCK, "n", &view), 0);
    assert_error(belay_held_break(env->client, &request, &view.held, note), 0);
    assert_error(belay_held_break(env->client, &request, &view.held, note), BELAY_ESTATE);
    for (int i = 0; i < turns; i++)
      (void)uv_run(&env->loop, UV_RUN_NOWAIT);
    (void)belay_request_cancel(&request);
    env_until(env, calls[0] == turns + 1);
    env_settle(env);
    server_do(env->server, "FLUSHALL", NULL);
    (void)release(c);
  }
}
