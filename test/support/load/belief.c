#include "support/load/belief.h"

#include <stdlib.h>

#include "support/base/clock.h"
#include "support/base/unit.h"

static int by_beginning(const void *left, const void *right) {
  const belief_t *a = left, *b = right;
  return (a->from > b->from) - (a->from < b->from);
}

static void blame(verdict_t *verdict, const belief_t *wrong, const belief_t *other) {
  if (verdict->wrong != NULL)
    return;
  verdict->wrong = wrong;
  verdict->other = other;
}

verdict_t belief_judge(belief_t *beliefs, size_t count) {
  verdict_t verdict = {0};
  const belief_t *latest = beliefs, *highest = beliefs; /* of those before */
  qsort(beliefs, count, sizeof *beliefs, by_beginning);
  for (size_t i = 1; i < count; i++) {
    const belief_t *b = &beliefs[i];
    int64_t gap = b->from - beliefs[i - 1].from;
    if (gap > verdict.longest_gap)
      verdict.longest_gap = gap;
    if (b->from < latest->until) {
      verdict.overlaps++;
      blame(&verdict, b, latest);
    }
    if (b->fence <= highest->fence) {
      verdict.ungrown++;
      blame(&verdict, b, highest);
    }
    if (b->until > latest->until)
      latest = b;
    if (b->fence > highest->fence)
      highest = b;
  }
  return verdict;
}

static void print_belief(const belief_t *b, int64_t zero) {
  print_message("  %d believed from %lld us to %lld us, fence %llu\n", b->holder,
                (long long)(b->from - zero) / 1000, (long long)(b->until - zero) / 1000,
                (unsigned long long)b->fence);
}

void belief_accuse(const verdict_t *verdict) {
  if (verdict->wrong == NULL)
    return;
  print_message("not both can be:\n");
  print_belief(verdict->other, verdict->other->from);
  print_belief(verdict->wrong, verdict->other->from);
}
