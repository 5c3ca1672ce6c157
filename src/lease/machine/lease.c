#include "lease/machine/lease.h"

#include <assert.h>

#include "belay/rwlock.h"

void belay__lease_free_acquire(belay__lease_t *lease) {
  if (lease->acquire == NULL)
    return;
  assert(lease->acquire->wake == NULL);
  belay__pool_give(belay__lease_belay(lease),
                   &belay__client_leases(lease->member[0].client)->acquire_states, lease->acquire,
                   sizeof *lease->acquire);
  lease->acquire = NULL;
}

void belay__lease_update_hold(belay__lease_t *lease) {
  bool held = lease->state == BELAY__LEASE_GRANTED || belay__lease_is_held(lease);
  bool want = belay__is_pending(lease->op) || belay__is_pending(lease->extend) ||
              lease->state >= BELAY__LEASE_CLOSING || (held && lease->ref);
  if (want == lease->holds_loop)
    return;
  lease->holds_loop = want;
  (want ? belay__hold_loop : belay__free_loop)(belay__lease_belay(lease));
}

void belay__lease_end(belay__lease_t *lease, int status) {
  if (!belay__is_pending(lease->op))
    return;
  lease->op = (int16_t)status;
  belay__defer(belay__lease_belay(lease), &lease->task);
}

/* A later result replaces one that the owner was not notified of yet: an extend that succeeded can
 * still end as canceled. */
void belay__lease_end_extend(belay__lease_t *lease, int status) {
  if (!belay__is_pending(lease->extend))
    return;
  if (status != 0 && lease->upgrading)
    /* the upgrade may have won, but its owner is not notified of that and stays a reader */
    lease->mode = BELAY_RWLOCK_READ;
  lease->extend = (int16_t)status;
  belay__defer(belay__lease_belay(lease), &lease->task);
}
