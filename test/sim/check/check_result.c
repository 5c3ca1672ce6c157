/* Checkers: statuses of callbacks against the truth. */
#include "sim/check/check_result.h"

#include <string.h>

#include "belay/rwlock.h"

static void wrong(const sim_watch_t *watch, const char *rule, const char *what, int status) {
  sim_violation(watch->process->world, "%s: %s, n%u: %s (%s)", rule, watch->who, watch->name, what,
                belay_err_name(status));
}

static bool is_single(const sim_watch_t *watch) {
  return watch->process->world->scenario->servers == 1;
}

/* ---- which statuses there are --------------------------------------------------------------------------- */

/* True for the refusals of the simulated servers. */
static bool is_refusal(int status) {
  switch (status) {
  case BELAY_ELOADING:
  case BELAY_ESCRIPTBUSY:
  case BELAY_EOOM:
  case BELAY_EMISCONF:
  case BELAY_ENOREPLICAS:
  case BELAY_EREADONLY:
  case BELAY_ECLUSTERDOWN:
  case BELAY_EMOVED:
  case BELAY_EAUTH:
  case BELAY_EPERM:
    return true;
  default:
    return false;
  }
}

/* True if any operation may end with this status. */
static bool may_end_so(const sim_watch_t *watch, int status) {
  const sim_scenario_t *scenario = watch->process->world->scenario;
  switch (status) {
  case 0:
  case BELAY_EUNKNOWN:
  case BELAY_EUNREACHABLE:
  case BELAY_EBUSY: /* its turn to be sent did not come */
    return true;
  case BELAY_ENOMEM:
    return scenario->mean_ms[SIM_MEMORY] > 0;
  case BELAY_ENOQUORUM:
    return !is_single(watch);
  case BELAY_ECANCELED:
    return watch->closing;
  case BELAY_ELOADING:
  case BELAY_EREADONLY: /* after a restart, a failover */
    return scenario->mean_ms[SIM_FAILOVER] > 0 || scenario->mean_ms[SIM_RESTART_KEPT] > 0 ||
           scenario->mean_ms[SIM_REFUSING] > 0;
  case BELAY_ENOREPLICAS:
    return is_single(watch) && (scenario->min_replicas > 0 || scenario->mean_ms[SIM_REFUSING] > 0);
  default:
    return is_refusal(status) && scenario->mean_ms[SIM_REFUSING] > 0;
  }
}

/* Whether the acquire has waited for as long as it was to. */
static bool has_waited(const sim_watch_t *watch) {
  uint64_t waited = sim_process_now(watch->process) - watch->op[SIM_ACQUIRE].called;
  return watch->wait_ms != BELAY_FOREVER && waited >= (uint64_t)watch->wait_ms * SIM_MS;
}

static bool may_acquire_end_so(const sim_watch_t *watch, int status) {
  switch (status) {
  case BELAY_EHELD:
    return watch->wait_ms == 0 || watch->options.max_attempts > 0;
  case BELAY_ETIMEDOUT:
    return watch->wait_ms != 0 && (watch->canceled || watch->closing || has_waited(watch));
  case BELAY_EEXPIRED:
    return true;
  case BELAY_EMISMATCH: /* more than there are now */
    return watch->process->world->scenario->resized;
  case BELAY_EQUARANTINED:
    return is_single(watch) && sim_watch_lease(watch)->config->quarantine;
  case BELAY_ECANCELED:
    return watch->canceled || watch->closing;
  case BELAY_ELOADING: /* a server that was just restarted */
    return true;
  default:
    return may_end_so(watch, status);
  }
}

/* ---- an acquire ----------------------------------------------------------------------------------------- */

/* It holds. A quorum of servers has set its token, which is not one that was given back before. */
static void granted(sim_watch_t *watch) {
  sim_process_t *process = watch->process;
  sim_world_t *world = process->world;
  sim_check_t *check = world->check;
  const belay__lease_t *lease = sim_watch_lease(watch);
  sim_token_t *token = sim_log_get(&check->log, lease->token.bytes);
  char text[BELAY__TOKEN_TEXT_MAX + 1];
  world->figures.grants++;
  if (world->phase == SIM_STORM)
    world->figures.grants_in_faults++;
  if (check->tokens && sim_bits(token->set_on) < check->quorum)
    wrong(watch, "truth", "granted, and too few servers have ever set its token", 0);
  if (token->ended)
    wrong(watch, "truth", "granted with a token that was given back before", 0);
  uint64_t now = sim_process_now(process), deadline = belay__lease_deadline(lease);
  if (!belay__lease_is_held(lease) || deadline <= now)
    wrong(watch, "callbacks", "granted, and not held", 0);
  if (deadline >= now + 1000 && belay_lock_token(watch->lock, text, sizeof text) < 42)
    wrong(watch, "callbacks", "granted, and it has no token", 0);
  if (watch->token != NULL)
    watch->token->pins--;
  token->pins++;
  watch->token = token;
  watch->held = true;
  watch->deaf_extend = watch->lost_taken = false;
  watch->seen = deadline;
  watch->granted = world->now;
  watch->granted_clock = now;
  watch->ordinal = ++check->name[watch->name].grants;
  watch->number = 0;
  watch->counted = 0;
  for (unsigned i = 0; i < lease->members; i++)
    watch->counted |= (lease->member[i].until > 0 ? 1u : 0u) << i;
  if (deadline < now + 1000)
    return; /* too short to be asked about */
  sim_check_exclusive(watch);
  if (world->scenario->kind == SIM_REENTRANT)
    sim_fence_entered(watch);
  else if (lease->config->fencing)
    sim_fence_granted(watch);
}

/* "Held by another", "not sent" and "refused" must be true of the last attempt. */
static bool is_definite(const sim_watch_t *watch, int status) {
  if (!is_single(watch))
    return false;
  if (status == BELAY_EHELD)
    return watch->wait_ms == 0 || !has_waited(watch); /* else it was cut short */
  /* A refusal may also concern a command that the lock needs to count. */
  const belay__lease_config_t *config = sim_watch_lease(watch)->config;
  bool bare = !config->quarantine && config->min_replicas == 0;
  bool busy = status == BELAY_EBUSY && (watch->wait_ms == 0 || !has_waited(watch));
  return status == BELAY_EUNREACHABLE || busy || (bare && is_refusal(status));
}

static void not_granted(sim_watch_t *watch, int status) {
  sim_log_t *log = &watch->process->world->check->log;
  const belay__lease_t *lease = sim_watch_lease(watch);
  if (lease->attempts == 0)
    return; /* others of its process came first, and it has not asked */
  sim_token_t *token = is_definite(watch, status) ? sim_log_get(log, lease->token.bytes)
                                                  : sim_log_find(log, lease->token.bytes);
  if (token == NULL)
    return;
  token->ended = true;
  if (!is_definite(watch, status))
    return;
  token->refused = true;
  token->name = watch->name;
  token->process = watch->process->index;
  if (token->set_on != 0)
    wrong(watch, "truth", "the server has set its token", status);
}

void sim_result_acquire(sim_watch_t *watch, int status) {
  if (!may_acquire_end_so(watch, status))
    wrong(watch, "callbacks", "an acquire must not end so", status);
  if (watch->canceled && status != BELAY_ECANCELED)
    wrong(watch, "callbacks", "an acquire that was canceled must not end so", status);
  if (watch->closing && status == 0)
    wrong(watch, "callbacks", "granted, and it is being closed", status);
  if (status == 0)
    granted(watch);
  else
    not_granted(watch, status);
}

/* ---- a release ------------------------------------------------------------------------------------------ */

void sim_result_release(sim_watch_t *watch, int status) {
  const sim_check_t *check = watch->process->world->check;
  const sim_token_t *token = watch->token;
  unsigned removed = sim_bits(token->removed_on);
  if (status != BELAY_ENOTOWNER && !may_end_so(watch, status))
    wrong(watch, "callbacks", "a release must not end so", status);
  if (status == 0)
    sim_fence_left(watch);
  if (!check->tokens)
    return;
  if (status == 0 && removed < check->quorum)
    wrong(watch, "truth", "released, and too few servers have removed its token", status);
  if (status == BELAY_ENOTOWNER && removed >= check->quorum && !check->strangers)
    wrong(watch, "truth", "a quorum of servers has removed its token for it", status);
}

/* ---- an extend ------------------------------------------------------------------------------------------ */

/* A quorum had it; it is believed in, for as long as was asked. */
static void extended(const sim_watch_t *watch) {
  const sim_pending_t *op = &watch->op[SIM_EXTEND];
  const belay__lease_t *lease = sim_watch_lease(watch);
  sim_world_t *world = watch->process->world;
  uint64_t deadline = belay__lease_deadline(lease);
  if (!watch->held || !belay__lease_is_held(lease) || deadline <= sim_process_now(watch->process))
    wrong(watch, "callbacks", "extended, and not held", 0);
  if (watch->turning != SIM_TURNS_WRITER &&
      deadline < op->called + belay__lease_validity(lease->ttl, lease->config->drift))
    wrong(watch, "truth", "extended, and not for as long as it asked", 0);
  if (world->check->tokens && watch->token != NULL &&
      sim_token_somewhen(world, watch->token, op->since) < world->check->quorum)
    wrong(watch, "truth", "extended, and too few servers had its token", 0);
}

/* It is what it was turned into, and says so. */
static void turned(sim_watch_t *watch, int status) {
  if (watch->turning == SIM_TURNS_WRITER && status == 0 && watch->held) {
    watch->writer = true;
    sim_check_exclusive(watch);
  }
  if (watch->held &&
      belay_rwlock_mode(watch->lock) != (watch->writer ? BELAY_RWLOCK_WRITE : BELAY_RWLOCK_READ))
    wrong(watch, "callbacks", "it is not what it was turned into", status);
}

void sim_result_extend(sim_watch_t *watch, int status) {
  bool turning = watch->turning != SIM_STAYS;
  if (turning)
    turned(watch, status);
  switch (status) {
  case 0:
    extended(watch);
    return;
  case BELAY_ESHARED:
    if (watch->turning != SIM_TURNS_WRITER)
      wrong(watch, "callbacks", "an extend must not end so", status);
    break;
  case BELAY_ENOTOWNER:
    if (!watch->lost_taken)
      wrong(watch, "loss", "not ours any more, and the loss was not told", status);
    return;
  case BELAY_ECANCELED:
    if (watch->held)
      wrong(watch, "callbacks", "an extend of what is held was canceled", status);
    return;
  case BELAY_EEXPIRED:
    break;
  default:
    if (!may_end_so(watch, status))
      wrong(watch, "callbacks", "an extend must not end so", status);
  }
  if (!watch->held)
    wrong(watch, "callbacks", "an extend failed of what is not held", status);
  else if (!turning && is_single(watch) &&
           belay__lease_deadline(sim_watch_lease(watch)) > watch->before)
    wrong(watch, "truth", "an extend failed, and the lease runs longer", status);
}

/* ---- a loss --------------------------------------------------------------------------------------------- */

/* Told at the deadline at the latest; and for a reason. */
void sim_result_lost(sim_watch_t *watch, belay_lost_t reason) {
  sim_process_t *process = watch->process;
  sim_world_t *world = process->world;
  uint64_t now = sim_process_now(process), due = sim_excused_until(process);
  const belay__lease_t *lease = sim_watch_lease(watch);
  world->figures.losses++;
  if (!watch->held && !watch->late_loss) {
    wrong(watch, "loss", "lost, and was not held", 0);
    return;
  }
  if (due < watch->seen)
    due = watch->seen;
  if (now > due && now - due > SIM_TICK)
    sim_violation(world, "loss: %s, n%u: told %.3f ms late", watch->who, watch->name,
                  sim_in_ms(now - due));
  /* Servers whose votes counted at the grant, and that cannot have replied "not ours" since. */
  unsigned keep = sim_token_throughout(world, watch->token, watch->granted) & watch->counted;
  if (world->check->tokens && reason == BELAY_LOST_TAKEN && sim_bits(keep) >= world->check->quorum)
    wrong(watch, "loss", "taken, and a quorum has had it all the time", 0);
  if (reason != BELAY_LOST_TAKEN && is_single(watch) && now < watch->seen)
    wrong(watch, "loss", "expired, and the lease still ran", 0);
  if (reason == BELAY_LOST_MAX_HOLD &&
      (!lease->config->renew || lease->config->max_hold == BELAY_FOREVER ||
       now - lease->held_since < (uint64_t)lease->config->max_hold * SIM_MS))
    wrong(watch, "loss", "held for too long, and it was not", 0);
  watch->held = watch->late_loss = false;
  watch->lost_taken = reason == BELAY_LOST_TAKEN;
  watch->token->ended = true;
}
