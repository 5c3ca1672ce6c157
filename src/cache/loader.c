/* A group is open while one of its loads may still become READY. Loads that are READY wait for the
 * others. A load that is OVER or WAITING leaves the group. */
#include "cache/loader.h"

#include <string.h>

#include "cache/key.h"

/* ---- groups ---- */

static void queue_load(belay__load_t *load, bool ready_many) {
  belay_cache_t *cache = load->cache;
  belay__list_push(ready_many ? &cache->ready_many : &cache->ready, &load->ready);
  belay__defer(belay__load_belay(load), &cache->task);
}

/* Decrements group->open. At 0, queues the READY loads and frees the group. */
static void leave_group(belay_cache_t *cache, belay__load_group_t *group) {
  if (--group->open > 0)
    return;
  for (belay__list_t *node; (node = belay__list_pop(&group->ready)) != NULL;) {
    belay__load_t *load = BELAY__CONTAINER(node, belay__load_t, ready);
    load->group = NULL;
    queue_load(load, true);
  }
  belay__free(cache->handle.client->belay, group, sizeof *group);
}

belay__load_group_t *belay__load_group_new(belay_cache_t *cache) {
  belay__load_group_t *group = belay__alloc(cache->handle.client->belay, sizeof *group);
  if (group == NULL)
    return NULL;
  group->open = 1;
  belay__list_init(&group->ready);
  return group;
}

void belay__load_group_seal(belay_cache_t *cache, belay__load_group_t *group) {
  leave_group(cache, group);
}

void belay__loader_join(belay__load_t *load, belay__load_group_t *group) {
  load->group = group;
  if (group != NULL)
    group->open++;
}

void belay__loader_ready(belay__load_t *load) {
  belay__load_group_t *group = load->group;
  if (group == NULL) {
    queue_load(load, load->cache->options.load == NULL);
    return;
  }
  belay__list_push(&group->ready, &load->ready);
  leave_group(load->cache, group);
}

void belay__loader_leave(belay__load_t *load) {
  belay__load_group_t *group = load->group;
  load->group = NULL;
  if (!belay__list_empty(&load->ready))
    belay__list_remove(&load->ready); /* it was READY: its group did not wait for it */
  else if (group != NULL)
    leave_group(load->cache, group);
}

/* ---- passing loads to the loader ---- */

static belay_cache_load_t *new_load_ref(belay__load_t *load) {
  belay_t *belay = belay__load_belay(load);
  size_t size = sizeof(belay_cache_load_t) + load->keyed.key_len;
  belay_cache_load_t *load_ref = belay->allocator.alloc(belay->allocator.ctx, size);
  if (load_ref == NULL)
    return NULL;
  *load_ref = (belay_cache_load_t){
      .load = load, .allocator = belay->allocator, .key_len = load->keyed.key_len};
  memcpy(load_ref->key, load->keyed.key, load->keyed.key_len);
  return load_ref;
}

/* Frees the loader's reference, even if the belay_t is gone. */
static void free_load_ref(belay_cache_load_t *load_ref) {
  belay_allocator_t allocator = load_ref->allocator;
  allocator.free(allocator.ctx, load_ref);
}

/* Creates the loader's reference and moves the load to LOADING. NULL if there is no memory: then
 * the load has failed. */
static belay_cache_load_t *hand_to_loader(belay__load_t *load) {
  belay_cache_load_t *load_ref = new_load_ref(load);
  if (load_ref == NULL) {
    belay__load_step(load, BELAY__LOAD_ERROR, BELAY_ENOMEM);
    return NULL;
  }
  load->load_ref = load_ref;
  belay__load_step(load, BELAY__LOAD_YES, 0);
  return load_ref;
}

/* Takes loads from a queue until `loads` has max references. Returns the number of references; a
 * load without memory for its reference has failed. */
static size_t collect_loads(belay__list_t *queue, belay_cache_load_t **loads, size_t max) {
  size_t n = 0;
  for (belay__list_t *node; n < max && (node = belay__list_pop(queue)) != NULL;)
    if ((loads[n] = hand_to_loader(BELAY__CONTAINER(node, belay__load_t, ready))) != NULL)
      n++;
  return n;
}

#define LOADS_PER_TASK BELAY_CACHE_MANY_MAX /* loads of one task run; they are on the stack */

/* Retains the handle until this function returns, because the loader may close the cache. */
void belay__loader_task(belay__task_t *task) {
  belay_cache_t *cache = BELAY__CONTAINER(task, belay_cache_t, task);
  const belay_cache_options_t *o = &cache->options;
  belay_cache_load_t *loads[LOADS_PER_TASK];
  belay_bytes_t keys[LOADS_PER_TASK];
  belay__handle_retain(&cache->handle);
  size_t n = collect_loads(&cache->ready, loads, LOADS_PER_TASK);
  for (size_t i = 0; i < n; i++)
    if (loads[i]->load != NULL)
      o->load(loads[i], loads[i]->key, loads[i]->key_len, o->arg);
    else
      /* an earlier call of the loader has closed the cache */
      free_load_ref(loads[i]);
  n = collect_loads(&cache->ready_many, loads, LOADS_PER_TASK);
  for (size_t i = 0; i < n; i++)
    keys[i] = (belay_bytes_t){loads[i]->key, loads[i]->key_len};
  if (n > 0)
    o->load_many(loads, keys, n, o->arg);
  if (!belay__list_empty(&cache->ready) || !belay__list_empty(&cache->ready_many))
    belay__defer(cache->handle.client->belay, task);
  belay__handle_release(&cache->handle);
}

/* ---- results of the loader ---- */

void belay__loader_detach(belay__load_t *load) {
  if (load->load_ref == NULL)
    return;
  load->load_ref->load = NULL;
  load->load_ref = NULL;
}

static void deliver(belay_cache_load_t *load_ref, belay__record_t *record, int error) {
  belay__load_t *load = load_ref->load;
  free_load_ref(load_ref);
  if (load == NULL)
    return;
  load->load_ref = NULL;
  belay__record_release(belay__load_belay(load), load->loaded);
  load->loaded = record;
  belay__load_step(load, record != NULL ? BELAY__LOAD_LOADED : BELAY__LOAD_FAILED, error);
}

/* Creates a record with the generations that were captured before the load. */
static belay__record_t *new_record(const belay__load_t *load, belay__record_kind_t kind,
                                   const void *value, size_t len) {
  belay_t *belay = belay__load_belay(load);
  uint64_t us = (belay__now(belay) - load->began_at) / 1000;
  belay__record_t *record = belay__record_new(belay, kind, len, load->tags_len);
  if (record == NULL)
    return NULL;
  record->load_us = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
  memcpy(record->id, load->generation, BELAY__RECORD_ID);
  if (len > 0)
    memcpy(record->bytes, value, len);
  memcpy(belay__record_tag(record, 0), load->tags, load->tags_len * BELAY__RECORD_ID);
  (void)belay__cache_date(load->cache, record, BELAY_DEFAULT);
  return record;
}

static int end_load(belay_cache_load_t *load_ref, belay__record_kind_t kind, const void *value,
                    size_t len) {
  belay__load_t *load = load_ref->load;
  if (load == NULL) {
    deliver(load_ref, NULL, 0);
    return 0;
  }
  int error = len > load->cache->options.max_value_bytes ? BELAY_EOVERFLOW : 0;
  belay__record_t *record = error == 0 ? new_record(load, kind, value, len) : NULL;
  if (error == 0 && record == NULL)
    error = BELAY_ENOMEM;
  deliver(load_ref, record, error);
  return error;
}

int belay_cache_load_done(belay_cache_load_t *load_ref, belay_bytes_t value) {
  return load_ref == NULL || (value.data == NULL && value.len > 0)
             ? BELAY_EINVAL
             : end_load(load_ref, BELAY__RECORD_VALUE, value.data, value.len);
}

int belay_cache_load_absent(belay_cache_load_t *load_ref) {
  return load_ref == NULL ? BELAY_EINVAL : end_load(load_ref, BELAY__RECORD_ABSENT, NULL, 0);
}

int belay_cache_load_failed(belay_cache_load_t *load_ref, int error) {
  if (load_ref == NULL || error == 0)
    return BELAY_EINVAL;
  deliver(load_ref, NULL, error);
  return 0;
}

bool belay_cache_load_is_wanted(const belay_cache_load_t *load_ref) {
  return load_ref != NULL && load_ref->load != NULL;
}
