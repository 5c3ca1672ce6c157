/* One key of a get: a lookup, then perhaps a wait.
 *
 *     looked up --found--> served, and perhaps loaded again in the background
 *        |  |
 *        |  +--not found--> waits for a load --the load ends, or the get times out--> served
 *        |
 *        +--no answer--> served, refused, or waits for a load, as options.away says */
#ifndef BELAY_CACHE_GET_H
#define BELAY_CACHE_GET_H

#include "cache/load_state.h"

typedef struct belay__item {
  union {
    belay__lookup_t lookup;
    belay__load_waiter_t waiter; /* valid when the key waits */
  };
  belay__served_t served; /* result, with its own reference to the record */
  uint16_t key_len;
  uint8_t late; /* belay_cache_late_t */
  bool waits;   /* true from the beginning of the wait on, also after it */
} belay__item_t;

typedef void (*belay__item_end_fn)(belay__load_waiter_t *waiter, const belay__served_t *served);

static inline bool belay__item_is_waiting(const belay__item_t *item) {
  return item->waits && item->waiter.load != NULL;
}

/* true if the local table has a fresh record of the key; item->served is set. */
bool belay__item_serve_local(belay_cache_t *cache, belay__item_t *item, const char *key,
                             uint64_t now);

/* The lookup has ended with this status: serves the key, or makes the key wait. group: group of its
 * load, or NULL. end: called when the wait ends; it must call belay__item_end_wait(), and it can
 * run before this function returns. */
void belay__item_settle(belay_cache_t *cache, belay__item_t *item, const char *key, int status,
                        belay__load_group_t *group, belay__item_end_fn end);
/* The load serves the key; or the time of the get is over. */
void belay__item_end_wait(belay__operation_t *operation, belay__item_t *item,
                          const belay__served_t *served);
void belay__item_end_late(belay__operation_t *operation, belay__item_t *item);
void belay__item_cancel_wait(belay__item_t *item);

/* Releases the records. */
void belay__item_release(belay_t *belay, belay__item_t *item);

/* Sets the deadline of the request's calls, and *deadline: of the get, which is later where a
 * load follows a server that does not answer. */
void belay__get_deadlines(const belay_cache_t *cache, belay__operation_t *operation, uint64_t now,
                          uint64_t *deadline);

/* The request waits for loads: its timer is set exactly as long. Returns BELAY__REQUEST_PARK. */
int belay__get_park(belay__operation_t *operation, void (*on_late)(belay__timer_t *),
                    uint64_t deadline);
void belay__get_unpark(belay__operation_t *operation);
/* Ends a request that is PARKED. */
void belay__get_end(belay__operation_t *operation, int status);

#endif /* BELAY_CACHE_GET_H */
