/* What was measured: series of one value for each round, their medians, and the targets they are
 * held to. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "study/study.h"

#define REPORT_ROUNDS_MAX 99

/* The limit of a median: minimum or maximum. */
typedef struct report_target {
  enum { TARGET_NONE, TARGET_AT_LEAST, TARGET_AT_MOST } kind;
  double limit;
} report_target_t;

/* A fact about the run as a whole: the server, the placement. */
void report_fact(const char *name, const char *text);

/* A part of the report, under which its series stand. */
void report_part(const char *part, const char *title);

/* Add a value to a series. The strings must stay valid. */
void report_add(const char *part, const char *who, const char *what, const char *unit, double value,
                report_target_t target);

/* Prints everything, and writes it as JSON where the options say so. */
void report_finish(const char *scenario, const bench_options_t *options);

#endif /* BENCH_REPORT_H */
