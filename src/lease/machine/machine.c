#include "lease/machine/machine.h"

#include <assert.h>

#include "lease/machine/attempt.h"
#include "lease/machine/deadline.h"
#include "lease/machine/hold.h"
#include "lease/quorum/round.h"
#include "lease/wait/queue.h"
#include "lease/wait/wake.h"

/* Applies the effects of a state: subscriptions, the place in the queue, the active part, the hold
 * on the loop. */
static void apply_state(belay__lease_t *lease) {
  belay__lease_state_t state = (belay__lease_state_t)lease->state;
  bool waits = state == BELAY__LEASE_WAITING || state == BELAY__LEASE_ACQUIRING ||
               state == BELAY__LEASE_FENCING;
  bool granted = state == BELAY__LEASE_GRANTED && !lease->config->kind->hands_over;
  if (belay__lease_is_held(lease))
    belay__wake_watch(lease);
  else if (!waits)
    belay__wake_unsubscribe(lease);
  if (granted || state == BELAY__LEASE_IDLE || state >= BELAY__LEASE_LOST)
    belay__queue_leave(lease, granted);
  if (lease->active != NULL && (state == BELAY__LEASE_IDLE || state >= BELAY__LEASE_HELD))
    lease->active->acquiring = false;
  belay__lease_settle(lease);
  belay__lease_update_hold(lease);
}

/* The events that can happen in each state. Other events cannot happen: the public functions refuse
 * operations that a state does not allow, an abandoned call runs no callback, and a transition
 * stops the timers that its next state does not use. */
#define ON(name) (1u << BELAY__EV_##name)
static const unsigned possible[] = {
    [BELAY__LEASE_IDLE] = ON(ACQUIRE) | ON(CLOSE) | ON(NOTIFIED),
    [BELAY__LEASE_QUEUED] = ON(CANCEL) | ON(CLOSE) | ON(TIMER) | ON(TURN),
    [BELAY__LEASE_ACQUIRING] = ON(CANCEL) | ON(CLOSE) | ON(ANSWER) | ON(TIMER) | ON(WAKE),
    [BELAY__LEASE_FENCING] =
        ON(CANCEL) | ON(CLOSE) | ON(ANSWER) | ON(TIMER) | ON(EXPIRY) | ON(WAKE),
    [BELAY__LEASE_WAITING] = ON(CANCEL) | ON(CLOSE) | ON(TIMER) | ON(WAKE) | ON(TURN),
    [BELAY__LEASE_GRANTED] = ON(CANCEL) | ON(CLOSE) | ON(ANSWER) | ON(EXPIRY) | ON(NOTIFIED),
    [BELAY__LEASE_HELD] =
        ON(CHECK) | ON(RELEASE) | ON(EXTEND) | ON(CLOSE) | ON(ANSWER) | ON(TIMER) | ON(EXPIRY),
    [BELAY__LEASE_EXTENDING] =
        ON(CHECK) | ON(RELEASE) | ON(EXTEND) | ON(CLOSE) | ON(ANSWER) | ON(TIMER) | ON(EXPIRY),
    [BELAY__LEASE_RELEASING] = ON(CLOSE) | ON(ANSWER) | ON(TIMER),
    [BELAY__LEASE_LOST] = ON(ACQUIRE) | ON(CLOSE),
    [BELAY__LEASE_CLOSING] = ON(CLOSE) | ON(TIMER) | ON(NOTIFIED) | ON(UNDONE),
    [BELAY__LEASE_CLOSED] = ON(CLOSE) | ON(NOTIFIED),
};

bool belay__lease_expects(belay__lease_state_t state, belay__lease_event_t event) {
  return (possible[state] & (1u << event)) != 0;
}

static belay__lease_state_t next_state(belay__lease_t *lease, belay__lease_event_t event,
                                       uint64_t arg) {
  belay__lease_state_t state = (belay__lease_state_t)lease->state;
  int status;
  if (event == BELAY__EV_CLOSE && state < BELAY__LEASE_CLOSING)
    return belay__release_close(lease);
  if (event == BELAY__EV_CANCEL)
    return belay__attempt_canceled(lease);
  if (event == BELAY__EV_WAKE)
    return belay__attempt_woken(lease, state, (belay__woken_t)arg);

  switch (state) {
  case BELAY__LEASE_IDLE:
  case BELAY__LEASE_LOST:
    return event == BELAY__EV_ACQUIRE ? belay__attempt_begin(lease) : state;

  case BELAY__LEASE_QUEUED:
    if (event == BELAY__EV_TIMER)
      return belay__attempt_overdue(lease);
    return belay__attempt_turn(lease, (belay__yield_t)arg);

  case BELAY__LEASE_ACQUIRING:
    status = belay__round_status(lease);
    if (status == BELAY__PENDING)
      return state;
    return status == 0 ? belay__attempt_won(lease) : belay__attempt_failed(lease, status);

  case BELAY__LEASE_FENCING:
    if (event == BELAY__EV_EXPIRY)
      return belay__attempt_failed(lease, BELAY_EEXPIRED);
    status = belay__round_status(lease);
    return status == BELAY__PENDING ? state : belay__attempt_proposed(lease, status);

  case BELAY__LEASE_WAITING:
    if (event == BELAY__EV_TURN)
      return belay__attempt_turn(lease, (belay__yield_t)arg);
    return belay__lease_now(lease) < lease->active->wait_until
               ? belay__attempt(lease)
               : belay__attempt_failed(lease, lease->error);

  case BELAY__LEASE_GRANTED:
    if (event == BELAY__EV_EXPIRY)
      return belay__attempt_expired(lease);
    if (event == BELAY__EV_NOTIFIED)
      return belay__hold_begin(lease);
    belay__round_leave_places(lease);
    (void)belay__lease_set_expiry(lease); /* a late reply can move the deadline */
    return state;

  case BELAY__LEASE_HELD:
  case BELAY__LEASE_EXTENDING:
    if (event == BELAY__EV_EXPIRY)
      return belay__hold_expired(lease);
    if (event == BELAY__EV_RELEASE)
      return belay__release_start(lease, (int64_t)arg);
    if (event == BELAY__EV_EXTEND)
      return belay__hold_renew(lease, (int64_t)arg);
    if (event == BELAY__EV_CHECK)
      return belay__hold_check(lease, (belay__check_t)arg);
    if (event == BELAY__EV_TIMER && state == BELAY__LEASE_HELD)
      return lease->mode_uncertain || belay__lease_renews(lease)
                 ? belay__hold_renew(lease, lease->config->timeout)
                 : state;
    return belay__hold_answered(lease);

  case BELAY__LEASE_RELEASING:
    if (event == BELAY__EV_TIMER && lease->active->partner != NULL)
      return belay__release_overdue(lease);
    status = belay__round_status(lease);
    return status == BELAY__PENDING ? state : belay__release_answered(lease, status);

  case BELAY__LEASE_CLOSING:
    if (event == BELAY__EV_NOTIFIED || (event == BELAY__EV_UNDONE && belay__round_undoing(lease)))
      return state;
    return belay__release_closed(lease);

  case BELAY__LEASE_CLOSED:
    return state;
  }
  return state;
}

void belay__lease_step(belay__lease_t *lease, belay__lease_event_t event, uint64_t arg) {
  if (!belay__lease_expects((belay__lease_state_t)lease->state, event)) {
    assert(false && "an event that is impossible in this state");
    return;
  }
  belay_t *belay = belay__lease_belay(lease); /* the lease may be freed */
  bool stopped = belay__stop_clock(belay);
  lease->state = (uint8_t)next_state(lease, event, arg);
  apply_state(lease);
  belay__start_clock(belay, stopped);
}
