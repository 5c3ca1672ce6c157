/* Role, distance and clock of each server. */
#include <stdio.h>

#include "support/fixtures/data/ids.h"
#include "support/fixtures/admin/surveys.h"

static survey_t report;

static size_t servers_here(void) {
  switch (deployment()) {
  case DEPLOYMENT_CLUSTER3:
    return 3;
  case DEPLOYMENT_REPLICAS:
    return 2;
  default:
    return 1;
  }
}

ENV_TEST(all_servers_are_reported) {
  const char *info = server_string(env->server, "INFO", "server", NULL);
  char run_id[48], version[48];
  assert_int_equal(sscanf(strstr(info, "run_id:"), "run_id:%40s", run_id), 1);
  const char *own =
      strstr(info, "valkey_version:"); /* which also says as which Redis it is to be taken */
  own = own != NULL ? own : strstr(info, "redis_version:");
  assert_int_equal(sscanf(strchr(own, ':'), ":%40[^\r]", version), 1);
  for (unsigned samples = 1; samples < 8; samples += 3) {
    unsigned primaries = 0, ours = 0;
    assert_error(survey(env, &report, samples, 0), 0);
    assert_int_equal(report.n, servers_here());
    for (size_t i = 0; i < report.n; i++) {
      assert_reached(&report.server[i], report.server[i].role, samples);
      primaries += report.server[i].role == BELAY_ROLE_PRIMARY;
      ours += strcmp(report.server[i].run_id, run_id) == 0;
      assert_string_equal(report.server[i].version, version);
    }
    assert_int_equal(primaries, deployment() == DEPLOYMENT_CLUSTER3 ? 3 : 1);
    assert_int_equal(ours, 1);
  }
}

/* The local clock is wrong by `shift` ms; the result is relative to it. */
ENV_TEST(wrong_local_clock) {
  env_fake_wall(env);
  for (int64_t shift = -90000; shift <= 90000; shift += 180000) {
    fake_wall.shift = shift;
    assert_error(survey(env, &report, 3, 0), 0);
    for (size_t i = 0; i < report.n; i++) {
      report.server[i].clock_ahead_us += shift * 1000;
      assert_reached(&report.server[i], report.server[i].role, 3);
    }
  }
}

/* The stated error bound holds. */
ENV_TEST(slow_local_clock) {
  env_fake_wall(env);
  fake_wall.slow = 20;
  assert_error(survey(env, &report, 1, 0), 0);
  for (size_t i = 0; i < report.n; i++)
    assert_reached(&report.server[i], report.server[i].role, 1);
}

/* It leaves no connection behind, and belay_close() need not wait for anything. */
TEST(connections_are_closed) {
  needs_one_server("its connections are counted");
  env_t *env = env_open(NULL);
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs == 1);
  char clients[32];
  for (int i = 0; i < 3; i++) {
    assert_error(survey(env, &report, 2, 0), 0);
    int rounds = 0;
    do {
      const char *info = server_string(env->server, "INFO", "clients", NULL);
      (void)snprintf(clients, sizeof clients, "%.20s", strstr(info, "connected_clients:"));
      assert_true(rounds++ < 1000);
      env_run_for(env, 5);
    } while (strtol(clients + 18, NULL, 10) > 2); /* ours, and the test's own */
  }
  env_close(env);
}

TEST(unreachable_server) {
  needs_one_server("where others must find it");
  if (servers_here() > 1)
    skip();
  env_t *env = env_open(NULL);
  server_kill(env->server);
  assert_error(survey(env, &report, 3, 200), 0);
  assert_int_equal(report.n, 1);
  assert_error(report.server[0].status, BELAY_EUNREACHABLE);
  assert_int_equal(report.server[0].role, BELAY_ROLE_UNKNOWN);
  assert_int_equal(report.server[0].samples, 0);
  assert_true(report.server[0].address[0] != '\0');
  server_restart(env->server);
  assert_error(survey(env, &report, 3, 0), 0);
  assert_reached(&report.server[0], BELAY_ROLE_PRIMARY, 3);
  server_pause(env->server);
  assert_error(survey(env, &report, 3, 200), 0);
  assert_true(report.server[0].status != 0);
  server_resume(env->server);
  env_close(env);
}

TEST(wrong_password) {
  needs_one_server("the test sets its password");
  belay_client_options_t options = client_options();
  options.password = "wrong";
  env_t *env = env_open_with(server_start(&(server_options_t){.password = "right"}), &options);
  assert_error(survey(env, &report, 3, 0), 0);
  assert_error(report.server[0].status, BELAY_EAUTH);
  env_close(env);
}

ENV_TEST(cancel_at_any_time) {
  unsigned well = 0, canceled = 0;
  for (int turns = 0; turns < 60; turns++) {
    assert_error(begin_survey(env, &report, 2, 0), 0);
    assert_error(belay_topology_read(env->client, &report.request, 2, NULL), BELAY_EINVAL);
    for (int i = 0; i < turns && report.calls == 0; i++)
      (void)uv_run(&env->loop, UV_RUN_ONCE);
    (void)belay_request_cancel(&report.request);
    env_until(env, report.calls == 1);
    assert_true(report.status == 0 || report.status == BELAY_ECANCELED);
    well += report.status == 0;
    canceled += report.status != 0;
  }
  assert_true(well > 0 && canceled > 0);
  print_message("%u ended well, %u were cancelled\n", well, canceled);
}

TEST(close_at_any_time) {
  for (int turns = 0; turns < 24; turns++) {
    env_t *env = env_open(NULL);
    assert_error(begin_survey(env, &report, 2, 0), 0);
    for (int i = 0; i < turns && report.calls == 0; i++)
      (void)uv_run(&env->loop, UV_RUN_ONCE);
    if (turns % 2 == 0)
      assert_error(begin_client_close(env), 0);
    else
      assert_error(begin_belay_close(env), 0);
    env_until(env, report.calls == 1);
    env_close(env);
  }
}

static void never(belay_request_t *request, int status, const belay_topology_server_t *servers,
                  size_t n) {
  (void)request;
  (void)status;
  (void)servers;
  fail_msg("called back with %zu servers", n);
}

ENV_TEST(arguments_are_checked) {
  belay_request_t request = {0};
  assert_error(belay_topology_read(env->client, &request, 0, never), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "samples: not from 1 to 100");
  assert_error(belay_topology_read(env->client, &request, 101, never), BELAY_EINVAL);
}
