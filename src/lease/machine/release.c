#include "lease/machine/release.h"

#include "lease/machine/notify.h"
#include "lease/quorum/round.h"
#include "lease/wait/hand_over.h"
#include "lease/wait/turns.h"

belay__lease_state_t belay__release_start(belay__lease_t *lease, int64_t timeout_ms) {
  belay__lease_stop_timers(lease);
  belay__lease_end_extend(lease, BELAY_ECANCELED);
  belay__round_forget(lease);
  lease->may_be_handed_over = false;
  uint64_t deadline = belay__after_ms(belay__lease_belay(lease), timeout_ms);
  if (!belay__hand_over_start(lease, deadline))
    belay__round_start(lease, BELAY__ROUND_RELEASE, deadline);
  return BELAY__LEASE_RELEASING;
}

/* The reply of a release. A token that may still exist is undone. */
belay__lease_state_t belay__release_answered(belay__lease_t *lease, int status) {
  if (lease->may_be_handed_over &&
      status != 0) /* a hand-over that was executed is neither ours nor lost */
    status = BELAY_EUNKNOWN;
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

/* The hand-over's reply did not come within this lease's time. */
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

/* Handles a close, in every state before CLOSING. Returns the next state. */
belay__lease_state_t belay__release_close(belay__lease_t *lease) {
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
  for (unsigned i = 0; i < lease->members; i++)
    if (lease->member[i].client->close_timeout_ms > close_timeout)
      close_timeout = lease->member[i].client->close_timeout_ms;
  belay__lease_set_timer(lease, belay__after_ms(belay__lease_belay(lease), close_timeout));
  return BELAY__LEASE_CLOSING;
}
