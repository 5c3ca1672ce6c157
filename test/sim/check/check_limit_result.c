/* Checkers: limits, results of callbacks. */
#include "sim/check/limit_state.h"

/* A wait may end this much early, plus a hundredth of its length, because clocks differ. */
#define LATE_US 2000

static void report(sim_actor_t *actor, const sim_limit_request_t *request, const char *what,
                   int status) {
  sim_violation(actor->world, "truth: %s, %lld of k%u: %s (%s)", actor->who,
                (long long)request->cost, request->key, what, belay_err_name(status));
}

static uint64_t clock_at(const sim_actor_t *actor) {
  const sim_server_t *server = &actor->world->server[0];
  return (sim_clock_at(&server->clock, sim_world_time(actor->process)) + (uint64_t)server->step) /
         1000;
}

static void allowed(sim_actor_t *actor, sim_limit_request_t *request,
                    const belay_limiter_result_t *result) {
  sim_world_t *world = actor->world;
  const sim_limits_t *limits = sim_limits_of(world);
  unsigned number = (unsigned)(request - limits->request);
  world->figures.grants++;
  world->figures.grants_in_faults += world->phase == SIM_STORM;
  if (result->source == BELAY_SOURCE_LEASE) {
    request->unsent = true;
    sim_lease_used(actor, number, clock_at(actor));
    return;
  }
  if (limits->slice > 0 && request->kind == SIM_LIMIT_TAKE)
    sim_lease_noted(world, number, request->at_us);
  if (request->executed == 0 || (!request->admitted && request->kind != SIM_LIMIT_REFUND))
    report(actor, request, "allowed, and no server has executed it", 0);
  if (result->retry_after_us != 0 || result->remaining < 0 || result->reset_after_us < 0)
    report(actor, request, "allowed, with impossible numbers", 0);
  if (request->kind == SIM_LIMIT_REFUND && (int64_t)result->returned != request->returned)
    report(actor, request, "another number of tokens was returned than is reported", 0);
  if (request->kind == SIM_LIMIT_RESERVE && request->canceled)
    report(actor, request, "reserved, and canceled", 0);
  request->acted = true;
  uint64_t longest_ms = actor->healing ? SIM_LIMIT_LONGEST_MS : world->scenario->wait_ms;
  uint64_t early = LATE_US + 10 * longest_ms; /* a hundredth; also of one that came before it */
  if (request->kind == SIM_LIMIT_WAIT && request->canceled)
    report(actor, request, "its wait succeeds, and it was canceled", 0);
  if (request->kind == SIM_LIMIT_WAIT && clock_at(actor) + early < request->acts_us)
    sim_violation(world, "order: %s is called %.3f ms before the time of its %lld of k%u",
                  actor->who, (double)(request->acts_us - clock_at(actor)) / 1e3,
                  (long long)request->cost, request->key);
}

/* A local denial needs an earlier denial for at most as many tokens, with a retry time after the
 * request. */
static void check_local_denial(sim_actor_t *actor, const sim_limit_request_t *request) {
  const sim_world_t *world = actor->world;
  const sim_limits_t *limits = sim_limits_of(actor->world);
  const sim_server_t *server = &world->server[0];
  uint64_t asked_us = sim_clock_at(&server->clock, actor->op[0].since) / 1000;
  const sim_process_t *process = actor->process;
  for (unsigned i = 0; i < SIM_LIMIT_DENIALS; i++)
    if (limits->denial[process->index][request->key][i].life == process->lives &&
        limits->denial[process->index][request->key][i].cost <= request->cost &&
        limits->denial[process->index][request->key][i].until_us >= asked_us)
      return;
  report(actor, request, "denied locally, without a denial of the server that still holds", 0);
}

static void remember(const sim_actor_t *actor, const sim_limit_request_t *request,
                     int64_t retry_us) {
  sim_limits_t *limits = sim_limits_of(actor->world);
  unsigned i = limits->denials[actor->process->index][request->key]++ % SIM_LIMIT_DENIALS;
  limits->denial[actor->process->index][request->key][i].life = actor->process->lives;
  limits->denial[actor->process->index][request->key][i].cost = request->cost;
  limits->denial[actor->process->index][request->key][i].until_us =
      request->at_us + (uint64_t)(retry_us + retry_us / 100); /* clocks differ */
}

static void denied(sim_actor_t *actor, sim_limit_request_t *request,
                   const belay_limiter_result_t *result) {
  if (request->kind == SIM_LIMIT_PENALTY || request->kind == SIM_LIMIT_REFUND)
    report(actor, request, "denied, and this request is never denied", 0);
  if (result->retry_after_us <= 0)
    report(actor, request, "denied without a retry time", 0);
  /* its denials may come from other requests */
  bool leases = sim_limits_of(actor->world)->slice > 0;
  if (result->source == BELAY_SOURCE_DENIAL && !leases)
    check_local_denial(actor, request);
  if (result->source == BELAY_SOURCE_DENIAL || (leases && request->executed == 0)) {
    request->unsent = true;
    return;
  }
  if (request->executed == 0 || (request->admitted && !request->canceled))
    report(actor, request, "denied, and no server has denied it", 0);
  if (request->kind == SIM_LIMIT_TAKE)
    remember(actor, request, result->retry_after_us);
}

/* Its statement about the server is true now and later. */
static void indeterminate(sim_actor_t *actor, sim_limit_request_t *request, int status) {
  if (status == BELAY_EUNKNOWN || status == BELAY_ECANCELED)
    return;
  request->unsent = true;
  if (status == 0)
    report(actor, request, "indeterminate, and no reason is given", status);
  if (request->executed > 0)
    report(actor, request, "not sent, or refused, and a server has executed it", status);
}

void sim_limits_status(const sim_actor_t *actor, int status, const belay_limiter_result_t *result) {
  int expected = result->verdict == BELAY_INDETERMINATE ? result->cause : 0;
  if (status != expected)
    sim_violation(actor->world, "callbacks: %s: verdict %d, cause %s, and status %s", actor->who,
                  (int)result->verdict, belay_err_name(result->cause), belay_err_name(status));
}

void sim_limits_result(sim_actor_t *actor, unsigned number, const belay_limiter_result_t *result) {
  sim_limit_request_t *request = sim_limits_request(actor->world, number);
  if (result->verdict != BELAY_NEVER && /* which is known without the server */
      (result->cause != 0) != (result->verdict == BELAY_INDETERMINATE))
    report(actor, request, "a verdict that does not fit its cause", result->cause);
  switch (result->verdict) {
  case BELAY_ALLOWED:
    allowed(actor, request, result);
    return;
  case BELAY_DENIED:
    denied(actor, request, result);
    return;
  case BELAY_NEVER:
    if (request->cost <= sim_limits_most(sim_limits_of(actor->world)) &&
        request->kind != SIM_LIMIT_PENALTY)
      report(actor, request, "never, and it fits", 0);
    if (request->executed > 0)
      report(actor, request, "never, and a server has executed it", 0);
    request->unsent = true;
    return;
  case BELAY_INDETERMINATE:
    indeterminate(actor, request, result->cause);
    return;
  }
  report(actor, request, "no verdict", result->cause);
}
