/* The lease machine.
 *
 *                    +------<-- next attempt --------+
 *                    v                               |
 *   IDLE --acquire--> ACQUIRING --not held,--------> WAITING --cancel, wait over, no token--> IDLE
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
 *                                       +-+ renewal, extend: it stays HELD
 *
 *   any --close--> CLOSING --undone, or patience is over--> CLOSED
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
#include "lease/lease.h"

#include <assert.h>
#include <string.h>

#define ANSWER_MS UINT64_C(100) /* a server that is well answers within this */
#define PROPOSALS_MAX 8         /* fencing numbers for one grant, each refused for a larger one */

/* ---- leaves: what is to be told ------------------------------------------------------------------------- */

/* Whatever pends, and a lease that is held with a reference, keeps the loop alive. */
void belay__lease_update_hold(belay__lease_t *lease) {
  bool held = lease->state == BELAY__LEASE_GRANTED || lease->state == BELAY__LEASE_HELD;
  bool want = lease->op_pending || lease->extend_pending || lease->state >= BELAY__LEASE_CLOSING ||
              (held && lease->ref);
  if (want == lease->holds_loop)
    return;
  lease->holds_loop = want;
  (want ? belay__hold_loop : belay__free_loop)(lease->belay);
}

static void end_op(belay__lease_t *lease, int status) {
  if (!lease->op_pending)
    return;
  lease->op_status = status;
  lease->op_over = true;
  belay__defer(lease->belay, &lease->task);
}

static void end_extend(belay__lease_t *lease, int status) {
  if (!lease->extend_pending) /* what was not told yet may still turn worse */
    return;
  lease->extend_status = status;
  lease->extend_over = true;
  belay__defer(lease->belay, &lease->task);
}

static void tell_lost(belay__lease_t *lease, belay_lost_t reason) {
  lease->lost_reason = (int)reason;
  lease->lost_over = true;
  belay__defer_urgent(lease->belay, &lease->task);
}

/* ---- leaves: time -------------------------------------------------------------------------------------- */

static void stop_timers(belay__lease_t *lease) {
  belay__timer_stop(lease->belay, BELAY__RANK_EXPIRY, &lease->expiry);
  belay__timer_stop(lease->belay, BELAY__RANK_OTHER, &lease->timer);
}

static void set_timer(belay__lease_t *lease, uint64_t when) {
  belay__timer_set(lease->belay, BELAY__RANK_OTHER, &lease->timer, when);
}

/* Puts the expiry timer at the deadline; false if that is not ahead. */
static bool set_expiry(belay__lease_t *lease) {
  uint64_t deadline = belay__lease_deadline(lease), now = belay__now(lease->belay);
  belay__timer_set(lease->belay, BELAY__RANK_EXPIRY, &lease->expiry, deadline > 0 ? deadline : now);
  return deadline > now;
}

static void schedule_renewal(belay__lease_t *lease) {
  uint64_t due = belay__lease_renewal_due(lease, belay__now(lease->belay));
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
    set_timer(lease, belay__now(lease->belay));
}

/* One attempt, with a token of its own. Returns the state to go to. */
static belay__lease_state_t attempt(belay__lease_t *lease) {
  lease->attempts++;
  lease->asked_at = belay__now(lease->belay);
  lease->ttl = lease->longest_ttl = lease->terms.ttl;
  lease->fence = 0;
  lease->proposals = 0;
  int error = lease->belay->host->random(lease->belay, &lease->token, sizeof lease->token);
  if (error != 0) {
    lease->error = error;
    end_op(lease, error);
    return BELAY__LEASE_IDLE;
  }
  start_round(lease, BELAY__ROUND_ACQUIRE, lease->terms.timeout,
              lease->wait_until != 0 ? lease->wait_until : BELAY__NEVER);
  return BELAY__LEASE_ACQUIRING;
}

/* The end of the wait cut an attempt short before an answer could be expected: that it was not answered says
 * nothing, and what the attempt before it found still stands. */
static bool cut_short(const belay__lease_t *lease, int status, uint64_t now) {
  bool unanswered =
      status == BELAY_EUNKNOWN || status == BELAY_EUNREACHABLE || status == BELAY_ENOQUORUM;
  return unanswered && lease->wait_until != 0 && now >= lease->wait_until &&
         now - lease->asked_at < ANSWER_MS * BELAY__MS;
}

/* An attempt did not end as held. Returns the state to go to. */
static belay__lease_state_t attempt_failed(belay__lease_t *lease, int status) {
  uint64_t now = belay__now(lease->belay);
  belay__round_undo(lease, false);
  stop_timers(lease);
  if (lease->error == BELAY_EHELD && cut_short(lease, status, now))
    status = BELAY_EHELD;
  lease->error = status;
  lease->failures = status == BELAY_EHELD ? 0 : lease->failures + 1;
  bool last = lease->terms.max_attempts != 0 && lease->attempts >= lease->terms.max_attempts;
  if (lease->wait_until == 0 || last || belay__round_is_lasting(status)) {
    end_op(lease, status);
    return BELAY__LEASE_IDLE;
  }
  if (now >= lease->wait_until) {
    end_op(lease, status == BELAY_EHELD ? BELAY_ETIMEDOUT : status);
    return BELAY__LEASE_IDLE;
  }
  set_timer(lease, belay__lease_next_attempt(lease, status, now));
  return BELAY__LEASE_WAITING;
}

/* It is ours. Returns the state to go to. */
static belay__lease_state_t granted(belay__lease_t *lease) {
  lease->asking = false;
  belay__timer_stop(lease->belay, BELAY__RANK_OTHER, &lease->timer);
  lease->held_since = belay__now(lease->belay);
  lease->failures = 0;
  lease->error = 0;
  end_op(lease, 0);
  return BELAY__LEASE_GRANTED;
}

/* The time that an attempt may take: the end of the wait, or of the lease itself. */
static uint64_t attempt_limit(const belay__lease_t *lease) {
  uint64_t deadline = belay__lease_deadline(lease);
  return lease->wait_until != 0 && lease->wait_until < deadline ? lease->wait_until : deadline;
}

static belay__lease_state_t propose(belay__lease_t *lease, belay__round_t round) {
  start_round(lease, round, lease->terms.timeout, attempt_limit(lease));
  return BELAY__LEASE_FENCING;
}

/* A quorum said yes. Returns the state to go to. */
static belay__lease_state_t won(belay__lease_t *lease) {
  if (!belay__round_distinct(lease))
    return attempt_failed(lease, BELAY_EDUPLICATE);
  if (!set_expiry(lease))
    return attempt_failed(lease, BELAY_EEXPIRED);
  belay__round_won(lease);
  if (!lease->terms.fencing || lease->fence != 0)
    return granted(lease);
  return propose(lease, BELAY__ROUND_READ);
}

/* A round about the fencing number is decided. Returns the state to go to. */
static belay__lease_state_t proposed(belay__lease_t *lease, int status) {
  if (status == 0 && lease->round == BELAY__ROUND_ACCEPT)
    return set_expiry(lease) ? granted(lease) : attempt_failed(lease, BELAY_EEXPIRED);
  if (status == 0)
    return propose(lease, BELAY__ROUND_ACCEPT);
  if (status == BELAY_EFENCED && ++lease->proposals < PROPOSALS_MAX)
    return propose(lease, BELAY__ROUND_READ);
  return attempt_failed(lease, status == BELAY_EFENCED ? BELAY_ENOQUORUM : status);
}

/* It ended by itself. Returns the state to go to. */
static belay__lease_state_t lost(belay__lease_t *lease, belay_lost_t reason) {
  belay__round_undo(lease, false);
  stop_timers(lease);
  end_extend(lease, reason == BELAY_LOST_TAKEN ? BELAY_ENOTOWNER : BELAY_ECANCELED);
  tell_lost(lease, reason);
  return BELAY__LEASE_LOST;
}

/* The deadline passed. Returns the state to go to. */
static belay__lease_state_t expired(belay__lease_t *lease) {
  bool over_held = lease->terms.renew && !belay__lease_renews(lease, belay__now(lease->belay));
  return lost(lease, over_held ? BELAY_LOST_MAX_HOLD : BELAY_LOST_EXPIRED);
}

/* The same before the owner was told of the grant. */
static belay__lease_state_t expired_untold(belay__lease_t *lease) {
  lease->op_over = false;
  return attempt_failed(lease, BELAY_EEXPIRED);
}

/* A renewal or an extend was decided. Returns the state to go to. */
static belay__lease_state_t extended(belay__lease_t *lease, int status) {
  lease->asking = false;
  if (status == 0) {
    lease->failures = 0;
    belay__round_won(lease);
    if (belay__lease_remaining(lease) == 0)
      return BELAY__LEASE_HELD; /* it came too late; the expiry timer is due and will say so */
    schedule_renewal(lease);
  } else {
    lease->error = status;
    if (lease->terms.renew)
      set_timer(lease, belay__lease_renewal_retry(lease, belay__now(lease->belay)));
    lease->failures++;
  }
  end_extend(lease, status);
  return BELAY__LEASE_HELD;
}

/* The owner asked for another ttl: it counts from now on, and a shorter one at once. */
void belay__lease_change_ttl(belay__lease_t *lease, uint32_t ttl_ms) {
  uint64_t until = belay__now(lease->belay) + belay__lease_validity(ttl_ms, lease->terms.drift);
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
  if (belay__lease_deadline(lease) == 0) { /* no quorum has it any more */
    lease->error = BELAY_ENOTOWNER;
    return lost(lease, BELAY_LOST_TAKEN);
  }
  (void)set_expiry(lease);
  int status = lease->asking ? belay__round_status(lease) : BELAY__PENDING;
  return status == BELAY__PENDING ? BELAY__LEASE_HELD : extended(lease, status);
}

static belay__lease_state_t renew(belay__lease_t *lease, int64_t timeout_ms) {
  belay__timer_stop(lease->belay, BELAY__RANK_OTHER, &lease->timer);
  start_round(lease, BELAY__ROUND_EXTEND, timeout_ms, belay__lease_deadline(lease));
  return BELAY__LEASE_HELD;
}

/* The owner is about to know: from now on the watchdog works. */
static belay__lease_state_t told(belay__lease_t *lease) {
  schedule_renewal(lease);
  return BELAY__LEASE_HELD;
}

/* The owner does not want it any more. Returns the state to go to. */
static belay__lease_state_t canceled(belay__lease_t *lease) {
  belay__round_undo(lease, false);
  stop_timers(lease);
  end_op(lease, BELAY_ECANCELED);
  return BELAY__LEASE_IDLE;
}

static belay__lease_state_t give_back(belay__lease_t *lease, int64_t timeout_ms) {
  stop_timers(lease);
  end_extend(lease, BELAY_ECANCELED);
  start_round(lease, BELAY__ROUND_RELEASE, timeout_ms, BELAY__NEVER);
  return BELAY__LEASE_RELEASING;
}

/* A release was answered. What is not known to be gone is undone. */
static belay__lease_state_t released(belay__lease_t *lease, int status) {
  if (status != 0)
    lease->error = status;
  belay__round_undo(lease, false);
  stop_timers(lease);
  end_op(lease, status);
  return BELAY__LEASE_IDLE;
}

static belay__lease_state_t closed(belay__lease_t *lease) {
  stop_timers(lease);
  belay__round_forget_undo(lease);
  belay__defer(lease->belay, &lease->task);
  return BELAY__LEASE_CLOSED;
}

/* What every close does, whatever the state. Returns the state to go to. */
static belay__lease_state_t close_lease(belay__lease_t *lease) {
  stop_timers(lease);
  belay__round_undo(lease, true);
  if (!lease->op_over || lease->state == BELAY__LEASE_GRANTED)
    end_op(lease, BELAY_ECANCELED);
  end_extend(lease, BELAY_ECANCELED);
  if (!belay__round_undoing(lease))
    return closed(lease);
  int64_t patience = 0;
  for (unsigned i = 0; i < lease->members; i++)
    if (lease->member[i].client->close_timeout_ms > patience)
      patience = lease->member[i].client->close_timeout_ms;
  set_timer(lease, belay__after_ms(lease->belay, patience));
  return BELAY__LEASE_CLOSING;
}

/* ---- the machine --------------------------------------------------------------------------------------- */

/* What can happen in which state. The owner is kept to it by the public functions; what is not asked any more does not
 * answer; a timer that a state has no use for is stopped when it is entered. */
#define ON(name) (1u << BELAY__EV_##name)
static const unsigned possible[] = {
    [BELAY__LEASE_IDLE] = ON(ACQUIRE) | ON(CLOSE) | ON(TOLD),
    [BELAY__LEASE_ACQUIRING] = ON(CANCEL) | ON(CLOSE) | ON(ANSWER) | ON(TIMER),
    [BELAY__LEASE_FENCING] = ON(CANCEL) | ON(CLOSE) | ON(ANSWER) | ON(TIMER) | ON(EXPIRY),
    [BELAY__LEASE_WAITING] = ON(CANCEL) | ON(CLOSE) | ON(TIMER),
    [BELAY__LEASE_GRANTED] = ON(CANCEL) | ON(CLOSE) | ON(ANSWER) | ON(EXPIRY) | ON(TOLD),
    [BELAY__LEASE_HELD] =
        ON(RELEASE) | ON(EXTEND) | ON(CLOSE) | ON(ANSWER) | ON(TIMER) | ON(EXPIRY),
    [BELAY__LEASE_RELEASING] = ON(CLOSE) | ON(ANSWER) | ON(TIMER),
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

  switch (state) {
  case BELAY__LEASE_IDLE:
  case BELAY__LEASE_LOST:
    return event == BELAY__EV_ACQUIRE ? attempt(lease) : state;

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
    return belay__now(lease->belay) < lease->wait_until ? attempt(lease)
                                                        : attempt_failed(lease, lease->error);

  case BELAY__LEASE_GRANTED:
    if (event == BELAY__EV_EXPIRY)
      return expired_untold(lease);
    if (event == BELAY__EV_TOLD)
      return told(lease);
    (void)set_expiry(lease); /* an answer that was not needed any more */
    return state;

  case BELAY__LEASE_HELD:
    if (event == BELAY__EV_EXPIRY)
      return expired(lease);
    if (event == BELAY__EV_RELEASE)
      return give_back(lease, (int64_t)arg);
    if (event == BELAY__EV_EXTEND)
      return renew(lease, (int64_t)arg);
    if (event == BELAY__EV_TIMER && !lease->asking)
      return belay__lease_renews(lease, belay__now(lease->belay))
                 ? renew(lease, lease->terms.timeout)
                 : state;
    return heard(lease);

  case BELAY__LEASE_RELEASING:
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
  lease->state = (uint8_t)next_state(lease, event, arg);
  belay__lease_update_hold(lease);
}
