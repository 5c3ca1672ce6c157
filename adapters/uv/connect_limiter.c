#include "uv/connect_limiter.h"

/* Largest burst of connects: the number for a fifth of a second */
#define BURST (1000 * BELAY__MS / 5)

static belay__list_t *next(belay__connect_limiter_t *connect_limiter) {
  belay__list_t *node = belay__list_pop(&connect_limiter->ahead);
  return node != NULL ? node : belay__list_pop(&connect_limiter->queue);
}

/* A token bucket kept as a point in time ("generic cell rate algorithm"). `until` is the time up
 * to which slots are given away, if they had been spaced evenly. The next slot is due when
 * `until` is at most BURST ahead of now. */
static void set_timer(belay__connect_limiter_t *connect_limiter) {
  belay_t *belay = connect_limiter->belay;
  uint64_t now = belay__now(belay);
  if (belay__list_empty(&connect_limiter->ahead) && belay__list_empty(&connect_limiter->queue))
    belay__timer_stop(belay, BELAY__RANK_OTHER, &connect_limiter->timer);
  else
    belay__timer_set(belay, BELAY__RANK_OTHER, &connect_limiter->timer,
                     connect_limiter->until > now + BURST ? connect_limiter->until - BURST : now);
}

static void on_timer(belay__timer_t *timer) {
  belay__connect_limiter_t *connect_limiter =
      BELAY__CONTAINER(timer, belay__connect_limiter_t, timer);
  belay_t *belay = connect_limiter->belay;
  uint64_t now = belay__now(belay);
  if (connect_limiter->until < now)
    connect_limiter->until = now;
  for (belay__list_t *node;
       connect_limiter->until <= now + BURST && (node = next(connect_limiter)) != NULL;) {
    belay__connect_slot_t *turn = BELAY__CONTAINER(node, belay__connect_slot_t, node);
    connect_limiter->until += 1000 * BELAY__MS / belay->reconnects_per_s;
    turn->come(turn);
  }
  set_timer(connect_limiter);
}

void belay__connect_limiter_init(belay__connect_limiter_t *connect_limiter, belay_t *belay) {
  *connect_limiter = (belay__connect_limiter_t){.belay = belay, .timer = {.fire = on_timer}};
  belay__list_init(&connect_limiter->ahead);
  belay__list_init(&connect_limiter->queue);
}

void belay__connect_slot_init(belay__connect_slot_t *turn,
                              void (*come)(belay__connect_slot_t *turn)) {
  belay__list_init(&turn->node);
  turn->come = come;
}

void belay__connect_limiter_queue(belay__connect_limiter_t *connect_limiter,
                                  belay__connect_slot_t *turn, bool ahead) {
  if (belay__connect_slot_is_awaited(turn))
    return;
  belay__list_push(ahead ? &connect_limiter->ahead : &connect_limiter->queue, &turn->node);
  if (!belay__timer_is_set(&connect_limiter->timer))
    set_timer(connect_limiter);
}

void belay__connect_limiter_leave(belay__connect_limiter_t *connect_limiter,
                                  belay__connect_slot_t *turn) {
  belay__list_remove(&turn->node);
  set_timer(connect_limiter);
}
