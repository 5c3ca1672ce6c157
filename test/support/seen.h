/* Operations on active users and on presence, and what came of them. */
#ifndef TEST_SEEN_H
#define TEST_SEEN_H

#include "data/active.h"
#include "data/presence.h"
#include "support/bed.h"
#include "support/relay.h"

enum { SEEN_COUNTS_MAX = BELAY_ACTIVE_SPANS_MAX };

typedef struct seen {
  belay_request_t request;
  bed_t *bed;
  unsigned begun, ended;
  int status;
  size_t n;                        /* counts, or answers to "is he" */
  int64_t counts[SEEN_COUNTS_MAX]; /* counts[0] of a presence's, too */
  bool online[16];                 /* the first of them */
  size_t online_len;               /* how many of all n were true */
  char detail[256];                /* belay's, in the callback */
  void (*then)(struct seen *seen); /* runs at the end of the callback; NULL: nothing */
} seen_t;

/* The callbacks. request->data is the operation. */
void on_seen(belay_request_t *request, int status);
void on_seen_counts(belay_request_t *request, int status, const int64_t *counts, size_t n);
void on_seen_is(belay_request_t *request, int status, const bool *online, size_t n);
void on_seen_count(belay_request_t *request, int status, int64_t count);

/* Around the call that begins it: the request; then what belay returned. */
belay_request_t *seen_begin(bed_t *bed, seen_t *seen);
int seen_begun(seen_t *seen, int error);

/* Waits for its end: its status. */
int end_of_seen(seen_t *seen);

/* Begins it (`call` says r for its request), waits, and gives its status; or what belay returned. */
#define seen_do(bed, seen, call)                                                                   \
  (seen_do_((bed), (seen)), (r_ = &(seen)->request),                                               \
   seen_begun((seen), (call)) == 0 ? end_of_seen((seen)) : (seen)->status)
extern belay_request_t *r_;
void seen_do_(bed_t *bed, seen_t *seen);

/* A bed whose client reaches its server through a relay. */
typedef struct seen_wire {
  server_t *server;
  relay_t *relay;
  bed_t *bed;
} seen_wire_t;

void seen_wire_open(seen_wire_t *wire);
void seen_wire_close(seen_wire_t *wire);

/* The server has answered so many calls of that command, and the answer on its way is lost. */
void seen_lose_answer(seen_wire_t *wire, const char *command, int64_t calls);

/* A random number below n. */
uint64_t seen_random(uint64_t *state, uint64_t n);

#endif /* TEST_SEEN_H */
