/* The settings of leases. Leases of one client that have equal settings share one copy. */
#ifndef BELAY_LEASE_MACHINE_CONFIG_H
#define BELAY_LEASE_MACHINE_CONFIG_H

#include "belay/lock.h"
#include "lease/machine/kind.h"

/* How it is taken and kept; milliseconds. Shared by all of a client that have the same, and so never
 * changed. */
typedef struct belay__lease_config {
  const belay__kind_t *kind;
  belay_lock_lost_cb on_lost;
  int64_t max_hold, wait;
  uint32_t ttl, renew_after; /* renew_after 0: a third of the ttl */
  int32_t drift;             /* -1: ttl/100 + 2 */
  uint32_t retry_min, retry_max, backoff_max, max_attempts, timeout;
  uint32_t max_handovers, waiter_ttl;
  uint32_t replica_timeout, max_ttl;
  uint32_t limit, permits; /* a semaphore's */
  uint8_t min_replicas;    /* 0: a grant need not be copied */
  bool renew, fencing;
  bool quarantine, trust; /* trust: a server that does not tell its run id votes */
  bool notify;            /* releases are published, and waiters listen */
  bool notice_break;      /* a holder with a watchdog listens too */
  bool repeat_release;    /* releases are repeated if their connection is lost */
} belay__lease_config_t;

/* Returns the first client's copy of this configuration, for one more lease on n clients, and makes the clients' shared
 * state. NULL if memory is out. */
const belay__lease_config_t *belay__lease_config_share(belay_client_t *const *clients, size_t n,
                                                       const belay__lease_config_t *config);

/* Drops one reference to the copy. */
void belay__lease_config_release(belay_client_t *client, const belay__lease_config_t *config);

#endif /* BELAY_LEASE_MACHINE_CONFIG_H */
