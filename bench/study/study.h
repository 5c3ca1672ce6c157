/* Definitions that all studies share. */
#ifndef BENCH_STUDY_H
#define BENCH_STUDY_H

#include "bench.h"
#include "place.h"

typedef struct bench_options {
  double seconds;   /* how long a scenario measures; its own text says what of */
  unsigned rounds;  /* everything is measured so often, in turns */
  const char *only; /* letters of the parts that are wanted; NULL: all */
  placement_t pin;  /* apart, or as it comes */
  const char *json; /* the results go there too; NULL: nowhere */
} bench_options_t;

/* A scenario measures and reports; it ends the program only if something went wrong. */
typedef struct bench_scenario {
  const char *name, *about;
  double seconds; /* where nothing else is said */
  void (*run)(const bench_options_t *options);
} bench_scenario_t;

extern const bench_scenario_t bench_cache, bench_contention, bench_fairness, bench_reconnect,
    bench_watched;

/* Starts the server, and says where everything runs. */
void bench_begin(const bench_options_t *options);

/* Whether a part is to be measured. */
bool bench_wants(const bench_options_t *options, const char *part);

/* Arguments: a study's name, and its options. */
int study_main(int argc, char **argv);

#endif /* BENCH_STUDY_H */
