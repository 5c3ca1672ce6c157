/* Loads: who is READY is handed to the loader from a task, all that are READY by then at once.
 *
 * A batch is the flights of one belay_cache_get_many(). It is open as long as one of them is on its way to its load, or
 * the batch is still being made; those that are READY wait for the others. Whoever is served, or waits for another
 * process, does not belong to it any more. */
#include <string.h>

#include "cache/single_flight.h"
#include "cache/times.h"

static belay_t *belay_of(const belay__flight_t *flight) {
  return flight->cache->handle.client->belay;
}

/* ---- batches ------------------------------------------------------------------------------------------- */

static void queue(belay__flight_t *flight, bool together) {
  belay_cache_t *cache = flight->cache;
  belay__list_push(together ? &cache->together : &cache->ready, &flight->ready);
  belay__defer(belay_of(flight), &cache->task);
}

/* One less is awaited. */
static void close_one(belay_cache_t *cache, belay__batch_t *batch) {
  if (--batch->open > 0)
    return;
  for (belay__list_t *node; (node = belay__list_pop(&batch->ready)) != NULL;) {
    belay__flight_t *flight = BELAY__CONTAINER(node, belay__flight_t, ready);
    flight->batch = NULL;
    queue(flight, true);
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

void belay__load_join(belay__flight_t *flight, belay__batch_t *batch) {
  flight->batch = batch;
  if (batch != NULL)
    batch->open++;
}

void belay__load_ready(belay__flight_t *flight) {
  belay__batch_t *batch = flight->batch;
  if (batch == NULL) {
    queue(flight, flight->cache->options.load == NULL);
    return;
  }
  belay__list_push(&batch->ready, &flight->ready);
  close_one(flight->cache, batch);
}

void belay__load_leave(belay__flight_t *flight) {
  belay__batch_t *batch = flight->batch;
  flight->batch = NULL;
  if (!belay__list_empty(&flight->ready))
    belay__list_remove(&flight->ready); /* its batch does not wait for it any more */
  else if (batch != NULL)
    close_one(flight->cache, batch);
}

/* ---- handing over -------------------------------------------------------------------------------------- */

static belay_cache_load_t *new_load(belay__flight_t *flight) {
  belay_t *belay = belay_of(flight);
  size_t size = sizeof(belay_cache_load_t) + flight->key_len;
  belay_cache_load_t *load = belay->allocator.alloc(belay->allocator.ctx, size);
  if (load == NULL)
    return NULL;
  *load = (belay_cache_load_t){
      .flight = flight, .allocator = belay->allocator, .key_len = flight->key_len};
  memcpy(load->key, flight->key, flight->key_len);
  return load;
}

/* Its belay_t may be gone. */
static void free_load(belay_cache_load_t *load) {
  belay_allocator_t allocator = load->allocator;
  allocator.free(allocator.ctx, load);
}

/* NULL: memory is out, and the flight has heard of it. */
static belay_cache_load_t *hand_over(belay__flight_t *flight) {
  belay_cache_load_t *load = new_load(flight);
  if (load == NULL) {
    belay__flight_step(flight, BELAY__FLIGHT_ERROR, BELAY_ENOMEM);
    return NULL;
  }
  flight->load = load;
  belay__flight_step(flight, BELAY__FLIGHT_YES, 0);
  return load;
}

/* Takes flights off a queue; the loader may add to it. Returns how many loads there are. */
static size_t collect(belay__list_t *queue, belay_cache_load_t **loads, size_t max) {
  size_t n = 0;
  for (belay__list_t *node; n < max && (node = belay__list_pop(queue)) != NULL;)
    if ((loads[n] = hand_over(BELAY__CONTAINER(node, belay__flight_t, ready))) != NULL)
      n++;
  return n;
}

#define AT_ONCE BELAY_CACHE_MANY_MAX /* loads, on the stack */

/* The cache may be closed in the loader; it is there until tasks have run. */
void belay__load_task(belay__task_t *task) {
  belay_cache_t *cache = BELAY__CONTAINER(task, belay_cache_t, task);
  const belay_cache_options_t *o = &cache->options;
  belay_cache_load_t *loads[AT_ONCE];
  belay_bytes_t keys[AT_ONCE];
  belay__handle_retain(&cache->handle);
  size_t n = collect(&cache->ready, loads, AT_ONCE);
  for (size_t i = 0; i < n; i++)
    if (loads[i]->flight != NULL)
      o->load(loads[i], loads[i]->key, loads[i]->key_len, o->arg);
    else
      free_load(loads[i]); /* it has closed the cache in the one before */
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

void belay__load_detach(belay__flight_t *flight) {
  if (flight->load == NULL)
    return;
  flight->load->flight = NULL;
  flight->load = NULL;
}

static void bring(belay_cache_load_t *load, belay__record_t *record, int error) {
  belay__flight_t *flight = load->flight;
  free_load(load);
  if (flight == NULL)
    return;
  flight->load = NULL;
  belay__record_drop(belay_of(flight), flight->loaded);
  flight->loaded = record;
  belay__flight_step(flight, record != NULL ? BELAY__FLIGHT_LOADED : BELAY__FLIGHT_FAILED, error);
}

/* Of what the flight began to load. */
static belay__record_t *new_record(const belay__flight_t *flight, belay__record_kind_t kind,
                                   const void *value, size_t len) {
  belay_t *belay = belay_of(flight);
  uint64_t us = (belay__now(belay) - flight->began) / 1000;
  belay__record_t *record = belay__record_new(belay, kind, len, flight->tags_len);
  if (record == NULL)
    return NULL;
  record->load_us = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
  memcpy(record->id, flight->generation, BELAY__RECORD_ID);
  if (len > 0)
    memcpy(record->bytes, value, len);
  memcpy(belay__record_tag(record, 0), flight->tags, flight->tags_len * BELAY__RECORD_ID);
  (void)belay__cache_date(flight->cache, record, BELAY_DEFAULT);
  return record;
}

static int end(belay_cache_load_t *load, belay__record_kind_t kind, const void *value, size_t len) {
  belay__flight_t *flight = load->flight;
  if (flight == NULL) {
    bring(load, NULL, 0);
    return 0;
  }
  int error = len > flight->cache->options.max_value_bytes ? BELAY_EOVERFLOW : 0;
  belay__record_t *record = error == 0 ? new_record(flight, kind, value, len) : NULL;
  if (error == 0 && record == NULL)
    error = BELAY_ENOMEM;
  bring(load, record, error);
  return error;
}

int belay_cache_load_done(belay_cache_load_t *load, const void *value, size_t len) {
  return load == NULL || (value == NULL && len > 0) ? BELAY_EINVAL
                                                    : end(load, BELAY__RECORD_VALUE, value, len);
}

int belay_cache_load_absent(belay_cache_load_t *load) {
  return load == NULL ? BELAY_EINVAL : end(load, BELAY__RECORD_ABSENT, NULL, 0);
}

int belay_cache_load_failed(belay_cache_load_t *load, int error) {
  if (load == NULL || error == 0)
    return BELAY_EINVAL;
  bring(load, NULL, error);
  return 0;
}

bool belay_cache_load_is_wanted(const belay_cache_load_t *load) {
  return load != NULL && load->flight != NULL;
}
