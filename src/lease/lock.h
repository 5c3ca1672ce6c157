/* What the constructors of a lock share. */
#ifndef BELAY_LEASE_LOCK_H
#define BELAY_LEASE_LOCK_H

#include "lease/lease.h"

/* A lock over n clients that were checked; *out is NULL. options may be NULL. */
int belay__lock_new(belay_client_t *const *clients, size_t n, const char *name, size_t name_len,
                    const belay_lock_options_t *options, belay_lock_t **out);

const belay__lease_t *belay__lock_lease(const belay_lock_t *lock);

/* ---- lease/lock_options.c -------------------------------------------------------------------------------- */

/* Checks the options of a lock over n nodes, and makes terms of them. Returns 0, or BELAY_EINVAL with a detail. */
int belay__lock_terms(const belay_client_t *client, size_t n, const belay_lock_options_t *options,
                      belay__terms_t *terms);

/* The same for another ttl of a lock that exists. */
int belay__lock_check_ttl(const belay__lease_t *lease, int64_t ttl_ms);

/* 0, or BELAY_EINVAL with a detail that has the name. */
int belay__in_range(belay_t *belay, const char *name, int64_t value, int64_t min, int64_t max);

#endif /* BELAY_LEASE_LOCK_H */
