/* Rankings, and what is heard of them. All are of one board. */
#ifndef TEST_STANDS_H
#define TEST_STANDS_H

#include "support/bed.h"

#define STAND_BOARD "board"
#define STAND_KEY "belay::ranking::{board}"
#define STAND_TIMED STAND_KEY "::timed"
#define STAND_TURNS STAND_KEY "::turns"

enum { QUERY_ENTRIES_MAX = 40, QUERY_MEMBER_MAX = 24, STAND_OPERATIONS = 12 };

/* A handle. */
typedef struct stand {
  bed_t *bed;
  belay_ranking_t *ranking; /* NULL: closed */
  unsigned pending, closing, closed;
  void (*then)(struct stand *stand); /* runs at the end of each callback; NULL: nothing */
} stand_t;

/* An operation, and what came of it. */
typedef struct query {
  belay_request_t request;
  stand_t *stand;
  unsigned begun, ended;
  int status;
  int64_t count; /* of those that answer a number */
  size_t n; /* of the others: entries, of which the first are kept, if their members are short */
  belay_ranking_entry_t entries[QUERY_ENTRIES_MAX];
  char members[QUERY_ENTRIES_MAX][QUERY_MEMBER_MAX];
} query_t;

belay_ranking_options_t ranking_options(belay_ranking_order_t order, belay_ranking_ties_t ties);

/* A handle of the bed's client; or of another one. Its data are the stand. */
void stand_new(stand_t *stand, bed_t *bed, belay_ranking_order_t order, belay_ranking_ties_t ties);
void stand_of(stand_t *stand, bed_t *bed, belay_client_t *client,
              const belay_ranking_options_t *options);
int begin_close_stand(stand_t *stand);

/* An operation is begun between these two, the second of which is given what belay returned. */
belay_request_t *stand_begin(stand_t *stand, query_t *query);
int stand_begun(stand_t *stand, query_t *query, int error);

/* The callbacks. */
void on_entries(belay_request_t *request, int status, const belay_ranking_entry_t *entries,
                size_t n);
void on_count(belay_request_t *request, int status, int64_t count);

int begin_submit(stand_t *stand, query_t *query, belay_ranking_mode_t mode, const char *member,
                 int64_t score);

/* One of all operations: the first three submit, set and add and best; then what asks; then remove, trim, clear. */
int begin_operation(stand_t *stand, query_t *query, unsigned n);
#define OPERATION_ASKS(n) ((n) >= 3 && (n) < 9)
#define OPERATION_IS_SENT_AGAIN(n) ((n) >= 3 && (n) != 9)

/* Waits for the end of what was begun: its status. */
int end_of_query(query_t *query);

/* The entries, as "0 ada 7, 1 bob 3"; with a "!" behind what was changed. Valid until the next one. */
const char *text_of(const query_t *query);

/* Begin it, wait for it, which must go well, and compare what comes of it. */
void expect_submit(stand_t *stand, belay_ranking_mode_t mode, const char *member, int64_t score,
                   const char *text);
void expect_all(stand_t *stand, const char *text); /* the whole board */

#endif /* TEST_STANDS_H */
