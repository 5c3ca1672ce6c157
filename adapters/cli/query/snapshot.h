/* A snapshot of held objects: copies that outlive the callback of the query. */
#ifndef BELAY_CLI_QUERY_SNAPSHOT_H
#define BELAY_CLI_QUERY_SNAPSHOT_H

#include "belay/held.h"

typedef struct snapshot_entry {
  const belay_held_t *held; /* a deep copy */
  size_t node;              /* index of the client */
} snapshot_entry_t;

/* Initialize it with {0}. */
typedef struct snapshot {
  snapshot_entry_t *item;
  size_t n, size;
} snapshot_t;

/* Add a copy. Returns false if memory is out. */
bool snapshot_add(snapshot_t *list, const belay_held_t *held, size_t node);

/* Sort by name, kind and node, and remove duplicates. */
void snapshot_sort(snapshot_t *list);

/* Compare two entries by name, kind and node. */
int snapshot_compare(const snapshot_entry_t *a, const snapshot_entry_t *b);

/* Remove all entries and free their memory. */
void snapshot_clear(snapshot_t *list);

#endif /* BELAY_CLI_QUERY_SNAPSHOT_H */
