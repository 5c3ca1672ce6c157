#include "lease/machine/client_leases.h"

#include <assert.h>

static void free_leases(belay_client_t *client, belay__extension_t *extension) {
  belay__client_leases_t *leases = BELAY__CONTAINER(extension, belay__client_leases_t, extension);
  assert(belay__list_empty(&leases->configs) && leases->kept_undos == 0);
  belay__table_free(client->belay, &leases->queues);
  belay__pool_free(client->belay, &leases->acquire_states);
  belay__free(client->belay, leases, sizeof *leases);
}

belay__client_leases_t *belay__client_leases(const belay_client_t *client) {
  return BELAY__CONTAINER(client->extension, belay__client_leases_t, extension);
}

bool belay__client_leases_make(belay_client_t *const *clients, size_t n) {
  for (size_t i = 0; i < n; i++) {
    belay_client_t *client = clients[i];
    if (client->extension != NULL)
      continue;
    belay__client_leases_t *leases = belay__alloc(client->belay, sizeof *leases);
    if (leases == NULL)
      return false;
    *leases = (belay__client_leases_t){.extension = {free_leases}};
    belay__list_init(&leases->configs);
    client->extension = &leases->extension;
  }
  return true;
}
