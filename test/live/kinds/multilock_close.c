/* The lock on several names: closed in each state and in each callback; and random operations. */
#include "support/base/never.h"
#include "support/base/random.h"
#include "support/fixtures/lease/two_servers.h"

static void close_it(holder_t *h, char event) {
  if (event != 'c')
    (void)holder_begin_close(h);
}

TEST_IN(close_in_each_callback, two_servers, two_servers_open()) {
  belay_lock_options_t options = with_ttl(400 * slow());
  holder_t *h[4];
  for (int i = 0; i < 4; i++)
    h[i] = holder_new(two_servers, "0:a 1:a", &options);
  h[0]->then = close_it; /* when it was granted */
  assert_error(holder_acquire(h[0], 0), 0);
  env_until(two_servers->env, h[0]->closed == 1);
  assert_error(holder_acquire(h[1], 5000), 0); /* when it was given back */
  h[1]->then = close_it;
  assert_error(holder_release(h[1]), 0);
  env_until(two_servers->env, h[1]->closed == 1);
  assert_error(holder_acquire(h[2], 5000), 0); /* when it was lost */
  h[2]->then = close_it;
  env_until(two_servers->env, h[2]->closed == 1);
  assert_int_equal(h[2]->lost, 1);
  contender_t *a = two_servers_lock(two_servers, 1, "a");
  assert_error(acquire(a, 5000), 0);
  h[3]->then = close_it; /* when it failed */
  assert_error(holder_acquire(h[3], 50), BELAY_ETIMEDOUT);
  env_until(two_servers->env, h[3]->closed == 1);
  assert_error(release(a), 0);
  two_servers_expect_no_key(two_servers);
}

static void retake_it(holder_t *h, char event) {
  if (event == 'l')
    assert_error(holder_begin(h, BELAY_FOREVER), 0);
}

/* After a loss the handle may acquire again at once, while its other names are still being
 * released. */
TEST_IN(acquire_in_loss_callback, two_servers, two_servers_open()) {
  belay_lock_options_t options = watched(kept_ttl());
  holder_t *h = holder_new(two_servers, "0:a 1:a", &options);
  assert_error(holder_acquire(h, 0), 0);
  h->then = retake_it;
  server_do(two_servers->server[1], "DEL", "belay::lock::{a}", NULL);
  env_until(two_servers->env, h->lost == 1);
  assert_error(holder_outcome(h), 0);
  assert_true(holder_holds(h));
  h->then = NULL;
}

static void try_again(holder_t *h, char event) {
  if (event == 'l')
    assert_error(holder_begin(h, 0), 0);
}

/* All leases expire while the loop stands still: one loss, which is not reported again after the
 * next acquire. */
TEST_IN(loss_is_reported_once, two_servers, two_servers_open()) {
  belay_lock_options_t options = with_ttl(kept_ttl());
  holder_t *h = holder_new(two_servers, "0:a 1:a", &options);
  assert_error(holder_acquire(h, 0), 0);
  h->then = try_again;
  stall_ms(options.ttl_ms + 50);
  env_until(two_servers->env, h->lost == 1);
  h->then = NULL;
  assert_error(holder_outcome(h), 0);
  assert_true(holder_holds(h));
  assert_int_equal(h->lost, 1);
}

enum { STAGES = 6 };

/* Brings the handle to this stage. */
static void reach_stage(two_servers_t *two_servers, holder_t *h, contender_t *a, int stage) {
  switch (stage) {
  case 0: /* made */
    break;
  case 1: /* just asked */
    assert_error(holder_begin(h, BELAY_FOREVER), 0);
    break;
  case 2: /* one part held, or none */
    assert_ok(try_lock(a), holder_begin(h, BELAY_FOREVER));
    env_run_for(two_servers->env, 60);
    break;
  case 3: /* held */
    assert_error(holder_acquire(h, 0), 0);
    break;
  case 4: /* being given back */
    assert_ok(holder_acquire(h, 0), holder_begin_release(h));
    break;
  default: /* canceled; the acquired names are being released */
    assert_ok(try_lock(a), holder_begin(h, BELAY_FOREVER));
    env_run_for(two_servers->env, 60);
    assert_error(holder_cancel(h), 0);
  }
}

TEST(close_in_each_state) {
  for (int i = 0; i < STAGES * 2; i++) {
    two_servers_t *two_servers = two_servers_open();
    contender_t *a = two_servers_lock(two_servers, i % 2, "a");
    holder_t *h = holder_new(two_servers, "0:a 1:a 1:b", NULL);
    reach_stage(two_servers, h, a, i / 2);
    assert_error(holder_begin_close(h), 0);
    assert_each(BELAY_ECLOSING, holder_begin_close(h), holder_begin(h, 0));
    env_until(two_servers->env, h->closed == 1);
    assert_int_equal(h->ended, h->begun);
    assert_error(close_lock(a), 0);
    two_servers_expect_no_key(two_servers);
    two_servers_close(two_servers);
  }
}

/* A lock with a closed client releases its other names; a held lock is lost. The handle stays. */
TEST(close_of_one_client) {
  for (int i = 0; i < STAGES * 4; i++) {
    two_servers_t *two_servers = two_servers_open();
    contender_t *a = two_servers_lock(two_servers, i % 2, "a");
    holder_t *h = holder_new(two_servers, "0:a 1:a 1:b", NULL);
    reach_stage(two_servers, h, a, i / 4);
    server_t *other = two_servers->server[i / 2 % 2];
    assert_error(begin_close_of(two_servers->env, two_servers->client[1 - i / 2 % 2]), 0);
    assert_error(holder_begin(h, 0), BELAY_ECLOSING);
    env_until(two_servers->env, two_servers->env->client_closed == 1);
    env_settle(two_servers->env);
    assert_int_equal(h->ended, h->begun);
    assert_int_equal(h->lost, i / 4 == 3);
    if (h->lost > 0)
      assert_int_equal(h->reason, BELAY_LOST_CLOSED);
    bool held = i % 2 == i / 2 % 2 && i / 4 % 3 == 2; /* by a, for which h may have set its flag */
    assert_in_range(server_keys(other), held, 2 * held);
    assert_false(holder_holds(h));
    assert_error(holder_begin(h, 0), BELAY_ECLOSING);
    assert_error(holder_begin_release(h), BELAY_ENOTOWNER);
    assert_error(holder_cancel(h), BELAY_ESTATE);
    belay_multilock_ref(h->lock);
    belay_multilock_unref(h->lock);
    assert_error(holder_begin_close(h), 0);
    env_until(two_servers->env, h->closed == 1);
    two_servers_close(two_servers);
  }
}

/* The handle is closed while its client is closing: the callback runs as for any close. */
TEST(close_while_client_closes) {
  for (int i = 0; i < STAGES * 2; i++) {
    two_servers_t *two_servers = two_servers_open();
    contender_t *a = two_servers_lock(two_servers, 1, "a");
    holder_t *h = holder_new(two_servers, i % 2 > 0 ? "0:a 1:a" : "1:a", NULL);
    reach_stage(two_servers, h, a, i / 2);
    assert_ok(begin_close_of(two_servers->env, two_servers->client[1]), holder_begin_close(h));
    env_until(two_servers->env, h->closed == 1);
    assert_int_equal(h->ended, h->begun);
    assert_int_equal(h->lost, 0);
    two_servers_close(two_servers);
  }
}

/* The handle is freed with the last of its clients. */
TEST(close_of_all_clients) {
  for (int i = 0; i < STAGES; i++) {
    two_servers_t *two_servers = two_servers_open();
    contender_t *a = two_servers_lock(two_servers, 0, "a");
    holder_t *h = holder_new(two_servers, "0:a 1:a", NULL);
    reach_stage(two_servers, h, a, i);
    assert_error(begin_close_of(two_servers->env, two_servers->client[1]), 0);
    env_until(two_servers->env, two_servers->env->client_closed == 1);
    assert_error(begin_close_of(two_servers->env, two_servers->client[0]), 0);
    env_until(two_servers->env, two_servers->env->client_closed == 2);
    assert_int_equal(h->ended, h->begun);
    assert_int_equal(h->lost, i == 3);
    two_servers_close(two_servers);
  }
}

/* The callback of the loss closes the handle while its last client closes. */
TEST_IN(close_with_last_client, two_servers, two_servers_open()) {
  holder_t *h = holder_new(two_servers, "1:a", NULL);
  assert_error(holder_acquire(h, 0), 0);
  h->then = close_it;
  assert_error(begin_close_of(two_servers->env, two_servers->client[1]), 0);
  env_until(two_servers->env, h->closed == 1);
  assert_int_equal(h->lost, 1);
}

static uint64_t dice;

static unsigned below(unsigned n) {
  return (unsigned)(next_random(&dice) % n);
}

enum { HANDLES = 5, STEPS = 1200 };
static const char *const handle_names[HANDLES] = {"0:a 1:a", "1:a 0:b", "0:b 0:a", "1:b 0:a 1:a",
                                                  "1:b 1:a"};

static bool overlap(int i, int j) {
  for (const char *at = handle_names[i]; *at != '\0'; at += strcspn(at, " "), at += *at == ' ') {
    char word[4] = {at[0], at[1], at[2], '\0'};
    if (strstr(handle_names[j], word) != NULL)
      return true;
  }
  return false;
}

/* Applies one action to a handle. Any status is correct, but each accepted operation must call
 * back once. */
static holder_t *apply_action(two_servers_t *two_servers, holder_t *h, int i,
                              const belay_lock_options_t *options) {
  switch (below(9)) {
  case 0:
  case 1:
    (void)holder_begin(h, 0);
    break;
  case 2:
  case 3:
    (void)holder_begin(h, 1 + below(60));
    break;
  case 4:
  case 5:
    (void)holder_begin_release(h);
    break;
  case 6:
    (void)holder_cancel(h);
    break;
  default:
    if (below(12) > 0 || two_servers->count == HOLDERS_MAX)
      break;
    assert_error(holder_begin_close(h), 0);
    return holder_new(two_servers, handle_names[i], options);
  }
  return h;
}

/* Applies one fault to the servers. */
static void apply_fault(two_servers_t *two_servers) {
  server_t *server = two_servers->server[below(2)];
  switch (below(4)) {
  case 0:
    server_do(server, "DEL", below(2) > 0 ? "belay::lock::{a}" : "belay::lock::{b}", NULL);
    break;
  case 1:
    server_do(server, "CLIENT", "KILL", "TYPE", below(2) > 0 ? "normal" : "pubsub", "SKIPME", "yes",
              NULL);
    break;
  case 2:
    server_do(server, "FLUSHALL", NULL);
    break;
  default:
    server_do(server, "SCRIPT", "FLUSH", NULL);
  }
}

static void run_random_steps(bool servers_too, int64_t ttl_ms) {
  two_servers_t *two_servers = two_servers_open();
  belay_lock_options_t options = with_ttl(ttl_ms);
  options.watchdog = servers_too ? BELAY_WATCHDOG_OFF : BELAY_WATCHDOG_ON;
  holder_t *h[HANDLES];
  unsigned grants = 0;
  for (int i = 0; i < HANDLES; i++)
    h[i] = holder_new(two_servers, handle_names[i], &options);
  for (int step = 0; step < STEPS; step++) {
    int i = (int)below(HANDLES);
    h[i] = apply_action(two_servers, h[i], i, &options);
    if (servers_too && below(30) == 0)
      apply_fault(two_servers);
    env_run_for(two_servers->env, below(5));
    for (int one = 0; one < HANDLES; one++) {
      grants += holder_holds(h[one]);
      for (int other = 0; other < one && !servers_too; other++)
        assert_never(holder_holds(h[one]) && holder_holds(h[other]) && overlap(one, other));
    }
  }
  assert_true(grants > 50);
  for (int i = 0; i < HANDLES; i++)
    assert_error(holder_begin_close(h[i]), 0);
  for (int i = 0; i < two_servers->count; i++)
    env_until(two_servers->env, two_servers->holder[i].closed == 1);
  two_servers_expect_no_key(two_servers);
  two_servers_close(two_servers);
}

TEST(random_operations) {
  dice = 1;
  run_random_steps(false, 60000);
}

TEST(random_operations_and_server_faults) {
  dice = 2;
  run_random_steps(true, 60 * slow());
}

static int make(const belay_multilock_name_t *names, size_t n,
                const belay_lock_options_t *options) {
  belay_multilock_t *lock = (belay_multilock_t *)(uintptr_t)names;
  int error = belay_multilock_new(names, n, options, NULL, &lock);
  if (error == 0)
    assert_error(belay_multilock_close(lock, NULL), 0);
  else
    assert_null(lock);
  return error;
}

static void ignore_loss(belay_lock_t *lock, belay_lost_t reason) {
  (void)lock, (void)reason;
}

TEST_IN(invalid_arguments, env, env_open_at("unix:///nowhere/1", NULL)) {
  char name[1100];
  memset(name, '{', sizeof name); /* of which each is three bytes of a key */
  belay_client_t *twin = env_connect(env, "unix:///nowhere/1", NULL);
  const char *parts[] = {"other"};
  belay_client_options_t elsewhere = client_options();
  elsewhere.namespace_parts = parts;
  elsewhere.namespace_count = 1;
  belay_client_t *other = env_connect(env, "unix:///nowhere/1", &elsewhere);
  env_t *other_env = env_open_at("unix:///nowhere/2", NULL);
  belay_multilock_name_t list[BELAY_MULTILOCK_MAX + 1];
  for (size_t i = 0; i <= BELAY_MULTILOCK_MAX; i++)
    list[i] = (belay_multilock_name_t){env->client, {name, i + 1}};
  assert_error(make(list, BELAY_MULTILOCK_MAX, NULL), 0);
  assert_each(BELAY_EINVAL, make(list, BELAY_MULTILOCK_MAX + 1, NULL), make(list, 0, NULL));
  assert_error(make(NULL, 1, NULL), BELAY_EINVAL);
  for (size_t i = 0; i < BELAY_MULTILOCK_MAX; i++)
    list[i].name.len = 1024 - i;
  assert_error(make(list, BELAY_MULTILOCK_MAX, NULL), BELAY_EINVAL);
  assert_non_null(strstr(belay_detail(env->belay), "together"));
  list[1].client = other;
  assert_error(make(list, 2, NULL), 0);
  list[1].client = twin;
  assert_error(make(list, 2, NULL), BELAY_EDUPLICATE);
  list[1].client = NULL;
  assert_error(make(list, 2, NULL), BELAY_EINVAL);
  list[1].client = other_env->client;
  assert_error(make(list, 2, NULL), BELAY_EINVAL);
  assert_non_null(strstr(belay_detail(env->belay), "names[1]"));
  list[1] = (belay_multilock_name_t){env->client, {NULL, 1}};
  assert_error(make(list, 2, NULL), BELAY_EINVAL);
  list[1] = (belay_multilock_name_t){env->client, {"", 0}};
  assert_error(make(list, 2, NULL), BELAY_EINVAL);
  list[1].name.len = 1025;
  assert_error(make(list, 2, NULL), BELAY_EINVAL);
  env_close(other_env);
}

TEST_IN(invalid_options, env, env_open_at("unix:///nowhere", NULL)) {
  const belay_multilock_name_t name = {env->client, {"a", 1}};
  belay_lock_options_t o[5];
  for (int i = 0; i < 5; i++)
    o[i] = lock_options();
  o[0].owner = belay_string("me");
  o[1].fair = true;
  o[2].fencing = true;
  o[3].key = belay_string("k");
  o[4].on_lost = ignore_loss;
  for (int i = 0; i < 5; i++) {
    assert_error(make(&name, 1, &o[i]), BELAY_EINVAL);
    assert_non_null(strstr(belay_detail(env->belay), "several names"));
  }
  belay_lock_options_t options = lock_options();
  options.ttl_ms = 1;
  assert_each(BELAY_EINVAL, make(&name, 1, &options), belay_multilock_acquire(NULL, 0, NULL));
  assert_error(belay_multilock_close(NULL, NULL), BELAY_EINVAL);
  assert_int_equal(belay_multilock_remaining_us(NULL), 0);
}

TEST_IN(ref_keeps_loop_alive, two_servers, two_servers_open()) {
  belay_lock_options_t options = with_ttl(kept_ttl());
  holder_t *h = holder_new(two_servers, "0:a 1:a", &options);
  assert_error(holder_acquire(h, 0), 0);
  env_settle(two_servers->env);
  int64_t begun = clock_now();
  uv_run(&two_servers->env->loop, UV_RUN_DEFAULT);
  assert_int_equal(h->lost, 0);
  assert_true(clock_since_ms(begun) < options.ttl_ms - 100);
  belay_multilock_ref(h->lock);
  uv_run(&two_servers->env->loop, UV_RUN_DEFAULT);
  assert_int_equal(h->lost, 1);
  belay_multilock_unref(h->lock);
}
