/* The lock on several names: its struct, and the kind of its members. */
#ifndef BELAY_LEASE_KINDS_MULTILOCK_H
#define BELAY_LEASE_KINDS_MULTILOCK_H

#include "belay/multilock.h"
#include "lease/machine/lease.h"
#include "lease/machine/operations.h"
#include "lease/quorum/command.h"

/* The kind of a member: a lease on all keys of one deployment, or of one slot of a cluster. One
 * script takes all keys or none. The lease's key is a list for belay__many_next(), without
 * duplicates and in the order of the bytes. Each key is also the key of the plain lock on that
 * name, so the two exclude each other. */
extern const belay__kind_t belay__multi_kind;

typedef struct belay__multilock_member {
  belay_multilock_t *multilock;
  int status; /* status of the member's last release that the multilock's owner started */
  bool closed;
  belay_client_t *client;
  belay__lease_t lease;
  const char *list; /* the keys; directly behind the lease: see belay__lease_key() */
} belay__multilock_member_t;
_Static_assert(offsetof(belay__multilock_member_t, list) ==
                   offsetof(belay__multilock_member_t, lease) + sizeof(belay__lease_t),
               "a gap before the pointer to the keys");

struct belay_multilock {
  belay_t *belay;
  belay__task_t task;   /* notifies the owner, unless a member's notice does so first */
  belay__timer_t timer; /* ROLLING_BACK: end of the pending acquire's wait */
  belay_multilock_cb op_cb;
  belay_multilock_lost_cb on_lost;
  belay_multilock_close_cb close_cb;
  void *data;
  /* The last member since the last grant whose acquire failed, that was lost, or whose client
   * closed; NULL: none */
  belay__multilock_member_t *failed;
  uint64_t wait_until; /* end of the wait of the current acquire, in ns; 0: one attempt only */
  int64_t timeout_ms;  /* timeout of the current release */
  int op_status, lost_reason;
  /* op_pending: true if an acquire or a release was started and its callback has not run. op_done:
   * true if this operation has ended with op_status. */
  bool op_pending, op_done;
  bool loss_due; /* true if the owner must be notified of a loss */
  uint8_t state;
  uint8_t members, at;
  size_t size;
  belay__multilock_member_t member[]; /* followed by the keys of the members */
};

/* Initializes all fields but the elements of `member`. */
void belay__multilock_init(belay_multilock_t *multilock, belay_t *belay, size_t members,
                           size_t size);

/* True if the key lists of two members have a common key. */
bool belay__multilock_common_key(const belay__lease_t *a, const belay__lease_t *b);

#endif /* BELAY_LEASE_KINDS_MULTILOCK_H */
