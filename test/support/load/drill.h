/* Repeated failovers under a load (support/load/load.h): the common part of such tests. */
#ifndef TEST_SUPPORT_LOAD_DRILL_H
#define TEST_SUPPORT_LOAD_DRILL_H

#include "support/base/clock.h"
#include "support/load/load.h"
#include "support/servers/server.h"
#include "support/base/unit.h"

enum { DRILLS_MAX = 10000, DRILL_PATIENCE_MS = 60000, DRILL_GAP_MS = 5 };

/* A number in the environment, or otherwise that. */
unsigned drill_setting(const char *name, unsigned otherwise);

/* Whether the figures are judged as they are meant: BELAY_FAILOVERS is there, and nothing makes
 * the process slow. Else they may be those of a machine that has others to serve. */
bool drill_is_strict(void);

/* Hears what the load tells until the condition holds. */
#define drill_until(load, condition)                                                               \
  do {                                                                                             \
    int64_t began_ = clock_now();                                                                  \
    while (!(condition)) {                                                                         \
      load_read((load), 5);                                                                        \
      if (clock_since_ms(began_) > DRILL_PATIENCE_MS * slow())                                     \
        fail_msg("waited in vain for: %s", #condition);                                            \
    }                                                                                              \
  } while (0)

void drill_go_on(load_t *load, int64_t ms);

/* The load rests: how many operations on its counter are confirmed. */
uint64_t drill_rest(load_t *load);

/* Whether that server answers it. */
bool drill_is_at(const load_t *load, server_t *server);

/* How long after the one the other was, in milliseconds; 0 if it was before. */
double drill_after(int64_t from, int64_t to);

/* The final state of counters. */
typedef struct drill_sum {
  uint64_t confirmed, lost; /* operations */
  unsigned lossy;           /* failovers that have lost something that was confirmed */
} drill_sum_t;

/* Pauses the load and checks this counter on the server: each operation is counted and recorded,
 * or neither; and at least `safe` are. Then deletes it, so that later checks stay fast. */
void drill_check_counter(load_t *load, server_t *primary, const char *name, uint64_t safe,
                         drill_sum_t *sum);

/* Prints how they are distributed; returns the largest. */
double drill_print(const char *what, double *values, unsigned n);

/* Gaps of the load's loop in each failover. */
typedef struct drill_gaps {
  unsigned n;
  double longer_ms[DRILLS_MAX];   /* than an idle loop's */
  double computed_ms[DRILLS_MAX]; /* at a stretch */
} drill_gaps_t;

void drill_note_gap(drill_gaps_t *gaps, const load_t *load);
/* Prints them. If the drill is strict: it must never have computed for more than DRILL_GAP_MS,
 * and nine in ten gaps must be within as much of an idle loop's; the others may be the
 * machine's, which holds up one loop and not the other. */
void drill_judge_gaps(drill_gaps_t *gaps);

/* Prints what has come of a load that has ended, and judges what must hold after its limiter was
 * forgotten so many times. */
void drill_judge(const load_t *load, const drill_sum_t *sum, unsigned forgotten);

#endif /* TEST_SUPPORT_LOAD_DRILL_H */
