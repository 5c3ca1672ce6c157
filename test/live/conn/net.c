/* Faults of the network, and connection attempts. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/fixtures/env.h"
#include "support/deployments/fake.h"
#include "support/load/pulse.h"
#include "support/deployments/relay.h"

/* ---- names that only this program knows ---- */

#define SLOW_LOOKUP_MS 300

typedef int getaddrinfo_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **list);

static getaddrinfo_fn *real_getaddrinfo(void) {
  getaddrinfo_fn *function;
  void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
  memcpy(&function, &symbol, sizeof function);
  return function;
}

/* Several addresses, of which only the last may have a listener. */
static int several(const char *service, const struct addrinfo *hints, struct addrinfo **list) {
  static const char *const addresses[] = {"127.0.0.3", "127.0.0.2", "127.0.0.1"};
  struct addrinfo **end = list;
  for (size_t i = 0; i < 3; i++) {
    int error = real_getaddrinfo()(addresses[i], service, hints, end);
    if (error != 0)
      return error;
    while (*end != NULL)
      end = &(*end)->ai_next;
  }
  return 0;
}

/* libuv's look-ups come by here. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **list) {
  if (name != NULL && strcmp(name, "several.test") == 0)
    return several(service, hints, list);
  if (name != NULL && strncmp(name, "slow.", 5) == 0)
    stall_ms(SLOW_LOOKUP_MS);
  if (name != NULL && strcmp(name, "slow.nobody.test") == 0)
    return EAI_NONAME;
  if (name != NULL && strcmp(name, "slow.somebody.test") == 0)
    name = "127.0.0.1";
  return real_getaddrinfo()(name, service, hints, list);
}

/* ---- the loop goes on ---- */

/* The smallest of the longest stalls of a few tries, each compared with an idle loop. The
 * remainder is belay's own, without the load of the machine. */
static void expect_ticking(int64_t (*longest_held)(void)) {
  int64_t best = INT64_MAX;
  for (int i = 0; i < 5 && best >= 5 * MS * slow(); i++) {
    pulse_control_t control;
    pulse_control_begin(&control);
    int64_t held = longest_held() - pulse_control_end(&control);
    if (held < best)
      best = held;
  }
  if (best >= 5 * MS * slow())
    fail_msg("the loop stood still for %lld us more than one that does nothing",
             (long long)(best / 1000));
}

static void stand_still(uv_timer_t *timer) {
  stall_ms(20);
  uv_close((uv_handle_t *)timer, NULL);
}

TEST_IN(stalled_loop_is_measured, env, env_bare()) {
  /* the loop closes both after the body of the test */
  static uv_timer_t timer;
  static pulse_t pulse;
  pulse_begin(&pulse, &env->loop);
  uv_timer_init(&env->loop, &timer);
  uv_timer_start(&timer, stand_still, 5, 0);
  env_until(env, pulse.longest_held >= 19 * MS);
  pulse_end(&pulse);
}

/* ---- servers that do not answer ---- */

TEST_ON(server_without_any_reply, fake, fake_start(&(fake_options_t){.mute = true})) {
  belay_client_options_t options = client_options();
  options.connect_timeout_ms = 150 * slow();
  options.timeout_ms = 500 * slow();
  env_t *env = env_open_at(fake_url(fake), &options);
  contender_t *c = contender_new(env, "door", NULL);
  int64_t began = clock_now();
  assert_error(try_lock(c), BELAY_EUNREACHABLE);
  assert_between(clock_since_ms(began), 498 * slow(), 1000 * slow());
  assert_int_equal(fake_commands(fake), 0); /* only the handshake was tried */
  assert_true(fake_connections(fake) >= 2);
  assert_true(client_stats(env).connect_errors >= 1);
  assert_error(acquire(c, 600 * slow()), BELAY_EUNREACHABLE);
  env_close(env);
}

static int64_t held_while_nobody_answers(void) {
  fake_t *fake = fake_start(&(fake_options_t){.mute = true});
  belay_client_options_t options = client_options();
  options.connect_timeout_ms = 50;
  options.timeout_ms = 300;
  env_t *env = env_open_at(fake_url(fake), &options);
  pulse_t pulse;
  pulse_begin(&pulse, &env->loop);
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(try_lock(c), BELAY_EUNREACHABLE);
  pulse_end(&pulse);
  env_close(env);
  fake_stop(fake);
  return pulse.longest_held;
}

TEST(loop_runs_without_replies) {
  expect_ticking(held_while_nobody_answers);
}

/* Shakes hands, and is silent from then on. */
static void only_shake_hands(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  (void)arg;
  if (fake_is_handshake(words))
    fake_behave(link, words, count);
}

TEST_ON(server_silent_after_handshake, fake,
        fake_start(&(fake_options_t){.on_command = only_shake_hands})) {
  belay_client_options_t options = client_options();
  options.timeout_ms = prompt_ms();
  env_t *env = env_open_at(fake_url(fake), &options);
  contender_t *c = contender_new(env, "door", NULL);
  int64_t began = clock_now();
  assert_error(try_lock(c), BELAY_EUNKNOWN);
  assert_between(clock_since_ms(began), options.timeout_ms - 2, options.timeout_ms + lag());
  assert_false(belay_err_retryable(BELAY_EUNKNOWN));
  env_close(env);
}

TEST_ON(port_without_listener, server, server_start(&(server_options_t){.address = "127.0.0.1"})) {
  char url[64];
  snprintf(url, sizeof url, "%s", server_url(server));
  server_kill(server);
  belay_client_options_t options = client_options();
  options.timeout_ms = 300;
  env_t *env = env_open_at(url, &options);
  contender_t *c = contender_new(env, "door", NULL);
  int64_t began = clock_now();
  assert_error(try_lock(c), BELAY_EUNREACHABLE);
  assert_true(clock_since_ms(began) < options.timeout_ms + lag());
  assert_true(belay_err_retryable(BELAY_EUNREACHABLE));
  assert_error(acquire(c, 400), BELAY_EUNREACHABLE);
  assert_int_equal(client_stats(env).unknown, 0);
  assert_true(client_stats(env).connect_errors >= 1);
  env_close(env);
}

TEST(missing_unix_socket) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 100;
  env_t *env = env_open_at("unix:///nonexistent/socket", &options);
  assert_error(try_lock(contender_new(env, "door", NULL)), BELAY_EUNREACHABLE);
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs == 1);
  assert_error(env->pong_status, BELAY_EUNREACHABLE);
  env_close(env);
}

/* ---- names and addresses ---- */

TEST(unknown_host_name) {
  struct addrinfo *list;
  int64_t began = clock_now();
  assert_int_not_equal(getaddrinfo("no-such-host.invalid", "6379", NULL, &list), 0);
  bool resolver_is_quick = clock_since_ms(began) < 500;
  env_t *env = env_open_at("redis://no-such-host.invalid:6379", NULL);
  contender_t *c = contender_new(env, "door", NULL);
  int status = try_lock(c);
  if (resolver_is_quick)
    assert_error(status, BELAY_ERESOLVE);
  else
    assert_true(status == BELAY_ERESOLVE || status == BELAY_EUNREACHABLE);
  assert_int_equal(client_stats(env).unknown, 0);
  env_close(env);
}

static int64_t held_while_a_name_is_looked_up(void) {
  belay_client_options_t options = client_options();
  options.timeout_ms = SLOW_LOOKUP_MS + prompt_ms();
  env_t *env = env_open_at("redis://slow.nobody.test", &options);
  pulse_t pulse;
  pulse_begin(&pulse, &env->loop);
  int64_t began = clock_now();
  assert_error(try_lock(contender_new(env, "door", NULL)), BELAY_ERESOLVE);
  assert_true(clock_since_ms(began) >= SLOW_LOOKUP_MS);
  pulse_end(&pulse);
  env_close(env);
  return pulse.longest_held;
}

TEST(loop_runs_during_name_lookup) {
  expect_ticking(held_while_a_name_is_looked_up);
}

/* A look-up cannot be stopped: the close waits for it, and no longer. */
TEST_IN(close_during_name_lookup, env, env_open_at("redis://slow.nobody.test", NULL)) {
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_run_for(env, 50);
  assert_error(begin_belay_close(env), 0);
  env_until(env, c->ended == 1);
  assert_error(c->status, BELAY_ECANCELED);
  env_until(env, env->belay_closed == 1);
}

static void test_host(void **state) {
  char url[64];
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1"});
  snprintf(url, sizeof url, "redis://%s%s:%d", server_login(server), (const char *)*state,
           server_port(server));
  env_t *env = env_open_at(url, NULL);
  env->server = server;
  assert_error(try_lock(contender_new(env, "door", NULL)), 0);
  env_close(env);
}

TEST_ROWS(hosts) {
  test_add(__LINE__, test_host, "localhost", "localhost");
  test_add(__LINE__, test_host, "slow.somebody.test", "slow_name_lookup");
  test_add(__LINE__, test_host, "several.test", "last_of_several_addresses");
}

static bool has_ipv6(void) {
  struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool has = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
  if (fd >= 0)
    close(fd);
  return has;
}

TEST(ipv6_address) {
  needs_one_server("an address of its own choice");
  if (!has_ipv6())
    skip();
  env_t *env = env_open_with(server_start(&(server_options_t){.address = "::1"}), NULL);
  assert_true(deployment() == DEPLOYMENT_SENTINEL ||
              strstr(server_url(env->server), "[::1]:") != NULL);
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_true(is_on_server(c));
  env_close(env);
}

/* The database in the URL and in the options (-1: none), and the one that is used. */
typedef struct db_row {
  const char *name;
  bool tcp;
  int url, option, used;
  int error;
} db_row_t;

static void test_db(void **state) {
  const db_row_t *row = *state;
  char url[256], used[12];
  if (row->error == 0)
    needs_one_server("databases");
  server_t *server = server_start(&(server_options_t){.address = row->tcp ? "127.0.0.1" : NULL});
  if (row->tcp)
    snprintf(url, sizeof url, "%s/%d", server_url(server), row->url);
  else
    snprintf(url, sizeof url, "unix://%s%s?db=%d", server_login(server), server_path(server),
             row->url);
  belay_client_options_t options = client_options();
  options.db = row->option;
  env_t *env = env_open_at(url, &options);
  env->server = server;
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(try_lock(c), row->error);
  if (row->used > 0) {
    assert_int_equal(server_keys(server), 0);
    snprintf(used, sizeof used, "%d", row->used);
    server_do(server, "SELECT", used, NULL);
  }
  assert_int_equal(server_keys(server), row->error == 0);
  if (row->error == 0)
    assert_true(is_on_server(c));
  env_close(env);
}

static const db_row_t db_rows[] = {
    {"db_of_a_unix_url", false, 3, -1, 3, 0},
    {"db_of_a_tcp_url", true, 5, -1, 5, 0},
    {"db_of_the_options", false, 3, 0, 0, 0},
    {"db_that_does_not_exist", false, 999, -1, 0, BELAY_EREFUSED},
};

TEST_ROWS(databases) {
  for (size_t i = 0; i < sizeof db_rows / sizeof *db_rows; i++)
    test_add(__LINE__, test_db, &db_rows[i], "%s", db_rows[i].name);
}

ENV_TEST_OF(client_name, o.client_name = "billing") {
  assert_error(try_lock(contender_new(env, "door", NULL)), 0);
  assert_non_null(strstr(server_string(env->server, "CLIENT", "LIST", NULL), "name=billing"));
}
