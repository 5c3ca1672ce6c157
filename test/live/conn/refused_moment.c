/* State changes of a server in the middle of an operation: demotion, shutdown, loading, a moved
 * slot; and keys of other types. */
#include <stdio.h>

#include "support/servers/acl.h"
#include "support/deployments/cluster.h"
#include "support/load/op_set.h"

/* ---- it becomes a replica ---- */

static void keep_detail(contender_t *contender, event_t event) {
  if (event == EVENT_ENDED)
    snprintf(contender->arg, 256, "%s", belay_detail(contender->env->belay));
}

/* The key is set, and WAIT is interrupted: the holder is unknown. */
TEST(demotion_during_wait) {
  needs_one_server("REPLICAOF, which no node of a cluster takes");
  char detail[256] = "";
  belay_client_options_t patient = client_options();
  patient.stall_timeout_ms = 60000;
  env_t *env = env_open(&patient);
  belay_lock_options_t options = lock_options();
  options.min_replicas = 1;
  options.timeout_ms = 30000;
  options.replica_timeout_ms = 20000;
  contender_t *c = contender_new(env, "door", &options);
  c->then = keep_detail;
  c->arg = detail;
  assert_error(begin_acquire(c, 0), 0);
  env_until(env, server_info(env->server, "clients", "blocked_clients") == 1);
  server_do(env->server, "REPLICAOF", "127.0.0.1", "1", NULL);
  assert_error(outcome(c), BELAY_EREADONLY);
  assert_non_null(strstr(detail, "UNBLOCKED "));
  assert_true(belay_err_retryable(BELAY_EREADONLY));
  const resp_t *reply = server_ask(env->server, "WAIT", "1", "1", NULL);
  assert_int_equal(reply->type, RESP_ERROR); /* and for every later request */
  assert_non_null(strstr(reply->str, "ERR WAIT cannot be used with replica"));
  server_do(env->server, "REPLICAOF", "NO", "ONE", NULL);
  env_until(env, server_keys(env->server) == 0); /* taken back there */
  env_close(env);
}

/* ---- it goes down, and comes up ---- */

/* All calls are in flight at the shutdown: those without a reply end as unknown. */
TEST_IN(shutdown_with_calls_in_flight, op_set,
        op_set_open(server_start(&(server_options_t){
                        .arguments = {"--appendonly", "yes", "--appendfsync", "always", NULL}}),
                    NULL, NULL)) {
  ask_t ask = {.then = NULL};
  count_t count = {.n = 0};
  op_set_use_all(op_set);
  env_t *env = op_set->env;
  uint64_t calls = client_stats(env).commands;
  server_do(op_set->server, "CLIENT", "PAUSE", "60000", NULL);
  assert_error(begin_acquire(op_set->acquirer, 0), 0);
  assert_error(begin_extend(op_set->held, 60000), 0);
  assert_error(begin_release(op_set->leaves), 0);
  assert_error(
      belay_limiter_take(op_set->limiter, asked(env, &ask), belay_string("k"), 1, on_answer), 0);
  assert_error(BEGIN(&op_set->counters, &count, add, KEY("n"), 1, on_result), 0);
  env_until(env, client_stats(env).commands >= calls + 5);
  env_run_for(env, 20);
  server_terminate(op_set->server);
  assert_error(outcome(op_set->acquirer), BELAY_EUNKNOWN);
  assert_error(outcome(op_set->leaves), BELAY_EUNKNOWN);
  env_until(env, op_set->held->extended == 1);
  assert_error(op_set->held->extend_status, BELAY_EUNKNOWN);
  assert_error(answer(&ask, 0)->cause, BELAY_EUNKNOWN);
  assert_error(end_of_count(&count), BELAY_EUNKNOWN);
  server_restart(op_set->server);
  op_set_expect_recovered(op_set); /* nothing of it was executed */
}

/* The server loads much data and refuses calls meanwhile. The waiter is granted the lock in the
 * end. */
TEST_IN(slow_loading, op_set,
        op_set_open(server_start(&(server_options_t){
                        .arguments = {"--enable-debug-command", "yes", "--rdbcompression", "no",
                                      "--loading-process-events-interval-bytes", "1024", NULL}}),
                    NULL, NULL)) {
  if (deployment_is_cluster())
    skip(); /* which is whole again only later */
  ask_t ask = {.request.timeout_ms = 60000};
  op_set_use_all(op_set);
  server_do(op_set->server, "DEBUG", "POPULATE", "400", "big", "2000", NULL);
  server_do(op_set->server, "SAVE", NULL);
  server_configure(op_set->server, "key-load-delay 1000");
  server_kill(op_set->server);
  env_until(op_set->env, client_stats(op_set->env).connections_up == 0);
  server_spawn(op_set->server);
  assert_error(begin_acquire(op_set->acquirer, 60000), 0);
  assert_error(belay_limiter_take(op_set->limiter, asked(op_set->env, &ask), belay_string("k"), 1,
                                  on_answer),
               0);
  assert_error(outcome(op_set->acquirer), 0);
  assert_error(answer(&ask, 0)->cause, 0);
  server_await(op_set->server);
  assert_true(client_stats(op_set->env).calls > 0);
  assert_error(release(op_set->acquirer), 0);
  assert_error(release(op_set->leaves), 0);
  op_set_expect_recovered(op_set);
}

/* A script that has written cannot be stopped. */
TEST_IN(unkillable_script, op_set,
        op_set_open(server_start(&(server_options_t){
                        .arguments = {"--busy-reply-threshold", "20", NULL}}),
                    NULL, NULL)) {
  needs_one_process("a key in a known place");
  static const char script[] = "EVAL \"redis.call('SET', 'x', 'y') while true do end\" 0\r\n";
  resp_client_t busy;
  assert_error(op_set_acquire(op_set), 0);
  assert_error(release(op_set->acquirer), 0);
  assert_int_equal(acl_dial(NULL, &busy, server_path(op_set->server)), 0);
  assert_int_equal(resp_send(busy.fd, script, sizeof script - 1), 0);
  int64_t began = clock_now();
  for (;;) {
    const resp_t *reply = server_ask(op_set->server, "SCRIPT", "KILL", NULL);
    if (reply->type == RESP_ERROR && strncmp(reply->str, "UNKILLABLE ", 11) == 0)
      break;
    assert_true(clock_since_ms(began) < 20000 * slow());
    stall_ms(2);
  }
  assert_error(op_set_acquire(op_set), BELAY_ESCRIPTBUSY);
  assert_error(op_set_take(op_set), BELAY_ESCRIPTBUSY);
  assert_error(op_set_add(op_set), BELAY_ESCRIPTBUSY);
  assert_non_null(strstr(op_set->detail, "BUSY "));
  resp_hang_up(&busy);
  server_restart(op_set->server);
  assert_error(acquire(op_set->acquirer, 20000), 0);
}

/* ---- slots ---- */

/* Of two keys one has gone already: nobody has both. */
TEST_ON(slot_moves, cluster, cluster_start(&(cluster_options_t){.without_replicas = true})) {
  belay_client_options_t options = client_options();
  options.timeout_ms = OP_SET_TIMEOUT_MS;
  env_t *env = env_open_at(cluster_url(cluster), &options);
  belay_lock_options_t fenced = lock_options();
  char detail[256] = "";
  fenced.fencing = true;
  contender_t *c = contender_new(env, "door", &fenced);
  c->then = keep_detail;
  c->arg = detail;
  unsigned slot = cluster_slot(cluster, key_of(c));
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0); /* and its number is still there */
  unsigned to = cluster_owner(cluster, slot) == 0 ? 1 : 0;
  cluster_move_begin(cluster, slot, to);
  int status = BELAY_EUNKNOWN;
  for (int i = 0; i < 5 && status == BELAY_EUNKNOWN; i++)
    status = try_lock(c);
  assert_error(status, BELAY_ECLUSTERDOWN);
  assert_non_null(strstr(detail, "TRYAGAIN "));
  assert_error(begin_acquire(c, 60000), 0);
  env_run_for(env, 100);
  assert_int_equal(c->ended, c->begun - 1);
  (void)cluster_move_keys(cluster, slot, to, 100);
  cluster_move_end(cluster, slot, to);
  assert_error(outcome(c), 0);
  assert_error(release(c), 0);
  env_close(env);
}

typedef struct end {
  unsigned times;
  int status;
} end_t;

static void on_end(belay_multilock_t *lock, int status) {
  end_t *end = belay_multilock_data(lock);
  end->times++;
  end->status = status;
}

/* Keys that do not live together, said to a node of a cluster that is taken for a server. */
TEST(crossslot) {
  server_t *server = server_start(&(server_options_t){.cluster = true});
  server_do(server, "CLUSTER", "ADDSLOTSRANGE", "0", "16383", NULL);
  env_t *env = env_open_with(server, NULL);
  end_t end = {0};
  belay_multilock_t *lock;
  belay_lock_options_t options = lock_options();
  options.data = &end;
  const belay_multilock_name_t names[] = {{env->client, {"a", 1}}, {env->client, {"b", 1}}};
  assert_error(acquire(contender_new(env, "a", NULL), 20000), 0); /* it is whole by now */
  assert_error(belay_multilock_new(names, 2, &options, NULL, &lock), 0);
  assert_error(belay_multilock_acquire(lock, BELAY_FOREVER, on_end), 0);
  env_until(env, end.times == 1);
  assert_error(end.status, BELAY_ECROSSSLOT);
  assert_false(belay_err_retryable(BELAY_ECROSSSLOT));
  assert_error(belay_multilock_close(lock, NULL), 0);
  env_close(env);
}

/* ---- what is found at a key ---- */

static void make_a_list(server_t *server, const char *key) {
  server_do(server, "DEL", key, NULL);
  server_do(server, "LPUSH", key, "foreign", NULL);
}

static void expect_blamed(const op_set_t *op_set, const char *key) {
  if (strncmp(op_set->detail, key, strlen(key)) != 0 || strstr(op_set->detail, "WRONGTYPE") == NULL)
    fail_msg("\"%s\" does not name %s", op_set->detail, key);
}

/* Keys of other types stay unchanged, and the error names the key. */
TEST_IN(keys_of_another_type, op_set, op_set_open(server_start(NULL), NULL, NULL)) {
  static const char counter[] = "belay::counter::{n}";
  char limit[128];
  op_set_use_all(op_set);
  const resp_t *keys = server_ask(op_set->server, "KEYS", "*limit*{k}*", NULL);
  assert_int_equal(keys->count, 1);
  snprintf(limit, sizeof limit, "%s", keys->items[0]->str);
  make_a_list(op_set->server, key_of(op_set->acquirer));
  make_a_list(op_set->server, key_of(op_set->held));
  make_a_list(op_set->server, key_of(op_set->leaves));
  make_a_list(op_set->server, limit);
  make_a_list(op_set->server, counter);
  assert_error(op_set_acquire(op_set), BELAY_EWRONGTYPE);
  expect_blamed(op_set, key_of(op_set->acquirer));
  assert_error(op_set_take(op_set), BELAY_EWRONGTYPE);
  expect_blamed(op_set, limit);
  assert_error(op_set_add(op_set), BELAY_EWRONGTYPE);
  expect_blamed(op_set, counter);
  assert_error(extend(op_set->held, 60000), BELAY_ENOTOWNER);
  env_until(op_set->env, op_set->held->lost == 1);
  assert_int_equal(op_set->held->reason, BELAY_LOST_TAKEN);
  assert_error(release(op_set->leaves), BELAY_ENOTOWNER);
  env_settle(op_set->env);
  assert_int_equal(server_keys(op_set->server), 5);
}

TEST_IN(invalid_numbers, op_set, op_set_open(server_start(NULL), NULL, NULL)) {
  static const char counter[] = "belay::counter::{n}";
  server_do(op_set->server, "SET", counter, "many", NULL);
  assert_error(op_set_add(op_set), BELAY_EWRONGTYPE);
  assert_non_null(strstr(op_set->detail, counter));
  assert_non_null(strstr(op_set->detail, "not an integer"));
  server_do(op_set->server, "SET", counter, "9223372036854775807", NULL);
  assert_error(op_set_add(op_set), BELAY_EOVERFLOW);
  assert_non_null(strstr(op_set->detail, "would overflow"));
  assert_string_equal(server_string(op_set->server, "GET", counter, NULL), "9223372036854775807");
}
