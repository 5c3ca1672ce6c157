/* Redlock: a lock over several nodes. All that it is more than a plain lock is the check of its nodes; the rest is
 * the lease machine, whose quorum is larger than one. */
#include "lease/kinds/redlock.h"

static const belay__server_info_t *server_of(const belay_client_t *client) {
  return client->node_ops->server(client, BELAY__CLASS_LEASE, 0);
}

static bool same_text(const char *a, size_t a_len, const char *b, size_t b_len) {
  return a_len == b_len && memcmp(a, b, a_len) == 0;
}

/* A client against one before it. Returns 0 or an error, with a detail. */
static int compare(const belay_client_t *client, const belay_client_t *other, size_t i, size_t j) {
  const char *what = NULL;
  if (client == other)
    what = "the same client as";
  else if (client->belay != other->belay)
    what = "on another loop than";
  else if (!same_text(client->prefix, client->prefix_len, other->prefix, other->prefix_len))
    what = "another namespace than";
  else if (!same_text(client->owner, client->owner_len, other->owner, other->owner_len))
    what = "another owner than";
  if (what != NULL)
    return belay__invalid(other->belay, "clients[%zu]: %s clients[%zu]", i, what, j);
  if (!belay__server_info_same(server_of(client), server_of(other)))
    return 0;
  belay__detail(other->belay, "clients[%zu]: the same server as clients[%zu]", i, j);
  return BELAY_EDUPLICATE;
}

static int check_clients(belay_t *belay, belay_client_t *const *clients, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (clients[i] == NULL)
      return belay__invalid(belay, "clients[%zu]: NULL", i);
    int error = belay__client_check(clients[i]);
    if (error == 0 && clients[i]->node_ops->by_slots) {
      belay__detail(belay, "clients[%zu]: of a cluster, which is no node of a quorum", i);
      error = BELAY_EINVAL;
    }
    for (size_t j = 0; j < i && error == 0; j++)
      error = compare(clients[i], clients[j], i, j);
    if (error != 0)
      return error;
  }
  return 0;
}

int belay__redlock_check(belay_client_t *const *clients, size_t n, belay_lock_options_t *options) {
  if (options->quarantine == BELAY_QUARANTINE_AUTO)
    options->quarantine = BELAY_QUARANTINE_ON;
  if (n > BELAY_NODES_MAX || (n == 2 && !options->allow_small))
    return belay__invalid(clients[0]->belay, "n: not 1 or 3 to %d", BELAY_NODES_MAX);
  return check_clients(clients[0]->belay, clients, n);
}
