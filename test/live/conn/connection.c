/* Connections: idle ones, extra ones, their limits, and the trace hook. */
#include <stdio.h>
#include <unistd.h>

#include "support/fixtures/env.h"
#include "support/deployments/fake.h"
#include "support/deployments/relay.h"
#include "support/fixtures/subscriber.h"

/* ---- links ---- */

TEST(idle_connection_is_checked_before_use) {
  belay_client_options_t options = client_options();
  options.idle_timeout_ms = lag();
  env_t *env = env_open(&options);
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  int64_t pings = server_calls(env->server, "ping");
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  assert_int_equal(server_calls(env->server, "ping"), pings); /* not idle for long */
  env_run_for(env, options.idle_timeout_ms + 100);
  assert_error(try_lock(c), 0);
  assert_int_equal(server_calls(env->server, "ping"), pings + 1);
  env_close(env);
}

ENV_TEST_OF(idle_connection_killed, o.idle_timeout_ms = 50) {
  contender_t *c = contender_new(env, "door", NULL);
  for (int i = 0; i < 3; i++) {
    assert_error(try_lock(c), 0);
    assert_error(release(c), 0);
    env_run_for(env, 100);
    server_do(env->server, "CLIENT", "KILL", "TYPE", "normal", NULL);
  }
  assert_error(try_lock(c), 0);
  assert_int_equal(client_stats(env).unknown, 0);
}

/* The connection is dead without a message: the liveness check detects it, and no outcome is
 * unknown. */
TEST(idle_connection_silent) {
  belay_client_options_t options = client_options();
  options.idle_timeout_ms = 50;
  options.connect_timeout_ms = prompt_ms();
  options.timeout_ms = 2000 * slow();
  env_t *env = env_open_relayed(&options);
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  env_run_for(env, 100);
  relay_silence(env->relay);
  assert_error(try_lock(c), 0);
  assert_int_equal(client_stats(env).unknown, 0);
  assert_int_equal(relay_connections(env->relay), 2 + deployment_is_cluster());
  assert_true(is_on_server(c));
  env_close(env);
}

/* Nothing was sent, and that is what is said. */
ENV_TEST_OF(idle_check_without_reply, o.idle_timeout_ms = 50; o.timeout_ms = prompt_ms()) {
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  env_run_for(env, 100);
  server_pause(env->server);
  assert_error(try_lock(c), BELAY_EUNREACHABLE);
  server_resume(env->server);
  assert_error(acquire(c, 5000), 0);
}

ENV_TEST_OF(idle_extra_connections_close, o.connections = 4; o.idle_timeout_ms = prompt_ms()) {
  char name[16];
  for (int i = 0; i < 40; i++) {
    snprintf(name, sizeof name, "door-%d", i);
    contender_t *c = contender_new(env, name, NULL);
    assert_error(try_lock(c), 0);
    assert_error(release(c), 0);
  }
  assert_int_equal(client_stats(env).connections_up, 4);
  env_until(env, client_stats(env).connections_up == 1);
  assert_int_equal(client_stats(env).drops, 0); /* nothing was lost */
}

ENV_TEST(first_use_connects) {
  contender_t *c = contender_new(env, "door", NULL);
  int64_t before = server_info(env->server, "stats", "total_connections_received");
  env_run_for(env, 50);
  assert_int_equal(server_info(env->server, "stats", "total_connections_received"), before);
  assert_error(try_lock(c), 0);
  assert_int_equal(server_info(env->server, "stats", "total_connections_received"),
                   before + 1 + deployment_is_cluster());
  assert_int_equal(client_stats(env).connects, 1 + deployment_scouts());
  assert_int_equal(client_stats(env).connections_up, 1);
}

/* ---- limits ---- */

enum { CONTENDERS = 10, ROOM = 4 };

/* Ten contenders on a connection that has room for four calls and a server that stands still. */
static void acquire_all(env_t *env, contender_t **all) {
  char name[32];
  contender_t *first = contender_new(env, "first", NULL);
  assert_error(try_lock(first), 0);
  assert_error(release(first), 0);
  server_pause(env->server);
  for (int i = 0; i < CONTENDERS; i++) {
    snprintf(name, sizeof name, "door-%d", i);
    all[i] = contender_new(env, name, NULL);
    assert_error(begin_acquire(all[i], 0), 0);
  }
}

ENV_TEST_OF(max_pending_refuses, o.max_pending = ROOM; o.timeout_ms = 10000) {
  contender_t *all[CONTENDERS];
  acquire_all(env, all);
  env_until(env, all[CONTENDERS - 1]->ended == 1);
  for (int i = ROOM; i < CONTENDERS; i++)
    assert_error(outcome(all[i]), BELAY_EBUSY);
  assert_true(belay_err_retryable(BELAY_EBUSY));
  server_resume(env->server);
  for (int i = 0; i < ROOM; i++)
    assert_error(outcome(all[i]), 0);
  assert_int_equal(server_keys(env->server), ROOM);
}

ENV_TEST_OF(max_pending_waits, o.max_pending = ROOM; o.timeout_ms = 10000;
            o.on_full = BELAY_FULL_WAIT) {
  contender_t *all[CONTENDERS];
  acquire_all(env, all);
  env_run_for(env, 100);
  for (int i = 0; i < CONTENDERS; i++)
    assert_int_equal(all[i]->ended, 0);
  server_resume(env->server);
  for (int i = 0; i < CONTENDERS; i++)
    assert_error(outcome(all[i]), 0);
  assert_int_equal(server_keys(env->server), CONTENDERS);
}

ENV_TEST_OF(max_pending_waits_until_the_deadline, o.max_pending = ROOM; o.timeout_ms = prompt_ms();
            o.on_full = BELAY_FULL_WAIT) {
  contender_t *all[CONTENDERS];
  acquire_all(env, all);
  for (int i = 0; i < CONTENDERS; i++)
    assert_error(outcome(all[i]), i < ROOM ? BELAY_EUNKNOWN : BELAY_EBUSY);
  server_resume(env->server);
  env_settle(env);
  env_until(env, server_keys(env->server) == 0);
}

/* Bytes that the server does not take stay where they can be withdrawn: their calls end as not
 * sent. */
ENV_TEST_OF(server_does_not_read, o.timeout_ms = prompt_ms()) {
  enum { MANY = 400, EACH = 60000 };
  static char words[EACH];
  static publication_t all[MANY];
  assert_int_equal(publish(env, all, "news", "first"), 0);
  memset(words, 'x', sizeof words);
  memset(all, 0, sizeof all);
  server_pause(env->server);
  for (int i = 0; i < MANY; i++)
    assert_error(begin_publish(env, env->client, &all[i], "news", words, sizeof words), 0);
  unsigned unknown = 0, unsent = 0;
  for (int i = 0; i < MANY; i++) {
    env_until(env, all[i].ended == 1);
    unknown += all[i].status == BELAY_EUNKNOWN;
    unsent += all[i].status == BELAY_EBUSY;
  }
  assert_int_equal(unknown + unsent, MANY);
  assert_true(unsent >= MANY / 2);
  server_resume(env->server);
  publication_t last = {0};
  while (publish(env, &last, "news", "last") != 0)
    env_run_for(env, 10);
  env_settle(env);
  assert_in_range(server_publications(env->server), 2, unknown + 10);
}

ENV_TEST_OF(max_bytes_refuses, o.max_bytes = 65536; o.timeout_ms = 10000;
            o.on_full = BELAY_FULL_WAIT) {
  enum { MANY = 120 };
  contender_t *all[MANY];
  char name[1001];
  contender_t *first = contender_new(env, "first", NULL);
  assert_error(try_lock(first), 0);
  server_pause(env->server);
  int busy = 0;
  for (int i = 0; i < MANY; i++) {
    snprintf(name, sizeof name, "%01000d", i);
    all[i] = contender_new(env, name, NULL);
    assert_error(begin_acquire(all[i], 0), 0);
  }
  assert_true(client_stats(env).pending_bytes <= 65536);
  assert_error(begin_release(first), 0); /* gives something back: not subject to the limit */
  server_resume(env->server);
  for (int i = 0; i < MANY; i++) {
    int status = outcome(all[i]);
    assert_true(status == 0 || status == BELAY_EBUSY);
    busy += status == BELAY_EBUSY;
  }
  assert_error(outcome(first), 0);
  assert_between(busy, 50, 70); /* a call is a little more than a kilobyte */
  assert_int_equal(client_stats(env).pending_bytes, 0);
}

/* ---- hooks ---- */

typedef struct traced {
  char text[256];
} traced_t;

static void on_trace(void *ctx, const belay_trace_t *trace) {
  static const char *const events[] = {"started", "sent", "done", "settled"};
  traced_t *traced = ctx;
  size_t n = strlen(traced->text);
  snprintf(traced->text + n, sizeof traced->text - n, "%s %s %s; ", trace->command,
           events[trace->event],
           trace->event < BELAY_TRACE_DONE ? "-" : belay_err_name(trace->error));
}

TEST(trace_of_a_call) {
  traced_t traced = {""};
  belay_client_options_t options = client_options();
  options.trace = on_trace;
  options.trace_ctx = &traced;
  env_t *env = env_open(&options);
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs == 1);
  assert_string_equal(traced.text, "PING started -; PING sent -; PING done OK; ");
  env_close(env);
}

TEST(trace_of_a_late_reply) {
  traced_t traced = {""};
  belay_client_options_t options = client_options();
  options.trace = on_trace;
  options.trace_ctx = &traced;
  options.timeout_ms = prompt_ms();
  env_t *env = env_open(&options);
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs == 1);
  server_pause(env->server);
  traced.text[0] = '\0';
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs == 2);
  assert_error(env->pong_status, BELAY_EUNKNOWN);
  server_resume(env->server);
  env_until(env, strstr(traced.text, "settled") != NULL);
  assert_string_equal(traced.text,
                      "PING started -; PING sent -; PING done EUNKNOWN; PING settled OK; ");
  env_close(env);
}

ENV_TEST(ping) {
  assert_error(begin_ping(env), 0);
  assert_error(begin_ping(env), BELAY_ESTATE);
  env_until(env, env->pongs == 1);
  assert_error(env->pong_status, 0);
  server_pause(env->server);
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs == 2);
  assert_error(env->pong_status, BELAY_EUNKNOWN);
  server_resume(env->server);
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs == 3);
  assert_error(env->pong_status, 0);
}
