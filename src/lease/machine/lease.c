/* The lease machine.
 *
 *   IDLE, LOST --acquire, others of this client come first--> QUEUED --cancel, wait over--> IDLE
 *    |                                                    | its turn (or after a rest, from WAITING)
 *    acquire         +------<-- next attempt, woken ------|--+
 *    |  (after a release that others heard of: WAITING,   |  |
 *    |  while they go first: turns.c)                     |  |
 *    v               v                                    v  |
 *   IDLE ----------> ACQUIRING --not held,--------> WAITING --cancel, wait over, no token--> IDLE
 *    ^                 |     |     time left         ^  ^
 *    |<-cancel, final--+     | quorum, in time       |  |
 *    |  failure              v                       |  |
 *    |<-cancel, final-- FENCING --no majority, ------+  |
 *    |  failure              |    too late, time left   |
 *    |                       | a majority has the       |
 *    |                       | number (or needs none)   |
 *    |                       v                          |
 *    |<-cancel, too late- GRANTED --too late after all,-+
 *    |  at the last          | its owner is told
 *    |                       v
 *    +--answer-- RELEASING <--release-- HELD --deadline, or no quorum has it--> LOST --acquire--> ACQUIRING
 *                                       | ^
 *                                       +-+ renewal, extend: it stays HELD. If the server may have lost the lease
 *                                           (connection lost, break heard of) a renewal is due at once
 *
 *   any --close--> CLOSING --undone, or patience is over--> CLOSED
 *
 * A release passes the lease to the next in the line (queue.c), if there is one: that one's attempt takes it from
 * our token, and its answer is that of our release. If it does not come to that, we release by ourselves, from
 * either token.
 *
 * Only belay__lease_step() writes the state; owner.c has what the owner asks and is told. A token is used for
 * one attempt: when the attempt does not end as held, its token is undone on every member that may have it,
 * behind the call in flight, and is never sent in an acquire again. The deadline is what a quorum of members
 * keeps for us, each counted from just before the first byte of its last acknowledged acquire or extend was
 * sent, less the drift; the expiry timer stands at it in FENCING, GRANTED and HELD, and fires before anything
 * else when the loop comes back late. While a round is being asked, nothing is decided.
 *
 * FENCING proposes a number to all members and is through when a majority has accepted it: READ asks for a
 * number that is larger than what is stored, ACCEPT stores the largest of those; refused, READ again. */
#include "lease/machine/lease.h"

#include <assert.h>
#include <string.h>

#define PROPOSALS_MAX 8 /* fencing numbers for one grant, each refused for a larger one */

/* ---- leaves: time -------------------------------------------------------------------------------------- */

static void stop_timers(belay__lease_t *lease) {
  belay__timer_stop(belay__lease_host(lease), BELAY__RANK_EXPIRY, &lease->expiry);
  belay__timer_stop(belay__lease_host(lease), BELAY__RANK_OTHER, &lease->timer);
}

static void set_timer(belay__lease_t *lease, uint64_t when) {
  belay__timer_set(belay__lease_host(lease), BELAY__RANK_OTHER, &lease->timer, when);
}

/* Puts the expiry timer at the deadline; false if that is not ahead. */
static bool set_expiry(belay__lease_t *lease) {
  belay_t *belay = belay__lease_host(lease);
  uint64_t deadline = belay__lease_deadline(lease), now = belay__now(belay);
  belay__timer_set(belay, BELAY__RANK_EXPIRY, &lease->expiry, deadline > 0 ? deadline : now);
  return deadline > now;
}

static void schedule_renewal(belay__lease_t *lease) {
  uint64_t due = belay__lease_renewal_due(lease, belay__now(belay__lease_host(lease)));
  if (due != BELAY__NEVER)
    set_timer(lease, due);
}

/* ---- leaves: talking ----------------------------------------------------------------------------------- */

/* A round that could not be sent at all is decided already; that is looked at from the timer. */
static void start_round(belay__lease_t *lease, belay__round_t round, int64_t timeout_ms,
                        uint64_t limit) {
  belay__round_start(lease, round, (uint64_t)timeout_ms * BELAY__MS, limit);
  lease->asking = true;
  if (belay__round_status(lease) != BELAY__PENDING)
    set_timer(lease, belay__now(belay__lease_host(lease)));
}

static belay__lease_state_t attempt_failed(belay__lease_t *lease, int status);

/* The end of the wait cuts every attempt short but the first: the first is answered, or has its whole timeout. */
static uint64_t wait_limit(const belay__lease_t *lease) {
  bool limited = lease->bid->wait_until != 0 && lease->attempts > 1;
  return limited ? lease->bid->wait_until : BELAY__NEVER;
}

/* One attempt, with a token of its own. Returns the state to go to. */
static belay__lease_state_t attempt(belay__lease_t *lease) {
  lease->attempts++;
  lease->bid->asked_at = belay__now(belay__lease_host(lease));
  lease->ttl = lease->longest_ttl = lease->terms->ttl;
  lease->fence = 0;
  lease->bid->proposals = 0;
  lease->bid->woken = false;
  belay__timer_stop(belay__lease_host(lease), BELAY__RANK_OTHER, &lease->timer);
  belay_t *belay = belay__lease_host(lease);
  int error = belay->host->random(belay, &lease->token, sizeof lease->token);
  if (error != 0)
    return attempt_failed(lease, error);
  if (lease->bid->wait_until != 0)
    belay__wake_listen(lease, true);
  start_round(lease, BELAY__ROUND_ACQUIRE, lease->terms->timeout, wait_limit(lease));
  return BELAY__LEASE_ACQUIRING;
}

/* ---- leaves: how attempts end ---------------------------------------------------------------------------- */

/* The end of the wait cut the attempt short: that it was not answered says nothing, and if the attempt before it found
 * the lock held, or its queue full, that still stands. */
static bool cut_short(const belay__lease_t *lease, int status, uint64_t now) {
  bool unanswered =
      status == BELAY_EUNKNOWN || status == BELAY_EUNREACHABLE || status == BELAY_ENOQUORUM;
  bool contended = lease->error == BELAY_EHELD || lease->error == BELAY_EBUSY;
  return contended && unanswered && now >= wait_limit(lease) &&
         lease->answer_by == wait_limit(lease);
}

/* The attempts of an acquire are over. Returns the state to go to. */
static belay__lease_state_t give_up(belay__lease_t *lease, int status) {
  stop_timers(lease);
  belay__round_undo(lease, BELAY__UNDO);
  belay__lease_end(lease, status);
  return BELAY__LEASE_IDLE;
}

static uint64_t earlier(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* Asks sooner because of what was heard: that it may be free is news for who found it held. Whose grant did not count,
 * who was refused or not answered, may hear his own undo, or that of others like him; who answered each of those at once
 * would do nothing else, so he does it later, and once. */
static void hasten(belay__lease_t *lease, belay__woken_t by, uint64_t now) {
  bool held = lease->error == BELAY_EHELD, connected = by == BELAY__WOKEN_CONNECTED;
  uint64_t delay;
  if (held ? connected : lease->bid->hastened && !connected)
    return;
  lease->bid->hastened = true;
  uint64_t when =
      belay__lease_woken_attempt(lease, now, held || connected ? by : BELAY__WOKEN_AGAIN);
  /* Where others go first a poll that was due does not come before them. */
  bool in_turn = held && by == BELAY__WOKEN_ALL && belay__crowd_delay(lease, &delay);
  set_timer(lease, in_turn ? when : earlier(lease->timer.when, when));
}

/* Waits for the time to ask again, or for what is heard. */
static belay__lease_state_t wait(belay__lease_t *lease, int status, uint64_t now) {
  belay__round_undo(lease, BELAY__UNDO_KEEP_PLACE);
  bool heard = lease->bid->woken;
  if (!belay__wake_is_up(lease)) {
    belay__wake_listen(lease, false);
    heard |= belay__wake_is_up(lease); /* it was not when we asked */
  }
  set_timer(lease, belay__lease_next_attempt(lease, status, now));
  lease->bid->hastened = false;
  if (heard)
    hasten(lease, BELAY__WOKEN_ALL, now);
  return BELAY__LEASE_WAITING;
}

/* An attempt did not end as held. Returns the state to go to. */
static belay__lease_state_t attempt_failed(belay__lease_t *lease, int status) {
  uint64_t now = belay__now(belay__lease_host(lease));
  belay__pass_over(lease, status);
  stop_timers(lease);
  if (cut_short(lease, status, now))
    status = lease->error;
  lease->error = (int16_t)status;
  lease->failures = status == BELAY_EHELD ? 0 : lease->failures + 1;
  lease->bid->found_held = status == BELAY_EHELD ? lease->bid->found_held + 1 : 0;
  lease->streak = 0;
  lease->streak_since = 0;
  bool last = lease->terms->max_attempts != 0 && lease->attempts >= lease->terms->max_attempts;
  if (lease->bid->wait_until == 0 || last || belay__round_is_lasting(status))
    return give_up(lease, status);
  if (now >= lease->bid->wait_until)
    return give_up(lease, status == BELAY_EHELD ? BELAY_ETIMEDOUT : status);
  return wait(lease, status, now);
}

/* It is ours. Returns the state to go to. */
static belay__lease_state_t granted(belay__lease_t *lease) {
  lease->asking = false;
  belay__timer_stop(belay__lease_host(lease), BELAY__RANK_OTHER, &lease->timer);
  lease->held_since = belay__now(belay__lease_host(lease));
  lease->failures = 0;
  lease->error = 0;
  lease->had = true;
  lease->recheck = false;
  lease->told = BELAY__UNTOLD;
  if (lease->streak_since == 0)
    lease->streak_since = lease->held_since;
  belay__round_leave_places(lease);
  belay__lease_end(lease, 0);
  return BELAY__LEASE_GRANTED;
}

static belay__lease_state_t propose(belay__lease_t *lease, belay__round_t round) {
  start_round(lease, round, lease->terms->timeout,
              earlier(wait_limit(lease), belay__lease_deadline(lease)));
  return BELAY__LEASE_FENCING;
}

/* A quorum said yes. Returns the state to go to. */
static belay__lease_state_t won(belay__lease_t *lease) {
  belay__pass_over(lease, 0);
  if (!belay__round_distinct(lease))
    return attempt_failed(lease, BELAY_EDUPLICATE);
  if (!set_expiry(lease))
    return attempt_failed(lease, BELAY_EEXPIRED);
  if (!lease->terms->fencing || lease->fence != 0)
    return granted(lease);
  return propose(lease, BELAY__ROUND_READ);
}

/* A round about the fencing number is decided. Returns the state to go to. */
static belay__lease_state_t proposed(belay__lease_t *lease, int status) {
  if (status == 0 && lease->round == BELAY__ROUND_ACCEPT)
    return set_expiry(lease) ? granted(lease) : attempt_failed(lease, BELAY_EEXPIRED);
  if (status == 0)
    return propose(lease, BELAY__ROUND_ACCEPT);
  if (status == BELAY_EFENCED && ++lease->bid->proposals < PROPOSALS_MAX)
    return propose(lease, BELAY__ROUND_READ);
  return attempt_failed(lease, status == BELAY_EFENCED ? BELAY_ENOQUORUM : status);
}

/* It ended by itself. Returns the state to go to. */
static belay__lease_state_t lost(belay__lease_t *lease, belay_lost_t reason) {
  belay__round_undo(lease, BELAY__UNDO);
  stop_timers(lease);
  belay__lease_end_extend(lease, reason == BELAY_LOST_TAKEN ? BELAY_ENOTOWNER : BELAY_ECANCELED);
  belay__lease_tell_lost(lease, reason);
  return BELAY__LEASE_LOST;
}

/* The deadline passed. Returns the state to go to. */
static belay__lease_state_t expired(belay__lease_t *lease) {
  bool over_held =
      lease->terms->renew && !belay__lease_renews(lease, belay__now(belay__lease_host(lease)));
  return lost(lease, over_held ? BELAY_LOST_MAX_HOLD : BELAY_LOST_EXPIRED);
}

/* The same before the owner was told of the grant. */
static belay__lease_state_t expired_untold(belay__lease_t *lease) {
  lease->op_over = false;
  return attempt_failed(lease, BELAY_EEXPIRED);
}

/* A quorum has extended it in the mode that was wanted. Who has not said so keeps it in the other one, which does not
 * count for this. */
static void change_mode(belay__lease_t *lease) {
  for (unsigned i = 0; i < lease->members && lease->want != lease->mode; i++)
    if (lease->member[i].status != 0)
      lease->member[i].until = 0;
  (void)set_expiry(lease);
  if (belay__lease_remaining(lease) > 0)
    lease->mode = lease->want;
  lease->unsettled = false;
}

/* Not extended, or not in that mode: what may be otherwise on some node is set right soon, renewed or not. */
static void not_extended(belay__lease_t *lease, int status) {
  bool refused = status == BELAY_ESHARED && lease->members == 1; /* and all else is as it was */
  lease->error = (int16_t)status;
  lease->want = lease->mode;
  lease->unsettled &= !refused;
  if (refused)
    schedule_renewal(lease);
  else if (lease->terms->renew || lease->unsettled)
    set_timer(lease, belay__lease_renewal_retry(lease, belay__now(belay__lease_host(lease))));
  lease->failures += !refused;
}

/* The server may have lost the lease since it was asked: asks soon, if it would be asked again at all. Returns the
 * state to go to. */
static belay__lease_state_t check(belay__lease_t *lease, belay__check_t why) {
  uint64_t now = belay__now(belay__lease_host(lease));
  lease->recheck = lease->asking; /* what is being asked may have been answered before */
  if (!lease->asking && belay__lease_renews(lease, now))
    set_timer(lease, earlier(belay__timer_is_set(&lease->timer) ? lease->timer.when : BELAY__NEVER,
                             belay__lease_check_at(lease, now, why)));
  return BELAY__LEASE_HELD;
}

/* A renewal or an extend was decided. Returns the state to go to. */
static belay__lease_state_t extended(belay__lease_t *lease, int status) {
  lease->asking = false;
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
  return lease->recheck ? check(lease, BELAY__CHECK_HEARD) : BELAY__LEASE_HELD;
}

/* The owner asked for another ttl: it counts from now on, and a shorter one at once. */
void belay__lease_change_ttl(belay__lease_t *lease, uint32_t ttl_ms) {
  uint64_t until =
      belay__now(belay__lease_host(lease)) + belay__lease_validity(ttl_ms, lease->terms->drift);
  lease->ttl = ttl_ms;
  if (ttl_ms > lease->longest_ttl)
    lease->longest_ttl = ttl_ms;
  for (unsigned i = 0; i < lease->members; i++)
    if (lease->member[i].until > until)
      lease->member[i].until = until;
  (void)set_expiry(lease);
}

/* A member said something while the lease is held: to a renewal, or late, when the others had decided. Returns the
 * state to go to. */
static belay__lease_state_t heard(belay__lease_t *lease) {
  belay__round_leave_places(lease);
  bool late = lease->round == BELAY__ROUND_EXTEND && !lease->asking;
  if (late && belay__round_status(lease) == 0) /* it counts as if it had come before */
    belay__round_won(lease);
  if (belay__lease_deadline(lease) == 0) { /* no quorum has it any more */
    lease->error = BELAY_ENOTOWNER;
    return lost(lease, BELAY_LOST_TAKEN);
  }
  (void)set_expiry(lease);
  int status = lease->asking ? belay__round_status(lease) : BELAY__PENDING;
  return status == BELAY__PENDING ? BELAY__LEASE_HELD : extended(lease, status);
}

static belay__lease_state_t renew(belay__lease_t *lease, int64_t timeout_ms) {
  belay__timer_stop(belay__lease_host(lease), BELAY__RANK_OTHER, &lease->timer);
  start_round(lease, BELAY__ROUND_EXTEND, timeout_ms, belay__lease_deadline(lease));
  belay__round_leave_places(lease); /* what was asked before may have left some, unheard */
  return BELAY__LEASE_HELD;
}

/* The owner is about to know: from now on the watchdog works. */
static belay__lease_state_t told(belay__lease_t *lease) {
  schedule_renewal(lease);
  bool apart = false; /* from a server that was lost when it had granted it */
  for (unsigned i = 0; i < lease->members; i++)
    apart |= lease->member[i].until != 0 && belay__member_server(&lease->member[i]) == NULL;
  return apart ? check(lease, BELAY__CHECK_LOST) : BELAY__LEASE_HELD;
}

/* The owner does not want it any more. Returns the state to go to. */
static belay__lease_state_t canceled(belay__lease_t *lease) {
  belay__pass_over(lease, BELAY_ECANCELED);
  belay__round_undo(lease, BELAY__UNDO);
  stop_timers(lease);
  belay__lease_end(lease, BELAY_ECANCELED);
  return BELAY__LEASE_IDLE;
}

static belay__lease_state_t give_back(belay__lease_t *lease, int64_t timeout_ms) {
  stop_timers(lease);
  belay__lease_end_extend(lease, BELAY_ECANCELED);
  belay__round_forget(lease);
  lease->offered = false;
  if (!belay__pass(lease, belay__after_ms(belay__lease_host(lease), timeout_ms)))
    start_round(lease, BELAY__ROUND_RELEASE, timeout_ms, BELAY__NEVER);
  return BELAY__LEASE_RELEASING;
}

/* It was not passed on after all, or it is not known. Returns the state to go to. */
static belay__lease_state_t give_back_still(belay__lease_t *lease, bool offered) {
  uint64_t now = belay__now(belay__lease_host(lease));
  uint64_t by = lease->answer_by > now ? lease->answer_by : now;
  lease->offered = offered;
  belay__timer_stop(belay__lease_host(lease), BELAY__RANK_OTHER, &lease->timer);
  belay__round_start(lease, BELAY__ROUND_RELEASE, by - now,
                     by); /* also if we stood still meanwhile */
  if (belay__round_status(lease) != BELAY__PENDING)
    set_timer(lease, now);
  return BELAY__LEASE_RELEASING;
}

/* A release was answered. What is not known to be gone is undone. */
static belay__lease_state_t released(belay__lease_t *lease, int status) {
  if (lease->offered && status != 0) /* what was passed on is not ours, and was not lost */
    status = BELAY_EUNKNOWN;
  if (status != 0)
    lease->error = (int16_t)status;
  else
    belay__crowd_note(lease);
  if (status == 0 && lease->terms->repeat_release)
    belay__round_keep_release(lease);
  belay__round_undo(lease, BELAY__UNDO);
  stop_timers(lease);
  belay__lease_end(lease, status);
  return BELAY__LEASE_IDLE;
}

/* Who it is passed to has not answered in time for us. */
static belay__lease_state_t passed_overdue(belay__lease_t *lease) {
  belay__pass_forget(lease);
  return released(lease, BELAY_EUNKNOWN);
}

static belay__lease_state_t closed(belay__lease_t *lease) {
  stop_timers(lease);
  belay__round_forget_undo(lease);
  belay__defer(belay__lease_host(lease), &lease->task);
  return BELAY__LEASE_CLOSED;
}

/* What every close does, whatever the state. Returns the state to go to. */
static belay__lease_state_t close_lease(belay__lease_t *lease) {
  belay__pass_forget(lease);
  belay__pass_over(lease, BELAY_ECANCELED);
  stop_timers(lease);
  belay__round_undo(lease, BELAY__UNDO_AND_WAIT);
  if (!lease->op_over || lease->state == BELAY__LEASE_GRANTED)
    belay__lease_end(lease, BELAY_ECANCELED);
  belay__lease_end_extend(lease, BELAY_ECANCELED);
  if (!belay__round_undoing(lease))
    return closed(lease);
  int64_t patience = 0;
  for (unsigned i = 0; i < lease->members; i++)
    if (lease->member[i].client->close_timeout_ms > patience)
      patience = lease->member[i].client->close_timeout_ms;
  set_timer(lease, belay__after_ms(belay__lease_host(lease), patience));
  return BELAY__LEASE_CLOSING;
}

/* ---- leaves: the line ------------------------------------------------------------------------------------ */

/* Lets others go first until then, or until half of the wait is over. Returns the state to go to. */
static belay__lease_state_t attempt_after(belay__lease_t *lease, uint64_t when) {
  uint64_t now = belay__now(belay__lease_host(lease)), until = lease->bid->wait_until;
  when = earlier(when, now + (until - now) / 2);
  if (when <= now)
    return attempt(lease);
  lease->error = BELAY_EHELD;
  set_timer(lease, when);
  return BELAY__LEASE_WAITING;
}

/* The owner wants it. Returns the state to go to. */
static belay__lease_state_t begin(belay__lease_t *lease) {
  lease->bid->found_held = 0;
  lease->bid->releases = 0;
  lease->had = false;
  lease->streak = 0;
  lease->streak_since = 0;
  bool counted = lease->bid->wait_until == 0 || lease->terms->max_attempts != 0;
  if (!belay__line_join(lease, counted)) /* who has but so many attempts makes them */
    return counted ? attempt(lease) : attempt_after(lease, belay__crowd_return_at(lease));
  set_timer(lease, lease->bid->wait_until);
  return BELAY__LEASE_QUEUED;
}

/* Its turn did not come in time: those who come first do not get it either, and they say why. */
static belay__lease_state_t overdue(belay__lease_t *lease) {
  lease->error = (int16_t)belay__line_reason(lease);
  return give_up(lease, lease->error == BELAY_EHELD ? BELAY_ETIMEDOUT : lease->error);
}

/* Its turn. Returns the state to go to. */
static belay__lease_state_t take_turn(belay__lease_t *lease, belay__yield_t yield) {
  uint64_t now = belay__now(belay__lease_host(lease));
  if (now >= lease->bid->wait_until)
    return overdue(lease);
  if (yield == BELAY__YIELD_NOT)
    return attempt(lease);
  return attempt_after(lease, belay__lease_yielded_attempt(lease, now, yield));
}

/* It may be free. Returns the state to go to. */
static belay__lease_state_t woken(belay__lease_t *lease, belay__lease_state_t state,
                                  belay__woken_t by) {
  lease->bid->releases += by == BELAY__WOKEN_ALL;
  if (state != BELAY__LEASE_WAITING) {
    lease->bid->woken = true; /* what is being asked may have been answered before */
    return state;
  }
  hasten(lease, by, belay__now(belay__lease_host(lease)));
  return state;
}

void belay__lease_connected(belay__lease_t *lease) {
  unsigned up = 0;
  bool waits = lease->state == BELAY__LEASE_WAITING;
  bool renews = lease->state == BELAY__LEASE_HELD && !lease->asking;
  if (lease->failures == 0 || !belay__timer_is_set(&lease->timer) || (!waits && !renews))
    return;
  for (unsigned i = 0; i < lease->members; i++)
    up += belay__member_server(&lease->member[i]) != NULL;
  if (up < lease->quorum)
    return;
  uint64_t now = belay__now(belay__lease_host(lease));
  if (waits)
    belay__lease_step(lease, BELAY__EV_WAKE, BELAY__WOKEN_CONNECTED);
  else
    set_timer(lease, earlier(lease->timer.when, belay__lease_renewal_soon(lease, now)));
}

/* What goes with a state: who waits for the server listens; who is through leaves the line. */
static void settle(belay__lease_t *lease) {
  belay__lease_state_t state = (belay__lease_state_t)lease->state;
  bool waits = state == BELAY__LEASE_WAITING || state == BELAY__LEASE_ACQUIRING ||
               state == BELAY__LEASE_FENCING;
  bool granted = state == BELAY__LEASE_GRANTED && !lease->terms->kind->passes;
  if (!waits)
    belay__wake_stop(lease);
  if (state == BELAY__LEASE_HELD)
    belay__wake_watch(lease);
  else
    belay__wake_unwatch(lease);
  if (granted || state == BELAY__LEASE_IDLE || state >= BELAY__LEASE_LOST)
    belay__line_leave(lease, granted);
  if (state == BELAY__LEASE_IDLE || state >= BELAY__LEASE_HELD)
    belay__lease_end_bid(lease);
  belay__lease_update_hold(lease);
}

/* ---- the machine --------------------------------------------------------------------------------------- */

/* What can happen in which state. The owner is kept to it by the public functions; what is not asked any more does
 * not answer; a timer that a state has no use for is stopped when it is entered. */
#define ON(name) (1u << BELAY__EV_##name)
static const unsigned possible[] = {
    [BELAY__LEASE_IDLE] = ON(ACQUIRE) | ON(CLOSE) | ON(TOLD),
    [BELAY__LEASE_QUEUED] = ON(CANCEL) | ON(CLOSE) | ON(TIMER) | ON(TURN),
    [BELAY__LEASE_ACQUIRING] = ON(CANCEL) | ON(CLOSE) | ON(ANSWER) | ON(TIMER) | ON(WAKE),
    [BELAY__LEASE_FENCING] =
        ON(CANCEL) | ON(CLOSE) | ON(ANSWER) | ON(TIMER) | ON(EXPIRY) | ON(WAKE),
    [BELAY__LEASE_WAITING] = ON(CANCEL) | ON(CLOSE) | ON(TIMER) | ON(WAKE) | ON(TURN),
    [BELAY__LEASE_GRANTED] = ON(CANCEL) | ON(CLOSE) | ON(ANSWER) | ON(EXPIRY) | ON(TOLD),
    [BELAY__LEASE_HELD] =
        ON(CHECK) | ON(RELEASE) | ON(EXTEND) | ON(CLOSE) | ON(ANSWER) | ON(TIMER) | ON(EXPIRY),
    [BELAY__LEASE_RELEASING] = ON(KEPT) | ON(CLOSE) | ON(ANSWER) | ON(TIMER),
    [BELAY__LEASE_LOST] = ON(ACQUIRE) | ON(CLOSE),
    [BELAY__LEASE_CLOSING] = ON(CLOSE) | ON(TIMER) | ON(TOLD) | ON(UNDONE),
    [BELAY__LEASE_CLOSED] = ON(CLOSE) | ON(TOLD),
};

bool belay__lease_expects(belay__lease_state_t state, belay__lease_event_t event) {
  return (possible[state] & (1u << event)) != 0;
}

/* The state after an event. */
static belay__lease_state_t next_state(belay__lease_t *lease, belay__lease_event_t event,
                                       uint64_t arg) {
  belay__lease_state_t state = (belay__lease_state_t)lease->state;
  int status;
  if (event == BELAY__EV_CLOSE && state < BELAY__LEASE_CLOSING)
    return close_lease(lease);
  if (event == BELAY__EV_CANCEL)
    return canceled(lease);
  if (event == BELAY__EV_WAKE)
    return woken(lease, state, (belay__woken_t)arg);

  switch (state) {
  case BELAY__LEASE_IDLE:
  case BELAY__LEASE_LOST:
    return event == BELAY__EV_ACQUIRE ? begin(lease) : state;

  case BELAY__LEASE_QUEUED:
    if (event == BELAY__EV_TIMER)
      return overdue(lease);
    return take_turn(lease, (belay__yield_t)arg);

  case BELAY__LEASE_ACQUIRING:
    status = belay__round_status(lease);
    if (status == BELAY__PENDING)
      return state;
    return status == 0 ? won(lease) : attempt_failed(lease, status);

  case BELAY__LEASE_FENCING:
    if (event == BELAY__EV_EXPIRY)
      return attempt_failed(lease, BELAY_EEXPIRED);
    status = belay__round_status(lease);
    return status == BELAY__PENDING ? state : proposed(lease, status);

  case BELAY__LEASE_WAITING:
    if (event == BELAY__EV_TURN)
      return take_turn(lease, (belay__yield_t)arg);
    return belay__now(belay__lease_host(lease)) < lease->bid->wait_until
               ? attempt(lease)
               : attempt_failed(lease, lease->error);

  case BELAY__LEASE_GRANTED:
    if (event == BELAY__EV_EXPIRY)
      return expired_untold(lease);
    if (event == BELAY__EV_TOLD)
      return told(lease);
    belay__round_leave_places(lease);
    (void)set_expiry(lease); /* an answer that was not needed any more */
    return state;

  case BELAY__LEASE_HELD:
    if (event == BELAY__EV_EXPIRY)
      return expired(lease);
    if (event == BELAY__EV_RELEASE)
      return give_back(lease, (int64_t)arg);
    if (event == BELAY__EV_EXTEND)
      return renew(lease, (int64_t)arg);
    if (event == BELAY__EV_CHECK)
      return check(lease, (belay__check_t)arg);
    if (event == BELAY__EV_TIMER && !lease->asking)
      return lease->unsettled || belay__lease_renews(lease, belay__now(belay__lease_host(lease)))
                 ? renew(lease, lease->terms->timeout)
                 : state;
    return heard(lease);

  case BELAY__LEASE_RELEASING:
    if (event == BELAY__EV_KEPT)
      return give_back_still(lease, arg != 0);
    if (event == BELAY__EV_TIMER && lease->partner != NULL)
      return passed_overdue(lease);
    status = belay__round_status(lease);
    return status == BELAY__PENDING ? state : released(lease, status);

  case BELAY__LEASE_CLOSING:
    if (event == BELAY__EV_TOLD || (event == BELAY__EV_UNDONE && belay__round_undoing(lease)))
      return state;
    return closed(lease);

  case BELAY__LEASE_CLOSED:
    return state;
  }
  return state;
}

void belay__lease_step(belay__lease_t *lease, belay__lease_event_t event, uint64_t arg) {
  if (lease->starting) { /* whoever asks looks at what has come of it when all are asked */
    assert(event == BELAY__EV_ANSWER);
    return;
  }
  if (!belay__lease_expects((belay__lease_state_t)lease->state, event)) {
    assert(false && "what cannot happen in this state");
    return;
  }
  belay_t *belay = belay__lease_host(lease); /* which may outlive the lease */
  bool stopped = belay__stop_clock(belay);
  lease->state = (uint8_t)next_state(lease, event, arg);
  settle(lease);
  belay__start_clock(belay, stopped);
}
