#include "uv/connect_limiter.h"

#define BURST (1000 * BELAY__MS / 5) /* of a second's turns, one part in so many may come at once */

static belay__list_t *next(belay__pace_t *pace) {
  belay__list_t *node = belay__list_pop(&pace->ahead);
  return node != NULL ? node : belay__list_pop(&pace->queue);
}

/* A bucket as a point in time ("generic cell rate algorithm"): up to when turns are given away, if they had come one
 * after the other. So the next one may come when that is no further ahead than a burst. */
static void set_timer(belay__pace_t *pace) {
  belay_t *belay = pace->belay;
  uint64_t now = belay__now(belay);
  if (belay__list_empty(&pace->ahead) && belay__list_empty(&pace->queue))
    belay__timer_stop(belay, BELAY__RANK_OTHER, &pace->timer);
  else
    belay__timer_set(belay, BELAY__RANK_OTHER, &pace->timer,
                     pace->until > now + BURST ? pace->until - BURST : now);
}

static void on_timer(belay__timer_t *timer) {
  belay__pace_t *pace = BELAY__CONTAINER(timer, belay__pace_t, timer);
  belay_t *belay = pace->belay;
  uint64_t now = belay__now(belay);
  if (pace->until < now)
    pace->until = now;
  for (belay__list_t *node; pace->until <= now + BURST && (node = next(pace)) != NULL;) {
    belay__turn_t *turn = BELAY__CONTAINER(node, belay__turn_t, node);
    pace->until += 1000 * BELAY__MS / belay->reconnects_per_s;
    turn->come(turn);
  }
  set_timer(pace);
}

void belay__pace_init(belay__pace_t *pace, belay_t *belay) {
  *pace = (belay__pace_t){.belay = belay, .timer = {.fire = on_timer}};
  belay__list_init(&pace->ahead);
  belay__list_init(&pace->queue);
}

void belay__turn_init(belay__turn_t *turn, void (*come)(belay__turn_t *turn)) {
  belay__list_init(&turn->node);
  turn->come = come;
}

void belay__pace_queue(belay__pace_t *pace, belay__turn_t *turn, bool ahead) {
  if (belay__turn_is_awaited(turn))
    return;
  belay__list_push(ahead ? &pace->ahead : &pace->queue, &turn->node);
  if (!belay__timer_is_set(&pace->timer))
    set_timer(pace);
}

void belay__pace_leave(belay__pace_t *pace, belay__turn_t *turn) {
  belay__list_remove(&turn->node);
  set_timer(pace);
}
