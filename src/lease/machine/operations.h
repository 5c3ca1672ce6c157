/* The owner's operations on a lease, and its initialization. */
#ifndef BELAY_LEASE_MACHINE_OPERATIONS_H
#define BELAY_LEASE_MACHINE_OPERATIONS_H

#include "lease/machine/lease.h"

/* Initializes a lease of n members, one for each client of the configuration. The key is already in
 * its place (belay__lease_key()). The caller keeps the memory valid until BELAY__NOTICE_CLOSED. The
 * lease takes over the caller's reference to the configuration. */
void belay__lease_init(belay__lease_t *lease, size_t n, const belay__lease_config_t *config,
                       size_t key_len, size_t extra_len);

/* The operations. Each returns 0 or a negative error, as the public function of that name does. */
int belay__lease_acquire(belay__lease_t *lease, int64_t wait_ms);
int belay__lease_release(belay__lease_t *lease, int64_t timeout_ms);
int belay__lease_extend(belay__lease_t *lease, int64_t ttl_ms, int64_t timeout_ms);
int belay__lease_cancel(belay__lease_t *lease);
int belay__lease_close(belay__lease_t *lease);
void belay__lease_ref(belay__lease_t *lease, bool ref);

#endif /* BELAY_LEASE_MACHINE_OPERATIONS_H */
