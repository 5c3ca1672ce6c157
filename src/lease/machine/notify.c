#include "lease/machine/notify.h"

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

/* Pending operations and held leases with a reference keep the loop alive. */
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

void belay__lease_end_extend(belay__lease_t *lease, int status) {
  /* a result that was not reported yet may still turn worse */
  if (!belay__is_pending(lease->extend))
    return;
  if (status != 0 && lease->upgrading)
    lease->mode = BELAY_RWLOCK_READ; /* it had become the writer, and is not to know any more */
  lease->extend = (int16_t)status;
  belay__defer(belay__lease_belay(lease), &lease->task);
}

void belay__lease_notify_lost(belay__lease_t *lease, belay_lost_t reason) {
  lease->loss = (uint8_t)reason;
  belay__defer_urgent(belay__lease_belay(lease), &lease->task);
}
