/* A resolver: finds the primary of a deployment and its replicas. sentinel.c asks Sentinels,
 * replicas.c asks all servers. */
#ifndef BELAY_REDIS_DEPLOYMENT_PRIMARY_RESOLVER_H
#define BELAY_REDIS_DEPLOYMENT_PRIMARY_RESOLVER_H

#include "redis/deployment/discovery.h"

#define BELAY__REPLICAS_MAX 16

typedef struct belay__resolver belay__resolver_t;

/* The result of a query. */
typedef struct belay__found {
  belay__place_t primary;
  belay__place_t replicas[BELAY__REPLICAS_MAX]; /* candidates; each connection verifies the role */
  size_t replica_count;
  /* For sentinel.c only: */
  uint64_t epoch;          /* grows with each failover */
  bool down;               /* the Sentinel does not reach the primary that it names */
  bool promotes;           /* the Sentinel leads a failover */
  belay__place_t promoted; /* the replica that the Sentinel promotes; port 0: none */
} belay__found_t;

struct belay__resolver {
  belay__discovery_t discovery;
  belay__found_t found;  /* in on_resolved(), the result */
  uint64_t failed_since; /* start of the time without a usable primary; 0: there is one */
  /* The end of a query: 0, or an error whose text is the client's last refusal. Runs from the
   * loop. Another query may begin in it. */
  void (*on_resolved)(belay__resolver_t *resolver, int error);
  bool is_outdated;   /* `found` is outdated: it only serves clients without a connection */
  bool has_news;      /* the query began because of an event */
  bool with_replicas; /* the replicas are needed, too */

  /* For replicas.c only: */
  unsigned primaries; /* number of servers that report to be the primary */

  /* For sentinel.c only: */
  belay__timer_t poll_timer; /* time of the next query without an event */
  belay__found_t outdated;   /* the answer of a Sentinel that does not know the latest epoch */
  uint64_t epoch;            /* epoch of the used primary; the deployment sets it */
  const belay__place_t *configured; /* the Sentinels of the URL */
  size_t configured_count;
  unsigned answers;   /* number of replies of the present Sentinel */
  bool hinted;        /* an event came, and no query has begun since */
  const char *master; /* name of the primary at the Sentinels */
  /* Run id of the Sentinel that was last elected to lead a failover; length 0: none since the
   * last one was followed. */
  char leader[BELAY__RUN_ID_MAX];
  size_t leader_len;
  belay__place_t leads; /* address of that Sentinel; port 0: unknown */
};

/* Begins a query, unless one is in progress. on_resolved() does not run inside this call. */
void belay__resolver_ask(belay__resolver_t *resolver);

/* Notes that the found primary cannot be reached. Another Sentinel may know a newer one. */
void belay__resolver_primary_failed(belay__resolver_t *resolver);

#endif /* BELAY_REDIS_DEPLOYMENT_PRIMARY_RESOLVER_H */
