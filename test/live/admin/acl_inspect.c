/* A user that may list held objects and break them has no other right. */
#include "support/load/acl_cases.h"
#include "support/fixtures/admin/sweeps.h"
#include "support/fixtures/admin/surveys.h"
#include "support/fixtures/admin/views.h"

static view_t view;

static void on_held(belay_sweep_t *sweep, const belay_held_t *held) {
  (void)sweep;
  view_copy(&view, held);
}

static int hold(contender_t *c) {
  return try_lock(c);
}

static contender_t *reader(env_t *env) {
  belay_lock_options_t o = with_ttl(60000);
  contender_t *c = contender_blank(env, &o);
  assert_error(
      belay_rwlock_new(&env->client, 1, belay_string("n"), BELAY_RWLOCK_READ, &o, &c->lock), 0);
  return c;
}

static contender_t *with_permit(env_t *env) {
  belay_lock_options_t o = with_ttl(60000);
  contender_t *c = contender_blank(env, &o);
  assert_error(belay_semaphore_new(&env->client, 1, belay_string("n"),
                                   &(belay_semaphore_size_t){.limit = 5, .permits = 1}, &o,
                                   &c->lock),
               0);
  return c;
}

static int take_away(env_t *env, belay_held_kind_t kind) {
  belay_broken_t broken;
  MUST(view_held(env, kind, "n", &view));
  assert_int_equal(view.held.holders_len, 1);
  MUST(break_held(env, &view.held, &broken));
  assert_int_equal(broken.removed, 1);
  return 0;
}

static int list(env_t *env) {
  belay_sweep_options_t options = sweep_options("*", false);
  options.on_held = on_held;
  options.patience_ms = 0;
  sweeper_t *sweeper = sweeper_new(env, env->client, &options);
  assert_error(begin_sweep(sweeper), 0);
  int status = end_of_sweep(sweeper);
  close_sweeper(sweeper);
  return status;
}

static int held_case(env_t *env) {
  belay_lock_options_t options = with_ttl(60000);
  for (int i = 0; i < 2; i++) {
    MUST(hold(contender_new(env, "n", &options)));
    MUST(hold(reader(env)));
    MUST(hold(with_permit(env)));
    MUST(view_held(env, BELAY_HELD_LOCK, "n", &view));
    MUST(list(env));
    MUST(take_away(env, BELAY_HELD_LOCK));
    MUST(take_away(env, BELAY_HELD_RWLOCK));
    MUST(take_away(env, BELAY_HELD_SEMAPHORE));
    MUST(view_held(env, BELAY_HELD_ELECTION, "n", &view));
  }
  return 0;
}

TEST(held) {
  acl_case_check(
      &(acl_case_t){"held", held_case, NULL, "pubsub|numsub", "lock rwlock semaphore sweep", 0});
}

/* Without the right to ask for subscribers, the list has everything else. */
TEST(held_without_pubsub) {
  server_t *server = server_start(NULL);
  acl_user_set_features(server, "held", "pubsub|numsub");
  env_t *env = env_open_at(acl_user_url(server), NULL);
  belay_lock_options_t options = with_ttl(60000);
  assert_error(hold(contender_new(env, "n", &options)), 0);
  for (int may = 0; may < 2; may++) {
    assert_error(view_held(env, BELAY_HELD_LOCK, "n", &view), 0);
    assert_int_equal(view.held.listening, may - 1);
    assert_int_equal(view.held.holders_count, 1);
    acl_user_set_features(server, "held", NULL);
  }
  env->server = server;
  env_close(env);
}

/* A server that refuses a request appears without that detail. */
static int topology_case(env_t *env) {
  static survey_t report;
  MUST(survey(env, &report, 3, 0));
  assert_int_equal(report.n, 1);
  const belay_topology_server_t *server = &report.server[0];
  MUST(server->status);
  assert_int_equal(strlen(server->run_id), 40);
  assert_int_equal(server->role, acl_case_allows("time") ? BELAY_ROLE_PRIMARY : BELAY_ROLE_UNKNOWN);
  assert_int_equal(server->samples, acl_case_allows("role") ? 3 : 0);
  return 0;
}

TEST(topology) {
  acl_case_check(&(acl_case_t){"topology", topology_case, "role time", "info|stats", NULL, 0});
}

/* A server counts INFO as one command, whatever of it was asked for. */
TEST(topology_without_stats) {
  static survey_t report;
  server_t *server = server_start(NULL);
  acl_user_set_features(server, "topology", "info|stats");
  env_t *env = env_open_at(acl_user_url(server), NULL);
  for (int may = 0; may < 2; may++) {
    assert_error(survey(env, &report, 3, 0), 0);
    assert_int_equal(report.n, 1);
    assert_int_equal(report.server[0].status, 0);
    assert_int_equal(report.server[0].samples, 3);
    assert_int_equal(report.server[0].commands > 0, may);
    acl_user_set_features(server, "topology", NULL);
  }
  env->server = server;
  env_close(env);
}
