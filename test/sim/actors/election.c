/* Hands that stand for election, lead for a while, and look who leads. */
#include "belay/election.h"

#include <string.h>

#include "sim/actors/hand.h"

#define TERMS 256 /* the latest */

enum { CAMPAIGN, RESIGN };

typedef struct ledger {
  uint64_t term; /* the largest term that a leader was told */
  struct {
    uint64_t term;
    char who[16];
  } of[TERMS]; /* the leader of each term, by reports to leaders and observers */
  unsigned next;
} ledger_t;

typedef struct hand {
  sim_hand_t base; /* first */
  belay_election_t *election;
  bool leads, elected; /* elected: told by campaign's callback, and not yet by on_elected */
  bool observes;
  uint64_t term, seen_term; /* its own; the largest that it has observed */
  uint64_t seen;            /* the deadline when it was last looked at */
  uint64_t lead_until;
  bool resigned;
} hand_t;

static hand_t *of(sim_hand_t *base) {
  return (hand_t *)base;
}

static ledger_t *ledger_of(sim_world_t *world) {
  return sim_ledger(world, sizeof(ledger_t));
}

static uint64_t remaining(const hand_t *hand) {
  int64_t us = hand->leads && !hand->base.resting && hand->election != NULL
                   ? belay_election_remaining_us(hand->election)
                   : 0;
  return us > 0 ? (uint64_t)us * 1000 : 0;
}

/* ---- rules ---------------------------------------------------------------------------------------------- */

/* Each term has one leader in all reports. */
static void check_term(sim_hand_t *base, uint64_t term, const char *who) {
  sim_world_t *world = sim_world_of(base);
  ledger_t *ledger = ledger_of(world);
  for (unsigned i = 0; i < TERMS; i++)
    if (ledger->of[i].term == term) {
      if (strcmp(ledger->of[i].who, who) != 0)
        sim_violation(world, "fencing: %s is told that %s leads in term %llu, which was %s's",
                      base->who, who, (unsigned long long)term, ledger->of[i].who);
      return;
    }
  unsigned at = ledger->next++ % TERMS;
  ledger->of[at].term = term;
  snprintf(ledger->of[at].who, sizeof ledger->of[at].who, "%s", who);
}

static void check_elected(hand_t *hand, uint64_t term) {
  sim_hand_t *base = &hand->base;
  sim_world_t *world = sim_world_of(base);
  ledger_t *ledger = ledger_of(world);
  uint64_t ahead = base->process->ahead + base->process->ahead / 64 + 1000;
  if (term <= ledger->term)
    sim_violation(world, "fencing: %s is elected for term %llu, after term %llu", base->who,
                  (unsigned long long)term, (unsigned long long)ledger->term);
  ledger->term = term;
  check_term(base, term, base->who);
  for (unsigned i = 0; remaining(hand) > 1000 && i < sim_hands_count(world); i++) {
    const hand_t *other = (const hand_t *)sim_hand_at(world, i);
    if (other != NULL && other != hand && remaining(other) > ahead)
      sim_violation(world,
                    "exclusion: %s is elected while %s believes that it leads for another %.3f ms",
                    base->who, other->base.who, sim_in_ms(remaining(other)));
  }
}

static void turn(sim_hand_t *base) {
  hand_t *hand = of(base);
  if (hand->leads && !base->resting)
    sim_hand_believes(base, &hand->seen, remaining(hand));
}

/* ---- what it is told ------------------------------------------------------------------------------------ */

static void on_elected(belay_election_t *election, uint64_t term) {
  hand_t *hand = belay_election_data(election);
  sim_hand_t *base = &hand->base;
  sim_world_t *world = sim_world_of(base);
  sim_note(world, base->who, "is elected for term %llu", (unsigned long long)term);
  if (hand->leads || sim_hand_is_closing(base) || base->resting || hand->resigned)
    sim_violation(world, "callbacks: %s is elected and does not stand", base->who);
  sim_hand_granted(base);
  hand->leads = true;
  hand->term = term;
  hand->seen = sim_process_now(base->process) + remaining(hand);
  check_elected(hand, term);
  hand->lead_until =
      sim_process_now(base->process) +
      (base->healing ? 0 : sim_around(&world->random, world->scenario->hold_ms * SIM_MS));
  sim_hand_stall(base, world->scenario->ttl_max_ms);
  sim_hand_later(base, 0);
}

static void on_deposed(belay_election_t *election, belay_lost_t reason) {
  hand_t *hand = belay_election_data(election);
  sim_world_t *world = sim_world_of(&hand->base);
  (void)reason;
  sim_note(world, hand->base.who, "is deposed");
  world->figures.losses++;
  if (!hand->leads && !sim_hand_is_closing(&hand->base) && !hand->base.resting)
    sim_violation(world, "loss: %s is deposed, and did not lead", hand->base.who);
  hand->leads = false;
  sim_hand_think(&hand->base);
}

static void on_observed(belay_election_t *election, int status, const belay_leader_t *leader) {
  hand_t *hand = belay_election_data(election);
  sim_hand_t *base = &hand->base;
  sim_world_t *world = sim_world_of(base);
  char who[16];
  if ((status == 0) != (leader != NULL))
    sim_violation(world, "callbacks: %s observes %s, and %s leader", base->who,
                  belay_err_name(status), leader == NULL ? "no" : "a");
  if (leader == NULL || leader->term == 0)
    return;
  sim_note(world, base->who, "observes term %llu", (unsigned long long)leader->term);
  snprintf(who, sizeof who, "%.*s", (int)leader->value_len, leader->value);
  check_term(base, leader->term, who);
  if (leader->term < hand->seen_term)
    sim_violation(world, "fencing: %s observes term %llu after %llu", base->who,
                  (unsigned long long)leader->term, (unsigned long long)hand->seen_term);
  hand->seen_term = leader->term;
}

static void on_campaigned(belay_election_t *election, int status) {
  hand_t *hand = belay_election_data(election);
  sim_hand_t *base = &hand->base;
  sim_hand_kept(base, CAMPAIGN, status);
  if (status != 0)
    sim_hand_think(base);
}

static void on_resigned(belay_election_t *election, int status) {
  hand_t *hand = belay_election_data(election);
  sim_hand_kept(&hand->base, RESIGN, status);
  hand->resigned = false;
  sim_hand_think(&hand->base);
}

static void on_closed(belay_election_t *election, void *data) {
  hand_t *hand = data;
  (void)election;
  hand->election = NULL;
  hand->leads = hand->resigned = hand->observes = false;
  sim_hand_closed(&hand->base);
}

/* ---- what it does --------------------------------------------------------------------------------------- */

static void make(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  const sim_scenario_t *scenario = sim_world_of(base)->scenario;
  belay_election_options_t options;
  belay_election_options_init(&options);
  options.value = belay_string(base->who);
  options.ttl_ms = (int64_t)sim_hand_between(base, (uint64_t)scenario->ttl_min_ms,
                                             (uint64_t)scenario->ttl_max_ms);
  if (scenario->asleep_ms > 0) {
    options.retry_min_ms = scenario->asleep_ms;
    options.retry_max_ms = options.backoff_max_ms = 2 * scenario->asleep_ms;
  }
  options.on_elected = on_elected;
  options.on_deposed = on_deposed;
  options.on_observe = on_observed;
  options.data = hand;
  sim_hand_enter(base);
  int error =
      belay_election_new(base->process->client, 1, belay_string("e"), &options, &hand->election);
  (void)sim_hand_leave(base, "new", error, 0);
  hand->seen_term = 0;
  sim_hand_think(base);
}

static void close_it(hand_t *hand) {
  sim_hand_enter(&hand->base);
  if (sim_hand_close(&hand->base, belay_election_close(hand->election, on_closed)))
    hand->leads = false;
}

static void resign(hand_t *hand) {
  sim_hand_enter(&hand->base);
  int error = belay_election_resign(hand->election, on_resigned);
  if (!sim_hand_leave(&hand->base, "resign", error, BELAY_ESTATE)) {
    sim_hand_think(&hand->base);
    return;
  }
  hand->base.cured |= hand->base.healing && hand->leads;
  hand->leads = false;
  hand->resigned = true;
  sim_hand_cancel(&hand->base, CAMPAIGN);
  sim_hand_promise(&hand->base, RESIGN, BELAY_FOREVER);
}

static void campaign(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  sim_hand_enter(base);
  int error = belay_election_campaign(hand->election, on_campaigned);
  if (!sim_hand_leave(base, "campaign", error, BELAY_ESTATE)) {
    sim_hand_think(base);
    return;
  }
  sim_hand_promise(base, CAMPAIGN, BELAY_FOREVER);
  if (!base->healing && sim_hand_chance(base, 300)) /* does not want to any more */
    sim_hand_later(base, sim_hand_between(base, 0, sim_world_of(base)->scenario->wait_ms * SIM_MS));
}

static void observe(hand_t *hand) {
  hand->observes = !hand->observes;
  sim_hand_enter(&hand->base);
  int error = belay_election_observe(hand->election, hand->observes);
  (void)sim_hand_leave(&hand->base, "observe", error, 0);
}

static void lead(hand_t *hand) {
  uint64_t now = sim_process_now(hand->base.process);
  if (now < hand->lead_until && !hand->base.healing)
    sim_hand_later(&hand->base, hand->lead_until - now);
  else if (!hand->base.healing && sim_hand_chance(&hand->base, 100))
    close_it(hand);
  else
    resign(hand);
}

static void act(sim_hand_t *base) {
  hand_t *hand = of(base);
  if (sim_hand_is_closing(base) || base->promise[RESIGN].pending)
    return;
  if (hand->election != NULL && sim_hand_chance(base, 100))
    observe(hand);
  if (hand->election == NULL)
    make(hand);
  else if (hand->leads)
    lead(hand);
  else if (base->promise[CAMPAIGN].pending && !base->healing)
    resign(hand);
  else if (base->promise[CAMPAIGN].pending || (base->healing && base->cured))
    return;
  else if (!base->healing && sim_hand_chance(base, 40))
    close_it(hand);
  else
    campaign(hand);
}

const sim_trade_t sim_election_trade = {
    .size = sizeof(hand_t),
    .op = {"campaign", "resign", "close"},
    .ends = {[RESIGN] = {SIM_ANY}},
    .act = act,
    .turn = turn,
};
