/* Pinned keys: a timer for each.
 *
 *   pinned --at once--> a load that looks the key up, and loads it if little time is left --over--> timer --+
 *                        ^                                                                                  |
 *                        +----------------------------------------------------------------------------------+
 *
 * Every other load of the key sets the timer, too. Of many processes that pin a key one loads
 * it: each looks the key up at a random time, and later ones find it fresh. */
#include <string.h>

#include "cache/join.h"
#include "cache/serve.h"
#include "core/loop/backoff.h"

#define AGAIN_MS 1000 /* delay while the time left is not known, or short; at most refresh_ms */

typedef struct pin {
  belay__entry_t entry; /* in cache->pins */
  belay__child_t child;
  belay__timer_t timer;
  belay_cache_t *cache;
  size_t key_len;
  char key[];
} pin_t;

static bool is_of(const belay__entry_t *entry, const void *key, size_t len) {
  const pin_t *pin = BELAY__CONTAINER(entry, pin_t, entry);
  return pin->key_len == len && memcmp(pin->key, key, len) == 0;
}

static pin_t *find(belay_cache_t *cache, const char *key, size_t len, uint64_t *hash) {
  *hash = belay__table_hash(cache->handle.client->belay, &cache->pins, key, len);
  belay__entry_t *entry = belay__table_find(&cache->pins, *hash, is_of, key, len);
  return entry == NULL ? NULL : BELAY__CONTAINER(entry, pin_t, entry);
}

/* At a random moment between the two. */
static void set(pin_t *pin, int64_t from_ms, int64_t to_ms) {
  belay_t *belay = pin->cache->handle.client->belay;
  belay__delay_t delay = belay__delay_ms((uint64_t)from_ms, (uint64_t)to_ms);
  belay__timer_set(belay, BELAY__RANK_OTHER, &pin->timer,
                   belay__now(belay) + belay__delay_draw(belay, delay));
}

/* The timer is set to the first half of the lead, so that a load has time. */
static void on_load_over(belay_cache_t *cache, const char *key, size_t key_len, int64_t left_ms) {
  uint64_t hash;
  pin_t *pin = cache->pins.count == 0 ? NULL : find(cache, key, key_len, &hash);
  if (pin == NULL)
    return;
  if (left_ms > BELAY__CACHE_LIFE_MAX_MS)
    left_ms = BELAY__CACHE_LIFE_MAX_MS; /* a record may have any time in it */
  int64_t lead_ms = cache->options.refresh_ms, again_ms = lead_ms < AGAIN_MS ? lead_ms : AGAIN_MS;
  if (left_ms > lead_ms)
    set(pin, left_ms - lead_ms, left_ms - lead_ms / 2);
  else
    set(pin, again_ms / 2, again_ms);
}

static void on_timer(belay__timer_t *timer) {
  pin_t *pin = BELAY__CONTAINER(timer, pin_t, timer);
  belay_cache_t *cache = pin->cache;
  int64_t lead_ms = cache->options.refresh_ms;
  set(pin, lead_ms, lead_ms + AGAIN_MS); /* if the load does not begin */
  (void)belay__load_check(cache, pin->key, pin->key_len, lead_ms);
}

static void unpin(pin_t *pin) {
  belay_cache_t *cache = pin->cache;
  belay_t *belay = cache->handle.client->belay;
  belay__timer_stop(belay, BELAY__RANK_OTHER, &pin->timer);
  belay__table_remove(&cache->pins, &pin->entry);
  belay__handle_detach(&cache->handle, &pin->child);
  belay__free(belay, pin, sizeof *pin + pin->key_len);
}

static void on_close(belay__child_t *child) {
  unpin(BELAY__CONTAINER(child, pin_t, child));
}

/* ---- operations ---------------------------------------------------------------------------------------- */

static int check(const belay_cache_t *cache, const char *key, size_t key_len) {
  int error = belay__handle_check((const belay__handle_t *)cache);
  return error != 0 ? error
                    : belay__check_bytes(cache->handle.client->belay, "key",
                                         belay_bytes(key, key_len), 1, BELAY_CACHE_KEY_MAX);
}

int belay_cache_keep_fresh(belay_cache_t *cache, belay_bytes_t key) {
  uint64_t hash;
  int error = check(cache, key.data, key.len);
  if (error != 0)
    return error;
  belay_t *belay = cache->handle.client->belay;
  if (!belay__cache_loads(cache))
    return belay__invalid(belay, "load: NULL, and so is load_many");
  if (find(cache, key.data, key.len, &hash) != NULL)
    return 0;
  pin_t *pin = belay__alloc(belay, sizeof *pin + key.len);
  if (pin == NULL)
    return BELAY_ENOMEM;
  *pin =
      (pin_t){.cache = cache, .child.close = on_close, .timer.fire = on_timer, .key_len = key.len};
  memcpy(pin->key, key.data, key.len);
  if (belay__table_add(belay, &cache->pins, &pin->entry, hash) != 0) {
    belay__free(belay, pin, sizeof *pin + key.len);
    return BELAY_ENOMEM;
  }
  belay__handle_attach(&cache->handle, &pin->child);
  cache->on_load_over = on_load_over;
  belay__cache_listen(cache);
  belay__timer_set(belay, BELAY__RANK_OTHER, &pin->timer, belay__now(belay));
  return 0;
}

int belay_cache_let_expire(belay_cache_t *cache, belay_bytes_t key) {
  uint64_t hash;
  int error = check(cache, key.data, key.len);
  if (error != 0)
    return error;
  pin_t *pin = find(cache, key.data, key.len, &hash);
  if (pin == NULL)
    return BELAY_ESTATE;
  unpin(pin);
  return 0;
}
