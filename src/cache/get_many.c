/* A get of many keys: one request, one round trip. The request ends when none of its keys waits
 * (get.h). */
#include <string.h>

#include "cache/get.h"
#include "cache/loader.h"

typedef struct many many_t;

typedef struct entry {
  belay__item_t item;
  many_t *many;
  uint32_t first; /* index of the first call of the key */
  bool looked_up; /* a lookup was sent */
  int32_t failed; /* status of a failed call of the key; 0: none failed */
  const char *key;
} entry_t;

/* State of the request. The entries, the results and the bytes of the keys follow it in memory. */
struct many {
  belay__operation_t *operation;
  size_t n, waiting;
  uint32_t calls;
  /* a call has ended with a status of its own; if none has, all entries get the status of the
   * request */
  bool answered;
  uint64_t deadline;
  entry_t *entries;
  belay_cache_result_t *results;
};

static many_t *many_of(const belay__operation_t *operation) {
  return operation->room;
}

static void tell_many(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  belay_cache_t *cache = answer->context;
  belay_t *belay = answer->client->belay;
  many_t *many = answer->room;
  uint64_t now = belay__entry_time(belay);
  const belay__served_t unknown = {.status = answer->status};
  for (size_t i = 0; i < many->n; i++)
    belay__cache_result(cache, answer->status == 0 ? &many->entries[i].item.served : &unknown, now,
                        &many->results[i]);
  ((belay_cache_many_cb)cb)(request, answer->status, many->results, many->n);
  for (size_t i = 0; i < many->n; i++)
    belay__item_release(belay, &many->entries[i].item);
}

static void cancel_many(belay__operation_t *operation, bool sent) {
  many_t *many = many_of(operation);
  (void)sent;
  belay__get_unpark(operation);
  for (size_t i = 0; i < many->n; i++)
    belay__item_cancel_wait(&many->entries[i].item);
}

static void on_entry_over(belay__load_waiter_t *waiter, const belay__served_t *served) {
  entry_t *entry = BELAY__CONTAINER(BELAY__CONTAINER(waiter, belay__item_t, waiter), entry_t, item);
  many_t *many = entry->many;
  belay__item_end_wait(many->operation, &entry->item, served);
  if (belay__timer_is_set(&many->operation->timer) && --many->waiting == 0)
    belay__get_end(many->operation, 0);
}

static void on_many_late(belay__timer_t *timer) {
  belay__operation_t *operation = BELAY__CONTAINER(timer, belay__operation_t, timer);
  many_t *many = many_of(operation);
  for (size_t i = 0; i < many->n; i++)
    if (belay__item_is_waiting(&many->entries[i].item))
      belay__item_end_late(operation, &many->entries[i].item);
  belay__get_end(operation, 0);
}

/* Returns the entry that a call belongs to: the last entry whose first call is not later. An entry
 * without calls has the index of the next entry's first call. */
static entry_t *entry_of(const many_t *many, uint32_t call) {
  size_t low = 0, high = many->n;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (many->entries[middle].first <= call)
      low = middle;
    else
      high = middle;
  }
  return &many->entries[low];
}

static int read_many(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  belay_cache_t *cache = operation->context;
  many_t *many = many_of(operation);
  many->answered = true;
  if (operation->index >= many->calls)
    return belay__servertime_read(&cache->time, call, reply);
  entry_t *entry = entry_of(many, operation->index);
  return belay__lookup_read(cache, &entry->item.lookup, operation->index - entry->first, reply);
}

static void fail_all(many_t *many, int status) {
  for (size_t i = 0; i < many->n; i++)
    many->entries[i].failed = status;
}

static void on_failed(belay__operation_t *operation, int status) {
  const belay_cache_t *cache = operation->context;
  many_t *many = many_of(operation);
  many->answered = true;
  if (operation->index < many->calls)
    entry_of(many, operation->index)->failed = status;
  else if (cache->time.learnt == 0)
    fail_all(many, status);
}

static int settle_many(belay__operation_t *operation, int status) {
  belay_cache_t *cache = operation->context;
  many_t *many = many_of(operation);
  belay__load_group_t *group =
      cache->options.load_many == NULL ? NULL : belay__load_group_new(cache);
  if (cache->options.load_many != NULL && group == NULL)
    return BELAY_ENOMEM;
  if (!many->answered)
    fail_all(many, status);
  for (size_t i = 0; i < many->n; i++) {
    entry_t *entry = &many->entries[i];
    if (entry->looked_up)
      belay__item_settle(cache, &entry->item, entry->key, entry->failed, group, on_entry_over);
  }
  if (group != NULL)
    belay__load_group_seal(cache, group);
  for (size_t i = 0; i < many->n; i++)
    many->waiting += belay__item_is_waiting(&many->entries[i].item);
  return many->waiting == 0 ? 0 : belay__get_park(operation, on_many_late, many->deadline);
}

static int after_many(belay__operation_t *operation) {
  return settle_many(operation, 0);
}

static const belay__request_ops_t many_ops = {.read = read_many,
                                              .failed = on_failed,
                                              .next = after_many,
                                              .recover = settle_many,
                                              .notify = tell_many,
                                              .left = cancel_many,
                                              .idempotent = true};

static int check_many(belay_cache_t *cache, const belay_request_t *request,
                      const belay_bytes_t *keys, size_t n, bool has_cb) {
  const belay__handle_t *handle = (const belay__handle_t *)cache;
  int error = belay__handle_check_request(handle, request, has_cb);
  if (error == 0)
    error = belay__check_range(handle->client->belay, "n", n <= INT64_MAX ? (int64_t)n : 0, 1,
                               BELAY_CACHE_MANY_MAX);
  return error != 0 ? error
                    : belay__handle_check_array(handle, "key", keys, n, BELAY__HANDLE_KEYS_MAX, 1,
                                                BELAY__HANDLE_KEY_MAX);
}

static many_t *new_many(belay__operation_t *operation, const belay_bytes_t *keys, size_t n) {
  const belay_cache_t *cache = operation->context;
  size_t bytes = sizeof(many_t) + n * (sizeof(entry_t) + sizeof(belay_cache_result_t));
  for (size_t i = 0; i < n; i++)
    bytes += keys[i].len;
  many_t *many = belay__request_room(operation, bytes);
  if (many == NULL)
    return NULL;
  many->operation = operation;
  many->n = n;
  many->entries = (entry_t *)(void *)(many + 1);
  many->results = (belay_cache_result_t *)(void *)(many->entries + n);
  char *at = (char *)(many->results + n);
  for (size_t i = 0; i < n; i++) {
    entry_t *entry = &many->entries[i];
    memcpy(at, keys[i].data, keys[i].len);
    entry->many = many;
    entry->key = at;
    entry->item.key_len = (uint16_t)keys[i].len;
    entry->item.late = (uint8_t)cache->options.late;
    at += keys[i].len;
  }
  return many;
}

/* Serves what the table has, and looks all other keys up. */
static int send_lookups(belay_cache_t *cache, belay__operation_t *operation, uint64_t now,
                        belay__call_t **calls) {
  many_t *many = many_of(operation);
  uint32_t n = 0;
  for (size_t i = 0; i < many->n; i++) {
    entry_t *entry = &many->entries[i];
    entry->first = n;
    entry->looked_up = !belay__item_serve_local(cache, &entry->item, entry->key, now);
    if (entry->looked_up)
      n += (uint32_t)belay__lookup_calls(cache, &entry->item.lookup, BELAY__LOOKUP_AT_ANY, now,
                                         entry->key, entry->item.key_len, calls + n);
  }
  many->calls = n;
  if (n > 0)
    return belay__lookup_send(cache, operation, now, calls, n);
  belay__request_end(operation, 0);
  return 0;
}

/* The request could not begin. */
static void forget_request(belay__operation_t *operation) {
  many_t *many = many_of(operation);
  for (size_t i = 0; many != NULL && i < many->n; i++)
    belay__item_release(operation->client->belay, &many->entries[i].item);
  belay__request_forget(operation);
}

int belay_cache_get_many(belay_cache_t *cache, belay_request_t *request, const belay_bytes_t *keys,
                         size_t n, belay_cache_many_cb cb) {
  belay__operation_t *operation;
  int error = check_many(cache, request, keys, n, cb != NULL);
  if (error == 0)
    error = belay__handle_begin(&cache->handle, request, &many_ops, (void (*)(void))cb, &operation);
  if (error != 0)
    return error;
  belay_t *belay = cache->handle.client->belay;
  size_t room = (n * BELAY__LOOKUP_CALLS_MAX + 1) * sizeof(belay__call_t *);
  belay__call_t **calls = belay__alloc(belay, room);
  many_t *many = new_many(operation, keys, n);
  error = calls == NULL || many == NULL ? BELAY_ENOMEM : 0;
  if (error == 0) {
    uint64_t now = belay__now(belay);
    belay__get_deadlines(cache, operation, now, &many->deadline);
    belay__cache_subscribe(cache);
    error = send_lookups(cache, operation, now, calls);
  }
  belay__free(belay, calls, room);
  if (error != 0)
    forget_request(operation);
  else
    cache->stats.gets += n;
  return error;
}
