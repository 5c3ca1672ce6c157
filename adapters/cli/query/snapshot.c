#include "query/snapshot.h"

#include <stdlib.h>
#include <string.h>

/* Copy a text to *at and terminate it; *at advances. */
static const char *keep(char **at, const char *text, size_t len) {
  char *kept = *at;
  if (text == NULL)
    return NULL;
  memcpy(kept, text, len);
  kept[len] = '\0';
  *at += len + 1;
  return kept;
}

/* Return a deep copy in one allocation. */
static belay_held_t *copy(const belay_held_t *held) {
  size_t size = sizeof *held + held->holders_len * sizeof *held->holders + held->name_len + 1 +
                held->owner_len + 1;
  for (size_t i = 0; i < held->holders_len; i++)
    size += held->holders[i].label != NULL ? strlen(held->holders[i].label) + 1 : 0;
  belay_held_t *made = malloc(size);
  if (made == NULL)
    return NULL;
  belay_holder_t *holders = (belay_holder_t *)(made + 1);
  char *at = (char *)(holders + held->holders_len);
  *made = *held;
  made->holders = holders;
  made->name = keep(&at, held->name, held->name_len);
  made->owner = keep(&at, held->owner, held->owner_len);
  for (size_t i = 0; i < held->holders_len; i++) {
    const char *label = held->holders[i].label;
    holders[i] = held->holders[i];
    holders[i].label = keep(&at, label, label != NULL ? strlen(label) : 0);
  }
  return made;
}

bool snapshot_add(snapshot_t *list, const belay_held_t *held, size_t node) {
  if (list->n == list->size) {
    size_t size = list->size == 0 ? 16 : 2 * list->size;
    snapshot_entry_t *item = realloc(list->item, size * sizeof *item);
    if (item == NULL)
      return false;
    list->item = item;
    list->size = size;
  }
  const belay_held_t *kept = copy(held);
  if (kept == NULL)
    return false;
  list->item[list->n++] = (snapshot_entry_t){.held = kept, .node = node};
  return true;
}

int snapshot_compare(const snapshot_entry_t *a, const snapshot_entry_t *b) {
  const belay_held_t *one = a->held, *other = b->held;
  size_t len = one->name_len < other->name_len ? one->name_len : other->name_len;
  int order = memcmp(one->name, other->name, len);
  if (order == 0)
    order = (one->name_len > other->name_len) - (one->name_len < other->name_len);
  if (order == 0)
    order = (one->kind > other->kind) - (one->kind < other->kind);
  return order != 0 ? order : (a->node > b->node) - (a->node < b->node);
}

static int compare(const void *a, const void *b) {
  return snapshot_compare(a, b);
}

void snapshot_sort(snapshot_t *list) {
  size_t n = 0;
  if (list->n > 0)
    qsort(list->item, list->n, sizeof *list->item, compare);
  for (size_t i = 0; i < list->n; i++) {
    if (n > 0 && snapshot_compare(&list->item[n - 1], &list->item[i]) == 0)
      free((void *)list->item[i].held);
    else
      list->item[n++] = list->item[i];
  }
  list->n = n;
}

void snapshot_clear(snapshot_t *list) {
  for (size_t i = 0; i < list->n; i++)
    free((void *)list->item[i].held);
  free(list->item);
  *list = (snapshot_t){0};
}
