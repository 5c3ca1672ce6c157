#include "lease/machine/attempt.h"

#include "core/call/refusal.h"
#include "lease/machine/deadline.h"
#include "lease/quorum/round.h"
#include "lease/wait/hand_over.h"
#include "lease/wait/poll_delay.h"
#include "lease/wait/queue.h"
#include "lease/wait/turns.h"
#include "lease/wait/wake.h"

#define PROPOSALS_MAX 8 /* maximum number of fencing numbers that are proposed for one grant */

/* Returns the end of the wait, which limits all attempts of a wait except the first. The first
 * attempt has its full timeout. */
static uint64_t wait_limit(const belay__lease_t *lease) {
  bool limited = lease->active->wait_until != 0 && lease->active->attempts > 1;
  return limited ? lease->active->wait_until : BELAY__NEVER;
}

belay__lease_state_t belay__attempt(belay__lease_t *lease) {
  lease->active->attempts++;
  lease->active->started_at = belay__lease_now(lease);
  lease->ttl = lease->active->longest_ttl = lease->config->ttl;
  belay__lease_set_fence(lease, 0);
  lease->active->proposals = 0;
  lease->active->woken = lease->active->turn_queued = false;
  belay__lease_stop_timer(lease);
  belay_t *belay = belay__lease_belay(lease);
  int error = belay->host->random(belay, &lease->token, sizeof lease->token);
  if (error != 0)
    return belay__attempt_failed(lease, error);
  if (lease->active->wait_until != 0)
    belay__wake_subscribe(lease, true);
  uint64_t deadline = belay__after_ms(belay, lease->config->timeout);
  belay__round_start(lease, BELAY__ROUND_ACQUIRE, belay__earlier(deadline, wait_limit(lease)));
  return BELAY__LEASE_ACQUIRING;
}

/* True if the attempt got too few replies because the wait ended, and the attempt before it found
 * the lease held or the server's queue full. Then the result of the attempt before it applies. */
static bool cut_short(const belay__lease_t *lease, int status, uint64_t now) {
  bool unanswered =
      status == BELAY_EUNKNOWN || status == BELAY_EUNREACHABLE || status == BELAY_ENOQUORUM;
  bool contended = lease->error == BELAY_EHELD || lease->error == BELAY_EBUSY;
  return contended && unanswered && now >= wait_limit(lease) &&
         lease->active->round_deadline == wait_limit(lease);
}

/* Ends the acquire. */
static belay__lease_state_t give_up(belay__lease_t *lease, int status) {
  belay__hand_over_end(lease, status);
  belay__lease_stop_timers(lease);
  belay__round_undo(lease, BELAY__UNDO);
  belay__lease_end(lease, status);
  return BELAY__LEASE_IDLE;
}

/* Advances the next attempt because of a message, a subscription or a connection.
 *
 * - A waiter that found the lease held follows every message and no connection.
 * - A waiter whose attempt failed in another way can be woken by its own undo, or by the undo of a
 *   similar waiter. It follows only the first message, with a longer delay. It follows every new
 *   connection. */
static void advance_retry(belay__lease_t *lease, belay__woken_t by, uint64_t now) {
  bool held = lease->error == BELAY_EHELD, connected = by == BELAY__WOKEN_CONNECTED;
  uint64_t delay;
  if (held ? connected : lease->active->retry_advanced && !connected)
    return;
  lease->active->retry_advanced = true;
  uint64_t when = belay__poll_woken(lease, now, held || connected ? by : BELAY__WOKEN_AGAIN);
  /* If waiters of other clients go first, `when` replaces even an earlier poll: that poll would
   * overtake them. */
  bool in_turn = held && by == BELAY__WOKEN_ALL && belay__turns_delay(lease, &delay);
  belay__lease_set_timer(lease, in_turn ? when : belay__earlier(belay__lease_due(lease), when));
}

/* Waits for the next attempt: until its time, or until a message. */
static belay__lease_state_t wait_for_retry(belay__lease_t *lease, int status, uint64_t now) {
  belay__round_undo(lease, BELAY__UNDO_KEEP_PLACE);
  bool woken = lease->active->woken;
  if (!belay__wake_is_up(lease)) {
    belay__wake_subscribe(lease, false);
    woken |= belay__wake_is_up(lease); /* messages after the attempt may have been missed */
  }
  belay__lease_set_timer(lease, belay__poll_next(lease, status, now));
  lease->active->retry_advanced = false;
  if (woken)
    advance_retry(lease, BELAY__WOKEN_ALL, now);
  return BELAY__LEASE_WAITING;
}

belay__lease_state_t belay__attempt_failed(belay__lease_t *lease, int status) {
  uint64_t now = belay__lease_now(lease);
  belay__hand_over_end(lease, status);
  belay__lease_stop_timers(lease);
  if (cut_short(lease, status, now))
    status = lease->error;
  lease->error = (int16_t)status;
  lease->active->failures = status == BELAY_EHELD ? 0 : lease->active->failures + 1;
  lease->active->found_held = status == BELAY_EHELD ? lease->active->found_held + 1 : 0;
  lease->active->grants_in_row = 0;
  lease->active->grants_in_row_since = 0;
  bool last =
      lease->config->max_attempts != 0 && lease->active->attempts >= lease->config->max_attempts;
  if (lease->active->wait_until == 0 || last || belay__refusal_is_lasting(status))
    return give_up(lease, status);
  if (now >= lease->active->wait_until)
    return give_up(lease, status == BELAY_EHELD ? BELAY_ETIMEDOUT : status);
  return wait_for_retry(lease, status, now);
}

static belay__lease_state_t enter_granted(belay__lease_t *lease) {
  belay__lease_stop_timer(lease);
  lease->held_since = belay__lease_now(lease);
  lease->active->failures = 0;
  lease->error = 0;
  lease->recheck = false;
  lease->active->notified = BELAY__NOTIFIED_UNKNOWN;
  if (lease->active->grants_in_row_since == 0)
    lease->active->grants_in_row_since = lease->held_since;
  belay__round_leave_places(lease);
  belay__lease_end(lease, 0);
  return BELAY__LEASE_GRANTED;
}

static belay__lease_state_t propose_fence(belay__lease_t *lease, belay__round_t round) {
  uint64_t deadline = belay__after_ms(belay__lease_belay(lease), lease->config->timeout);
  deadline = belay__earlier(deadline, belay__lease_deadline(lease));
  belay__round_start(lease, round, belay__earlier(deadline, wait_limit(lease)));
  return BELAY__LEASE_FENCING;
}

belay__lease_state_t belay__attempt_won(belay__lease_t *lease) {
  belay__hand_over_end(lease, 0);
  if (!belay__round_distinct(lease))
    return belay__attempt_failed(lease, BELAY_EDUPLICATE);
  if (!belay__lease_set_expiry(lease))
    return belay__attempt_failed(lease, BELAY_EEXPIRED);
  if (!lease->config->fencing || belay__lease_fence(lease) != 0)
    return enter_granted(lease);
  return propose_fence(lease, BELAY__ROUND_READ);
}

belay__lease_state_t belay__attempt_proposed(belay__lease_t *lease, int status) {
  if (status == 0 && lease->active->round == BELAY__ROUND_ACCEPT)
    return belay__lease_set_expiry(lease) ? enter_granted(lease)
                                          : belay__attempt_failed(lease, BELAY_EEXPIRED);
  if (status == 0)
    return propose_fence(lease, BELAY__ROUND_ACCEPT);
  if (status == BELAY_EFENCED && ++lease->active->proposals < PROPOSALS_MAX)
    return propose_fence(lease, BELAY__ROUND_READ);
  return belay__attempt_failed(lease, status == BELAY_EFENCED ? BELAY_ENOQUORUM : status);
}

/* Sets the acquire, which had ended with 0, back to pending. So the attempt ends as any failed
 * attempt does. */
belay__lease_state_t belay__attempt_expired(belay__lease_t *lease) {
  lease->op = BELAY__PENDING;
  return belay__attempt_failed(lease, BELAY_EEXPIRED);
}

belay__lease_state_t belay__attempt_canceled(belay__lease_t *lease) {
  return give_up(lease, BELAY_ECANCELED);
}

/* ---- the queue ---- */

/* Sends the attempt at `when`, so that waiters of other clients go first, but after at most half of
 * the remaining wait. */
static belay__lease_state_t attempt_after(belay__lease_t *lease, uint64_t when) {
  uint64_t now = belay__lease_now(lease), until = lease->active->wait_until;
  when = belay__earlier(when, now + (until - now) / 2);
  if (when <= now)
    return belay__attempt(lease);
  lease->error = BELAY_EHELD;
  belay__lease_set_timer(lease, when);
  return BELAY__LEASE_WAITING;
}

belay__lease_state_t belay__attempt_begin(belay__lease_t *lease) {
  lease->active->found_held = 0;
  lease->active->releases = 0;
  lease->held_since = 0;
  lease->token = (belay__token_t){{0}}; /* until the first attempt */
  lease->active->grants_in_row = 0;
  lease->active->grants_in_row_since = 0;
  bool counted = lease->active->wait_until == 0 || lease->config->max_attempts != 0;
  if (!belay__queue_join(lease, counted)) /* with limited attempts: no wait for a turn */
    return counted ? belay__attempt(lease) : attempt_after(lease, belay__turns_return_at(lease));
  belay__lease_set_timer(lease, lease->active->wait_until);
  return BELAY__LEASE_QUEUED;
}

/* Ends the acquire with the last error of the queue's first lease if that lease contends, else with
 * BELAY_EHELD. The owner gets BELAY_ETIMEDOUT for BELAY_EHELD. */
belay__lease_state_t belay__attempt_overdue(belay__lease_t *lease) {
  lease->error = (int16_t)belay__queue_reason(lease);
  return give_up(lease, lease->error == BELAY_EHELD ? BELAY_ETIMEDOUT : lease->error);
}

belay__lease_state_t belay__attempt_turn(belay__lease_t *lease, belay__yield_t yield) {
  uint64_t now = belay__lease_now(lease);
  if (now >= lease->active->wait_until)
    return belay__attempt_overdue(lease);
  if (yield == BELAY__YIELD_NOT)
    return belay__attempt(lease);
  return attempt_after(lease, belay__poll_yielded(lease, now, yield));
}

belay__lease_state_t belay__attempt_woken(belay__lease_t *lease, belay__lease_state_t state,
                                          belay__woken_t by) {
  lease->active->releases += by == BELAY__WOKEN_ALL;
  if (state != BELAY__LEASE_WAITING) {
    lease->active->woken = true; /* the server may have executed the attempt before the release */
    return state;
  }
  advance_retry(lease, by, belay__lease_now(lease));
  return state;
}
