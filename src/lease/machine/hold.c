#include "lease/machine/hold.h"

#include "lease/machine/deadline.h"
#include "lease/quorum/round.h"
#include "lease/wait/hand_over.h"
#include "lease/wait/turns.h"

static void schedule_renewal(belay__lease_t *lease) {
  uint64_t due = belay__lease_renewal_due(lease);
  if (due != BELAY__NEVER)
    belay__lease_set_timer(lease, due);
}

static belay__lease_state_t lose_lease(belay__lease_t *lease, belay_lost_t reason) {
  belay__round_undo(lease, BELAY__UNDO);
  belay__lease_stop_timers(lease);
  belay__lease_end_extend(lease, reason == BELAY_LOST_TAKEN ? BELAY_ENOTOWNER : BELAY_ECANCELED);
  lease->loss = (uint8_t)reason;
  belay__defer_urgent(belay__lease_belay(lease), &lease->task);
  return BELAY__LEASE_LOST;
}

belay__lease_state_t belay__hold_expired(belay__lease_t *lease) {
  bool held_too_long = lease->config->renew && !belay__lease_renews(lease);
  return lose_lease(lease, held_too_long ? BELAY_LOST_MAX_HOLD : BELAY_LOST_EXPIRED);
}

/* Takes over the mode of an extend that a quorum confirmed. If that changes the mode, members that
 * did not confirm may still have the old mode, and no longer count. */
static void change_mode(belay__lease_t *lease) {
  for (unsigned i = 0; i < lease->members && lease->next_mode != lease->mode; i++)
    if (lease->active->exchange[i].status != 0)
      lease->member[i].until = 0;
  (void)belay__lease_set_expiry(lease);
  if (belay__lease_remaining(lease) > 0)
    lease->mode = lease->next_mode;
  lease->mode_uncertain = false;
}

/* Continues after an extend that failed. If the extend was to change the mode, nodes may now have
 * different modes. Then another extend follows soon, even without a watchdog, and restores
 * lease->mode on every node. */
static void not_extended(belay__lease_t *lease, int status) {
  /* the upgrade changed nothing on the only node, because there are other readers */
  bool refused = status == BELAY_ESHARED && lease->members == 1;
  lease->error = (int16_t)status;
  lease->next_mode = lease->mode;
  lease->mode_uncertain &= !refused;
  if (refused)
    schedule_renewal(lease);
  else if (lease->config->renew || lease->mode_uncertain)
    belay__lease_set_timer(lease, belay__lease_renewal_retry(lease));
  lease->active->failures += !refused;
}

/* Makes the next renewal earlier if the watchdog renews the lease: that renewal checks whether the
 * servers still have the lease. Its time depends on `why`, see belay__lease_check_at(). */
static belay__lease_state_t check_soon(belay__lease_t *lease, belay__check_t why) {
  uint64_t due = belay__lease_due(lease);
  if (belay__lease_renews(lease))
    belay__lease_set_timer(lease, belay__earlier(due, belay__lease_check_at(lease, why)));
  return BELAY__LEASE_HELD;
}

belay__lease_state_t belay__hold_check(belay__lease_t *lease, belay__check_t why) {
  if (lease->state != BELAY__LEASE_EXTENDING)
    return check_soon(lease, why);
  lease->recheck = true; /* the server may have executed the extend before it lost the lease */
  return BELAY__LEASE_EXTENDING;
}

static belay__lease_state_t finish_extend(belay__lease_t *lease, int status) {
  bool again = lease->recheck;
  lease->recheck = false;
  if (status == 0) {
    lease->active->failures = 0;
    belay__round_won(lease);
    change_mode(lease);
    if (belay__lease_remaining(lease) == 0)
      return BELAY__LEASE_HELD; /* the deadline has passed, and the timer is due */
    schedule_renewal(lease);
  } else {
    not_extended(lease, status);
  }
  belay__lease_end_extend(lease, status);
  return again ? check_soon(lease, BELAY__CHECK_MESSAGE) : BELAY__LEASE_HELD;
}

void belay__lease_change_ttl(belay__lease_t *lease, uint32_t ttl_ms) {
  uint64_t until = belay__lease_now(lease) + belay__lease_validity(ttl_ms, lease->config->drift);
  lease->ttl = ttl_ms;
  if (ttl_ms > lease->active->longest_ttl)
    lease->active->longest_ttl = ttl_ms;
  for (unsigned i = 0; i < lease->members; i++)
    if (lease->member[i].until > until)
      lease->member[i].until = until;
  (void)belay__lease_set_expiry(lease);
}

belay__lease_state_t belay__hold_answered(belay__lease_t *lease) {
  belay__round_leave_places(lease);
  bool extending = lease->state == BELAY__LEASE_EXTENDING;
  bool late = lease->active->round == BELAY__ROUND_EXTEND && !extending;
  if (late && belay__round_status(lease) == 0) /* a late reply counts like a reply in time */
    belay__round_won(lease);
  if (belay__lease_deadline(lease) == 0) { /* no quorum of members keeps the lease any more */
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
  if (!belay__lease_activate(lease)) {
    lease->error = BELAY_ENOMEM;
    belay__lease_set_timer(lease, belay__lease_renewal_retry(lease));
    return BELAY__LEASE_HELD;
  }
  uint64_t deadline = belay__after_ms(belay__lease_belay(lease), timeout_ms);
  belay__round_start(lease, BELAY__ROUND_EXTEND,
                     belay__earlier(deadline, belay__lease_deadline(lease)));
  belay__round_leave_places(lease); /* an acquire without a reply may have left places */
  return BELAY__LEASE_EXTENDING;
}

belay__lease_state_t belay__hold_begin(belay__lease_t *lease) {
  schedule_renewal(lease);
  bool disconnected = false; /* true if a member that counts has no connection now */
  for (unsigned i = 0; i < lease->members; i++)
    disconnected |= lease->member[i].until != 0 && belay__member_server(&lease->member[i]) == NULL;
  return disconnected ? check_soon(lease, BELAY__CHECK_CONNECTION_LOST) : BELAY__LEASE_HELD;
}

/* ---- release and close ---- */

belay__lease_state_t belay__release_start(belay__lease_t *lease, int64_t timeout_ms) {
  belay__lease_stop_timers(lease);
  lease->may_be_handed_over = false;
  if (!belay__lease_activate(lease))
    return belay__release_answered(lease, BELAY_ENOMEM);
  belay__lease_end_extend(lease, BELAY_ECANCELED);
  belay__round_forget(lease);
  uint64_t deadline = belay__after_ms(belay__lease_belay(lease), timeout_ms);
  if (!belay__hand_over_start(lease, deadline))
    belay__round_start(lease, BELAY__ROUND_RELEASE, deadline);
  return BELAY__LEASE_RELEASING;
}

/* Ends the release. If the token may still be on a member, an undo removes it. */
belay__lease_state_t belay__release_answered(belay__lease_t *lease, int status) {
  if (lease->may_be_handed_over && status != 0)
    status = BELAY_EUNKNOWN; /* BELAY_ENOTOWNER can be the effect of our own hand-over */
  if (status != 0)
    lease->error = (int16_t)status;
  else
    belay__turns_note(lease);
  if (status == 0 && lease->config->repeat_release)
    belay__round_keep_release(lease);
  belay__round_undo(lease, BELAY__UNDO);
  belay__lease_stop_timers(lease);
  belay__lease_end(lease, status);
  return BELAY__LEASE_IDLE;
}

belay__lease_state_t belay__release_overdue(belay__lease_t *lease) {
  belay__hand_over_forget(lease);
  return belay__release_answered(lease, BELAY_EUNKNOWN);
}

belay__lease_state_t belay__release_closed(belay__lease_t *lease) {
  belay__lease_stop_timers(lease);
  belay__round_forget_undo(lease);
  belay__defer(belay__lease_belay(lease), &lease->task);
  return BELAY__LEASE_CLOSED;
}

belay__lease_state_t belay__release_close(belay__lease_t *lease) {
  (void)belay__lease_activate(lease); /* without memory the close does not wait for undos */
  belay__hand_over_forget(lease);
  belay__hand_over_end(lease, BELAY_ECANCELED);
  belay__lease_stop_timers(lease);
  belay__round_undo(lease, BELAY__UNDO_AND_WAIT);
  if (!belay__is_over(lease->op) || lease->state == BELAY__LEASE_GRANTED)
    belay__lease_end(lease, BELAY_ECANCELED);
  belay__lease_end_extend(lease, BELAY_ECANCELED);
  if (!belay__round_undoing(lease))
    return belay__release_closed(lease);
  int64_t close_timeout = 0;
  bool aborts = false; /* true if a client closes, which aborts the lease at its own time */
  for (unsigned i = 0; i < lease->members; i++) {
    const belay_client_t *client = belay__lease_client(lease, i);
    aborts |= client->closing;
    if (client->close_timeout_ms > close_timeout)
      close_timeout = client->close_timeout_ms;
  }
  if (!aborts)
    belay__lease_set_timer(lease, belay__after_ms(belay__lease_belay(lease), close_timeout));
  return BELAY__LEASE_CLOSING;
}
