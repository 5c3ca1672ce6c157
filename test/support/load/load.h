/* A load: a process that does a bit of everything at a deployment, and keeps account of what it was told.
 *
 *   - two clients, four who want one lock, with fencing; whoever has it writes to a resource that is guarded by its fence,
 *     and goes on doing so for a while when he has it no more
 *   - a counter that is added to by operations with ids, each repeated until it is confirmed
 *   - a limiter
 *   - ids, which count once all replicas know that they are gone
 *   - pings, of which the first that is answered by another server is told; of a cluster instead the first operation on the
 *     counter that is
 *
 * A test's main() calls load_main() if its first argument is LOAD_ROLE. */
#ifndef TEST_SUPPORT_LOAD_LOAD_H
#define TEST_SUPPORT_LOAD_LOAD_H

#include "support/servers/process.h"

#include <stdbool.h>
#include <stdint.h>

#define LOAD_ROLE "--load"

/* What is locked, what is limited, of what ids are drawn: in a cluster of three whoever has slot 0 has all of it. */
#define LOAD_LOCK "hatch"
#define LOAD_LIMIT "all"
#define LOAD_IDS "entry"

/* The process: argv[2] is the URL, argv[3] how many replicas have to know of an id. What it exits with. */
int load_main(char **argv);

/* What is known of it, by whoever has started it. Times are clock_now()'s. */
typedef struct load {
  process_t process;
  char server[41]; /* the run id of the server that answers, */
  int64_t since;   /* and since when */

  bool rests;                     /* all that the counter was asked for is confirmed: */
  uint64_t operations, confirmed; /* so much of this name */
  int64_t gap_us;                 /* the longest gap of its loop since it rested before; */
  int64_t held_us,
      busy_us;     /* the same, but for what others took away, and as far as it computed; */
  int64_t idle_us; /* and an idle loop's, but for what others took away (support/load/pulse.h) */

  bool over;               /* it has told the rest: */
  uint64_t grants, writes; /* of the lock; of those who had it or had had it */
  uint64_t refused;        /* writes that came too late */
  uint64_t backwards,
      twins; /* grants that came after a larger number was told; with a number that another one has */
  uint64_t ids, same_ids; /* that were drawn; and more than once */
  uint64_t allowed,
      bound;      /* by the limiter; and how much it may have been if nothing is ever forgotten, */
  uint64_t burst; /* and how much more each time that it is */
  uint64_t unconfirmed, lost; /* times that an operation was repeated; leases that were lost */
} load_t;

void load_start(load_t *load, const char *url, unsigned replicas);

/* Counts under that name from now on. Does not wait. */
void load_begin(load_t *load, const char *name);
/* Has it end what it has begun to count; everything else goes on. Does not wait: load->rests. */
void load_rest(load_t *load);
/* Has it count again, under the same name. */
void load_go_on(load_t *load);

/* Reads what it tells within so many milliseconds, which is less if it tells something. Fails the test if it has ended. */
void load_hear(load_t *load, int64_t ms);

/* How much longer the longest gap of its loop was than that of an idle one, since it rested before. */
double load_gap_ms(const load_t *load);

/* Ends it: all is told. */
void load_end(load_t *load);

#endif /* TEST_SUPPORT_LOAD_LOAD_H */
