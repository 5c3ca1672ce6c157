/* The state that the leases of one client share: configurations, wait queues, quarantine,
 * memory. */
#ifndef BELAY_LEASE_MACHINE_CLIENT_LEASES_H
#define BELAY_LEASE_MACHINE_CLIENT_LEASES_H

#include "belay/lock.h"
#include "core/client/client.h"
#include "core/loop/pool.h"
#include "lease/machine/kind.h"

/* The configuration of a lease; times in milliseconds. Leases of the same clients with equal
 * configurations share one copy, which never changes. */
typedef struct belay__lease_config {
  const belay__kind_t *kind;
  belay_lock_lost_cb on_lost;
  int64_t max_hold, wait;
  uint32_t ttl, renew_after; /* renew_after 0: a third of the ttl */
  int32_t drift;             /* -1: ttl/100 + 2 */
  uint32_t retry_min, retry_max, backoff_max, max_attempts, timeout;
  uint32_t max_handovers, waiter_ttl;
  uint32_t replica_timeout, max_ttl;
  uint32_t limit, permits; /* of a semaphore */
  uint8_t min_replicas;    /* 0: a grant need not be copied */
  bool renew, fencing, quarantine;
  bool trust;          /* with a quarantine: true if a server that hides its run id votes */
  bool notify;         /* true if releases are published, and waiters subscribe */
  bool notice_break;   /* true if a holder subscribes, too; only with `renew` */
  bool repeat_release; /* true if a release is sent again when its server may have been replaced */
  /* The clients of the members; belay__lease_config_share() sets them in the shared copy */
  belay_client_t *const *clients;
} belay__lease_config_t;

/* The entry of the machine; lease/machine/lease.h */
typedef struct belay__machine belay__machine_t;

/* The last result of a quarantine query of the client; for lease/quorum/quarantine.c. */
typedef struct belay__quarantine_state {
  /* the server that replied to the quarantine query; server.epoch 0: no result yet */
  belay__server_info_t server;
  uint32_t max_ttl;   /* longest ttl of the namespace, in ms */
  int64_t votes_from; /* time from which the server votes, in ns */
} belay__quarantine_state_t;

/* The other clients that wait for a key, as this client's last release of it showed; for
 * lease/wait/turns.c. */
typedef struct belay__contenders {
  uint64_t hash;        /* hash of the key, as in `queues` */
  uint64_t released_at; /* time of the reply of the last release, in ns */
  uint64_t held_for;    /* length of the hold before that release, in ns */
  uint32_t others;      /* other connections that got the message of the release; 0: free entry */
} belay__contenders_t;

#define BELAY__CONTENDERS 16 /* number of keys with known contenders; a power of two */

typedef struct belay__client_leases {
  belay__extension_t extension;         /* of the client */
  belay__object_t object;               /* stands for the members in the client's list of objects */
  belay__list_t members;                /* belay__member_t.node of the client's leases */
  const belay__machine_t *machine;      /* for belay__lease_report() */
  belay__quarantine_state_t quarantine; /* lease/quorum/quarantine.c */
  belay__contenders_t contenders[BELAY__CONTENDERS]; /* lease/wait/turns.c */
  belay__table_t queues;                             /* wait queues, by key; lease/wait/queue.c */
  belay__list_t configs;                             /* shared configurations */
  belay__pool_t active[BELAY_NODES_MAX]; /* memory of belay__active_t, by the number of members */
  size_t kept_undos;                     /* number of undos that are KEPT; lease/quorum/undo.c */
} belay__client_leases_t;

/* The shared state of a client that has a lease. */
belay__client_leases_t *belay__client_leases(const belay_client_t *client);

/* Returns a reference to the first client's copy of the configuration, for one lease on n clients.
 * Allocates belay__client_leases_t for clients that have none. NULL if memory is out. */
const belay__lease_config_t *belay__lease_config_share(belay_client_t *const *clients, size_t n,
                                                       const belay__lease_config_t *config);

/* Drops one reference to the copy. */
void belay__lease_config_release(const belay__lease_config_t *config);

/* Adds a member of a lease to the client, or removes it. Each member counts as one object of the
 * client. */
void belay__client_leases_add(belay_client_t *client, belay__list_t *member);
void belay__client_leases_remove(belay_client_t *client, belay__list_t *member);

#endif /* BELAY_LEASE_MACHINE_CLIENT_LEASES_H */
