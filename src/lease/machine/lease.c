#include "lease/machine/lease.h"

#include <assert.h>
#include <string.h>

#include "belay/rwlock.h"

/* ---- the active part ---- */

static size_t active_size(const belay__lease_t *lease) {
  return sizeof(belay__active_t) + lease->members * sizeof(belay__exchange_t);
}

static belay__pool_t *active_pool(const belay__lease_t *lease) {
  return &belay__lease_leases(lease)->active[lease->members - 1];
}

static void init_active(belay__lease_t *lease) {
  belay__active_t *active = memset(lease->active, 0, active_size(lease));
  active->lease = lease;
  active->longest_ttl = lease->ttl;
  active->holds = 1;
  active->holder_ms = -1;
  active->notified = BELAY__NOTIFIED_UNKNOWN;
  active->grants_in_row_since = lease->held_since;
  belay__list_init(&active->queue_node);
}

bool belay__lease_activate(belay__lease_t *lease) {
  if (lease->active != NULL)
    return true;
  lease->active =
      belay__pool_take(belay__lease_belay(lease), active_pool(lease), active_size(lease));
  if (lease->active == NULL)
    return false;
  init_active(lease);
  return true;
}

bool belay__lease_activate_acquire(belay__lease_t *lease, uint64_t wait_until) {
  void (*extend_cb)(void) = lease->active != NULL ? lease->active->extend_cb : NULL;
  if (!belay__lease_activate(lease))
    return false;
  init_active(lease);
  lease->active->extend_cb = extend_cb; /* the owner is not notified yet that its extend ended */
  lease->active->wait_until = wait_until;
  lease->active->acquiring = true;
  return true;
}

static bool has_calls(const belay__active_t *active, unsigned members) {
  for (unsigned i = 0; i < members; i++)
    if (active->exchange[i].call != NULL || active->exchange[i].confirm != NULL ||
        active->exchange[i].late != NULL)
      return true;
  return false;
}

/* True if belay__lease_activate() makes the same active part again for this held lease. */
static bool is_plain_hold(const belay__lease_t *lease) {
  const belay__active_t *active = lease->active;
  bool downgraded = false;
  for (unsigned i = 0; i < lease->members; i++)
    downgraded |= active->exchange[i].downgrade_epoch != 0;
  bool alone = belay__list_empty(&active->queue_node);
  bool has_history = active->grants_in_row != 0 || active->failures != 0 || active->ticket != 0 ||
                     active->grants_in_row_since != lease->held_since || active->holds != 1 ||
                     active->longest_ttl != lease->ttl;
  return alone && !downgraded && !has_history && !lease->config->notice_break;
}

void belay__lease_settle(belay__lease_t *lease) {
  belay__active_t *active = lease->active;
  bool held = lease->state == BELAY__LEASE_HELD;
  bool ended = lease->state == BELAY__LEASE_IDLE || lease->state == BELAY__LEASE_LOST ||
               lease->state == BELAY__LEASE_CLOSED;
  if (active == NULL || !(ended || held) || belay__is_pending(lease->extend) ||
      has_calls(active, lease->members) || (held && !is_plain_hold(lease)))
    return;
  assert(active->wake == NULL && active->partner == NULL);
  for (unsigned i = 0; i < lease->members && held; i++)
    lease->member[i].known_restored |= active->exchange[i].status == BELAY__RESTORED;
  belay__pool_give(belay__lease_belay(lease), active_pool(lease), active, active_size(lease));
  lease->active = NULL;
}

/* ---- operations of the owner ---- */

void belay__lease_update_hold(belay__lease_t *lease) {
  bool held = lease->state == BELAY__LEASE_GRANTED || belay__lease_is_held(lease);
  bool want = belay__is_pending(lease->op) || belay__is_pending(lease->extend) ||
              lease->state >= BELAY__LEASE_CLOSING || (held && lease->ref);
  if (want == lease->holds_loop)
    return;
  lease->holds_loop = want;
  (want ? belay__hold_loop : belay__free_loop)(belay__lease_belay(lease));
}

void belay__lease_end(belay__lease_t *lease, int status) {
  if (!belay__is_pending(lease->op))
    return;
  lease->op = (int16_t)status;
  belay__defer(belay__lease_belay(lease), &lease->task);
}

/* Ends the owner's extend. A later result replaces one that the owner was not notified of yet: an
 * extend that succeeded can still end as canceled. */
void belay__lease_end_extend(belay__lease_t *lease, int status) {
  if (!belay__is_pending(lease->extend))
    return;
  if (status != 0 && lease->upgrading)
    /* the upgrade may have won, but its owner is not notified of that and stays a reader */
    lease->mode = BELAY_RWLOCK_READ;
  lease->extend = (int16_t)status;
  belay__defer(belay__lease_belay(lease), &lease->task);
}
