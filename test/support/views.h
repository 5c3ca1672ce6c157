/* What belay_held_read() and belay_held_break() tell. */
#ifndef TEST_VIEWS_H
#define TEST_VIEWS_H

#include "support/bed.h"

enum { VIEW_HOLDERS_MAX = BELAY_HELD_HOLDERS_MAX, VIEW_TEXT_MAX = 3100 };

/* A copy of what was told. */
typedef struct view {
  belay_held_t held; /* what it points to is here: */
  belay_holder_t holders[VIEW_HOLDERS_MAX];
  char label[VIEW_HOLDERS_MAX][72];
  char name[VIEW_TEXT_MAX], owner[VIEW_TEXT_MAX];
} view_t;

/* Makes the copy. */
void view_copy(view_t *view, const belay_held_t *held);

/* Asks, and waits: the status; view may be NULL. */
int view_held(bed_t *bed, belay_held_kind_t kind, const char *name, view_t *view);
int view_held_of(bed_t *bed, belay_client_t *client, belay_held_kind_t kind, const char *name,
                 view_t *view);

/* Takes it away, and waits: the status. */
int break_held(bed_t *bed, const belay_held_t *held, belay_broken_t *broken);

/* The i-th holder: its label, NULL for none, and for how long it holds it at most, and half of that at least. */
void assert_holder(const view_t *view, size_t i, const char *label, int64_t most_ms);

#endif /* TEST_VIEWS_H */
