/* What distinguishes one kind of lease from another: its keys and scripts, and how it reads a reply. */
#ifndef BELAY_LEASE_MACHINE_KIND_H
#define BELAY_LEASE_MACHINE_KIND_H

#include "core/call/call.h"

typedef struct belay__lease belay__lease_t;

#define BELAY__TTL_MAX_MS INT64_C(86400000)
#define BELAY__TTL_MIN_MS INT64_C(10)

/* What a face is told; always from a task. */
typedef enum belay__news {
  BELAY__NEWS_LOST,     /* status: a belay_lost_t */
  BELAY__NEWS_EXTENDED, /* status: how an extend ended */
  BELAY__NEWS_ENDED,    /* status: how an acquire or a release ended */
  BELAY__NEWS_CLOSED    /* the lease is over; the memory is the face's to free, now */
} belay__news_t;

/* What tells one kind of lease from another: its keys and scripts, and how a reply is read. */
typedef struct belay__kind {
  const char *family; /* in keys */
  /* What is appended to the key to make the keys beside it; ends with NULL. NULL: there are none. */
  const char *const *parts;

  /* All have KEYS the key and its parts. ARGV of extend: token, ttl in ms, with what ttl to take it again if it is
   * gone (0: not), then what extend_more adds; reply: 1 extended, 0 not ours, 2 taken again, or what `extended`
   * knows. ARGV of release: token ('': of nobody), how to publish ('': not), and '', or what else to take back: the
   * ticket, or the token that it is being passed to; or TICKET+MS: who goes on waiting did not learn that it was
   * granted, and if it was the ticket gets its place again, for so long (a kind without an order of arrival does
   * nothing about that). Reply: 0 not ours, n: removed, and n - 1 connections were told. */
  const belay__script_t *extend, *release;

  bool many;     /* the key is a list of keys: belay__many_next() */
  bool lines_up; /* in a client one contends for a key at a time */
  bool
      passes; /* who holds it passes it to the next in the line, and nobody in the line contends meanwhile */
  bool owned;   /* what stands under the key is `extra`, its owner, and not a token */
  bool tickets; /* who waits has a place on the server, under lease->ticket */

  /* Builds the command that takes the lease; of a kind that passes: from lease->partner, if that is not NULL. */
  void (*acquire)(const belay__lease_t *lease, belay__call_t *call);

  /* Reads its reply: 0 granted, BELAY_EHELD (*holder_ms is how long it may still be held, if that is known),
   * BELAY_EPROTO, or another error. A kind whose acquire counts the grants sets lease->fence. */
  int (*acquired)(belay__lease_t *lease, const belay__call_t *call, const belay__reply_t *reply,
                  int64_t *holder_ms);

  size_t
      extend_keys; /* so many of the keys, the first, are extend's: it works while a slot with the others is on its
                         way from one node of a cluster to another; 0: all */
  size_t extend_args; /* how many extend_more adds; 0: it is NULL */
  void (*extend_more)(const belay__lease_t *lease, belay__call_t *call);
  /* What another reply than 0, 1, 2 to extend means; NULL: there is none. */
  int (*extended)(belay__lease_t *lease, int64_t reply);

  /* Whether one that waits may be granted beside one that just was; NULL: that is not to be expected. */
  bool (*beside)(const belay__lease_t *granted, const belay__lease_t *waiting);

  void (*tell)(belay__lease_t *lease, belay__news_t news, int status);
} belay__kind_t;

#endif /* BELAY_LEASE_MACHINE_KIND_H */
