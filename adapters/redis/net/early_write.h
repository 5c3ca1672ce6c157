/* Early writes: whether a connection writes before the end of the loop's turn.
 *
 * One write at the end of the turn has the fewest system calls, for the server too. But a server
 * that has answered everything is idle until then. If enough of the turn is left, an early write
 * lets the server work while the loop does; from then on the two alternate. The
 * connection decides by two measured times: that of a task in this loop, and that of a write. */
#ifndef BELAY_REDIS_NET_EARLY_WRITE_H
#define BELAY_REDIS_NET_EARLY_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct belay__early_write {
  size_t unwritten;  /* Number of calls in the buffer; a batch counts as its calls */
  size_t at_server;  /* Number of calls that were written and await a reply */
  size_t tasks;      /* Number of tasks that are left in this turn */
  uint64_t task_ns;  /* Time of a task */
  uint64_t write_ns; /* Time of a write */
} belay__early_write_t;

/* True if an early write saves more time than it costs. writers: number of connections that write
 * in this turn, this one included. */
bool belay__early_write_pays(const belay__early_write_t *now, size_t writers);

#endif /* BELAY_REDIS_NET_EARLY_WRITE_H */
