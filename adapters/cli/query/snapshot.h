/* What was seen to be held, for longer than the callback that told it. */
#ifndef BELAY_CLI_QUERY_SNAPSHOT_H
#define BELAY_CLI_QUERY_SNAPSHOT_H

#include "belay/held.h"

typedef struct snapshot_entry {
  const belay_held_t *held; /* a copy, whole */
  size_t node;              /* of which client it was */
} snapshot_entry_t;

/* Begins as {0}. */
typedef struct snapshot {
  snapshot_entry_t *item;
  size_t n, size;
} snapshot_t;

/* Adds a copy; false: no memory. */
bool snapshot_add(snapshot_t *list, const belay_held_t *held, size_t node);

/* Takes the last one off again. */
void snapshot_drop_last(snapshot_t *list);

/* By name, kind and node; of what was told more than once only one is left. */
void snapshot_sort(snapshot_t *list);

/* How two compare: by name, kind and node. */
int snapshot_compare(const snapshot_entry_t *a, const snapshot_entry_t *b);

/* Empty again; the memory is given back. */
void snapshot_clear(snapshot_t *list);

#endif /* BELAY_CLI_QUERY_SNAPSHOT_H */
