/* Lists the held objects of all servers of a command. */
#ifndef BELAY_CLI_QUERY_LISTING_H
#define BELAY_CLI_QUERY_LISTING_H

#include "query/query.h"

typedef struct listing listing_t;

struct listing {
  harness_t *h;
  snapshot_t snapshot;            /* the entries, sorted in on_listed */
  void (*on_listed)(listing_t *); /* called when all servers have answered or failed */
  const char *pattern;            /* pattern for names; NULL: all */
  int error;                      /* first error of this run; printed when it happens */
  size_t failed;                  /* number of servers that have failed */
  bool silent;                    /* true: errors are not printed */
  size_t running;
  struct listing_node {
    listing_t *listing;
    size_t node;
    belay_sweep_t *sweep;
  } nodes[URLS_MAX];
};

/* Open the sweeps. The caller has set h, on_listed and the pattern. Returns false if the command
 * has ended. */
bool listing_open(listing_t *listing);

/* Start a run, which calls on_listed. Returns false if the command has ended. */
bool listing_run(listing_t *listing);

#endif /* BELAY_CLI_QUERY_LISTING_H */
