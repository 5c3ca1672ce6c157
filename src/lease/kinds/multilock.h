/* The lock on several names: its struct, and the order of its names. */
#ifndef BELAY_LEASE_KINDS_MULTILOCK_H
#define BELAY_LEASE_KINDS_MULTILOCK_H

#include "belay/multilock.h"
#include "lease/machine/lease.h"
#include "lease/machine/operations.h"
#include "lease/quorum/command.h"

/* The lease on the keys of one deployment, or of one slot of a cluster: one script takes all of
 * them or none. lease->key is a list for belay__many_next(), without duplicates and in the order of
 * the bytes. Each key is that of the plain lock, so plain locks on the same names are excluded. */
extern const belay__kind_t belay__multi_kind;

typedef struct belay__multilock_member {
  belay_multilock_t *multilock;
  int status; /* status of its last operation */
  bool closed;
  belay__lease_t lease;
} belay__multilock_member_t;

struct belay_multilock {
  belay_t *belay;
  belay__task_t task;   /* notifies the owner of decisions inside a call of the owner */
  belay__timer_t timer; /* ROLLING_BACK: the end of the wait */
  belay_multilock_cb op_cb;
  belay_multilock_lost_cb on_lost;
  belay_multilock_close_cb close_cb;
  void *data;
  /* The last member that failed or was lost since the last grant; NULL: none */
  belay__multilock_member_t *failed;
  uint64_t wait_until; /* end of the wait of the current acquire, in ns; 0: one attempt only */
  int64_t timeout_ms;  /* timeout of the current release */
  int op_status, lost_reason;
  bool op_pending, op_done; /* an acquire or a release */
  bool loss_due;            /* true if the owner must be notified of a loss */
  uint8_t state;
  uint8_t members, at;
  size_t size;
  belay__multilock_member_t member[]; /* followed by the keys of the members */
};

/* Initializes all fields but the members. */
void belay__multilock_init(belay_multilock_t *multilock, belay_t *belay, size_t members,
                           size_t size);

/* True if the key lists of two members have a common key. */
bool belay__multilock_common_key(const belay__lease_t *a, const belay__lease_t *b);

#endif /* BELAY_LEASE_KINDS_MULTILOCK_H */
