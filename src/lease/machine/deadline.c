#include "lease/machine/deadline.h"

#include "core/loop/backoff.h"

/* The renewals of one period are sent in at least this number of groups, at most twice as many. */
#define RENEWAL_SLOTS 16
/* After a lost connection, the holders of its leases spread their checks over this time at most. */
#define CHECK_SPREAD_MS UINT64_C(100)
/* Shortest time from the send of the last answered command to a check because of a message. */
#define CHECK_INTERVAL_MS UINT64_C(100)

uint64_t belay__lease_forgotten_after(uint32_t ttl_ms) {
  return ttl_ms * BELAY__MS + ttl_ms * BELAY__MS / 100 + 2 * BELAY__MS;
}

uint64_t belay__lease_validity(uint32_t ttl_ms, int32_t drift_ms) {
  uint64_t drift =
      drift_ms >= 0 ? (uint64_t)drift_ms * BELAY__MS : ttl_ms * BELAY__MS / 100 + 2 * BELAY__MS;
  uint64_t ttl = ttl_ms * BELAY__MS;
  return ttl > drift ? ttl - drift : 0;
}

uint64_t belay__lease_deadline(const belay__lease_t *lease) {
  for (unsigned i = 0; i < lease->members; i++) {
    unsigned as_long = 0, longer = 0;
    for (unsigned j = 0; j < lease->members; j++) {
      as_long += lease->member[j].until >= lease->member[i].until;
      longer += lease->member[j].until > lease->member[i].until;
    }
    if (longer < lease->quorum && as_long >= lease->quorum)
      return lease->member[i].until;
  }
  return 0;
}

uint64_t belay__lease_remaining(const belay__lease_t *lease) {
  if (!belay__lease_is_held(lease))
    return 0;
  uint64_t deadline = belay__lease_deadline(lease), now = belay__lease_now(lease);
  return deadline > now ? deadline - now : 0;
}

/* ---- the timer ---- */

/* Returns the time at which the deadline fires the timer: now if no quorum keeps the lease,
 * BELAY__NEVER if the deadline does not count. */
static uint64_t expiry_of(const belay__lease_t *lease) {
  if (!lease->expires)
    return BELAY__NEVER;
  uint64_t deadline = belay__lease_deadline(lease);
  return deadline > 0 ? deadline : belay__lease_now(lease);
}

uint64_t belay__lease_due(const belay__lease_t *lease) {
  return lease->is_due_set ? lease->timer.when : BELAY__NEVER;
}

static void set_both(belay__lease_t *lease, uint64_t due, uint64_t expiry) {
  belay_t *belay = belay__lease_belay(lease);
  uint64_t when = belay__earlier(due, expiry);
  lease->is_due_set = due != BELAY__NEVER;
  if (when == lease->timer.when)
    return;
  if (when != BELAY__NEVER)
    belay__timer_set(belay, BELAY__RANK_EXPIRY, &lease->timer, when);
  else
    belay__timer_stop(belay, BELAY__RANK_EXPIRY, &lease->timer);
}

bool belay__lease_set_expiry(belay__lease_t *lease) {
  lease->expires = true;
  uint64_t expiry = expiry_of(lease);
  set_both(lease, belay__lease_due(lease), expiry);
  return expiry > belay__lease_now(lease);
}

void belay__lease_set_timer(belay__lease_t *lease, uint64_t when) {
  set_both(lease, when, expiry_of(lease));
}

void belay__lease_stop_timer(belay__lease_t *lease) {
  set_both(lease, BELAY__NEVER, expiry_of(lease));
}

void belay__lease_stop_timers(belay__lease_t *lease) {
  lease->expires = false;
  set_both(lease, BELAY__NEVER, BELAY__NEVER);
}

bool belay__lease_fired(belay__lease_t *lease, belay__lease_event_t *event) {
  uint64_t expiry = expiry_of(lease);
  bool expired = expiry <= belay__lease_now(lease);
  bool was_due = lease->is_due_set;
  lease->is_due_set = false;
  lease->expires &= !expired;
  set_both(lease, BELAY__NEVER, expired ? BELAY__NEVER : expiry);
  *event = expired ? BELAY__EV_EXPIRY : BELAY__EV_TIMER;
  return expired || was_due;
}

/* ---- renewals ---- */

bool belay__lease_renews(const belay__lease_t *lease) {
  int64_t max_hold = lease->config->max_hold;
  if (!lease->config->renew || max_hold == BELAY_FOREVER)
    return lease->config->renew;
  return (belay__lease_now(lease) - lease->held_since) / BELAY__MS < (uint64_t)max_hold;
}

/* Time from a confirmed send to the next renewal: at least a tenth of the ttl, and at most half of
 * the validity, so that a second renewal fits. */
static uint64_t renew_after(const belay__lease_t *lease, uint64_t validity) {
  uint64_t ttl = lease->ttl * BELAY__MS, after = lease->config->renew_after * BELAY__MS;
  if (after == 0)
    after = ttl / 3;
  if (after < ttl / 10)
    after = ttl / 10;
  return belay__earlier(after, validity / 2);
}

/* Makes each route renew earlier by its own part of the period, up to a quarter. Otherwise the
 * leases that a stalled loop renewed together would stay due together. */
uint64_t belay__lease_renewal_due(const belay__lease_t *lease) {
  if (!belay__lease_renews(lease))
    return BELAY__NEVER;
  uint64_t deadline = belay__lease_deadline(lease), now = belay__lease_now(lease);
  uint64_t validity = belay__lease_validity(lease->ttl, lease->config->drift);
  uint64_t after = renew_after(lease, validity), rest = validity - after;
  uint64_t due = deadline > now + rest ? deadline - rest : 0;
  uint64_t sooner = after / 4 / 65536 * (lease->route >> 16);
  due = due > sooner ? due - sooner : 0;
  uint64_t slot = 1; /* a power of two, so that leases of different ttls share slots */
  while (slot <= after / RENEWAL_SLOTS / 2)
    slot *= 2;
  due -= due % slot;
  return due > now ? due : now + 1;
}

uint64_t belay__lease_renewal_retry(const belay__lease_t *lease) {
  uint64_t most = lease->ttl * BELAY__MS / 10;
  unsigned failures = lease->active != NULL ? lease->active->failures : 0;
  return belay__lease_now(lease) + 1 + belay__backoff(belay__lease_belay(lease), failures, most);
}

uint64_t belay__lease_check_at(const belay__lease_t *lease, belay__check_t why) {
  uint64_t now = belay__lease_now(lease);
  uint64_t spread = belay__earlier(lease->ttl * BELAY__MS / 50, CHECK_SPREAD_MS * BELAY__MS);
  uint64_t last = 0;
  if (why == BELAY__CHECK_CONNECTION_LOST)
    return now + belay__spread(belay__lease_belay(lease), spread);
  for (unsigned i = 0; i < lease->members; i++)
    if (lease->active->exchange[i].sent > last)
      last = lease->active->exchange[i].sent;
  uint64_t when = last + CHECK_INTERVAL_MS * BELAY__MS;
  return when > now ? when : now + 1;
}
