/* Queries one name on all servers: its objects and their holders. */
#ifndef BELAY_CLI_QUERY_READING_H
#define BELAY_CLI_QUERY_READING_H

#include "query/query.h"

typedef struct reading reading_t;

/* Set h, name and on_read; the rest is 0. */
struct reading {
  harness_t *h;
  const char *name;
  void (*on_read)(reading_t *); /* all have answered, or not, which was said then */
  /* the objects, sorted; also free ones that remember something */
  snapshot_t snapshot;
  size_t answered; /* servers */
  int error;       /* the first one that has come instead of an answer */

  size_t pending;
  bool failed[URLS_MAX];
  struct reading_request {
    belay_request_t request;
    reading_t *reading;
    size_t node;
    belay_held_kind_t kind;
  } requests[URLS_MAX][BELAY_HELD_KINDS];
};

/* Asks for all kinds that are wanted. If that cannot be, the harness is done. */
void reading_begin(reading_t *reading);

/* How the command is to end if too few servers have answered to say anything: less than a majority.
 * STATUS_YES: enough. */
int reading_status(const reading_t *reading);

/* At how many servers the same holder was seen to hold it; of all kinds and holders the most. */
size_t reading_agreed(const reading_t *reading);

/* A majority of the servers. */
size_t reading_majority(const reading_t *reading);

#endif /* BELAY_CLI_QUERY_READING_H */
