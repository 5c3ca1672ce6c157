/* Clients that want one lock again and again take turns, although the server tells the newest
 * listener of a release first and the one that has just released it could ask before all others. */
#include "support/fixtures/env.h"

enum { CLIENTS = 6, HOLD_MS = 20, WARM = 2 * CLIENTS, GRANTS = 10 * CLIENTS };

typedef struct turns {
  env_t *env;
  contender_t *c[CLIENTS];
  uv_timer_t timer[CLIENTS];
  unsigned grants[CLIENTS], all;
  bool over;
} turns_t;

static unsigned number_of(const turns_t *turns, const contender_t *c) {
  unsigned i = 0;
  while (turns->c[i] != c)
    i++;
  return i;
}

static void on_held(uv_timer_t *timer) {
  contender_t *c = timer->data;
  if (belay_lock_remaining_us(c->lock) > 0)
    assert_error(begin_release(c), 0);
}

static void on_ended(contender_t *c, event_t event) {
  turns_t *turns = c->arg;
  unsigned i = number_of(turns, c);
  if (event != EVENT_ENDED || turns->over)
    return;
  if (belay_lock_remaining_us(c->lock) > 0) {
    turns->all++;
    turns->grants[i] += turns->all > WARM;
    uv_timer_start(&turns->timer[i], on_held, HOLD_MS, 0);
  } else {
    assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  }
}

TEST(turns_of_many_clients) {
  turns_t turns = {.env = env_open(NULL)};
  for (unsigned i = 0; i < CLIENTS; i++) {
    belay_client_t *client = env_connect(turns.env, server_url(turns.env->server), NULL);
    turns.c[i] = contender_of(turns.env, client, "door", NULL);
    turns.c[i]->arg = &turns;
    turns.c[i]->then = on_ended;
    uv_timer_init(&turns.env->loop, &turns.timer[i]);
    turns.timer[i].data = turns.c[i];
    assert_error(begin_acquire(turns.c[i], BELAY_FOREVER), 0);
  }
  env_until(turns.env, turns.all >= WARM + GRANTS);
  turns.over = true;
  unsigned least = GRANTS, most = 0;
  for (unsigned i = 0; i < CLIENTS; i++) {
    least = turns.grants[i] < least ? turns.grants[i] : least;
    most = turns.grants[i] > most ? turns.grants[i] : most;
    uv_close((uv_handle_t *)&turns.timer[i], NULL);
  }
  print_message("grants of a client: %u to %u\n", least, most);
  assert_true(least > 0 && most <= 3 * least);
  env_close(turns.env);
}
