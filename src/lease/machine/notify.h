/* Notifications that the owner of a lease will get. No function here calls the owner: the
 * lease's task does. */
#ifndef BELAY_LEASE_MACHINE_NOTIFY_H
#define BELAY_LEASE_MACHINE_NOTIFY_H

#include "lease/machine/lease.h"

/* An acquire or a release ended, if one is pending. */
void belay__lease_end(belay__lease_t *lease, int status);

/* The owner's extend ended, if one is pending. */
void belay__lease_end_extend(belay__lease_t *lease, int status);

/* The lease was lost. */
void belay__lease_notify_lost(belay__lease_t *lease, belay_lost_t reason);

/* The acquire is over: frees its state. */
void belay__lease_free_acquire(belay__lease_t *lease);

/* Holds the loop alive, or releases it, as the lease's state demands. */
void belay__lease_update_hold(belay__lease_t *lease);

#endif /* BELAY_LEASE_MACHINE_NOTIFY_H */
