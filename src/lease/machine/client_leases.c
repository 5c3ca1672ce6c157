#include "lease/machine/client_leases.h"

#include <assert.h>
#include <string.h>

#include "core/client/lifecycle.h"

/* Maximum number of configurations that are compared, the last shared first. If a client has more,
 * some of them can have two copies. */
#define CONFIGS_COMPARED 32

typedef struct shared {
  belay__list_t node; /* in the first client's list */
  size_t uses, n;
  belay__lease_config_t config;
  belay_client_t *clients[]; /* n of them */
} shared_t;

/* Equal configurations are equal bytes: the struct has no padding before `clients`. */
#define COMPARED offsetof(belay__lease_config_t, clients)
_Static_assert(COMPARED == 2 * sizeof(void *) + 2 * sizeof(int64_t) + 14 * sizeof(uint32_t) + 8,
               "a configuration with gaps");

static void free_leases(belay_client_t *client, belay__extension_t *extension) {
  belay__client_leases_t *leases = BELAY__CONTAINER(extension, belay__client_leases_t, extension);
  assert(belay__list_empty(&leases->configs) && leases->kept_undos == 0);
  belay__table_free(client->belay, &leases->queues);
  for (size_t i = 0; i < BELAY_NODES_MAX; i++)
    belay__pool_free(client->belay, &leases->active[i]);
  belay__free(client->belay, leases, sizeof *leases);
}

belay__client_leases_t *belay__client_leases(const belay_client_t *client) {
  return BELAY__CONTAINER(client->extension, belay__client_leases_t, extension);
}

/* Makes the state of a client that has none. False if memory is out. */
static bool make_leases(belay_client_t *client) {
  if (client->extension != NULL)
    return true;
  belay__client_leases_t *leases = belay__alloc(client->belay, sizeof *leases);
  if (leases == NULL)
    return false;
  *leases = (belay__client_leases_t){.extension = {free_leases}};
  belay__list_init(&leases->configs);
  belay__list_init(&leases->members);
  client->extension = &leases->extension;
  return true;
}

static size_t size_of(size_t n) {
  return sizeof(shared_t) + n * sizeof(belay_client_t *);
}

static shared_t *find(belay__list_t *configs, belay_client_t *const *clients, size_t n,
                      const belay__lease_config_t *config) {
  belay__list_t *node = configs->next;
  for (unsigned i = 0; i < CONFIGS_COMPARED && node != configs; i++, node = node->next) {
    shared_t *shared = BELAY__CONTAINER(node, shared_t, node);
    if (memcmp(&shared->config, config, COMPARED) == 0 && shared->n == n &&
        memcmp(shared->clients, clients, n * sizeof(belay_client_t *)) == 0)
      return shared;
  }
  return NULL;
}

const belay__lease_config_t *belay__lease_config_share(belay_client_t *const *clients, size_t n,
                                                       const belay__lease_config_t *config) {
  for (size_t i = 0; i < n; i++)
    if (!make_leases(clients[i]))
      return NULL;
  belay__list_t *configs = &belay__client_leases(clients[0])->configs;
  shared_t *shared = find(configs, clients, n, config);
  if (shared == NULL) {
    shared = belay__alloc(clients[0]->belay, size_of(n));
    if (shared == NULL)
      return NULL;
    *shared = (shared_t){.config = *config, .n = n};
    memcpy(shared->clients, clients, n * sizeof(belay_client_t *));
    shared->config.clients = shared->clients;
    belay__list_init(&shared->node);
  }
  shared->uses++;
  belay__list_remove(&shared->node);
  belay__list_push_front(configs, &shared->node);
  return &shared->config;
}

void belay__lease_config_release(const belay__lease_config_t *config) {
  shared_t *shared = (shared_t *)(uintptr_t)((const char *)config - offsetof(shared_t, config));
  assert(shared->uses > 0);
  if (--shared->uses > 0)
    return;
  belay__list_remove(&shared->node);
  belay__free(shared->clients[0]->belay, shared, size_of(shared->n));
}

void belay__client_leases_add(belay_client_t *client, belay__list_t *member) {
  belay__client_leases_t *leases = belay__client_leases(client);
  if (belay__list_empty(&leases->members))
    belay__client_add(client, &leases->object);
  else
    client->stats.objects++;
  belay__list_push(&leases->members, member);
}

void belay__client_leases_remove(belay_client_t *client, belay__list_t *member) {
  belay__client_leases_t *leases = belay__client_leases(client);
  belay__list_remove(member);
  if (belay__list_empty(&leases->members))
    belay__client_remove(client, &leases->object);
  else
    client->stats.objects--;
}
