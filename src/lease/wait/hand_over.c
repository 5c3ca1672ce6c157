/* The hand-over: a release whose answer is that of the next waiter's attempt, which takes the lease from the giver's
 * token.
 *
 *   giver: HELD --release--> RELEASING ------------------------------ answered --> IDLE
 *                              | partner                                ^
 *   heir:  QUEUED --its turn--> ACQUIRING --granted: 0; held: not ours--+
 *     |                            |
 *     +--canceled, wait over       +--not known, not sent, canceled
 *     +----------------------------+--> the giver releases the lease by itself, from either token
 *
 * Neither steps the other: the heir's turn and the giver's answer are run by their tasks. Until then either may end; the
 * one that ends parts them. A giver whose time is over is told that the outcome is not known; the heir goes on. */
#include "lease/wait/hand_over.h"

#include <assert.h>

#include "lease/quorum/round.h"
#include "lease/wait/queue.h"

static void unlink_partners(belay__lease_t *one) {
  one->partner->partner = NULL;
  one->partner = NULL;
}

/* True if the attempt that ended with that status may have been executed, or may be yet. */
static bool may_have_run(const belay__lease_t *to, int status) {
  const belay__call_t *call = to->member[0].call;
  if (call != NULL)
    return call->state == BELAY__CALL_SENT;
  return status == BELAY_EUNKNOWN || status == BELAY_EPROTO;
}

/* The giver sends its release now, from either token: the heir's undo, which may follow, must not come before it, or
 * the giver's own release would find nothing. */
static void release_by_itself(belay__lease_t *from, bool may_be_handed_over) {
  uint64_t now = belay__now(belay__lease_belay(from));
  from->may_be_handed_over = may_be_handed_over;
  belay__lease_stop_timer(from);
  /* A process that stood still may come here after the deadline. */
  belay__round_start(from, BELAY__ROUND_RELEASE,
                     from->round_deadline > now ? from->round_deadline : now);
}

void belay__hand_over_end(belay__lease_t *lease, int status) {
  belay__lease_t *from = lease->partner;
  if (from == NULL)
    return;
  assert(from->state == BELAY__LEASE_RELEASING);
  /* An heir that has not asked yet knows nothing of the lease, whatever it ends with. */
  bool asked = lease->state == BELAY__LEASE_ACQUIRING;
  if (!asked || (status != 0 && status != BELAY_EHELD)) {
    release_by_itself(from, asked && may_have_run(lease, status)); /* needs the heir's token */
    unlink_partners(lease);
    return;
  }
  unlink_partners(lease);
  from->member[0].status = status == 0 ? 0 : BELAY_ENOTOWNER;
  from->member[0].may_exist = false;
  from->member[0].until = 0;
  /* The heir has asked since, and needs no turn when the giver leaves the queue. */
  from->held_since = 0;
  belay__defer(belay__lease_belay(from), &from->task);
}

/* True if a single script can pass it on, and nothing else has to be asked. */
static bool is_simple(const belay__lease_t *lease) {
  return lease->members == 1 && lease->config->min_replicas == 0 && !lease->config->quarantine;
}

static belay__lease_t *find_receiver(const belay__lease_t *lease) {
  if (!lease->config->kind->hands_over || !is_simple(lease) ||
      lease->grants_in_row >= lease->config->max_handovers)
    return NULL;
  belay__lease_t *to = belay__queue_next(lease);
  return to != NULL && to->config->kind == lease->config->kind && is_simple(to) ? to : NULL;
}

bool belay__hand_over_start(belay__lease_t *lease, uint64_t deadline) {
  belay__lease_t *to = find_receiver(lease);
  if (to == NULL)
    return false;
  lease->round = BELAY__ROUND_RELEASE;
  lease->round_deadline = deadline;
  lease->member[0].status = BELAY__PENDING;
  lease->partner = to;
  to->partner = lease;
  belay__queue_inherit(to, lease);
  belay__lease_set_timer(lease, deadline);
  belay__queue_turn(to, BELAY__YIELD_NOT);
  return true;
}

void belay__hand_over_forget(belay__lease_t *lease) {
  if (lease->state == BELAY__LEASE_RELEASING && lease->partner != NULL)
    unlink_partners(lease);
}
