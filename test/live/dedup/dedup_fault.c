/* Dedup where something goes wrong: answers are lost, everything is closed. */
#include <stdio.h>

#include "support/fixtures/data/dedups.h"
#include "support/deployments/relay.h"
#include "support/models/scripts.h"

#define KEY "belay::dedup::{n}::k"

/* The server has executed it, so that key is there or not, and the answer is on its way when the
 * connection is cut. */
static void lose_the_answer(env_t *env, const char *key, bool there) {
  while ((server_integer(env->server, "EXISTS", key, NULL) == 1) != there)
    uv_run(&env->loop, UV_RUN_NOWAIT);
  relay_cut(env->relay);
  relay_delay(env->relay, 0);
}

TEST(mark_with_lost_reply) {
  for (int i = 0; i < DEDUP_KINDS; i++) {
    env_t *env = env_open_relayed(NULL);
    book_t book;
    book_new(&book, env, (belay_dedup_kind_t)i);
    for (int n = 0; n < 2; n++) {
      const bool counts = (belay_dedup_kind_t)i == BELAY_DEDUP_COUNT;
      entry_t entry = {0};
      expect_clear(&book, "k", n);
      relay_delay(env->relay, RELAY_LONG);
      assert_error(begin_dedup_nth(&book, &entry, n), 0);
      lose_the_answer(env, KEY, true);
      assert_error(end_of_entry(&entry), counts ? 0 : BELAY_EUNKNOWN);
      if (counts) /* nothing untrue */
        assert_string_equal(entry.verdicts, n == 0 ? "M" : "MM");
      else
        expect_seen(&book, "k", "1,2", n == 0 ? "SN" : "SS");
      expect_count(&book, "k", n + 1);
    }
    expect_ttls(env->server);
    env_close(env);
  }
}

TEST(mark_once_with_lost_reply) {
  for (int i = 0; i < DEDUP_KINDS; i++) {
    env_t *env = env_open_relayed(NULL);
    book_t book;
    book_new(&book, env, (belay_dedup_kind_t)i);
    expect_mark(&book, "k", "2", "N");
    entry_t entry = {0};
    relay_delay(env->relay, RELAY_LONG);
    assert_error(begin_mark_once(&book, &entry, "k", "1,2", "id"), 0);
    lose_the_answer(env, KEY "::op::id", true);
    assert_error(end_of_entry(&entry), 0);
    assert_string_equal(entry.verdicts, (belay_dedup_kind_t)i == BELAY_DEDUP_COUNT ? "NM" : "NS");
    expect_count(&book, "k", 2);
    expect_ttls(env->server);
    env_close(env);
  }
}

/* Nor is what would be something else the second time. */
BOOK_TEST_RELAYED(difference_into_operand_with_lost_reply, SET) {
  entry_t entry = {0};
  expect_mark(book, "a", "1,2", "NN");
  expect_mark(book, "k", "2", "N");
  for (int i = 0; i < 2; i++) {
    const char *into = i == 0 ? "first" : "k";
    relay_delay(env->relay, RELAY_LONG);
    assert_error(begin_store(book, &entry, BELAY_DEDUP_DIFFERENCE, "a,k", into), 0);
    while (server_calls(env->server, "sdiffstore") == 0)
      uv_run(&env->loop, UV_RUN_NOWAIT);
    relay_cut(env->relay);
    relay_delay(env->relay, 0);
    assert_error(end_of_entry(&entry), i == 0 ? 0 : BELAY_EUNKNOWN);
    expect_seen(book, into, "1,2", "SN");
    if (i == 0)
      server_do(env->server, "CONFIG", "RESETSTAT", NULL);
  }
  expect_ttls(env->server);
}

/* The connection is cut or silent at some time: each result is true, and no item is lost. */
BOOK_TEST_RELAYED(marks_under_cuts_and_silence, WINDOW) {
  unsigned cuts = 0;
  expect_mark(book, "k", "0", "N");
  for (int i = 1; i < 16; i++) {
    char item[8];
    entry_t entry = {0};
    snprintf(item, sizeof item, "%d", i);
    relay_delay(env->relay, 10);
    assert_error(begin_mark_once(book, &entry, "k", item, item), 0);
    env_run_for(env, i % 4 * 7);
    cuts += entry.ended == 0;
    if (i % 5 == 4)
      relay_silence(env->relay);
    else
      relay_cut(env->relay);
    relay_delay(env->relay, 0);
    assert_error(end_of_entry(&entry), 0);
    assert_string_equal(entry.verdicts, "N");
    expect_count(book, "k", i + 1);
  }
  assert_true(cuts > 3);
  expect_ttls(env->server);
}

BOOK_TEST_RELAYED(removals_with_lost_reply, SET) {
  for (int n = 0; n < 2; n++) {
    entry_t entry = {0};
    expect_mark(book, "k", "1,2", "NN");
    relay_delay(env->relay, RELAY_LONG);
    assert_error(n == 0 ? begin_clear(book, &entry, "k") : begin_forget(book, &entry, "k", "1,2"),
                 0);
    lose_the_answer(env, KEY, false);
    assert_error(end_of_entry(&entry), BELAY_EUNKNOWN);
  }
  expect_ttls(env->server);
}

BOOK_TEST_RELAYED(reads_with_lost_reply, SET) {
  static const int looks[] = {3, 5, 6, 8, 9, 10};
  expect_mark(book, "k", "1,3", "NN");
  for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
    entry_t entry = {0};
    server_pause(env->server);
    assert_error(begin_dedup_nth(book, &entry, looks[i]), 0);
    env_run_for(env, 20);
    relay_cut(env->relay);
    server_resume(env->server);
    assert_error(end_of_entry(&entry), 0);
    assert_int_equal(entry.count, looks[i] == 3 || looks[i] == 8 || looks[i] == 9 ? 2 : 0);
  }
  expect_ttls(env->server);
}

ENV_TEST_OF(request_beyond_max_bytes, o.max_bytes = 65536) {
  static belay_bytes_t many[1000];
  static char item[BELAY_DEDUP_ITEM_MAX];
  book_t book;
  entry_t entry = {0};
  book_new(&book, env, BELAY_DEDUP_SET);
  for (size_t i = 0; i < 1000; i++)
    many[i] = (belay_bytes_t){item, sizeof item};
  belay_request_t *r = begin_entry(&book, &entry);
  assert_error(begun_entry(&entry, belay_dedup_mark_many(book.dedup, r, belay_string("k"), many,
                                                         1000, on_verdicts)),
               BELAY_EBUSY);
  expect_mark(&book, "k", "1", "N");
}
