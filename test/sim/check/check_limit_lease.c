/* Checkers: limits, leased tokens.
 *
 *    lease    a process uses at most its granted tokens minus returned ones, none older than
 *             lease_ms; and the tokens of a key used in any interval fit its buckets in an
 *             interval longer by lease_ms */
#include "sim/check/limit_state.h"

/* After that it is void, by the server's clock. */
static uint64_t lasts_us(const sim_limits_t *limits) {
  return limits->lease_ms * UINT64_C(1010) + 2000; /* clocks differ */
}

void sim_lease_granted(sim_server_t *server, unsigned number) {
  sim_limits_t *limits = sim_limits_of(server->world);
  sim_limit_request_t *request = &limits->request[number];
  sim_lease_t *lease = &limits->lease[server->from][request->key];
  unsigned i = lease->grants++ % SIM_LEASES;
  request->process = (uint8_t)server->from;
  request->life = server->world->process[server->from].lives;
  lease->grant[i].at_us = request->at_us;
  lease->grant[i].left = request->cost;
  lease->granted += request->cost;
}

/* A return of leased tokens. Their owner is unknown if several leases were granted in that
 * microsecond. */
static void shrink(sim_world_t *world, unsigned number, int64_t tokens, int64_t returned,
                   bool alone) {
  sim_limits_t *limits = sim_limits_of(world);
  sim_limit_request_t *request = &limits->request[number];
  const sim_process_t *process = &world->process[request->process];
  request->returned += tokens;
  sim_account_give_back(limits, &limits->account[request->key], number, tokens, returned);
  if (alone && process->life != SIM_DOWN && process->lives == request->life)
    limits->lease[request->process][request->key].gone += tokens;
}

void sim_lease_returned(sim_server_t *server, unsigned key, int64_t tokens, uint64_t taken_us,
                        int64_t returned) {
  sim_limits_t *limits = sim_limits_of(server->world);
  unsigned grants = 0;
  int64_t left = tokens, gives = returned;
  for (unsigned i = 1; i <= limits->requests; i++)
    grants += limits->request[i].kind == SIM_LIMIT_SLICE && limits->request[i].key == key &&
              limits->request[i].at_us == taken_us;
  for (unsigned i = limits->requests; i > 0 && grants > 0 && left > 0; i--) {
    const sim_limit_request_t *request = &limits->request[i];
    if (request->kind != SIM_LIMIT_SLICE || request->key != key || request->at_us != taken_us)
      continue;
    int64_t part =
        request->cost - request->returned < left ? request->cost - request->returned : left;
    shrink(server->world, i, part, gives < part ? gives : part, grants == 1);
    left -= part;
    gives -= gives < part ? gives : part;
  }
  if (left > 0 || returned < 0 || returned > tokens)
    sim_violation(server->world, "lease: %s is given back %lld of k%u, of %llu, and %lld are",
                  server->name, (long long)tokens, key, (unsigned long long)taken_us,
                  (long long)returned);
}

/* The oldest first, as far as they are not void. */
static int64_t use(sim_lease_t *lease, int64_t tokens, uint64_t since_us) {
  unsigned first = lease->grants > SIM_LEASES ? lease->grants - SIM_LEASES : 0;
  for (unsigned i = first; i < lease->grants && tokens > 0; i++) {
    int64_t *left = &lease->grant[i % SIM_LEASES].left;
    if (lease->grant[i % SIM_LEASES].at_us < since_us)
      continue;
    int64_t used = *left < tokens ? *left : tokens;
    *left -= used;
    tokens -= used;
  }
  return tokens;
}

void sim_lease_noted(sim_world_t *world, unsigned number, uint64_t at_us) {
  sim_limits_t *limits = sim_limits_of(world);
  unsigned key = limits->request[number].key;
  sim_account_t *account = &limits->used[key];
  size_t from = sim_account_charge(limits, account, number, at_us, true);
  for (size_t i = 0; i < limits->n; i++) {
    const belay_limit_t *limit = &limits->limit[i];
    if (limit->kind == BELAY_LIMIT_BUCKET &&
        sim_account_over(account, limit, i, from) > (int64_t)lasts_us(limits) * limit->count)
      sim_violation(world, "lease: %lld of k%u are used, more than limit %zu allows",
                    (long long)limits->request[number].cost, key, i);
  }
}

void sim_lease_used(sim_actor_t *actor, unsigned number, uint64_t now_us) {
  sim_world_t *world = actor->world;
  sim_limits_t *limits = sim_limits_of(world);
  const sim_limit_request_t *request = &limits->request[number];
  sim_lease_t *lease = &limits->lease[actor->process->index][request->key];
  int64_t lacking = use(lease, request->cost, now_us - lasts_us(limits));
  lease->gone += request->cost;
  if (lacking > 0)
    sim_violation(world, "lease: %s uses %lld of k%u, and %lld of them are void", actor->who,
                  (long long)request->cost, request->key, (long long)lacking);
  if (lease->gone > lease->granted)
    sim_violation(world, "lease: %s uses %lld of k%u, and of %lld granted %lld are gone",
                  actor->who, (long long)request->cost, request->key, (long long)lease->granted,
                  (long long)lease->gone);
  sim_lease_noted(world, number, now_us);
}

void sim_limits_ended(sim_actor_t *actor) {
  sim_limits_t *limits = sim_limits_of(actor->world);
  for (unsigned i = 0; i < SIM_LIMIT_KEYS; i++)
    limits->lease[actor->process->index][i] = (sim_lease_t){0};
}
