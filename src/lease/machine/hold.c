#include "lease/machine/hold.h"

#include "lease/machine/deadline.h"
#include "lease/machine/notify.h"
#include "lease/machine/renewal_time.h"
#include "lease/quorum/round.h"

static void schedule_renewal(belay__lease_t *lease) {
  uint64_t due = belay__lease_renewal_due(lease, belay__now(belay__lease_belay(lease)));
  if (due != BELAY__NEVER)
    belay__lease_set_timer(lease, due);
}

/* It ended by itself. Returns the state to go to. */
static belay__lease_state_t lose_lease(belay__lease_t *lease, belay_lost_t reason) {
  belay__round_undo(lease, BELAY__UNDO);
  belay__lease_stop_timers(lease);
  belay__lease_end_extend(lease, reason == BELAY_LOST_TAKEN ? BELAY_ENOTOWNER : BELAY_ECANCELED);
  belay__lease_notify_lost(lease, reason);
  return BELAY__LEASE_LOST;
}

/* The deadline passed. Returns the state to go to. */
belay__lease_state_t belay__hold_expired(belay__lease_t *lease) {
  bool over_held =
      lease->config->renew && !belay__lease_renews(lease, belay__now(belay__lease_belay(lease)));
  return lose_lease(lease, over_held ? BELAY_LOST_MAX_HOLD : BELAY_LOST_EXPIRED);
}

/* A quorum extended the lease in the new mode. Members that did not confirm still hold the old
 * mode and do not count. */
static void change_mode(belay__lease_t *lease) {
  for (unsigned i = 0; i < lease->members && lease->next_mode != lease->mode; i++)
    if (lease->member[i].status != 0)
      lease->member[i].until = 0;
  (void)belay__lease_set_expiry(lease);
  if (belay__lease_remaining(lease) > 0)
    lease->mode = lease->next_mode;
  lease->mode_uncertain = false;
}

/* The extend or the change of mode failed. Members with another state are set right soon, with
 * or without a renewal. */
static void not_extended(belay__lease_t *lease, int status) {
  bool refused = status == BELAY_ESHARED && lease->members == 1; /* and all else is as it was */
  lease->error = (int16_t)status;
  lease->next_mode = lease->mode;
  lease->mode_uncertain &= !refused;
  if (refused)
    schedule_renewal(lease);
  else if (lease->config->renew || lease->mode_uncertain)
    belay__lease_set_timer(
        lease, belay__lease_renewal_retry(lease, belay__now(belay__lease_belay(lease))));
  lease->failures += !refused;
}

/* Asks soon, if the lease would be asked for again at all. Returns the state to go to. */
static belay__lease_state_t check_soon(belay__lease_t *lease, belay__check_t why) {
  uint64_t now = belay__now(belay__lease_belay(lease));
  uint64_t due = belay__timer_is_set(&lease->timer) ? lease->timer.when : BELAY__NEVER;
  if (belay__lease_renews(lease, now))
    belay__lease_set_timer(lease, belay__earlier(due, belay__lease_check_at(lease, now, why)));
  return BELAY__LEASE_HELD;
}

belay__lease_state_t belay__hold_check(belay__lease_t *lease, belay__check_t why) {
  if (lease->state != BELAY__LEASE_EXTENDING)
    return check_soon(lease, why);
  lease->recheck = true; /* the extend may have been answered before */
  return BELAY__LEASE_EXTENDING;
}

/* A renewal or an extend was decided. Returns the state to go to. */
static belay__lease_state_t finish_extend(belay__lease_t *lease, int status) {
  bool again = lease->recheck;
  lease->recheck = false;
  if (status == 0) {
    lease->failures = 0;
    belay__round_won(lease);
    change_mode(lease);
    if (belay__lease_remaining(lease) == 0)
      return BELAY__LEASE_HELD; /* it came too late; the expiry timer is due and will say so */
    schedule_renewal(lease);
  } else {
    not_extended(lease, status);
  }
  belay__lease_end_extend(lease, status);
  return again ? check_soon(lease, BELAY__CHECK_MESSAGE) : BELAY__LEASE_HELD;
}

/* The owner asked for another ttl: it counts from now on, and a shorter one at once. */
void belay__lease_change_ttl(belay__lease_t *lease, uint32_t ttl_ms) {
  uint64_t until =
      belay__now(belay__lease_belay(lease)) + belay__lease_validity(ttl_ms, lease->config->drift);
  lease->ttl = ttl_ms;
  if (ttl_ms > lease->longest_ttl)
    lease->longest_ttl = ttl_ms;
  for (unsigned i = 0; i < lease->members; i++)
    if (lease->member[i].until > until)
      lease->member[i].until = until;
  (void)belay__lease_set_expiry(lease);
}

/* A member said something while the lease is held: to a renewal, or late, when the others had decided. Returns the
 * state to go to. */
belay__lease_state_t belay__hold_answered(belay__lease_t *lease) {
  belay__round_leave_places(lease);
  bool extending = lease->state == BELAY__LEASE_EXTENDING;
  bool late = lease->round == BELAY__ROUND_EXTEND && !extending;
  if (late && belay__round_status(lease) == 0) /* it counts as if it had come before */
    belay__round_won(lease);
  if (belay__lease_deadline(lease) == 0) { /* no quorum has it any more */
    lease->error = BELAY_ENOTOWNER;
    return lose_lease(lease, BELAY_LOST_TAKEN);
  }
  (void)belay__lease_set_expiry(lease);
  int status = extending ? belay__round_status(lease) : BELAY__PENDING;
  return status == BELAY__PENDING ? (belay__lease_state_t)lease->state
                                  : finish_extend(lease, status);
}

belay__lease_state_t belay__hold_renew(belay__lease_t *lease, int64_t timeout_ms) {
  belay__lease_stop_timer(lease);
  uint64_t deadline = belay__after_ms(belay__lease_belay(lease), timeout_ms);
  belay__round_start(lease, BELAY__ROUND_EXTEND,
                     belay__earlier(deadline, belay__lease_deadline(lease)));
  belay__round_leave_places(lease); /* an earlier unanswered attempt may have left places */
  return BELAY__LEASE_EXTENDING;
}

/* The owner is about to know: from now on the watchdog works. */
belay__lease_state_t belay__hold_begin(belay__lease_t *lease) {
  schedule_renewal(lease);
  bool disconnected = false; /* from a server that was lost when it had granted it */
  for (unsigned i = 0; i < lease->members; i++)
    disconnected |= lease->member[i].until != 0 && belay__member_server(&lease->member[i]) == NULL;
  return disconnected ? check_soon(lease, BELAY__CHECK_CONNECTION_LOST) : BELAY__LEASE_HELD;
}
