/* Passing it on: a release whose answer is that of the next in the line, whose attempt takes the lease from our
 * token.
 *
 *   giver: HELD --release--> RELEASING ----------------------------- answered --> IDLE
 *                              | partner                               ^
 *   heir:  QUEUED --its turn--> ACQUIRING --passed: 0; not ours: held--+
 *                                  |
 *                                  +--not known, not sent, canceled--> the giver releases by itself, from either token
 *
 * A giver that has waited for as long as it was to is told that it is not known; the heir goes on. */
#include "lease/wait/hand_over.h"

#include "lease/wait/queue.h"

static void part(belay__lease_t *one) {
  one->partner->partner = NULL;
  one->partner = NULL;
}

/* Whether the attempt that came to that status may have been executed, or may be yet. */
static bool may_have_run(const belay__lease_t *heir, int status) {
  const belay__call_t *call = heir->member[0].call;
  if (call != NULL)
    return call->state == BELAY__CALL_SENT;
  return status == BELAY_EUNKNOWN || status == BELAY_EPROTO;
}

void belay__pass_over(belay__lease_t *lease, int status) {
  belay__lease_t *giver = lease->partner;
  if (giver == NULL)
    return;
  if (giver->state != BELAY__LEASE_RELEASING) {
    part(lease); /* it is only about to, and will see */
    return;
  }
  if (status != 0 && status != BELAY_EHELD) {
    giver->report(giver, BELAY__EV_KEPT, may_have_run(lease, status)); /* needs our token */
    part(lease);
    return;
  }
  part(lease);
  giver->member[0].status = status == 0 ? 0 : BELAY_ENOTOWNER;
  giver->member[0].maybe = false;
  giver->member[0].until = 0;
  giver->report(giver, BELAY__EV_ANSWER, 0);
}

/* Whether a single script can pass it on, and nothing else has to be asked. */
static bool is_simple(const belay__lease_t *lease) {
  return lease->members == 1 && lease->terms->min_replicas == 0 && !lease->terms->quarantine;
}

static belay__lease_t *find_heir(const belay__lease_t *lease) {
  if (!lease->terms->kind->passes || !is_simple(lease) ||
      lease->streak >= lease->terms->max_handovers)
    return NULL;
  belay__lease_t *heir = belay__line_next(lease);
  return heir != NULL && heir->terms->kind == lease->terms->kind && is_simple(heir) ? heir : NULL;
}

bool belay__pass(belay__lease_t *lease, uint64_t answer_by) {
  belay__lease_t *heir = find_heir(lease);
  if (heir == NULL)
    return false;
  lease->round = BELAY__ROUND_RELEASE;
  lease->answer_by = answer_by;
  lease->asking = true;
  lease->member[0].status = BELAY__PENDING;
  lease->partner = heir;
  heir->partner = lease;
  belay__line_inherit(heir, lease);
  belay__timer_set(belay__lease_host(lease), BELAY__RANK_OTHER, &lease->timer, answer_by);
  heir->report(heir, BELAY__EV_TURN, 0);
  return lease->partner != NULL;
}

void belay__pass_forget(belay__lease_t *lease) {
  if (lease->state == BELAY__LEASE_RELEASING && lease->partner != NULL)
    part(lease);
}
