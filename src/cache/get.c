/* A get, and a peek. A get is a request:
 *
 *   begun --in the table, fresh--> told
 *     |
 *     +--look--> (CALLING) --fresh, stale--> told, and perhaps loaded again in the background
 *                   |   |
 *                   |   +--neither--> waits in a flight --over, or its time is over--> told
 *                   |
 *                   +--it could not be asked--> what options.away says: told, or waits in a flight
 *
 * A key that is not short is its room. */
#include <string.h>

#include "cache/single_flight.h"
#include "cache/times.h"

#define SHORT_KEY ((size_t)64)

typedef struct get {
  union {
    belay__look_t look;
    belay__waiter_t waiter; /* once it waits */
  };
  belay__served_t served; /* with a reference of its own */
  uint64_t deadline;
  uint16_t key_len;
  uint8_t late;        /* belay_cache_late_t */
  bool waits;          /* or has waited */
  char key[SHORT_KEY]; /* or it is in the room */
} get_t;

_Static_assert(sizeof(get_t) <= BELAY__REQUEST_VALUES * sizeof(int64_t), "it has room");

static get_t *get_of(belay__pending_t *pending) {
  return (get_t *)(void *)pending->values;
}

static const char *key_of(belay__pending_t *pending) {
  const get_t *get = get_of(pending);
  return get->key_len <= SHORT_KEY ? get->key : pending->room;
}

static belay__pending_t *pending_of(belay__waiter_t *waiter) {
  get_t *get = BELAY__CONTAINER(waiter, get_t, waiter);
  return BELAY__CONTAINER((int64_t *)(void *)get, belay__pending_t, values);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* What it comes to; the record is borrowed. */
static void serve(belay__pending_t *pending, belay__served_t served) {
  get_t *get = get_of(pending);
  get->served = served;
  if (served.record != NULL)
    belay__record_hold(served.record);
}

/* PARKED, and waits no more. */
static void end(belay__pending_t *pending, belay__served_t served) {
  belay__timer_stop(pending->client->belay, BELAY__RANK_OTHER, &pending->timer);
  serve(pending, served);
  belay__request_end(pending, served.status);
}

static void tell(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  belay_cache_t *cache = answer->context;
  belay_t *belay = answer->client->belay;
  get_t get;
  belay_cache_result_t result;
  memcpy(&get, answer->values, sizeof get);
  if (get.served.status != answer->status) {
    belay__record_drop(belay, get.served.record); /* canceled */
    get.served = belay__cache_refuse(answer->status, get.served.load_error);
  }
  if (!get.waits)
    belay__record_drop(belay, get.look.record);
  belay__cache_result(cache, &get.served, belay__turn(belay), &result);
  ((belay_cache_cb)cb)(request, result.status, &result);
  belay__record_drop(belay, get.served.record);
}

static void left(belay__pending_t *pending, bool sent) {
  (void)sent;
  belay__timer_stop(pending->client->belay, BELAY__RANK_OTHER, &pending->timer);
  if (get_of(pending)->waits)
    belay__flight_leave(&get_of(pending)->waiter);
}

/* ---- waiting ------------------------------------------------------------------------------------------- */

static void on_over(belay__waiter_t *waiter, const belay__served_t *served) {
  belay__pending_t *pending = pending_of(waiter);
  belay_cache_t *cache = pending->context;
  belay__cache_count(cache, served, false);
  end(pending, *served);
}

static void on_late(belay__timer_t *timer) {
  belay__pending_t *pending = BELAY__CONTAINER(timer, belay__pending_t, timer);
  belay_cache_t *cache = pending->context;
  belay__waiter_t *waiter = &get_of(pending)->waiter;
  belay__served_t served = belay__waiter_late(waiter);
  belay__cache_count(cache, &served, false);
  if (served.record != NULL)
    belay__record_hold(served.record); /* over the end of the flight */
  belay__flight_leave(waiter);
  end(pending, served);
  belay__record_drop(pending->client->belay, served.record);
}

/* It becomes a waiter, and has no look any more. */
static belay__waiter_t *begin_to_wait(belay__pending_t *pending) {
  get_t *get = get_of(pending);
  get->waits = true;
  get->waiter = (belay__waiter_t){.late = get->late, .end = on_over};
  belay__list_init(&get->waiter.node);
  pending->timer.fire = on_late;
  belay__timer_set(pending->client->belay, BELAY__RANK_OTHER, &pending->timer, get->deadline);
  return &get->waiter;
}

/* It has joined a flight, and may be over already; or could not. */
static int joined(belay__pending_t *pending, int error) {
  if (error == 0)
    return BELAY__REQUEST_PARK;
  belay__timer_stop(pending->client->belay, BELAY__RANK_OTHER, &pending->timer);
  return error;
}

static int join(belay__pending_t *pending) {
  belay_cache_t *cache = pending->context;
  belay__look_t look = get_of(pending)->look;
  cache->stats.misses++;
  belay__waiter_t *waiter = begin_to_wait(pending);
  int error =
      belay__flight_join(cache, key_of(pending), get_of(pending)->key_len, &look, NULL, waiter);
  belay__look_drop(cache, &look); /* what the flight has not taken */
  return joined(pending, error);
}

static int join_away(belay__pending_t *pending, int status) {
  belay_cache_t *cache = pending->context;
  uint64_t asked = get_of(pending)->look.asked;
  belay__look_drop(cache, &get_of(pending)->look);
  belay__waiter_t *waiter = begin_to_wait(pending);
  int error =
      belay__flight_join_away(cache, key_of(pending), get_of(pending)->key_len, asked, waiter);
  return joined(pending, error == BELAY_EBUSY ? status : error);
}

/* ---- the look ------------------------------------------------------------------------------------------ */

static int read_reply(belay__pending_t *pending, const belay__call_t *call,
                      const belay__reply_t *reply) {
  return belay__look_step_read(pending->context, &get_of(pending)->look, pending, call, reply);
}

static int after_look(belay__pending_t *pending) {
  get_t *get = get_of(pending);
  belay__served_t served;
  if (!belay__flight_spare(pending->context, key_of(pending), get->key_len, &get->look, &served))
    return join(pending);
  serve(pending, served);
  return served.status;
}

/* It could not be taken. */
static int after_failure(belay__pending_t *pending, int status) {
  belay_cache_t *cache = pending->context;
  if (!belay__cache_is_away(status))
    return status;
  cache->stats.away++;
  belay__served_t served =
      belay__cache_serve_away(cache, key_of(pending), get_of(pending)->key_len, status);
  belay__cache_count(cache, &served, true);
  if (served.record != NULL) {
    serve(pending, served);
    return served.status;
  }
  if (cache->options.away != BELAY_CACHE_AWAY_LOAD)
    return status;
  return join_away(pending, status);
}

static const belay__request_ops_t get_ops = {.read = read_reply,
                                             .next = after_look,
                                             .recover = after_failure,
                                             .tell = tell,
                                             .left = left,
                                             .idempotent = true};

/* ---- operations ---------------------------------------------------------------------------------------- */

/* The table's; true: the request is over. */
static bool serve_local(belay__pending_t *pending, uint64_t now) {
  belay_cache_t *cache = pending->context;
  belay__served_t served;
  if (!belay__cache_serve_local(cache, key_of(pending), get_of(pending)->key_len, now, &served))
    return false;
  serve(pending, served);
  belay__flight_refresh_early(cache, key_of(pending), get_of(pending)->key_len, served.record);
  belay__request_end(pending, served.status);
  return true;
}

static int begin(belay_cache_t *cache, belay_request_t *request, uint64_t now, const char *key,
                 size_t key_len, belay_cache_late_t late, belay_cache_cb cb,
                 belay__pending_t **out) {
  belay__handle_t *handle = &cache->handle;
  int error = belay__handle_begin(handle, request, &get_ops, (void (*)(void))cb, out);
  if (error != 0)
    return error;
  belay__pending_t *pending = *out;
  get_t *get = get_of(pending);
  char *room = key_len <= SHORT_KEY ? get->key : belay__request_room(pending, key_len);
  if (room == NULL) {
    belay__request_forget(pending);
    return BELAY_ENOMEM;
  }
  memcpy(room, key, key_len);
  get->key_len = (uint16_t)key_len;
  get->late = (uint8_t)late;
  belay__cache_deadlines(cache, pending, now, &get->deadline);
  return 0;
}

int belay_cache_get_late(belay_cache_t *cache, belay_request_t *request, const char *key,
                         size_t key_len, belay_cache_late_t late, belay_cache_cb cb) {
  key_len = belay__text_len(key, key_len);
  belay__pending_t *pending;
  if (cache == NULL)
    return BELAY_EINVAL;
  int error = belay__handle_check_key(&cache->handle, request, key, &key_len, cb != NULL);
  if (error == 0)
    error = belay__check_range(cache->handle.client->belay, "late", (int64_t)late,
                               BELAY_CACHE_LATE_STALE, BELAY_CACHE_LATE_LOAD);
  if (error != 0)
    return error;
  uint64_t now = belay__now(cache->handle.client->belay);
  error = begin(cache, request, now, key, key_len, late, cb, &pending);
  if (error != 0)
    return error;
  cache->stats.gets++;
  belay__cache_listen(cache);
  if (serve_local(pending, now))
    return 0;
  error = belay__look_send(cache, pending, &get_of(pending)->look, BELAY__LOOK_AT_ANY, now, key,
                           key_len);
  if (error != 0)
    belay__request_forget(pending);
  return error;
}

int belay_cache_get(belay_cache_t *cache, belay_request_t *request, const char *key, size_t key_len,
                    belay_cache_cb cb) {
  return cache == NULL
             ? BELAY_EINVAL
             : belay_cache_get_late(cache, request, key, key_len, cache->options.late, cb);
}

int belay_cache_peek(belay_cache_t *cache, const char *key, size_t key_len,
                     belay_cache_result_t *result) {
  key_len = belay__text_len(key, key_len);
  int error = belay__handle_check((const belay__handle_t *)cache);
  if (error != 0)
    return error;
  belay_t *belay = cache->handle.client->belay;
  if (key == NULL || key_len < 1 || key_len > BELAY_CACHE_KEY_MAX || result == NULL) {
    belay__detail(belay, "key: not 1 to %zu bytes, or no result", BELAY_CACHE_KEY_MAX);
    return BELAY_EINVAL;
  }
  belay__served_t served;
  uint64_t now = belay__now(belay);
  if (!belay__cache_serve_local(cache, key, key_len, now, &served))
    return BELAY_EAGAIN;
  cache->stats.gets++;
  belay__cache_result(cache, &served, now, result);
  return served.status;
}
