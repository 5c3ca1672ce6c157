/* Reads one name on all servers: its objects and their holders. */
#ifndef BELAY_CLI_QUERY_READING_H
#define BELAY_CLI_QUERY_READING_H

#include "query/query.h"

typedef struct reading reading_t;

/* Set h, name and on_read; the rest is 0. */
struct reading {
  harness_t *h;
  const char *name;
  void (*on_read)(reading_t *); /* called when all servers have answered or failed */
  /* the objects, sorted; also free objects that have a fencing number */
  snapshot_t snapshot;
  size_t answered; /* number of servers */
  int error;       /* the first error, which was printed */

  size_t pending;
  bool failed[URLS_MAX];
  struct reading_request {
    belay_request_t request;
    reading_t *reading;
    size_t node;
    belay_held_kind_t kind;
  } requests[URLS_MAX][BELAY_HELD_KINDS];
};

/* Read all selected kinds. Ends the command if that fails. */
void reading_start(reading_t *reading);

/* Return STATUS_YES if a majority has answered, else the exit status. */
int reading_status(const reading_t *reading);

/* Return the largest number of servers that have the same holder. */
size_t reading_agreed(const reading_t *reading);

/* Return the size of a majority of the servers. */
size_t reading_majority(const reading_t *reading);

#endif /* BELAY_CLI_QUERY_READING_H */
