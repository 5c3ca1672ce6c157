/* Readers and writers on one server. */
#include "support/deployments/relay.h"
#include "support/fixtures/lease/rw.h"

ENV_TEST(readers_share) {
  contender_t *a = lone_reader(env, NULL), *b = lone_reader(env, NULL), *w = lone_writer(env, NULL);
  assert_ok(try_lock(a), try_lock(b));
  assert_int_equal(count_in(env->server, a, "readers"), 2);
  assert_error(try_lock(w), BELAY_EHELD);
  assert_error(release(a), 0);
  assert_error(try_lock(w), BELAY_EHELD);
  assert_ok(release(b), try_lock(w), release(w));
  expect_empty(env);
}

ENV_TEST(writer_is_exclusive) {
  contender_t *w = lone_writer(env, NULL), *other = lone_writer(env, NULL),
              *r = lone_reader(env, NULL);
  assert_error(try_lock(w), 0);
  assert_true(is_on_server(w));
  assert_true(is_writer(w));
  assert_false(is_writer(r));
  assert_each(BELAY_EHELD, try_lock(other), try_lock(r));
  assert_int_equal(server_keys(env->server), 1); /* an attempt without a wait leaves no key */
  assert_int_equal(belay_lock_holds(w->lock), 1);
}

/* Readers of one client queue behind each other, and are still granted together. */
ENV_TEST(readers_of_one_client_share) {
  enum { READERS = 5 };
  contender_t *w = writer_of(env, rw_client(env), "page", NULL), *r[READERS];
  assert_error(try_lock(w), 0);
  for (int i = 0; i < READERS; i++) {
    r[i] = reader_of(env, env->client, "page", NULL);
    assert_error(begin_acquire(r[i], 60000), 0);
  }
  contender_t *local = writer_of(env, env->client, "page", NULL);
  assert_error(begin_acquire(local, 60000), 0);
  env_until(env, count_in(env->server, w, "admitted") == 1); /* one asks for all */
  assert_error(release(w), 0);
  for (int i = 0; i < READERS; i++)
    assert_error(outcome(r[i]), 0);
  assert_int_equal(count_in(env->server, w, "readers"), READERS);
  env_run_for(env, 100);
  assert_int_equal(local->ended, 0);
  for (int i = 0; i < READERS; i++)
    assert_error(release(r[i]), 0);
  assert_ok(outcome(local), release(local));
  expect_empty(env);
}

/* When the first reader is granted, all readers behind it ask at once. */
RELAY_TEST(readers_of_one_client_acquire_together) {
  enum { READERS = 8 };
  contender_t *r[READERS];
  for (int i = 0; i < READERS; i++)
    r[i] = reader_of(env, env->client, "page", NULL);
  assert_error(acquire(r[0], 5000), 0); /* connected, and the server knows the script */
  assert_error(release(r[0]), 0);
  int64_t way = 50 * slow();
  relay_delay(env->relay, way);
  int64_t began = clock_now();
  for (int i = 0; i < READERS; i++)
    assert_error(begin_acquire(r[i], 60000), 0);
  for (int i = 0; i < READERS; i++)
    assert_error(outcome(r[i]), 0);
  assert_between(clock_since_ms(began), 4 * way, 10 * way); /* 16 ways one after the other */
}

ENV_TEST(waiting_writer_blocks_new_readers) {
  contender_t *a = lone_reader(env, NULL), *b = lone_reader(env, NULL),
              *late = lone_reader(env, NULL);
  contender_t *w = lone_writer(env, NULL);
  assert_ok(try_lock(a), try_lock(b));
  wait_in(w, "writers");
  assert_error(try_lock(late), BELAY_EHELD);
  wait_in(late, "waiting");
  assert_error(release(a), 0);
  env_run_for(env, 100);
  assert_int_equal(late->ended, 1);
  assert_int_equal(w->ended, 0);
  assert_ok(release(b), outcome(w));
  assert_int_equal(late->ended, 1);
  assert_ok(release(w), outcome(late), release(late));
  expect_empty(env);
}

/* Readers that waited for the first writer are granted before the second one; later readers are
 * not. */
ENV_TEST(readers_between_writers) {
  contender_t *first = lone_writer(env, NULL), *second = lone_writer(env, NULL);
  contender_t *waited = lone_reader(env, NULL), *late = lone_reader(env, NULL);
  assert_error(try_lock(first), 0);
  wait_in(second, "writers");
  wait_in(waited, "admitted");
  assert_ok(release(first), outcome(waited));
  assert_int_equal(second->ended, 0);
  wait_in(late, "waiting");
  assert_ok(release(waited), outcome(second));
  assert_int_equal(late->ended, 0);
  assert_ok(release(second), outcome(late), release(late));
  expect_empty(env);
}

/* The same for readers of one client, for which one request is on the server. */
ENV_TEST(readers_of_one_client_between_writers) {
  enum { READERS = 5 };
  contender_t *first = lone_writer(env, NULL), *second = lone_writer(env, NULL), *r[READERS];
  assert_error(try_lock(first), 0);
  for (int i = 0; i < READERS; i++) {
    r[i] = reader_of(env, env->client, "page", NULL);
    assert_error(begin_acquire(r[i], 60000), 0);
  }
  env_until(env, count_in(env->server, first, "admitted") == 1);
  wait_in(second, "writers");
  assert_error(release(first), 0);
  for (int i = 0; i < READERS; i++)
    assert_error(outcome(r[i]), 0);
  assert_int_equal(second->ended, 0);
  contender_t *late = reader_of(env, env->client, "page", NULL);
  wait_in(late, "waiting");
  for (int i = 0; i < READERS; i++)
    assert_error(release(r[i]), 0);
  assert_error(outcome(second), 0);
  assert_int_equal(late->ended, 0);
  assert_ok(release(second), outcome(late), release(late));
  expect_empty(env);
}

static belay_lock_options_t rare_options(void) {
  belay_lock_options_t rarely = lock_options();
  rarely.retry_min_ms = rarely.retry_max_ms = rarely.backoff_max_ms = 30000;
  rarely.waiter_ttl_ms = 600000;
  return rarely;
}

ENV_TEST(canceled_writer_unblocks_readers) {
  belay_lock_options_t rarely = rare_options();
  contender_t *a = lone_reader(env, NULL), *b = lone_reader(env, &rarely),
              *w = lone_writer(env, &rarely);
  assert_error(try_lock(a), 0);
  wait_in(w, "writers");
  wait_in(b, "waiting");
  env_run_for(env, 100);
  int64_t began = clock_now();
  assert_error(cancel(w), 0);
  assert_error(outcome(w), BELAY_ECANCELED);
  assert_error(outcome(b), 0); /* a message woke it */
  assert_true(clock_since_ms(began) < 3000 * slow());
  assert_ok(release(a), release(b));
  expect_empty(env);
}

ENV_TEST(canceled_reader_unblocks_writer) {
  belay_lock_options_t rarely = rare_options();
  rarely.wakeup = BELAY_WAKE_POLL; /* it does not hear that it is its turn */
  contender_t *first = lone_writer(env, NULL), *second = lone_writer(env, NULL);
  contender_t *r = lone_reader(env, &rarely);
  assert_ok(try_lock(first), begin_acquire(r, 60000));
  env_run_for(env, 200); /* it has asked twice, and rests */
  assert_int_equal(count_in(env->server, r, "admitted"), 1);
  wait_in(second, "writers");
  assert_error(release(first), 0);
  env_run_for(env, 200);
  assert_int_equal(second->ended, 0);
  assert_error(cancel(r), 0);
  assert_error(outcome(r), BELAY_ECANCELED);
  assert_ok(outcome(second), release(second));
  expect_empty(env);
}

ENV_TEST(ended_waits_leave_no_keys) {
  contender_t *r = lone_reader(env, NULL), *w = lone_writer(env, NULL),
              *out = lone_writer(env, NULL);
  contender_t *closed = lone_reader(env, NULL);
  assert_error(try_lock(r), 0);
  wait_in(w, "writers");
  wait_in(closed, "waiting");
  assert_error(acquire(out, 200), BELAY_ETIMEDOUT);
  env_settle(env);
  assert_int_equal(count_in(env->server, r, "writers"), 1);
  assert_ok(close_lock(closed), cancel(w));
  assert_error(outcome(w), BELAY_ECANCELED);
  assert_error(release(r), 0);
  expect_empty(env);
}

ENV_TEST(downgrade_unblocks_readers) {
  contender_t *w = lone_writer(env, NULL), *r = lone_reader(env, NULL),
              *other = lone_writer(env, NULL);
  assert_error(try_lock(w), 0);
  wait_in(r, "admitted");
  wait_in(other, "writers");
  assert_error(begin_change(w, false), 0);
  assert_false(is_writer(w)); /* from now on */
  env_until(env, w->extended == 1);
  assert_ok(w->extend_status, outcome(r));
  assert_true(is_held(w) && is_held(r));
  assert_int_equal(other->ended, 0);
  assert_error(release(w), 0);
  env_run_for(env, 100);
  assert_int_equal(other->ended, 0);
  assert_ok(release(r), outcome(other), downgrade(other));
  assert_error(downgrade(other), 0); /* it is one already */
  assert_error(release(other), 0);
  expect_empty(env);
}

ENV_TEST(upgrade_with_other_readers) {
  contender_t *a = lone_reader(env, NULL), *b = lone_reader(env, NULL), *w = lone_writer(env, NULL);
  assert_ok(try_lock(a), try_lock(b));
  assert_error(upgrade(a), BELAY_ESHARED);
  assert_true(belay_err_retryable(BELAY_ESHARED));
  assert_false(is_writer(a));
  assert_true(is_held(a));
  assert_int_equal(a->lost, 0);
  wait_in(w, "writers");
  assert_error(release(b), 0);
  assert_error(upgrade(a), 0); /* before whoever waits */
  assert_true(is_writer(a));
  assert_true(is_on_server(a));
  assert_int_equal(count_in(env->server, a, "readers"), 0);
  assert_error(try_lock(b), BELAY_EHELD);
  assert_int_equal(w->ended, 0);
  assert_ok(release(a), outcome(w));
}

static void expect_renewed(contender_t *c, int64_t ttl) {
  env_run_for(c->env, ttl + ttl / 4);
  assert_int_equal(c->lost, 0);
}

ENV_TEST(changed_mode_is_renewed) {
  int64_t ttl = kept_ttl();
  belay_lock_options_t options = watched(ttl);
  contender_t *a = lone_reader(env, &options), *b = lone_reader(env, NULL),
              *w = lone_writer(env, &options);
  assert_ok(try_lock(a), try_lock(b));
  assert_error(upgrade(a), BELAY_ESHARED);
  expect_renewed(a, ttl);
  assert_ok(release(b), upgrade(a));
  expect_renewed(a, ttl);
  assert_true(is_on_server(a));
  assert_error(downgrade(a), 0);
  expect_renewed(a, ttl);
  assert_int_equal(count_in(env->server, a, "readers"), 1);
  assert_error(release(a), 0);
  assert_error(try_lock(a), 0); /* the mode does not change */
  assert_int_equal(count_in(env->server, a, "readers"), 1);
  assert_ok(release(a), try_lock(w));
}

ENV_TEST(change_mode_in_wrong_state) {
  contender_t *r = lone_reader(env, NULL), *w = lone_writer(env, NULL),
              *plain = contender_new(env, "x", NULL);
  assert_each(BELAY_ENOTOWNER, upgrade(r), downgrade(w));
  assert_true(is_writer(w) && !is_writer(r));
  assert_error(try_lock(plain), 0);
  assert_each(BELAY_EINVAL, upgrade(plain), belay_rwlock_downgrade(NULL, 1000, NULL));
  assert_ok(try_lock(r), begin_change(r, true));
  assert_each(BELAY_ESTATE, begin_change(r, false), begin_change(r, true));
  assert_error(extend_outcome(r), 0);
  assert_true(is_writer(r));
  server_do(env->server, "FLUSHALL", NULL);
  assert_error(downgrade(r), BELAY_ENOTOWNER);
  await_loss(r, BELAY_LOST_TAKEN);
}

static int try_options(env_t *env, const belay_lock_options_t *options) {
  belay_lock_t *lock = (belay_lock_t *)env;
  int error =
      belay_rwlock_new(&env->client, 1, belay_string("page"), BELAY_RWLOCK_READ, options, &lock);
  assert_null(lock);
  return error;
}

ENV_TEST(invalid_options) {
  belay_lock_options_t o = lock_options();
  o.owner = belay_string("me");
  assert_error(try_options(env, &o), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "owner: not for readers and writers");
  o = lock_options();
  o.fair = true;
  assert_error(try_options(env, &o), BELAY_EINVAL);
  o = lock_options();
  o.key = belay_string("key");
  assert_error(try_options(env, &o), BELAY_EINVAL);
  belay_lock_t *lock;
  assert_error(
      belay_rwlock_new(&env->client, 1, belay_string("page"), (belay_rwlock_mode_t)2, NULL, &lock),
      BELAY_EINVAL);
  assert_error(belay_rwlock_new(&env->client, 1, belay_string(""), BELAY_RWLOCK_READ, NULL, &lock),
               BELAY_EINVAL);
  assert_error(belay_rwlock_new(NULL, 1, belay_string("page"), BELAY_RWLOCK_READ, NULL, &lock),
               BELAY_EINVAL);
  assert_error(
      belay_rwlock_new(&env->client, 1, belay_string("page"), BELAY_RWLOCK_READ, NULL, NULL),
      BELAY_EINVAL);
  assert_int_equal(belay_rwlock_mode(NULL), BELAY_RWLOCK_READ);
}

/* A change of mode keeps the number. */
ENV_TEST(fence_grows_with_each_grant) {
  belay_lock_options_t options = lock_options();
  options.fencing = true;
  contender_t *all[] = {lone_reader(env, &options), lone_writer(env, &options),
                        lone_reader(env, &options)};
  uint64_t last = 0;
  for (int i = 0; i < 30; i++) {
    contender_t *c = all[i % 3];
    assert_error(acquire(c, 5000), 0);
    uint64_t number = belay_lock_fence(c->lock);
    assert_true(number > last);
    last = number;
    bool writes = is_writer(c);
    assert_error(writes ? downgrade(c) : upgrade(c), 0);
    assert_true(belay_lock_fence(c->lock) == number);
    assert_error(release(c), 0);
  }
  assert_error(acquire(all[1], 5000), 0);
  if (is_writer(all[1]))
    assert_error(downgrade(all[1]), 0);
  if (is_writer(all[0]))
    all[0] = lone_reader(env, &options);
  assert_error(acquire(all[0], 5000), 0);
  assert_true(belay_lock_fence(all[0]->lock) > belay_lock_fence(all[1]->lock));
}
