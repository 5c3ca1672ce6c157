/* Sweeps with faults: lost replies, replaced servers, large or wrong replies, closes. */
#include <stdio.h>

#include "support/deployments/fake.h"
#include "support/deployments/relay.h"
#include "support/fixtures/admin/sweeps.h"

/* The connection is cut again and again, before and after the execution of a call. */
TEST(lost_replies) {
  for (int remove = 0; remove < 2; remove++) {
    char key[SWEEPER_KEY_MAX];
    env_t *env = env_open_relayed(NULL);
    make_keys(env->server, "belay::k", 2000);
    make_keys(env->server, "other::k", 100);
    belay_sweep_options_t options = sweep_options("k*", remove == 1);
    options.batch = 100;
    options.keys_per_s = 20000;
    sweeper_t *sweeper = sweeper_new(env, env->client, &options);
    relay_delay(env->relay, 2);
    assert_error(begin_sweep(sweeper), 0);
    for (int i = 0; sweeper->done == 0; i++) {
      env_run_for(env, 5 + i % 7 * 3);
      if (i < 12 || client_stats(env).drops == 0)
        relay_cut(env->relay);
    }
    assert_error(sweeper->status, 0);
    assert_int_equal(sweeper->totals.restarts, 0); /* it was the same server all the time */
    if (remove) {
      assert_int_equal(server_keys(env->server), 100);
      assert_between((int64_t)sweeper->totals.deleted, 1, 2000);
    } else {
      for (int i = 1; i <= 2000; i += 3) {
        snprintf(key, sizeof key, "belay::k%d", i);
        assert_true(times_found(sweeper, key) >= 1);
      }
    }
    assert_true(client_stats(env).drops > 0);
    env_close(env);
  }
}

static void replace_server(sweeper_t *sweeper, sweeper_event_t event) {
  if (event == SWEEPER_PROGRESS && sweeper->progress == 5)
    server_restart_keeping(sweeper->env->server);
}

ENV_TEST(restart_on_another_server) {
  char key[SWEEPER_KEY_MAX];
  make_keys(env->server, "belay::k", 1000);
  belay_sweep_options_t options = sweep_options("k*", false);
  options.batch = 100;
  sweeper_t *sweeper = sweeper_new(env, env->client, &options);
  sweeper->then = replace_server;
  expect_sweep(sweeper, 0);
  assert_int_equal(sweeper->totals.restarts, 1);
  for (int i = 1; i <= 1000; i++) {
    snprintf(key, sizeof key, "belay::k%d", i);
    assert_true(times_found(sweeper, key) >= 1);
  }
  assert_true(sweeper->found > 1000); /* the first pages twice */
  sweeper->then = NULL;
  expect_sweep(sweeper, 0); /* the next run begins with nothing of the last one */
  assert_int_equal(sweeper->totals.restarts, 0);
}

ENV_TEST_OF(patience_ends, o.timeout_ms = 100; o.reconnect_max_ms = 50) {
  make_keys(env->server, "belay::k", 1000);
  belay_sweep_options_t options = sweep_options("k*", true);
  options.patience_ms = 600;
  sweeper_t *patient = sweeper_new(env, env->client, &options);
  options.patience_ms = 0;
  sweeper_t *other = sweeper_new(env, env->client, &options);
  server_kill(env->server);
  env_run_for(env, 50);
  int64_t begun = clock_now();
  assert_error(begin_sweep(patient), 0);
  expect_sweep(other, BELAY_EUNREACHABLE);
  assert_error(end_of_sweep(patient), BELAY_EUNREACHABLE);
  assert_between((patient->done_at - begun) / MS, 600, 600 + 3000 * slow());
  assert_true(other->done_at < patient->done_at);
  server_restart(env->server);
  make_keys(env->server, "belay::k", 10);
  expect_sweep(patient, 0);
  assert_int_equal(patient->totals.deleted, 10);
}

/* A pause of the sweep is no delay of a reply. Without replies the sweep sends no faster. */
ENV_TEST_OF(pause_does_not_use_patience, o.timeout_ms = 100 * slow()) {
  make_keys(env->server, "belay::k", 50);
  belay_sweep_options_t options = sweep_options("k*", false);
  options.batch = 40; /* there are two pages */
  options.keys_per_s = (uint32_t)(100 / slow());
  options.patience_ms = 300 * slow(); /* less than it rests */
  sweeper_t *sweeper = sweeper_new(env, env->client, &options);
  int64_t begun = clock_now();
  assert_error(begin_sweep(sweeper), 0);
  env_until(env, sweeper->progress == 1);
  server_pause(env->server);
  env_run_for(env, 550 * slow()); /* it has rested, and has had no answer */
  server_resume(env->server);
  assert_int_equal(sweeper->done, 0);
  assert_error(end_of_sweep(sweeper), 0);
  assert_between((sweeper->done_at - begun) / MS, 750 * slow(), 800 * slow() + 3000);
  assert_int_equal(sweeper->found, 50);
}

static void make_long_keys(server_t *server, unsigned n, size_t len) {
  char *key = calloc(1, len + 16);
  for (unsigned i = 0; i < n; i++) {
    int at = snprintf(key, 16, "belay::%u", i);
    memset(key + at, 'x', len);
    key[(size_t)at + len] = '\0';
    server_do(server, "SET", key, "1", NULL);
  }
  free(key);
}

ENV_TEST_OF(page_size_is_reduced, o.max_reply = o.max_bytes = 65536; o.reconnect_min_ms = 1;
            o.reconnect_max_ms = 2) {
  /* Not longer: a shrinking table collects its keys in a few buckets, which SCAN returns whole. */
  make_long_keys(env->server, 600, 1000);
  const belay_sweep_options_t options = sweep_options("*", true);
  sweeper_t *sweeper = sweeper_new(env, env->client, &options);
  expect_sweep(sweeper, 0);
  assert_int_equal(server_keys(env->server), 0);
  assert_int_equal(sweeper->totals.deleted, 600);
  make_long_keys(env->server, 1, 200000); /* and this one is too large by itself */
  expect_sweep(sweeper, BELAY_EPROTO);
  assert_int_equal(server_keys(env->server), 1);
}

static const char *detail_of_refusal;

static void keep_detail(sweeper_t *sweeper, sweeper_event_t event) {
  if (event == SWEEPER_DONE)
    detail_of_refusal = belay_detail(sweeper->env->belay);
}

ENV_TEST(scan_or_unlink_not_permitted) {
  static const char *const rights[] = {"-scan", "-unlink"};
  make_keys(env->server, "belay::k", 100);
  const belay_sweep_options_t options = sweep_options("*", true);
  sweeper_t *sweeper = sweeper_new(env, env->client, &options);
  sweeper->then = keep_detail;
  for (int i = 0; i < 2; i++) {
    server_do(env->server, "ACL", "SETUSER", "default", rights[i], NULL);
    expect_sweep(sweeper, BELAY_EPERM);
    assert_non_null(strstr(detail_of_refusal, rights[i] + 1));
    server_do(env->server, "ACL", "SETUSER", "default", "+@all", NULL);
    assert_int_equal(server_keys(env->server), 100);
    if (i == 0)
      assert_int_equal(sweeper->totals.matched, 0);
    else
      assert_between((int)sweeper->totals.matched, 1,
                     100); /* of the first node, if there are several */
  }
  expect_sweep(sweeper, 0);
  assert_int_equal(server_keys(env->server), 0);
}

typedef struct liar {
  const char *scan, *unlink; /* what it says */
} liar_t;

static void lie(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  const liar_t *liar = arg;
  if (strcmp(words[0], "SCAN") == 0)
    fake_say(link, liar->scan);
  else if (strcmp(words[0], "UNLINK") == 0)
    fake_say(link, liar->unlink);
  else
    fake_behave(link, words, count);
}

#define ONE "*2\r\n$1\r\n0\r\n*1\r\n$8\r\nbelay::k\r\n"

TEST(replies_are_read_strictly) {
  static const struct {
    liar_t liar;
    int status;
    unsigned matched;
  } rows[] = {
      {{"*2\r\n$1\r\n0\r\n*0\r\n", "+OK\r\n"}, 0, 0},
      {{ONE, ":1\r\n"}, 0, 1},
      /* of others */
      {{"*2\r\n$1\r\n0\r\n*4\r\n$8\r\nother::k\r\n$6\r\nbelay:\r\n$0\r\n\r\n$7\r\nbelay::\r\n",
        ":1\r\n"},
       0,
       1},
      {{"*2\r\n$1\r\n0\r\n*1\r\n$8\r\nbelay:xk\r\n", "+OK\r\n"}, 0, 0},
      {{ONE, ":2\r\n"}, BELAY_EPROTO, 1},
      {{ONE, ":-1\r\n"}, BELAY_EPROTO, 1},
      {{ONE, "$1\r\n1\r\n"}, BELAY_EPROTO, 1},
      {{"*1\r\n$1\r\n0\r\n", ":1\r\n"}, BELAY_EPROTO, 0},
      {{"*2\r\n:0\r\n*0\r\n", ":1\r\n"}, BELAY_EPROTO, 0},
      {{"*2\r\n$2\r\n-1\r\n*0\r\n", ":1\r\n"}, BELAY_EPROTO, 0},
      {{"*2\r\n$20\r\n18446744073709551616\r\n*0\r\n", ":1\r\n"}, BELAY_EPROTO, 0},
      {{"*2\r\n$1\r\n0\r\n$0\r\n\r\n", ":1\r\n"}, BELAY_EPROTO, 0},
      {{"*2\r\n$1\r\n0\r\n*1\r\n:1\r\n", ":1\r\n"}, BELAY_EPROTO, 0},
      {{"+OK\r\n", ":1\r\n"}, BELAY_EPROTO, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    liar_t liar = rows[i].liar;
    fake_t *fake = fake_start(&(fake_options_t){.on_command = lie, .arg = &liar});
    env_t *env = env_open_at(fake_url(fake), NULL);
    belay_sweep_options_t options = sweep_options("*", true);
    options.batch = 1; /* else it asks for less, again and again */
    sweeper_t *sweeper = sweeper_new(env, env->client, &options);
    expect_sweep(sweeper, rows[i].status);
    assert_int_equal(sweeper->found, rows[i].matched);
    assert_int_equal(sweeper->totals.deleted, rows[i].status == 0 ? rows[i].matched : 0);
    env_close(env);
    fake_stop(fake);
  }
}

/* Each connection seems to lead to another server without an identity. */
static void forget(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  (void)arg;
  if (strcmp(words[0], "INFO") == 0) {
    fake_say(link, "-NOPERM no\r\n");
    return;
  }
  if (strcmp(words[0], "SCAN") != 0) {
    fake_behave(link, words, count);
    return;
  }
  fake_say(link, "*2\r\n$20\r\n18446744073709551615\r\n*0\r\n");
  fake_hang_up(link);
}

TEST_ON(restarts_are_bounded, fake, fake_start(&(fake_options_t){.on_command = forget})) {
  belay_client_options_t client = client_options();
  client.reconnect_min_ms = 1;
  client.reconnect_max_ms = 2;
  env_t *env = env_open_at(fake_url(fake), &client);
  const belay_sweep_options_t options = sweep_options("*", false);
  sweeper_t *sweeper = sweeper_new(env, env->client, &options);
  expect_sweep(sweeper, BELAY_ELOST);
  assert_int_equal(sweeper->totals.restarts, BELAY_SWEEP_RESTARTS_MAX + 1);
  env_close(env);
}

typedef enum end { CANCEL, SWEEP, CLIENT, BELAY, ENDS } end_t;

static struct {
  sweeper_event_t event;
  end_t end;
  bool done;
} plot;

static void end_it(sweeper_t *sweeper, sweeper_event_t event) {
  if (event != plot.event || plot.done)
    return;
  plot.done = true;
  assert_error(begin_sweep(sweeper), event == SWEEPER_DONE ? 0 : BELAY_ESTATE);
  assert_error(plot.end == CANCEL   ? belay_sweep_cancel(sweeper->sweep)
               : plot.end == SWEEP  ? begin_close_sweeper(sweeper)
               : plot.end == CLIENT ? begin_client_close(sweeper->env)
                                    : begin_belay_close(sweeper->env),
               0);
}

/* Each kind of callback ends everything while keys remain. Keys whose deletion was not reported
 * stay. */
TEST(close_in_any_callback) {
  for (plot.event = SWEEPER_KEYS; plot.event <= SWEEPER_DONE; plot.event++)
    for (plot.end = CANCEL; plot.end < ENDS; plot.end++) {
      env_t *env = env_open(NULL);
      server_t *server = env->server;
      make_keys(server, "belay::k", 500);
      belay_sweep_options_t options = sweep_options("*", true);
      options.batch = 10;
      sweeper_t *sweeper = sweeper_new(env, env->client, &options);
      plot.done = false;
      sweeper->then = end_it;
      assert_error(begin_sweep(sweeper), 0);
      env_until(env, sweeper->done == (plot.event == SWEEPER_DONE ? 2u : 1u));
      assert_error(sweeper->status, BELAY_ECANCELED);
      if (plot.event == SWEEPER_KEYS)
        assert_int_equal(server_keys(server), 500);
      else if (plot.event == SWEEPER_PROGRESS)
        assert_int_equal(server_keys(server), 500 - sweeper->found);
      if (plot.end == SWEEP)
        env_until(env, sweeper->closed == 1);
      if (plot.end == CANCEL) { /* it is of use again */
        sweeper->then = NULL;
        expect_sweep(sweeper, 0);
        assert_int_equal(server_keys(server), 0);
      }
      env_close(env);
    }
}

/* While it is asked for, while it rests, while nothing can be reached. */
TEST(close_at_any_time) {
  for (int how = 0; how < 3; how++)
    for (plot.end = CANCEL; plot.end < ENDS; plot.end++) {
      env_t *env = env_open(NULL);
      make_keys(env->server, "belay::k", 100);
      belay_sweep_options_t options = sweep_options("*", false);
      options.batch = 10;
      options.keys_per_s = 1;
      sweeper_t *sweeper = sweeper_new(env, env->client, &options);
      if (how == 2)
        server_kill(env->server);
      assert_error(begin_sweep(sweeper), 0);
      if (how == 1)
        env_until(env, sweeper->progress == 1);
      else if (how == 2)
        env_run_for(env, 10);
      plot.event = SWEEPER_KEYS;
      plot.done = false;
      end_it(sweeper, SWEEPER_KEYS);
      assert_int_equal(sweeper->done, 0);
      env_until(env, sweeper->done == 1);
      assert_error(sweeper->status, BELAY_ECANCELED);
      env_close(env);
    }
}
