/* A connection breaks during a round, an address changes its server, the loop stalls during an
 * attempt. */
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "scripts.gen.h"
#include "support/fixtures/lease/fencing.h"
#include "support/deployments/remote.h"

#define LOCKS 20 /* more calls than a connection gathers before it writes */

static atomic_int
    armed; /* port of the server that must not receive proposals of numbers from now on; 0: none */
static atomic_uint broken;

/* true if TLS hides the content of a write, and the write is such a proposal */
static bool encrypted;

static bool proposes(const void *data, size_t len) {
  return memmem(data, len, belay__script_fence_accept.sha1, 40) != NULL;
}

/* Replaces the function of the C library: a write may end a connection. */
ssize_t send(int fd, const void *data, size_t len, int flags) {
  struct sockaddr_in peer;
  socklen_t size = sizeof peer;
  int port = atomic_load(&armed);
  if (port != 0 && getpeername(fd, (struct sockaddr *)&peer, &size) == 0 &&
      peer.sin_family == AF_INET && ntohs(peer.sin_port) == port &&
      (encrypted || proposes(data, len))) {
    atomic_fetch_add(&broken, 1);
    errno = ETIMEDOUT;
    return -1;
  }
  return syscall(SYS_sendto, fd, data, len, flags, NULL, 0);
}

typedef int ssl_write_fn(SSL *, const void *, size_t, size_t *);

/* Replaces the function of OpenSSL. */
int SSL_write_ex(SSL *ssl, const void *data, size_t len, size_t *written) {
  ssl_write_fn *function;
  void *symbol = dlsym(RTLD_NEXT, "SSL_write_ex");
  memcpy(&function, &symbol, sizeof function);
  encrypted = proposes(data, len);
  int result = function(ssl, data, len, written);
  encrypted = false;
  return result;
}

static unsigned grants;

/* A reported grant has a remaining time and a fencing number. */
static void look(contender_t *c, event_t event) {
  if (event != EVENT_ENDED || c->status != 0)
    return;
  grants++;
  assert_true(belay_lock_remaining_us(c->lock) > 0);
  assert_true(belay_lock_fence(c->lock) > 0);
}

static bool is_up(const belay_client_t *client) {
  belay_client_stats_t stats;
  belay_client_stats(client, &stats);
  return stats.connections_up > 0;
}

TEST(connection_breaks_during_round) {
  nodes_t *nodes = nodes_open(3, NULL);
  relay_t *relay = relay_start(server_url(nodes->server[0]));
  belay_client_t *clients[] = {env_connect(nodes->env, relay_url(relay), NULL), nodes->client[1],
                               nodes->client[2]};
  belay_lock_options_t options = unhurried_options(10000 * slow());
  options.fencing = true;
  contender_t *c[LOCKS];
  for (unsigned i = 0; i < LOCKS; i++) {
    char name[16];
    snprintf(name, sizeof name, "door %u", i);
    c[i] = contender_over(nodes->env, clients, 3, name, &options);
    assert_ok(acquire(c[i], 5000 * slow()), release(c[i]));
    c[i]->then = look;
  }
  env_until(nodes->env, is_up(clients[0])); /* a majority does without it */
  env_settle(nodes->env);
  relay_delay(
      relay, 100 * (int)slow()); /* its grants are still on their way when the number is proposed */
  grants = 0;
  atomic_store(&armed, atoi(strrchr(relay_url(relay), ':') + 1));
  for (unsigned i = 0; i < LOCKS; i++)
    assert_error(begin_acquire(c[i], 0), 0);
  for (unsigned i = 0; i < LOCKS; i++)
    (void)outcome(c[i]);
  atomic_store(&armed, 0);
  assert_true(atomic_load(&broken) > 0);
  assert_true(grants > 0);
  relay_delay(relay, 0);
  nodes_close(nodes);
  relay_stop(relay);
}

/* The client reaches the first server under the third address. A key that an extend finds there
 * is released. */
TEST(duplicate_server_is_released) {
  nodes_t *nodes = nodes_open(2, NULL);
  relay_t *first = relay_start(server_url(nodes->server[0]));
  relay_t *third = relay_start(server_url(nodes->server[0]));
  relay_lead(third, "unix:///none");
  belay_client_options_t options = client_options();
  options.reconnect_max_ms = 50;
  belay_client_t *clients[] = {env_connect(nodes->env, relay_url(first), &options),
                               nodes->client[1],
                               env_connect(nodes->env, relay_url(third), &options)};
  belay_lock_options_t lock = unhurried_options(20000 * slow());
  contender_t *c = contender_over(nodes->env, clients, 3, "door", &lock);
  assert_error(acquire(c, 5000 * slow()), 0);
  env_run_for(nodes->env, lock.timeout_ms + 100); /* the third one has not been reached */
  relay_lead(third, server_url(nodes->server[0]));
  relay_lead(first, "unix:///none");
  relay_cut(first);
  for (int i = 0; i < 50 && extend(c, 20000 * slow()) != 0; i++)
    env_run_for(nodes->env, 50);
  assert_ok(c->extend_status, release(c));
  env_until(nodes->env, nodes_value(nodes, 0, c) == NULL);
  nodes_close(nodes);
  relay_stop(first);
  relay_stop(third);
}

static bool to_stall;

static void stall_behind_a_call(void *ctx, const belay_trace_t *trace) {
  (void)ctx;
  if (!to_stall || trace->event != BELAY_TRACE_SENT)
    return;
  to_stall = false;
  stall_ms(3000);
}

/* The delay before the next attempt is measured by rounds, not by how long the loop was away. */
TEST(retry_after_stalled_loop) {
  belay_client_options_t client = client_options();
  client.trace = stall_behind_a_call;
  belay_lock_options_t options = redlock_options(2000);
  nodes_t *nodes = nodes_open(3, &client);
  contender_t *c = nodes_contender(nodes, "door", &options);
  assert_ok(acquire(c, 5000 * slow()), release(c));
  for (int i = 0; i < 3; i++) {
    nodes_settle(nodes);
    to_stall = true;
    int64_t began = clock_now();
    assert_error(acquire(c, 60000), 0);
    assert_between(clock_since_ms(began), 3000, 3000 + 2000 * slow());
    assert_error(release(c), 0);
  }
  nodes_close(nodes);
}

/* The first of two callbacks takes longer than both leases. */
static void oversleep(contender_t *c, event_t event) {
  contender_t *other = c->arg;
  if (event == EVENT_ENDED && c->status == 0 && other->ended < other->begun)
    stall_ms(400);
}

/* A majority granted both attempts. The second callback gets the current truth, not the old one. */
TEST_IN(grant_expires_before_callback, nodes, nodes_open(3, NULL)) {
  belay_lock_options_t options = redlock_options(300);
  contender_t *c[] = {nodes_contender(nodes, "one", &options),
                      nodes_contender(nodes, "two", &options)};
  for (int i = 0; i < 2; i++) {
    c[i]->arg = c[1 - i];
    c[i]->then = oversleep;
  }
  bool expired = false;
  for (int turn = 0; turn < 50 && !expired; turn++) {
    for (int i = 0; i < 2; i++)
      assert_error(begin_acquire(c[i], 0), 0);
    for (int i = 0; i < 2; i++) {
      int status = outcome(c[i]);
      expired |= status == BELAY_EEXPIRED;
      assert_true(status != 0 || c[i]->lost > 0 || remaining_ms(c[i]) > 0);
    }
    for (int i = 0; i < 2; i++)
      if (remaining_ms(c[i]) > 0)
        (void)release(c[i]);
    env_until(nodes->env, remaining_ms(c[0]) == 0 && remaining_ms(c[1]) == 0);
    nodes_settle(nodes);
  }
  assert_true(expired);
  nodes_expect_no_key(nodes);
}
