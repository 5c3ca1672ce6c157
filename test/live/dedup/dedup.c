/* Dedup: exactly one of many marks of an item is the first, and no mark is forgotten early. */
#include <stdio.h>

#include "support/fixtures/data/dedups.h"
#include "support/models/scripts.h"

#define KEY "belay::dedup::{n}::k"

static const belay_dedup_kind_t kinds[] = {BELAY_DEDUP_SET, BELAY_DEDUP_COUNT, BELAY_DEDUP_WINDOW,
                                           BELAY_DEDUP_BITMAP};
enum { KINDS = 4 };

static void play_exact(env_t *env, const belay_dedup_options_t *options) {
  book_t book;
  book_of(&book, env, env->client, options);
  server_do(env->server, "FLUSHALL", NULL);
  expect_seen(&book, "k", "1", "N");
  expect_seen(&book, "k", "1,2,3", "NNN");
  expect_count(&book, "k", 0);
  expect_forget(&book, "k", "1,2", 0);
  expect_clear(&book, "k", 0);
  assert_int_equal(server_keys(env->server), 0); /* none of these makes anything */
  expect_mark(&book, "k", "1", "N");
  expect_mark(&book, "k", "1", "S");
  expect_mark(&book, "k", "3,1,2,3,0", "NSNSN");
  expect_seen(&book, "k", "2", "S");
  expect_seen(&book, "k", "0,1,2,3,4,4", "SSSSNN");
  expect_seen(&book, "other", "1", "N");
  expect_count(&book, "k", 4);
  expect_forget(&book, "k", "1,4,3,1", 2);
  expect_seen(&book, "k", "0,1,2,3", "SNSN");
  expect_count(&book, "k", 2);
  expect_mark(&book, "k", "1", "N");
  expect_mark(&book, "other", "1,7", "NN");
  expect_clear(&book, "k", 1);
  expect_count(&book, "k", 0);
  expect_count(&book, "other", 2);
  assert_int_equal(server_keys(env->server), 1);
  assert_error(book_close(&book), 0);
  env_until(env, book.closed == 1);
}

ENV_TEST(item_is_new_once) {
  for (int i = 0; i < KINDS; i++) {
    belay_dedup_options_t options = dedup_options(kinds[i]);
    for (int j = 0; j < 4 && kinds[i] != BELAY_DEDUP_COUNT; j++) {
      options.extend_ttl = (j & 1) != 0;
      options.ttl_ms = (j & 2) != 0 ? 0 : 60000;
      play_exact(env, &options);
    }
  }
}

ENV_TEST(items_of_any_bytes) {
  static char longest[BELAY_DEDUP_ITEM_MAX + 1];
  static const char binary[] = {'\0', '\r', '\n', (char)0xff, '\0'};
  memset(longest, 'x', sizeof longest - 1);
  const belay_bytes_t items[] = {
      {NULL, 0}, {binary, sizeof binary}, {binary, 1}, {longest, 512}, {longest, 511}};
  for (int i = 0; i < 3; i++) {
    book_t book;
    book_new(&book, env, kinds[i]);
    const bool counts = kinds[i] == BELAY_DEDUP_COUNT;
    server_do(env->server, "FLUSHALL", NULL);
    for (int again = 0; again < 2; again++) {
      entry_t entry = {0};
      belay_request_t *r = begin_entry(&book, &entry);
      assert_error(begun_entry(&entry, belay_dedup_mark_many(book.dedup, r, belay_string("k"),
                                                             items, 5, on_verdicts)),
                   0);
      assert_error(end_of_entry(&entry), 0);
      assert_string_equal(entry.verdicts, !again ? "NNNNN" : counts ? "MMMMM" : "SSSSS");
    }
    for (int j = 0; j < 5; j++) {
      entry_t entry = {0};
      belay_request_t *r = begin_entry(&book, &entry);
      assert_error(begun_entry(&entry, belay_dedup_mark(book.dedup, r, belay_string("k"), items[j],
                                                        on_verdict)),
                   0);
      assert_error(end_of_entry(&entry), 0);
      assert_string_equal(entry.verdicts, counts ? "M" : "S");
    }
    expect_count(&book, "k", 5);
    assert_error(book_close(&book), 0);
    env_until(env, book.closed == 1);
  }
}

ENV_TEST(keys_have_name) {
  static const char name[] = {':', '\0', '{'}, key[] = {':', ':', '}', '{', 'k'};
  static const char expected[] = "belay::dedup::{%3A%00%7B}::%3A:%7D%7Bk";
  static const char answer[] = "belay::dedup::{%3A%00%7B}::%3A:%7D%7Bk::op::%3A:x";
  belay_dedup_options_t options = dedup_options(BELAY_DEDUP_SET);
  options.name = belay_bytes(name, sizeof name);
  book_t book;
  book_of(&book, env, env->client, &options);
  const belay_bytes_t item = {"i", 1};
  entry_t entry = {0};
  belay_request_t *r = begin_entry(&book, &entry);
  assert_error(begun_entry(&entry, belay_dedup_mark_once(
                                       book.dedup, r, belay_bytes(key, sizeof key),
                                       &(belay_dedup_once_t){
                                           .items = &item, .n = 1, .op_id = belay_string("::x")},
                                       on_verdicts)),
               0);
  assert_error(end_of_entry(&entry), 0);
  assert_int_equal(server_integer(env->server, "SISMEMBER", expected, "i", NULL), 1);
  assert_int_equal(server_integer(env->server, "EXISTS", answer, NULL), 1);
  assert_int_equal(server_keys(env->server), 2);
  expect_ttls(env->server);
}

ENV_TEST(longest_names) {
  static char name[BELAY_DEDUP_NAME_MAX], key[BELAY_DEDUP_KEY_MAX + 1],
      id[BELAY_DEDUP_OP_ID_MAX + 1];
  memset(name, '{', sizeof name);
  memset(key, '}', sizeof key - 1);
  memset(id, '{', sizeof id - 1);
  belay_dedup_options_t options = dedup_options(BELAY_DEDUP_SET);
  options.name = belay_bytes(name, sizeof name);
  book_t book;
  book_of(&book, env, env->client, &options);
  expect_mark_once(&book, key, "a,b", id, "NN");
  expect_mark_once(&book, key, "a,b", id, "NN");
  expect_seen(&book, key, "b", "S");
  expect_clear(&book, key, 1);
}

static int64_t pttl(env_t *env) {
  return server_integer(env->server, "PTTL", KEY, NULL);
}

/* Of a set as a whole: from when it was made, or from the last mark. */
ENV_TEST(ttl_from_creation) {
  for (int i = 0; i < KINDS; i++)
    for (int refresh = 0; refresh < 2 && kinds[i] != BELAY_DEDUP_WINDOW; refresh++) {
      belay_dedup_options_t options = dedup_options(kinds[i]);
      options.ttl_ms = 100000;
      options.extend_ttl = refresh;
      book_t book;
      book_of(&book, env, env->client, &options);
      server_do(env->server, "FLUSHALL", NULL);
      for (int way = 0; way < 3; way++) {
        const char *again = kinds[i] == BELAY_DEDUP_COUNT ? "M" : "S";
        expect_clear(&book, "k", way > 0);
        if (way == 0)
          expect_mark(&book, "k", "1", "N");
        else if (way == 1)
          expect_mark(&book, "k", "1,2", "NN");
        else
          expect_mark_once(&book, "k", "1", "id", "N");
        assert_between(pttl(env), 80000, 100000);
        server_do(env->server, "PEXPIRE", KEY, "50000", NULL);
        expect_mark(&book, "k", "1", again);
        assert_between(pttl(env), refresh ? 80000 : 30000, refresh ? 100000 : 50000);
        server_do(env->server, "PEXPIRE", KEY, "50000", NULL);
        expect_mark(&book, "k", "7", "N");
        assert_between(pttl(env), refresh ? 80000 : 30000, refresh ? 100000 : 50000);
      }
      expect_ttls(env->server);
      assert_error(book_close(&book), 0);
      env_until(env, book.closed == 1);
    }
}

ENV_TEST(ttl_of_0_is_no_end) {
  for (int i = 0; i < KINDS; i++) {
    if (kinds[i] == BELAY_DEDUP_WINDOW)
      continue;
    belay_dedup_options_t options = dedup_options(kinds[i]);
    options.ttl_ms = 0;
    book_t book;
    book_of(&book, env, env->client, &options);
    const char *again = kinds[i] == BELAY_DEDUP_COUNT ? "MNM" : "SNS";
    server_do(env->server, "FLUSHALL", NULL);
    expect_mark(&book, "k", "1", "N");
    expect_mark(&book, "k", "1,2,1", again);
    expect_mark_once(&book, "k", "3", "id", "N");
    assert_int_equal(pttl(env), -1);
    expect_count(&book, "k", 3);
    assert_error(book_close(&book), 0);
    env_until(env, book.closed == 1);
  }
}

ENV_TEST(op_id_repeats_answer) {
  for (int i = 0; i < KINDS; i++) {
    book_t book;
    book_new(&book, env, kinds[i]);
    const char *some = kinds[i] == BELAY_DEDUP_COUNT ? "MN" : "SN";
    server_do(env->server, "FLUSHALL", NULL);
    expect_mark(&book, "k", "1", "N");
    expect_mark_once(&book, "k", "1,2", "a", some);
    for (int j = 0; j < 3; j++)
      expect_mark_once(&book, "k", "1,2", "a", some);
    expect_mark_once(&book, "k", "1,2", "b", kinds[i] == BELAY_DEDUP_COUNT ? "MM" : "SS");
    expect_clear(&book, "k", 1);
    expect_mark_once(&book, "k", "1,2", "a", some); /* a repeated question gets the first answer */
    expect_count(&book, "k", 0);
    entry_t entry = {0};
    assert_ends(begin_mark_once(&book, &entry, "k", "1,3", "a"), end_of_entry(&entry),
                BELAY_EMISMATCH);
    assert_ends(begin_mark_once(&book, &entry, "k", "1", "a"), end_of_entry(&entry),
                BELAY_EMISMATCH);
    expect_count(&book, "k", 0);
    assert_between(server_integer(env->server, "PTTL", KEY "::op::a", NULL), 40000, 60000);
    server_do(env->server, "DEL", KEY "::op::a", NULL);
    expect_mark_once(&book, "k", "1,3", "a", "NN");
    expect_ttls(env->server);
    assert_error(book_close(&book), 0);
    env_until(env, book.closed == 1);
  }
}

ENV_TEST(answer_outlives_request_timeout) {
  belay_dedup_options_t options = dedup_options(BELAY_DEDUP_SET);
  options.op_ttl_ms = 1000;
  book_t book;
  book_of(&book, env, env->client, &options);
  entry_t entry = {.request.timeout_ms = 300000};
  assert_ends(begin_mark_once(&book, &entry, "k", "1", "long"), end_of_entry(&entry), 0);
  assert_between(server_integer(env->server, "PTTL", KEY "::op::long", NULL), 290000, 303002);
}

static belay_dedup_verdict_t verdicts[BELAY_DEDUP_ITEMS_MAX];
static belay_bytes_t batch[BELAY_DEDUP_ITEMS_MAX];
static char texts[BELAY_DEDUP_ITEMS_MAX][8];

/* The numbers from `from` on. */
static void fill_batch(size_t n, unsigned from) {
  for (size_t i = 0; i < n; i++) {
    int len = snprintf(texts[i], sizeof texts[i], "%u", from + (unsigned)i);
    batch[i] = (belay_bytes_t){texts[i], (size_t)len};
  }
}

static size_t count_of(belay_dedup_verdict_t verdict, size_t n) {
  size_t found = 0;
  for (size_t i = 0; i < n; i++)
    found += verdicts[i] == verdict;
  return found;
}

static void run_batch(book_t *book, bool mark, size_t n) {
  entry_t entry = {.arg = verdicts};
  belay_request_t *r = begin_entry(book, &entry);
  assert_error(begun_entry(&entry, (mark ? belay_dedup_mark_many : belay_dedup_seen_many)(
                                       book->dedup, r, belay_string("k"), batch, n, on_verdicts)),
               0);
  assert_error(end_of_entry(&entry), 0);
  assert_int_equal(entry.n, n);
}

static int64_t forget_batch(book_t *book, size_t n) {
  entry_t entry = {0};
  belay_request_t *r = begin_entry(book, &entry);
  assert_error(begun_entry(&entry, belay_dedup_forget(book->dedup, r, belay_string("k"), batch, n,
                                                      on_book_counted)),
               0);
  assert_error(end_of_entry(&entry), 0);
  return entry.count;
}

static void play_batches(env_t *env, const belay_dedup_options_t *options, size_t n) {
  book_t book;
  book_of(&book, env, env->client, options);
  server_do(env->server, "FLUSHALL", NULL);
  server_do(env->server, "SCRIPT", "FLUSH", NULL);
  fill_batch(n, 0);
  batch[n - 1] = batch[0];
  run_batch(&book, true, n);
  assert_int_equal(count_of(BELAY_DEDUP_NEW, n), n - 1);
  assert_int_equal(verdicts[n - 1], BELAY_DEDUP_SEEN);
  expect_count(&book, "k", (int64_t)n - 1);
  fill_batch(n, 10); /* of which nine are not there */
  run_batch(&book, false, n);
  for (size_t i = 0; i < n; i++)
    assert_int_equal(verdicts[i], i + 11 < n ? BELAY_DEDUP_SEEN : BELAY_DEDUP_NEW);
  server_do(env->server, "SCRIPT", "FLUSH", NULL);
  assert_int_equal(forget_batch(&book, n), (int64_t)n - 11);
  expect_count(&book, "k", 10);
  assert_error(book_close(&book), 0);
  env_until(env, book.closed == 1);
}

ENV_TEST(batches_of_all_sizes) {
  static const size_t sizes[] = {12, 511, 512, 513, 1024, 5000};
  for (int i = 0; i < KINDS; i++) {
    if (kinds[i] == BELAY_DEDUP_COUNT)
      continue;
    belay_dedup_options_t options = dedup_options(kinds[i]);
    for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++)
      play_batches(env, &options, sizes[j]);
    play_batches(env, &options, BELAY_DEDUP_ITEMS_MAX);
    options.ttl_ms = 0;
    play_batches(env, &options, 3000);
  }
}

enum { CLIENTS = 4, EACH = 4, ROUNDS = 40 };

ENV_TEST(concurrent_marks_report_new_once) {
  static entry_t entries[CLIENTS][EACH];
  for (int k = 0; k < KINDS; k++) {
    book_t books[CLIENTS];
    server_do(env->server, "FLUSHALL", NULL);
    const belay_dedup_options_t options = dedup_options(kinds[k]);
    for (int i = 0; i < CLIENTS; i++) {
      belay_client_t *client =
          i == 0 ? env->client : env_connect(env, server_url(env->server), NULL);
      book_of(&books[i], env, client, &options);
    }
    for (int round = 0; round < ROUNDS; round++) {
      char item[8];
      snprintf(item, sizeof item, "%d", round);
      memset(entries, 0, sizeof entries);
      for (int j = 0; j < EACH; j++)
        for (int i = 0; i < CLIENTS; i++) {
          int who = (i + round) % CLIENTS;
          assert_error(begin_mark(&books[who], &entries[who][j], "k", item), 0);
        }
      unsigned new_items = 0;
      for (int i = 0; i < CLIENTS; i++)
        for (int j = 0; j < EACH; j++) {
          assert_error(end_of_entry(&entries[i][j]), 0);
          new_items += entries[i][j].verdicts[0] == 'N';
        }
      assert_int_equal(new_items, 1);
    }
    for (int i = 0; i < CLIENTS; i++) {
      assert_error(book_close(&books[i]), 0);
      env_until(env, books[i].closed == 1);
    }
  }
}
