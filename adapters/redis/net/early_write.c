#include "redis/net/early_write.h"

/* One task, or a call from outside belay, can start many operations. The number to come is not
 * known then; it is taken to be this part of the number so far. */
#define EXPECTED_PART 8

static size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

/* While the server has more calls than are buffered, it is busy until as many more are prepared.
 * Else a write pays if it is short in comparison with the part of the turn before it, and with the
 * part after it. A third of its time counts: the rest wakes the server, which a write at the end of
 * the turn does too [m]. If several connections write, each has only its share of a task, and their
 * servers may share processors: the cost grows with the third power. */
bool belay__early_write_pays(const belay__early_write_t *now, size_t writers) {
  size_t expected = now->unwritten / EXPECTED_PART;
  size_t left = now->tasks > expected ? now->tasks : expected;
  return now->unwritten >= now->at_server && smaller(now->unwritten, left) * now->task_ns >=
                                                 now->write_ns * writers * writers * writers / 3;
}
