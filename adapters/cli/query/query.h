/* What those commands have in common that look at what is held: ls, show, break, top. */
#ifndef BELAY_CLI_QUERY_QUERY_H
#define BELAY_CLI_QUERY_QUERY_H

#include "harness.h"
#include "query/snapshot.h"
#include "ui/table.h"

#define LOOK_KIND_VALUES "lock, rwlock, semaphore or election"

/* What --kind was given. */
extern texts_t look_kinds;

#define LOOK_KIND_OPTION                                                                           \
  TEXTS("kind", "KIND", &look_kinds,                                                               \
        LOOK_KIND_VALUES "; may be given several times; default: all", .letter = 'k',              \
        .choices = "lock rwlock semaphore election")

bool look_wants(belay_held_kind_t kind);

/* The i-th server or deployment that is asked, as its URL says it, without user and password. */
const char *look_node(size_t i);
/* A word behind what is said of it: " at NODE", or "" where there is one node. */
const char *look_at(const harness_t *h, size_t i);

/* ---- how it is said ---- */

#define LOOK_TEXT_MAX 64

/* Who that is: his label. */
const char *look_holder(const belay_holder_t *holder);
/* Whoever holds it, as far as there is one name for it: its owner, what a leader calls himself, or
 * its first holder. */
const char *look_owner(const belay_held_t *held);
/* For how much longer: 1m30s; "no end". Returns buffer. */
const char *look_left(char buffer[LOOK_TEXT_MAX], int64_t ms);
/* How many hold it, in its kind's words: "2 readers", "3 of 5". Returns buffer. */
const char *look_holds(char buffer[LOOK_TEXT_MAX], const belay_held_t *held);
/* How many wait for it, as far as can be seen. */
int64_t look_waiters(const belay_held_t *held);

/* A table of them, with headings, and a row of one, as it is age_ms after it was seen. */
const column_t *look_columns(const harness_t *h);
void look_row(table_t *table, const harness_t *h, const seen_t *seen, int64_t age_ms);

/* The members of one, between out_begin() and out_end(). */
void look_out(const harness_t *h, const seen_t *seen);

#endif /* BELAY_CLI_QUERY_QUERY_H */
