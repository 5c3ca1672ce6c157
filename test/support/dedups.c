#include "support/dedups.h"

belay_dedup_options_t dedup_options(belay_dedup_kind_t kind) {
  belay_dedup_options_t options;
  belay_dedup_options_init(&options);
  options.kind = kind;
  options.name = "n";
  options.name_len = 1;
  return options;
}

void book_of(book_t *book, bed_t *bed, belay_client_t *client,
             const belay_dedup_options_t *options) {
  *book = (book_t){.bed = bed};
  belay_dedup_options_t o = *options;
  o.data = book;
  int error = belay_dedup_new(client, &o, &book->dedup);
  if (error != 0)
    fail_msg("belay_dedup_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  assert_ptr_equal(belay_dedup_data(book->dedup), book);
}

void book_new(book_t *book, bed_t *bed, belay_dedup_kind_t kind) {
  belay_dedup_options_t options = dedup_options(kind);
  book_of(book, bed, bed->client, &options);
}

const belay_bytes_t *items_of(const char *text, size_t *n) {
  static belay_bytes_t items[ENTRY_ITEMS];
  for (*n = 0;; text++) {
    size_t len = strcspn(text, ",");
    assert_true(*n < ENTRY_ITEMS);
    items[(*n)++] = (belay_bytes_t){len > 0 ? text : NULL, len};
    text += len;
    if (*text == '\0')
      return items;
  }
}

/* ---- callbacks ------------------------------------------------------------------------------------------- */

static void then(book_t *book) {
  unsigned inside = book->bed->inside;
  book->bed->wrong += inside;
  book->bed->inside = 0;
  if (book->then != NULL)
    book->then(book);
  book->bed->inside = inside;
}

static entry_t *ended(belay_request_t *request, int status) {
  entry_t *entry = request->data;
  book_t *book = entry->book;
  entry->ended++;
  entry->status = status;
  book->bed->wrong += entry->ended > entry->begun || book->closed > 0;
  book->pending--;
  return entry;
}

static const char letters[] = {[BELAY_DEDUP_SEEN] = 'S',
                               [BELAY_DEDUP_NEW] = 'N',
                               [BELAY_DEDUP_FULL] = 'F',
                               [BELAY_DEDUP_MAYBE] = 'M'};

void on_verdict(belay_request_t *request, int status, belay_dedup_verdict_t verdict) {
  entry_t *entry = ended(request, status);
  if (status != 0)
    assert_int_equal(verdict, BELAY_DEDUP_MAYBE);
  entry->n = 1;
  entry->verdicts[0] = letters[verdict];
  entry->verdicts[1] = '\0';
  then(entry->book);
}

void on_verdicts(belay_request_t *request, int status, const belay_dedup_verdict_t *verdicts,
                 size_t n) {
  entry_t *entry = ended(request, status);
  assert_int_equal(verdicts != NULL, status == 0);
  assert_int_equal(n > 0, status == 0);
  entry->n = n;
  for (size_t i = 0; verdicts != NULL && i < n && i < ENTRY_MAX; i++) {
    entry->verdicts[i] = letters[verdicts[i]];
    entry->verdicts[i + 1] = '\0';
  }
  if (verdicts != NULL && entry->arg != NULL)
    memcpy(entry->arg, verdicts, n * sizeof *verdicts);
  then(entry->book);
}

void on_book_counted(belay_request_t *request, int status, int64_t count) {
  entry_t *entry = ended(request, status);
  assert_true(status == 0 || count == 0);
  entry->count = count;
  then(entry->book);
}

void on_page(belay_request_t *request, int status, const belay_bytes_t *members, size_t n,
             uint64_t next) {
  entry_t *entry = ended(request, status);
  assert_int_equal(members != NULL, n > 0);
  assert_true(status == 0 || (n == 0 && next == 0));
  entry->n = n;
  entry->next = next;
  for (size_t i = 0; i < n && entry->member != NULL; i++)
    entry->member(entry, &members[i]);
  then(entry->book);
}

static void on_book_closed(belay_dedup_t *dedup, void *data) {
  book_t *book = data;
  assert_ptr_equal(dedup, book->dedup);
  book->closed++;
  book->bed->wrong += book->pending > 0 || book->closed > book->closing;
  book->dedup = NULL;
  then(book);
}

/* ---- beginning ------------------------------------------------------------------------------------------- */

belay_request_t *begin_entry(book_t *book, entry_t *entry) {
  entry->book = book;
  entry->request.data = entry;
  book->bed->inside++;
  return &entry->request;
}

int begun_entry(entry_t *entry, int error) {
  entry->book->bed->inside--;
  entry->book->pending += error == 0;
  entry->begun += error == 0;
  return error;
}

int begin_mark(book_t *book, entry_t *entry, const char *key, const char *item) {
  belay_request_t *request = begin_entry(book, entry);
  return begun_entry(entry, belay_dedup_mark(book->dedup, request, key, strlen(key), item,
                                             strlen(item), on_verdict));
}

int begin_mark_many(book_t *book, entry_t *entry, const char *key, const char *items) {
  size_t n;
  const belay_bytes_t *all = items_of(items, &n);
  belay_request_t *request = begin_entry(book, entry);
  return begun_entry(
      entry, belay_dedup_mark_many(book->dedup, request, key, strlen(key), all, n, on_verdicts));
}

int begin_mark_once(book_t *book, entry_t *entry, const char *key, const char *items,
                    const char *id) {
  size_t n;
  const belay_bytes_t *all = items_of(items, &n);
  belay_request_t *request = begin_entry(book, entry);
  return begun_entry(entry, belay_dedup_mark_once(book->dedup, request, key, strlen(key), all, n,
                                                  id, strlen(id), on_verdicts));
}

int begin_seen(book_t *book, entry_t *entry, const char *key, const char *item) {
  belay_request_t *request = begin_entry(book, entry);
  return begun_entry(entry, belay_dedup_seen(book->dedup, request, key, strlen(key), item,
                                             strlen(item), on_verdict));
}

int begin_seen_many(book_t *book, entry_t *entry, const char *key, const char *items) {
  size_t n;
  const belay_bytes_t *all = items_of(items, &n);
  belay_request_t *request = begin_entry(book, entry);
  return begun_entry(
      entry, belay_dedup_seen_many(book->dedup, request, key, strlen(key), all, n, on_verdicts));
}

int begin_forget(book_t *book, entry_t *entry, const char *key, const char *items) {
  size_t n;
  const belay_bytes_t *all = items_of(items, &n);
  belay_request_t *request = begin_entry(book, entry);
  return begun_entry(
      entry, belay_dedup_forget(book->dedup, request, key, strlen(key), all, n, on_book_counted));
}

int begin_book_count(book_t *book, entry_t *entry, const char *key) {
  belay_request_t *request = begin_entry(book, entry);
  return begun_entry(entry,
                     belay_dedup_count(book->dedup, request, key, strlen(key), on_book_counted));
}

int begin_clear(book_t *book, entry_t *entry, const char *key) {
  belay_request_t *request = begin_entry(book, entry);
  return begun_entry(entry,
                     belay_dedup_clear(book->dedup, request, key, strlen(key), on_book_counted));
}

int begin_count_of(book_t *book, entry_t *entry, belay_dedup_operator_t how, const char *keys) {
  size_t n;
  const belay_bytes_t *all = items_of(keys, &n);
  belay_request_t *request = begin_entry(book, entry);
  return begun_entry(entry,
                     belay_dedup_count_of(book->dedup, request, how, all, n, on_book_counted));
}

int begin_store(book_t *book, entry_t *entry, belay_dedup_operator_t how, const char *keys,
                const char *into) {
  size_t n;
  const belay_bytes_t *all = items_of(keys, &n);
  belay_request_t *request = begin_entry(book, entry);
  return begun_entry(entry, belay_dedup_store(book->dedup, request, how, all, n, into, strlen(into),
                                              on_book_counted));
}

int begin_page(book_t *book, entry_t *entry, belay_dedup_operator_t how, const char *keys,
               uint64_t cursor, size_t limit) {
  size_t n;
  const belay_bytes_t *all = items_of(keys, &n);
  belay_request_t *request = begin_entry(book, entry);
  return begun_entry(entry,
                     belay_dedup_page(book->dedup, request, how, all, n, cursor, limit, on_page));
}

int begin_close_book(book_t *book) {
  book->bed->inside++;
  int error = belay_dedup_close(book->dedup, on_book_closed);
  book->bed->inside--;
  book->closing += error == 0;
  return error;
}

int begin_dedup_nth(book_t *book, entry_t *entry, int n) {
  switch (n) {
  case 0:
    return begin_mark(book, entry, "k", "1");
  case 1:
    return begin_mark_many(book, entry, "k", "1,2");
  case 2:
    return begin_mark_once(book, entry, "k", "1,2", "id");
  case 3:
    return begin_book_count(book, entry, "k");
  case 4:
    return begin_clear(book, entry, "k");
  case 5:
    return begin_seen(book, entry, "k", "1");
  case 6:
    return begin_seen_many(book, entry, "k", "1,2");
  case 7:
    return begin_forget(book, entry, "k", "1,2");
  case 8:
    return begin_count_of(book, entry, BELAY_DEDUP_UNION, "k,other");
  case 9:
    return begin_store(book, entry, BELAY_DEDUP_UNION, "k", "into");
  default:
    return begin_page(book, entry, BELAY_DEDUP_UNION, "k", 0, 10);
  }
}

bool can_dedup(belay_dedup_kind_t kind, int n) {
  return n < 5 || (n < 8 && kind != BELAY_DEDUP_COUNT) ||
         (n < 10 && n > 7 && kind == BELAY_DEDUP_COUNT) ||
         (n == 10 && kind == BELAY_DEDUP_WINDOW) || kind == BELAY_DEDUP_SET;
}

int end_of_entry(entry_t *entry) {
  bed_until(entry->book->bed, entry->ended == entry->begun);
  return entry->status;
}

/* ---- expecting ------------------------------------------------------------------------------------------- */

static void expect_verdicts(entry_t *entry, int error, const char *verdicts) {
  assert_error(error, 0);
  assert_error(end_of_entry(entry), 0);
  assert_string_equal(entry->verdicts, verdicts);
  assert_int_equal(entry->n, strlen(verdicts));
}

static void expect_number(entry_t *entry, int error, int64_t n) {
  assert_error(error, 0);
  assert_error(end_of_entry(entry), 0);
  assert_int_equal(entry->count, n);
}

/* One item goes the way of one item. */
void expect_mark(book_t *book, const char *key, const char *items, const char *verdicts) {
  entry_t entry = {0};
  bool one = strchr(items, ',') == NULL;
  expect_verdicts(&entry,
                  one ? begin_mark(book, &entry, key, items)
                      : begin_mark_many(book, &entry, key, items),
                  verdicts);
}

void expect_mark_once(book_t *book, const char *key, const char *items, const char *id,
                      const char *verdicts) {
  entry_t entry = {0};
  expect_verdicts(&entry, begin_mark_once(book, &entry, key, items, id), verdicts);
}

void expect_seen(book_t *book, const char *key, const char *items, const char *verdicts) {
  entry_t entry = {0};
  bool one = strchr(items, ',') == NULL;
  expect_verdicts(&entry,
                  one ? begin_seen(book, &entry, key, items)
                      : begin_seen_many(book, &entry, key, items),
                  verdicts);
}

void expect_forget(book_t *book, const char *key, const char *items, int64_t n) {
  entry_t entry = {0};
  expect_number(&entry, begin_forget(book, &entry, key, items), n);
}

void expect_count(book_t *book, const char *key, int64_t n) {
  entry_t entry = {0};
  expect_number(&entry, begin_book_count(book, &entry, key), n);
}

void expect_clear(book_t *book, const char *key, int64_t n) {
  entry_t entry = {0};
  expect_number(&entry, begin_clear(book, &entry, key), n);
}

void expect_count_of(book_t *book, belay_dedup_operator_t how, const char *keys, int64_t n) {
  entry_t entry = {0};
  expect_number(&entry, begin_count_of(book, &entry, how, keys), n);
}

void expect_store(book_t *book, belay_dedup_operator_t how, const char *keys, const char *into,
                  int64_t n) {
  entry_t entry = {0};
  expect_number(&entry, begin_store(book, &entry, how, keys, into), n);
}
