/* The times in which processes believed to hold a lock, and a check of them. */
#ifndef TEST_SUPPORT_LOAD_BELIEF_H
#define TEST_SUPPORT_LOAD_BELIEF_H

#include <stddef.h>
#include <stdint.h>

typedef struct belief {
  int64_t from, until; /* by clock_now(), which is the same in all processes */
  uint64_t fence;      /* the fencing number of the grant */
  int holder;          /* a number of the test's */
} belief_t;

typedef struct verdict {
  size_t overlaps;       /* beliefs that began during another one */
  size_t ungrown;        /* fencing numbers that were no larger than all before them */
  int64_t longest_gap;   /* nanoseconds from the beginning of one to that of the next */
  const belief_t *wrong; /* the first that cannot be; NULL: none */
  const belief_t *other; /* the one before it that it contradicts */
} verdict_t;

/* Sorts them by their beginning, and judges them. */
verdict_t belief_judge(belief_t *beliefs, size_t count);

/* Prints the first two that contradict each other. */
void belief_accuse(const verdict_t *verdict);

#endif /* TEST_SUPPORT_LOAD_BELIEF_H */
