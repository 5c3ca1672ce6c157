#include "lease/kinds/lock_new.h"

#include <string.h>

#include "belay/redlock.h"
#include "lease/kinds/fair.h"

#define OWNER_MAX ((size_t)64)
#define INSTANCE_LEN (2 * BELAY__TOKEN_BYTES + 1) /* the digits and a colon */

/* ---- several nodes ---- */

static const belay__server_info_t *server_of(const belay_client_t *client) {
  return client->node_ops->server(client, BELAY__CLASS_LEASE, 0);
}

static bool same_text(const char *a, size_t a_len, const char *b, size_t b_len) {
  return a_len == b_len && memcmp(a, b, a_len) == 0;
}

/* Compares a client with one before it. Returns 0 or an error with a detail. */
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

/* Checks the clients and options of a quorum. An automatic quarantine becomes on. */
static int check_quorum(belay_client_t *const *clients, size_t n, belay_lock_options_t *options) {
  belay_t *belay = clients[0]->belay;
  if (options->quarantine == BELAY_QUARANTINE_AUTO)
    options->quarantine = BELAY_QUARANTINE_ON;
  if (n > BELAY_NODES_MAX || (n == 2 && !options->allow_small))
    return belay__invalid(belay, "n: not 1 or 3 to %d", BELAY_NODES_MAX);
  for (size_t i = 0; i < n; i++) {
    if (clients[i] == NULL)
      return belay__invalid(belay, "clients[%zu]: NULL", i);
    int error = belay__client_check(clients[i]);
    if (error == 0 && clients[i]->node_ops->by_slots)
      error = belay__invalid(belay, "clients[%zu]: of a cluster, which is no node of a quorum", i);
    for (size_t j = 0; j < i && error == 0; j++)
      error = compare(clients[i], clients[j], i, j);
    if (error != 0)
      return error;
  }
  return 0;
}

/* ---- kinds ---- */

int belay__lock_check(belay_client_t *const *clients, size_t n, const belay_lock_options_t *options,
                      belay_lock_options_t *resolved, belay_lock_t **out) {
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  if (clients == NULL || n == 0 || clients[0] == NULL)
    return BELAY_EINVAL;
  if (options != NULL)
    *resolved = *options;
  else
    belay_lock_options_init(resolved);
  int error = belay__client_check(clients[0]);
  return error != 0 || n == 1 ? error : check_quorum(clients, n, resolved);
}

int belay__fair_check(belay_t *belay, size_t n, const belay_lock_options_t *o) {
  if (!o->fair)
    return 0;
  if (n > 1) {
    belay__detail(belay, "fair: queues on several servers have no common order");
    return BELAY_ESINGLE;
  }
  if (belay__is_given(o->owner) || belay__is_given(o->key))
    return belay__invalid(belay, "fair: not with %s",
                          belay__is_given(o->owner) ? "an owner" : "an exact key");
  return 0;
}

static int check_owner(belay_t *belay, size_t n, const belay_lock_options_t *o) {
  if (n > 1) {
    belay__detail(belay, "owner: not on several servers, whose counts of holds may differ");
    return BELAY_ESINGLE;
  }
  int error = belay__lock_refuse(belay, o, BELAY__WITHOUT_KEY, "a lock with an owner");
  return error != 0 ? error : belay__check_bytes(belay, "owner", o->owner, 1, OWNER_MAX);
}

/* Draws the client's instance, once: random bytes that distinguish its owners from those of other
 * clients. */
static int draw_instance(belay_client_t *client) {
  if (client->has_instance)
    return 0;
  belay_t *belay = client->belay;
  int error = belay->host->random(belay, &client->instance, sizeof client->instance);
  client->has_instance = error == 0;
  return error;
}

/* Makes a lock of the kind that the options name. */
static int new_lock(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                    const belay_lock_options_t *o, belay_lock_t **out) {
  char owner[INSTANCE_LEN + OWNER_MAX];
  belay__lock_spec_t spec = {.kind = o->fair ? &belay__fair_kind : &belay__lock_kind,
                             .key = o->key.data,
                             .key_len = o->key.len};
  int error = belay__fair_check(clients[0]->belay, n, o);
  if (error == 0 && belay__is_given(o->owner)) {
    error = check_owner(clients[0]->belay, n, o);
    if (error == 0)
      error = draw_instance(clients[0]);
    if (error != 0)
      return error;
    spec.kind = &belay__reentrant_kind;
    spec.extra = owner;
    spec.extra_len = belay__token_text(owner, &clients[0]->instance, o->owner.data, o->owner.len);
  }
  return error != 0 ? error : belay__lock_make(clients, n, name, o, &spec, out);
}

int belay_lock_new(belay_client_t *client, belay_bytes_t name, const belay_lock_options_t *options,
                   belay_lock_t **out) {
  belay_lock_options_t o;
  int error = belay__lock_check(&client, 1, options, &o, out);
  return error != 0 ? error : new_lock(&client, 1, name, &o, out);
}

int belay_redlock_new(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                      const belay_lock_options_t *options, belay_lock_t **out) {
  belay_lock_options_t o;
  int error = belay__lock_check(clients, n, options, &o, out);
  if (error == 0 && n == 1)
    error = check_quorum(clients, n, &o);
  return error != 0 ? error : new_lock(clients, n, name, &o, out);
}
