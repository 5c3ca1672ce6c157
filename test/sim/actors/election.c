/* Actors that stand for election, lead for a while, and observe the leader. */
#include "belay/election.h"

#include <string.h>

#include "sim/actors/actor.h"
#include "sim/check/check_state.h"

#define TERMS 256 /* the latest */

enum { CAMPAIGN, RESIGN };

typedef struct shared {
  uint64_t term; /* the largest that was reported to a leader */
  struct {
    uint64_t term;
    char who[16];
  } of[TERMS]; /* the leader of each term, by reports to leaders and observers */
  unsigned next;
} shared_t;

typedef struct election {
  sim_actor_t base; /* first */
  bool leads, observes, resigned;
  uint64_t term, observed_term; /* its own; the largest that it has observed */
  uint64_t seen;                /* the deadline at the last check */
  uint64_t lead_until;
} election_t;

static shared_t *shared_of(sim_world_t *world) {
  return sim_shared(world, sizeof(shared_t));
}

static uint64_t remaining(const election_t *self) {
  bool leads = self->leads && !self->base.stopping && self->base.handle != NULL;
  int64_t us = leads ? belay_election_remaining_us(self->base.handle) : 0;
  return us > 0 ? (uint64_t)us * 1000 : 0;
}

/* ---- rules ---- */

/* Each term has one leader in all reports. */
static void check_term(sim_actor_t *actor, uint64_t term, const char *who) {
  shared_t *shared = shared_of(actor->world);
  for (unsigned i = 0; i < TERMS; i++)
    if (shared->of[i].term == term) {
      if (strcmp(shared->of[i].who, who) != 0)
        sim_violation(actor->world,
                      "fencing: %s reports that %s leads in term %llu, which was the term of %s",
                      actor->who, who, (unsigned long long)term, shared->of[i].who);
      return;
    }
  unsigned at = shared->next++ % TERMS;
  shared->of[at].term = term;
  snprintf(shared->of[at].who, sizeof shared->of[at].who, "%s", who);
}

static void check_elected(election_t *self, uint64_t term) {
  sim_actor_t *actor = &self->base;
  sim_world_t *world = actor->world;
  shared_t *shared = shared_of(world);
  uint64_t ahead = actor->process->ahead + actor->process->ahead / 64 + 1000;
  if (term <= shared->term)
    sim_violation(world, "fencing: %s is elected for term %llu, after term %llu", actor->who,
                  (unsigned long long)term, (unsigned long long)shared->term);
  shared->term = term;
  check_term(actor, term, actor->who);
  for (unsigned i = 0; remaining(self) > 1000 && i < sim_actors_count(world); i++) {
    const election_t *other = (const election_t *)sim_actor_at(world, i);
    if (other != NULL && other != self && remaining(other) > ahead)
      sim_violation(world, "exclusion: %s is elected while %s leads for another %.3f ms",
                    actor->who, other->base.who, sim_in_ms(remaining(other)));
  }
}

static void after_turn(sim_actor_t *actor) {
  election_t *self = (election_t *)actor;
  if (self->leads && !actor->stopping)
    sim_actor_check_held(actor, &self->seen, remaining(self));
  if (actor->handle != NULL && sim_actor_is_closing(actor) &&
      belay_election_remaining_us(actor->handle) != 0)
    sim_violation(actor->world, "exclusion: %s leads, and it is closing", actor->who);
}

/* ---- callbacks ---- */

static void on_elected(belay_election_t *handle, uint64_t term) {
  election_t *self = belay_election_data(handle);
  sim_actor_t *actor = &self->base;
  sim_world_t *world = actor->world;
  uint64_t now = sim_process_now(actor->process);
  sim_note(world, actor->who, "is elected for term %llu", (unsigned long long)term);
  if (self->leads || sim_actor_is_closing(actor) || actor->stopping || self->resigned)
    sim_violation(world, "callbacks: %s is elected and does not stand", actor->who);
  sim_actor_granted(actor);
  self->leads = true;
  self->term = term;
  self->seen = now + remaining(self);
  check_elected(self, term);
  self->lead_until =
      now + (actor->healing ? 0 : sim_around(&world->random, world->scenario->hold_ms * SIM_MS));
  sim_actor_stall(actor, world->scenario->ttl_max_ms);
  sim_actor_later(actor, 0);
}

static void on_deposed(belay_election_t *handle, belay_lost_t reason) {
  election_t *self = belay_election_data(handle);
  sim_actor_t *actor = &self->base;
  (void)reason;
  sim_note(actor->world, actor->who, "is deposed");
  actor->world->figures.losses++;
  if (!self->leads && !sim_actor_is_closing(actor) && !actor->stopping)
    sim_violation(actor->world, "loss: %s is deposed, and did not lead", actor->who);
  self->leads = false;
  sim_actor_think(actor);
}

static void on_observed(belay_election_t *handle, int status, const belay_leader_t *leader) {
  election_t *self = belay_election_data(handle);
  sim_actor_t *actor = &self->base;
  char who[16];
  if ((status == 0) != (leader != NULL))
    sim_violation(actor->world, "callbacks: %s observes %s, and %s leader", actor->who,
                  belay_err_name(status), leader == NULL ? "no" : "a");
  if (leader == NULL || leader->term == 0)
    return;
  sim_note(actor->world, actor->who, "observes term %llu", (unsigned long long)leader->term);
  snprintf(who, sizeof who, "%.*s", (int)leader->value_len, leader->value);
  check_term(actor, leader->term, who);
  if (leader->term < self->observed_term)
    sim_violation(actor->world, "fencing: %s observes term %llu after %llu", actor->who,
                  (unsigned long long)leader->term, (unsigned long long)self->observed_term);
  self->observed_term = leader->term;
}

static void on_campaigned(belay_election_t *handle, int status) {
  sim_actor_t *actor = belay_election_data(handle);
  sim_actor_ended(actor, CAMPAIGN, status);
  if (status != 0)
    sim_actor_think(actor);
}

static void on_resigned(belay_election_t *handle, int status) {
  election_t *self = belay_election_data(handle);
  sim_actor_ended(&self->base, RESIGN, status);
  self->resigned = false;
  sim_actor_think(&self->base);
}

/* ---- actions ---- */

SIM_ACTOR_CLOSE(election)

static int make(sim_actor_t *actor) {
  election_t *self = (election_t *)actor;
  const sim_scenario_t *scenario = actor->world->scenario;
  belay_election_options_t options;
  belay_election_options_init(&options);
  options.value = belay_string(actor->who);
  options.ttl_ms = (int64_t)sim_actor_between(actor, (uint64_t)scenario->ttl_min_ms,
                                              (uint64_t)scenario->ttl_max_ms);
  SIM_SET_POLLS(&options, scenario);
  options.on_elected = on_elected;
  options.on_deposed = on_deposed;
  options.on_observe = on_observed;
  options.data = actor;
  self->leads = self->resigned = self->observes = false;
  self->observed_term = 0;
  return belay_election_new(actor->process->client[0], belay_string("e"), &options,
                            (belay_election_t **)&actor->handle);
}

static void close_handle(election_t *self) {
  if (sim_actor_close(&self->base))
    self->leads = false;
}

static void resign(election_t *self) {
  sim_actor_t *actor = &self->base;
  if (!SIM_START(actor, RESIGN, BELAY_FOREVER, "resign", BELAY_ESTATE,
                 belay_election_resign(actor->handle, on_resigned)))
    return;
  actor->served |= actor->healing && self->leads;
  self->leads = false;
  self->resigned = true;
  sim_actor_canceled(actor, CAMPAIGN);
}

static void campaign(sim_actor_t *actor) {
  if (SIM_START(actor, CAMPAIGN, BELAY_FOREVER, "campaign", BELAY_ESTATE,
                belay_election_campaign(actor->handle, on_campaigned)) &&
      !actor->healing && sim_actor_chance(actor, 300)) /* it resigns before it is elected */
    sim_actor_later(actor, sim_actor_between(actor, 0, actor->world->scenario->wait_ms * SIM_MS));
}

static void observe(election_t *self) {
  self->observes = !self->observes;
  (void)SIM_CALL(&self->base, "observe", 0,
                 belay_election_observe(self->base.handle, self->observes));
}

static void lead(election_t *self) {
  sim_actor_t *actor = &self->base;
  uint64_t now = sim_process_now(actor->process);
  if (now < self->lead_until && !actor->healing)
    sim_actor_later(actor, self->lead_until - now);
  else if (!actor->healing && sim_actor_chance(actor, 100))
    close_handle(self);
  else
    resign(self);
}

static void act(sim_actor_t *actor) {
  election_t *self = (election_t *)actor;
  if (sim_actor_is_closing(actor) || actor->op[RESIGN].pending)
    return;
  if (actor->handle != NULL && sim_actor_chance(actor, 100))
    observe(self);
  if (actor->handle == NULL) {
    sim_actor_make(actor);
    sim_actor_think(actor);
  } else if (self->leads) {
    lead(self);
  } else if (actor->op[CAMPAIGN].pending && !actor->healing) {
    resign(self);
  } else if (actor->op[CAMPAIGN].pending || (actor->healing && actor->served)) {
    return;
  } else if (!actor->healing && sim_actor_chance(actor, 40)) {
    close_handle(self);
  } else {
    campaign(actor);
  }
}

const sim_actor_type_t sim_election_type = {
    .size = sizeof(election_t),
    .op = {"campaign", "resign", "close"},
    .ends = {[RESIGN] = {SIM_ANY}},
    .make = make,
    .close = close_election,
    .act = act,
    .after_turn = after_turn,
};
