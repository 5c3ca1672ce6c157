/* Gets of one key and of many. A get is a request with an entry for each key:
 *
 *     a fresh record in the local table--> served
 *
 *     looked up --fresh or stale--> served, and perhaps loaded again in the background
 *        |  |
 *        |  +--kept or none--> waits for a load --the load ends, or the get times out--> served
 *        |
 *        +--failed in an outage--> as options.away says: served from the local table, ended with
 *                                  the error, or waits for a load
 *
 * The lookups of all keys are one step of the request: all calls are sent at once. Then the request
 * is PARKED while any key waits for a load. A get of one key that shares the lookup of another get
 * is PARKED until that lookup ends (cache/share.h). */
#include <string.h>

#include "cache/join.h"
#include "cache/loader.h"
#include "cache/share.h"
#include "cache/waiters.h"

typedef struct get get_t;

typedef struct entry {
  union {
    belay__lookup_t lookup;
    belay__load_waiter_t waiter; /* valid if `waits` */
  };
  belay__served_t served; /* result, with its own reference to the record */
  get_t *get;
  belay_bytes_t key;
  uint32_t first; /* index of the first call of the key */
  int32_t failed; /* status of a failed call of the key; 0: none failed */
  bool looked_up; /* a lookup was sent */
  bool waits;     /* the key waits or has waited for a load: the union has the waiter */
} entry_t;

/* State of a get, in operation->room. The results and the bytes of the keys follow it in memory. */
struct get {
  belay__operation_t *operation;
  belay__sharing_t sharing; /* of a get of one key */
  size_t n, waiting;
  uint32_t calls;
  uint8_t late; /* belay_cache_late_t */
  bool one;     /* true for a get of one key: the status of the request is that of the key */
  /* at least one call has a reply or an error of its own; if none has, all entries get the status
   * of the request */
  bool answered;
  uint64_t begun_at; /* host time */
  uint64_t deadline;
  belay_cache_result_t *results;
  entry_t entries[];
};

static bool is_waiting(const entry_t *entry) {
  return entry->waits && entry->waiter.load != NULL;
}

static int status_of(const get_t *get) {
  return get->one ? get->entries[0].served.status : 0;
}

/* ---- one key ---- */

static void set_served(entry_t *entry, belay__served_t served) {
  entry->served = served;
  if (served.record != NULL)
    belay__record_retain(served.record);
}

static void release_records(belay_t *belay, get_t *get) {
  for (size_t i = 0; i < get->n; i++) {
    entry_t *entry = &get->entries[i];
    belay__record_release(belay, entry->served.record);
    if (!entry->waits)
      belay__record_release(belay, entry->lookup.record);
  }
}

static void on_wait_over(belay__load_waiter_t *waiter, const belay__served_t *served) {
  entry_t *entry = BELAY__CONTAINER(waiter, entry_t, waiter);
  get_t *get = entry->get;
  belay__operation_t *operation = get->operation;
  belay__cache_count(operation->context, served, false);
  set_served(entry, *served);
  if (!belay__timer_is_set(&operation->timer) || --get->waiting > 0)
    return;
  belay__timer_stop(operation->client->belay, BELAY__RANK_OTHER, &operation->timer);
  belay__request_end(operation, status_of(get));
}

/* Makes the entry wait for a load. The waiter replaces the lookup in the union. */
static void begin_to_wait(entry_t *entry) {
  entry->waits = true;
  entry->waiter = (belay__load_waiter_t){.late = entry->get->late, .end = on_wait_over};
  belay__list_init(&entry->waiter.node);
}

/* Makes the entry wait for a load, because the lookup found no record, or a KEPT one. */
static void join_load(belay_cache_t *cache, entry_t *entry, belay__load_group_t *group) {
  belay__lookup_t lookup = entry->lookup;
  cache->stats.misses++;
  begin_to_wait(entry);
  int error =
      belay__load_join(cache, entry->key, &lookup, entry->get->begun_at, group, &entry->waiter);
  belay__lookup_release(cache, &lookup); /* the record, if the load has not taken it */
  if (error != 0)
    set_served(entry, belay__cache_refuse(error, 0));
}

/* Serves, refuses or loads a key whose lookup failed in an outage, as options.away says. */
static void join_in_outage(belay_cache_t *cache, entry_t *entry) {
  cache->stats.away++;
  belay__served_t served = belay__cache_serve_in_outage(cache, entry->key, entry->failed);
  belay__cache_count(cache, &served, true);
  set_served(entry, served);
  if (served.record != NULL || cache->options.away != BELAY_CACHE_AWAY_LOAD)
    return;
  belay__lookup_release(cache, &entry->lookup);
  begin_to_wait(entry);
  int error = belay__load_join_in_outage(cache, entry->key, entry->get->begun_at, &entry->waiter);
  if (error != 0 && error != BELAY_EBUSY)
    set_served(entry, belay__cache_refuse(error, 0));
}

/* Serves or refuses a key after its lookup, or makes it wait. group: for a new load; or NULL. */
static void end_lookup(belay_cache_t *cache, entry_t *entry, belay__load_group_t *group) {
  belay__served_t served;
  if (entry->failed != 0 && belay__cache_is_outage(entry->failed))
    join_in_outage(cache, entry);
  else if (entry->failed != 0)
    set_served(entry, belay__cache_refuse(entry->failed, 0));
  else if (belay__load_serve_lookup(cache, entry->key, &entry->lookup, &served))
    set_served(entry, served);
  else
    join_load(cache, entry, group);
}

static bool serve_local(belay_cache_t *cache, entry_t *entry, uint64_t now) {
  belay__served_t served;
  if (!belay__cache_serve_local(cache, entry->key, now, &served))
    return false;
  set_served(entry, served);
  belay__load_refresh_early(cache, entry->key, served.record);
  return true;
}

/* ---- the request ---- */

/* Ends a get at its deadline. Each waiting entry takes a reference to its record, because the load
 * may be freed before the callback runs. */
static void on_late(belay__timer_t *timer) {
  belay__operation_t *operation = BELAY__CONTAINER(timer, belay__operation_t, timer);
  get_t *get = operation->room;
  for (size_t i = 0; i < get->n; i++) {
    entry_t *entry = &get->entries[i];
    if (!is_waiting(entry))
      continue;
    belay__served_t served = belay__load_waiter_late(&entry->waiter);
    belay__cache_count(operation->context, &served, false);
    set_served(entry, served);
    belay__load_leave(&entry->waiter);
  }
  belay__request_end(operation, status_of(get));
}

/* Returns the entry that a call belongs to: the last entry whose first call is not after this call.
 * An entry without calls has the index of the next entry's first call. */
static entry_t *entry_of(get_t *get, uint32_t call) {
  size_t low = 0, high = get->n;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (get->entries[middle].first <= call)
      low = middle;
    else
      high = middle;
  }
  return &get->entries[low];
}

static int read_lookup(belay__operation_t *operation, const belay__call_t *call,
                       const belay__reply_t *reply) {
  belay_cache_t *cache = operation->context;
  get_t *get = operation->room;
  get->answered = true;
  if (operation->index >= get->calls)
    return belay__servertime_read(&cache->time, call, reply);
  entry_t *entry = entry_of(get, operation->index);
  return belay__lookup_read(cache, &entry->lookup, operation->index - entry->first, reply);
}

static void fail_all(get_t *get, int status) {
  for (size_t i = 0; i < get->n; i++)
    get->entries[i].failed = status;
}

static void on_failed(belay__operation_t *operation, int status) {
  const belay_cache_t *cache = operation->context;
  get_t *get = operation->room;
  get->answered = true;
  if (operation->index < get->calls)
    entry_of(get, operation->index)->failed = status;
  else if (cache->time.learnt == 0)
    fail_all(get, status);
}

/* Serves or refuses each key after its lookup, or makes it wait for a load. Returns
 * BELAY__REQUEST_PARK if any key waits, otherwise the status of the request. */
static int end_lookups(belay__operation_t *operation) {
  belay_cache_t *cache = operation->context;
  get_t *get = operation->room;
  belay__load_group_t *group = NULL;
  if (!get->one && cache->options.load_many != NULL) {
    group = belay__load_group_new(cache);
    if (group == NULL)
      return BELAY_ENOMEM;
  }
  for (size_t i = 0; i < get->n; i++)
    if (get->entries[i].looked_up)
      end_lookup(cache, &get->entries[i], group);
  if (group != NULL)
    belay__load_group_seal(cache, group);
  for (size_t i = 0; i < get->n; i++)
    get->waiting += is_waiting(&get->entries[i]);
  if (get->waiting == 0)
    return status_of(get);
  operation->timer.fire = on_late;
  belay__timer_set(operation->client->belay, BELAY__RANK_OTHER, &operation->timer, get->deadline);
  return BELAY__REQUEST_PARK;
}

/* ---- shared lookups ---- */

static int send_lookups(belay_cache_t *cache, get_t *get, uint64_t now, belay__call_t **calls);

static void end_parked(belay__operation_t *operation) {
  int status = end_lookups(operation);
  if (status != BELAY__REQUEST_PARK)
    belay__request_end(operation, status);
}

/* Continues a follower with a copy of the leader's lookup. failed: error of the lookup, or 0. */
static void end_follower(belay__operation_t *operation, const belay__lookup_t *lookup, int failed) {
  get_t *get = operation->room;
  entry_t *entry = &get->entries[0];
  get->answered = true;
  entry->failed = failed;
  entry->lookup = *lookup;
  if (lookup->record != NULL)
    belay__record_retain(lookup->record);
  end_parked(operation);
}

/* Makes the first of the followers their new leader, because the old leader has no result for them.
 * A follower that cannot send a lookup ends with the error, and the next follower is tried. If the
 * cache closes, only unlinks the followers, which are canceled next. */
static void choose_leader(belay_cache_t *cache, belay__list_t *followers) {
  bool closing = cache->handle.closing || cache->handle.client->closing;
  for (belay__list_t *node; (node = belay__list_pop(followers)) != NULL;) {
    belay__operation_t *operation = BELAY__CONTAINER(node, belay__operation_t, queued);
    get_t *get = operation->room;
    belay__call_t *calls[BELAY__LOOKUP_CALLS_MAX + 1];
    if (closing)
      continue;
    belay__list_splice_front(&get->sharing.followers, followers);
    int error = send_lookups(cache, get, belay__now(operation->client->belay), calls);
    if (error == 0)
      return;
    belay__list_splice_front(followers, &get->sharing.followers);
    end_follower(operation, &get->entries[0].lookup, error);
  }
}

/* Continues a leader and its followers after the leader's lookup. The leader's step consumes the
 * lookup, so this function copies it before. If the lookup failed at the leader's deadline, the
 * first follower that has time left repeats the lookup as the new leader. */
static void end_leader(belay__operation_t *operation) {
  belay_cache_t *cache = operation->context;
  belay_t *belay = operation->client->belay;
  get_t *get = operation->room;
  const belay__lookup_t lookup = get->entries[0].lookup;
  int failed = get->entries[0].failed;
  uint64_t now = failed == 0 ? 0 : belay__now(belay);
  bool overdue = failed != 0 && now >= operation->deadline;
  belay__list_t followers;
  belay__list_init(&followers);
  belay__list_splice_front(&followers, &get->sharing.followers);
  if (lookup.record != NULL)
    belay__record_retain(lookup.record);
  end_parked(operation);
  for (belay__list_t *node; (node = belay__list_pop(&followers)) != NULL;) {
    belay__operation_t *next = BELAY__CONTAINER(node, belay__operation_t, queued);
    if (overdue && now < next->deadline) {
      belay__list_push_front(&followers, node);
      choose_leader(cache, &followers);
      break;
    }
    end_follower(next, &lookup, failed);
  }
  belay__record_release(belay, lookup.record);
}

/* ---- the ends of a step ---- */

static int after_failure(belay__operation_t *operation, int status) {
  get_t *get = operation->room;
  if (!get->answered)
    fail_all(get, status);
  if (!get->one)
    return end_lookups(operation);
  belay__share_end(operation->context, &get->sharing);
  if (belay__list_empty(&get->sharing.followers))
    return end_lookups(operation);
  end_leader(operation);
  return BELAY__REQUEST_PARK;
}

static int after_lookups(belay__operation_t *operation) {
  return after_failure(operation, 0);
}

static void on_cancel(belay__operation_t *operation, bool sent) {
  get_t *get = operation->room;
  (void)sent;
  if (get->one) {
    belay__list_remove(&operation->queued);
    belay__share_end(operation->context, &get->sharing);
    choose_leader(operation->context, &get->sharing.followers);
  }
  belay__timer_stop(operation->client->belay, BELAY__RANK_OTHER, &operation->timer);
  for (size_t i = 0; i < get->n; i++)
    if (get->entries[i].waits)
      belay__load_leave(&get->entries[i].waiter);
}

static void run_callback(belay_request_t *request, void (*cb)(void),
                         const belay__answer_t *answer) {
  belay_t *belay = answer->client->belay;
  get_t *get = answer->room;
  uint64_t now = belay__entry_time(belay);
  const belay__served_t canceled = belay__cache_refuse(answer->status, 0);
  bool is_canceled = answer->status != status_of(get);
  for (size_t i = 0; i < get->n; i++)
    belay__cache_result(answer->context, is_canceled ? &canceled : &get->entries[i].served, now,
                        &get->results[i]);
  if (get->one)
    ((belay_cache_cb)cb)(request, get->results[0].status, get->results);
  else
    ((belay_cache_many_cb)cb)(request, answer->status, get->results, get->n);
  release_records(belay, get);
}

static const belay__request_ops_t get_ops = {.read = read_lookup,
                                             .failed = on_failed,
                                             .next = after_lookups,
                                             .recover = after_failure,
                                             .notify = run_callback,
                                             .left = on_cancel,
                                             .idempotent = true};

/* ---- the start ---- */

static get_t *new_get(belay__operation_t *operation, const belay_bytes_t *keys, size_t n) {
  size_t bytes = sizeof(get_t) + n * (sizeof(entry_t) + sizeof(belay_cache_result_t));
  for (size_t i = 0; i < n; i++)
    bytes += keys[i].len;
  get_t *get = belay__request_room(operation, bytes);
  if (get == NULL)
    return NULL;
  get->operation = operation;
  get->n = n;
  get->results = (belay_cache_result_t *)(void *)&get->entries[n];
  char *at = (char *)(get->results + n);
  for (size_t i = 0; i < n; i++) {
    get->entries[i].get = get;
    get->entries[i].key = belay_bytes(memcpy(at, keys[i].data, keys[i].len), keys[i].len);
    at += keys[i].len;
  }
  return get;
}

/* Sets the deadline of the calls and that of the get. The calls have at most the client's
 * timeout_ms, and with BELAY_CACHE_AWAY_LOAD at most half of the time of the get, so that the rest
 * is left for a load. */
static void set_deadlines(const belay_cache_t *cache, get_t *get) {
  const belay_client_t *client = cache->handle.client;
  int64_t ms = belay__request_of(get->operation)->timeout_ms;
  if (ms == 0 || ms == BELAY_DEFAULT)
    ms = cache->options.timeout_ms;
  int64_t call_ms = cache->options.away == BELAY_CACHE_AWAY_LOAD ? (ms + 1) / 2 : ms;
  if (call_ms > client->timeout_ms)
    call_ms = client->timeout_ms;
  get->deadline = get->begun_at + (uint64_t)ms * BELAY__MS;
  get->operation->deadline = get->begun_at + (uint64_t)call_ms * BELAY__MS;
}

/* Sends the lookups of all keys that the local table did not serve. */
static int send_lookups(belay_cache_t *cache, get_t *get, uint64_t now, belay__call_t **calls) {
  size_t n = 0;
  for (size_t i = 0; i < get->n; i++) {
    entry_t *entry = &get->entries[i];
    entry->first = (uint32_t)n;
    if (entry->looked_up)
      n += belay__lookup_calls(cache, &entry->lookup, BELAY__LOOKUP_AT_ANY, now, entry->key,
                               calls + n);
  }
  get->calls = (uint32_t)n;
  n = belay__lookup_add_time(cache, now, calls, n);
  get->operation->fail_fast = belay__cache_fails_fast(cache);
  if (get->one)
    belay__share_lead(cache, &get->sharing);
  int error = belay__request_send_all(get->operation, calls, n);
  if (error != 0 && get->one)
    belay__share_end(cache, &get->sharing);
  return error;
}

/* Serves keys that are fresh in the local table, and looks all other keys up. */
static int look_up(belay_cache_t *cache, get_t *get, belay__call_t **calls) {
  bool all_served = true;
  for (size_t i = 0; i < get->n; i++) {
    entry_t *entry = &get->entries[i];
    entry->looked_up = !serve_local(cache, entry, get->begun_at);
    all_served &= !entry->looked_up;
  }
  if (all_served) {
    belay__request_end(get->operation, status_of(get));
    return 0;
  }
  if (get->one) {
    belay__share_init(&get->sharing, get->operation, get->entries[0].key);
    if (belay__share_join(cache, &get->sharing)) {
      cache->stats.shared++;
      return 0;
    }
  }
  return send_lookups(cache, get, get->begun_at, calls);
}

static int start_get(belay_cache_t *cache, belay__operation_t *operation, const belay_bytes_t *keys,
                     size_t n, belay_cache_late_t late, bool one) {
  belay_t *belay = operation->client->belay;
  belay__call_t *few[BELAY__LOOKUP_CALLS_MAX + 1], **calls = few;
  size_t room = n == 1 ? 0 : (n * BELAY__LOOKUP_CALLS_MAX + 1) * sizeof(belay__call_t *);
  if (room > 0)
    calls = belay__alloc(belay, room);
  get_t *get = calls == NULL ? NULL : new_get(operation, keys, n);
  int error = BELAY_ENOMEM;
  if (get != NULL) {
    bool stopped = belay__stop_clock(belay); /* the calls are sent at the time of the begin */
    get->begun_at = belay__now(belay);
    get->late = (uint8_t)late;
    get->one = one;
    set_deadlines(cache, get);
    belay__cache_subscribe(cache);
    error = look_up(cache, get, calls);
    belay__start_clock(belay, stopped);
  }
  if (room > 0)
    belay__free(belay, calls, room);
  if (error == 0)
    cache->stats.gets += n;
  else if (get != NULL)
    release_records(belay, get);
  return belay__request_begun(operation, error);
}

int belay_cache_get_late(belay_cache_t *cache, belay_request_t *request, belay_bytes_t key,
                         belay_cache_late_t late, belay_cache_cb cb) {
  belay__operation_t *operation;
  int error = belay__handle_check_key((belay__handle_t *)cache, request, key, cb != NULL);
  if (error == 0)
    error = belay__check_range(cache->handle.client->belay, "late", (int64_t)late,
                               BELAY_CACHE_LATE_STALE, BELAY_CACHE_LATE_LOAD);
  if (error == 0)
    error = belay__handle_begin(&cache->handle, request, &get_ops, BELAY__CB(cb), &operation);
  return error != 0 ? error : start_get(cache, operation, &key, 1, late, true);
}

int belay_cache_get(belay_cache_t *cache, belay_request_t *request, belay_bytes_t key,
                    belay_cache_cb cb) {
  return cache == NULL ? BELAY_EINVAL
                       : belay_cache_get_late(cache, request, key, cache->options.late, cb);
}

int belay_cache_get_many(belay_cache_t *cache, belay_request_t *request, const belay_bytes_t *keys,
                         size_t n, belay_cache_many_cb cb) {
  belay__operation_t *operation;
  const belay__handle_t *handle = (const belay__handle_t *)cache;
  int error = belay__handle_check_request(handle, request, cb != NULL);
  if (error == 0)
    error = belay__check_range(handle->client->belay, "n", n <= INT64_MAX ? (int64_t)n : 0, 1,
                               BELAY_CACHE_MANY_MAX);
  if (error == 0)
    error = belay__handle_check_array(handle, "key", keys, n, BELAY__HANDLE_KEYS_MAX, 1,
                                      BELAY__HANDLE_KEY_MAX);
  if (error == 0)
    error = belay__handle_begin(&cache->handle, request, &get_ops, BELAY__CB(cb), &operation);
  return error != 0 ? error : start_get(cache, operation, keys, n, cache->options.late, false);
}
