/* A resolver: finds the primary of a deployment, and its replicas. sentinel.c asks sentinels, replicas.c asks every server. */
#ifndef BELAY_REDIS_DEPLOYMENT_PRIMARY_RESOLVER_H
#define BELAY_REDIS_DEPLOYMENT_PRIMARY_RESOLVER_H

#include "redis/deployment/discovery.h"

#define BELAY__REPLICAS_MAX 16

typedef struct belay__resolver belay__resolver_t;

/* What was found. */
typedef struct belay__found {
  belay__place_t primary;
  belay__place_t replicas[BELAY__REPLICAS_MAX]; /* that may be well: they are asked themselves */
  size_t replica_count;
  uint64_t epoch; /* sentinel.c: grows with each failover */
  bool down;      /* sentinel.c: the sentinel does not reach the primary that it names */
  bool promotes;  /* sentinel.c: the sentinel leads a failover */
  /* sentinel.c: the replica that the sentinel is promoting; port 0: none */
  belay__place_t promoted;
} belay__found_t;

struct belay__resolver {
  belay__discovery_t discovery;
  belay__timer_t
      poll_timer;       /* sentinel.c: asks from time to time whether everything is as it was */
  belay__found_t found; /* the servers being found; in on_result(), the result */
  /* sentinel.c: the answer of a Sentinel that does not know the latest epoch */
  belay__found_t outdated;
  bool is_outdated;      /* `found` is outdated: it only serves clients without a connection */
  unsigned answers;      /* sentinel.c: of the one that is being asked */
  unsigned primaries;    /* replicas.c: that say they are */
  uint64_t epoch;        /* sentinel.c: epoch of the used primary; its user sets it */
  uint64_t failed_since; /* since when what is found is of no use; 0: it is */
  const belay__place_t
      *configured; /* sentinel.c: the sentinels that were known from the beginning */
  size_t configured_count;
  bool hinted;        /* sentinel.c: something has changed, and it was not asked yet */
  bool has_news;      /* something had changed before it was asked */
  bool with_replicas; /* the replicas are wanted too */
  const char *master; /* sentinel.c: its name */
  /* sentinel.c: run id of the sentinel that was last elected to lead a failover; length 0: none since the last one was
   * looked for */
  char leader[BELAY__RUN_ID_MAX];
  size_t leader_len;
  belay__place_t
      leads; /* sentinel.c: where that sentinel is; port 0: the one that was asked does not say */
  /* The end of a question, which may have been the resolver's own: 0, or an error, which the client knows in words too.
   * From the loop; another question may be begun in it. */
  void (*on_resolved)(belay__resolver_t *resolver, int error);
};

/* Asks, unless that is being done. It is not told inside this. */
void belay__resolver_ask(belay__resolver_t *resolver);

/* The found primary cannot be reached. Other servers may know a newer one. */
void belay__resolver_primary_failed(belay__resolver_t *resolver);

#endif /* BELAY_REDIS_DEPLOYMENT_PRIMARY_RESOLVER_H */
