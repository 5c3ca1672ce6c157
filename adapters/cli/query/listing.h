/* All that is held, at all servers that are asked. */
#ifndef BELAY_CLI_QUERY_LISTING_H
#define BELAY_CLI_QUERY_LISTING_H

#include "query/query.h"

typedef struct listing listing_t;

struct listing {
  harness_t *h;
  snapshot_t snapshot;                    /* what was found; the caller may empty it at any time */
  void (*on_snapshot_entry)(listing_t *); /* one more is there; or NULL */
  void (*on_listed)(listing_t *); /* all were asked: error says whether they have answered */
  void *data;                     /* the caller's own */
  const char *pattern;            /* pattern for names; NULL: all */
  int error;                      /* first error of this run; printed when it happens */
  size_t failed;                  /* how many have not answered */
  bool silent;                    /* it is not said */
  size_t running;
  struct listing_node {
    listing_t *listing;
    size_t node;
    belay_sweep_t *sweep;
  } nodes[URLS_MAX];
};

/* Makes it ready; h, on_seen, on_listed and pattern are set. false: the harness is done. */
bool listing_open(listing_t *listing);

/* Begins a run; on_listed comes. seen is as it was. false: the harness is done. */
bool listing_run(listing_t *listing);

#endif /* BELAY_CLI_QUERY_LISTING_H */
