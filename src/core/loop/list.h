/* A doubly linked ring whose links are inside the objects. An unlinked node points to itself. */
#ifndef BELAY_CORE_LOOP_LIST_H
#define BELAY_CORE_LOOP_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct belay__list {
  struct belay__list *next, *prev;
} belay__list_t;

/* The struct that embeds this member. */
#define BELAY__CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void belay__list_init(belay__list_t *list) {
  list->next = list->prev = list;
}

static inline bool belay__list_empty(const belay__list_t *list) {
  return list->next == list;
}

static inline void belay__list_insert_before(belay__list_t *at, belay__list_t *node) {
  node->next = at;
  node->prev = at->prev;
  at->prev->next = node;
  at->prev = node;
}

static inline void belay__list_push(belay__list_t *list, belay__list_t *node) {
  belay__list_insert_before(list, node);
}

static inline void belay__list_push_front(belay__list_t *list, belay__list_t *node) {
  belay__list_insert_before(list->next, node);
}

static inline void belay__list_remove(belay__list_t *node) {
  node->prev->next = node->next;
  node->next->prev = node->prev;
  belay__list_init(node);
}

/* Remove and return the first node; NULL if the list is empty. */
static inline belay__list_t *belay__list_pop(belay__list_t *list) {
  belay__list_t *node = list->next;
  if (node == list)
    return NULL;
  belay__list_remove(node);
  return node;
}

/* Move all nodes of `from` to the front of `to`, in order. */
static inline void belay__list_splice_front(belay__list_t *to, belay__list_t *from) {
  if (belay__list_empty(from))
    return;
  from->prev->next = to->next;
  to->next->prev = from->prev;
  to->next = from->next;
  from->next->prev = to;
  belay__list_init(from);
}

#endif /* BELAY_CORE_LOOP_LIST_H */
