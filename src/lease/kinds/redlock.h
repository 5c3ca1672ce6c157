/* The checks of a lock over several nodes. */
#ifndef BELAY_LEASE_KINDS_REDLOCK_H
#define BELAY_LEASE_KINDS_REDLOCK_H

#include "lease/kinds/lock.h"

/* Checks the clients and options of a quorum, and sets options with another default. */
int belay__redlock_check(belay_client_t *const *clients, size_t n, belay_lock_options_t *options);

#endif /* BELAY_LEASE_KINDS_REDLOCK_H */
