/* Shared by the leases of one client. */
#ifndef BELAY_LEASE_MACHINE_CLIENT_LEASES_H
#define BELAY_LEASE_MACHINE_CLIENT_LEASES_H

#include "core/client/client.h"
#include "core/loop/pool.h"

/* Whether the server has a vote, as far as was found out; lease/quorum/quarantine.c's. */
typedef struct belay__quarantine_state {
  belay__server_info_t server; /* of the connection on which that was; epoch 0: it was not yet */
  uint32_t max_ttl;
  int64_t votes_from;
} belay__quarantine_state_t;

/* How many others wait for a key that this client has released; lease/wait/turns.c's. */
typedef struct belay__contenders {
  uint64_t hash;        /* hash of the key, as in `queues` */
  uint64_t released_at; /* when the last release was answered, in nanoseconds */
  uint64_t held_for;    /* the hold that ended then, in nanoseconds */
  /* connections of other clients that got the last release; 0: the entry is free */
  uint32_t others;
} belay__contenders_t;

#define BELAY__CONTENDERS 16 /* keys that a client remembers others of; a power of two */

typedef struct belay__client_leases {
  belay__extension_t extension; /* of the client */
  belay__quarantine_state_t quarantine;
  belay__contenders_t contenders[BELAY__CONTENDERS]; /* lease/wait/turns.c's */
  belay__table_t queues;                             /* wait queues, by key; lease/wait/queue.c's */
  belay__list_t configs;        /* that leases share; lease/machine/config.c's */
  belay__pool_t acquire_states; /* of leases that are being asked for; lease/machine/notify.c's */
  size_t kept_undos; /* that are repeated if their connection is lost; lease/quorum/undo.c's */
} belay__client_leases_t;

/* Makes it for each of n clients that has none yet; false if memory is out. */
bool belay__client_leases_make(belay_client_t *const *clients, size_t n);

/* Of a client that it was made for. */
belay__client_leases_t *belay__client_leases(const belay_client_t *client);

#endif /* BELAY_LEASE_MACHINE_CLIENT_LEASES_H */
