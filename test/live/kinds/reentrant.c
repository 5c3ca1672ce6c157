/* A reentrant lock: its owner may take it again. */
#include <belay/fence.h>
#include <ctype.h>
#include <signal.h>
#include <stdio.h>

#include "support/deployments/nodes.h"
#include "support/servers/process.h"
#include "support/deployments/relay.h"

static belay_lock_options_t owned_by(const char *owner) {
  belay_lock_options_t options = lock_options();
  options.owner = belay_string(owner);
  return options;
}

static contender_t *of(env_t *env, const char *owner) {
  belay_lock_options_t options = owned_by(owner);
  return contender_new(env, "door", &options);
}

static int64_t holds_on_server(contender_t *c) {
  char key[512];
  snprintf(key, sizeof key, "%s::holds", key_of(c));
  int64_t fields = server_integer(c->env->server, "HLEN", key, NULL);
  int64_t number = server_integer(c->env->server, "HEXISTS", key, "number", NULL);
  return fields == 0 ? 0 : fields - 1 - number;
}

static void expect_no_key(env_t *env) {
  env_settle(env);
  env_until(env, server_keys(env->server) == 0);
  env_run_for(env, 50);
  assert_int_equal(server_keys(env->server), 0);
}

ENV_TEST(owner_acquires_again) {
  enum { HOLDS = 4 };
  contender_t *mine[HOLDS], *other = of(env, "you");
  for (unsigned i = 0; i < HOLDS; i++) {
    mine[i] = of(env, "me");
    assert_int_equal(belay_lock_holds(mine[i]->lock), 0);
    assert_error(try_lock(mine[i]), 0);
    assert_int_equal(belay_lock_holds(mine[i]->lock), i + 1);
    assert_int_equal(holds_on_server(mine[i]), i + 1);
  }
  assert_int_equal(belay_lock_holds(mine[0]->lock), 1); /* when it was granted */
  assert_error(try_lock(other), BELAY_EHELD);
  static const unsigned order[] = {2, 0, 3, 1};
  for (unsigned i = 0; i < HOLDS; i++) {
    assert_error(try_lock(other), BELAY_EHELD);
    assert_error(release(mine[order[i]]), 0);
    assert_error(release(mine[order[i]]), BELAY_ENOTOWNER);
    assert_int_equal(belay_lock_holds(mine[order[i]]->lock), 0);
  }
  assert_int_equal(server_keys(env->server), 0);
  assert_error(try_lock(other), 0);
  assert_int_equal(belay_lock_holds(other->lock), 1);
  assert_error(try_lock(mine[0]), BELAY_EHELD);
}

/* A waiter is granted after the last hold is released. Holds of the present owner come before
 * waiters. */
ENV_TEST(other_owner_waits_for_last_hold) {
  belay_client_t *client = env_connect(env, server_url(env->server), NULL);
  belay_lock_options_t rarely = owned_by("you");
  rarely.retry_min_ms = rarely.retry_max_ms = rarely.backoff_max_ms = 8000;
  contender_t *a = of(env, "me"), *b = of(env, "me"), *local = of(env, "her");
  contender_t *far = contender_of(env, client, "door", &rarely);
  assert_ok(try_lock(a), begin_acquire(far, 60000), begin_acquire(local, 60000));
  env_run_for(env, 200);
  assert_ok(acquire(b, 60000), release(a));
  env_run_for(env, 200);
  assert_int_equal(far->ended + local->ended, 0);
  int64_t began = clock_now();
  assert_error(release(b), 0);
  env_until(env, far->ended + local->ended > 0);
  assert_error(release(local->ended > 0 ? local : far), 0);
  env_until(env, far->ended > 0 && local->ended > 0);
  assert_true(clock_since_ms(began) < 4000 * slow());
}

ENV_TEST(excludes_other_owners_and_plain_locks) {
  belay_client_t *client = env_connect(env, server_url(env->server), NULL);
  belay_lock_options_t me = owned_by("me");
  contender_t *mine = of(env, "me"), *elsewhere = contender_of(env, client, "door", &me);
  contender_t *plain = contender_new(env, "door", NULL), *prefix = of(env, "m");
  assert_string_equal(key_of(mine), key_of(plain));
  assert_error(try_lock(mine), 0);
  assert_error(try_lock(elsewhere), BELAY_EHELD); /* another client */
  assert_each(BELAY_EHELD, try_lock(plain), try_lock(prefix));
  assert_ok(release(mine), try_lock(plain));
  assert_error(try_lock(mine), BELAY_EHELD);
  assert_error(begin_acquire(mine, 60000), 0);
  env_run_for(env, 100);
  assert_ok(release(plain), outcome(mine));
  assert_error(try_lock(mine), BELAY_ESTATE);
  assert_error(begin_acquire(plain, 60000), 0);
  env_run_for(env, 100);
  assert_ok(release(mine), outcome(plain));
}

ENV_TEST(holds_share_fence) {
  belay_lock_options_t me = owned_by("me"), you = owned_by("you");
  me.fencing = you.fencing = true;
  contender_t *a = contender_new(env, "door", &me), *b = contender_new(env, "door", &me);
  contender_t *other = contender_new(env, "door", &you);
  belay_fence_t fence = {0};
  uint64_t last = 0;
  for (int i = 0; i < 5; i++) {
    char one[160], two[160];
    assert_ok(acquire(a, 5000), acquire(b, 5000));
    uint64_t number = belay_lock_fence(a->lock);
    assert_true(number > last);
    assert_true(belay_lock_fence(b->lock) == number);
    size_t len = belay_lock_token(a->lock, one, sizeof one);
    assert_int_equal(belay_lock_token(b->lock, two, sizeof two), len);
    assert_string_equal(one, two);
    /* Both holds pass the guard. */
    assert_error(belay_fence_guard(&fence, number, belay_bytes(one, len)), 0);
    assert_ok(belay_fence_guard(&fence, number, belay_bytes(two, len)), release(a));
    assert_error(acquire(a, 5000), 0);
    assert_true(belay_lock_fence(a->lock) == number); /* b had it meanwhile */
    assert_ok(release(b), release(a), acquire(other, 5000));
    last = belay_lock_fence(other->lock);
    assert_true(last > number);
    assert_error(release(other), 0);
  }
}

ENV_TEST(token_is_owner) {
  contender_t *a = of(env, "request 17");
  char token[160], few[8];
  assert_int_equal(belay_lock_token(a->lock, token, sizeof token), 0);
  assert_error(try_lock(a), 0);
  assert_int_equal(belay_lock_token(a->lock, token, sizeof token), 51);
  assert_string_equal(value_of(a), token);
  for (int i = 0; i < 40; i++)
    assert_true(isxdigit((unsigned char)token[i]));
  assert_string_equal(token + 40, ":request 17");
  assert_int_equal(belay_lock_token(a->lock, few, sizeof few), 51);
  assert_memory_equal(few, token, 7);
}

ENV_TEST(owners_of_any_bytes) {
  char owner[64] = {0};
  belay_lock_options_t options = lock_options();
  options.owner = belay_bytes(owner, sizeof owner);
  contender_t *a = contender_new(env, "door", &options), *b = contender_new(env, "door", &options);
  owner[63] = '\n';
  contender_t *other = contender_new(env, "door", &options);
  options.owner.len = 63;
  contender_t *shorter = contender_new(env, "door", &options);
  assert_ok(try_lock(a), try_lock(b));
  assert_int_equal(belay_lock_holds(b->lock), 2);
  assert_each(BELAY_EHELD, try_lock(other), try_lock(shorter));
}

static int try_options(env_t *env, const belay_lock_options_t *options) {
  belay_lock_t *lock = (belay_lock_t *)env;
  int error = belay_lock_new(env->client, belay_string("door"), options, &lock);
  assert_null(lock);
  return error;
}

TEST_IN(invalid_options, nodes, nodes_open(3, NULL)) {
  belay_lock_options_t o = owned_by("me");
  o.owner = belay_string("");
  assert_error(try_options(nodes->env, &o), BELAY_EINVAL);
  o = owned_by("me");
  o.owner.len = 65;
  assert_error(try_options(nodes->env, &o), BELAY_EINVAL);
  o = owned_by("me");
  o.fair = true;
  assert_error(try_options(nodes->env, &o), BELAY_EINVAL);
  assert_string_equal(belay_detail(nodes->env->belay), "fair: not with an owner");
  o = owned_by("me");
  o.key = belay_string("door");
  assert_error(try_options(nodes->env, &o), BELAY_EINVAL);
  o = owned_by("me");
  belay_lock_t *lock;
  assert_error(belay_redlock_new(nodes->client, 3, belay_string("door"), &o, &lock), BELAY_ESINGLE);
  assert_null(lock);
  assert_true(belay_detail(nodes->env->belay)[0] != '\0');
  assert_error(belay_redlock_new(nodes->client, 1, belay_string("door"), &o, &lock), 0);
  assert_error(belay_lock_close(lock, NULL), 0);
}

ENV_TEST(one_hold_ends_other_is_renewed) {
  belay_lock_options_t brief = owned_by("me"), renewed = owned_by("me");
  int64_t ttl = brief.ttl_ms = renewed.ttl_ms = kept_ttl();
  brief.watchdog = BELAY_WATCHDOG_OFF;
  contender_t *a = contender_new(env, "door", &brief), *b = contender_new(env, "door", &renewed);
  contender_t *other = of(env, "you");
  assert_ok(acquire(a, 5000), acquire(b, 5000));
  await_loss(a, BELAY_LOST_EXPIRED);
  env_run_for(env, ttl);
  assert_int_equal(b->lost, 0);
  assert_int_equal(holds_on_server(b), 1);
  assert_error(try_lock(other), BELAY_EHELD);
  assert_error(acquire(a, 5000), 0);
  assert_int_equal(belay_lock_holds(a->lock), 2);
  assert_error(release(b), 0);
  assert_error(try_lock(other), BELAY_EHELD);
  int64_t began = clock_now();
  assert_error(acquire(other, 60000), 0); /* a's ttl is all that is left */
  assert_true(clock_since_ms(began) < ttl + 1000 * slow());
  assert_error(release(other), 0);
}

ENV_TEST(lost_key_loses_all_holds) {
  belay_lock_options_t o = owned_by("me");
  o.ttl_ms = kept_ttl();
  o.watchdog = BELAY_WATCHDOG_ON;
  contender_t *a = contender_new(env, "door", &o), *b = contender_new(env, "door", &o);
  for (int i = 0; i < 2; i++) {
    assert_error(acquire(a, 5000), 0);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    assert_error(acquire(b, 5000), 0);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    env_run_for(env, o.ttl_ms * 9 / 8);
    assert_int_equal(a->lost + b->lost, 2 * (unsigned)i);
    if (i == 0)
      server_do(env->server, "FLUSHALL", NULL);
    else
      server_do(env->server, "SET", key_of(a), "somebody else", "PX", "3000", NULL);
    env_until(env, a->lost == (unsigned)i + 1 && b->lost == (unsigned)i + 1);
    assert_int_equal(a->reason, BELAY_LOST_TAKEN);
    assert_int_equal(b->reason, BELAY_LOST_TAKEN);
  }
  assert_string_equal(value_of(a), "somebody else");
}

ENV_TEST(key_of_other_type) {
  contender_t *a = of(env, "me");
  char key[512];
  server_do(env->server, "RPUSH", key_of(a), "a", NULL);
  assert_error(acquire(a, 5000), BELAY_EWRONGTYPE);
  server_do(env->server, "DEL", key_of(a), NULL);
  snprintf(key, sizeof key, "%s::holds", key_of(a));
  server_do(env->server, "RPUSH", key, "a", NULL);
  assert_error(acquire(a, 5000), BELAY_EWRONGTYPE);
  expect_keys(env, 1);
}

/* A hold whose grant was lost is undone, and no other hold is. */
RELAY_TEST_OF(lost_grant_is_no_hold, o.timeout_ms = 5000 * slow(); o.reconnect_max_ms = 50) {
  belay_lock_options_t me = owned_by("me");
  me.ttl_ms = 20000 * slow();
  me.watchdog = BELAY_WATCHDOG_OFF;
  contender_t *a = contender_new(env, "door", &me), *b = contender_new(env, "door", &me);
  assert_error(acquire(a, 5000), 0);
  for (int i = 0; i < 5; i++) {
    relay_delay(env->relay, 800 * slow());
    assert_error(begin_acquire(b, 0), 0);
    env_until(env, holds_on_server(a) == 2);
    relay_cut(env->relay); /* first: the answer may be just coming */
    relay_delay(env->relay, 0);
    assert_error(outcome(b), BELAY_EUNKNOWN);
    env_until(env, holds_on_server(a) == 1);
    env_settle(env);
    assert_int_equal(holds_on_server(a), 1);
    assert_error(acquire(b, 5000), 0); /* the undone hold does not count */
    assert_int_equal(belay_lock_holds(b->lock), 2);
    assert_error(release(b), 0);
    assert_true(belay_lock_remaining_us(a->lock) > 0);
  }
  assert_error(release(a), 0);
  expect_no_key(env);
}

ENV_TEST_OF(killed_connections_leave_no_hold, o.reconnect_max_ms = 20) {
  enum { HANDLES = 4 };
  contender_t *c[HANDLES];
  unsigned grants = 0;
  for (int i = 0; i < HANDLES; i++)
    c[i] = of(env, i < HANDLES - 1 ? "me" : "you");
  for (int turn = 0; turn < 60; turn++) {
    for (int i = 0; i < HANDLES; i++)
      if (c[i]->ended == c[i]->begun)
        (void)(belay_lock_remaining_us(c[i]->lock) > 0 ? begin_release(c[i])
                                                       : begin_acquire(c[i], 200));
    if (turn % 3 == 0)
      server_do(env->server, "CLIENT", "KILL", "TYPE", "normal", NULL);
    env_run_for(env, 10);
    for (int i = 0; i < HANDLES; i++)
      grants += belay_lock_remaining_us(c[i]->lock) > 0;
    assert_true(
        belay_lock_remaining_us(c[HANDLES - 1]->lock) == 0 ||
        (belay_lock_remaining_us(c[0]->lock) == 0 && belay_lock_remaining_us(c[1]->lock) == 0));
  }
  assert_true(grants > 10);
  for (int i = 0; i < HANDLES; i++) {
    env_until(env, c[i]->ended == c[i]->begun);
    if (belay_lock_remaining_us(c[i]->lock) > 0)
      (void)release(c[i]);
  }
  expect_no_key(env);
}

/* The process to kill: holds the lock twice. */
static int hold_twice(const char *url, const char *ttl) {
  env_t *env = env_open_at(url, NULL);
  belay_lock_options_t options = owned_by("me");
  options.ttl_ms = atoi(ttl);
  options.watchdog = BELAY_WATCHDOG_ON;
  for (int i = 0; i < 2; i++) {
    contender_t *c = contender_new(env, "door", &options);
    assert_error(acquire(c, 5000), 0);
    belay_lock_ref(c->lock);
    printf("held %u\n", belay_lock_holds(c->lock));
    fflush(stdout);
  }
  uv_run(&env->loop, UV_RUN_DEFAULT);
  return 1;
}

ENV_TEST(killed_owner_blocks_for_its_ttl) {
  int64_t ttl = 500 * slow();
  char text[16];
  contender_t *same = of(env, "me");
  snprintf(text, sizeof text, "%lld", (long long)ttl);
  const char *argv[] = {process_self(), "--hold", server_url(env->server), text, NULL};
  process_t process = process_start(argv);
  for (int i = 0; i < 2; i++)
    process_expect_line(&process, i == 0 ? "held 1" : "held 2");
  assert_error(try_lock(same), BELAY_EHELD); /* its "me" is another one */
  process_finish(&process);
  int64_t killed = clock_now();
  assert_error(acquire(same, 60000), 0);
  assert_int_equal(belay_lock_holds(same->lock), 1);
  assert_true(clock_since_ms(killed) < ttl + 1000 * slow());
}

TEST_ROLE(hold, "--hold") {
  return hold_twice(argv[2], argv[3]);
}
