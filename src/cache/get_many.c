/* Many at once: one request, which is a look for each key that the table of this process has not, all in one round trip;
 * and then a waiter for each that was not found. It is over when none of them waits any more.
 *
 *   begun --> looks (CALLING) --all answered--> each is served, or joins a flight --none waits--> told
 *                                                                                --its time is over--> told
 */
#include <string.h>

#include "cache/single_flight.h"
#include "cache/times.h"

typedef struct many many_t;

typedef struct entry {
  many_t *many;
  belay__waiter_t waiter;
  belay__look_t look;
  belay__served_t served; /* with a reference of its own */
  uint32_t first;         /* of its calls; if it is asked */
  bool asked;
  int32_t failed; /* one of its calls has */
  const char *key;
  size_t key_len;
} entry_t;

/* The room of the request; behind it the entries, the results, and the keys. */
struct many {
  belay__pending_t *pending;
  size_t n, waiting;
  uint32_t calls;
  bool sent;    /* a look is over; else none has begun, and they all end as the request does */
  bool joining; /* flights are being joined: who is served meanwhile does not end it */
  uint64_t deadline;
  entry_t *entries;
  belay_cache_result_t *results;
};

static many_t *many_of(const belay__pending_t *pending) {
  return pending->room;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static void stop(belay__pending_t *pending) {
  belay__timer_stop(pending->client->belay, BELAY__RANK_OTHER, &pending->timer);
}

static void serve(entry_t *entry, belay__served_t served) {
  entry->served = served;
  if (served.record != NULL)
    belay__record_hold(served.record);
}

static void tell(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  belay_cache_t *cache = answer->context;
  belay_t *belay = answer->client->belay;
  many_t *many = answer->room;
  uint64_t now = belay__turn(belay);
  const belay__served_t unknown = {.status = answer->status};
  for (size_t i = 0; i < many->n; i++)
    belay__cache_result(cache, answer->status == 0 ? &many->entries[i].served : &unknown, now,
                        &many->results[i]);
  ((belay_cache_many_cb)cb)(request, answer->status, many->results, many->n);
  for (size_t i = 0; i < many->n; i++) {
    belay__record_drop(belay, many->entries[i].look.record);
    belay__record_drop(belay, many->entries[i].served.record);
  }
}

static void left(belay__pending_t *pending, bool sent) {
  many_t *many = many_of(pending);
  (void)sent;
  stop(pending);
  for (size_t i = 0; i < many->n; i++)
    belay__flight_leave(&many->entries[i].waiter);
}

/* ---- waiting ------------------------------------------------------------------------------------------- */

static void end_if_all(many_t *many) {
  if (many->waiting > 0 || many->joining)
    return;
  stop(many->pending);
  belay__request_end(many->pending, 0);
}

static void on_over(belay__waiter_t *waiter, const belay__served_t *served) {
  entry_t *entry = BELAY__CONTAINER(waiter, entry_t, waiter);
  many_t *many = entry->many;
  belay__cache_count(many->pending->context, served, false);
  serve(entry, *served);
  many->waiting--;
  end_if_all(many);
}

static void on_late(belay__timer_t *timer) {
  belay__pending_t *pending = BELAY__CONTAINER(timer, belay__pending_t, timer);
  many_t *many = many_of(pending);
  for (size_t i = 0; i < many->n; i++) {
    belay__waiter_t *waiter = &many->entries[i].waiter;
    if (waiter->flight == NULL)
      continue;
    belay__served_t served = belay__waiter_late(waiter);
    belay__cache_count(pending->context, &served, false);
    serve(&many->entries[i], served);
    belay__flight_leave(waiter);
  }
  many->waiting = 0;
  end_if_all(many);
}

/* ---- the looks ----------------------------------------------------------------------------------------- */

/* Whose call that is; NULL: nobody's, it is TIME. */
static entry_t *entry_of(const many_t *many, uint32_t part) {
  size_t low = 0, high = many->n;
  if (part >= many->calls)
    return NULL;
  while (
      high - low >
      1) { /* the last one that begins no later: who is not asked begins where the next one does */
    size_t middle = low + (high - low) / 2;
    if (many->entries[middle].first <= part)
      low = middle;
    else
      high = middle;
  }
  return &many->entries[low];
}

static int read_reply(belay__pending_t *pending, const belay__call_t *call,
                      const belay__reply_t *reply) {
  belay_cache_t *cache = pending->context;
  many_t *many = many_of(pending);
  entry_t *entry = entry_of(many, pending->index);
  many->sent = true;
  if (entry == NULL)
    return belay__servertime_read(&cache->time, call, reply);
  return belay__look_read(cache, &entry->look, pending->index - entry->first, reply);
}

static void fail_all(many_t *many, int status) {
  for (size_t i = 0; i < many->n; i++)
    many->entries[i].failed = status;
}

static void on_failed(belay__pending_t *pending, int status) {
  const belay_cache_t *cache = pending->context;
  many_t *many = many_of(pending);
  many->sent = true;
  if (pending->index < many->calls)
    entry_of(many, pending->index)->failed = status;
  else if (cache->time.learnt == 0)
    fail_all(many, status);
}

static void join(belay_cache_t *cache, many_t *many, entry_t *entry, belay__batch_t *batch) {
  cache->stats.misses++;
  many->waiting++;
  int error =
      belay__flight_join(cache, entry->key, entry->key_len, &entry->look, batch, &entry->waiter);
  if (error == 0)
    return; /* it may be over already */
  many->waiting--;
  serve(entry, belay__cache_refuse(error, 0));
}

static void join_away(belay_cache_t *cache, many_t *many, entry_t *entry) {
  cache->stats.away++;
  belay__served_t served =
      belay__cache_serve_away(cache, entry->key, entry->key_len, entry->failed);
  belay__cache_count(cache, &served, true);
  serve(entry, served);
  if (served.record != NULL || cache->options.away != BELAY_CACHE_AWAY_LOAD)
    return;
  many->waiting++;
  int error =
      belay__flight_join_away(cache, entry->key, entry->key_len, entry->look.asked, &entry->waiter);
  if (error == 0)
    return;
  many->waiting--;
  if (error != BELAY_EBUSY)
    serve(entry, belay__cache_refuse(error, 0));
}

static void settle(belay_cache_t *cache, many_t *many, entry_t *entry, belay__batch_t *batch) {
  belay__served_t served;
  if (entry->failed != 0 && belay__cache_is_away(entry->failed)) {
    join_away(cache, many, entry);
    return;
  }
  if (entry->failed != 0) {
    serve(entry, belay__cache_refuse(entry->failed, 0));
    return;
  }
  if (belay__flight_spare(cache, entry->key, entry->key_len, &entry->look, &served))
    serve(entry, served);
  else
    join(cache, many, entry, batch);
}

/* All are answered, or are not going to be. */
static int after_looks(belay__pending_t *pending, int status) {
  belay_cache_t *cache = pending->context;
  many_t *many = many_of(pending);
  belay__batch_t *batch = cache->options.load_many == NULL ? NULL : belay__batch_new(cache);
  if (cache->options.load_many != NULL && batch == NULL)
    return BELAY_ENOMEM;
  if (!many->sent)
    fail_all(many, status);
  many->joining = true;
  for (size_t i = 0; i < many->n; i++)
    if (many->entries[i].asked)
      settle(cache, many, &many->entries[i], batch);
  if (batch != NULL)
    belay__batch_made(cache, batch);
  many->joining = false;
  if (many->waiting == 0)
    return 0;
  pending->timer.fire = on_late;
  belay__timer_set(pending->client->belay, BELAY__RANK_OTHER, &pending->timer, many->deadline);
  return BELAY__REQUEST_PARK;
}

static int after_all(belay__pending_t *pending) {
  return after_looks(pending, 0);
}

static const belay__request_ops_t many_ops = {.read = read_reply,
                                              .failed = on_failed,
                                              .next = after_all,
                                              .recover = after_looks,
                                              .tell = tell,
                                              .left = left,
                                              .idempotent = true};

/* ---- the operation ------------------------------------------------------------------------------------- */

static int check(belay_cache_t *cache, const belay_request_t *request, const belay_bytes_t *keys,
                 size_t n, bool has_cb) {
  const belay__handle_t *handle = (const belay__handle_t *)cache;
  int error = belay__handle_check_request(handle, request, has_cb);
  if (error == 0)
    error = belay__check_range(handle->client->belay, "n", n <= INT64_MAX ? (int64_t)n : 0, 1,
                               BELAY_CACHE_MANY_MAX);
  return error != 0 ? error
                    : belay__handle_check_array(handle, "item", keys, n, BELAY__HANDLE_KEYS_MAX, 1,
                                                BELAY__HANDLE_KEY_MAX);
}

static many_t *new_many(belay__pending_t *pending, const belay_bytes_t *keys, size_t n) {
  size_t bytes = sizeof(many_t) + n * (sizeof(entry_t) + sizeof(belay_cache_result_t));
  for (size_t i = 0; i < n; i++)
    bytes += keys[i].len;
  many_t *many = belay__request_room(pending, bytes);
  if (many == NULL)
    return NULL;
  many->pending = pending;
  many->n = n;
  many->entries = (entry_t *)(void *)(many + 1);
  many->results = (belay_cache_result_t *)(void *)(many->entries + n);
  char *at = (char *)(many->results + n);
  for (size_t i = 0; i < n; i++) {
    entry_t *entry = &many->entries[i];
    memcpy(at, keys[i].data, keys[i].len);
    *entry = (entry_t){.many = many, .key = at, .key_len = keys[i].len};
    belay__list_init(&entry->waiter.node);
    entry->waiter.end = on_over;
    at += keys[i].len;
  }
  return many;
}

/* The looks at what is not here: *len calls. Returns 0 or BELAY_ENOMEM. */
static int build(belay_cache_t *cache, many_t *many, uint64_t now, belay__call_t **calls,
                 size_t *len) {
  size_t n = 0;
  for (size_t i = 0; i < many->n; i++) {
    entry_t *entry = &many->entries[i];
    belay__served_t served;
    entry->first = (uint32_t)n;
    entry->waiter.late = (uint8_t)cache->options.late;
    if (belay__cache_serve_local(cache, entry->key, entry->key_len, now, &served)) {
      serve(entry, served);
      belay__flight_refresh_early(cache, entry->key, entry->key_len, served.record);
      continue;
    }
    size_t more = belay__look_calls(cache, &entry->look, BELAY__LOOK_AT_ANY, now, entry->key,
                                    entry->key_len, calls + n);
    if (more == 0) {
      belay__calls_discard(calls, n);
      return BELAY_ENOMEM;
    }
    entry->asked = true;
    n += more;
  }
  many->calls = (uint32_t)n;
  *len = n;
  return 0;
}

static int ask(belay_cache_t *cache, belay__pending_t *pending, uint64_t now,
               belay__call_t **calls) {
  size_t n;
  int error = build(cache, many_of(pending), now, calls, &n);
  if (error != 0)
    return error;
  if (n == 0) {
    belay__request_end(pending, 0);
    return 0;
  }
  if (!belay__servertime_known_at(&cache->time, &cache->handle, now)) {
    calls[n] = belay__servertime_call(&cache->time, &cache->handle);
    if (calls[n] == NULL) {
      belay__calls_discard(calls, n);
      return BELAY_ENOMEM;
    }
    n++;
  }
  pending->fail_fast = belay__cache_fails_fast(cache);
  return belay__request_send_all(pending, calls, n);
}

/* It could not be begun. */
static void forget(belay_cache_t *cache, belay__pending_t *pending) {
  many_t *many = many_of(pending);
  for (size_t i = 0; many != NULL && i < many->n; i++)
    belay__record_drop(cache->handle.client->belay, many->entries[i].served.record);
  belay__request_forget(pending);
}

int belay_cache_get_many(belay_cache_t *cache, belay_request_t *request, const belay_bytes_t *keys,
                         size_t n, belay_cache_many_cb cb) {
  belay__pending_t *pending;
  int error = check(cache, request, keys, n, cb != NULL);
  if (error == 0)
    error = belay__handle_begin(&cache->handle, request, &many_ops, (void (*)(void))cb, &pending);
  if (error != 0)
    return error;
  belay_t *belay = cache->handle.client->belay;
  size_t room = (n * BELAY__LOOK_CALLS_MAX + 1) * sizeof(belay__call_t *);
  belay__call_t **calls = belay__alloc(belay, room);
  many_t *many = new_many(pending, keys, n);
  if (calls == NULL || many == NULL) {
    belay__free(belay, calls, room);
    forget(cache, pending);
    return BELAY_ENOMEM;
  }
  uint64_t now = belay__now(belay);
  belay__cache_deadlines(cache, pending, now, &many->deadline);
  belay__cache_listen(cache);
  error = ask(cache, pending, now, calls);
  belay__free(belay, calls, room);
  if (error != 0)
    forget(cache, pending);
  else
    cache->stats.gets += n;
  return error;
}
