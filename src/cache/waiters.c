/* Who waits in a flight, what he is served when it fails him, and how flights begin. */
#include <string.h>

#include "cache/single_flight.h"
#include "cache/times.h"

/* ---- who waits ----------------------------------------------------------------------------------------- */

static belay_t *belay_of(const belay__flight_t *flight) {
  return flight->cache->handle.client->belay;
}

belay__waiter_t *belay__flight_first(const belay__flight_t *flight) {
  return belay__list_empty(&flight->waiters)
             ? NULL
             : BELAY__CONTAINER(flight->waiters.next, belay__waiter_t, node);
}

/* Who was called before the load began, and heard of it later that there is nothing, is of those who came before it. */
static void add_waiter(belay__flight_t *flight, belay__waiter_t *waiter, uint64_t asked) {
  bool before = flight->load != NULL && asked < flight->began;
  waiter->flight = flight;
  waiter->turn = before ? flight->loaded_turn - 1 : flight->turn;
  waiter->since = belay__now(belay_of(flight));
  if (before)
    belay__list_push_front(&flight->waiters, &waiter->node);
  else
    belay__list_push(&flight->waiters, &waiter->node);
}

void belay__flight_leave(belay__waiter_t *waiter) {
  if (waiter->flight == NULL)
    return;
  waiter->flight = NULL;
  belay__list_remove(&waiter->node);
}

void belay__waiter_end(belay__waiter_t *waiter, belay__served_t served) {
  belay__flight_leave(waiter);
  waiter->end(waiter, &served);
}

void belay__flight_serve(belay__flight_t *flight, uint64_t turn, belay__served_t served) {
  for (belay__waiter_t *waiter;
       (waiter = belay__flight_first(flight)) != NULL && waiter->turn < turn;)
    belay__waiter_end(waiter, served);
}

/* What was kept may have gone meanwhile. */
belay__served_t belay__waiter_fallback(const belay__waiter_t *waiter, int reason, int load_error) {
  const belay__flight_t *flight = waiter->flight;
  const belay_cache_t *cache = flight->cache;
  belay__freshness_t freshness = BELAY__GONE;
  if (flight->kept != NULL)
    freshness = belay__fresh_judge(flight->kept, &cache->terms, belay__cache_now_ms(cache), 1.0);
  if (freshness == BELAY__GONE)
    return belay__cache_refuse(reason, load_error);
  if (freshness == BELAY__FRESH)
    return belay__cache_serve(flight->kept, BELAY_CACHE_FROM_SERVER, false, 0, 0);
  return belay__cache_serve(flight->kept, BELAY_CACHE_FROM_SERVER, true, reason, load_error);
}

belay__served_t belay__waiter_late(const belay__waiter_t *waiter) {
  return waiter->late == BELAY_CACHE_LATE_FAIL ? belay__cache_refuse(BELAY_ETIMEDOUT, 0)
                                               : belay__waiter_fallback(waiter, BELAY_ETIMEDOUT, 0);
}

void belay__flight_fall_back(belay__flight_t *flight, uint64_t turn, int reason, int load_error) {
  for (belay__waiter_t *waiter;
       (waiter = belay__flight_first(flight)) != NULL && waiter->turn < turn;)
    belay__waiter_end(waiter, belay__waiter_fallback(waiter, reason, load_error));
}

void belay__flight_adopt(belay__flight_t *flight, belay__look_t *look) {
  if (look->asked < flight->seen_asked)
    return;
  belay__record_drop(belay_of(flight), flight->kept);
  flight->seen_asked = look->asked;
  flight->kept = look->record;
  flight->seen = look->seen;
  look->record = NULL;
}

/* ---- flights ------------------------------------------------------------------------------------------- */

static bool is_of(const belay__entry_t *entry, const void *key, size_t len) {
  const belay__flight_t *flight = BELAY__CONTAINER(entry, belay__flight_t, entry);
  return flight->key_len == len && memcmp(flight->key, key, len) == 0;
}

static belay__flight_t *find(belay_cache_t *cache, const char *key, size_t len, uint64_t *hash) {
  *hash = belay__table_hash(cache->handle.client->belay, &cache->flights, key, len);
  belay__entry_t *entry = belay__table_find(&cache->flights, *hash, is_of, key, len);
  return entry == NULL ? NULL : BELAY__CONTAINER(entry, belay__flight_t, entry);
}

/* Not begun yet. */
static belay__flight_t *new_flight(belay_cache_t *cache, const char *key, size_t len,
                                   uint64_t hash) {
  belay_t *belay = cache->handle.client->belay;
  belay__flight_t *flight = belay__alloc(belay, sizeof *flight + len);
  if (flight == NULL)
    return NULL;
  memset(flight, 0, sizeof *flight);
  flight->cache = cache;
  flight->key_len = len;
  flight->left_ms = -1;
  flight->timer.fire = belay__flight_on_timer;
  flight->child.close = belay__flight_on_close;
  memcpy(flight->key, key, len);
  belay__list_init(&flight->waiters);
  belay__list_init(&flight->ready);
  if (belay__table_add(belay, &cache->flights, &flight->entry, hash) != 0) {
    belay__free(belay, flight, sizeof *flight + len);
    return NULL;
  }
  belay__handle_attach(&cache->handle, &flight->child);
  return flight;
}

void belay__flight_free(belay__flight_t *flight) {
  belay_cache_t *cache = flight->cache;
  belay_t *belay = belay_of(flight);
  belay__look_drop(cache, &flight->look);
  belay__record_drop(belay, flight->kept);
  belay__record_drop(belay, flight->loaded);
  belay__handle_detach(&cache->handle, &flight->child);
  belay__free(belay, flight, sizeof *flight + flight->key_len);
}

int belay__flight_join(belay_cache_t *cache, const char *key, size_t key_len, belay__look_t *look,
                       belay__batch_t *batch, belay__waiter_t *waiter) {
  uint64_t hash;
  if (!belay__cache_loads(cache))
    return BELAY_EABSENT;
  belay__flight_t *flight = find(cache, key, key_len, &hash);
  bool fresh = flight == NULL;
  if (fresh)
    flight = new_flight(cache, key, key_len, hash);
  if (flight == NULL)
    return BELAY_ENOMEM;
  belay__flight_adopt(flight, look);
  add_waiter(flight, waiter, look->asked);
  flight->reached = true;
  if (!fresh) {
    cache->stats.joined++;
    return 0;
  }
  belay__load_join(flight, batch);
  belay__flight_begin(flight);
  return 0;
}

int belay__flight_join_away(belay_cache_t *cache, const char *key, size_t key_len, uint64_t asked,
                            belay__waiter_t *waiter) {
  uint64_t hash;
  belay__flight_t *flight = find(cache, key, key_len, &hash);
  if (flight != NULL) {
    add_waiter(flight, waiter, asked);
    cache->stats.joined++;
    return 0;
  }
  if (!belay__cache_loads(cache))
    return BELAY_EBUSY;
  if (cache->away_loads >= cache->options.max_away_loads)
    return BELAY_EBUSY;
  flight = new_flight(cache, key, key_len, hash);
  if (flight == NULL)
    return BELAY_ENOMEM;
  add_waiter(flight, waiter, asked);
  belay__flight_begin_away(flight);
  return 0;
}

void belay__flight_refresh(belay_cache_t *cache, const char *key, size_t key_len,
                           const belay__look_t *look) {
  uint64_t hash;
  if (!belay__cache_loads(cache))
    return;
  if (find(cache, key, key_len, &hash) != NULL)
    return;
  belay__flight_t *flight = new_flight(cache, key, key_len, hash);
  if (flight == NULL)
    return;
  flight->early = look->freshness == BELAY__EARLY;
  flight->seen = look->seen;
  flight->refresh = true;
  belay__flight_begin(flight);
}

bool belay__flight_spare(belay_cache_t *cache, const char *key, size_t key_len, belay__look_t *look,
                         belay__served_t *served) {
  belay__look_over(cache, look);
  if (!look->behind) /* it would be served for longer than the replica is behind */
    belay__cache_keep_local(cache, key, key_len, look->record, &look->stamp, look->asked);
  if (!belay__fresh_serves(look->freshness))
    return false;
  *served = belay__look_serve(look);
  belay__cache_count(cache, served, true);
  if (look->freshness == BELAY__EARLY || look->freshness == BELAY__STALE)
    belay__flight_refresh(cache, key, key_len, look);
  return true;
}

void belay__flight_refresh_early(belay_cache_t *cache, const char *key, size_t key_len,
                                 const belay__record_t *record) {
  belay__look_t look = {.freshness = BELAY__FRESH};
  if (cache->terms.beta > 0)
    look.freshness = belay__fresh_judge(record, &cache->terms, belay__cache_now_ms(cache),
                                        belay__fresh_random(cache->handle.client->belay));
  if (look.freshness != BELAY__EARLY)
    return;
  look.seen.len = BELAY__RECORD_ID;
  memcpy(look.seen.id, record->id, BELAY__RECORD_ID);
  belay__flight_refresh(cache, key, key_len, &look);
}

int belay__flight_check(belay_cache_t *cache, const char *key, size_t key_len, int64_t lead_ms) {
  uint64_t hash;
  belay__flight_t *flight = find(cache, key, key_len, &hash);
  if (flight != NULL)
    return 0; /* it tells when it is over */
  flight = new_flight(cache, key, key_len, hash);
  if (flight == NULL)
    return BELAY_ENOMEM;
  flight->lead_ms = lead_ms;
  flight->refresh = true;
  belay__flight_begin(flight);
  return 0;
}
