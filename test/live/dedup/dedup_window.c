/* Dedup in a window, where each item has its own time; and in a bitmap, which has an end. */
#include <stdio.h>

#include "support/fixtures/data/dedups.h"
#include "support/models/scripts.h"

#define KEY "belay::dedup::{n}::k"

static belay_dedup_options_t window_of(int64_t window_ms, int64_t max_items) {
  belay_dedup_options_t options = dedup_options(BELAY_DEDUP_WINDOW);
  options.window_ms = window_ms;
  options.max_items = max_items;
  return options;
}

/* Lets its time be over by so much; 0: it is over just now. */
static void age(env_t *env, const char *item, int64_t ms) {
  char score[24];
  snprintf(score, sizeof score, "%lld", (long long)(server_now_ms(env->server) - ms));
  server_do(env->server, "ZADD", KEY, "XX", score, item, NULL);
}

static int64_t size(env_t *env) {
  return server_integer(env->server, "ZCARD", KEY, NULL);
}

static int64_t score(env_t *env, const char *item) {
  return atoll(server_string(env->server, "ZSCORE", KEY, item, NULL));
}

ENV_TEST(item_expires) {
  const int64_t ms = 150 * slow();
  belay_dedup_options_t options = window_of(ms, 100);
  book_t book;
  book_of(&book, env, env->client, &options);
  int64_t begun = clock_now();
  expect_mark(&book, "k", "a", "N");
  entry_t entry = {0};
  do {
    assert_ends(begin_mark(&book, &entry, "k", "a"), end_of_entry(&entry), 0);
  } while (entry.verdicts[0] == 'S');
  assert_string_equal(entry.verdicts, "N"); /* other marks in between did not extend it */
  assert_true(clock_now() - begun >= (ms - 1) * MS);
  assert_true(clock_now() - begun < 20 * ms * MS);
  expect_seen(&book, "k", "a", "S");
  do {
    assert_ends(begin_seen(&book, &entry, "k", "a"), end_of_entry(&entry), 0);
  } while (entry.verdicts[0] == 'S');
  assert_string_equal(entry.verdicts, "N");
  expect_count(&book, "k", 0);
}

ENV_TEST(expired_items_do_not_count) {
  belay_dedup_options_t options = window_of(60000, 100);
  book_t book;
  book_of(&book, env, env->client, &options);
  expect_mark(&book, "k", "a,b,c,d", "NNNN");
  age(env, "a", 0);
  age(env, "b", 100000);
  expect_seen(&book, "k", "a,b,c,d", "NNSS");
  expect_seen(&book, "k", "a", "N");
  expect_count(&book, "k", 2);
  expect_forget(&book, "k", "a,c", 1);
  assert_int_equal(size(env), 2); /* b is still there, and d */
  expect_mark(&book, "k", "b,d", "NS");
  expect_count(&book, "k", 2);
  assert_int_equal(size(env), 2);
}

ENV_TEST(extend_ttl_restarts_item) {
  for (int refresh = 0; refresh < 2; refresh++) {
    belay_dedup_options_t options = window_of(60000, 100);
    options.extend_ttl = refresh;
    book_t book;
    book_of(&book, env, env->client, &options);
    server_do(env->server, "FLUSHALL", NULL);
    expect_mark(&book, "k", "a,b", "NN");
    age(env, "a", -20000);
    age(env, "b", -90000); /* another program uses a longer window */
    int64_t before = score(env, "a"), longer = score(env, "b");
    expect_mark(&book, "k", "a,b", "SS");
    assert_int_equal(score(env, "a") > before + 30000, refresh);
    assert_int_equal(score(env, "b"), longer);
    assert_error(book_close(&book), 0);
    env_until(env, book.closed == 1);
  }
}

/* Of what is over some goes with each mark, and not all at once. */
TEST(expired_items_removed_in_portions) {
  env_t *env = env_open(NULL);
  static const char fill[] = "for i = 1, 1000 do redis.call('ZADD', KEYS[1], ARGV[1] + i, i) end "
                             "return redis.call('PEXPIRE', KEYS[1], 100000)";
  belay_dedup_options_t options = window_of(60000, 5000);
  book_t book;
  book_of(&book, env, env->client, &options);
  server_do(env->server, "EVAL", fill, "1", KEY, "1600000000000", NULL);
  expect_count(&book, "k", 0);
  expect_mark(&book, "k", "a", "N");
  int64_t left = size(env);
  assert_between(left, 900, 1000);
  for (; left > 1; left = size(env)) {
    expect_mark(&book, "k", "a", "S");
    assert_between(left - size(env), 1, 100);
  }
  expect_count(&book, "k", 1);
  expect_ttls(env->server);
  env_close(env);
}

/* The key is never gone before what is in it, also where all of it was thrown out in between. */
ENV_TEST(key_ttl_covers_items) {
  belay_dedup_options_t options = window_of(60000, 1);
  options.evict = true;
  book_t book, longer;
  book_of(&book, env, env->client, &options);
  options = window_of(600000, 10);
  book_of(&longer, env, env->client, &options);
  expect_mark(&book, "k", "a", "N");
  expect_ttls(env->server);
  expect_mark(&book, "k", "b", "N"); /* in the place of a */
  expect_ttls(env->server);
  age(env, "b", 10);
  expect_mark(&book, "k", "c", "N");
  expect_ttls(env->server);
  expect_mark(&longer, "k", "d", "N");
  expect_ttls(env->server);
  expect_mark(&book, "k", "e", "N");
  expect_ttls(env->server);
  server_do(env->server, "PERSIST", KEY, NULL);
  expect_mark(&longer, "k", "f", "N");
  expect_ttls(env->server);
  assert_between(server_integer(env->server, "PTTL", KEY, NULL), 600000, 800000);
}

ENV_TEST(full_window_refuses) {
  belay_dedup_options_t options = window_of(60000, 3);
  book_t book;
  book_of(&book, env, env->client, &options);
  expect_mark(&book, "k", "a,b,c,d,a,e", "NNNFSF");
  expect_seen(&book, "k", "a,b,c,d,e", "SSSNN");
  expect_mark(&book, "k", "d", "F");
  expect_mark_once(&book, "k", "d,a", "id", "FS");
  expect_mark(&book, "k", "b", "S");
  age(env, "b", 1);
  expect_mark(&book, "k", "d,e", "NF");
  assert_int_equal(size(env), 3);
  expect_mark_once(&book, "k", "d,a", "id", "FS"); /* it was so */
  expect_forget(&book, "k", "a", 1);
  expect_mark(&book, "k", "e,f", "NF");
}

ENV_TEST(full_window_evicts_oldest) {
  belay_dedup_options_t options = window_of(60000, 3);
  options.evict = true;
  book_t book;
  book_of(&book, env, env->client, &options);
  expect_mark(&book, "k", "a,b,c", "NNN");
  age(env, "b", -1000);
  age(env, "c", -2000);
  age(env, "a", -3000);
  expect_mark(&book, "k", "d", "N");
  expect_seen(&book, "k", "a,b,c,d", "SNSS");
  expect_mark(&book, "k", "e,a,f", "NSN");
  expect_seen(&book, "k", "a,b,c,d,e,f", "NNNSSS");
  assert_int_equal(size(env), 3);
}

/* Somebody kept more than that. */
ENV_TEST(smaller_max_items_evicts_in_portions) {
  belay_dedup_options_t options = window_of(60000, 100);
  book_t large, small;
  book_of(&large, env, env->client, &options);
  options.max_items = 5;
  options.evict = true;
  book_of(&small, env, env->client, &options);
  for (int i = 0; i < 60; i++) {
    char item[8];
    snprintf(item, sizeof item, "%d", i);
    expect_mark(&large, "k", item, "N");
  }
  for (int i = 0; i < 10; i++) {
    char item[8];
    int64_t before = size(env);
    snprintf(item, sizeof item, "new %d", i);
    expect_mark(&small, "k", item, "N");
    int64_t after = size(env);
    assert_int_equal(after, before > 20 ? before - 15 : 5);
  }
}

BOOK_TEST(foreign_scores_are_refused, WINDOW) {
  static const char *const scores[] = {
      "1", "-1", "inf", "-inf", "1600000000000.5", "99999999999999", "1e300"};
  for (size_t i = 0; i < sizeof scores / sizeof *scores; i++)
    for (int n = 0; n < 5; n++) {
      entry_t entry = {0};
      server_do(env->server, "DEL", KEY, NULL);
      server_do(env->server, "ZADD", KEY, scores[i], "x", NULL);
      if (n > 0)
        server_do(env->server, "ZADD", KEY, "1700000000000", "y", NULL);
      assert_error(n < 2    ? begin_mark(book, &entry, "k", "x")
                   : n == 2 ? begin_seen_many(book, &entry, "k", "x,y")
                   : n == 3 ? begin_forget(book, &entry, "k", "x")
                            : begin_book_count(book, &entry, "k"),
                   0);
      assert_error(end_of_entry(&entry), BELAY_EMISMATCH);
      assert_int_equal(size(env), n > 0 ? 2 : 1);
      assert_int_equal(server_integer(env->server, "PTTL", KEY, NULL), -1);
    }
  expect_clear(book, "k", 1);
  expect_mark(book, "k", "x", "N");
}

enum { MANY = 3000 };

static unsigned met[MANY];

static void meet(entry_t *entry, const belay_bytes_t *member) {
  char text[8] = "";
  assert_true(member->len >= 1 && member->len <= 5);
  memcpy(text, member->data, member->len);
  int n = atoi(text);
  assert_between(n, 0, MANY - 1);
  met[n]++;
  (void)entry;
}

TEST(pages_of_window) {
  env_t *env = env_open(NULL);
  belay_dedup_options_t options = window_of(600000, 2 * MANY);
  book_t book;
  book_of(&book, env, env->client, &options);
  char script[200];
  snprintf(
      script, sizeof script,
      "for i = 0, %d do redis.call('ZADD', KEYS[1], i %% 3 == 0 and ARGV[1] or '9999999999999', i) "
      "end return 1",
      MANY - 1);
  char over[24];
  snprintf(over, sizeof over, "%lld", (long long)server_now_ms(env->server));
  server_do(env->server, "EVAL", script, "1", KEY, over, NULL);
  unsigned pages = 0;
  uint64_t cursor = 0;
  memset(met, 0, sizeof met);
  do {
    entry_t entry = {.member = meet};
    assert_ends(begin_page(&book, &entry, BELAY_DEDUP_UNION, "k", cursor, 100),
                end_of_entry(&entry), 0);
    cursor = entry.next;
    pages++;
  } while (cursor != 0);
  assert_true(pages > MANY / 100 / 4);
  for (int i = 0; i < MANY; i++)
    assert_int_equal(met[i] > 0, i % 3 != 0);
  entry_t entry = {0};
  assert_error(begin_page(&book, &entry, BELAY_DEDUP_UNION, "k,l", 0, 100), BELAY_EINVAL);
  assert_error(begin_page(&book, &entry, BELAY_DEDUP_UNION, "k", 1, 100), BELAY_EINVAL);
  assert_ends(begin_page(&book, &entry, BELAY_DEDUP_UNION, "l", 0, 100), end_of_entry(&entry), 0);
  assert_true(entry.n == 0 && entry.next == 0);
  server_do(env->server, "SET", "belay::dedup::{n}::m", "x", NULL);
  assert_ends(begin_page(&book, &entry, BELAY_DEDUP_UNION, "m", 0, 100), end_of_entry(&entry),
              BELAY_EWRONGTYPE);
  env_close(env);
}

ENV_TEST(bitmap_max_offset) {
  static const char *const wrong[] = {"",
                                      "-1",
                                      "+1",
                                      "01",
                                      "00",
                                      " 1",
                                      "1 ",
                                      "0x1",
                                      "a",
                                      "1.0",
                                      "1001",
                                      "1e2",
                                      "18446744073709551616",
                                      "4294967296"};
  belay_dedup_options_t options = dedup_options(BELAY_DEDUP_BITMAP);
  options.max_offset = 1000;
  book_t book;
  book_of(&book, env, env->client, &options);
  expect_mark(&book, "k", "0,1000", "NN");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    entry_t entry = {0};
    char items[64];
    snprintf(items, sizeof items, "5,%s", wrong[i]);
    assert_error(begin_mark(&book, &entry, "k", wrong[i]), BELAY_EINVAL);
    assert_string_equal(belay_detail(env->belay), "item: not a number from 0 to 1000");
    assert_error(begin_mark_many(&book, &entry, "k", items), BELAY_EINVAL);
    assert_error(begin_mark_once(&book, &entry, "k", items, "id"), BELAY_EINVAL);
    assert_error(begin_seen(&book, &entry, "k", wrong[i]), BELAY_EINVAL);
    assert_error(begin_seen_many(&book, &entry, "k", items), BELAY_EINVAL);
    assert_error(begin_forget(&book, &entry, "k", items), BELAY_EINVAL);
  }
  expect_count(&book, "k", 2);
  assert_int_equal(server_integer(env->server, "STRLEN", KEY, NULL), 126);
}

ENV_TEST(bitmap_largest_offset) {
  belay_dedup_options_t options = dedup_options(BELAY_DEDUP_BITMAP);
  options.max_offset = BELAY_DEDUP_OFFSET_MAX;
  book_t book;
  book_of(&book, env, env->client, &options);
  expect_seen(&book, "k", "4294967295,0", "NN");
  expect_forget(&book, "k", "4294967295,0", 0);
  assert_int_equal(server_keys(env->server), 0); /* half a gigabyte for nothing */
  expect_mark(&book, "k", "8000000", "N");
  expect_forget(&book, "k", "8000000,4294967295,7999999", 1);
  expect_seen(&book, "k", "8000000", "N");
  expect_count(&book, "k", 0);
  assert_int_equal(server_integer(env->server, "STRLEN", KEY, NULL), 1000001);
}

/* It is laid out as SETBIT does it: others may look. */
BOOK_TEST(bitmap_bits_of_server, BITMAP) {
  expect_mark(book, "k", "7,16777215", "NN");
  assert_int_equal(server_integer(env->server, "GETBIT", KEY, "7", NULL), 1);
  assert_int_equal(server_integer(env->server, "STRLEN", KEY, NULL), 2 << 20);
  server_do(env->server, "SETBIT", KEY, "100", "1", NULL);
  expect_mark(book, "k", "100,101", "SN");
}
