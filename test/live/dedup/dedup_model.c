/* Dedup against a model over random sequences: all kinds, a few sets, and various items. */
#include <stdio.h>

#include "support/base/random.h"
#include "support/fixtures/data/dedups.h"
#include "support/models/scripts.h"

enum { STEPS = 8000, SETS = 4, ITEMS = 40, BATCH = 12, OPERATIONS = 6, MOST = 25 };

static const char *const names[SETS] = {"a", "b", "c", "d::{x}"};
static const char *const keys[SETS] = {"belay::dedup::{n}::a", "belay::dedup::{n}::b",
                                       "belay::dedup::{n}::c", "belay::dedup::{n}::d%3A:%7Bx%7D"};

/* A question under an id, and its answer. */
typedef struct once {
  bool asked;
  unsigned set, n, items[BATCH];
  char verdicts[BATCH + 1];
} once_t;

typedef struct model {
  env_t *env;
  book_t book;
  belay_dedup_kind_t kind;
  uint64_t random;
  bool there[SETS][ITEMS];
  once_t once[OPERATIONS];
  unsigned found[ITEMS]; /* on pages */
  unsigned fresh, seen, full, maybe, unsure, replayed;
} model_t;

static model_t m;

static unsigned below(unsigned n) {
  return (unsigned)(next_random(&m.random) % n);
}

/* The empty item, long ones, and those of all bytes; of a bitmap numbers. */
static belay_bytes_t item(unsigned i) {
  static char bytes[ITEMS][BELAY_DEDUP_ITEM_MAX];
  if (m.kind == BELAY_DEDUP_BITMAP)
    return (belay_bytes_t){bytes[i], (size_t)sprintf(bytes[i], "%u", i * i * 7)};
  for (size_t j = 0; j < BELAY_DEDUP_ITEM_MAX; j++)
    bytes[i][j] = (char)(i * 31 + j * (i % 3));
  return (belay_bytes_t){bytes[i], i == ITEMS - 1 ? BELAY_DEDUP_ITEM_MAX : (size_t)i};
}

static unsigned item_of(const belay_bytes_t *bytes) {
  unsigned i = bytes->len == BELAY_DEDUP_ITEM_MAX ? ITEMS - 1 : (unsigned)bytes->len;
  assert_true(i < ITEMS && bytes->len == item(i).len);
  assert_memory_equal(bytes->data, item(i).data, bytes->len);
  return i;
}

static int64_t size(unsigned set) {
  int64_t n = 0;
  for (unsigned i = 0; i < ITEMS; i++)
    n += m.there[set][i];
  return n;
}

static unsigned chosen[BATCH];

static const belay_bytes_t *choose(unsigned n) {
  static belay_bytes_t items[BATCH];
  for (unsigned i = 0; i < n; i++) {
    chosen[i] = below(ITEMS);
    items[i] = item(chosen[i]);
  }
  return items;
}

/* Marks it in the model, and compares what was said of it. */
static void expect_marked(unsigned set, unsigned i, char verdict) {
  bool *there = &m.there[set][i];
  if (m.kind == BELAY_DEDUP_COUNT) {
    assert_true(verdict == 'N' || verdict == 'M');
    assert_false(verdict == 'N' && *there); /* that is certain */
    m.unsure += verdict == 'M' && !*there;
    m.maybe += verdict == 'M';
  } else if (*there) {
    assert_int_equal(verdict, 'S');
  } else if (m.kind == BELAY_DEDUP_WINDOW && size(set) == MOST) {
    assert_int_equal(verdict, 'F');
    m.full++;
    return;
  } else {
    assert_int_equal(verdict, 'N');
  }
  m.fresh += verdict == 'N';
  m.seen += verdict == 'S';
  *there = true;
}

static void step_mark(unsigned set, unsigned n) {
  entry_t entry = {0};
  const belay_bytes_t *items = choose(n);
  const char *name = names[set];
  belay_request_t *r = begin_entry(&m.book, &entry);
  assert_error(
      begun_entry(&entry,
                  n == 1 ? belay_dedup_mark(m.book.dedup, r, belay_string(name), *items, on_verdict)
                         : belay_dedup_mark_many(m.book.dedup, r, belay_string(name), items, n,
                                                 on_verdicts)),
      0);
  assert_error(end_of_entry(&entry), 0);
  assert_int_equal(entry.n, n);
  for (unsigned i = 0; i < n; i++)
    expect_marked(set, chosen[i], entry.verdicts[i]);
}

static void step_once(unsigned set, unsigned n) {
  unsigned which = below(OPERATIONS);
  const char id[] = {'o', 'p', (char)('0' + which)};
  once_t *once = &m.once[which];
  entry_t entry = {0};
  const belay_bytes_t *items = choose(n);
  static belay_bytes_t same[BATCH];
  if (once->asked) {
    set = once->set;
    n = once->n;
    for (unsigned i = 0; i < n; i++)
      same[i] = item(once->items[i]);
    items = same;
  }
  const char *name = names[set];
  belay_request_t *r = begin_entry(&m.book, &entry);
  assert_error(
      begun_entry(&entry, belay_dedup_mark_once(
                              m.book.dedup, r, belay_string(name),
                              &(belay_dedup_once_t){
                                  .items = items, .n = n, .op_id = belay_bytes(id, sizeof id)},
                              on_verdicts)),
      0);
  assert_error(end_of_entry(&entry), 0);
  if (once->asked) {
    assert_string_equal(entry.verdicts, once->verdicts);
    m.replayed++;
  } else {
    *once = (once_t){.asked = true, .set = set, .n = n};
    memcpy(once->items, chosen, sizeof chosen);
    memcpy(once->verdicts, entry.verdicts, n + 1);
    for (unsigned i = 0; i < n; i++)
      expect_marked(set, chosen[i], entry.verdicts[i]);
  }
  if (below(3) == 0) { /* its time is over */
    char key[64];
    snprintf(key, sizeof key, "%s::op::%.3s", keys[set], id);
    assert_int_equal(server_integer(m.env->server, "DEL", key, NULL), 1);
    once->asked = false;
  }
}

static void step_seen(unsigned set, unsigned n) {
  entry_t entry = {0};
  const belay_bytes_t *items = choose(n);
  const char *name = names[set];
  belay_request_t *r = begin_entry(&m.book, &entry);
  assert_error(
      begun_entry(&entry,
                  n == 1 ? belay_dedup_seen(m.book.dedup, r, belay_string(name), *items, on_verdict)
                         : belay_dedup_seen_many(m.book.dedup, r, belay_string(name), items, n,
                                                 on_verdicts)),
      0);
  assert_error(end_of_entry(&entry), 0);
  for (unsigned i = 0; i < n; i++)
    assert_int_equal(entry.verdicts[i], m.there[set][chosen[i]] ? 'S' : 'N');
}

static void step_forget(unsigned set, unsigned n) {
  entry_t entry = {0};
  const belay_bytes_t *items = choose(n);
  int64_t were = 0;
  for (unsigned i = 0; i < n; i++) {
    were += m.there[set][chosen[i]];
    m.there[set][chosen[i]] = false;
  }
  belay_request_t *r = begin_entry(&m.book, &entry);
  assert_error(begun_entry(&entry, belay_dedup_forget(m.book.dedup, r, belay_string(names[set]),
                                                      items, n, on_book_counted)),
               0);
  assert_error(end_of_entry(&entry), 0);
  assert_int_equal(entry.count, were);
}

static void expect_size(int64_t count, int64_t n) {
  if (m.kind == BELAY_DEDUP_COUNT)
    assert_between(count, n - 1, n + 1);
  else
    assert_int_equal(count, n);
}

static void step_count(unsigned set) {
  entry_t entry = {0};
  assert_ends(begin_book_count(&m.book, &entry, names[set]), end_of_entry(&entry), 0);
  expect_size(entry.count, size(set));
}

static void step_clear(unsigned set) {
  entry_t entry = {0};
  int64_t was = server_integer(m.env->server, "EXISTS", keys[set], NULL);
  assert_ends(begin_clear(&m.book, &entry, names[set]), end_of_entry(&entry), 0);
  assert_int_equal(entry.count, was);
  assert_true(was == 1 || size(set) == 0);
  memset(m.there[set], 0, sizeof m.there[set]);
}

static bool combined(belay_dedup_operator_t how, bool a, bool b) {
  return how == BELAY_DEDUP_UNION ? a || b : how == BELAY_DEDUP_INTERSECTION ? a && b : a && !b;
}

static void on_member(entry_t *entry, const belay_bytes_t *member) {
  (void)entry;
  m.found[item_of(member)]++;
}

static void page_through(belay_dedup_operator_t how, const belay_bytes_t *two, const bool *wanted) {
  uint64_t cursor = 0;
  memset(m.found, 0, sizeof m.found);
  do {
    entry_t entry = {.member = on_member};
    belay_request_t *r = begin_entry(&m.book, &entry);
    assert_error(
        begun_entry(&entry, belay_dedup_page(m.book.dedup, r,
                                             &(belay_dedup_sets_t){.how = how, .keys = two, .n = 2},
                                             cursor, 7, on_page)),
        0);
    assert_error(end_of_entry(&entry), 0);
    cursor = entry.next;
  } while (cursor != 0);
  for (unsigned i = 0; i < ITEMS; i++)
    assert_int_equal(m.found[i] > 0, wanted[i]);
}

static void step_combine(unsigned a, unsigned b, unsigned into) {
  belay_dedup_operator_t how = BELAY_DEDUP_UNION;
  bool count = m.kind == BELAY_DEDUP_COUNT, wanted[ITEMS];
  if (!count)
    how = (belay_dedup_operator_t)below(3);
  const belay_bytes_t two[] = {{names[a], strlen(names[a])}, {names[b], strlen(names[b])}};
  int64_t n = 0;
  for (unsigned i = 0; i < ITEMS; i++)
    n += wanted[i] = combined(how, m.there[a][i], m.there[b][i]);
  entry_t entry = {0};
  belay_request_t *r = begin_entry(&m.book, &entry);
  if (below(2) == 0) {
    assert_error(begun_entry(&entry, belay_dedup_count_of(
                                         m.book.dedup, r,
                                         &(belay_dedup_sets_t){.how = how, .keys = two, .n = 2},
                                         on_book_counted)),
                 0);
    assert_error(end_of_entry(&entry), 0);
    expect_size(entry.count, n);
    if (!count)
      page_through(how, two, wanted);
    return;
  }
  assert_error(
      begun_entry(&entry, belay_dedup_store(m.book.dedup, r,
                                            &(belay_dedup_sets_t){.how = how, .keys = two, .n = 2},
                                            belay_string(names[into]), on_book_counted)),
      0);
  assert_error(end_of_entry(&entry), 0);
  for (unsigned i = 0; i < ITEMS; i++)
    m.there[into][i] = wanted[i] || (count && m.there[into][i]);
  expect_size(entry.count, size(into));
}

/* A window's time has passed, and no operation has cleaned it. */
static void step_age(unsigned set) {
  unsigned i = below(ITEMS);
  char script[] = "return redis.call('ZADD', KEYS[1], 'XX', 1600000000000, ARGV[1])";
  resp_words_t words = {5,
                        {"EVAL", script, "1", keys[set], item(i).data},
                        {4, sizeof script - 1, 1, strlen(keys[set]), item(i).len}};
  (void)server_ask_words(m.env->server, &words);
  m.there[set][i] = false;
}

static void step(void) {
  unsigned what = below(100), set = below(SETS), n = 1 + below(BATCH);
  bool members = m.kind != BELAY_DEDUP_COUNT;
  if (what < 25)
    step_mark(set, 1);
  else if (what < 40)
    step_mark(set, n);
  else if (what < 55)
    step_once(set, n);
  else if (what < 58)
    step_clear(set);
  else if (what < 65)
    step_count(set);
  else if (what < 80 && (m.kind == BELAY_DEDUP_SET || !members))
    step_combine(set, below(SETS), below(SETS));
  else if (what < 80 && m.kind == BELAY_DEDUP_WINDOW)
    step_age(set);
  else if (what < 90 && members)
    step_forget(set, n);
  else if (members)
    step_seen(set, below(2) == 0 ? 1 : n);
  else
    step_count(set);
}

static void play(belay_dedup_kind_t kind) {
  m = (model_t){.env = env_open(NULL), .kind = kind, .random = UINT64_C(0x9e3779b97f4a7c15)};
  belay_dedup_options_t options = dedup_options(kind);
  options.max_items = MOST;
  book_of(&m.book, m.env, m.env->client, &options);
  for (int i = 0; i < STEPS; i++) {
    step();
    if (i % 500 == 499)
      expect_ttls(m.env->server);
  }
  print_message("%u new, %u seen, %u without room, %u perhaps (%u wrongly), %u asked again\n",
                m.fresh, m.seen, m.full, m.maybe, m.unsure, m.replayed);
  assert_true(m.fresh > 500 && m.replayed > 100 && (m.seen > 500 || m.maybe > 500));
  assert_true(m.unsure <= m.fresh / 50);
  assert_int_equal(m.full > 100, kind == BELAY_DEDUP_WINDOW);
  env_close(m.env);
}

TEST(set_matches_model) {
  play(BELAY_DEDUP_SET);
}

TEST(count_matches_model) {
  play(BELAY_DEDUP_COUNT);
}

TEST(window_matches_model) {
  play(BELAY_DEDUP_WINDOW);
}

TEST(bitmap_matches_model) {
  play(BELAY_DEDUP_BITMAP);
}
