/* A process that asks for the same page again and again, together with others, in each of several stages. */
#ifndef BELAY_DEMO_STAMPEDE_H
#define BELAY_DEMO_STAMPEDE_H

#include "belay/bloom.h"
#include "belay/limiter.h"

enum {
  STAMPEDE_PROCESSES = 4,
  STAMPEDE_EACH = 250,     /* requests of a process, in each stage */
  STAMPEDE_LOAD_MS = 200,  /* what a load takes at least */
  STAMPEDE_ALLOWED = 10,   /* loads by the limiter */
  STAMPEDE_EXISTING = 100, /* pages that the filter is made for */
};

typedef enum stampede_stage {
  STAMPEDE_BY_HAND, /* whoever finds nothing loads it, and stores it */
  STAMPEDE_PLAIN,   /* a load in each process */
  STAMPEDE_LOCK,    /* one among all of them */
  STAMPEDE_STALE,   /* it expires while it is asked for, and is served stale */
  STAMPEDE_PINNED,  /* the same, and it is loaded again before */
  STAMPEDE_ABSENT,  /* it does not exist, which is kept */
  STAMPEDE_LIMITER, /* a thousand others do not exist, and a limiter allows a few loads */
  STAMPEDE_FILTER,  /* and a filter knows that they do not */
  STAMPEDE_STAGES
} stampede_stage_t;

/* What is counted in a stage. All but the first and the last are requests, by how they were served. */
typedef enum stampede_count {
  STAMPEDE_LOADS,     /* calls of the loader */
  STAMPEDE_HERE,      /* with what was loaded in the same process */
  STAMPEDE_ELSEWHERE, /* with what was loaded in another one meanwhile */
  STAMPEDE_FRESH,     /* at once */
  STAMPEDE_OLD,       /* at once, stale */
  STAMPEDE_REFUSED,   /* the limiter, or the filter, knows better than to load */
  STAMPEDE_LONGEST_US,
  STAMPEDE_COUNTS
} stampede_count_t;

/* The words by which such a process tells them (see news_t); and the last word of a stage, whose number is the stage's. */
extern const char *const stampede_words[STAMPEDE_COUNTS];
#define NEWS_STAGE "stage"

/* The limiter and the filter as all of these processes have them. Each returns 0 or an error. */
int stampede_limiter(belay_client_t *client, const char *name, belay_limiter_t **out);
int stampede_filter(belay_client_t *client, const char *name, belay_bloom_t **out);

/* The hidden subcommand: PARENT RUN OWNER NAME NUMBER. The cache, the limiter, the filter and the barrier by which such
 * processes keep in step have that name; NUMBER is 0 to STAMPEDE_PROCESSES - 1. */
int run_visitors(int argc, char **argv);

#endif /* BELAY_DEMO_STAMPEDE_H */
