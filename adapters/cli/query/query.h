/* What those commands have in common that look at what is held: ls, show, break, top. */
#ifndef BELAY_CLI_QUERY_QUERY_H
#define BELAY_CLI_QUERY_QUERY_H

#include "harness.h"
#include "query/snapshot.h"
#include "ui/table.h"

#define QUERY_KIND_VALUES "lock, rwlock, semaphore or election"

/* What --kind was given. */
extern texts_t query_kinds;

#define QUERY_KIND_OPTION                                                                          \
  TEXTS("kind", "KIND", &query_kinds,                                                              \
        QUERY_KIND_VALUES "; may be given several times; default: all", .letter = 'k',             \
        .choices = "lock rwlock semaphore election")

bool query_wants_kind(belay_held_kind_t kind);

/* The i-th server or deployment that is asked, as its URL says it, without user and password. */
const char *query_server_name(size_t i);
/* A word behind what is said of it: " at NODE", or "" where there is one node. */
const char *query_at_server(const harness_t *h, size_t i);

/* ---- how it is said ---- */

#define QUERY_TEXT_MAX 64

/* Who that is: his label. */
const char *query_holder_name(const belay_holder_t *holder);
/* Whoever holds it, as far as there is one name for it: its owner, what a leader calls himself, or
 * its first holder. */
const char *query_owner_name(const belay_held_t *held);
/* For how much longer: 1m30s; "no end". Returns buffer. */
const char *query_time_left(char buffer[QUERY_TEXT_MAX], int64_t ms);
/* How many hold it, in its kind's words: "2 readers", "3 of 5". Returns buffer. */
const char *query_hold_count(char buffer[QUERY_TEXT_MAX], const belay_held_t *held);
/* How many wait for it, as far as can be seen. */
int64_t query_waiters(const belay_held_t *held);

/* A table of them, with headings, and a row of one, as it is age_ms after it was seen. */
const column_t *query_columns(const harness_t *h);
void query_row(table_t *table, const harness_t *h, const snapshot_entry_t *entry, int64_t age_ms);

/* The members of one, between out_begin() and out_end(). */
void query_write_members(const harness_t *h, const snapshot_entry_t *entry);

#endif /* BELAY_CLI_QUERY_QUERY_H */
