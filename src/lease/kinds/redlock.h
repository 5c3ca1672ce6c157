/* The checks of a lock over several nodes. */
#ifndef BELAY_LEASE_KINDS_REDLOCK_H
#define BELAY_LEASE_KINDS_REDLOCK_H

#include "lease/kinds/lock.h"

/* What a quorum asks of its clients and options; sets those whose default is another one for it. */
int belay__redlock_check(belay_client_t *const *clients, size_t n, belay_lock_options_t *options);

#endif /* BELAY_LEASE_KINDS_REDLOCK_H */
