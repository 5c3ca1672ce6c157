/* Which processors the server and its clients run on. */
#ifndef BENCH_PLACE_H
#define BENCH_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef enum placement {
  PLACE_ANYWHERE, /* wherever the scheduler likes */
  PLACE_APART,    /* servers on the last of the processors, clients on all others */
  PLACE_SAME,     /* all on the last one */
  PLACEMENTS
} placement_t;

extern const char *const placement_names[PLACEMENTS];

/* From here on a server, or this process as a client, runs there; threads that it has already do
 * not. */
void place_server(pid_t pid, placement_t placement);
void place_as_client(placement_t placement);

/* Whether there are processors enough. */
bool place_can(placement_t placement);

/* Return the processor that a process last ran on; -1 if it is unknown. */
int place_of(pid_t pid);

/* In words, for the report. Ends the program if there is but one processor, and nothing to pin. */
void place_describe(placement_t placement, char *text, size_t size);

#endif /* BENCH_PLACE_H */
