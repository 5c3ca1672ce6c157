#include "support/deployments/nodes.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

#define SIGN_OF_LIFE_MS 300 /* a server that has not answered by then stands still */

nodes_t *nodes_open(unsigned n, const belay_client_options_t *options) {
  needs_quorum();
  nodes_t *nodes = calloc(1, sizeof *nodes);
  assert_true(n >= 1 && n <= BELAY_NODES_MAX);
  nodes->n = n;
  for (unsigned i = 0; i < n; i++)
    nodes->server[i] = server_start(NULL);
  nodes->env = env_open_with(nodes->server[0], options);
  nodes->client[0] = nodes->env->client;
  for (unsigned i = 1; i < n; i++)
    nodes->client[i] = env_connect(nodes->env, server_url(nodes->server[i]), options);
  return nodes;
}

void nodes_close(nodes_t *nodes) {
  env_close(nodes->env); /* and the first server */
  for (unsigned i = 1; i < nodes->n; i++)
    server_stop(nodes->server[i]);
  free(nodes);
}

void nodes_pause(nodes_t *nodes, unsigned count) {
  for (unsigned i = 0; i < count; i++)
    server_pause(nodes->server[i]);
}

void nodes_kill(nodes_t *nodes, unsigned count) {
  for (unsigned i = 0; i < count; i++)
    server_kill(nodes->server[i]);
}

void nodes_resume(nodes_t *nodes) {
  for (unsigned i = 0; i < nodes->n; i++)
    server_resume(nodes->server[i]);
}

void nodes_restart(nodes_t *nodes, unsigned count) {
  for (unsigned i = 0; i < count; i++)
    server_restart(nodes->server[i]);
}

static void on_pong(belay_client_t *client, int status) {
  env_t *env = belay_client_data(client);
  env->pongs++;
  env->pong_status = status == 0 ? env->pong_status : status;
}

void nodes_warm(nodes_t *nodes) {
  env_t *env = nodes->env;
  env->pongs = env->pong_status = 0;
  for (unsigned i = 0; i < nodes->n; i++)
    assert_error(belay_client_ping(nodes->client[i], 10000 * slow(), on_pong), 0);
  env_until(env, env->pongs == (int)nodes->n);
  assert_error(env->pong_status, 0);
}

void nodes_settle(nodes_t *nodes) {
  env_settle(nodes->env);
}

/* ---- contenders ---- */

belay_lock_options_t redlock_options(int64_t ttl_ms) {
  belay_lock_options_t options = with_ttl(ttl_ms);
  options.watchdog = BELAY_WATCHDOG_OFF;
  options.quarantine = BELAY_QUARANTINE_OFF;
  options.max_attempts =
      1000000; /* maximum; a handle with it contends by itself, beside the others of its client */
  return options;
}

belay_lock_options_t unhurried_options(int64_t ttl_ms) {
  belay_lock_options_t options = redlock_options(ttl_ms);
  options.timeout_ms = ttl_ms > 50 ? ttl_ms / 10 : 5;
  return options;
}

contender_t *contender_over(env_t *env, belay_client_t *const *clients, size_t n, const char *name,
                            const belay_lock_options_t *options) {
  needs_quorum();
  belay_lock_options_t o = options != NULL ? *options : lock_options();
  if (options == NULL)
    o.quarantine = BELAY_QUARANTINE_OFF;
  contender_t *c = contender_blank(env, &o);
  int error = belay_redlock_new(clients, n, belay_string(name), &o, &c->lock);
  if (error != 0)
    fail_msg("belay_redlock_new: %s: %s", belay_strerror(error), belay_detail(env->belay));
  return c;
}

contender_t *nodes_contender(nodes_t *nodes, const char *name,
                             const belay_lock_options_t *options) {
  return contender_over(nodes->env, nodes->client, nodes->n, name, options);
}

/* ---- behind the scenes ---- */

/* Whether it is there and does not stand still: a question to one that does would fail the test. */
static bool answers(server_t *server) {
  const resp_words_t ping = {1, {"PING"}, {4}};
  const int64_t ms = SIGN_OF_LIFE_MS * slow();
  const struct timeval patience = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
  const char *path = server_path(server);
  resp_client_t client;
  int error = path != NULL ? resp_dial_unix(&client, path)
                           : resp_dial_tcp(&client, "127.0.0.1", server_port(server));
  if (error != 0)
    return false;
  setsockopt(client.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  resp_t *reply = resp_call(&client, &ping);
  bool alive = reply != NULL;
  resp_hang_up(&client);
  resp_free(reply);
  return alive;
}

const char *nodes_value(nodes_t *nodes, unsigned node, contender_t *contender) {
  return server_string(nodes->server[node], "GET", key_of(contender), NULL);
}

unsigned nodes_holding(nodes_t *nodes, contender_t *contender) {
  char token[256];
  unsigned count = 0;
  if (belay_lock_token(contender->lock, token, sizeof token) == 0)
    return 0;
  for (unsigned i = 0; i < nodes->n; i++) {
    if (!answers(nodes->server[i]))
      continue;
    const char *value = nodes_value(nodes, i, contender);
    count += value != NULL && strcmp(value, token) == 0;
  }
  return count;
}

void nodes_occupy(nodes_t *nodes, unsigned node, contender_t *contender, int64_t ttl_ms) {
  char ttl[24];
  snprintf(ttl, sizeof ttl, "%lld", (long long)ttl_ms);
  server_do(nodes->server[node], "SET", key_of(contender), "somebody else", "PX", ttl, NULL);
}

/* A lock's key ends with its name; companions of a lock, such as its fencing counter, have
 * longer keys. */
int64_t nodes_keys(nodes_t *nodes) {
  int64_t count = 0;
  for (unsigned i = 0; i < nodes->n; i++)
    if (answers(nodes->server[i]))
      count += (int64_t)server_ask(nodes->server[i], "KEYS", "*::lock::*}", NULL)->count;
  return count;
}

void nodes_expect_no_key(nodes_t *nodes) {
  nodes_settle(nodes);
  assert_int_equal(nodes_keys(nodes), 0);
}
