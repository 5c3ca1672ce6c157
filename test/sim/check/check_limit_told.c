/* Checkers: limits, what callbacks say. */
#include "sim/check/limit_state.h"

/* A wait may end this much early, plus a hundredth of its length, because clocks differ. */
#define LATE_US 2000

static void false_to(sim_hand_t *hand, const sim_ask_t *ask, const char *what, int status) {
  sim_violation(sim_world_of(hand), "truth: %s, %lld of k%u: %s (%s)", hand->who,
                (long long)ask->cost, ask->key, what, belay_err_name(status));
}

static uint64_t clock_at(const sim_hand_t *hand) {
  const sim_server_t *server = &sim_world_of(hand)->server[0];
  return (sim_clock_at(&server->clock, sim_world_time(hand->process)) + (uint64_t)server->step) /
         1000;
}

static void allowed(sim_hand_t *hand, sim_ask_t *ask, const belay_limiter_result_t *result) {
  sim_world_t *world = sim_world_of(hand);
  const sim_limits_t *limits = sim_limits_of(world);
  unsigned number = (unsigned)(ask - limits->ask);
  world->figures.grants++;
  world->figures.grants_in_faults += world->phase == SIM_STORM;
  if (result->source == BELAY_SOURCE_LEASE) {
    ask->unsent = true;
    sim_lease_used(hand, number, clock_at(hand));
    return;
  }
  if (limits->slice > 0 && ask->kind == SIM_ASK_TAKE)
    sim_lease_noted(world, number, ask->at_us);
  if (ask->executed == 0 || (!ask->admitted && ask->kind != SIM_ASK_REFUND))
    false_to(hand, ask, "allowed, and no server has done it", 0);
  if (result->retry_after_us != 0 || result->remaining < 0 || result->reset_after_us < 0)
    false_to(hand, ask, "allowed, with numbers that cannot be", 0);
  if (ask->kind == SIM_ASK_REFUND && (int64_t)result->returned != ask->returned)
    false_to(hand, ask, "not as much was given back as it is told", 0);
  if (ask->kind == SIM_ASK_RESERVE && ask->canceled)
    false_to(hand, ask, "reserved, and given back", 0);
  ask->acted = true;
  uint64_t longest_ms = hand->healing ? SIM_LIMIT_LONGEST_MS : world->scenario->wait_ms;
  uint64_t early = LATE_US + 10 * longest_ms; /* a hundredth; also of one that came before it */
  if (ask->kind == SIM_ASK_WAIT && ask->canceled)
    false_to(hand, ask, "it may go on, and was given back", 0);
  if (ask->kind == SIM_ASK_WAIT && clock_at(hand) + early < ask->acts_us)
    sim_violation(world, "order: %s is called %.3f ms before the time of its %lld of k%u",
                  hand->who, (double)(ask->acts_us - clock_at(hand)) / 1e3, (long long)ask->cost,
                  ask->key);
}

/* A local denial needs an earlier denial for at most as many tokens, with a retry time after the
 * request. */
static void check_memory(sim_hand_t *hand, const sim_ask_t *ask) {
  const sim_world_t *world = sim_world_of(hand);
  const sim_limits_t *limits = sim_limits_of(sim_world_of(hand));
  const sim_server_t *server = &world->server[0];
  uint64_t asked_us = sim_clock_at(&server->clock, hand->promise[0].since) / 1000;
  const sim_process_t *process = hand->process;
  for (unsigned i = 0; i < SIM_LIMIT_DENIALS; i++)
    if (limits->denial[process->index][ask->key][i].life == process->lives &&
        limits->denial[process->index][ask->key][i].cost <= ask->cost &&
        limits->denial[process->index][ask->key][i].until_us >= asked_us)
      return;
  false_to(hand, ask, "denied from memory, and it is not, or no longer, known to be", 0);
}

static void remember(const sim_hand_t *hand, const sim_ask_t *ask, int64_t retry_us) {
  sim_limits_t *limits = sim_limits_of(sim_world_of(hand));
  unsigned i = limits->denials[hand->process->index][ask->key]++ % SIM_LIMIT_DENIALS;
  limits->denial[hand->process->index][ask->key][i].life = hand->process->lives;
  limits->denial[hand->process->index][ask->key][i].cost = ask->cost;
  limits->denial[hand->process->index][ask->key][i].until_us =
      ask->at_us + (uint64_t)(retry_us + retry_us / 100); /* clocks differ */
}

static void denied(sim_hand_t *hand, sim_ask_t *ask, const belay_limiter_result_t *result) {
  if (ask->kind == SIM_ASK_PENALTY || ask->kind == SIM_ASK_REFUND)
    false_to(hand, ask, "denied, and it is nothing to be denied", 0);
  if (result->retry_after_us <= 0)
    false_to(hand, ask, "denied, and there is no telling for how long", 0);
  /* its denials may come from other requests */
  bool leases = sim_limits_of(sim_world_of(hand))->slice > 0;
  if (result->source == BELAY_SOURCE_DENIAL && !leases)
    check_memory(hand, ask);
  if (result->source == BELAY_SOURCE_DENIAL || (leases && ask->executed == 0)) {
    ask->unsent = true;
    return;
  }
  if (ask->executed == 0 || (ask->admitted && !ask->canceled))
    false_to(hand, ask, "denied, and no server has said so", 0);
  if (ask->kind == SIM_ASK_TAKE)
    remember(hand, ask, result->retry_after_us);
}

/* Its statement about the server is true now and later. */
static void indeterminate(sim_hand_t *hand, sim_ask_t *ask, int status) {
  if (status == BELAY_EUNKNOWN || status == BELAY_ECANCELED)
    return;
  ask->unsent = true;
  if (status == 0)
    false_to(hand, ask, "indeterminate, and no reason is given", status);
  if (ask->executed > 0)
    false_to(hand, ask, "not sent, or refused, and a server has executed it", status);
}

void sim_limits_status(const sim_hand_t *hand, int status, const belay_limiter_result_t *result) {
  int expected = result->verdict == BELAY_INDETERMINATE ? result->cause : 0;
  if (status != expected)
    sim_violation(sim_world_of(hand), "callbacks: %s: verdict %d, cause %s, and status %s",
                  hand->who, (int)result->verdict, belay_err_name(result->cause),
                  belay_err_name(status));
}

void sim_limits_told(sim_hand_t *hand, unsigned number, const belay_limiter_result_t *result) {
  sim_ask_t *ask = sim_limits_asked(sim_world_of(hand), number);
  if (result->verdict != BELAY_NEVER && /* which is known without the server */
      (result->cause != 0) != (result->verdict == BELAY_INDETERMINATE))
    false_to(hand, ask, "a verdict that does not go with its cause", result->cause);
  switch (result->verdict) {
  case BELAY_ALLOWED:
    allowed(hand, ask, result);
    return;
  case BELAY_DENIED:
    denied(hand, ask, result);
    return;
  case BELAY_NEVER:
    if (ask->cost <= sim_limits_most(sim_limits_of(sim_world_of(hand))) &&
        ask->kind != SIM_ASK_PENALTY)
      false_to(hand, ask, "never, and it is no more than fits", 0);
    if (ask->executed > 0)
      false_to(hand, ask, "never, and a server has executed it", 0);
    ask->unsent = true;
    return;
  case BELAY_INDETERMINATE:
    indeterminate(hand, ask, result->cause);
    return;
  }
  false_to(hand, ask, "no verdict", result->cause);
}
