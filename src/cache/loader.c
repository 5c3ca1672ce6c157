/* A batch is open while one of its loads is on its way to READY. Loads that are READY wait for
 * the others; a load that is served, or waits for another process, leaves the batch. */
#include "cache/loader.h"

#include <string.h>

#include "cache/key.h"

static belay_t *belay_of(const belay__load_t *load) {
  return load->cache->handle.client->belay;
}

/* ---- batches ------------------------------------------------------------------------------------------- */

static void queue(belay__load_t *load, bool together) {
  belay_cache_t *cache = load->cache;
  belay__list_push(together ? &cache->together : &cache->ready, &load->ready);
  belay__defer(belay_of(load), &cache->task);
}

/* One less is awaited. */
static void close_one(belay_cache_t *cache, belay__batch_t *batch) {
  if (--batch->open > 0)
    return;
  for (belay__list_t *node; (node = belay__list_pop(&batch->ready)) != NULL;) {
    belay__load_t *load = BELAY__CONTAINER(node, belay__load_t, ready);
    load->batch = NULL;
    queue(load, true);
  }
  belay__free(cache->handle.client->belay, batch, sizeof *batch);
}

belay__batch_t *belay__batch_new(belay_cache_t *cache) {
  belay__batch_t *batch = belay__alloc(cache->handle.client->belay, sizeof *batch);
  if (batch == NULL)
    return NULL;
  batch->open = 1;
  belay__list_init(&batch->ready);
  return batch;
}

void belay__batch_made(belay_cache_t *cache, belay__batch_t *batch) {
  close_one(cache, batch);
}

void belay__loader_join(belay__load_t *load, belay__batch_t *batch) {
  load->batch = batch;
  if (batch != NULL)
    batch->open++;
}

void belay__loader_ready(belay__load_t *load) {
  belay__batch_t *batch = load->batch;
  if (batch == NULL) {
    queue(load, load->cache->options.load == NULL);
    return;
  }
  belay__list_push(&batch->ready, &load->ready);
  close_one(load->cache, batch);
}

void belay__loader_leave(belay__load_t *load) {
  belay__batch_t *batch = load->batch;
  load->batch = NULL;
  if (!belay__list_empty(&load->ready))
    belay__list_remove(&load->ready); /* its batch does not wait for it any more */
  else if (batch != NULL)
    close_one(load->cache, batch);
}

/* ---- handing over -------------------------------------------------------------------------------------- */

static belay_cache_load_t *new_handed(belay__load_t *load) {
  belay_t *belay = belay_of(load);
  size_t size = sizeof(belay_cache_load_t) + load->key_len;
  belay_cache_load_t *handed = belay->allocator.alloc(belay->allocator.ctx, size);
  if (handed == NULL)
    return NULL;
  *handed =
      (belay_cache_load_t){.load = load, .allocator = belay->allocator, .key_len = load->key_len};
  memcpy(handed->key, load->key, load->key_len);
  return handed;
}

/* Its belay_t may be gone. */
static void free_handed(belay_cache_load_t *handed) {
  belay_allocator_t allocator = handed->allocator;
  allocator.free(allocator.ctx, handed);
}

/* NULL: memory is out, and the load has failed. */
static belay_cache_load_t *hand_over(belay__load_t *load) {
  belay_cache_load_t *handed = new_handed(load);
  if (handed == NULL) {
    belay__load_step(load, BELAY__LOAD_ERROR, BELAY_ENOMEM);
    return NULL;
  }
  load->handed = handed;
  belay__load_step(load, BELAY__LOAD_YES, 0);
  return handed;
}

/* Takes loads off a queue, to which the loader may add. Returns how many there are. */
static size_t collect(belay__list_t *queue, belay_cache_load_t **loads, size_t max) {
  size_t n = 0;
  for (belay__list_t *node; n < max && (node = belay__list_pop(queue)) != NULL;)
    if ((loads[n] = hand_over(BELAY__CONTAINER(node, belay__load_t, ready))) != NULL)
      n++;
  return n;
}

#define AT_ONCE BELAY_CACHE_MANY_MAX /* loads, on the stack */

/* The cache may be closed in the loader; it is there until tasks have run. */
void belay__loader_task(belay__task_t *task) {
  belay_cache_t *cache = BELAY__CONTAINER(task, belay_cache_t, task);
  const belay_cache_options_t *o = &cache->options;
  belay_cache_load_t *loads[AT_ONCE];
  belay_bytes_t keys[AT_ONCE];
  belay__handle_retain(&cache->handle);
  size_t n = collect(&cache->ready, loads, AT_ONCE);
  for (size_t i = 0; i < n; i++)
    if (loads[i]->load != NULL)
      o->load(loads[i], loads[i]->key, loads[i]->key_len, o->arg);
    else
      free_handed(loads[i]); /* the loader before it closed the cache */
  n = collect(&cache->together, loads, AT_ONCE);
  for (size_t i = 0; i < n; i++)
    keys[i] = (belay_bytes_t){loads[i]->key, loads[i]->key_len};
  if (n > 0)
    o->load_many(loads, keys, n, o->arg);
  if (!belay__list_empty(&cache->ready) || !belay__list_empty(&cache->together))
    belay__defer(cache->handle.client->belay, task);
  belay__handle_release(&cache->handle);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

void belay__loader_detach(belay__load_t *load) {
  if (load->handed == NULL)
    return;
  load->handed->load = NULL;
  load->handed = NULL;
}

static void bring(belay_cache_load_t *handed, belay__record_t *record, int error) {
  belay__load_t *load = handed->load;
  free_handed(handed);
  if (load == NULL)
    return;
  load->handed = NULL;
  belay__record_drop(belay_of(load), load->loaded);
  load->loaded = record;
  belay__load_step(load, record != NULL ? BELAY__LOAD_LOADED : BELAY__LOAD_FAILED, error);
}

/* With the generations from before the load. */
static belay__record_t *new_record(const belay__load_t *load, belay__record_kind_t kind,
                                   const void *value, size_t len) {
  belay_t *belay = belay_of(load);
  uint64_t us = (belay__now(belay) - load->began) / 1000;
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

static int end(belay_cache_load_t *handed, belay__record_kind_t kind, const void *value,
               size_t len) {
  belay__load_t *load = handed->load;
  if (load == NULL) {
    bring(handed, NULL, 0);
    return 0;
  }
  int error = len > load->cache->options.max_value_bytes ? BELAY_EOVERFLOW : 0;
  belay__record_t *record = error == 0 ? new_record(load, kind, value, len) : NULL;
  if (error == 0 && record == NULL)
    error = BELAY_ENOMEM;
  bring(handed, record, error);
  return error;
}

int belay_cache_load_done(belay_cache_load_t *handed, belay_bytes_t value) {
  return handed == NULL || (value.data == NULL && value.len > 0)
             ? BELAY_EINVAL
             : end(handed, BELAY__RECORD_VALUE, value.data, value.len);
}

int belay_cache_load_absent(belay_cache_load_t *handed) {
  return handed == NULL ? BELAY_EINVAL : end(handed, BELAY__RECORD_ABSENT, NULL, 0);
}

int belay_cache_load_failed(belay_cache_load_t *handed, int error) {
  if (handed == NULL || error == 0)
    return BELAY_EINVAL;
  bring(handed, NULL, error);
  return 0;
}

bool belay_cache_load_is_wanted(const belay_cache_load_t *handed) {
  return handed != NULL && handed->load != NULL;
}
