/* Processes that contend for one lock over several nodes, and write what they believe into
 * memory that all of them share: that they hold it from the grant's callback to the release, or
 * to the local deadline. Each is the test's own program in another role. */
#ifndef TEST_SUPPORT_LOAD_BELIEVER_H
#define TEST_SUPPORT_LOAD_BELIEVER_H

#include <belay.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "support/load/belief.h"

enum {
  BELIEVERS = 4,
  BELIEVER_NODES = 5,
  BELIEVER_TTL_MS = 700,
  BELIEVER_MAX_TTL_MS = 1000, /* of the quarantine */
  BELIEVER_REASONS = 7        /* why an acquire may fail here */
};

/* How to hold it. */
typedef enum manner { BRIEFLY, TO_ITS_END, RENEWED, EXTENDED, CUT_SHORT, MANNERS } manner_t;

/* One process's. */
typedef struct diary {
  atomic_uint count;               /* of its beliefs */
  _Atomic int64_t since, believes; /* the last one: from then until then */
  unsigned held[MANNERS];          /* how often in each manner */
  unsigned lost;                   /* leases that ended by themselves */
  unsigned late;                   /* grants that were over before one could look */
  unsigned vain[BELIEVER_REASONS]; /* acquires that failed, by reason */
} diary_t;

typedef struct shared {
  belay_quarantine_t quarantine;
  int weight[MANNERS]; /* how often to hold it in each manner */
  char url[BELIEVER_NODES][128];
  atomic_bool over; /* they are to end */
  unsigned room;    /* for the beliefs of each process */
  diary_t diary[BELIEVERS];
  belief_t belief[]; /* room for the first process, room for the second ... */
} shared_t;

/* The memory behind a file descriptor. */
shared_t *believer_share(int fd, size_t size);

/* The arguments of the process's main() are the program, "--believer", and those three numbers. */
int believer_run(const char *fd, const char *size, const char *number);

/* Prints what it went through. */
void believer_tell(const diary_t *diary);

#endif /* TEST_SUPPORT_LOAD_BELIEVER_H */
