/* Batches: each call gets its own result, in order, even if the connection, the server or the
 * caller fails. */
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "core/client/client.h"
#include "support/fixtures/limit/asks.h"
#include "support/deployments/fake.h"
#include "support/deployments/relay.h"

enum { N = 40 }; /* more than travel as one command */

#define HOUR (3600 * INT64_C(1000000))

static uint64_t joined(const env_t *env) {
  return client_stats(env).batched;
}

/* In a cluster names of several slots do not share a command. */
static void expect_joined(const env_t *env, uint64_t before, uint64_t least) {
  if (!deployment_is_cluster())
    assert_true(joined(env) >= before + least);
}

/* The takes of a test; window() clears them. */
static ask_t asks[N];

static belay_limiter_t *window(env_t *env, int64_t count) {
  memset(asks, 0, sizeof asks);
  belay_limit_t limit = {.kind = BELAY_LIMIT_FIXED, .count = count, .period_us = HOUR};
  return limiter_new(env, &limit, 1);
}

/* Takes with equal timeouts would share a call. */
static void begin(env_t *env, belay_limiter_t *limiter, ask_t *ask, const char *key) {
  static int64_t other;
  if (asked(env, ask)->timeout_ms == 0)
    ask->request.timeout_ms = env->client->timeout_ms + (other ^= 1);
  assert_error(belay_limiter_take(limiter, &ask->request, belay_string(key), 1, on_answer), 0);
}

static void begin_some(env_t *env, belay_limiter_t *limiter, ask_t *all, int n, const char *key) {
  for (int i = 0; i < n; i++)
    begin(env, limiter, &all[i], key);
}

static int count_of(ask_t *all, int n, int status) {
  int count = 0;
  for (int i = 0; i < n; i++)
    count += answer(&all[i], 0)->cause == status;
  return count;
}

/* ---- the replies to each call ---- */

static void acquire_all(contender_t **c) {
  for (int i = 0; i < N; i++)
    assert_error(begin_acquire(c[i], 0), 0);
  for (int i = 0; i < N; i++)
    assert_error(outcome(c[i]), 0);
}

static void make_all(env_t *env, contender_t **c) {
  belay_lock_options_t options = with_ttl(60000);
  for (int i = 0; i < N; i++) {
    char name[16];
    snprintf(name, sizeof name, "door%d", i);
    c[i] = contender_new(env, name, &options);
  }
}

/* Another client holds it, the key is gone, or it has another type. */
static void spoil(env_t *env, contender_t **c) {
  foreign_holder(c[0], 60000);
  server_do(env->server, "DEL", key_of(c[1]), NULL);
  server_do(env->server, "DEL", key_of(c[2]), NULL);
  server_do(env->server, "RPUSH", key_of(c[2]), "x", NULL);
}

ENV_TEST(release_results) {
  contender_t *c[N];
  int alone[3];
  make_all(env, c);
  acquire_all(c);
  spoil(env, c);
  for (int i = 0; i < 3; i++)
    alone[i] = release(c[i]);
  server_do(env->server, "FLUSHALL", NULL);
  for (int i = 3; i < N; i++)
    (void)release(c[i]);
  acquire_all(c);
  spoil(env, c + 10);
  uint64_t before = joined(env);
  for (int i = 0; i < N; i++)
    assert_error(begin_release(c[i]), 0);
  for (int i = 0; i < N; i++)
    assert_error(outcome(c[i]), i >= 10 && i < 13 ? alone[i - 10] : 0);
  assert_error(alone[0], BELAY_ENOTOWNER);
  expect_joined(env, before, N);
  assert_int_equal(server_keys(env->server), 2);
}

ENV_TEST(renewal_results) {
  contender_t *c[N];
  make_all(env, c);
  acquire_all(c);
  foreign_holder(c[7], 60000);
  uint64_t before = joined(env);
  for (int i = 0; i < N; i++)
    assert_error(begin_extend(c[i], 100000 + 10000 * i), 0);
  env_until(env, c[N - 1]->extended == 1 && c[7]->extended == 1);
  for (int i = 0; i < N; i++) {
    env_until(env, c[i]->extended == 1);
    assert_error(c[i]->extend_status, i == 7 ? BELAY_ENOTOWNER : 0);
    if (i != 7)
      assert_between(pttl_of(c[i]), 40000 + 10000 * i, 100000 + 10000 * i);
  }
  expect_joined(env, before, N);
}

ENV_TEST(take_results_in_order) {
  belay_limiter_t *limiter = window(env, N / 2 + 3);
  begin_some(env, limiter, asks, N, "k");
  for (int i = 0; i < N; i++) { /* in the order in which they were asked */
    const belay_limiter_result_t *result = answer(&asks[i], 0);
    assert_error(result->cause, 0);
    assert_int_equal(result->verdict, i < N / 2 + 3 ? BELAY_ALLOWED : BELAY_DENIED);
    if (result->verdict == BELAY_ALLOWED)
      assert_int_equal(result->remaining, N / 2 + 2 - i);
  }
  assert_true(joined(env) >= N); /* one key: in a cluster too */
}

ENV_TEST(few_calls_are_not_batched) {
  belay_limiter_t *limiter = window(env, 100);
  begin_some(env, limiter, asks, 3, "k");
  assert_int_equal(count_of(asks, 3, 0), 3);
  assert_int_equal(peek(env, limiter, "k")->remaining, 97);
  assert_int_equal(joined(env), 0);
}

/* Those that wait, and those that travel together, count as so many. */
TEST(max_pending_counts_batched_calls) {
  for (int waits = 0; waits < 2; waits++) {
    belay_client_options_t client = client_options();
    client.max_pending = 10;
    client.on_full = waits ? BELAY_FULL_WAIT : BELAY_FULL_REFUSE;
    env_t *env = env_open(&client);
    belay_limiter_t *limiter = window(env, 1000);
    for (int turn = 1; turn <= 5; turn++) {
      memset(asks, 0, sizeof asks);
      uint64_t before = joined(env);
      begin_some(env, limiter, asks, waits ? N : 10, "k");
      ask_t more = {0};
      if (!waits) {
        int error = belay_limiter_peek(limiter, &more.request, belay_string("k"), on_answer);
        assert_error(error, BELAY_EBUSY);
      }
      assert_int_equal(count_of(asks, waits ? N : 10, 0), waits ? N : 10);
      assert_true(joined(env) >= before + 10);
    }
    assert_int_equal(peek(env, limiter, "k")->remaining, 1000 - 5 * (waits ? N : 10));
    env_close(env);
  }
}

/* ---- order ---- */

/* A DEL of the key neither overtakes the takes before it nor is overtaken by later ones. */
ENV_TEST(order_of_calls_of_one_key) {
  belay_limiter_t *limiter = window(env, 5);
  static ask_t takes[3][5], other[3], resets[2];
  memset(takes, 0, sizeof takes);
  memset(other, 0, sizeof other);
  memset(resets, 0, sizeof resets);
  for (int turn = 0; turn < 3; turn++) {
    begin_some(env, limiter, takes[turn], 5, "k");
    begin(env, limiter, &other[turn], "other");
    if (turn < 2)
      assert_error(
          belay_limiter_reset(limiter, asked(env, &resets[turn]), belay_string("k"), on_answer), 0);
  }
  for (int turn = 0; turn < 3; turn++)
    for (int i = 0; i < 5; i++)
      assert_int_equal(answer(&takes[turn][i], 0)->remaining, 4 - i);
  assert_int_equal(count_of(other, 3, 0) + count_of(resets, 2, 0), 5);
  assert_true(joined(env) >= 12);
}

/* ---- refused as a whole ---- */

ENV_TEST(script_flush) {
  belay_limiter_t *limiter = window(env, 1000);
  for (int turn = 1; turn <= 4; turn++) {
    uint64_t before = joined(env);
    begin_some(env, limiter, asks, N, "k");
    assert_int_equal(count_of(asks, N, 0), N);
    assert_int_equal(peek(env, limiter, "k")->remaining, 1000 - turn * N);
    assert_true(joined(env) >= before + N);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
  }
}

/* The others need not suffer for one that names a key which is not permitted. */
ENV_TEST(one_key_not_permitted) {
  belay_limiter_t *limiter = window(env, 1000);
  server_do(env->server, "ACL", "SETUSER", "default", "resetkeys", "~*{k*", NULL);
  for (int turn = 1; turn <= 2; turn++) {
    for (int i = 0; i < N; i++)
      begin(env, limiter, &asks[i], i % 10 == 7 ? "hidden" : "k");
    for (int i = 0; i < N; i++)
      assert_error(answer(&asks[i], 0)->cause, i % 10 == 7 ? BELAY_EPERM : 0);
    assert_int_equal(peek(env, limiter, "k")->remaining, 1000 - turn * (N - N / 10));
  }
  server_do(env->server, "ACL", "SETUSER", "default", "~*", NULL);
}

/* So is what the scripts are not permitted: nothing was done, and that is known. */
TEST(command_in_script_not_permitted) {
  static const char *const rights[] = {"-set", "-get", "-time"};
  for (size_t r = 0; r < sizeof rights / sizeof *rights; r++) {
    env_t *env = env_open(NULL);
    belay_limiter_t *limiter = window(env, 1000);
    server_do(env->server, "ACL", "SETUSER", "default", rights[r], NULL);
    assert_error(take(env, limiter, "k", 1)->cause, BELAY_EPERM);
    uint64_t unknown = client_stats(env).unknown; /* by itself */
    begin_some(env, limiter, asks, N, "k");
    assert_int_equal(count_of(asks, N, BELAY_EPERM), N);
    assert_int_equal(client_stats(env).unknown, (N + 1) * unknown);
    server_do(env->server, "ACL", "SETUSER", "default", "+@all", NULL);
    assert_int_equal(peek(env, limiter, "k")->remaining, 1000);
    env_close(env);
  }
}

/* ---- connections that end ---- */

/* The server has executed all calls. Those without a complete reply end as unknown. */
TEST(connection_cut_inside_replies) {
  if (servers_are_secure())
    skip(); /* the number of bytes differs there */
  env_t *env = env_open(NULL);
  relay_t *relay = relay_start(server_own_url(env->server));
  belay_client_stats_t stats;
  belay_limiter_options_t options;
  belay_limit_t limit = {.kind = BELAY_LIMIT_FIXED, .count = 1000, .period_us = HOUR};
  options = limiter_options(&limit, 1);
  size_t received = 0;
  for (int turn = 0; turn < 4; turn++) {
    memset(asks, 0, sizeof asks);
    belay_client_t *client = env_connect(env, relay_url(relay), NULL);
    belay_limiter_t *limiter = limiter_with(env, client, &options);
    begin_some(env, limiter, asks, 32, "k");
    assert_int_equal(count_of(asks, 32, turn == 0 ? 0 : BELAY_EUNKNOWN), 32);
    belay_client_stats(client, &stats);
    assert_int_equal(stats.batched, 32);
    if (turn == 0)
      received = stats.bytes_in;
    else
      assert_int_equal(stats.unknown, 32);
    assert_error(begin_close_of(env, client), 0);
    env_settle(env);
    relay_cut_after(relay, received - (size_t)(turn + 1) * 500);
  }
  belay_limiter_t *limiter = window(env, 1000);
  assert_int_equal(peek(env, limiter, "k")->remaining, 1000 - 4 * 32);
  env_close(env);
  relay_stop(relay);
}

/* ---- answers that are none ---- */

static void say(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  if (fake_is_handshake(words))
    fake_behave(link, words, count);
  else
    fake_say(link, arg);
}

/* It may all have been done. */
TEST(wrong_number_of_replies) {
  static char killed[] = "-ERR Error running script (call to f_0): @user_script:400: "
                         "Script killed by user with SCRIPT KILL...\r\n";
  static char few[] = "*3\r\n:1\r\n:1\r\n:1\r\n", many[] = "*5\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n";
  static char one[] = ":1\r\n", nothing[] = "$-1\r\n", none[] = "*0\r\n";
  static char mixed[] =
      "*4\r\n$-1\r\n:1\r\n*1\r\n:1\r\n$1\r\nx\r\n"; /* of types that it cannot be */
  char *const all[] = {killed, few, many, one, nothing, none, mixed};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    fake_t *fake = fake_start(&(fake_options_t){.on_command = say, .arg = all[i]});
    env_t *env = env_open_at(fake_url(fake), NULL);
    belay_limiter_t *limiter = window(env, 1000);
    begin_some(env, limiter, asks, 4, "k");
    for (int j = 0; j < 4; j++)
      assert_int_not_equal(answer(&asks[j], 0)->cause, 0);
    belay_client_stats_t stats = client_stats(env);
    assert_int_equal(stats.batched, 4);
    if (all[i] != mixed) /* `mixed` replies to each call */
      assert_int_equal(stats.unknown, 4);
    assert_int_equal(fake_commands(fake), 1); /* none was sent again */
    assert_int_equal(stats.drops, all[i] != killed);
    env_close(env);
    fake_stop(fake);
  }
}

typedef struct moving {
  atomic_bool held; /* true while new grants are to be released */
  atomic_uint refused;
} moving_t;

/* Of several keys of a slot that is moved some may be in one place, and others in the other. */
static void say_of_a_moving_slot(fake_link_t *link, const char *const *words, size_t count,
                                 void *arg) {
  moving_t *moving = arg;
  if (fake_is_handshake(words)) {
    fake_behave(link, words, count);
  } else if (strcmp(words[2], "1") == 0) {
    fake_say(link, atomic_load(&moving->held) ? ":1\r\n" : ":0\r\n");
  } else {
    atomic_fetch_add(&moving->refused, 1);
    fake_say(link, "-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
  }
}

TEST(tryagain_during_slot_move) {
  static moving_t moving;
  fake_t *fake = fake_start(&(fake_options_t){.on_command = say_of_a_moving_slot, .arg = &moving});
  env_t *env = env_open_at(fake_url(fake), NULL);
  contender_t *c[N];
  make_all(env, c);
  acquire_all(c);
  atomic_store(&moving.held, true);
  for (int i = 0; i < N; i++)
    assert_error(begin_release(c[i]), 0);
  for (int i = 0; i < N; i++)
    assert_error(outcome(c[i]), 0);
  env_close(env);
  fake_stop(fake);
  assert_in_range(atomic_load(&moving.refused), 1, N / 4);
}

/* ---- callers that give up ---- */

/* A call that waits for its batch was not sent. */
ENV_TEST(cancel_before_send) {
  belay_limiter_t *limiter = window(env, 1000);
  (void)peek(env, limiter, "k"); /* connected */
  begin_some(env, limiter, asks, 20, "k");
  for (int i = 0; i < 20; i += 2)
    assert_error(belay_request_cancel(&asks[i].request), 0);
  for (int i = 0; i < 20; i++)
    assert_error(answer(&asks[i], 0)->cause, i % 2 == 0 ? BELAY_ECANCELED : 0);
  assert_int_equal(peek(env, limiter, "k")->remaining, 1000 - 10);
  assert_int_equal(client_stats(env).unknown, 0);
}

ENV_TEST(cancel_after_send) {
  belay_limiter_t *limiter = window(env, 1000);
  (void)peek(env, limiter, "k");
  server_pause(env->server);
  begin_some(env, limiter, asks, 20, "k");
  uint64_t before = client_stats(env).writes;
  env_until(env, client_stats(env).writes > before);
  for (int i = 0; i < 20; i += 2)
    assert_error(belay_request_cancel(&asks[i].request), 0);
  assert_int_equal(count_of(asks, 1, BELAY_ECANCELED), 1);
  server_resume(env->server);
  for (int i = 0; i < 20; i++)
    assert_error(answer(&asks[i], 0)->cause, i % 2 == 0 ? BELAY_ECANCELED : 0);
  assert_int_equal(peek(env, limiter, "k")->remaining, 1000 - 20);
}

ENV_TEST(deadline_before_send) {
  belay_limiter_t *limiter = window(env, 1000);
  (void)peek(env, limiter, "k");
  for (int i = 0; i < 20; i++) {
    asks[i].request.timeout_ms = i % 2 == 0 ? 1 : 0;
    begin(env, limiter, &asks[i], "k");
  }
  usleep(20000); /* the loop is away */
  for (int i = 0; i < 20; i++)
    assert_int_equal(answer(&asks[i], 0)->cause == 0, i % 2 == 1);
  assert_int_equal(client_stats(env).not_sent, 10);
  assert_int_equal(peek(env, limiter, "k")->remaining, 1000 - 10);
}

/* At every moment: while they wait, when they are on the way, and from inside the first answer. */
static void close_now(ask_t *ask) {
  assert_error(begin_client_close(ask->env), 0);
  ask->then = NULL;
}

TEST(client_close_with_calls) {
  for (int moment = 0; moment < 3; moment++) {
    env_t *env = env_open(NULL);
    belay_limiter_t *limiter = window(env, 1000);
    (void)peek(env, limiter, "k");
    if (moment == 2)
      asks[0].then = close_now;
    begin_some(env, limiter, asks, N, "k");
    uint64_t before = client_stats(env).writes;
    if (moment == 1)
      env_until(env, client_stats(env).writes > before);
    if (moment < 2)
      assert_error(begin_client_close(env), 0);
    env_until(env, env->client_closed == 1);
    for (int i = 0; i < N; i++)
      assert_int_equal(asks[i].ended, 1);
    env_close(env);
  }
}

/* Locks that are taken and given back as fast as can be: never two at a time, nothing is left. */
static void on_turn(contender_t *c, event_t event) {
  int *left = c->arg;
  if (event != EVENT_ENDED || c->status != 0)
    return;
  if (belay_lock_remaining_us(c->lock) > 0)
    assert_error(begin_release(c), 0);
  else if (--*left > 0)
    assert_error(begin_acquire(c, 0), 0);
}

/* Calls are queued when the loss of the connection is detected. Earlier replies still count. */
TEST(replies_before_connection_loss_count) {
  enum { HELD = 3 }; /* calls sent alone, more than one write takes */
  env_t *env = env_open(NULL);
  if (strncmp(server_url(env->server), "unix", 4) !=
      0) { /* elsewhere what was not read may be lost */
    env_close(env);
    skip();
  }
  contender_t *c[N];
  make_all(env, c);
  for (int i = 0; i < HELD; i++)
    assert_error(acquire(c[i], 0), 0);
  server_pause(env->server);
  for (int i = HELD; i < 10; i++)
    assert_error(begin_acquire(c[i], 0), 0);
  uv_run(&env->loop, UV_RUN_NOWAIT);
  server_resume(env->server);
  stall_ms(100 * slow()); /* answered, and not read */
  server_kill(env->server);
  for (int i = 0; i < HELD; i++)
    assert_error(begin_release(c[i]), 0);
  assert_error(begin_acquire(c[10], 0), 0);
  for (int i = HELD; i < 10; i++)
    assert_error(outcome(c[i]), 0);
  env_close(env);
}

ENV_TEST(concurrent_lock_cycles) {
  contender_t *c[N];
  int left[N];
  make_all(env, c);
  for (int i = 0; i < N; i++) {
    left[i] = 50;
    c[i]->arg = &left[i];
    c[i]->then = on_turn;
    assert_error(begin_acquire(c[i], 0), 0);
  }
  for (int i = 0; i < N; i++)
    env_until(env, left[i] == 0);
  assert_int_equal(server_keys(env->server), 0);
  for (int i = 0; i < N; i++)
    assert_int_equal(c[i]->ended, 100);
  expect_joined(env, 0, N);
}
