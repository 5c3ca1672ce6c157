/* Connections: idle ones, extra ones, their limits, and the trace hook. */
#include <stdio.h>
#include <unistd.h>

#include "support/fixtures/bed.h"
#include "support/deployments/fake.h"
#include "support/deployments/relay.h"
#include "support/fixtures/subscriber.h"

/* ---- links ---- */

TEST(idle_connection_is_checked_before_use) {
  belay_client_options_t options = client_options();
  options.idle_timeout_ms = lag();
  bed_t *bed = bed_open(&options);
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  int64_t pings = server_calls(bed->server, "ping");
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  assert_int_equal(server_calls(bed->server, "ping"), pings); /* not idle for long */
  bed_run_for(bed, options.idle_timeout_ms + 100);
  assert_error(try_lock(c), 0);
  assert_int_equal(server_calls(bed->server, "ping"), pings + 1);
  bed_close(bed);
}

BED_TEST_OF(idle_connection_killed, o.idle_timeout_ms = 50) {
  contender_t *c = contender_new(bed, "door", NULL);
  for (int i = 0; i < 3; i++) {
    assert_error(try_lock(c), 0);
    assert_error(release(c), 0);
    bed_run_for(bed, 100);
    server_do(bed->server, "CLIENT", "KILL", "TYPE", "normal", NULL);
  }
  assert_error(try_lock(c), 0);
  assert_int_equal(client_stats(bed).unknown, 0);
}

/* The connection is dead without a message: the liveness check detects it, and no outcome is
 * unknown. */
TEST(idle_connection_silent) {
  belay_client_options_t options = client_options();
  options.idle_timeout_ms = 50;
  options.connect_timeout_ms = prompt_ms();
  options.timeout_ms = 2000 * slow();
  bed_t *bed = bed_open_relayed(&options);
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  bed_run_for(bed, 100);
  relay_silence(bed->relay);
  assert_error(try_lock(c), 0);
  assert_int_equal(client_stats(bed).unknown, 0);
  assert_int_equal(relay_connections(bed->relay), 2 + deployment_is_cluster());
  assert_true(is_on_server(c));
  bed_close(bed);
}

/* Nothing was sent, and that is what is said. */
BED_TEST_OF(idle_check_without_reply, o.idle_timeout_ms = 50; o.timeout_ms = prompt_ms()) {
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  bed_run_for(bed, 100);
  server_pause(bed->server);
  assert_error(try_lock(c), BELAY_EUNREACHABLE);
  server_resume(bed->server);
  assert_error(acquire(c, 5000), 0);
}

BED_TEST_OF(idle_extra_connections_close, o.connections = 4; o.idle_timeout_ms = prompt_ms()) {
  char name[16];
  for (int i = 0; i < 40; i++) {
    snprintf(name, sizeof name, "door-%d", i);
    contender_t *c = contender_new(bed, name, NULL);
    assert_error(try_lock(c), 0);
    assert_error(release(c), 0);
  }
  assert_int_equal(client_stats(bed).connections_up, 4);
  bed_until(bed, client_stats(bed).connections_up == 1);
  assert_int_equal(client_stats(bed).drops, 0); /* nothing was lost */
}

BED_TEST(first_use_connects) {
  contender_t *c = contender_new(bed, "door", NULL);
  int64_t before = server_info(bed->server, "stats", "total_connections_received");
  bed_run_for(bed, 50);
  assert_int_equal(server_info(bed->server, "stats", "total_connections_received"), before);
  assert_error(try_lock(c), 0);
  assert_int_equal(server_info(bed->server, "stats", "total_connections_received"),
                   before + 1 + deployment_is_cluster());
  assert_int_equal(client_stats(bed).connects, 1 + deployment_scouts());
  assert_int_equal(client_stats(bed).connections_up, 1);
}

/* ---- limits ---- */

enum { CROWD = 10, ROOM = 4 };

/* Ten contenders on a connection that has room for four calls and a server that stands still. */
static void crowd(bed_t *bed, contender_t **all) {
  char name[32];
  contender_t *first = contender_new(bed, "first", NULL);
  assert_error(try_lock(first), 0);
  assert_error(release(first), 0);
  server_pause(bed->server);
  for (int i = 0; i < CROWD; i++) {
    snprintf(name, sizeof name, "door-%d", i);
    all[i] = contender_new(bed, name, NULL);
    assert_error(begin_acquire(all[i], 0), 0);
  }
}

BED_TEST_OF(max_pending_refuses, o.max_pending = ROOM; o.timeout_ms = 10000) {
  contender_t *all[CROWD];
  crowd(bed, all);
  bed_until(bed, all[CROWD - 1]->ended == 1);
  for (int i = ROOM; i < CROWD; i++)
    assert_error(outcome(all[i]), BELAY_EBUSY);
  assert_true(belay_err_retryable(BELAY_EBUSY));
  server_resume(bed->server);
  for (int i = 0; i < ROOM; i++)
    assert_error(outcome(all[i]), 0);
  assert_int_equal(server_keys(bed->server), ROOM);
}

BED_TEST_OF(max_pending_waits, o.max_pending = ROOM; o.timeout_ms = 10000;
            o.on_full = BELAY_FULL_WAIT) {
  contender_t *all[CROWD];
  crowd(bed, all);
  bed_run_for(bed, 100);
  for (int i = 0; i < CROWD; i++)
    assert_int_equal(all[i]->ended, 0);
  server_resume(bed->server);
  for (int i = 0; i < CROWD; i++)
    assert_error(outcome(all[i]), 0);
  assert_int_equal(server_keys(bed->server), CROWD);
}

BED_TEST_OF(max_pending_waits_until_the_deadline, o.max_pending = ROOM; o.timeout_ms = prompt_ms();
            o.on_full = BELAY_FULL_WAIT) {
  contender_t *all[CROWD];
  crowd(bed, all);
  for (int i = 0; i < CROWD; i++)
    assert_error(outcome(all[i]), i < ROOM ? BELAY_EUNKNOWN : BELAY_EBUSY);
  server_resume(bed->server);
  bed_settle(bed);
  bed_until(bed, server_keys(bed->server) == 0);
}

/* Bytes that the server does not take stay where they can be withdrawn: their calls end as not
 * sent. */
BED_TEST_OF(server_does_not_read, o.timeout_ms = prompt_ms()) {
  enum { MANY = 400, EACH = 60000 };
  static char words[EACH];
  static publication_t all[MANY];
  assert_int_equal(publish(bed, all, "news", "first"), 0);
  memset(words, 'x', sizeof words);
  memset(all, 0, sizeof all);
  server_pause(bed->server);
  for (int i = 0; i < MANY; i++)
    assert_error(begin_publish(bed, bed->client, &all[i], "news", words, sizeof words), 0);
  unsigned unknown = 0, unsent = 0;
  for (int i = 0; i < MANY; i++) {
    bed_until(bed, all[i].ended == 1);
    unknown += all[i].status == BELAY_EUNKNOWN;
    unsent += all[i].status == BELAY_EBUSY;
  }
  assert_int_equal(unknown + unsent, MANY);
  assert_true(unsent >= MANY / 2);
  server_resume(bed->server);
  publication_t last = {0};
  while (publish(bed, &last, "news", "last") != 0)
    bed_run_for(bed, 10);
  bed_settle(bed);
  assert_in_range(server_publications(bed->server), 2, unknown + 10);
}

BED_TEST_OF(max_bytes_refuses, o.max_bytes = 65536; o.timeout_ms = 10000;
            o.on_full = BELAY_FULL_WAIT) {
  enum { MANY = 120 };
  contender_t *all[MANY];
  char name[1001];
  contender_t *first = contender_new(bed, "first", NULL);
  assert_error(try_lock(first), 0);
  server_pause(bed->server);
  int busy = 0;
  for (int i = 0; i < MANY; i++) {
    snprintf(name, sizeof name, "%01000d", i);
    all[i] = contender_new(bed, name, NULL);
    assert_error(begin_acquire(all[i], 0), 0);
  }
  assert_true(client_stats(bed).pending_bytes <= 65536);
  assert_error(begin_release(first), 0); /* gives something back: not subject to the limit */
  server_resume(bed->server);
  for (int i = 0; i < MANY; i++) {
    int status = outcome(all[i]);
    assert_true(status == 0 || status == BELAY_EBUSY);
    busy += status == BELAY_EBUSY;
  }
  assert_error(outcome(first), 0);
  assert_between(busy, 50, 70); /* a call is a little more than a kilobyte */
  assert_int_equal(client_stats(bed).pending_bytes, 0);
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
  bed_t *bed = bed_open(&options);
  assert_error(begin_ping(bed), 0);
  bed_until(bed, bed->pongs == 1);
  assert_string_equal(traced.text, "PING started -; PING sent -; PING done OK; ");
  bed_close(bed);
}

TEST(trace_of_a_late_reply) {
  traced_t traced = {""};
  belay_client_options_t options = client_options();
  options.trace = on_trace;
  options.trace_ctx = &traced;
  options.timeout_ms = prompt_ms();
  bed_t *bed = bed_open(&options);
  assert_error(begin_ping(bed), 0);
  bed_until(bed, bed->pongs == 1);
  server_pause(bed->server);
  traced.text[0] = '\0';
  assert_error(begin_ping(bed), 0);
  bed_until(bed, bed->pongs == 2);
  assert_error(bed->pong_status, BELAY_EUNKNOWN);
  server_resume(bed->server);
  bed_until(bed, strstr(traced.text, "settled") != NULL);
  assert_string_equal(traced.text,
                      "PING started -; PING sent -; PING done EUNKNOWN; PING settled OK; ");
  bed_close(bed);
}

BED_TEST(ping) {
  assert_error(begin_ping(bed), 0);
  assert_error(begin_ping(bed), BELAY_ESTATE);
  bed_until(bed, bed->pongs == 1);
  assert_error(bed->pong_status, 0);
  server_pause(bed->server);
  assert_error(begin_ping(bed), 0);
  bed_until(bed, bed->pongs == 2);
  assert_error(bed->pong_status, BELAY_EUNKNOWN);
  server_resume(bed->server);
  assert_error(begin_ping(bed), 0);
  bed_until(bed, bed->pongs == 3);
  assert_error(bed->pong_status, 0);
}
