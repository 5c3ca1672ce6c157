/* The servers of a cluster, and the owners of slots.
 *
 *    named by a map or a redirection --> in use --a map does not name it--> retired
 *    retired --its last reply--> freed
 *
 * No slot, replica or place leads to a retired server. */
#include "redis/deployment/cluster_servers.h"

#include <string.h>

#include "core/loop/backoff.h"

#define TEND_MS UINT64_C(500)
#define END_MS UINT64_C(50)
/* Most servers that no map has named. The limit stops endless redirections to new servers. */
#define REDIRECTED_MAX 16

void belay__cluster_tidy_soon(belay__cluster_t *cluster) {
  belay_t *belay = belay__cluster_host(cluster);
  if (!cluster->node.closing)
    belay__timer_set(belay, BELAY__RANK_OTHER, &cluster->tidy, belay__now(belay));
}

void belay__cluster_tidy_later(belay__cluster_t *cluster, bool ends) {
  belay_t *belay = belay__cluster_host(cluster);
  uint64_t delay = (ends ? END_MS : TEND_MS) * BELAY__MS;
  if (!cluster->node.closing && !belay__timer_is_set(&cluster->tidy))
    belay__timer_set(belay, BELAY__RANK_OTHER, &cluster->tidy,
                     belay__now(belay) + belay__period(belay, delay));
}

/* ---- add ---- */

static bool is_at(const belay__entry_t *entry, const void *key, size_t len) {
  const belay__instance_t *instance = BELAY__CONTAINER(entry, belay__instance_t, entry);
  (void)len;
  return belay__place_is(&instance->server->target.place, key);
}

static uint64_t hash_of(belay__cluster_t *cluster, const belay__place_t *place) {
  return belay__table_hash(belay__cluster_host(cluster), &cluster->places, place->host,
                           strlen(place->host)) +
         place->port;
}

void belay__cluster_free_instance(belay__cluster_t *cluster, belay__instance_t *instance) {
  cluster->instances[instance->number] = NULL;
  if (instance->number < cluster->vacant)
    cluster->vacant = instance->number;
  belay__server_free(instance->server);
  belay__free(belay__cluster_host(cluster), instance, sizeof *instance);
}

static belay__instance_t *make_instance(belay__cluster_t *cluster, const belay__place_t *place,
                                        uint16_t number) {
  belay_t *belay = belay__cluster_host(cluster);
  belay__instance_t *instance = belay__alloc(belay, sizeof *instance);
  belay__server_t *server = instance == NULL ? NULL : belay__server_new(&cluster->node.settings);
  if (server == NULL) {
    belay__free(belay, instance, sizeof *instance);
    return NULL;
  }
  server->target.place = *place;
  server->owner = instance;
  server->queue_first_dial = cluster->has_map;
  *instance = (belay__instance_t){.server = server,
                                  .number = number,
                                  .primary = BELAY__NO_INSTANCE,
                                  .replica = BELAY__NO_INSTANCE,
                                  .next = BELAY__NO_INSTANCE};
  return instance;
}

static uint16_t find(belay__cluster_t *cluster, const belay__place_t *place) {
  belay__entry_t *entry =
      belay__table_find(&cluster->places, hash_of(cluster, place), is_at, place, sizeof *place);
  return entry == NULL ? BELAY__NO_INSTANCE
                       : BELAY__CONTAINER(entry, belay__instance_t, entry)->number;
}

uint16_t belay__cluster_add_instance(belay__cluster_t *cluster, const belay__place_t *place) {
  belay_t *belay = belay__cluster_host(cluster);
  uint64_t hash = hash_of(cluster, place);
  uint16_t number = find(cluster, place);
  if (number != BELAY__NO_INSTANCE)
    return number;
  /* A search from 0 would take too long for a map that names 100,000 servers. */
  number = cluster->vacant;
  while (number < cluster->instances_len && cluster->instances[number] != NULL)
    number++;
  cluster->vacant = number;
  if (number == BELAY__CLUSTER_INSTANCES) {
    if (!cluster->is_full)
      belay__log(belay, BELAY_LOG_ERROR, "a cluster of more than %d servers", number);
    cluster->is_full = true;
    return BELAY__NO_INSTANCE;
  }
  belay__instance_t *instance = make_instance(cluster, place, number);
  if (instance == NULL)
    return BELAY__NO_INSTANCE;
  cluster->instances[number] = instance;
  if (belay__table_add(belay, &cluster->places, &instance->entry, hash) != 0) {
    belay__cluster_free_instance(cluster, instance);
    return BELAY__NO_INSTANCE;
  }
  if (number == cluster->instances_len)
    cluster->instances_len++;
  return number;
}

uint16_t belay__cluster_add_redirected(belay__cluster_t *cluster, const belay__place_t *place) {
  uint16_t number = find(cluster, place);
  size_t n = 0;
  if (number != BELAY__NO_INSTANCE)
    return number;
  for (size_t i = 0; i < cluster->instances_len; i++)
    n += cluster->instances[i] != NULL && cluster->instances[i]->redirected;
  number = n < REDIRECTED_MAX ? belay__cluster_add_instance(cluster, place) : BELAY__NO_INSTANCE;
  if (number != BELAY__NO_INSTANCE)
    cluster->instances[number]->redirected = true;
  return number;
}

void belay__cluster_mark_moved(belay__cluster_t *cluster, uint16_t slot) {
  cluster->moved[slot / 64] |= UINT64_C(1) << slot % 64;
}

void belay__cluster_set_owner(belay__cluster_t *cluster, uint16_t slot, uint16_t number) {
  uint16_t *owner = &cluster->owner[slot];
  if (*owner == number)
    return;
  if (*owner != BELAY__NO_INSTANCE) {
    belay__cluster_mark_moved(cluster, slot);
    cluster->instances[*owner]->changed = true;
  }
  if (number != BELAY__NO_INSTANCE) {
    cluster->instances[number]->changed = true;
    cluster->instances[number]->server->queue_first_dial |= cluster->has_map;
  }
  *owner = number;
  if (cluster->version++ == cluster->tidied)
    belay__cluster_tidy_soon(cluster);
}

/* ---- retire ---- */

void belay__cluster_retire_unknown(belay__cluster_t *cluster) {
  bool any = false;
  for (size_t i = 0; i < cluster->instances_len; i++) {
    belay__instance_t *instance = cluster->instances[i];
    if (instance != NULL && instance->known)
      instance->redirected = false;
    if (instance == NULL || instance->server->retired || instance->known)
      continue;
    any = instance->server->retired = instance->changed = true;
    belay__table_remove(&cluster->places, &instance->entry);
  }
  for (size_t slot = 0; slot < BELAY__SLOTS && any; slot++) {
    uint16_t number = cluster->owner[slot];
    if (number != BELAY__NO_INSTANCE && cluster->instances[number]->server->retired)
      belay__cluster_set_owner(cluster, (uint16_t)slot, BELAY__NO_INSTANCE);
  }
}

/* A silent server is not waited for: it has left the cluster, and others may answer its calls. */
bool belay__cluster_close_retired(belay__cluster_t *cluster) {
  bool all = true;
  for (size_t i = 0; i < cluster->instances_len; i++) {
    belay__instance_t *instance = cluster->instances[i];
    if (instance == NULL || !instance->server->retired)
      continue;
    if (belay__server_is_silent(instance->server))
      belay__server_disconnect(instance->server, BELAY_EUNREACHABLE,
                               "the server is silent and not part of the cluster any more");
    if (belay__server_drain(instance->server))
      belay__cluster_free_instance(cluster, instance);
    else
      all = false;
  }
  return all;
}

/* ---- the port ---- */

#if BELAY_HAS_TOPOLOGY
bool belay__cluster_place(const belay_client_t *client, size_t i, char out[BELAY__PLACE_MAX]) {
  const belay__cluster_t *cluster = belay__cluster_of_client(client);
  for (size_t k = 0; k < cluster->instances_len; k++) {
    const belay__instance_t *instance = cluster->instances[k];
    if (instance == NULL || instance->server->retired || !instance->known || i-- > 0)
      continue;
    belay__place_write(&instance->server->target.place, out, BELAY__PLACE_MAX);
    return true;
  }
  return false;
}
#endif

/* Without a map there is one server. The version changes with the first map. */
bool belay__cluster_shard(const belay_client_t *client, size_t i, uint32_t *route,
                          uint32_t *version) {
  const belay__cluster_t *cluster = belay__cluster_of_client(client);
  uint64_t seen[BELAY__CLUSTER_INSTANCES / 64] = {0};
  size_t n = 0;
  *version = cluster->version;
  *route = 0;
  for (uint32_t slot = 0; slot < BELAY__SLOTS; slot++) {
    uint16_t number = cluster->owner[slot];
    if (number == BELAY__NO_INSTANCE || (seen[number / 64] >> number % 64 & 1) != 0)
      continue;
    seen[number / 64] |= UINT64_C(1) << number % 64;
    *route = slot;
    if (n++ == i)
      return true;
  }
  return n == 0 && i == 0;
}
