/* The options of the program. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "load/driver/scenarios.h"

typedef struct options {
  unsigned in; /* which cells */
  bool tcp, half;
  placement_t placement;        /* of all; PLACE_ANYWHERE: as each scenario says */
  unsigned rounds, concurrency; /* concurrency 0: the scenarios' own */
  double seconds, rate;
  const char *subjects, *json, *markdown;
  unsigned urls;
  const char *url[JOB_SERVERS_MAX];
  int scenarios; /* how many are named */
  char **names;
} options_t;

/* Ends the program with status 2 if they cannot be understood. */
options_t options_read(int argc, char **argv);

/* Whether a scenario, or a subject, is wanted. */
bool options_name(const options_t *options, const scenario_t *scenario);
bool options_include(const options_t *options, subject_t subject);

#endif /* BENCH_OPTIONS_H */
