#include "cache/waiters.h"

belay__load_waiter_t *belay__load_first(const belay__load_t *load) {
  return belay__list_empty(&load->waiters)
             ? NULL
             : BELAY__CONTAINER(load->waiters.next, belay__load_waiter_t, node);
}

void belay__load_add_waiter(belay__load_t *load, belay__load_waiter_t *waiter, uint64_t begun_at) {
  bool before = load->load_ref != NULL && begun_at < load->began_at;
  waiter->load = load;
  waiter->seq = before ? load->loaded_seq - 1 : load->seq;
  waiter->joined_at = belay__now(belay__load_belay(load));
  if (before)
    belay__list_push_front(&load->waiters, &waiter->node);
  else
    belay__list_push(&load->waiters, &waiter->node);
}

void belay__load_leave(belay__load_waiter_t *waiter) {
  if (waiter->load == NULL)
    return;
  waiter->load = NULL;
  belay__list_remove(&waiter->node);
}

void belay__load_waiter_end(belay__load_waiter_t *waiter, belay__served_t served) {
  belay__load_leave(waiter);
  waiter->end(waiter, &served);
}

void belay__load_serve(belay__load_t *load, uint64_t seq, belay__served_t served) {
  for (belay__load_waiter_t *waiter;
       (waiter = belay__load_first(load)) != NULL && waiter->seq < seq;)
    belay__load_waiter_end(waiter, served);
}

/* Judges load->fallback again, because the record may have expired since the lookup. */
belay__served_t belay__load_waiter_fallback(const belay__load_waiter_t *waiter, int reason,
                                            int load_error) {
  const belay__load_t *load = waiter->load;
  const belay_cache_t *cache = load->cache;
  belay__freshness_t freshness = BELAY__EXPIRED;
  if (load->fallback != NULL)
    freshness =
        belay__fresh_judge(load->fallback, &cache->options, belay__cache_now_ms(cache), 1.0);
  if (freshness == BELAY__EXPIRED)
    return belay__cache_refuse(reason, load_error);
  if (freshness == BELAY__FRESH)
    return belay__cache_serve(load->fallback, BELAY_CACHE_FROM_SERVER, false, 0, 0);
  return belay__cache_serve(load->fallback, BELAY_CACHE_FROM_SERVER, true, reason, load_error);
}

belay__served_t belay__load_waiter_late(const belay__load_waiter_t *waiter) {
  return waiter->late == BELAY_CACHE_LATE_FAIL
             ? belay__cache_refuse(BELAY_ETIMEDOUT, 0)
             : belay__load_waiter_fallback(waiter, BELAY_ETIMEDOUT, 0);
}

void belay__load_fall_back(belay__load_t *load, uint64_t seq, int reason, int load_error) {
  for (belay__load_waiter_t *waiter;
       (waiter = belay__load_first(load)) != NULL && waiter->seq < seq;)
    belay__load_waiter_end(waiter, belay__load_waiter_fallback(waiter, reason, load_error));
}

void belay__load_take_lookup(belay__load_t *load, belay__lookup_t *lookup) {
  if (lookup->asked_at < load->seen_at)
    return;
  belay__record_release(belay__load_belay(load), load->fallback);
  load->seen_at = lookup->asked_at;
  load->fallback = lookup->record;
  load->seen_id = lookup->seen_id;
  lookup->record = NULL;
}
