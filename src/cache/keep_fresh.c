/* Fresh keys: keys that the cache loads again before they expire. Each has a timer.
 *
 *     added --at once--> a load, which calls the loader if at most refresh_ms is left
 *                          ^                |
 *                          |                | the load ends
 *                          |                v
 *                          +--it fires-- timer
 *
 * The end of every other load of the key sets the timer, too. If many processes keep a key fresh,
 * one of them loads it: each looks the key up at a random time, and the later ones find it
 * fresh. */
#include "cache/join.h"
#include "cache/serve.h"
#include "core/key/table.h"
#include "core/loop/backoff.h"

/* longest delay in ms to the next load if little or an unknown time is left */
#define AGAIN_MS 1000

typedef struct fresh_key {
  belay__keyed_t keyed; /* first; in cache->fresh_keys */
  belay__child_t child;
  belay__timer_t timer;
  belay_cache_t *cache;
} fresh_key_t;

static fresh_key_t *find_key(belay_cache_t *cache, belay_bytes_t key, uint64_t *hash) {
  *hash = belay__table_hash(cache->handle.client->belay, &cache->fresh_keys, key.data, key.len);
  return belay__keyed_find(&cache->fresh_keys, *hash, key.data, key.len);
}

/* Sets the timer to a random time between from_ms and to_ms from now. */
static void set_timer_between(fresh_key_t *fresh_key, int64_t from_ms, int64_t to_ms) {
  belay_t *belay = fresh_key->cache->handle.client->belay;
  belay__delay_t delay = belay__delay_ms((uint64_t)from_ms, (uint64_t)to_ms);
  belay__timer_set(belay, BELAY__RANK_OTHER, &fresh_key->timer,
                   belay__now(belay) + belay__delay_draw(belay, delay));
}

/* Sets the timer of a fresh key after a load of the key. The timer fires at a random time in the
 * first half of the last refresh_ms of the value, so that a load has time to finish. If less time
 * is left, or the time is unknown, the timer fires within AGAIN_MS. */
static void on_load_over(belay_cache_t *cache, belay_bytes_t key, int64_t left_ms) {
  uint64_t hash;
  fresh_key_t *fresh_key = cache->fresh_keys.count == 0 ? NULL : find_key(cache, key, &hash);
  if (fresh_key == NULL)
    return;
  if (left_ms > BELAY__CACHE_LIFE_MAX_MS)
    /* the checksum of a record does not cover fresh_ms, so left_ms can be too large */
    left_ms = BELAY__CACHE_LIFE_MAX_MS;
  int64_t lead_ms = cache->options.refresh_ms, again_ms = lead_ms < AGAIN_MS ? lead_ms : AGAIN_MS;
  if (left_ms > lead_ms)
    set_timer_between(fresh_key, left_ms - lead_ms, left_ms - lead_ms / 2);
  else
    set_timer_between(fresh_key, again_ms / 2, again_ms);
}

static void on_timer(belay__timer_t *timer) {
  fresh_key_t *fresh_key = BELAY__CONTAINER(timer, fresh_key_t, timer);
  belay_cache_t *cache = fresh_key->cache;
  int64_t lead_ms = cache->options.refresh_ms;
  /* if a load begins, its end sets the timer again; this time is for the case that none begins */
  set_timer_between(fresh_key, lead_ms, lead_ms + AGAIN_MS);
  (void)belay__load_check(cache, belay_bytes(fresh_key->keyed.key, fresh_key->keyed.key_len),
                          lead_ms);
}

static void remove_key(fresh_key_t *fresh_key) {
  belay_cache_t *cache = fresh_key->cache;
  belay_t *belay = cache->handle.client->belay;
  belay__timer_stop(belay, BELAY__RANK_OTHER, &fresh_key->timer);
  belay__table_remove(&cache->fresh_keys, &fresh_key->keyed.entry);
  belay__handle_detach(&cache->handle, &fresh_key->child);
  belay__keyed_free(belay, &fresh_key->keyed);
}

static void on_close(belay__child_t *child) {
  remove_key(BELAY__CONTAINER(child, fresh_key_t, child));
}

/* ---- operations ---- */

static int check_key(const belay_cache_t *cache, belay_bytes_t key) {
  int error = belay__handle_check((const belay__handle_t *)cache);
  return error != 0
             ? error
             : belay__check_bytes(cache->handle.client->belay, "key", key, 1, BELAY_CACHE_KEY_MAX);
}

int belay_cache_keep_fresh(belay_cache_t *cache, belay_bytes_t key) {
  uint64_t hash;
  int error = check_key(cache, key);
  if (error != 0)
    return error;
  belay_t *belay = cache->handle.client->belay;
  if (!belay__cache_loads(cache))
    return belay__invalid(belay, "load: NULL, and so is load_many");
  if (find_key(cache, key, &hash) != NULL)
    return 0;
  fresh_key_t *fresh_key =
      belay__keyed_new(belay, &cache->fresh_keys, hash, sizeof *fresh_key, key.data, key.len);
  if (fresh_key == NULL)
    return BELAY_ENOMEM;
  fresh_key->cache = cache;
  fresh_key->child.close = on_close;
  fresh_key->timer.fire = on_timer;
  belay__handle_attach(&cache->handle, &fresh_key->child);
  cache->on_load_over = on_load_over;
  belay__cache_subscribe(cache);
  belay__timer_set(belay, BELAY__RANK_OTHER, &fresh_key->timer, belay__now(belay));
  return 0;
}

int belay_cache_let_expire(belay_cache_t *cache, belay_bytes_t key) {
  uint64_t hash;
  int error = check_key(cache, key);
  if (error != 0)
    return error;
  fresh_key_t *fresh_key = find_key(cache, key, &hash);
  if (fresh_key == NULL)
    return BELAY_ESTATE;
  remove_key(fresh_key);
  return 0;
}
