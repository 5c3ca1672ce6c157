/* A get of one key, and a peek. A get is a request:
 *
 *     begun --a fresh record in the local table--> over
 *       |
 *       +--lookup--> (CALLING) --served (get.h)--> over
 *                        |
 *                        +--the key waits--> PARKED --the load ends, or the get times out--> over
 *
 * The get allocates no memory of its own for short keys: the key is in the values of the
 * request. */
#include "cache/get.h"

#include <string.h>

#include "cache/join.h"
#include "cache/waiters.h"

#define SHORT_KEY ((size_t)64)

/* ---- one key ---- */

static void set_served(belay__item_t *item, belay__served_t served) {
  item->served = served;
  if (served.record != NULL)
    belay__record_retain(served.record);
}

bool belay__item_serve_local(belay_cache_t *cache, belay__item_t *item, const char *key,
                             uint64_t now) {
  belay__served_t served;
  if (!belay__cache_serve_local(cache, key, item->key_len, now, &served))
    return false;
  set_served(item, served);
  belay__load_refresh_early(cache, key, item->key_len, served.record);
  return true;
}

/* The waiter replaces the lookup in the union. */
static void begin_to_wait(belay__item_t *item, belay__item_end_fn end) {
  item->waits = true;
  item->waiter = (belay__load_waiter_t){.late = item->late, .end = end};
  belay__list_init(&item->waiter.node);
}

/* After a lookup that found nothing fresh. */
static void join_load(belay_cache_t *cache, belay__item_t *item, const char *key,
                      belay__load_group_t *group, belay__item_end_fn end) {
  belay__lookup_t lookup = item->lookup;
  cache->stats.misses++;
  begin_to_wait(item, end);
  int error = belay__load_join(cache, key, item->key_len, &lookup, group, &item->waiter);
  belay__lookup_release(cache, &lookup); /* the record, if the load has not taken it */
  if (error != 0)
    set_served(item, belay__cache_refuse(error, 0));
}

/* After a lookup that the server did not answer. */
static void join_in_outage(belay_cache_t *cache, belay__item_t *item, const char *key, int status,
                           belay__item_end_fn end) {
  cache->stats.away++;
  belay__served_t served = belay__cache_serve_in_outage(cache, key, item->key_len, status);
  belay__cache_count(cache, &served, true);
  set_served(item, served);
  if (served.record != NULL || cache->options.away != BELAY_CACHE_AWAY_LOAD)
    return;
  uint64_t asked_at = item->lookup.asked_at;
  belay__lookup_release(cache, &item->lookup);
  begin_to_wait(item, end);
  int error = belay__load_join_in_outage(cache, key, item->key_len, asked_at, &item->waiter);
  if (error != 0 && error != BELAY_EBUSY)
    set_served(item, belay__cache_refuse(error, 0));
}

void belay__item_settle(belay_cache_t *cache, belay__item_t *item, const char *key, int status,
                        belay__load_group_t *group, belay__item_end_fn end) {
  belay__served_t served;
  if (status != 0 && belay__cache_is_outage(status))
    join_in_outage(cache, item, key, status, end);
  else if (status != 0)
    set_served(item, belay__cache_refuse(status, 0));
  else if (belay__load_serve_lookup(cache, key, item->key_len, &item->lookup, &served))
    set_served(item, served);
  else
    join_load(cache, item, key, group, end);
}

void belay__item_end_wait(belay__operation_t *operation, belay__item_t *item,
                          const belay__served_t *served) {
  belay__cache_count(operation->context, served, false);
  set_served(item, *served);
}

/* The reference outlives the load. */
void belay__item_end_late(belay__operation_t *operation, belay__item_t *item) {
  belay__served_t served = belay__load_waiter_late(&item->waiter);
  belay__item_end_wait(operation, item, &served);
  belay__load_leave(&item->waiter);
}

void belay__item_cancel_wait(belay__item_t *item) {
  if (item->waits)
    belay__load_leave(&item->waiter);
}

void belay__item_release(belay_t *belay, belay__item_t *item) {
  belay__record_release(belay, item->served.record);
  if (!item->waits)
    belay__record_release(belay, item->lookup.record);
}

/* ---- the request ---- */

void belay__get_deadlines(const belay_cache_t *cache, belay__operation_t *operation, uint64_t now,
                          uint64_t *deadline) {
  const belay_client_t *client = cache->handle.client;
  const belay_request_t *request = belay__request_of(operation);
  int64_t ms = request->timeout_ms;
  if (ms == 0 || ms == BELAY_DEFAULT)
    ms = cache->options.timeout_ms;
  int64_t call_ms = cache->options.away == BELAY_CACHE_AWAY_LOAD ? (ms + 1) / 2 : ms;
  if (call_ms > client->timeout_ms)
    call_ms = client->timeout_ms;
  *deadline = now + (uint64_t)ms * BELAY__MS;
  operation->deadline = now + (uint64_t)call_ms * BELAY__MS;
}

int belay__get_park(belay__operation_t *operation, void (*on_late)(belay__timer_t *),
                    uint64_t deadline) {
  operation->timer.fire = on_late;
  belay__timer_set(operation->client->belay, BELAY__RANK_OTHER, &operation->timer, deadline);
  return BELAY__REQUEST_PARK;
}

void belay__get_unpark(belay__operation_t *operation) {
  belay__timer_stop(operation->client->belay, BELAY__RANK_OTHER, &operation->timer);
}

void belay__get_end(belay__operation_t *operation, int status) {
  belay__get_unpark(operation);
  belay__request_end(operation, status);
}

/* ---- get of one key ---- */

typedef struct get {
  belay__item_t item;
  uint64_t deadline;
  char key[SHORT_KEY]; /* short key; a longer key is in the room of the request */
} get_t;

_Static_assert(sizeof(get_t) <= BELAY__REQUEST_VALUES * sizeof(int64_t), "it has room");

static get_t *get_of(belay__operation_t *operation) {
  return (get_t *)(void *)operation->values;
}

static const char *key_of(belay__operation_t *operation) {
  const get_t *get = get_of(operation);
  return get->item.key_len <= SHORT_KEY ? get->key : operation->room;
}

static void on_one_over(belay__load_waiter_t *waiter, const belay__served_t *served) {
  get_t *get = BELAY__CONTAINER(BELAY__CONTAINER(waiter, belay__item_t, waiter), get_t, item);
  belay__operation_t *operation =
      BELAY__CONTAINER((int64_t *)(void *)get, belay__operation_t, values);
  belay__item_end_wait(operation, &get->item, served);
  if (belay__timer_is_set(&operation->timer))
    belay__get_end(operation, served->status);
}

static void on_one_late(belay__timer_t *timer) {
  belay__operation_t *operation = BELAY__CONTAINER(timer, belay__operation_t, timer);
  belay__item_t *item = &get_of(operation)->item;
  belay__item_end_late(operation, item);
  belay__get_end(operation, item->served.status);
}

static int read_one(belay__operation_t *operation, const belay__call_t *call,
                    const belay__reply_t *reply) {
  return belay__lookup_step_read(operation->context, &get_of(operation)->item.lookup, operation,
                                 call, reply);
}

static int settle_one(belay__operation_t *operation, int status) {
  get_t *get = get_of(operation);
  belay__item_settle(operation->context, &get->item, key_of(operation), status, NULL, on_one_over);
  return belay__item_is_waiting(&get->item) ? belay__get_park(operation, on_one_late, get->deadline)
                                            : get->item.served.status;
}

static int after_one(belay__operation_t *operation) {
  return settle_one(operation, 0);
}

static void tell_one(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  belay_cache_t *cache = answer->context;
  belay_t *belay = answer->client->belay;
  get_t get;
  belay_cache_result_t result;
  memcpy(&get, answer->values, sizeof get);
  belay__served_t served = get.item.served;
  if (served.status != answer->status) /* canceled */
    served = belay__cache_refuse(answer->status, served.load_error);
  belay__cache_result(cache, &served, belay__entry_time(belay), &result);
  ((belay_cache_cb)cb)(request, result.status, &result);
  belay__item_release(belay, &get.item);
}

static void cancel_one(belay__operation_t *operation, bool sent) {
  (void)sent;
  belay__get_unpark(operation);
  belay__item_cancel_wait(&get_of(operation)->item);
}

static const belay__request_ops_t one_ops = {.read = read_one,
                                             .next = after_one,
                                             .recover = settle_one,
                                             .notify = tell_one,
                                             .left = cancel_one,
                                             .idempotent = true};

static int begin_get(belay_cache_t *cache, belay_request_t *request, const char *key,
                     size_t key_len, belay_cache_late_t late, belay_cache_cb cb,
                     belay__operation_t **out) {
  int error = belay__handle_begin(&cache->handle, request, &one_ops, (void (*)(void))cb, out);
  if (error != 0)
    return error;
  get_t *get = get_of(*out);
  char *room = key_len <= SHORT_KEY ? get->key : belay__request_room(*out, key_len);
  if (room == NULL) {
    belay__request_forget(*out);
    return BELAY_ENOMEM;
  }
  memcpy(room, key, key_len);
  get->item.key_len = (uint16_t)key_len;
  get->item.late = (uint8_t)late;
  return 0;
}

int belay_cache_get_late(belay_cache_t *cache, belay_request_t *request, belay_bytes_t key,
                         belay_cache_late_t late, belay_cache_cb cb) {
  belay__operation_t *operation;
  if (cache == NULL)
    return BELAY_EINVAL;
  belay_t *belay = cache->handle.client->belay;
  int error = belay__handle_check_key(&cache->handle, request, key, cb != NULL);
  if (error == 0)
    error = belay__check_range(belay, "late", (int64_t)late, BELAY_CACHE_LATE_STALE,
                               BELAY_CACHE_LATE_LOAD);
  if (error == 0)
    error = begin_get(cache, request, key.data, key.len, late, cb, &operation);
  if (error != 0)
    return error;
  get_t *get = get_of(operation);
  uint64_t now = belay__now(belay);
  belay__get_deadlines(cache, operation, now, &get->deadline);
  cache->stats.gets++;
  belay__cache_subscribe(cache);
  if (belay__item_serve_local(cache, &get->item, key_of(operation), now)) {
    belay__request_end(operation, get->item.served.status);
    return 0;
  }
  belay__call_t *calls[BELAY__LOOKUP_CALLS_MAX + 1];
  size_t n = belay__lookup_calls(cache, &get->item.lookup, BELAY__LOOKUP_AT_ANY, now, key.data,
                                 key.len, calls);
  error = belay__lookup_send(cache, operation, now, calls, n);
  if (error != 0)
    belay__request_forget(operation);
  return error;
}

int belay_cache_get(belay_cache_t *cache, belay_request_t *request, belay_bytes_t key,
                    belay_cache_cb cb) {
  return cache == NULL ? BELAY_EINVAL
                       : belay_cache_get_late(cache, request, key, cache->options.late, cb);
}

int belay_cache_peek(belay_cache_t *cache, belay_bytes_t key, belay_cache_result_t *result) {
  int error = belay__handle_check((const belay__handle_t *)cache);
  if (error != 0)
    return error;
  belay_t *belay = cache->handle.client->belay;
  if (key.data == NULL || key.len < 1 || key.len > BELAY_CACHE_KEY_MAX || result == NULL)
    return belay__invalid(belay, "key: not 1 to %zu bytes, or no result", BELAY_CACHE_KEY_MAX);
  belay__served_t served;
  uint64_t now = belay__now(belay);
  if (!belay__cache_serve_local(cache, key.data, key.len, now, &served))
    return BELAY_EAGAIN;
  cache->stats.gets++;
  belay__cache_result(cache, &served, now, result);
  return served.status;
}
