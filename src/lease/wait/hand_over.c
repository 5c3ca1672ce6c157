/* The hand-over. A release becomes an attempt of the next waiter in the queue: its script moves the
 * lock from the token of the releasing lease (`from`) to the token of the waiter (`to`). The result
 * of the attempt is the result of the release.
 *
 *   from: HELD, EXTENDING --release--> RELEASING ---- reply of the attempt -----> IDLE
 *                                        | partner           ^
 *   to:   QUEUED, WAITING --its turn--> ACQUIRING -----------+ granted: 0
 *           |                             |                    held: BELAY_ENOTOWNER
 *           | canceled, closed, or its    | no reply, refused, not sent, canceled, closed
 *           | wait is over                v
 *           +---------------------------> from releases the lock itself, whichever of the two
 *                                         tokens the lock has
 *
 * No lease steps the other. The task of `to` runs its turn, and the task of `from` reads the
 * result. Either lease can end before its task runs; the lease that ends unlinks both. If the
 * deadline of `from` passes first, its release ends with BELAY_EUNKNOWN and `to` continues. If
 * `from` is closed between the reply of `to` and its own task, its release ends with
 * BELAY_ECANCELED although the hand-over succeeded. That is safe: a canceled release makes no
 * statement about the lock. */
#include "lease/wait/hand_over.h"

#include <assert.h>

#include "lease/machine/deadline.h"
#include "lease/quorum/round.h"
#include "lease/wait/queue.h"

static void unlink_partners(belay__lease_t *one) {
  one->active->partner->active->partner = NULL;
  one->active->partner = NULL;
}

/* True if the server may have executed the attempt that ended with this status, or may execute it
 * later. */
static bool may_have_run(const belay__lease_t *to, int status) {
  const belay__call_t *call = to->active->exchange[0].call;
  if (call != NULL)
    return call->state == BELAY__CALL_SENT;
  return status == BELAY_EUNKNOWN || status == BELAY_EPROTO;
}

/* Sends the release of `from`, which removes the token of `from` or of `to`. The release must be
 * sent before the undo of `to`. After the undo it could find no key, and report BELAY_ENOTOWNER. */
static void release_by_itself(belay__lease_t *from, bool may_be_handed_over) {
  uint64_t now = belay__lease_now(from);
  from->may_be_handed_over = may_be_handed_over;
  belay__lease_stop_timer(from);
  /* The deadline may have passed while the process was stopped. */
  belay__round_start(from, BELAY__ROUND_RELEASE,
                     from->active->round_deadline > now ? from->active->round_deadline : now);
}

void belay__hand_over_end(belay__lease_t *lease, int status) {
  belay__lease_t *from = lease->active != NULL ? lease->active->partner : NULL;
  if (from == NULL)
    return;
  assert(from->state == BELAY__LEASE_RELEASING);
  /* If `to` has not sent an attempt, the status says nothing about the lock. */
  bool asked = lease->state == BELAY__LEASE_ACQUIRING;
  if (!asked || (status != 0 && status != BELAY_EHELD)) {
    release_by_itself(from, asked && may_have_run(lease, status)); /* uses the token of `to` */
    unlink_partners(lease);
    return;
  }
  unlink_partners(lease);
  from->active->exchange[0].status = status == 0 ? 0 : BELAY_ENOTOWNER;
  from->member[0].may_exist = false;
  from->member[0].until = 0;
  /* `to` has sent its attempt and needs no turn when `from` leaves the queue. */
  from->held_since = 0;
  belay__defer(belay__lease_belay(from), &from->task);
}

/* True if one script is enough: one node, no replicas to wait for, no quarantine. */
static bool is_simple(const belay__lease_t *lease) {
  return lease->members == 1 && lease->config->min_replicas == 0 && !lease->config->quarantine;
}

static belay__lease_t *find_receiver(const belay__lease_t *lease) {
  if (!lease->config->kind->hands_over || !is_simple(lease) ||
      lease->active->grants_in_row >= lease->config->max_handovers)
    return NULL;
  belay__lease_t *to = belay__queue_next(lease);
  return to != NULL && to->config->kind == lease->config->kind && is_simple(to) ? to : NULL;
}

bool belay__hand_over_start(belay__lease_t *lease, uint64_t deadline) {
  belay__lease_t *to = find_receiver(lease);
  if (to == NULL)
    return false;
  lease->active->round = BELAY__ROUND_RELEASE;
  lease->active->round_deadline = deadline;
  lease->active->exchange[0].status = BELAY__PENDING;
  lease->active->partner = to;
  to->active->partner = lease;
  belay__queue_inherit(to, lease);
  belay__lease_set_timer(lease, deadline);
  belay__queue_turn(to, BELAY__YIELD_NOT);
  return true;
}

void belay__hand_over_forget(belay__lease_t *lease) {
  if (lease->state == BELAY__LEASE_RELEASING && lease->active->partner != NULL)
    unlink_partners(lease);
}
