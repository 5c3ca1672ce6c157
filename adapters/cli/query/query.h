/* Shared by the commands that read held objects: ls, show, break, top. */
#ifndef BELAY_CLI_QUERY_QUERY_H
#define BELAY_CLI_QUERY_QUERY_H

#include "harness.h"
#include "query/snapshot.h"
#include "ui/table.h"

#define QUERY_KIND_VALUES "lock, rwlock, semaphore or election"

/* The values of --kind. */
extern texts_t query_kinds;

#define QUERY_KIND_OPTION                                                                          \
  TEXTS("kind", "KIND", &query_kinds,                                                              \
        QUERY_KIND_VALUES "; may be given several times; default: all", .letter = 'k',             \
        .choices = "lock rwlock semaphore election")

bool query_wants_kind(belay_held_kind_t kind);

/* Return the URL of server or deployment i, without user and password. */
const char *query_server_name(size_t i);
/* Return a suffix for messages: " at SERVER", or "" if there is only one server. */
const char *query_at_server(const harness_t *h, size_t i);

/* ---- output ---- */

#define QUERY_TEXT_MAX 64

/* Return the label of a holder. */
const char *query_holder_name(const belay_holder_t *holder);
/* Return one name for the holders: the owner, the name of the leader, or the label of the first
 * holder. */
const char *query_owner_name(const belay_held_t *held);
/* Format the time that is left, such as 1m30s or "no end". Returns buffer. */
const char *query_time_left(char buffer[QUERY_TEXT_MAX], int64_t ms);
/* Return the number of waiters, as far as the server knows; negative: unknown. */
int64_t query_waiters(const belay_held_t *held);

/* The columns of a table, and one row of it. age_ms: age of the entry in milliseconds. */
const column_t *query_columns(const harness_t *h);
void query_row(table_t *table, const harness_t *h, const snapshot_entry_t *entry, int64_t age_ms);

/* Write the members of an entry, between out_begin() and out_end(). */
void query_write_members(const harness_t *h, const snapshot_entry_t *entry);

#endif /* BELAY_CLI_QUERY_QUERY_H */
