/* The lease machine.
 *
 *                    +--<-- next attempt ---+
 *                    v                      |
 *   IDLE --acquire--> ACQUIRING --failed--> WAITING --cancel, wait over--> IDLE
 *    ^ ^                 | |  \                ^
 *    | |   cancel, final | |   +--not held, ---+
 *    | +----- failure ---+ |       time left   |
 *    |                     | quorum, in time   |
 *    |                     | (quorums with     | no majority accepts a number, or too late
 *    |                     |  fencing: FENCING-+
 *    |                     |  until accepted)  |
 *    |                     v                   | too late after all
 *    |                  GRANTED ---------------+
 *    |                     | its owner is told
 *    |                     v
 *    +--answer-- RELEASING <--release-- HELD --deadline, or the server says no--> LOST --acquire--> ACQUIRING
 *                                       | ^
 *                                       +-+ renewal, extend: it stays HELD
 *
 *   any --close--> CLOSING --undone, or patience is over--> CLOSED
 *
 * Only step() writes the state. A token is used for one attempt: when the attempt does not end as held, its
 * token is undone on every member that may have it, behind the call in flight, and is never sent in an
 * acquire again. The deadline is what a quorum of members keeps for us, each counted from just before the
 * first byte of its last acknowledged acquire or extend was sent, less the drift; the expiry timer stands at
 * it in FENCING, GRANTED and HELD, and fires before anything else when the loop comes back late.
 *
 * FENCING proposes a number to all members and is through when a majority has accepted it: READ asks for a
 * number that is larger than what is stored, ACCEPT stores the largest of those; refused, READ again. */
#include "lease/lease.h"

#include <assert.h>
#include <string.h>

typedef enum belay__lease_event {
  EV_ACQUIRE, /* the owner wants it */
  EV_RELEASE, /* the owner gives it back */
  EV_EXTEND,  /* the owner wants it for longer */
  EV_CANCEL,  /* the owner does not want to wait any more */
  EV_CLOSE,   /* the handle ends */
  EV_ANSWER,  /* a member answered */
  EV_TIMER,   /* the timer fired */
  EV_EXPIRY,  /* the deadline passed */
  EV_TOLD,    /* the owner is about to be told that it was granted */
  EV_UNDONE   /* an undo that CLOSING waits for is over */
} belay__lease_event_t;

#define ANSWER_MS UINT64_C(100) /* a server that is well answers within this */
#define PROPOSALS_MAX 8         /* fencing numbers for one grant, each refused for a larger one */

static void step(belay__lease_t *lease, belay__lease_event_t event, uint64_t arg);

/* ---- leaves: what is to be told ------------------------------------------------------------------------- */

/* Whatever pends, and a lease that is held with a reference, keeps the loop alive. */
static void update_hold(belay__lease_t *lease) {
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
    return granted(lease);
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
static void change_ttl(belay__lease_t *lease, uint32_t ttl_ms) {
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
  set_timer(lease, belay__after_ms(lease->belay, lease->member[0].client->close_timeout_ms));
  return BELAY__LEASE_CLOSING;
}

/* ---- the machine --------------------------------------------------------------------------------------- */

/* The state after an event. The public functions let through only what a state takes from its owner. */
static belay__lease_state_t next_state(belay__lease_t *lease, belay__lease_event_t event,
                                       uint64_t arg) {
  belay__lease_state_t state = (belay__lease_state_t)lease->state;
  int status;
  if (event == EV_CLOSE && state < BELAY__LEASE_CLOSING)
    return close_lease(lease);

  switch (state) {
  case BELAY__LEASE_IDLE:
  case BELAY__LEASE_LOST:
    return event == EV_ACQUIRE ? attempt(lease) : state;

  case BELAY__LEASE_ACQUIRING:
    if (event == EV_CANCEL)
      return canceled(lease);
    if (event != EV_ANSWER && event != EV_TIMER)
      return state;
    status = belay__round_status(lease);
    if (status == BELAY__PENDING)
      return state;
    return status == 0 ? won(lease) : attempt_failed(lease, status);

  case BELAY__LEASE_FENCING:
    if (event == EV_CANCEL)
      return canceled(lease);
    if (event == EV_EXPIRY)
      return attempt_failed(lease, BELAY_EEXPIRED);
    if (event != EV_ANSWER && event != EV_TIMER)
      return state;
    status = belay__round_status(lease);
    return status == BELAY__PENDING ? state : proposed(lease, status);

  case BELAY__LEASE_WAITING:
    if (event == EV_CANCEL)
      return canceled(lease);
    if (event != EV_TIMER)
      return state;
    return belay__now(lease->belay) < lease->wait_until ? attempt(lease)
                                                        : attempt_failed(lease, lease->error);

  case BELAY__LEASE_GRANTED:
    if (event == EV_CANCEL)
      return canceled(lease);
    if (event == EV_EXPIRY) {
      lease->op_over = false; /* nobody was told yet */
      return attempt_failed(lease, BELAY_EEXPIRED);
    }
    if (event == EV_TOLD)
      return told(lease);
    if (event == EV_ANSWER)
      (void)set_expiry(lease); /* one that was not needed any more */
    return state;

  case BELAY__LEASE_HELD:
    if (event == EV_EXPIRY)
      return lost(lease, lease->terms.renew && !belay__lease_renews(lease, belay__now(lease->belay))
                             ? BELAY_LOST_MAX_HOLD
                             : BELAY_LOST_EXPIRED);
    if (event == EV_RELEASE)
      return give_back(lease, (int64_t)arg);
    if (event == EV_EXTEND)
      return renew(lease, (int64_t)arg);
    if (event == EV_TIMER && !lease->asking)
      return belay__lease_renews(lease, belay__now(lease->belay))
                 ? renew(lease, lease->terms.timeout)
                 : state;
    return event == EV_ANSWER || event == EV_TIMER ? heard(lease) : state;

  case BELAY__LEASE_RELEASING:
    if (event != EV_ANSWER && event != EV_TIMER)
      return state;
    status = belay__round_status(lease);
    return status == BELAY__PENDING ? state : released(lease, status);

  case BELAY__LEASE_CLOSING:
    if (event == EV_TIMER || event == EV_CLOSE ||
        (event == EV_UNDONE && !belay__round_undoing(lease)))
      return closed(lease);
    return state;

  case BELAY__LEASE_CLOSED:
    return state;
  }
  return state;
}

static void step(belay__lease_t *lease, belay__lease_event_t event, uint64_t arg) {
  lease->state = (uint8_t)next_state(lease, event, arg);
  update_hold(lease);
}

/* ---- events -------------------------------------------------------------------------------------------- */

void belay__lease_answer(belay__lease_t *lease) {
  step(lease, EV_ANSWER, 0);
}

void belay__lease_undone(belay__lease_t *lease) {
  step(lease, EV_UNDONE, 0);
}

static void on_timer(belay__timer_t *timer) {
  step(BELAY__CONTAINER(timer, belay__lease_t, timer), EV_TIMER, 0);
}

static void on_expiry(belay__timer_t *timer) {
  step(BELAY__CONTAINER(timer, belay__lease_t, expiry), EV_EXPIRY, 0);
}

/* Tells the owner what there is to tell. Each callback may do anything but free the lease. */
static void run_task(belay__task_t *task) {
  belay__lease_t *lease = BELAY__CONTAINER(task, belay__lease_t, task);
  if (lease->lost_over) {
    lease->lost_over = false;
    lease->kind->tell(lease, BELAY__NEWS_LOST, lease->lost_reason);
  }
  if (lease->extend_over) {
    lease->extend_over = lease->extend_pending = false;
    update_hold(lease);
    lease->kind->tell(lease, BELAY__NEWS_EXTENDED, lease->extend_status);
  }
  if (lease->op_over) {
    lease->op_over = lease->op_pending = false;
    step(lease, EV_TOLD, 0);
    lease->kind->tell(lease, BELAY__NEWS_ENDED, lease->op_status);
  }
  if (lease->state != BELAY__LEASE_CLOSED || lease->extend_over || lease->op_over)
    return; /* a callback has begun and closed again: the task is queued once more */
  belay__task_stop(lease->belay, task);
  belay__free_loop(lease->belay);
  for (unsigned i = 0; i < lease->members; i++)
    if (!belay__list_empty(&lease->member[i].object.node))
      belay__client_remove(lease->member[i].client, &lease->member[i].object);
  lease->kind->tell(lease, BELAY__NEWS_CLOSED, 0);
}

static void object_close(belay__object_t *object) {
  belay__lease_t *lease = BELAY__CONTAINER(object, belay__member_t, object)->lease;
  if (lease->state < BELAY__LEASE_CLOSING)
    step(lease, EV_CLOSE, 0);
}

static void object_abort(belay__object_t *object) {
  step(BELAY__CONTAINER(object, belay__member_t, object)->lease, EV_CLOSE, 0);
}

/* ---- operations ---------------------------------------------------------------------------------------- */

int belay__lease_acquire(belay__lease_t *lease, int64_t wait_ms) {
  if (lease->op_pending || (lease->state != BELAY__LEASE_IDLE && lease->state != BELAY__LEASE_LOST))
    return BELAY_ESTATE;
  lease->op_pending = true;
  lease->wait_until = wait_ms == 0 ? 0 : belay__after_ms(lease->belay, wait_ms);
  lease->attempts = lease->failures = 0;
  lease->error = 0;
  step(lease, EV_ACQUIRE, 0);
  return 0;
}

int belay__lease_release(belay__lease_t *lease, int64_t timeout_ms) {
  if (lease->state != BELAY__LEASE_HELD || belay__lease_remaining(lease) == 0)
    return BELAY_ENOTOWNER;
  lease->op_pending = true;
  step(lease, EV_RELEASE, (uint64_t)timeout_ms);
  return 0;
}

int belay__lease_extend(belay__lease_t *lease, int64_t ttl_ms, int64_t timeout_ms) {
  if (lease->state != BELAY__LEASE_HELD || belay__lease_remaining(lease) == 0)
    return BELAY_ENOTOWNER;
  if (lease->extend_pending)
    return BELAY_ESTATE;
  lease->extend_pending = true;
  change_ttl(lease, (uint32_t)ttl_ms);
  step(lease, EV_EXTEND, (uint64_t)timeout_ms);
  return 0;
}

int belay__lease_cancel(belay__lease_t *lease) {
  if (!lease->op_pending || lease->state == BELAY__LEASE_RELEASING ||
      (lease->op_over && lease->state != BELAY__LEASE_GRANTED))
    return BELAY_ESTATE;
  step(lease, EV_CANCEL, 0);
  return 0;
}

int belay__lease_close(belay__lease_t *lease) {
  if (lease->state >= BELAY__LEASE_CLOSING)
    return BELAY_ECLOSING;
  step(lease, EV_CLOSE, 0);
  return 0;
}

void belay__lease_ref(belay__lease_t *lease, bool ref) {
  lease->ref = ref;
  update_hold(lease);
}

uint64_t belay__lease_remaining(const belay__lease_t *lease) {
  if (lease->state != BELAY__LEASE_HELD)
    return 0;
  uint64_t deadline = belay__lease_deadline(lease), now = belay__now(lease->belay);
  return deadline > now ? deadline - now : 0;
}

void belay__lease_init(belay__lease_t *lease, const belay__kind_t *kind,
                       belay_client_t *const *clients, size_t n, const belay__terms_t *terms,
                       belay__member_t *member, char *key, size_t key_len) {
  *lease = (belay__lease_t){
      .kind = kind,
      .belay = clients[0]->belay,
      .expiry = {.fire = on_expiry},
      .timer = {.fire = on_timer},
      .terms = *terms,
      .ttl = terms->ttl,
      .members = (uint8_t)n,
      .quorum = (uint8_t)(n / 2 + 1),
      .key_len = (uint16_t)key_len,
      .key = key,
      .member = member,
  };
  belay__task_init(&lease->task, run_task);
  lease->affinity = 2166136261u; /* FNV-1a: only to spread names over connections */
  for (size_t i = 0; i < key_len; i++)
    lease->affinity = (lease->affinity ^ (unsigned char)key[i]) * 16777619u;
  for (size_t i = 0; i < n; i++) {
    member[i] = (belay__member_t){.object = {.close = object_close, .abort = object_abort},
                                  .lease = lease,
                                  .client = clients[i],
                                  .vote = BELAY__UNASKED};
    belay__client_add(clients[i], &member[i].object);
  }
}
