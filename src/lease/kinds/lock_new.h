/* The constructors of locks: checks of clients, and the choice of the kind by the options. */
#ifndef BELAY_LEASE_KINDS_LOCK_NEW_H
#define BELAY_LEASE_KINDS_LOCK_NEW_H

#include "lease/kinds/lock.h"

/* The first step of public constructors: sets *out to NULL, checks the clients, and copies the
 * options (the defaults if NULL) to *resolved. With several clients an automatic quarantine becomes
 * on. Returns 0 or an error; no detail if out, clients or clients[0] is NULL or n is 0. */
int belay__lock_check(belay_client_t *const *clients, size_t n, const belay_lock_options_t *options,
                      belay_lock_options_t *resolved, belay_lock_t **out);

/* Returns 0, or an error with a detail if options->fair is set and is not possible with n clients
 * or with another option. */
int belay__fair_check(belay_t *belay, size_t n, const belay_lock_options_t *options);

#endif /* BELAY_LEASE_KINDS_LOCK_NEW_H */
