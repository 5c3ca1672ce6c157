/* A load: a process that uses many primitives of a deployment and keeps account of the results.
 *
 * - Two clients and four contenders for one lock with fencing. The holder writes to a resource
 *   that its fence guards, and keeps writing for a while after the end of its hold.
 * - A counter with operation ids; each operation is repeated until it is confirmed.
 * - A limiter.
 * - Ids, which count once all replicas have them.
 * - Pings, of which the first reply of another server is reported; in a cluster, the first
 *   operation on the counter that another server answers.
 *
 * A test's main() calls load_main() if its first argument is LOAD_ROLE. */
#ifndef TEST_SUPPORT_LOAD_LOAD_H
#define TEST_SUPPORT_LOAD_LOAD_H

#include "support/servers/process.h"

#include <stdbool.h>
#include <stdint.h>

#define LOAD_ROLE "--load"

/* The names of the lock, the limiter and the ids: in a cluster of three the owner of slot 0 has
 * them all. */
#define LOAD_LOCK "hatch"
#define LOAD_LIMIT "all"
#define LOAD_IDS "entry"

/* The process: argv[2] is the URL, argv[3] the number of replicas that must have an id. Returns
 * its exit status. */
int load_main(char **argv);

/* The parent's view of the load. Times are clock_now()'s. */
typedef struct load {
  process_t process;
  char server[41]; /* the run id of the server that answers, */
  int64_t since;   /* and since when */

  bool rests;                     /* all that the counter was asked for is confirmed: */
  uint64_t operations, confirmed; /* number of operations on the counter of this name */
  int64_t gap_us;                 /* the longest gap of its loop since it rested before; */
  int64_t held_us,
      busy_us; /* the same, without the time of other processes, in its computing parts; */
  /* and an idle loop's, without the time of other processes (support/load/pulse.h) */
  int64_t idle_us;

  bool over;               /* it has printed the rest: */
  uint64_t grants, writes; /* of the lock; of those who had it or had had it */
  uint64_t refused;        /* writes that came too late */
  uint64_t backwards,
      twins; /* grants after the report of a larger number; grants with another holder's number */
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

/* Reads the load's output for `ms` milliseconds, or until it reports something. Fails if it has
 * ended. */
void load_read(load_t *load, int64_t ms);

/* How much longer the longest gap of its loop was than that of an idle one, since it rested
 * before. */
double load_gap_ms(const load_t *load);

/* Ends it: it prints all results. */
void load_end(load_t *load);

#endif /* TEST_SUPPORT_LOAD_LOAD_H */
