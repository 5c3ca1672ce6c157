/* Readers and writers while connections are lost, processes die, and servers forget. */
#include <signal.h>
#include <stdio.h>

#include "support/servers/process.h"
#include "support/deployments/relay.h"
#include "support/fixtures/lease/rw.h"

/* The env's client reaches the server through a relay. */
static env_t *open_far(void) {
  belay_client_options_t far = client_options();
  far.timeout_ms = 5000 * slow();
  far.reconnect_max_ms = 50;
  return env_open_relayed(&far);
}

/* The reply of an upgrade is lost: the handle is a reader, and soon on the server, too. */
static void lose_change_reply(bool up, bool renewed) {
  env_t *env = open_far();
  belay_lock_options_t options = renewed ? watched(20000 * slow()) : with_ttl(20000 * slow());
  contender_t *c =
      rw_over(env, &env->client, 1, "page", up ? BELAY_RWLOCK_READ : BELAY_RWLOCK_WRITE, &options);
  contender_t *other = lone_reader(env, NULL);
  assert_error(acquire(c, 5000), 0);
  relay_delay(env->relay, 800 * slow());
  assert_error(begin_change(c, up), 0);
  env_until(env, up == is_on_server(c)); /* it was executed; the answer is on its way */
  relay_cut(env->relay);                 /* first: the answer may be just coming */
  relay_delay(env->relay, 0);
  assert_error(extend_outcome(c), BELAY_EUNKNOWN);
  assert_false(is_writer(c));
  env_until(env, count_in(env->server, c, "readers") == 1);
  assert_error(acquire(other, 5000), 0);
  assert_true(is_held(c));
  assert_int_equal(c->lost, 0);
  assert_error(release(other), 0);
  env_run_for(env, 100); /* connected again, for certain */
  assert_error(upgrade(c), 0);
  assert_true(is_on_server(c));
  env_close(env);
}

TEST(lost_upgrade_is_undone) {
  lose_change_reply(true, true);
  lose_change_reply(true, false);
}

TEST(lost_downgrade_is_effective) {
  lose_change_reply(false, true);
  lose_change_reply(false, false);
}

/* A repeated change to the present mode only extends the lease. A change of mode is never
 * repeated in the background. */
TEST(lost_change_is_repeated) {
  for (int up = 0; up < 2; up++) {
    env_t *env = open_far();
    belay_lock_options_t options = with_ttl(20000 * slow());
    belay_rwlock_mode_t mode = up ? BELAY_RWLOCK_WRITE : BELAY_RWLOCK_READ;
    contender_t *c = rw_over(env, &env->client, 1, "page", mode, &options);
    assert_error(acquire(c, 5000), 0);
    relay_delay(env->relay, 100);
    assert_error(begin_change(c, up), 0);
    env_run_for(env, 50);
    relay_cut(env->relay); /* first: the answer may be just coming */
    relay_delay(env->relay, 0);
    assert_error(extend_outcome(c), BELAY_EUNKNOWN);
    assert_int_equal(is_writer(c), up);
    int64_t left = remaining_ms(c);
    env_run_for(env, 500 * slow());
    assert_true(remaining_ms(c) <= left - 490 * slow());
    env_close(env);
  }
}

static void release_with_another(contender_t *c, event_t event) {
  contender_t *upgrading = c->arg;
  if (event == EVENT_EXTENDED && upgrading->extended == 0)
    assert_error(begin_release(upgrading), 0);
}

/* Both replies arrive in one read. The first callback's action comes before the second callback. */
TEST(release_during_upgrade) {
  needs_one_process("one connection");
  env_t *env = env_open(NULL);
  unsigned seen = 0;
  for (int i = 0; i < 20; i++) {
    contender_t *first = reader_of(env, env->client, "other page", NULL);
    contender_t *c = reader_of(env, env->client, "page", NULL);
    first->arg = c;
    first->then = release_with_another;
    assert_ok(acquire(first, 5000), acquire(c, 5000), begin_extend(first, BELAY_DEFAULT));
    assert_error(begin_change(c, true), 0);
    env_until(env, c->extended == 1 && c->ended == 2);
    assert_error(c->extend_status, BELAY_ECANCELED);
    assert_false(is_writer(c));
    seen += c->ended_at < c->extended_at ? 0 : 1;
    assert_ok(close_lock(first), close_lock(c));
  }
  assert_int_equal(seen, 20);
  env_close(env);
}

/* An extend is in flight on a lost connection. Executed late, it would make the new writer a
 * reader. If the client cannot prevent that, the upgrade fails. */
static void upgrade_with_late_extend(bool may_kill) {
  server_t *server = server_start(NULL);
  server_do(server, "ACL", "SETUSER", "guest", "on", ">pw", "~*", "&*", "+@all",
            may_kill ? "+client" : "-client", NULL);
  relay_t *relay = relay_start(server_path(server));
  belay_client_options_t guest = client_options();
  guest.username = "guest";
  guest.password = "pw";
  guest.reconnect_max_ms = 50;
  env_t *env = env_open_at(relay_url(relay), &guest);
  env->server = server;
  belay_lock_options_t options = with_ttl(20000 * slow());
  contender_t *c = reader_of(env, env->client, "page", &options);
  contender_t *other = reader_of(env, env_connect(env, server_url(server), NULL), "page", NULL);
  assert_error(acquire(c, 5000), 0);
  relay_delay(relay, 1000 * slow());
  assert_error(begin_extend(c, BELAY_DEFAULT), 0);
  env_run_for(env, 100);
  relay_cut(relay);
  relay_delay(relay, 0);
  assert_error(extend_outcome(c), BELAY_EUNKNOWN);
  env_run_for(env, 200); /* connected again */
  assert_error(upgrade(c), may_kill ? 0 : BELAY_EUNKNOWN);
  assert_int_equal(is_writer(c), may_kill);
  env_run_for(env, 1500 * slow());
  assert_int_equal(c->lost, 0);
  assert_int_equal(is_on_server(c), may_kill);
  assert_error(try_lock(other), may_kill ? BELAY_EHELD : 0);
  if (!may_kill) {
    assert_ok(release(other), release(c), acquire(c, 5000));
    assert_error(upgrade(c), 0); /* the late extend was of another hold */
  }
  env_close(env);
  relay_stop(relay);
}

TEST(late_downgrade_of_writer) {
  upgrade_with_late_extend(true);
  upgrade_with_late_extend(false);
}

/* The process to kill: waits for the lock, and prints a line when it holds it. */
static int hold(const char *url, const char *role, const char *ttl) {
  env_t *env = env_open_at(url, NULL);
  belay_lock_options_t options = watched(atoi(ttl));
  options.waiter_ttl_ms = atoi(ttl);
  contender_t *c = (role[0] == 'w' ? writer_of : reader_of)(env, env->client, "page", &options);
  assert_error(acquire(c, BELAY_FOREVER), 0);
  belay_lock_ref(c->lock);
  printf("held\n");
  fflush(stdout);
  uv_run(&env->loop, UV_RUN_DEFAULT);
  return 1;
}

static process_t start(env_t *env, const char *role, int64_t ttl) {
  char text[16];
  snprintf(text, sizeof text, "%lld", (long long)ttl);
  const char *argv[] = {process_self(), "--hold", server_url(env->server), role, text, NULL};
  process_t process = process_start(argv);
  if (role[1] == 'h') /* holds it */
    process_expect_line(&process, "held");
  return process;
}

TEST(killed_holder_blocks_for_its_ttl) {
  int64_t ttl = 500 * slow();
  static const char *const roles[] = {"rh", "wh"};
  for (unsigned i = 0; i < 2; i++) {
    env_t *env = env_open(NULL);
    contender_t *r = lone_reader(env, NULL), *w = lone_writer(env, NULL);
    process_t process = start(env, roles[i], ttl);
    if (i == 1)
      wait_in(r, "admitted");
    wait_in(w, "writers");
    process_finish(&process);
    int64_t killed = clock_now();
    if (i == 1) {
      assert_error(outcome(r), 0); /* first, as after a writer that releases */
      assert_int_equal(w->ended, 0);
      assert_error(release(r), 0);
    }
    assert_error(outcome(w), 0);
    assert_true(clock_since_ms(killed) < ttl + 1000 * slow() + lag());
    env_close(env);
  }
}

ENV_TEST(killed_waiter_blocks_for_its_place) {
  int64_t ttl = 500 * slow();
  contender_t *holder = lone_reader(env, NULL), *r = lone_reader(env, NULL),
              *w = lone_writer(env, NULL);
  assert_error(try_lock(holder), 0);
  process_t process = start(env, "ww", ttl);
  env_until(env, count_in(env->server, holder, "writers") == 1);
  env_run_for(env, 2 * ttl); /* alive, it keeps its place */
  assert_error(try_lock(r), BELAY_EHELD);
  process_finish(&process);
  int64_t killed = clock_now();
  assert_error(acquire(r, 60000), 0);
  assert_true(clock_since_ms(killed) < ttl + 1000 * slow() + lag());
  assert_ok(release(r), release(holder));
  /* A reader that is admitted. */
  assert_error(try_lock(w), 0);
  process = start(env, "rw", ttl);
  env_until(env, count_in(env->server, w, "admitted") == 1);
  process_finish(&process);
  killed = clock_now();
  assert_ok(release(w), acquire(w, 60000));
  assert_true(clock_since_ms(killed) < ttl + 1000 * slow() + lag());
}

ENV_TEST(scripts_and_data_lost) {
  belay_lock_options_t options = watched(kept_ttl());
  contender_t *r = lone_reader(env, &options), *w = lone_writer(env, &options),
              *next = lone_writer(env, NULL);
  for (int i = 0; i < 3; i++) {
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    assert_error(acquire(r, 5000), 0);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    env_run_for(env, options.ttl_ms * 9 / 8);
    assert_error(upgrade(r), 0);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    assert_error(downgrade(r), 0);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    assert_error(release(r), 0);
  }
  assert_error(acquire(w, 5000), 0);
  wait_in(next, "writers");
  server_do(env->server, "FLUSHALL", NULL);
  await_loss(w, BELAY_LOST_TAKEN);
  assert_ok(outcome(next), release(next));
  expect_empty(env);
}

TEST(key_of_other_type) {
  static const char *const parts[] = {"", "::readers", "::waiting", "::writers", "::admitted"};
  for (unsigned i = 0; i < 5; i++) {
    env_t *env = env_open(NULL);
    contender_t *r = lone_reader(env, NULL), *w = lone_writer(env, NULL);
    char key[256];
    snprintf(key, sizeof key, "%s%s", key_of(r), parts[i]);
    server_do(env->server, "RPUSH", key, "a", NULL);
    assert_each(BELAY_EWRONGTYPE, acquire(r, 5000), acquire(w, 5000));
    expect_keys(env, 1);
    env_close(env);
  }
}

TEST(grants_wait_for_replicas) {
  server_t *primary = server_start(&(server_options_t){.address = "127.0.0.1"});
  server_t *replica = server_start(NULL);
  server_follow(replica, primary);
  env_t *env = env_open_at(server_url(primary), NULL);
  env->server = primary;
  belay_lock_options_t options = with_ttl(20000);
  options.min_replicas = 1;
  contender_t *r = reader_of(env, env->client, "page", &options), *w = lone_writer(env, &options);
  assert_error(acquire(r, 5000), 0);
  assert_int_equal(count_in(replica, r, "readers"), 1);
  assert_error(extend(r, 10000), 0); /* changes no ttl, but is written */
  assert_error(upgrade(r), 0);
  assert_int_equal(count_in(replica, r, "readers"), 0);
  assert_ok(extend(r, 10000), downgrade(r));
  assert_int_equal(count_in(replica, r, "readers"), 1);
  server_pause(replica);
  assert_error(upgrade(r), BELAY_ENOREPLICAS);
  assert_false(is_writer(r));
  server_resume(replica);
  env_until(env, count_in(replica, r, "readers") == 1); /* set right there too */
  assert_ok(release(r), acquire(w, 5000), release(w));
  env->server = NULL;
  env_close(env);
  server_stop(replica);
  server_stop(primary);
}

/* A server in quarantine may have forgotten readers: it refuses upgrades. */
TEST(upgrade_in_quarantine) {
  needs_one_server("a quarantine");
  env_t *env = env_open(NULL);
  belay_lock_options_t options = watched(1500 * slow());
  options.quarantine = BELAY_QUARANTINE_ON;
  options.max_ttl_ms = 2000 * slow();
  contender_t *r = reader_of(env, env->client, "page", &options);
  assert_error(acquire(r, 60000), 0);
  uint64_t drops = client_stats(env).drops;
  server_restart_keeping(env->server);
  /* a call on the connection of a killed server ends as unknown */
  env_until(env, client_stats(env).drops > drops);
  for (int i = 0; i < 100 && extend(r, BELAY_DEFAULT) != 0; i++)
    env_run_for(env, 10);
  assert_error(r->extend_status, 0); /* it is held still */
  assert_error(upgrade(r), BELAY_EQUARANTINED);
  assert_false(is_writer(r));
  env_run_for(env, 3000 * slow());
  assert_int_equal(r->lost, 0);
  assert_error(upgrade(r), 0);
  assert_true(is_on_server(r));
  env_close(env);
}

TEST_ROLE(hold, "--hold") {
  return hold(argv[2], argv[3], argv[4]);
}
