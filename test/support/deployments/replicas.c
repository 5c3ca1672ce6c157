#include "support/deployments/replicas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/base/clock.h"
#include "support/base/unit.h"

#define WAIT_MS 20000

struct replicas {
  server_t *node[REPLICAS_NODES];
  char url[256];
};

replicas_t *replicas_start(const replicas_options_t *options) {
  static const replicas_options_t none;
  replicas_options_t with_tls = options != NULL ? *options : none;
  const replicas_options_t *o = &with_tls;
  with_tls.tls = with_tls.tls || servers_are_secure();
  server_options_t each = {.address = "127.0.0.1", .password = o->password, .tls = o->tls};
  server_set(&each, "--hz", "100");
  /* Without a file, a replica that got a whole copy gets no writes for up to a second. */
  server_set(&each, "--repl-diskless-sync", "no");
  server_set(&each, "--masterauth", o->password);
  server_set(&each, "--tls-replication", o->tls ? "yes" : NULL);
  server_add(&each, o->arguments);
  replicas_t *replicas = calloc(1, sizeof *replicas);
  for (unsigned i = 0; i < REPLICAS_NODES; i++) {
    replicas->node[i] = server_make(&each);
    server_spawn(replicas->node[i]);
  }
  for (unsigned i = 0; i < REPLICAS_NODES; i++)
    server_await(replicas->node[i]);
  server_name_several(replicas->url, sizeof replicas->url, "replicas", replicas->node[0],
                      replicas->node, REPLICAS_NODES);
  replicas_promote(replicas, 0);
  replicas_wait(replicas, 0);
  return replicas;
}

void replicas_stop(replicas_t *replicas) {
  for (unsigned i = 0; replicas != NULL && i < REPLICAS_NODES; i++)
    server_stop(replicas->node[i]);
  free(replicas);
}

const char *replicas_url(const replicas_t *replicas) {
  return replicas->url;
}

server_t *replicas_node(const replicas_t *replicas, unsigned i) {
  assert_true(i < REPLICAS_NODES);
  return replicas->node[i];
}

int replicas_find(const replicas_t *replicas, int port) {
  for (int i = 0; i < REPLICAS_NODES; i++)
    if (server_port(replicas->node[i]) == port)
      return i;
  return -1;
}

static void follow(replicas_t *replicas, unsigned i, unsigned primary) {
  char line[64], port[12];
  snprintf(port, sizeof port, "%d", server_port(replicas->node[primary]));
  snprintf(line, sizeof line, "replicaof 127.0.0.1 %s", port);
  if (server_is_running(replicas->node[i]))
    server_do(replicas->node[i], "REPLICAOF", "127.0.0.1", port, NULL);
  else
    server_configure(replicas->node[i], line);
}

void replicas_promote(replicas_t *replicas, unsigned primary) {
  server_do(replicas->node[primary], "REPLICAOF", "NO", "ONE", NULL);
  for (unsigned i = 0; i < REPLICAS_NODES; i++)
    if (i != primary)
      follow(replicas, i, primary);
}

void replicas_revive(replicas_t *replicas, unsigned i, unsigned primary) {
  assert_false(server_is_running(replicas->node[i]));
  follow(replicas, i, primary);
  server_spawn(replicas->node[i]);
}

/* Its reply to ROLE, if that begins with this word. */
static const resp_t *role(server_t *server, const char *word) {
  const resp_t *reply = server_try(server, "ROLE", NULL);
  bool is = reply != NULL && reply->type == RESP_ARRAY && strcmp(reply->items[0]->str, word) == 0;
  return is ? reply : NULL;
}

bool server_is_primary(server_t *server) {
  return role(server, "master") != NULL;
}

bool server_is_in_step(server_t *replica, server_t *primary) {
  const resp_t *reply = role(primary, "master");
  int64_t offset = reply == NULL ? INT64_MAX : reply->items[1]->integer;
  reply = role(replica, "slave");
  return reply != NULL && reply->items[2]->integer == server_port(primary) &&
         strcmp(reply->items[3]->str, "connected") == 0 && reply->items[4]->integer >= offset;
}

bool replicas_are_in_line(replicas_t *replicas, unsigned primary) {
  const resp_t *reply = role(replicas->node[primary], "master");
  if (reply == NULL || reply->items[2]->count != REPLICAS_NODES - 1)
    return false;
  for (unsigned i = 0; i < REPLICAS_NODES; i++)
    if (i != primary && !server_is_in_step(replicas->node[i], replicas->node[primary]))
      return false;
  return true;
}

void replicas_wait(replicas_t *replicas, unsigned primary) {
  int64_t began = clock_now();
  while (!replicas_are_in_line(replicas, primary)) {
    if (clock_since_ms(began) > WAIT_MS * slow())
      fail_msg("a replica does not follow its primary");
    stall_ms(2);
  }
}
