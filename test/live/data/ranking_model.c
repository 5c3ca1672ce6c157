/* Rankings against a model, step by step: both orders, all ties, with and without a bound. */
#include <stdio.h>

#include "support/base/random.h"
#include "support/models/scripts.h"
#include "support/fixtures/data/stands.h"

enum { MEMBERS = 12, STEPS = 1000, ITEMS_MAX = 5 };

static const belay_bytes_t names[MEMBERS] = {
    {"a", 1},     {"b", 1},        {"ab", 2},
    {"a\0b", 3},  {"\0", 1},       {"\xff", 1},
    {"ada", 3},   {"0000", 4},     {"0000000000000001a", 17},
    {"bob x", 5}, {"\xff\xff", 2}, {"9007199254740991", 16},
};

typedef struct row {
  unsigned member;
  bool there;
  int64_t score;
  uint64_t turn; /* at which it was reached */
} row_t;

typedef struct model {
  stand_t stand;
  belay_ranking_options_t options;
  uint64_t random, turn;
  row_t rows[MEMBERS];
  unsigned submits, unchanged, overflows, dropped, pages, absent;
} model_t;

static uint64_t below(model_t *m, uint64_t n) {
  return next_random(&m->random) % n;
}

static int compare_bytes(const belay_bytes_t *a, const belay_bytes_t *b) {
  size_t len = a->len < b->len ? a->len : b->len;
  int order = memcmp(a->data, b->data, len);
  return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

/* Whether a stands before b. */
static bool is_better(const model_t *m, const row_t *a, const row_t *b) {
  bool high = m->options.order == BELAY_RANKING_HIGH_FIRST;
  if (a->score != b->score)
    return high ? a->score > b->score : a->score < b->score;
  if (m->options.ties == BELAY_RANKING_BY_MEMBER)
    return (compare_bytes(&names[a->member], &names[b->member]) < 0) != high;
  return (a->turn < b->turn) == (m->options.ties == BELAY_RANKING_EARLIER_FIRST);
}

/* Those that are there, the best first; how many. */
static size_t ranked(const model_t *m, row_t out[MEMBERS]) {
  size_t n = 0;
  for (unsigned i = 0; i < MEMBERS; i++) {
    if (!m->rows[i].there)
      continue;
    size_t at = n++;
    for (; at > 0 && is_better(m, &m->rows[i], &out[at - 1]); at--)
      out[at] = out[at - 1];
    out[at] = m->rows[i];
  }
  return n;
}

static int64_t rank_of(const model_t *m, unsigned member) {
  row_t rows[MEMBERS];
  size_t n = ranked(m, rows);
  for (size_t i = 0; i < n; i++)
    if (rows[i].member == member)
      return (int64_t)i;
  return -1;
}

static void drop_worst(model_t *m, size_t size) {
  row_t rows[MEMBERS];
  for (size_t n = ranked(m, rows); n > size; n--)
    m->rows[rows[n - 1].member].there = false;
}

static int64_t new_score(const model_t *m, belay_ranking_mode_t mode, const row_t *row,
                         int64_t given) {
  bool high = m->options.order == BELAY_RANKING_HIGH_FIRST;
  if (mode == BELAY_RANKING_ADD)
    return (row->there ? row->score : 0) + given;
  if (mode == BELAY_RANKING_BEST && row->there && (row->score > given) == high)
    return row->score;
  return given;
}

static void expect_entry(const belay_ranking_entry_t *entry, unsigned member, int64_t score,
                         int64_t rank) {
  assert_int_equal(entry->member.len, names[member].len);
  assert_memory_equal(entry->member.data, names[member].data, names[member].len);
  assert_int_equal(entry->score, score);
  assert_int_equal(entry->rank, rank);
}

static int64_t any_score(model_t *m) {
  static const int64_t far[] = {BELAY_RANKING_SCORE_MAX,     BELAY_RANKING_SCORE_MIN,
                                BELAY_RANKING_SCORE_MAX - 1, BELAY_RANKING_SCORE_MIN + 1,
                                INT64_C(1000000000000000),   -INT64_C(100000000)};
  return below(m, 12) == 0 ? far[below(m, 6)] : (int64_t)below(m, 7) - 3;
}

static void step_submit(model_t *m) {
  belay_ranking_mode_t mode = (belay_ranking_mode_t)below(m, 3);
  belay_ranking_score_t items[ITEMS_MAX];
  size_t n = 1 + below(m, ITEMS_MAX);
  unsigned who[ITEMS_MAX];
  bool changed[ITEMS_MAX], overflow = false;
  row_t before[MEMBERS];
  uint64_t turn = m->turn;
  memcpy(before, m->rows, sizeof before);
  for (size_t i = 0; i < n; i++) {
    who[i] = (unsigned)below(m, MEMBERS);
    items[i] = (belay_ranking_score_t){names[who[i]], any_score(m)};
    row_t *row = &m->rows[who[i]];
    int64_t score = new_score(m, mode, row, items[i].score);
    overflow = overflow || score > BELAY_RANKING_SCORE_MAX || score < BELAY_RANKING_SCORE_MIN;
    changed[i] = !row->there || row->score != score;
    *row = (row_t){who[i], true, score, changed[i] ? ++m->turn : row->turn};
  }
  query_t query = {0};
  assert_ends(begin_submit_many(&m->stand, &query, mode, items, n), end_of_query(&query),
              overflow ? BELAY_EOVERFLOW : 0);
  if (overflow) {
    memcpy(m->rows, before, sizeof before);
    m->turn = turn;
    m->overflows++;
    return;
  }
  int64_t scores[ITEMS_MAX];
  for (size_t i = 0; i < n; i++)
    scores[i] = m->rows[who[i]].score;
  if (m->options.max_members > 0)
    drop_worst(m, (size_t)m->options.max_members);
  assert_int_equal(query.n, n);
  for (size_t i = 0; i < n; i++) {
    expect_entry(&query.entries[i], who[i], scores[i], rank_of(m, who[i]));
    assert_int_equal(query.entries[i].changed, changed[i]);
    m->submits += changed[i];
    m->unchanged += !changed[i];
    m->dropped += query.entries[i].rank < 0;
  }
}

static void expect_page(model_t *m, query_t *query, const row_t *rows, size_t n, size_t all,
                        bool best, int64_t first) {
  assert_error(end_of_query(query), 0);
  assert_int_equal(query->n, n);
  for (size_t i = 0; i < n; i++) {
    const row_t *row = &rows[i];
    int64_t at = first + (int64_t)i;
    expect_entry(&query->entries[i], row->member, row->score, best ? at : (int64_t)all - 1 - at);
  }
  m->pages++;
}

/* Of those that have scores from min to max, in the order of that end. */
static void step_range(model_t *m) {
  bool best = below(m, 2) == 0, by_score = below(m, 2) == 0;
  int64_t min = any_score(m), max = any_score(m);
  if (min > max) {
    int64_t other = min;
    min = max;
    max = other;
  }
  row_t all[MEMBERS], rows[MEMBERS];
  size_t count = ranked(m, all), n = 0, most = 1 + below(m, 6), skip = below(m, 5);
  int64_t first = -1;
  for (size_t i = 0; i < count; i++) {
    const row_t *row = &all[best ? i : count - 1 - i];
    if (by_score && (row->score < min || row->score > max))
      continue;
    first = first < 0 ? (int64_t)i : first;
    rows[n++] = *row;
  }
  n = n > skip ? n - skip : 0;
  query_t query = {0};
  belay_request_t *request = begin_query(&m->stand, &query);
  belay_ranking_from_t from = best ? BELAY_RANKING_FROM_BEST : BELAY_RANKING_FROM_WORST;
  const belay_ranking_page_t page = {
      .from = from, .skip = (int64_t)skip, .n = most, .by_score = by_score, .min = min, .max = max};
  int error = belay_ranking_page(m->stand.ranking, request, BOARD, &page, on_entries);
  assert_error(begun_query(&query, error), 0);
  expect_page(m, &query, rows + skip, n < most ? n : most, count, best, first + (int64_t)skip);
}

static void step_around(model_t *m) {
  unsigned who = (unsigned)below(m, MEMBERS);
  size_t before = below(m, 4), after = below(m, 4);
  row_t rows[MEMBERS];
  size_t count = ranked(m, rows), first = 0, n = 0;
  int64_t rank = rank_of(m, who);
  if (rank >= 0) {
    first = (size_t)rank > before ? (size_t)rank - before : 0;
    size_t end = (size_t)rank + after + 1;
    n = (end < count ? end : count) - first;
  }
  query_t query = {0};
  const belay_ranking_around_t around = {names[who], before, after};
  stand_ok(&m->stand, &query, belay_ranking_around(h_, r_, BOARD, &around, on_entries));
  expect_page(m, &query, rows + first, n, count, true, (int64_t)first);
}

static void step_find(model_t *m) {
  belay_bytes_t members[ITEMS_MAX];
  unsigned who[ITEMS_MAX];
  size_t n = 1 + below(m, ITEMS_MAX);
  for (size_t i = 0; i < n; i++) {
    who[i] = (unsigned)below(m, MEMBERS);
    members[i] = names[who[i]];
  }
  query_t query = {0};
  stand_ok(&m->stand, &query, belay_ranking_find(h_, r_, BOARD, members, n, on_entries));
  assert_int_equal(query.n, n);
  for (size_t i = 0; i < n; i++) {
    const row_t *row = &m->rows[who[i]];
    expect_entry(&query.entries[i], who[i], row->there ? row->score : 0, rank_of(m, who[i]));
    m->absent += !row->there;
  }
}

static void step_count(model_t *m) {
  bool by_score = below(m, 2) == 0;
  int64_t min = (int64_t)below(m, 5) - 3, max = min + (int64_t)below(m, 5), expected = 0;
  for (unsigned i = 0; i < MEMBERS; i++) {
    const row_t *row = &m->rows[i];
    expected += row->there && (!by_score || (row->score >= min && row->score <= max));
  }
  query_t query = {0};
  belay_request_t *request = begin_query(&m->stand, &query);
  int error =
      by_score ? belay_ranking_count_by_score(m->stand.ranking, request, BOARD, min, max, on_count)
               : belay_ranking_count(m->stand.ranking, request, BOARD, on_count);
  assert_error(begun_query(&query, error), 0);
  assert_error(end_of_query(&query), 0);
  assert_int_equal(query.count, expected);
}

static void step_drop(model_t *m) {
  query_t query = {0};
  belay_bytes_t members[ITEMS_MAX];
  int64_t expected = 0;
  size_t n = 1 + below(m, ITEMS_MAX), size = below(m, MEMBERS), what = below(m, 8);
  belay_request_t *request = begin_query(&m->stand, &query);
  belay_ranking_t *r = m->stand.ranking;
  int error;
  if (what == 0) {
    drop_worst(m, 0);
    error = belay_ranking_clear(r, request, BOARD, on_count);
  } else if (what < 4) {
    row_t rows[MEMBERS];
    drop_worst(m, size);
    expected = (int64_t)ranked(m, rows);
    error = belay_ranking_trim(r, request, BOARD, (int64_t)size, on_count);
  } else {
    for (size_t i = 0; i < n; i++) {
      row_t *row = &m->rows[below(m, MEMBERS)];
      members[i] = names[row - m->rows];
      expected += row->there;
      row->there = false;
    }
    error = belay_ranking_remove(r, request, BOARD, members, n, on_count);
  }
  assert_error(begun_query(&query, error), 0);
  assert_error(end_of_query(&query), 0);
  assert_int_equal(query.count, expected);
}

/* A board without members has no keys, and any other has a ttl. */
static void check(model_t *m) {
  row_t rows[MEMBERS];
  bool timed = m->options.ties != BELAY_RANKING_BY_MEMBER;
  int64_t keys = ranked(m, rows) == 0 ? 0 : timed ? 2 : 1;
  assert_int_equal(server_keys(m->stand.env->server), keys);
  const resp_t *all = server_ask(m->stand.env->server, "KEYS", "*", NULL);
  char key[64] = "";
  if (all->count > 0)
    snprintf(key, sizeof key, "%s", all->items[0]->str);
  if (all->count > 0)
    assert_between(server_integer(m->stand.env->server, "PTTL", key, NULL), 1, 2592000000);
}

static void play(env_t *env, const belay_ranking_options_t *options, model_t *m) {
  stand_of(&m->stand, env, env->client, options);
  m->options = *options;
  for (unsigned i = 0; i < MEMBERS; i++)
    m->rows[i] = (row_t){.member = i};
  for (int i = 0; i < STEPS; i++) {
    uint64_t what = below(m, 100);
    if (what < 45)
      step_submit(m);
    else if (what < 60)
      step_range(m);
    else if (what < 70)
      step_around(m);
    else if (what < 80)
      step_find(m);
    else if (what < 90)
      step_count(m);
    else
      step_drop(m);
    if (i % 50 == 0)
      check(m);
  }
  assert_error(stand_close(&m->stand), 0);
  env_until(env, m->stand.closed == 1);
  server_do(env->server, "FLUSHALL", NULL);
}

ENV_TEST(random_steps_match_model) {
  model_t m = {.random = UINT64_C(0x9e3779b97f4a7c15)};
  for (unsigned order = 0; order < 2; order++)
    for (unsigned ties = 0; ties < 3; ties++)
      for (int64_t most = 0; most <= 5; most += 5) {
        belay_ranking_options_t options =
            ranking_options((belay_ranking_order_t)order, (belay_ranking_ties_t)ties);
        options.max_members = most;
        play(env, &options, &m);
      }
  print_message("%u changed, %u not, %u overflows, %u had no place, %u pages, %u were not there\n",
                m.submits, m.unchanged, m.overflows, m.dropped, m.pages, m.absent);
  assert_true(m.submits > 3000 && m.unchanged > 500 && m.overflows > 100 && m.dropped > 300 &&
              m.pages > 1000 && m.absent > 500);
}
