/* A kind of lease, such as a fair lock: its keys and scripts, and its reading of the replies. */
#ifndef BELAY_LEASE_MACHINE_KIND_H
#define BELAY_LEASE_MACHINE_KIND_H

#include "core/call/call.h"

typedef struct belay__lease belay__lease_t;

#define BELAY__TTL_MAX_MS INT64_C(86400000)
#define BELAY__TTL_MIN_MS INT64_C(10)

/* Notices for the handle that a lease belongs to; always from a task. */
typedef enum belay__notice {
  BELAY__NOTICE_LOST,     /* status: a belay_lost_t */
  BELAY__NOTICE_EXTENDED, /* status: of an extend */
  BELAY__NOTICE_ENDED,    /* status: of an acquire or a release */
  BELAY__NOTICE_CLOSED    /* the lease is over; the handle frees the memory now */
} belay__notice_t;

typedef struct belay__kind {
  const char *family; /* family part of the keys */

  /* Suffixes of the other keys, which begin with the key; ends with NULL. NULL: one key only. */
  const char *const *suffixes;

  /* The KEYS of both scripts are the key, and the key with each of `suffixes`; with `many`, the
   * keys of the list. extend gets only the first extend_keys of them.
   *
   * extend: ARGV: the token; the ttl in ms; the ttl for setting a missing lease again, or 0 to set
   * nothing; then the arguments of extend_more. Reply: 1: extended; 0: another token or no key; 2:
   * set again; another number: see `extended`.
   *
   * release: ARGV: the token, or '' for none; the publish command, or '' for none; and another
   * object to remove: '', a ticket, the token of the next holder, or TICKET+MS. TICKET+MS undoes
   * a grant whose reply was lost: the ticket gets its place again, for MS milliseconds. With
   * publishes_always also '1'. Reply: 0: the token did not have the lease; n > 0: removed, and
   * n - 1 connections got the message. */
  const belay__script_t *extend, *release;

  bool many;         /* true if the key is a list of keys: belay__many_next() */
  bool client_queue; /* true if the leases of one key in a client queue, and one of them contends */
  /* true if a holder can pass the lease to the next lease in its client's queue */
  bool hands_over;
  bool owned;   /* true if the value of the key is belay__lease_extra(), not a token */
  bool tickets; /* true if waiters have places in a queue on the server, by lease->active->ticket */
  /* true if `release` is that of the lock, but the waiters do not set the contention flag */
  bool publishes_always;

  /* Builds the command that takes the lease. With hands_over, and if lease->active->partner is not
   * NULL, the command takes the lease from the partner's token. */
  void (*acquire)(const belay__lease_t *lease, belay__call_t *call);

  /* Reads the reply to `acquire`. Returns 0 (granted), BELAY_EHELD, BELAY_EPROTO or another error.
   * With BELAY_EHELD, *holder_ms is the time in ms after which another attempt can succeed without
   * a message, if known: the rest of the holder's ttl, or for a fair kind the time until the first
   * waiter loses its place. If the script assigns a fencing number, `acquired` stores it
   * (belay__lease_set_fence()). */
  int (*acquired)(belay__lease_t *lease, const belay__call_t *call, const belay__reply_t *reply,
                  int64_t *holder_ms);

  /* Number of keys that extend uses, from the first; 0: all. An extend with fewer keys still works
   * while a cluster moves the slot and some of the other keys are on another server. */
  size_t extend_keys;
  size_t extend_args; /* number of arguments that extend_more adds; 0: extend_more is NULL */
  void (*extend_more)(const belay__lease_t *lease, belay__call_t *call);
  /* Returns the status for a reply to extend that is not 0, 1 or 2. NULL: the script has no such
   * reply. */
  int (*extended)(belay__lease_t *lease, int64_t reply);

  /* True if `waiting` can hold its lease at the same time as `granted`; NULL: never. */
  bool (*may_share)(const belay__lease_t *granted, const belay__lease_t *waiting);

  void (*notify_owner)(belay__lease_t *lease, belay__notice_t news, int status);
} belay__kind_t;

#endif /* BELAY_LEASE_MACHINE_KIND_H */
