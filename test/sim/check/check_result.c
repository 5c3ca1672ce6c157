/* Checkers: statuses of callbacks against the truth. */
#include "sim/check/check_result.h"

#include <string.h>

#include "belay/rwlock.h"

static void report(const sim_lock_t *lock, const char *rule, const char *what, int status) {
  sim_violation(lock->base.world, "%s: %s, n%u: %s (%s)", rule, lock->base.who, lock->name, what,
                belay_err_name(status));
}

static bool is_single(const sim_lock_t *lock) {
  return lock->base.world->scenario->servers == 1;
}

/* ---- permitted statuses ---- */

bool sim_is_refusal(int status) {
  static const int refusals[] = {
      BELAY_ELOADING,  BELAY_ESCRIPTBUSY,  BELAY_EOOM,   BELAY_EMISCONF, BELAY_ENOREPLICAS,
      BELAY_EREADONLY, BELAY_ECLUSTERDOWN, BELAY_EMOVED, BELAY_EAUTH,    BELAY_EPERM};
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
    if (refusals[i] == status)
      return true;
  return false;
}

/* True if any operation may end with this status. */
static bool may_end_so(const sim_lock_t *lock, int status) {
  const sim_scenario_t *scenario = lock->base.world->scenario;
  const uint32_t *mean_ms = scenario->mean_ms;
  switch (status) {
  case 0:
  case BELAY_EUNKNOWN:
  case BELAY_EUNREACHABLE:
  case BELAY_EBUSY: /* the call was not sent in time */
    return true;
  case BELAY_ENOMEM:
    return mean_ms[SIM_MEMORY] > 0;
  case BELAY_ENOQUORUM:
    return !is_single(lock);
  case BELAY_ECANCELED:
    return lock->closing;
  case BELAY_ELOADING:
  case BELAY_EREADONLY: /* after a restart, a failover */
    return mean_ms[SIM_FAILOVER] > 0 || mean_ms[SIM_RESTART_KEPT] > 0 || mean_ms[SIM_REFUSING] > 0;
  case BELAY_ENOREPLICAS:
    return is_single(lock) && (scenario->min_replicas > 0 || mean_ms[SIM_REFUSING] > 0);
  default:
    return sim_is_refusal(status) && mean_ms[SIM_REFUSING] > 0;
  }
}

/* True if the wait of the acquire is over. */
static bool has_waited(const sim_lock_t *lock) {
  uint64_t waited = sim_process_now(lock->base.process) - lock->base.op[SIM_ACQUIRE].called;
  return lock->wait_ms != BELAY_FOREVER && waited >= (uint64_t)lock->wait_ms * SIM_MS;
}

static bool may_acquire_end_so(const sim_lock_t *lock, int status) {
  switch (status) {
  case BELAY_EHELD:
    return lock->wait_ms == 0 || lock->options.max_attempts > 0;
  case BELAY_ETIMEDOUT:
    return lock->wait_ms != 0 && (lock->canceled || lock->closing || has_waited(lock));
  case BELAY_EEXPIRED:
    return true;
  case BELAY_EMISMATCH: /* fewer permits exist than it needs */
    return lock->base.world->scenario->resized;
  case BELAY_EQUARANTINED:
    return is_single(lock) && sim_lock_lease(lock)->config->quarantine;
  case BELAY_ECANCELED:
    return lock->canceled || lock->closing;
  case BELAY_ELOADING: /* a server that was just restarted */
    return true;
  default:
    return may_end_so(lock, status);
  }
}

/* ---- acquire ---- */

/* A quorum of servers has set its token, which was not released before. */
static void granted(sim_lock_t *lock) {
  sim_process_t *process = lock->base.process;
  sim_world_t *world = process->world;
  sim_check_t *check = world->check;
  const belay__lease_t *lease = sim_lock_lease(lock);
  sim_token_t *token = sim_log_get(&check->log, lease->token.bytes);
  char text[BELAY__TOKEN_TEXT_MAX + 1];
  sim_actor_granted(&lock->base);
  if (check->tokens && sim_bits(token->set_on) < check->quorum)
    report(lock, "truth", "granted, and too few servers have ever set its token", 0);
  if (token->ended)
    report(lock, "truth", "granted with a token that was released before", 0);
  uint64_t now = sim_process_now(process), deadline = belay__lease_deadline(lease);
  if (!belay__lease_is_held(lease) || deadline <= now)
    report(lock, "callbacks", "granted, and not held", 0);
  if (deadline >= now + 1000 && belay_lock_token(lock->handle, text, sizeof text) < 42)
    report(lock, "callbacks", "granted, and it has no token", 0);
  if (lock->token != NULL)
    lock->token->holders--;
  token->holders++;
  lock->token = token;
  lock->held = true;
  lock->silent_extend = lock->lost_taken = false;
  lock->seen = deadline;
  lock->granted = world->now;
  lock->granted_clock = now;
  lock->ordinal = ++check->name[lock->name].grants;
  lock->number = 0;
  lock->counted = 0;
  for (unsigned i = 0; i < lease->members; i++)
    lock->counted |= (lease->member[i].until > 0 ? 1u : 0u) << i;
  if (deadline < now + 1000)
    return; /* too short to be checked */
  sim_check_exclusive(lock);
  if (world->scenario->kind == SIM_REENTRANT)
    sim_fence_entered(lock);
  else if (lease->config->fencing)
    sim_fence_granted(lock);
}

/* "Held by another", "not sent" and "refused" must be true of the last attempt. */
static bool is_definite(const sim_lock_t *lock, int status) {
  if (!is_single(lock))
    return false;
  if (status == BELAY_EHELD)
    return lock->wait_ms == 0 || !has_waited(lock); /* else it was cut short */
  /* A refusal may also concern a command that the lock needs to count. */
  const belay__lease_config_t *config = sim_lock_lease(lock)->config;
  bool bare = !config->quarantine && config->min_replicas == 0;
  bool busy = status == BELAY_EBUSY && (lock->wait_ms == 0 || !has_waited(lock));
  return status == BELAY_EUNREACHABLE || busy || (bare && sim_is_refusal(status));
}

static void not_granted(sim_lock_t *lock, int status) {
  sim_log_t *log = &lock->base.world->check->log;
  const belay__lease_t *lease = sim_lock_lease(lock);
  static const belay__token_t none;
  if (memcmp(&lease->token, &none, sizeof none) == 0)
    return; /* it was behind others of its process */
  sim_token_t *token = is_definite(lock, status) ? sim_log_get(log, lease->token.bytes)
                                                 : sim_log_find(log, lease->token.bytes);
  if (token == NULL)
    return;
  token->ended = true;
  if (!is_definite(lock, status))
    return;
  token->refused = true;
  token->name = lock->name;
  token->process = lock->base.process->index;
  if (token->set_on != 0)
    report(lock, "truth", "the server has set its token", status);
}

void sim_result_acquire(sim_lock_t *lock, int status) {
  if (!may_acquire_end_so(lock, status))
    report(lock, "callbacks", "an acquire must not end so", status);
  if (lock->canceled && status != BELAY_ECANCELED)
    report(lock, "callbacks", "an acquire that was canceled must not end so", status);
  if (lock->closing && status == 0)
    report(lock, "callbacks", "granted, and it is being closed", status);
  if (status == 0)
    granted(lock);
  else
    not_granted(lock, status);
}

/* ---- release ---- */

void sim_result_release(sim_lock_t *lock, int status) {
  const sim_check_t *check = lock->base.world->check;
  const sim_token_t *token = lock->token;
  unsigned removed = sim_bits(token->removed_on);
  if (status != BELAY_ENOTOWNER && !may_end_so(lock, status))
    report(lock, "callbacks", "a release must not end so", status);
  if (status == 0)
    sim_fence_left(lock);
  if (!check->tokens)
    return;
  if (status == 0 && removed < check->quorum)
    report(lock, "truth", "released, and too few servers have removed its token", status);
  if (status == BELAY_ENOTOWNER && removed >= check->quorum && !check->foreign_deletes)
    report(lock, "truth", "a quorum of servers has removed its token for it", status);
}

/* ---- extend ---- */

/* A quorum had its token; it is held at least until the requested deadline. */
static void extended(const sim_lock_t *lock) {
  const sim_pending_t *op = &lock->base.op[SIM_EXTEND];
  const belay__lease_t *lease = sim_lock_lease(lock);
  sim_world_t *world = lock->base.world;
  uint64_t deadline = belay__lease_deadline(lease);
  if (!lock->held || !belay__lease_is_held(lease) ||
      deadline <= sim_process_now(lock->base.process))
    report(lock, "callbacks", "extended, and not held", 0);
  if (lock->turning != SIM_TURNS_WRITER &&
      deadline < op->called + belay__lease_validity(lease->ttl, lease->config->drift))
    report(lock, "truth", "extended by less than was requested", 0);
  if (world->check->tokens && lock->token != NULL &&
      sim_token_somewhen(world, lock->token, op->since) < world->check->quorum)
    report(lock, "truth", "extended, and too few servers had its token", 0);
}

/* The mode is the requested one. */
static void turned(sim_lock_t *lock, int status) {
  if (lock->turning == SIM_TURNS_WRITER && status == 0 && lock->held) {
    lock->writer = true;
    sim_check_exclusive(lock);
  }
  if (lock->held &&
      belay_rwlock_mode(lock->handle) != (lock->writer ? BELAY_RWLOCK_WRITE : BELAY_RWLOCK_READ))
    report(lock, "callbacks", "it has another mode than was requested", status);
}

void sim_result_extend(sim_lock_t *lock, int status) {
  bool turning = lock->turning != SIM_STAYS;
  if (turning)
    turned(lock, status);
  switch (status) {
  case 0:
    extended(lock);
    return;
  case BELAY_ESHARED:
    if (lock->turning != SIM_TURNS_WRITER)
      report(lock, "callbacks", "an extend must not end so", status);
    break;
  case BELAY_ENOTOWNER:
    if (!lock->lost_taken)
      report(lock, "loss", "not ours any more, and the loss was not reported", status);
    return;
  case BELAY_ECANCELED:
    if (lock->held)
      report(lock, "callbacks", "an extend was canceled while held", status);
    return;
  case BELAY_EEXPIRED:
    break;
  default:
    if (!may_end_so(lock, status))
      report(lock, "callbacks", "an extend must not end so", status);
  }
  if (!lock->held)
    report(lock, "callbacks", "an extend failed after the hold", status);
  else if (!turning && is_single(lock) &&
           belay__lease_deadline(sim_lock_lease(lock)) > lock->before)
    report(lock, "truth", "an extend failed, and the lease runs longer", status);
}

/* ---- loss ---- */

/* Reported at the deadline at the latest; with a true reason. */
void sim_result_lost(sim_lock_t *lock, belay_lost_t reason) {
  sim_process_t *process = lock->base.process;
  sim_world_t *world = process->world;
  uint64_t now = sim_process_now(process), due = sim_excused_until(process);
  const belay__lease_t *lease = sim_lock_lease(lock);
  world->figures.losses++;
  if (!lock->held && !lock->late_loss) {
    report(lock, "loss", "lost, and was not held", 0);
    return;
  }
  if (due < lock->seen)
    due = lock->seen;
  if (now > due && now - due > SIM_TICK)
    sim_violation(world, "loss: %s, n%u: reported %.3f ms late", lock->base.who, lock->name,
                  sim_in_ms(now - due));
  /* Servers whose votes counted at the grant, and that cannot have replied "not ours" since. */
  unsigned keep = sim_token_throughout(world, lock->token, lock->granted) & lock->counted;
  if (world->check->tokens && reason == BELAY_LOST_TAKEN && sim_bits(keep) >= world->check->quorum)
    report(lock, "loss", "taken, and a quorum had its token all the time", 0);
  if (reason != BELAY_LOST_TAKEN && is_single(lock) && now < lock->seen)
    report(lock, "loss", "expired, and the lease still ran", 0);
  if (reason == BELAY_LOST_MAX_HOLD &&
      (!lease->config->renew || lease->config->max_hold == BELAY_FOREVER ||
       now - lease->held_since < (uint64_t)lease->config->max_hold * SIM_MS))
    report(lock, "loss", "max_hold is the reason, and it is not over", 0);
  lock->held = lock->late_loss = false;
  lock->lost_taken = reason == BELAY_LOST_TAKEN;
  lock->token->ended = true;
}
