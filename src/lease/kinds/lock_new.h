/* Constructors of locks: one chooses the kind from the options. */
#ifndef BELAY_LEASE_KINDS_LOCK_NEW_H
#define BELAY_LEASE_KINDS_LOCK_NEW_H

#include "lease/kinds/lock.h"

/* The first step of public constructors: sets *out to NULL, checks the clients, and copies the
 * options or the defaults. Returns 0 or an error with a detail. */
int belay__lock_check(belay_client_t *const *clients, size_t n, const belay_lock_options_t *options,
                      belay_lock_options_t *resolved, belay_lock_t **out);

/* A lock of the kind that the options name, over n clients that were checked. */
int belay__lock_new(belay_client_t *const *clients, size_t n, const char *name, size_t name_len,
                    const belay_lock_options_t *options, belay_lock_t **out);

#endif /* BELAY_LEASE_KINDS_LOCK_NEW_H */
