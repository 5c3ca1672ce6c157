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

  /* The KEYS of both scripts are the key, and the key with each of `suffixes`.
   *
   * extend: ARGV: the token; the ttl in ms; the ttl for setting a missing lease again, or 0; then
   * the arguments of extend_more. Reply: 1 extended, 0 not ours, 2 set again, or a number for
   * `extended`.
   *
   * release: ARGV: the token, or '' for none; the publish command, or '' for none; and another
   * object to remove: '', a ticket, the token of the next holder, or TICKET+MS. TICKET+MS undoes
   * a grant whose reply was lost: the ticket gets its place again, for MS milliseconds. Reply: 0
   * not ours, or n: removed, and n - 1 connections got the message. */
  const belay__script_t *extend, *release;

  bool many;         /* true if the key is a list of keys: belay__many_next() */
  bool client_queue; /* true if the leases of a client form a queue, and one of them contends */
  bool hands_over;   /* true if a holder can pass the lease to the next one in the queue */
  bool owned;        /* true if the value of the key is belay__lease_extra(), not a token */
  bool tickets;      /* true if waiters have places on the server, under lease->ticket */

  /* Builds the command that takes the lease; of a kind with hands_over: from lease->partner, if
   * that is not NULL. */
  void (*acquire)(const belay__lease_t *lease, belay__call_t *call);

  /* Reads its reply. Returns 0 (granted), BELAY_EHELD, BELAY_EPROTO or another error. With
   * BELAY_EHELD, *holder_ms is the longest remaining time of the holder, if that is known. A kind
   * that counts the grants in this script sets lease->fence. */
  int (*acquired)(belay__lease_t *lease, const belay__call_t *call, const belay__reply_t *reply,
                  int64_t *holder_ms);

  /* Number of keys that extend uses, from the first; 0: all. With fewer keys an extend works while
   * a cluster moves the other keys of the slot. */
  size_t extend_keys;
  size_t extend_args; /* number of arguments that extend_more adds; 0: it is NULL */
  void (*extend_more)(const belay__lease_t *lease, belay__call_t *call);
  /* The status for a reply to extend that is not 0, 1 or 2; NULL: there is no such reply. */
  int (*extended)(belay__lease_t *lease, int64_t reply);

  /* True if a waiter may be granted in addition to one that was just granted; NULL: never. */
  bool (*may_share)(const belay__lease_t *granted, const belay__lease_t *waiting);

  void (*notify_owner)(belay__lease_t *lease, belay__notice_t news, int status);
} belay__kind_t;

#endif /* BELAY_LEASE_MACHINE_KIND_H */
