/* Shared by the files of the multilock. */
#ifndef BELAY_LEASE_KINDS_MULTILOCK_H
#define BELAY_LEASE_KINDS_MULTILOCK_H

#include "belay/multilock.h"
#include "lease/machine/lease.h"
#include "lease/machine/operations.h"
#include "lease/quorum/command.h"

/* Several keys of one deployment; of a cluster, of one slot. The key is a list, for belay__many_next(): they differ from each other, and stand
 * in the order of their bytes. */
extern const belay__kind_t belay__multi_kind;

/* ---- lease/kinds/multilock.c ----------------------------------------------------------------------------------- */

/* The lease in one deployment, or in one slot of a cluster. */
typedef struct belay__multilock_member {
  belay_multilock_t *multilock;
  int status; /* of its last operation */
  bool closed;
  belay__lease_t lease;
} belay__multilock_member_t;

struct belay_multilock {
  belay_t *belay;
  belay__task_t task;   /* tells what was decided in a call of the owner's */
  belay__timer_t timer; /* ROLLING_BACK: the end of the wait */
  belay_multilock_cb op_cb;
  belay_multilock_lost_cb on_lost;
  belay_multilock_close_cb close_cb;
  void *data;
  belay__multilock_member_t
      *failed;         /* the last that did, or was lost, since the last grant; NULL: none */
  uint64_t wait_until; /* of the present acquire; 0: one attempt only */
  int64_t timeout_ms;  /* of the present release */
  int op_status, lost_reason;
  bool op_pending, op_done; /* an acquire or a release */
  bool loss_due;
  uint8_t state;
  uint8_t members, at;
  size_t size;
  belay__multilock_member_t member[]; /* and behind them their keys */
};

/* Whether what is asked for is ours already: the server that answers, known as another deployment, has given us one
 * of the keys. */
bool belay__multilock_overlaps(belay__lease_t *lease);

void belay__multilock_on_task(belay__task_t *task);
void belay__multilock_on_timer(belay__timer_t *timer);

/* The kind's `notify_owner`. */
void belay__multilock_notify(belay__lease_t *lease, belay__notice_t news, int status);

/* ---- lease/kinds/multilock_names.c ----------------------------------------------------------------------------- */

/* A name's key, and where it lives. */
typedef struct belay__multilock_key {
  belay_client_t *client;
  const char *key;
  size_t len;
  uint16_t slot; /* 0 where there are none */
} belay__multilock_key_t;

typedef struct belay__multilock_keys {
  size_t count; /* of those that differ */
  belay__multilock_key_t at[BELAY_MULTILOCK_MAX];
  char *text; /* memory of the keys */
  size_t text_len;
} belay__multilock_keys_t;

/* Makes the keys of n names, those of one member together, in the order in which every client takes them. Returns 0 or
 * an error, with a detail; with 0 the text is to be freed. */
int belay__multilock_keys(const belay_multilock_name_t *names, size_t n,
                          belay__multilock_keys_t *keys);

/* The order of two keys: less than, equal to, or greater than 0. */
int belay__multilock_compare(const char *a, size_t a_len, const char *b, size_t b_len);

/* The first of the keys from `from` on that belongs to another member; keys->count at the end. */
size_t belay__multilock_group_end(const belay__multilock_keys_t *keys, size_t from);

/* Writes the list of the keys from `from` to before `end` at out (NULL: measures it); returns its length. */
size_t belay__multilock_list(const belay__multilock_keys_t *keys, size_t from, size_t end,
                             char *out);

/* The number of members, and the total length of their lists. Returns 0 or BELAY_EINVAL, with a detail. */
int belay__multilock_measure(const belay__multilock_keys_t *keys, size_t *groups, size_t *list_len);

#endif /* BELAY_LEASE_KINDS_MULTILOCK_H */
