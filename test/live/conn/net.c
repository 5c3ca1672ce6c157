/* Faults of the network, and connection attempts. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/fixtures/bed.h"
#include "support/deployments/fake.h"
#include "support/load/pulse.h"
#include "support/deployments/relay.h"

/* ---- names that only this program knows ------------------------------------------------------------------ */

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

/* ---- the loop goes on ------------------------------------------------------------------------------------ */

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

TEST_IN(a_loop_that_stands_still_is_found_out, bed, bed_bare()) {
  /* the loop closes both after the body of the test */
  static uv_timer_t timer;
  static pulse_t pulse;
  pulse_begin(&pulse, &bed->loop);
  uv_timer_init(&bed->loop, &timer);
  uv_timer_start(&timer, stand_still, 5, 0);
  bed_until(bed, pulse.longest_held >= 19 * MS);
  pulse_end(&pulse);
}

/* ---- servers that do not answer -------------------------------------------------------------------------- */

TEST_ON(a_server_that_never_says_a_word_is_unreachable, fake,
        fake_start(&(fake_options_t){.mute = true})) {
  belay_client_options_t options = client_options();
  options.connect_timeout_ms = 150 * slow();
  options.timeout_ms = 500 * slow();
  bed_t *bed = bed_open_at(fake_url(fake), &options);
  contender_t *c = contender_new(bed, "door", NULL);
  int64_t began = clock_now();
  assert_error(try_lock(c), BELAY_EUNREACHABLE);
  assert_between(clock_since_ms(began), 498 * slow(), 1000 * slow());
  assert_int_equal(fake_commands(fake), 0); /* only the handshake was tried */
  assert_true(fake_connections(fake) >= 2);
  assert_true(client_stats(bed).connect_errors >= 1);
  assert_error(acquire(c, 600 * slow()), BELAY_EUNREACHABLE);
  bed_close(bed);
}

static int64_t held_while_nobody_answers(void) {
  fake_t *fake = fake_start(&(fake_options_t){.mute = true});
  belay_client_options_t options = client_options();
  options.connect_timeout_ms = 50;
  options.timeout_ms = 300;
  bed_t *bed = bed_open_at(fake_url(fake), &options);
  pulse_t pulse;
  pulse_begin(&pulse, &bed->loop);
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), BELAY_EUNREACHABLE);
  pulse_end(&pulse);
  bed_close(bed);
  fake_stop(fake);
  return pulse.longest_held;
}

TEST(the_loop_ticks_while_nobody_answers) {
  expect_ticking(held_while_nobody_answers);
}

/* Shakes hands, and is silent from then on. */
static void only_shake_hands(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  (void)arg;
  if (fake_is_handshake(words))
    fake_behave(link, words, count);
}

TEST_ON(a_server_that_falls_silent_leaves_an_unknown_outcome, fake,
        fake_start(&(fake_options_t){.on_command = only_shake_hands})) {
  belay_client_options_t options = client_options();
  options.timeout_ms = prompt_ms();
  bed_t *bed = bed_open_at(fake_url(fake), &options);
  contender_t *c = contender_new(bed, "door", NULL);
  int64_t began = clock_now();
  assert_error(try_lock(c), BELAY_EUNKNOWN);
  assert_between(clock_since_ms(began), options.timeout_ms - 2, options.timeout_ms + lag());
  assert_false(belay_err_retryable(BELAY_EUNKNOWN));
  bed_close(bed);
}

TEST_ON(a_port_where_nobody_listens, server,
        server_start(&(server_options_t){.address = "127.0.0.1"})) {
  char url[64];
  snprintf(url, sizeof url, "%s", server_url(server));
  server_kill(server);
  belay_client_options_t options = client_options();
  options.timeout_ms = 300;
  bed_t *bed = bed_open_at(url, &options);
  contender_t *c = contender_new(bed, "door", NULL);
  int64_t began = clock_now();
  assert_error(try_lock(c), BELAY_EUNREACHABLE);
  assert_true(clock_since_ms(began) < options.timeout_ms + lag());
  assert_true(belay_err_retryable(BELAY_EUNREACHABLE));
  assert_error(acquire(c, 400), BELAY_EUNREACHABLE);
  assert_int_equal(client_stats(bed).unknown, 0);
  assert_true(client_stats(bed).connect_errors >= 1);
  bed_close(bed);
}

TEST(a_socket_that_is_not_there) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 100;
  bed_t *bed = bed_open_at("unix:///nonexistent/socket", &options);
  assert_error(try_lock(contender_new(bed, "door", NULL)), BELAY_EUNREACHABLE);
  assert_error(begin_ping(bed), 0);
  bed_until(bed, bed->pongs == 1);
  assert_error(bed->pong_status, BELAY_EUNREACHABLE);
  bed_close(bed);
}

/* ---- names and addresses --------------------------------------------------------------------------------- */

TEST(a_name_that_does_not_resolve) {
  struct addrinfo *list;
  int64_t began = clock_now();
  assert_int_not_equal(getaddrinfo("no-such-host.invalid", "6379", NULL, &list), 0);
  bool resolver_is_quick = clock_since_ms(began) < 500;
  bed_t *bed = bed_open_at("redis://no-such-host.invalid:6379", NULL);
  contender_t *c = contender_new(bed, "door", NULL);
  int status = try_lock(c);
  if (resolver_is_quick)
    assert_error(status, BELAY_ERESOLVE);
  else
    assert_true(status == BELAY_ERESOLVE || status == BELAY_EUNREACHABLE);
  assert_int_equal(client_stats(bed).unknown, 0);
  bed_close(bed);
}

static int64_t held_while_a_name_is_looked_up(void) {
  belay_client_options_t options = client_options();
  options.timeout_ms = SLOW_LOOKUP_MS + prompt_ms();
  bed_t *bed = bed_open_at("redis://slow.nobody.test", &options);
  pulse_t pulse;
  pulse_begin(&pulse, &bed->loop);
  int64_t began = clock_now();
  assert_error(try_lock(contender_new(bed, "door", NULL)), BELAY_ERESOLVE);
  assert_true(clock_since_ms(began) >= SLOW_LOOKUP_MS);
  pulse_end(&pulse);
  bed_close(bed);
  return pulse.longest_held;
}

TEST(the_loop_ticks_while_a_name_is_looked_up) {
  expect_ticking(held_while_a_name_is_looked_up);
}

TEST(a_name_that_resolves_slowly) {
  char url[64];
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1"});
  snprintf(url, sizeof url, "redis://%sslow.somebody.test:%d", server_login(server),
           server_port(server));
  bed_t *bed = bed_open_at(url, NULL);
  bed->server = server;
  assert_error(try_lock(contender_new(bed, "door", NULL)), 0);
  bed_close(bed);
}

/* A look-up cannot be stopped: the close waits for it, and no longer. */
TEST_IN(a_close_during_a_look_up, bed, bed_open_at("redis://slow.nobody.test", NULL)) {
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  bed_run_for(bed, 50);
  assert_error(begin_belay_close(bed), 0);
  bed_until(bed, c->ended == 1);
  assert_error(c->status, BELAY_ECANCELED);
  bed_until(bed, bed->belay_closed == 1);
}

TEST(every_address_of_a_name_is_tried) {
  char url[64];
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1"});
  snprintf(url, sizeof url, "redis://%sseveral.test:%d", server_login(server), server_port(server));
  bed_t *bed = bed_open_at(url, NULL);
  bed->server = server;
  assert_error(try_lock(contender_new(bed, "door", NULL)), 0);
  bed_close(bed);
}

TEST(localhost) {
  char url[64];
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1"});
  snprintf(url, sizeof url, "redis://%slocalhost:%d", server_login(server), server_port(server));
  bed_t *bed = bed_open_at(url, NULL);
  bed->server = server;
  assert_error(try_lock(contender_new(bed, "door", NULL)), 0);
  bed_close(bed);
}

static bool has_ipv6(void) {
  struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool has = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
  if (fd >= 0)
    close(fd);
  return has;
}

TEST(an_ipv6_address) {
  needs_one_server("an address of its own choice");
  if (!has_ipv6())
    skip();
  bed_t *bed = bed_open_with(server_start(&(server_options_t){.address = "::1"}), NULL);
  assert_true(deployment() == DEPLOYMENT_SENTINEL ||
              strstr(server_url(bed->server), "[::1]:") != NULL);
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_true(is_on_server(c));
  bed_close(bed);
}

TEST(a_socket_and_a_database_of_a_url) {
  needs_one_server("databases");
  char url[256];
  server_t *server = server_start(NULL);
  snprintf(url, sizeof url, "unix://%s%s?db=3", server_login(server), server_path(server));
  bed_t *bed = bed_open_at(url, NULL);
  bed->server = server;
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_int_equal(server_keys(server), 0);
  server_do(server, "SELECT", "3", NULL);
  assert_int_equal(server_keys(server), 1);
  assert_true(is_on_server(c));
  bed_close(bed);
}

TEST(a_port_and_a_database_of_a_url) {
  needs_one_server("databases");
  char url[256];
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1"});
  snprintf(url, sizeof url, "%s/5", server_url(server));
  bed_t *bed = bed_open_at(url, NULL);
  bed->server = server;
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  server_do(server, "SELECT", "5", NULL);
  assert_true(is_on_server(c));
  bed_close(bed);
}

TEST(the_options_database_counts_more_than_the_urls) {
  needs_one_server("databases");
  char url[256];
  server_t *server = server_start(NULL);
  snprintf(url, sizeof url, "unix://%s%s?db=3", server_login(server), server_path(server));
  belay_client_options_t options = client_options();
  options.db = 0;
  bed_t *bed = bed_open_at(url, &options);
  bed->server = server;
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_true(is_on_server(c));
  bed_close(bed);
}

TEST(a_database_that_the_server_does_not_have) {
  char url[256];
  server_t *server = server_start(NULL);
  snprintf(url, sizeof url, "unix://%s%s?db=999", server_login(server), server_path(server));
  belay_client_options_t options = client_options();
  options.timeout_ms = prompt_ms();
  bed_t *bed = bed_open_at(url, &options);
  bed->server = server;
  assert_error(try_lock(contender_new(bed, "door", NULL)), BELAY_EREFUSED);
  assert_int_equal(server_keys(server), 0);
  bed_close(bed);
}

BED_TEST_OF(the_client_says_its_name, o.client_name = "billing") {
  assert_error(try_lock(contender_new(bed, "door", NULL)), 0);
  assert_non_null(strstr(server_string(bed->server, "CLIENT", "LIST", NULL), "name=billing"));
}
