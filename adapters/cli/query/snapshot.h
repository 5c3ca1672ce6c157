/* What was seen to be held, for longer than the callback that told it. */
#ifndef BELAY_CLI_QUERY_SNAPSHOT_H
#define BELAY_CLI_QUERY_SNAPSHOT_H

#include "belay/held.h"

typedef struct seen {
  const belay_held_t *held; /* a copy, whole */
  size_t node;              /* of which client it was */
} seen_t;

/* Begins as {0}. */
typedef struct seen_list {
  seen_t *item;
  size_t n, size;
} seen_list_t;

/* Adds a copy; false: no memory. */
bool seen_add(seen_list_t *list, const belay_held_t *held, size_t node);

/* Takes the last one off again. */
void seen_drop(seen_list_t *list);

/* By name, kind and node; of what was told more than once only one is left. */
void seen_sort(seen_list_t *list);

/* How two compare: by name, kind and node. */
int seen_compare(const seen_t *a, const seen_t *b);

/* Empty again; the memory is given back. */
void seen_clear(seen_list_t *list);

#endif /* BELAY_CLI_QUERY_SNAPSHOT_H */
