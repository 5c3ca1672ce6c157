/* Configurations of leases. A program has many leases with few different configurations: leases
 * of one client with equal ones share a copy. The copies are in a list, the last used first.
 * Only the first few are compared, so a program with many configurations has some of them twice. */
#include "lease/machine/config.h"

#include <assert.h>
#include <string.h>

#include "lease/machine/client_leases.h"

#define LOOKED_THROUGH 32

typedef struct shared {
  belay__list_t node; /* in the client's list */
  size_t uses;
  belay__lease_config_t config;
} shared_t;

/* Equal configurations are equal bytes: the struct has no padding. */
_Static_assert(sizeof(belay__lease_config_t) ==
                   2 * sizeof(void *) + 2 * sizeof(int64_t) + 14 * sizeof(uint32_t) + 8,
               "a configuration with gaps");

static belay__list_t *configs_of(const belay_client_t *client) {
  return &belay__client_leases(client)->configs;
}

static shared_t *find(belay_client_t *client, const belay__lease_config_t *config) {
  belay__list_t *node = configs_of(client)->next;
  for (unsigned i = 0; i < LOOKED_THROUGH && node != configs_of(client); i++, node = node->next) {
    shared_t *shared = BELAY__CONTAINER(node, shared_t, node);
    if (memcmp(&shared->config, config, sizeof *config) == 0)
      return shared;
  }
  return NULL;
}

const belay__lease_config_t *belay__lease_config_share(belay_client_t *const *clients, size_t n,
                                                       const belay__lease_config_t *config) {
  belay_client_t *client = clients[0];
  if (!belay__client_leases_make(clients, n))
    return NULL;
  shared_t *shared = find(client, config);
  if (shared == NULL) {
    shared = belay__alloc(client->belay, sizeof *shared);
    if (shared == NULL)
      return NULL;
    *shared = (shared_t){.config = *config};
    belay__list_init(&shared->node);
  }
  shared->uses++;
  belay__list_remove(&shared->node);
  belay__list_push_front(configs_of(client), &shared->node);
  return &shared->config;
}

void belay__lease_config_release(belay_client_t *client, const belay__lease_config_t *config) {
  shared_t *shared = (shared_t *)(uintptr_t)((const char *)config - offsetof(shared_t, config));
  assert(shared->uses > 0);
  if (--shared->uses > 0)
    return;
  belay__list_remove(&shared->node);
  belay__free(client->belay, shared, sizeof *shared);
}
