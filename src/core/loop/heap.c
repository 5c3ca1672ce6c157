#include "core/loop/heap.h"

#include <assert.h>
#include <stddef.h>

/* Join two trees, either of which may be NULL, and return the root. If both times are equal, the
 * root of `a` stays on top. */
static belay__timer_t *meld(belay__timer_t *a, belay__timer_t *b) {
  if (a == NULL)
    return b;
  if (b == NULL)
    return a;
  if (b->when < a->when) {
    belay__timer_t *swap = a;
    a = b;
    b = swap;
  }
  b->prev = a;
  b->next = a->child;
  if (a->child != NULL)
    a->child->prev = b;
  a->child = b;
  return a;
}

/* Join a row of siblings into one tree: in pairs from the left, then the pairs from the right. */
static belay__timer_t *meld_row(belay__timer_t *first) {
  belay__timer_t *pairs = NULL; /* linked by next, the last pair on top */
  while (first != NULL) {
    belay__timer_t *a = first, *b = first->next;
    first = b != NULL ? b->next : NULL;
    a->next = a->prev = NULL;
    if (b != NULL)
      b->next = b->prev = NULL;
    a = meld(a, b);
    a->next = pairs;
    pairs = a;
  }
  belay__timer_t *root = NULL;
  while (pairs != NULL) {
    belay__timer_t *next = pairs->next;
    pairs->next = NULL;
    root = meld(root, pairs);
    pairs = next;
  }
  return root;
}

void belay__heap_insert(belay__heap_t *heap, belay__timer_t *timer, uint64_t when) {
  assert(timer->when == 0 && when != 0);
  timer->when = when;
  timer->child = timer->next = timer->prev = NULL;
  heap->root = meld(heap->root, timer);
}

void belay__heap_remove(belay__heap_t *heap, belay__timer_t *timer) {
  assert(timer->when != 0);
  if (timer == heap->root) {
    heap->root = NULL;
  } else {
    if (timer->prev->child == timer)
      timer->prev->child = timer->next;
    else
      timer->prev->next = timer->next;
    if (timer->next != NULL)
      timer->next->prev = timer->prev;
  }
  heap->root = meld(heap->root, meld_row(timer->child));
  timer->when = 0;
  timer->child = timer->next = timer->prev = NULL;
}
