/* The parties of a barrier, and what is heard of them. */
#ifndef TEST_PARTIES_H
#define TEST_PARTIES_H

#include "support/bed.h"

#define KEY "belay::barrier::{gate}"
#define PARTIES KEY "::parties"

typedef struct party party_t;

/* A handle, and what was heard of its waits. */
struct party {
  bed_t *bed;
  belay_barrier_t *barrier; /* NULL: closed */
  unsigned begun, ended, closed;
  int status;
  uint64_t generation;
  void (*then)(party_t *party); /* runs at the end of each callback; NULL: nothing */
};

belay_latch_options_t barrier_options(unsigned count);

/* A handle of the barrier "gate"; the second one is the bed's client's. */
void party_of(party_t *p, bed_t *bed, belay_client_t *client, const belay_latch_options_t *options);
void party_new(party_t *p, bed_t *bed, unsigned count);

/* Begin it; what belay returned. If it is 0, the callback is counted. */
int begin_barrier_wait(party_t *p, int64_t wait_ms);
int begin_close_barrier(party_t *p);

/* Begins to wait, and returns when it has come. */
void begin_and_come(party_t *p, int64_t wait_ms);

/* Wait for the end of a wait, which the second one begins: its status, or what belay returned if that was an error. */
int end_of_barrier_wait(party_t *p);
int barrier_wait_for(party_t *p, int64_t wait_ms);

/* The callback of a wait. */
void on_barrier_ended(belay_barrier_t *barrier, int status, uint64_t generation);

/* How many are there, as the server says: some may be dead. */
int64_t there(bed_t *bed);

#endif /* TEST_PARTIES_H */
