/* A process that fills a bucket while it is elected to. */
#ifndef BELAY_DEMO_REFILLER_H
#define BELAY_DEMO_REFILLER_H

#include "belay/bucket.h"

enum {
  REFILL_PLACES = 2,       /* so many are elected */
  REFILL_LEASE_MS = 1000,  /* that of a place */
  REFILL_PERIOD_MS = 200,  /* of the fillings */
  REFILL_TOKENS = 5,       /* in each of them */
  REFILL_CAPACITY = 10000, /* more than there will be */
};
#define REFILL_KEY "tank"

/* Buckets as all of these processes have them. Returns 0 or an error. */
int refill_bucket(belay_client_t *client, const char *name, void *data, belay_bucket_t **out);

/* The hidden subcommand: PARENT RUN OWNER NAME. Both the buckets and the election have that name. It goes on until
 * SIGTERM, and gives its place back then. */
int run_refiller(int argc, char **argv);

#endif /* BELAY_DEMO_REFILLER_H */
