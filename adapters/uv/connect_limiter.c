#include "uv/connect_limiter.h"

/* Largest burst of connects: the number for a fifth of a second */
#define BURST (1000 * BELAY__MS / 5)

static belay__list_t *pop_slot(belay__connect_limiter_t *limiter) {
  belay__list_t *node = belay__list_pop(&limiter->ahead);
  return node != NULL ? node : belay__list_pop(&limiter->queue);
}

/* A token bucket kept as a point in time ("generic cell rate algorithm"). `until` is the time up
 * to which slots are given away, if they had been spaced evenly. The next slot is due when
 * `until` is at most BURST ahead of now. */
static void set_timer(belay__connect_limiter_t *limiter) {
  belay_t *belay = limiter->belay;
  uint64_t now = belay__now(belay);
  if (belay__list_empty(&limiter->ahead) && belay__list_empty(&limiter->queue))
    belay__timer_stop(belay, BELAY__RANK_OTHER, &limiter->timer);
  else
    belay__timer_set(belay, BELAY__RANK_OTHER, &limiter->timer,
                     limiter->until > now + BURST ? limiter->until - BURST : now);
}

static void on_timer(belay__timer_t *timer) {
  belay__connect_limiter_t *limiter = BELAY__CONTAINER(timer, belay__connect_limiter_t, timer);
  belay_t *belay = limiter->belay;
  uint64_t now = belay__now(belay);
  if (limiter->until < now)
    limiter->until = now;
  for (belay__list_t *node; limiter->until <= now + BURST && (node = pop_slot(limiter)) != NULL;) {
    belay__connect_slot_t *slot = BELAY__CONTAINER(node, belay__connect_slot_t, node);
    limiter->until += 1000 * BELAY__MS / belay->reconnects_per_s;
    slot->on_slot(slot);
  }
  set_timer(limiter);
}

void belay__connect_limiter_init(belay__connect_limiter_t *limiter, belay_t *belay) {
  *limiter = (belay__connect_limiter_t){.belay = belay, .timer = {.fire = on_timer}};
  belay__list_init(&limiter->ahead);
  belay__list_init(&limiter->queue);
}

void belay__connect_slot_init(belay__connect_slot_t *slot,
                              void (*on_slot)(belay__connect_slot_t *slot)) {
  belay__list_init(&slot->node);
  slot->on_slot = on_slot;
}

void belay__connect_limiter_queue(belay__connect_limiter_t *limiter, belay__connect_slot_t *slot,
                                  bool ahead) {
  if (belay__connect_slot_is_awaited(slot))
    return;
  belay__list_push(ahead ? &limiter->ahead : &limiter->queue, &slot->node);
  if (!belay__timer_is_set(&limiter->timer))
    set_timer(limiter);
}

void belay__connect_limiter_leave(belay__connect_limiter_t *limiter, belay__connect_slot_t *slot) {
  belay__list_remove(&slot->node);
  set_timer(limiter);
}
