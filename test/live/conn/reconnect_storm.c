/* Connections to servers that are silent, full, read-only, or slow to be found, or that repeat
 * secrets. */
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>

#include "support/fixtures/env.h"
#include "support/deployments/fake.h"

/* ---- a name that only this program knows ---- */

#define SLOW_NAME "slow.test"

static int64_t lookup_ms;
static atomic_uint lookups;

typedef int getaddrinfo_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **list);

/* libuv's look-ups come by here. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **list) {
  getaddrinfo_fn *function;
  void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
  memcpy(&function, &symbol, sizeof function);
  if (name != NULL && strcmp(name, SLOW_NAME) == 0) {
    atomic_fetch_add(&lookups, 1);
    stall_ms(lookup_ms);
    name = "127.0.0.1";
  }
  return function(name, service, hints, list);
}

TEST(lookup_slower_than_connect_timeout) {
  char url[64];
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1"});
  belay_client_options_t options = client_options();
  belay_lock_options_t patient = lock_options();
  options.connect_timeout_ms = 600 * slow();
  lookup_ms = 900 * slow();
  patient.timeout_ms = 5000 * slow();
  snprintf(url, sizeof url, "redis://%s" SLOW_NAME ":%d", server_login(server),
           server_port(server));
  env_t *env = env_open_at(url, &options);
  env->server = server;
  assert_error(try_lock(contender_new(env, "door", &patient)), 0);
  assert_int_equal(atomic_load(&lookups), 1);
  assert_true(client_stats(env).connect_errors >= 1); /* it was too slow */
  env_close(env);
}

/* ---- a server that stands still, and several connections ---- */

static void expect_each_link_to_be_dropped(unsigned links) {
  enum { NAMES = 40 };
  contender_t *c[NAMES];
  belay_client_options_t options = client_options();
  options.connections = links;
  options.timeout_ms = prompt_ms();
  options.stall_timeout_ms = prompt_ms() + 100;
  env_t *env = env_open(&options);
  for (int i = 0; i < NAMES; i++) {
    char name[16];
    snprintf(name, sizeof name, "%d", i);
    c[i] = contender_new(env, name, NULL);
    assert_error(acquire(c[i], 10000), 0);
    assert_error(release(c[i]), 0);
  }
  assert_int_equal(client_stats(env).connections_up, links); /* each of them is used */
  server_pause(env->server);
  for (int i = 0; i < NAMES; i++)
    assert_error(begin_acquire(c[i], 0), 0);
  int64_t began = clock_now();
  env_until(env, client_stats(env).drops == links);
  assert_between(clock_since_ms(began), options.stall_timeout_ms - 20, 2000 * slow());
  server_resume(env->server);
  for (int i = 0; i < NAMES; i++)
    assert_error(outcome(c[i]), BELAY_EUNKNOWN);
  env_settle(env);
  assert_int_equal(server_keys(env->server), 0);
  env_close(env);
}

TEST(two_stalled_connections) {
  expect_each_link_to_be_dropped(2);
}

TEST(three_stalled_connections) {
  expect_each_link_to_be_dropped(3);
}

TEST(four_stalled_connections) {
  expect_each_link_to_be_dropped(4);
}

/* ---- a server that only reads ---- */

TEST(replica_gets_few_attempts) {
  needs_one_server("a replica without a primary");
  enum { LOCKERS = 50 };
  server_t *server =
      server_start(&(server_options_t){.arguments = {"--replicaof", "127.0.0.1", "1"}});
  env_t *env = env_open_with(server, NULL);
  for (int i = 0; i < LOCKERS; i++) {
    char name[16];
    snprintf(name, sizeof name, "%d", i);
    assert_error(begin_acquire(contender_new(env, name, NULL), BELAY_FOREVER), 0);
  }
  env_run_for(env, 2000);
  belay_client_stats_t stats = client_stats(env);
  assert_between((long long)(stats.connects + stats.connect_errors), 2, 30);
  assert_int_equal(stats.unknown, 0);
  assert_int_equal(stats.undo_pending, 0);
  for (const contender_t *c = env->first; c != NULL; c = c->next)
    assert_int_equal(c->ended, 0);
  env_close(env);
}

/* ---- a server that is full ---- */

/* Stores belay_detail() of the callback. */
static void keep_detail(contender_t *c, event_t event) {
  if (event == EVENT_ENDED)
    snprintf(c->arg, 128, "%s", belay_detail(c->env->belay));
}

static void expect_too_many_clients(const char *address) {
  char detail[128] = "";
  server_t *server = server_start(&(server_options_t){.address = address});
  belay_client_options_t options = client_options();
  options.timeout_ms = prompt_ms();
  env_t *env = env_open_with(server, &options);
  contender_t *c = contender_new(env, "door", NULL);
  c->then = keep_detail;
  c->arg = detail;
  server_do(server, "CONFIG", "SET", "maxclients", "1", NULL); /* which is this test */
  assert_error(try_lock(c), BELAY_EMAXCLIENTS);
  assert_non_null(strstr(detail, "max number of clients"));
  assert_error(belay_lock_error(c->lock), BELAY_EMAXCLIENTS);
  assert_int_equal(client_stats(env).unknown, 0);
  assert_int_equal(client_stats(env).connects, deployment_scouts());
  env_close(env);
}

TEST(maxclients_over_a_unix_socket) {
  expect_too_many_clients(NULL);
}

TEST(maxclients_over_tcp) {
  expect_too_many_clients("127.0.0.1");
}

/* ---- a server that repeats the words of the client ---- */

#define SECRET "correct-horse"

typedef struct log_check {
  uv_loop_t loop;
  belay_t *belay;
  unsigned lines, secrets, ended;
  int status;
} log_check_t;

static void listen_to(log_check_t *check, const char *text) {
  check->secrets += strstr(text, SECRET) != NULL;
}

static void check_line(void *ctx, belay_log_level_t level, const char *message) {
  log_check_t *check = ctx;
  (void)level;
  check->lines++;
  listen_to(check, message);
}

static void on_lock_end(belay_lock_t *lock, int status) {
  log_check_t *check = belay_lock_data(lock);
  check->ended++;
  check->status = status;
  listen_to(check, belay_detail(check->belay));
}

/* Knocks with a user and a password; neither the log nor the detail may give it away. */
static void expect_no_secret(const char *url) {
  log_check_t check = {.status = 1};
  belay_options_t options;
  belay_options_init(&options);
  options.log = check_line;
  options.log_ctx = &check;
  uv_loop_init(&check.loop);
  assert_error(belay_open(&check.loop, &options, &check.belay), 0);
  belay_client_options_t client_config = client_options();
  belay_lock_options_t lock_config = lock_options();
  belay_client_t *client;
  belay_lock_t *lock;
  client_config.username = "somebody";
  client_config.password = SECRET;
  lock_config.data = &check;
  assert_error(belay_connect(check.belay, url, &client_config, &client), 0);
  assert_error(belay_lock_new(client, belay_string("door"), &lock_config, &lock), 0);
  assert_error(belay_lock_try(lock, on_lock_end), 0);
  uv_run(&check.loop, UV_RUN_DEFAULT);
  assert_int_equal(check.ended, 1);
  assert_error(check.status, BELAY_EAUTH);
  assert_true(check.lines >= 1);
  assert_error(belay_close(check.belay, NULL), 0);
  uv_run(&check.loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&check.loop), 0);
  assert_int_equal(check.secrets, 0);
}

TEST(server_without_auth) {
  needs_one_server("commands with other names");
  server_t *server =
      server_start(&(server_options_t){.arguments = {"--rename-command", "AUTH", ""}});
  const resp_t *reply = server_ask(server, "AUTH", "somebody", SECRET, NULL);
  assert_int_equal(reply->type, RESP_ERROR);
  assert_non_null(strstr(reply->str, SECRET)); /* the server would */
  expect_no_secret(server_url(server));
  server_stop(server);
}

/* In words of its own. */
static void repeat_auth(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  char text[256];
  (void)arg;
  if (strcmp(words[0], "AUTH") != 0 || count < 3) {
    fake_behave(link, words, count);
    return;
  }
  snprintf(text, sizeof text, "-ERR what is AUTH %s %s?\r\n", words[1], words[2]);
  fake_say(link, text);
}

TEST_ON(server_repeats_auth, fake, fake_start(&(fake_options_t){.on_command = repeat_auth})) {
  expect_no_secret(fake_url(fake));
}

/* ---- a log that takes its time ---- */

typedef struct slow_log {
  uv_loop_t loop;
  unsigned calls, granted;
} slow_log_t;

static void write_slowly(void *ctx, belay_log_level_t level, const char *message) {
  (void)ctx;
  (void)level;
  (void)message;
  stall_ms(15);
}

static void count_grant(belay_lock_t *lock, int status) {
  slow_log_t *log = belay_lock_data(lock);
  log->calls++;
  log->granted += status == 0;
}

/* A new connection that is idle for longer than it may be before its first call is handed to it. */
TEST_ON(needed_connection_is_not_retired, server, server_start(NULL)) {
  enum { LOCKS = 16 };
  slow_log_t log = {.calls = 0};
  belay_options_t options;
  belay_t *belay;
  belay_client_t *client;
  belay_options_init(&options);
  options.log = write_slowly;
  uv_loop_init(&log.loop);
  assert_error(belay_open(&log.loop, &options, &belay), 0);
  belay_client_options_t client_config = client_options();
  belay_lock_options_t lock_config = lock_options();
  client_config.connections = 4;
  client_config.idle_timeout_ms = 10;
  lock_config.data = &log;
  assert_error(belay_connect(belay, server_url(server), &client_config, &client), 0);
  for (int i = 0; i < LOCKS; i++) {
    char name[16];
    belay_lock_t *lock;
    int len = snprintf(name, sizeof name, "%d", i);
    assert_error(belay_lock_new(client, belay_bytes(name, (size_t)len), &lock_config, &lock), 0);
    assert_error(belay_lock_try(lock, count_grant), 0);
  }
  uv_run(&log.loop, UV_RUN_DEFAULT);
  assert_int_equal(log.calls, LOCKS);
  assert_int_equal(log.granted, LOCKS);
  assert_error(belay_close(belay, NULL), 0);
  uv_run(&log.loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&log.loop), 0);
}
