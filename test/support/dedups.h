/* Dedup, and what is heard of it. */
#ifndef TEST_DEDUPS_H
#define TEST_DEDUPS_H

#include "support/bed.h"

/* A handle. */
typedef struct book {
  bed_t *bed;
  belay_dedup_t *dedup; /* NULL: closed */
  unsigned pending, closing, closed;
  void (*then)(struct book *book); /* runs at the end of each callback; NULL: nothing */
} book_t;

enum { DEDUP_KINDS = 4 };

enum { ENTRY_MAX = 520, ENTRY_ITEMS = 64 };

/* An operation, and what came of it. */
typedef struct entry {
  belay_request_t request;
  book_t *book;
  unsigned begun, ended;
  int status;
  char verdicts[ENTRY_MAX + 1]; /* a letter for each of the first: Seen, New, Full, Maybe */
  size_t n;                     /* of them, or of members */
  int64_t count;
  uint64_t next;
  /* Looks at each member of a page; NULL: nobody does. */
  void (*member)(struct entry *entry, const belay_bytes_t *member);
  void *arg; /* the test's */
} entry_t;

belay_dedup_options_t dedup_options(belay_dedup_kind_t kind); /* with the name "n" */

/* A handle of the bed's client; the second one of another's. Its data are the book. */
void book_new(book_t *book, bed_t *bed, belay_dedup_kind_t kind);
void book_of(book_t *book, bed_t *bed, belay_client_t *client,
             const belay_dedup_options_t *options);

/* Items out of a text with commas between them: a, b, and the empty one are "a,b,". Valid until they are made the
 * next time. */
const belay_bytes_t *items_of(const char *text, size_t *n);

/* Begin it; what belay returned. If it is 0, the callback is counted. */
int begin_mark(book_t *book, entry_t *entry, const char *key, const char *item);
int begin_mark_many(book_t *book, entry_t *entry, const char *key, const char *items);
int begin_mark_once(book_t *book, entry_t *entry, const char *key, const char *items,
                    const char *id);
int begin_seen(book_t *book, entry_t *entry, const char *key, const char *item);
int begin_seen_many(book_t *book, entry_t *entry, const char *key, const char *items);
int begin_forget(book_t *book, entry_t *entry, const char *key, const char *items);
int begin_book_count(book_t *book, entry_t *entry, const char *key);
int begin_clear(book_t *book, entry_t *entry, const char *key);
int begin_count_of(book_t *book, entry_t *entry, belay_dedup_operator_t how, const char *keys);
int begin_store(book_t *book, entry_t *entry, belay_dedup_operator_t how, const char *keys,
                const char *into);
int begin_page(book_t *book, entry_t *entry, belay_dedup_operator_t how, const char *keys,
               uint64_t cursor, size_t limit);
int begin_close_book(book_t *book);

enum { DEDUP_OPERATIONS = 11 };

/* One of all operations there are, on the set "k", of items 1, or 1 and 2; whether a kind can do it. */
int begin_dedup_nth(book_t *book, entry_t *entry, int n);
bool can_dedup(belay_dedup_kind_t kind, int n);

/* For what a test begins itself. */
belay_request_t *begin_entry(book_t *book, entry_t *entry);
int begun_entry(entry_t *entry, int error);

/* The callbacks of all of them. */
void on_verdict(belay_request_t *request, int status, belay_dedup_verdict_t verdict);
void on_verdicts(belay_request_t *request, int status, const belay_dedup_verdict_t *verdicts,
                 size_t n);
void on_book_counted(belay_request_t *request, int status, int64_t count);
void on_page(belay_request_t *request, int status, const belay_bytes_t *members, size_t n,
             uint64_t next);

/* Waits for the end of what was begun: its status. */
int end_of_entry(entry_t *entry);

/* Begin it, wait for it, which must go well, and compare what comes of it. */
void expect_mark(book_t *book, const char *key, const char *items, const char *verdicts);
void expect_mark_once(book_t *book, const char *key, const char *items, const char *id,
                      const char *verdicts);
void expect_seen(book_t *book, const char *key, const char *items, const char *verdicts);
void expect_forget(book_t *book, const char *key, const char *items, int64_t n);
void expect_count(book_t *book, const char *key, int64_t n);
void expect_clear(book_t *book, const char *key, int64_t n);
void expect_count_of(book_t *book, belay_dedup_operator_t how, const char *keys, int64_t n);
void expect_store(book_t *book, belay_dedup_operator_t how, const char *keys, const char *into,
                  int64_t n);

#endif /* TEST_DEDUPS_H */
