/* TLS connections that stall or are cut at any byte, and the outcome of the calls in flight. */
#include <signal.h>
#include <stdio.h>

#include "support/fixtures/data/counters.h"
#include "support/deployments/relay.h"
#include "support/servers/secure.h"

enum { CUTS = 60, ADDS = 3000, TEARS = 12, HANDSHAKE_BYTES = 3000 };

static certs_t *certs;
static volatile sig_atomic_t pipes; /* how often SIGPIPE was raised */

static void on_pipe(int number) {
  (void)number;
  pipes = pipes + 1;
}

TEST_BEGIN {
  signal(SIGPIPE, on_pipe);
  certs = certs_new("ca");
  certs_make(certs, "server", NULL);
  certs_make(certs, "client", NULL);
}

TEST_END {
  certs_free(certs);
  assert_int_equal(pipes, 0);
}

/* A server that wants to know who we are, behind a relay. */
typedef struct fixture {
  server_t *server;
  relay_t *relay;
  env_t *env;
} fixture_t;

static fixture_t fixture_open(int64_t connect_timeout_ms) {
  fixture_t s = {.server = secure_server(certs, &(secure_t){.clients = "yes"})};
  s.relay = relay_start(server_url(s.server));
  belay_tls_options_t tls = trust(certs, "client");
  belay_client_options_t client = client_options();
  client.connect_timeout_ms = connect_timeout_ms;
  client.timeout_ms = 2 * connect_timeout_ms;
  client.reconnect_max_ms = 50;
  s.env =
      secure_env(url_of("rediss", NULL, "127.0.0.1", port_of(relay_url(s.relay))), &tls, &client);
  return s;
}

static void strike(fixture_t *s) {
  env_close(s->env);
  relay_stop(s->relay);
  server_stop(s->server);
}

static void expect_in_the_end(env_t *env, int status) {
  for (int64_t began = clock_now(); pong(env, NULL) != status;)
    assert_between(clock_since_ms(began), 0, 15000 * slow());
}

/* ---- in the middle of a handshake ---- */

/* A handshake that stalls at any byte ends within its time limit, and other connections do not
 * wait for it. */
TEST(stalled_handshake) {
  static const size_t bytes[] = {1, 5, 100, 130, 700, 1400};
  fixture_t s = fixture_open(300);
  belay_tls_options_t tls = trust(certs, "client");
  belay_client_t *stalled = s.env->client;
  belay_client_t *other =
      secure_connect(s.env, url_of("rediss", NULL, "127.0.0.1", server_port(s.server)), &tls, NULL);
  for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
    const char *detail;
    relay_silence_after(s.relay, bytes[i]);
    contender_t *c = contender_of(s.env, stalled, "stalled", NULL);
    assert_error(begin_acquire(c, 0), 0);
    s.env->client = other;
    assert_error(pong(s.env, NULL), 0);
    s.env->client = stalled;
    assert_error(outcome(c), BELAY_EUNREACHABLE);
    assert_error(pong(s.env, &detail), BELAY_EUNREACHABLE);
    assert_null(strstr(detail, "perhaps")); /* it does speak TLS, as far as it has come */
    assert_error(close_lock(c), 0);
  }
  relay_silence_after(s.relay, 0);
  expect_in_the_end(s.env, 0);
  strike(&s);
}

TEST(handshake_cut_anywhere) {
  fixture_t s = fixture_open(2000);
  srand(20);
  for (int i = 0; i < CUTS; i++) {
    relay_cut_after(s.relay, 1 + (size_t)rand() % HANDSHAKE_BYTES);
    relay_cut(s.relay);
    contender_t *c = contender_new(s.env, "cut", NULL);
    assert_error(begin_acquire(c, 0), 0);
    env_run_for(s.env, rand() % 20);
    relay_cut_after(s.relay, 0);
    int status = outcome(c); /* any status must be true */
    assert_true(status == 0 || status == BELAY_EUNKNOWN || status == BELAY_EUNREACHABLE);
    s.env->server = s.server;
    assert_int_equal(status == 0, is_on_server(c));
    s.env->server = NULL;
    assert_error(close_lock(c), 0);
    env_settle(s.env);
  }
  assert_true(client_stats(s.env).connect_errors > CUTS / 4);
  strike(&s);
}

/* A client that goes in the middle of it leaves nothing behind. */
TEST(close_at_any_time) {
  srand(21);
  for (int i = 0; i < 20; i++) {
    fixture_t s = fixture_open(2000);
    contender_t *c = contender_new(s.env, "x", NULL);
    assert_error(begin_acquire(c, 0), 0);
    for (int turns = i; turns > 0; turns--)
      uv_run(&s.env->loop, UV_RUN_NOWAIT);
    strike(&s);
  }
}

/* ---- in the middle of everything ---- */

/* Counters that get 1 once each. A call that was sent but reported as not sent would be repeated
 * and count twice. Bytes from before a cut still arrive. */
TEST(connections_cut_during_counts) {
  static count_t counts[ADDS];
  unsigned unknown = 0;
  srand(22);
  fixture_t s = fixture_open(2000);
  counters_t counters;
  counters_new(&counters, s.env, NULL);
  for (int tear = 0; tear < TEARS; tear++) {
    relay_delay(s.relay, rand() % 4);
    if (tear % 2 == 0)
      relay_cut_after(s.relay, HANDSHAKE_BYTES + (size_t)rand() % 30000);
    for (int i = 0; i < ADDS; i++) {
      char key[160];
      snprintf(key, sizeof key, "%d-%d-%0*d", tear, i, rand() % 100, 0);
      counts[i] = (count_t){0};
      assert_error(BEGIN(&counters, &counts[i], add, belay_string(key), 1, on_result), 0);
    }
    env_run_for(s.env, 1 + rand() % 10);
    relay_cut_after(s.relay, 0);
    relay_haunt(s.relay);
    env_until(s.env, counters.pending == 0);
    for (int i = 0; i < ADDS; i++) {
      unknown += counts[i].status == BELAY_EUNKNOWN;
      assert_true(counts[i].status == 0 || counts[i].status == BELAY_EUNKNOWN);
      assert_true(counts[i].status != 0 || counts[i].result.value == 1);
    }
  }
  relay_delay(s.relay, 0);
  env_run_for(s.env, 200); /* ghosts have had their chance */
  server_do(s.server, "EVAL",
            "for _, key in ipairs(redis.call('KEYS', '*')) do "
            "if redis.call('GET', key) ~= '1' then return redis.error_reply(key) end end return 1",
            "0", NULL);
  print_message("# %u of %d not known, %lld keys\n", unknown, ADDS * TEARS,
                (long long)server_keys(s.server));
  assert_true(server_keys(s.server) >= ADDS * TEARS - unknown);
  begin_close_counters(&counters);
  env_until(s.env, counters.closed == counters.closing);
  strike(&s);
}

/* The network takes no more bytes, and megabytes wait: unsent calls use the next connection. */
TEST(unsent_calls_use_the_next_connection) {
  enum { MANY = 40000 };
  static count_t counts[MANY];
  fixture_t s = fixture_open(2000);
  counters_t counters;
  counters_new(&counters, s.env, NULL);
  assert_error(pong(s.env, NULL), 0);
  expect_added(&counters, "first", 1, 1); /* on the connection class that is filled below */
  relay_silence(s.relay);
  for (int i = 0; i < MANY; i++) {
    char key[256];
    snprintf(key, sizeof key, "%d-%0*d", i, 200, 0);
    assert_error(BEGIN(&counters, &counts[i], add, belay_string(key), 1, on_result), 0);
  }
  uint64_t out = 0;
  do {
    out = client_stats(s.env).bytes_out;
    env_run_for(s.env, 50);
  } while (client_stats(s.env).bytes_out > out);
  relay_cut(s.relay);
  env_until(s.env, counters.pending == 0);
  unsigned unknown = 0;
  for (int i = 0; i < MANY; i++) {
    assert_true(counts[i].status == 0 || counts[i].status == BELAY_EUNKNOWN);
    unknown += counts[i].status != 0;
  }
  print_message("# %u of %d not known\n", unknown, MANY);
  assert_true(unknown > 0 && unknown < MANY);
  assert_int_equal(server_keys(s.server), MANY - unknown + 1);
  begin_close_counters(&counters);
  env_until(s.env, counters.closed == counters.closing);
  strike(&s);
}
