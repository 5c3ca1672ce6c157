/* Latches, and what is heard of them. */
#ifndef TEST_LATCHES_H
#define TEST_LATCHES_H

#include "support/bed.h"

#define KEY "belay::latch::{gate}"

typedef struct handle handle_t;

/* A handle, and what was heard of its waits. */
struct handle {
  bed_t *bed;
  belay_latch_t *latch; /* NULL: closed */
  unsigned begun, ended, closed;
  int status;
  void (*then)(handle_t *handle); /* runs at the end of each callback; NULL: nothing */
};

/* A count, and what it came to. */
typedef struct tally {
  belay_request_t request;
  handle_t *handle;
  unsigned begun, ended;
  int status;
  unsigned left;
} tally_t;

belay_latch_options_t latch_options(unsigned count);

/* A handle of the latch "gate"; the second one is the bed's client's. */
void handle_of(handle_t *h, bed_t *bed, belay_client_t *client,
               const belay_latch_options_t *options);
void handle_new(handle_t *h, bed_t *bed, unsigned count);

/* Begin it; what belay returned. If it is 0, the callback is counted. */
int begin_latch_wait(handle_t *h, int64_t wait_ms);
int begin_close_latch(handle_t *h);
int begin_count(handle_t *h, tally_t *t, const char *operation);

/* Wait for the end of a wait, which the second one begins: its status, or what belay returned if that was an error. */
int end_of_latch_wait(handle_t *h);
int latch_wait_for(handle_t *h, int64_t wait_ms);

/* The callbacks of those. */
void on_latch_ended(belay_latch_t *latch, int status);
void on_counted(belay_request_t *request, int status, unsigned left);

/* What is left after counting; how long that may take. */
unsigned count(handle_t *h, const char *operation);
extern int64_t count_within_ms;

/* How many counts the server remembers. */
int64_t counted(bed_t *bed);

#endif /* TEST_LATCHES_H */
