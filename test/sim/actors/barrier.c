/* Actors that wait at a barrier, again and again. */
#include "belay/latch.h"

#include "sim/actors/actor.h"

#define GENERATIONS 8192
#define UNCERTAIN 64
#define SLACK (5 * SIM_S) /* time that an opening may need to reach waiters */

enum { WAIT };

typedef struct shared {
  unsigned passed[GENERATIONS];  /* reported passes, by generation */
  uint64_t uncertain[UNCERTAIN]; /* ends of waits whose arrival is unknown */
  unsigned next;
} shared_t;

typedef struct barrier {
  sim_actor_t base;    /* first */
  uint64_t generation; /* the last one that it passed */
} barrier_t;

static shared_t *shared_of(sim_world_t *world) {
  return sim_shared(world, sizeof(shared_t));
}

/* ---- rules ---- */

static void note_uncertain(sim_world_t *world) {
  shared_t *shared = shared_of(world);
  shared->uncertain[shared->next++ % UNCERTAIN] = world->now;
}

/* The parties that may have arrived: reported passes, waiters whose arrival may be counted, and
 * parties of unknown state. */
static unsigned count_possible_arrivals(sim_world_t *world, uint64_t generation) {
  const shared_t *shared = shared_of(world);
  unsigned n = 0;
  for (unsigned i = 0; i < sim_actors_count(world); i++) {
    const barrier_t *other = (const barrier_t *)sim_actor_at(world, i);
    n += other != NULL && (other->base.op[WAIT].pending || other->generation >= generation);
  }
  uint64_t keeps = (uint64_t)world->scenario->waiter_ttl_ms * SIM_MS + SLACK;
  for (unsigned i = 0; i < UNCERTAIN; i++)
    n += shared->uncertain[i] > 0 && shared->uncertain[i] + keeps >= world->now;
  return n;
}

/* A generation has exactly n parties: no more are reported, and at least n may have arrived. */
static void check_passed(barrier_t *self, uint64_t generation) {
  sim_world_t *world = self->base.world;
  shared_t *shared = shared_of(world);
  if (generation == 0 || generation >= GENERATIONS || generation <= self->generation) {
    sim_violation(world, "count: %s passes in generation %llu after %llu", self->base.who,
                  (unsigned long long)generation, (unsigned long long)self->generation);
    return;
  }
  self->generation = generation;
  if (++shared->passed[generation] > world->scenario->limit)
    sim_violation(world, "count: %s passes as number %u of generation %llu", self->base.who,
                  shared->passed[generation], (unsigned long long)generation);
  unsigned arrivals = count_possible_arrivals(world, generation);
  if (arrivals < world->scenario->limit)
    sim_violation(world, "count: %s passes, and at most %u have arrived", self->base.who, arrivals);
}

static void ended(sim_actor_t *actor) {
  if (actor->op[WAIT].pending)
    note_uncertain(actor->world);
}

/* ---- actions ---- */

SIM_ACTOR_CLOSE(barrier)

static int make(sim_actor_t *actor) {
  const sim_scenario_t *scenario = actor->world->scenario;
  belay_latch_options_t options;
  belay_latch_options_init(&options);
  options.count = scenario->limit;
  options.waiter_ttl_ms = scenario->waiter_ttl_ms;
  SIM_SET_POLLS(&options, scenario);
  int error = belay_barrier_new(actor->process->client[0], belay_string("b"), &options,
                                (belay_barrier_t **)&actor->handle);
  if (error == 0)
    belay_barrier_set_data(actor->handle, actor);
  return error;
}

static void on_passed(belay_barrier_t *barrier, int status, uint64_t generation) {
  sim_actor_t *actor = belay_barrier_data(barrier);
  sim_actor_ended(actor, WAIT, status);
  if (status == 0) {
    sim_actor_granted(actor);
    check_passed((barrier_t *)actor, generation);
    actor->served |= actor->healing;
  } else {
    note_uncertain(actor->world);
  }
  sim_actor_think(actor);
}

/* After its timeout a wait asks whether it was too late to withdraw, so it has no limit. */
static void wait(sim_actor_t *actor) {
  uint64_t most = actor->world->scenario->wait_ms;
  bool forever = actor->healing || sim_actor_chance(actor, 500);
  int64_t wait_ms = forever ? BELAY_FOREVER : (int64_t)sim_actor_between(actor, 1, most);
  if (SIM_START(actor, WAIT, BELAY_FOREVER, "wait", BELAY_ESTATE,
                belay_barrier_wait(actor->handle, wait_ms, on_passed)) &&
      !actor->healing && sim_actor_chance(actor, 100))
    sim_actor_later(actor, sim_actor_between(actor, 0, most * SIM_MS));
}

static void cancel(sim_actor_t *actor) {
  if (!actor->healing &&
      SIM_CALL(actor, "cancel", BELAY_ESTATE, belay_barrier_cancel(actor->handle)))
    sim_actor_canceled(actor, WAIT);
}

static void act(sim_actor_t *actor) {
  if (sim_actor_is_closing(actor))
    return;
  if (actor->handle == NULL) {
    sim_actor_make(actor);
    sim_actor_think(actor);
  } else if (actor->op[WAIT].pending && sim_actor_chance(actor, 800)) {
    cancel(actor);
  } else if (!actor->healing && sim_actor_chance(actor, 20)) {
    sim_actor_close(actor);
  } else if (!actor->op[WAIT].pending) {
    wait(actor);
  }
}

const sim_actor_type_t sim_barrier_type = {
    .size = sizeof(barrier_t),
    .op = {"wait", "close"},
    .ends = {[WAIT] = {BELAY_ETIMEDOUT}},
    .patient = true,
    .make = make,
    .close = close_barrier,
    .act = act,
    .ended = ended,
};
