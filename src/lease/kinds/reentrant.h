/* The reentrant lock. */
#ifndef BELAY_LEASE_KINDS_REENTRANT_H
#define BELAY_LEASE_KINDS_REENTRANT_H

#include "lease/kinds/lock.h"

/* Makes the lock of an owner, which the owner may take again. */
int belay__reentrant_new(belay_client_t *const *clients, size_t n, const char *name,
                         size_t name_len, const belay_lock_options_t *options, belay_lock_t **out);

#endif /* BELAY_LEASE_KINDS_REENTRANT_H */
