#include "support/deployments/remote.h"

remote_t *remote_open(unsigned n) {
  remote_t *remote = calloc(1, sizeof *remote);
  nodes_t *nodes = remote->nodes = calloc(1, sizeof *nodes);
  assert_true(n >= 1 && n <= BELAY_NODES_MAX);
  nodes->n = n;
  for (unsigned i = 0; i < n; i++) {
    nodes->server[i] = server_start(NULL);
    remote->relay[i] = relay_start(server_url(nodes->server[i]));
  }
  nodes->env = env_open_at(relay_url(remote->relay[0]), NULL);
  nodes->env->server = nodes->server[0];
  nodes->client[0] = nodes->env->client;
  for (unsigned i = 1; i < n; i++)
    nodes->client[i] = env_connect(nodes->env, relay_url(remote->relay[i]), NULL);
  nodes_warm(nodes);
  return remote;
}

remote_t *remote_open_seasoned(unsigned n) {
  remote_t *remote = remote_open(n);
  env_run_for(remote->nodes->env, MAX_TTL + 3 * SECONDS);
  return remote;
}

void remote_close(remote_t *remote) {
  unsigned n = remote->nodes->n;
  nodes_close(remote->nodes);
  for (unsigned i = 0; i < n; i++)
    relay_stop(remote->relay[i]);
  free(remote);
}

static void on_pong(belay_client_t *client, int status) {
  env_t *env = belay_client_data(client);
  env->pongs++;
  env->pong_status = status;
}

/* A question on a connection that has just died is not answered. */
void remote_reach(remote_t *remote) {
  env_t *env = remote->nodes->env;
  for (unsigned i = 0; i < remote->nodes->n; i++)
    do {
      env->pongs = 0;
      assert_error(belay_client_ping(remote->nodes->client[i], 1 * SECONDS * slow(), on_pong), 0);
      env_until(env, env->pongs == 1);
    } while (env->pong_status != 0);
}

void remote_put(remote_t *remote, int64_t ms) {
  for (unsigned i = 0; i < remote->nodes->n; i++)
    relay_delay(remote->relay[i], ms / 2);
}
