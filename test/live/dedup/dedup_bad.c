/* Dedup: refused arguments, and keys that exist already. */
#include <stdio.h>

#include "support/fixtures/data/dedups.h"
#include "support/models/scripts.h"

#define KEY "belay::dedup::{n}::k"

ENV_TEST(largest_options) {
  belay_dedup_options_t o = dedup_options(BELAY_DEDUP_SET);
  o.ttl_ms = o.window_ms = INT64_C(31536000000);
  o.max_items = BELAY_DEDUP_WINDOW_ITEMS_MAX;
  o.max_offset = BELAY_DEDUP_OFFSET_MAX;
  o.op_ttl_ms = 86400000;
  for (int i = 0; i < DEDUP_KINDS; i++) {
    book_t book;
    o.kind = (belay_dedup_kind_t)i;
    book_of(&book, env, env->client, &o);
    server_do(env->server, "FLUSHALL", NULL);
    expect_mark_once(&book, "k", "1,2", "id", "NN");
    expect_ttls(env->server);
  }
}

ENV_TEST(operations_by_kind) {
  static const char *const details[] = {"", "kind: a count cannot do that",
                                        "kind: a window cannot do that",
                                        "kind: a bitmap cannot do that"};
  for (int i = 0; i < DEDUP_KINDS; i++) {
    book_t book;
    book_new(&book, env, (belay_dedup_kind_t)i);
    for (int n = 0; n < DEDUP_OPERATIONS; n++) {
      entry_t entry = {0};
      assert_error(begin_dedup_nth(&book, &entry, n),
                   can_dedup((belay_dedup_kind_t)i, n) ? 0 : BELAY_EINVAL);
      if (can_dedup((belay_dedup_kind_t)i, n))
        assert_error(end_of_entry(&entry), 0);
      else
        assert_string_equal(belay_detail(env->belay), details[i]);
    }
    server_do(env->server, "FLUSHALL", NULL);
  }
  book_t counts;
  entry_t entry = {0};
  book_new(&counts, env, BELAY_DEDUP_COUNT);
  assert_error(begin_count_of(&counts, &entry, BELAY_DEDUP_INTERSECTION, "a,b"), BELAY_EINVAL);
  assert_error(begin_store(&counts, &entry, BELAY_DEDUP_DIFFERENCE, "a,b", "c"), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "how: not from 0 to 0");
}

BOOK_TEST(keys_and_items_are_checked, SET) {
  static char key[BELAY_DEDUP_KEY_MAX + 2], item[BELAY_DEDUP_ITEM_MAX + 2];
  memset(key, 'k', sizeof key - 1);
  memset(item, 'i', sizeof item - 1);
  entry_t entry = {0};
  belay_dedup_t *d = book->dedup;
  belay_request_t *r = &entry.request;
  static const char *const keys[] = {"", key};
  for (int i = 0; i < 2; i++) {
    assert_error(begin_mark(book, &entry, keys[i], "a"), BELAY_EINVAL);
    assert_error(begin_mark_many(book, &entry, keys[i], "a"), BELAY_EINVAL);
    assert_error(begin_mark_once(book, &entry, keys[i], "a", "id"), BELAY_EINVAL);
    assert_error(begin_seen(book, &entry, keys[i], "a"), BELAY_EINVAL);
    assert_error(begin_seen_many(book, &entry, keys[i], "a"), BELAY_EINVAL);
    assert_error(begin_forget(book, &entry, keys[i], "a"), BELAY_EINVAL);
    assert_error(begin_book_count(book, &entry, keys[i]), BELAY_EINVAL);
    assert_error(begin_clear(book, &entry, keys[i]), BELAY_EINVAL);
    assert_error(begin_count_of(book, &entry, BELAY_DEDUP_UNION, keys[i]), BELAY_EINVAL);
    assert_error(begin_page(book, &entry, BELAY_DEDUP_UNION, keys[i], 0, 1), BELAY_EINVAL);
    assert_string_equal(belay_detail(env->belay), "key: not 1 to 1024 bytes");
    assert_error(begin_store(book, &entry, BELAY_DEDUP_UNION, "a", keys[i]), BELAY_EINVAL);
    assert_string_equal(belay_detail(env->belay), "into: not 1 to 1024 bytes");
  }
  assert_error(begin_mark(book, &entry, "k", item), BELAY_EINVAL);
  assert_error(begin_mark_once(book, &entry, "k", item, "id"), BELAY_EINVAL);
  assert_error(begin_seen_many(book, &entry, "k", item), BELAY_EINVAL);
  assert_error(begin_forget(book, &entry, "k", item), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "item: NULL, or more than 512 bytes");
  assert_error(belay_dedup_mark(d, r, belay_string("k"), belay_bytes(NULL, 1), on_verdict),
               BELAY_EINVAL);
  assert_error(begin_mark_once(book, &entry, "k", "a", ""), BELAY_EINVAL);
  key[129] = '\0';
  assert_error(begin_mark_once(book, &entry, "k", "a", key), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "op_id: not 1 to 128 bytes");
  assert_int_equal(client_stats(env).calls, 0);
}

BOOK_TEST(numbers_of_items_and_sets_are_checked, SET) {
  static belay_bytes_t many[BELAY_DEDUP_ITEMS_MAX + 1];
  entry_t entry = {0};
  belay_dedup_t *d = book->dedup;
  belay_request_t *r = &entry.request;
  const size_t over = BELAY_DEDUP_ITEMS_MAX + 1;
  assert_error(belay_dedup_mark_many(d, r, belay_string("k"), many, over, on_verdicts),
               BELAY_EINVAL);
  assert_error(belay_dedup_mark_many(d, r, belay_string("k"), many, 0, on_verdicts), BELAY_EINVAL);
  assert_error(belay_dedup_mark_many(d, r, belay_string("k"), NULL, 1, on_verdicts), BELAY_EINVAL);
  assert_error(belay_dedup_seen_many(d, r, belay_string("k"), many, over, on_verdicts),
               BELAY_EINVAL);
  assert_error(belay_dedup_forget(d, r, belay_string("k"), many, over, on_book_counted),
               BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "items: NULL, or not 1 to 65536 of them");
  assert_error(belay_dedup_mark_once(
                   d, r, belay_string("k"),
                   &(belay_dedup_once_t){.items = many, .n = 513, .op_id = belay_string("i")},
                   on_verdicts),
               BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "items: NULL, or not 1 to 512 of them");
  assert_error(begin_count_of(book, &entry, BELAY_DEDUP_UNION, "a,b,c"), BELAY_EINVAL);
  assert_error(
      belay_dedup_store(d, r, &(belay_dedup_sets_t){.how = BELAY_DEDUP_UNION, .keys = NULL, .n = 1},
                        belay_string("a"), on_book_counted),
      BELAY_EINVAL);
  assert_error(
      belay_dedup_page(d, r, &(belay_dedup_sets_t){.how = BELAY_DEDUP_UNION, .keys = many, .n = 0},
                       0, 1, on_page),
      BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "keys: NULL, or not 1 to 2 of them");
  assert_error(begin_store(book, &entry, (belay_dedup_operator_t)3, "a", "b"), BELAY_EINVAL);
  assert_error(begin_page(book, &entry, BELAY_DEDUP_UNION, "a", 0, 0), BELAY_EINVAL);
  assert_error(begin_page(book, &entry, BELAY_DEDUP_UNION, "a", 0, 10001), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "limit: not from 1 to 10000");
  assert_error(begin_page(book, &entry, BELAY_DEDUP_UNION, "a", 3, 10), BELAY_EINVAL);
  assert_error(begin_page(book, &entry, BELAY_DEDUP_DIFFERENCE, "a,b", 3, 10), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "cursor: not of a page of these sets");
  assert_int_equal(client_stats(env).calls, 0);
}

static char detail[256];

static void keep_detail(book_t *book) {
  snprintf(detail, sizeof detail, "%s", belay_detail(book->env->belay));
}

ENV_TEST(wrong_type_is_left_unchanged) {
  for (int i = 0; i < DEDUP_KINDS; i++)
    for (int text = 0; text < 2; text++) {
      belay_dedup_options_t options = dedup_options((belay_dedup_kind_t)i);
      options.extend_ttl = true;
      options.ttl_ms = text == 0 ? 60000 : 0;
      book_t book;
      book_of(&book, env, env->client, &options);
      book.then = keep_detail;
      server_do(env->server, "FLUSHALL", NULL);
      if (text == 1 && (belay_dedup_kind_t)i != BELAY_DEDUP_BITMAP)
        server_do(env->server, "SET", KEY, "text", NULL);
      else
        server_do(env->server, "RPUSH", KEY, "a", NULL);
      for (int n = 0; n < DEDUP_OPERATIONS; n++) {
        entry_t entry = {0};
        if (n == 4 || !can_dedup((belay_dedup_kind_t)i, n)) /* clear does not look */
          continue;
        assert_ends(begin_dedup_nth(&book, &entry, n), end_of_entry(&entry), BELAY_EWRONGTYPE);
        assert_int_equal(strncmp(detail, KEY ": ", strlen(KEY ": ")), 0);
        assert_int_equal(server_keys(env->server), 1);
        assert_int_equal(server_integer(env->server, "PTTL", KEY, NULL), -1);
      }
      expect_clear(&book, "k", 1);
      expect_mark(&book, "k", "1", "N"); /* it is of use again */
    }
}

ENV_TEST(foreign_stored_answer) {
  for (int i = 0; i < DEDUP_KINDS; i++) {
    book_t book;
    book_new(&book, env, (belay_dedup_kind_t)i);
    for (int n = 0; n < 2; n++) {
      entry_t entry = {0};
      server_do(env->server, "FLUSHALL", NULL);
      if (n == 0)
        server_do(env->server, "SET", KEY "::op::id", "something else", NULL);
      else
        server_do(env->server, "RPUSH", KEY "::op::id", "1", NULL);
      assert_ends(begin_mark_once(&book, &entry, "k", "1,2", "id"), end_of_entry(&entry),
                  n == 0 ? BELAY_EMISMATCH : BELAY_EWRONGTYPE);
      assert_int_equal(server_keys(env->server), 1);
    }
  }
}

ENV_TEST(flushed_server) {
  for (int i = 0; i < DEDUP_KINDS; i++) {
    book_t book;
    book_new(&book, env, (belay_dedup_kind_t)i);
    for (int n = 0; n < 3; n++) {
      server_do(env->server, n == 1 ? "SCRIPT" : "FLUSHALL", n == 1 ? "FLUSH" : NULL, NULL);
      if (n == 1)
        expect_clear(&book, "k", 1);
      expect_mark(&book, "k", "1,2", "NN");
      expect_ttls(env->server);
    }
  }
}
