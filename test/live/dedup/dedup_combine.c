/* Dedup: unions and intersections of sets, and estimated counts. */
#include <stdio.h>

#include "support/fixtures/data/dedups.h"
#include "support/models/scripts.h"

#define KEY "belay::dedup::{n}::"

#define UNION BELAY_DEDUP_UNION
#define BOTH BELAY_DEDUP_INTERSECTION
#define BUT BELAY_DEDUP_DIFFERENCE

static void count_two_sets(const server_options_t *options) {
  env_t *env = env_open_with(server_start(options), NULL);
  book_t book;
  book_new(&book, env, BELAY_DEDUP_SET);
  expect_mark(&book, "a", "1,2,3,4", "NNNN");
  expect_mark(&book, "b", "3,4,5", "NNN");
  const struct {
    const char *keys;
    int64_t n[3];
  } rows[] = {{"a,b", {5, 2, 2}},  {"b,a", {5, 2, 1}},  {"a,a", {4, 4, 0}}, {"a", {4, 4, 4}},
              {"a,no", {4, 0, 4}}, {"no,a", {4, 0, 0}}, {"no", {0, 0, 0}},  {"no,no", {0, 0, 0}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int how = 0; how <= BUT; how++)
      expect_count_of(&book, (belay_dedup_operator_t)how, rows[i].keys, rows[i].n[how]);
  assert_int_equal(server_keys(env->server), 2);
  env_close(env);
}

TEST(count_of_two_sets) {
  const server_options_t old = {.arguments = {"--rename-command", "SINTERCARD", ""}};
  count_two_sets(NULL);
  count_two_sets(&old); /* as before Redis 7 */
}

ENV_TEST(store_combination) {
  belay_dedup_options_t options = dedup_options(BELAY_DEDUP_SET);
  options.ttl_ms = 100000;
  book_t book;
  book_of(&book, env, env->client, &options);
  expect_mark(&book, "a", "1,2,3,4", "NNNN");
  expect_mark(&book, "b", "3,4,5", "NNN");
  expect_mark(&book, "c", "old", "N");
  server_do(env->server, "PEXPIRE", KEY "c", "5000", NULL);
  expect_store(&book, UNION, "a,b", "c", 5);
  assert_between(server_integer(env->server, "PTTL", KEY "c", NULL), 80000, 100000);
  expect_seen(&book, "c", "1,2,3,4,5,old", "SSSSSN");
  expect_store(&book, BOTH, "a,b", "c", 2);
  expect_seen(&book, "c", "1,2,3,4,5", "NNSSN");
  expect_store(&book, BUT, "a,b", "d", 2);
  expect_seen(&book, "d", "1,2,3,4,5", "SSNNN");
  expect_store(&book, BUT, "a", "d", 4); /* a copy */
  expect_seen(&book, "d", "1,2,3,4,5", "SSSSN");
  expect_ttls(env->server);
  expect_store(&book, BUT, "a,a", "d", 0); /* nothing is no set */
  assert_int_equal(server_integer(env->server, "EXISTS", KEY "d", NULL), 0);
  expect_store(&book, BUT, "a,b", "a", 2); /* in its own place */
  expect_seen(&book, "a", "1,2,3,4,5", "SSNNN");
  expect_store(&book, BUT, "a,b", "a", 2);
  expect_store(&book, UNION, "no,b", "b", 3);
  expect_ttls(env->server);
  options.ttl_ms = 0;
  book_t eternal;
  book_of(&eternal, env, env->client, &options);
  expect_store(&eternal, UNION, "a,b", "c", 5);
  assert_int_equal(server_integer(env->server, "PTTL", KEY "c", NULL), -1);
}

enum { MANY = 6000 };

static unsigned met[2 * MANY];

static void meet(entry_t *entry, const belay_bytes_t *member) {
  char text[8] = "";
  assert_true(member->len >= 1 && member->len <= 6);
  memcpy(text, member->data, member->len);
  int n = atoi(text);
  assert_between(n, 0, 2 * MANY - 1);
  met[n]++;
  (void)entry;
}

static unsigned walk(book_t *book, belay_dedup_operator_t how, const char *keys, size_t limit) {
  unsigned pages = 0;
  uint64_t cursor = 0;
  memset(met, 0, sizeof met);
  do {
    entry_t entry = {.member = meet};
    assert_ends(begin_page(book, &entry, how, keys, cursor, limit), end_of_entry(&entry), 0);
    assert_true(entry.n <= limit + 600); /* a small set comes at once */
    cursor = entry.next;
    pages++;
  } while (cursor != 0);
  return pages;
}

/* The numbers from `from` to `to` - 1. */
static void fill(env_t *env, const char *key, unsigned from, unsigned to) {
  char script[128];
  snprintf(script, sizeof script, "for i = %u, %u do redis.call('SADD', KEYS[1], i) end return 1",
           from, to - 1);
  server_do(env->server, "EVAL", script, "1", key, NULL);
}

BOOK_TEST(pages_of_combination, SET) {
  static const size_t limits[] = {1, 100, 1000, BELAY_DEDUP_PAGE_MAX};
  const unsigned half = MANY / 2;
  fill(env, KEY "a", 0, MANY);
  fill(env, KEY "b", half, MANY + half);
  fill(env, KEY "s", 10, 30);
  for (int i = 1; i < 4; i++)
    for (belay_dedup_operator_t how = UNION; how <= BUT; how++) {
      unsigned pages = walk(book, how, "a,b", limits[i]);
      assert_true(i == 3 || pages > MANY / limits[i] / 4);
      for (unsigned n = 0; n < 2 * MANY; n++) {
        bool a = n < MANY, b = n >= half && n < MANY + half;
        bool wanted = how == UNION ? a || b : how == BOTH ? a && b : a && !b;
        assert_int_equal(met[n] > 0, wanted);
      }
      (void)walk(book, how, "a", limits[i]);
      for (unsigned n = 0; n < 2 * MANY; n++)
        assert_int_equal(met[n] > 0, n < MANY);
      (void)walk(book, how, "s,a", limits[i]);
      for (unsigned n = 0; n < 2 * MANY; n++)
        assert_int_equal(met[n] > 0, how == UNION ? n < MANY : how == BOTH && n >= 10 && n < 30);
    }
  assert_int_equal(walk(book, UNION, "s", 1), 1);
  assert_int_equal(walk(book, BOTH, "no,s", 10), 1);
  assert_int_equal(walk(book, UNION, "no,s", 10), 2);
  assert_int_equal(met[10], 1);
  assert_int_equal(walk(book, UNION, "s,no", 10), 2);
  assert_int_equal(walk(book, UNION, "no", 10), 1);
}

static void take_empty(entry_t *entry, const belay_bytes_t *member) {
  entry->count += member->len == 0;
}

BOOK_TEST(empty_item_on_page, SET) {
  expect_mark(book, "a", "", "N");
  entry_t entry = {.member = take_empty};
  assert_ends(begin_page(book, &entry, UNION, "a", 0, 10), end_of_entry(&entry), 0);
  assert_int_equal(entry.n, 1);
  assert_int_equal(entry.count, 1);
}

enum { COUNTED = 60000 };

/* Items of one of two ranges, of which a third is in both, each of them more than once. */
static void count_many(book_t *book, const char *key, unsigned from) {
  static belay_bytes_t items[COUNTED];
  static char texts[COUNTED][12];
  for (unsigned i = 0; i < COUNTED; i++) {
    int len = snprintf(texts[i], sizeof texts[i], "%u", from + i % (COUNTED / 2));
    items[i] = (belay_bytes_t){texts[i], (size_t)len};
  }
  entry_t entry = {0};
  belay_request_t *r = begin_entry(book, &entry);
  assert_error(begun_entry(&entry, belay_dedup_mark_many(book->dedup, r, belay_bytes(key, 1), items,
                                                         COUNTED, on_verdicts)),
               0);
  assert_error(end_of_entry(&entry), 0);
}

static int64_t counted(book_t *book, const char *keys) {
  entry_t entry = {0};
  assert_ends(begin_count_of(book, &entry, UNION, keys), end_of_entry(&entry), 0);
  return entry.count;
}

static void expect_estimate(int64_t estimate, int64_t n) {
  assert_between(estimate, n - n * 5 * 81 / 10000, n + n * 5 * 81 / 10000); /* 5 sigma */
}

BOOK_TEST(estimate_error, COUNT) {
  const int64_t each = COUNTED / 2;
  count_many(book, "a", 0);
  count_many(book, "b", COUNTED / 4);
  expect_estimate(counted(book, "a"), each);
  expect_estimate(counted(book, "b"), each);
  int64_t both = counted(book, "a,b");
  expect_estimate(both, each * 3 / 2);
  assert_int_equal(counted(book, "a,b,no,a"), both);
  assert_int_equal(counted(book, "no"), 0);
  expect_store(book, UNION, "a,b", "all", both);
  expect_store(book, UNION, "a", "all", both); /* nothing is uncounted */
  expect_store(book, UNION, "b", "a", both);
  expect_count(book, "a", both);
  expect_clear(book, "all", 1);
  assert_true(server_integer(env->server, "STRLEN", KEY "a", NULL) <= 12400);
  expect_ttls(env->server);
}

ENV_TEST(merge_ttl) {
  for (int refresh = 0; refresh < 2; refresh++) {
    belay_dedup_options_t options = dedup_options(BELAY_DEDUP_COUNT);
    options.ttl_ms = 100000;
    options.extend_ttl = refresh;
    book_t book;
    book_of(&book, env, env->client, &options);
    server_do(env->server, "FLUSHALL", NULL);
    expect_mark(&book, "a", "1,2", "NN");
    expect_store(&book, UNION, "a,no", "all", 2);
    assert_between(server_integer(env->server, "PTTL", KEY "all", NULL), 80000, 100000);
    server_do(env->server, "PEXPIRE", KEY "all", "50000", NULL);
    expect_store(&book, UNION, "a", "all", 2);
    assert_between(server_integer(env->server, "PTTL", KEY "all", NULL), refresh ? 80000 : 30000,
                   refresh ? 100000 : 50000);
    options.ttl_ms = 0;
    book_t eternal;
    book_of(&eternal, env, env->client, &options);
    expect_store(&eternal, UNION, "a", "ever", 2);
    assert_int_equal(server_integer(env->server, "PTTL", KEY "ever", NULL), -1);
  }
}

BOOK_TEST(union_of_64_counts, COUNT) {
  char keys[4 * BELAY_DEDUP_KEYS_MAX] = "";
  for (unsigned i = 0; i < BELAY_DEDUP_KEYS_MAX; i++) {
    char item[4];
    snprintf(item, sizeof item, "%u", 100 + i);
    expect_mark(book, item, item, "N");
    snprintf(keys + strlen(keys), sizeof keys - strlen(keys), i == 0 ? "%s" : ",%s", item);
  }
  expect_estimate(counted(book, keys), BELAY_DEDUP_KEYS_MAX);
  expect_store(book, UNION, keys, "all", counted(book, keys));
}

static char detail[256];

static void keep_detail(book_t *book) {
  snprintf(detail, sizeof detail, "%s", belay_detail(book->env->belay));
}

ENV_TEST(wrong_type_names_key) {
  static const char *const names[] = {"a", "b", "c"};
  for (int kind = 0; kind < 2; kind++) {
    book_t book;
    book_new(&book, env, kind == 0 ? BELAY_DEDUP_SET : BELAY_DEDUP_COUNT);
    book.then = keep_detail;
    for (int i = 0; i < 3; i++) {
      char key[64], expected[128];
      snprintf(key, sizeof key, KEY "%s", names[i]);
      snprintf(expected, sizeof expected, "%s: it holds something else", key);
      server_do(env->server, "FLUSHALL", NULL);
      server_do(env->server, "SET", key, "foreign", NULL);
      for (int n = 0; n < 3; n++) {
        entry_t entry = {0};
        if ((n == 2 && kind == 1) || (n != 1 && i == 2))
          continue;
        assert_error(n == 0   ? begin_count_of(&book, &entry, UNION, "a,b")
                     : n == 1 ? begin_store(&book, &entry, UNION, "a,b", "c")
                              : begin_page(&book, &entry, UNION, "a,b", 0, 10),
                     0);
        assert_error(end_of_entry(&entry), BELAY_EWRONGTYPE);
        assert_string_equal(detail, expected);
        assert_string_equal(server_string(env->server, "GET", key, NULL), "foreign");
        assert_int_equal(server_keys(env->server), 1);
      }
    }
  }
}
