/* Rankings: a member's place follows from its score. Among equal scores the earlier, or the
 * later, is first. */
#include <stdio.h>

#include "support/models/scripts.h"
#include "support/fixtures/data/stands.h"

STAND_TEST(high_scores_first, HIGH_FIRST, BY_MEMBER) {
  expect_all(stand, "");
  assert_int_equal(server_keys(env->server), 0);
  expect_submit(stand, BELAY_RANKING_SET, "ada", 7, "0 ada 7!");
  expect_submit(stand, BELAY_RANKING_SET, "bob", 9, "0 bob 9!");
  expect_submit(stand, BELAY_RANKING_SET, "eve", 7, "1 eve 7!"); /* its bytes are larger */
  expect_all(stand, "0 bob 9, 1 eve 7, 2 ada 7");
  expect_submit(stand, BELAY_RANKING_ADD, "ada", 1, "1 ada 8!");
  expect_submit(stand, BELAY_RANKING_ADD, "ada", 0, "1 ada 8");
  expect_submit(stand, BELAY_RANKING_BEST, "ada", 8, "1 ada 8");
  expect_submit(stand, BELAY_RANKING_BEST, "ada", 7, "1 ada 8");
  expect_submit(stand, BELAY_RANKING_BEST, "ada", 10, "0 ada 10!");
  expect_submit(stand, BELAY_RANKING_SET, "ada", 10, "0 ada 10");
  expect_submit(stand, BELAY_RANKING_SET, "ada", -1, "2 ada -1!");
  expect_submit(stand, BELAY_RANKING_ADD, "new", -5, "3 new -5!");
  expect_submit(stand, BELAY_RANKING_BEST, "newer", -9, "4 newer -9!");
  /* an ordinary sorted set */
  assert_string_equal(server_string(env->server, "ZSCORE", STAND_KEY, "bob", NULL), "9");
  assert_int_equal(server_keys(env->server), 1);
  expect_ttls(env->server);
}

STAND_TEST(low_scores_first, LOW_FIRST, BY_MEMBER) {
  expect_submit(stand, BELAY_RANKING_SET, "eve", 7, "0 eve 7!");
  expect_submit(stand, BELAY_RANKING_SET, "ada", 7, "0 ada 7!"); /* its bytes are smaller */
  expect_submit(stand, BELAY_RANKING_BEST, "eve", 8, "1 eve 7");
  expect_submit(stand, BELAY_RANKING_BEST, "eve", 6, "0 eve 6!");
  expect_all(stand, "0 eve 6, 1 ada 7");
}

/* A member that reaches an equal score stands behind the members that had it before. */
ENV_TEST(ties_by_time) {
  static const char *const texts[2][2] = {
      {"0 zoe 9, 1 bob 7, 2 ada 7, 3 eve 7", "0 zoe 9, 1 eve 7, 2 ada 7, 3 bob 7"},
      {"0 bob 7, 1 ada 7, 2 eve 7, 3 zoe 9", "0 eve 7, 1 ada 7, 2 bob 7, 3 zoe 9"}};
  for (int low = 0; low < 2; low++)
    for (int later = 0; later < 2; later++) {
      stand_t stand;
      stand_new(&stand, env, (belay_ranking_order_t)low,
                later ? BELAY_RANKING_LATER_FIRST : BELAY_RANKING_EARLIER_FIRST);
      query_t eve = {0}, zoe = {0};
      assert_error(begin_submit(&stand, &eve, BELAY_RANKING_SET, "eve", 7), 0);
      assert_error(begin_submit(&stand, &zoe, BELAY_RANKING_SET, "zoe", 9), 0);
      env_until(env, stand.pending == 0);
      query_t more = {0};
      const belay_ranking_score_t items[] = {
          {{"bob", 3}, 7}, {{"eve", 3}, 8}, {{"ada", 3}, 7}, {{"bob", 3}, 7}, {{"eve", 3}, 7}};
      assert_ends(begin_submit_many(&stand, &more, BELAY_RANKING_SET, items, 5),
                  end_of_query(&more), 0);
      for (int i = 0; i < 5; i++)
        assert_int_equal(more.entries[i].changed, i != 3);
      expect_all(&stand, texts[low][later]);
      expect_ttls(env->server);
      int64_t left = server_integer(env->server, "PTTL", STAND_TURNS, NULL);
      assert_between(server_integer(env->server, "PTTL", STAND_TIMED, NULL), left - 1000, left);
      server_do(env->server, "FLUSHALL", NULL);
    }
}

ENV_TEST(largest_scores) {
  for (unsigned ties = 0; ties < 2; ties++) {
    stand_t stand;
    stand_new(&stand, env, BELAY_RANKING_HIGH_FIRST, (belay_ranking_ties_t)ties);
    expect_submit(&stand, BELAY_RANKING_SET, "max", BELAY_RANKING_SCORE_MAX,
                  "0 max 9007199254740991!");
    expect_submit(&stand, BELAY_RANKING_SET, "less", BELAY_RANKING_SCORE_MAX - 1,
                  "1 less 9007199254740990!");
    expect_submit(&stand, BELAY_RANKING_SET, "min", BELAY_RANKING_SCORE_MIN,
                  "2 min -9007199254740991!");
    for (int i = 0; i < 3; i++) {
      query_t query = {0};
      const char *who = i == 1 ? "min" : "max";
      assert_ends(begin_submit(&stand, &query, BELAY_RANKING_ADD, who,
                               i == 0   ? 1
                               : i == 1 ? -1
                                        : BELAY_RANKING_SCORE_MAX),
                  end_of_query(&query), BELAY_EOVERFLOW);
    }
    query_t query = {0};
    const belay_ranking_score_t items[] = {{{"new", 3}, 1}, {{"max", 3}, 1}};
    assert_ends(begin_submit_many(&stand, &query, BELAY_RANKING_ADD, items, 2),
                end_of_query(&query), BELAY_EOVERFLOW); /* all or nothing */
    expect_all(&stand, "0 max 9007199254740991, 1 less 9007199254740990, 2 min -9007199254740991");
    expect_submit(&stand, BELAY_RANKING_ADD, "less", 1,
                  "1 less 9007199254740991!"); /* by its bytes, and by its time */
    server_do(env->server, "FLUSHALL", NULL);
  }
}

static int64_t pttl(env_t *env, const char *key) {
  return server_integer(env->server, "PTTL", key, NULL);
}

ENV_TEST(submit_restarts_ttl) {
  for (unsigned ties = 0; ties < 2; ties++) {
    belay_ranking_options_t options =
        ranking_options(BELAY_RANKING_HIGH_FIRST, (belay_ranking_ties_t)ties);
    static const char *const keys[][2] = {{STAND_KEY, STAND_KEY}, {STAND_TIMED, STAND_TURNS}};
    options.ttl_ms = 100000;
    stand_t stand, forever;
    stand_of(&stand, env, env->client, &options);
    options.ttl_ms = 0;
    stand_of(&forever, env, env->client, &options);
    expect_submit(&stand, BELAY_RANKING_SET, "ada", 7, "0 ada 7!");
    expect_submit(&stand, BELAY_RANKING_SET, "bob", 6, "1 bob 6!");
    for (unsigned n = 0; n < STAND_OPERATIONS - 1; n++) {
      for (int i = 0; i < 2; i++)
        server_do(env->server, "PEXPIRE", keys[ties][i], "50000", NULL);
      query_t query = {0};
      assert_ends(begin_operation(&stand, &query, n), end_of_query(&query), 0);
      for (int i = 0; i < 2; i++)
        assert_between(pttl(env, keys[ties][i]), n < 3 ? 80000 : 30000, n < 3 ? 100000 : 50000);
    }
    expect_submit(&forever, BELAY_RANKING_SET, "bob", 6, "0 bob 6");
    for (int i = 0; i < 2; i++)
      assert_int_equal(pttl(env, keys[ties][i]), -1);
    expect_submit(&stand, BELAY_RANKING_SET, "bob", 6, "0 bob 6");
    expect_ttls(env->server);
    server_do(env->server, "FLUSHALL", NULL);
    expect_submit(&forever, BELAY_RANKING_SET, "bob", 6, "0 bob 6!");
    assert_int_equal(pttl(env, keys[ties][0]), -1);
    server_do(env->server, "FLUSHALL", NULL);
  }
}

/* Fills it with members 0 to n - 1, whose scores are their numbers. */
static void fill(stand_t *stand, size_t n) {
  static belay_ranking_score_t items[BELAY_RANKING_ITEMS_MAX];
  static char names[BELAY_RANKING_ITEMS_MAX][16];
  for (size_t done = 0; done < n;) {
    size_t count = n - done < BELAY_RANKING_ITEMS_MAX ? n - done : BELAY_RANKING_ITEMS_MAX;
    for (size_t i = 0; i < count; i++) {
      snprintf(names[i], sizeof names[i], "%zu", done + i);
      items[i] = (belay_ranking_score_t){{names[i], strlen(names[i])}, (int64_t)(done + i)};
    }
    query_t query = {.request.timeout_ms = 60000};
    assert_ends(begin_submit_many(stand, &query, BELAY_RANKING_SET, items, count),
                end_of_query(&query), 0);
    assert_int_equal(query.n, count);
    assert_int_equal(query.entries[1].rank, (int64_t)count - 2);
    done += count;
  }
}

static int64_t count_of(stand_t *stand) {
  query_t query = {0};
  stand_ok(stand, &query, belay_ranking_count(h_, r_, BOARD, on_count));
  return query.count;
}

static int64_t trim(stand_t *stand, int64_t size) {
  query_t query = {.request.timeout_ms = 60000};
  stand_ok(stand, &query, belay_ranking_trim(h_, r_, BOARD, size, on_count));
  return query.count;
}

ENV_TEST(large_board_trimmed_in_steps) {
  enum { ALL = 20000 };
  for (unsigned ties = 0; ties < 2; ties++) {
    belay_ranking_options_t options =
        ranking_options(BELAY_RANKING_HIGH_FIRST, (belay_ranking_ties_t)ties);
    stand_t stand, small;
    stand_of(&stand, env, env->client, &options);
    options.max_members = 3;
    stand_of(&small, env, env->client, &options);
    fill(&stand, ALL);
    assert_int_equal(count_of(&stand), ALL);
    assert_int_equal(trim(&stand, ALL), ALL);
    uint64_t calls = client_stats(env).calls;
    assert_int_equal(trim(&stand, 2500), 2500);
    assert_int_equal(client_stats(env).calls - calls, 3);
    /* a limit of 3 removes all members beyond it */
    expect_submit(&small, BELAY_RANKING_SET, "x", 1, "-1 x 1!");
    assert_int_equal(count_of(&stand), 2501 - 1025);
    expect_submit(&small, BELAY_RANKING_SET, "x", ALL, "0 x 20000!");
    expect_submit(&small, BELAY_RANKING_SET, "x", ALL, "0 x 20000");
    expect_all(&small, "0 x 20000, 1 19999 19999, 2 19998 19998");
    assert_int_equal(trim(&stand, 2), 2);
    expect_all(&small, "0 x 20000, 1 19999 19999");
    assert_int_equal(trim(&stand, 0), 0);
    assert_int_equal(trim(&stand, 0), 0);
    assert_int_equal(server_keys(env->server), 0);
  }
}

ENV_TEST(largest_operations) {
  static belay_bytes_t members[BELAY_RANKING_ITEMS_MAX];
  static char names[BELAY_RANKING_ITEMS_MAX][16];
  for (unsigned ties = 0; ties < 2; ties++) {
    stand_t high;
    for (size_t i = 0; i < BELAY_RANKING_ITEMS_MAX; i++) {
      snprintf(names[i], sizeof names[i], "%zu", BELAY_RANKING_ITEMS_MAX - 1 - i);
      members[i] = (belay_bytes_t){names[i], strlen(names[i])};
    }
    stand_new(&high, env, BELAY_RANKING_HIGH_FIRST, (belay_ranking_ties_t)ties);
    fill(&high, BELAY_RANKING_ITEMS_MAX);
    for (int what = 0; what < 3; what++) {
      query_t query = {.request.timeout_ms = 60000};
      belay_request_t *request = begin_query(&high, &query);
      belay_ranking_t *r = high.ranking;
      const size_t n = BELAY_RANKING_ITEMS_MAX, page = BELAY_RANKING_PAGE_MAX;
      const belay_ranking_page_t worst = {
          .from = BELAY_RANKING_FROM_WORST, .skip = 7000, .n = page};
      const belay_ranking_around_t around = {{"5000", 4}, 500, page - 501};
      int error = what == 0   ? belay_ranking_find(r, request, BOARD, members, n, on_entries)
                  : what == 1 ? belay_ranking_page(r, request, BOARD, &worst, on_entries)
                              : belay_ranking_around(r, request, BOARD, &around, on_entries);
      assert_error(begun_query(&query, error), 0);
      assert_error(end_of_query(&query), 0);
      assert_int_equal(query.n, what == 0 ? n : page);
      assert_int_equal(query.entries[0].rank, what == 0 ? 0 : what == 1 ? 1191 : 2691);
      assert_int_equal(query.entries[1].rank, what == 0 ? 1 : what == 1 ? 1190 : 2692);
    }
    query_t query = {.request.timeout_ms = 60000};
    stand_ok(&high, &query,
             belay_ranking_remove(h_, r_, BOARD, members, BELAY_RANKING_ITEMS_MAX, on_count));
    assert_int_equal(query.count, BELAY_RANKING_ITEMS_MAX);
    assert_int_equal(server_keys(env->server), 0);
  }
}

ENV_TEST(longest_names) {
  static char name[128], board[BELAY_RANKING_BOARD_MAX], member[BELAY_RANKING_MEMBER_MAX];
  memset(name, '{', sizeof name);
  memset(board, '}', sizeof board);
  memset(member, 'm', sizeof member);
  for (unsigned ties = 0; ties < 3; ties++) {
    belay_ranking_options_t options =
        ranking_options(BELAY_RANKING_HIGH_FIRST, (belay_ranking_ties_t)ties);
    options.name = belay_bytes(name, sizeof name);
    stand_t stand;
    stand_of(&stand, env, env->client, &options);
    const belay_ranking_score_t item = {{member, sizeof member}, 7};
    for (int i = 0; i < 3; i++) {
      query_t query = {0};
      belay_request_t *request = begin_query(&stand, &query);
      belay_ranking_t *r = stand.ranking;
      int error =
          i == 0   ? belay_ranking_submit(r, request, belay_bytes(board, sizeof board),
                                          &(belay_ranking_submission_t){
                                              .mode = BELAY_RANKING_SET, .items = &item, .n = 1},
                                          on_entries)
          : i == 1 ? belay_ranking_top(r, request, belay_bytes(board, sizeof board), 5, on_entries)
                   : belay_ranking_clear(r, request, belay_bytes(board, sizeof board), on_count);
      assert_error(begun_query(&query, error), 0);
      assert_error(end_of_query(&query), 0);
      assert_int_equal(query.n, i < 2);
      if (i < 2)
        assert_int_equal(query.entries[0].member.len, sizeof member);
    }
    assert_int_equal(server_keys(env->server), 0);
  }
}

/* The scripts are known to the server no more. */
STAND_TEST(scripts_flushed, HIGH_FIRST, EARLIER_FIRST) {
  for (int i = 0; i < 3; i++) {
    for (unsigned n = 0; n < STAND_OPERATIONS; n++) {
      query_t query = {0};
      assert_ends(begin_operation(stand, &query, n), end_of_query(&query), 0);
    }
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
  }
}

static void expect_detail(env_t *env, int error, const char *detail) {
  assert_error(error, BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), detail);
}

STAND_TEST(items_are_checked, HIGH_FIRST, BY_MEMBER) {
  static char long_one[BELAY_RANKING_MEMBER_MAX + 1];
  belay_ranking_t *r = stand->ranking;
  belay_request_t q = {0};
  belay_ranking_score_t item = {{"a", 1}, 0};
  const char *b = "b", *none = "items: NULL, or not 1 to 8192 of them";
#define SUBMIT(mode_, items_, n_)                                                                  \
  belay_ranking_submit(r, &q, belay_bytes(b, 1),                                                   \
                       &(belay_ranking_submission_t){.mode = mode_, .items = items_, .n = n_},     \
                       on_entries)
  expect_detail(env, SUBMIT((belay_ranking_mode_t)3, &item, 1), "mode: not from 0 to 2");
  expect_detail(env, SUBMIT(BELAY_RANKING_SET, NULL, 1), none);
  expect_detail(env, SUBMIT(BELAY_RANKING_SET, &item, 0), none);
  expect_detail(env, SUBMIT(BELAY_RANKING_SET, &item, BELAY_RANKING_ITEMS_MAX + 1), none);
  static const int64_t scores[] = {BELAY_RANKING_SCORE_MAX + 1, BELAY_RANKING_SCORE_MIN - 1,
                                   INT64_MAX, INT64_MIN};
  for (int i = 0; i < 4; i++) {
    item.score = scores[i];
    expect_detail(env, SUBMIT(BELAY_RANKING_SET, &item, 1),
                  "score: not from -9007199254740991 to 9007199254740991");
  }
  item.score = 0;
  const belay_bytes_t wrong[] = {{"", 0}, {NULL, 1}, {long_one, sizeof long_one}};
  for (int i = 0; i < 3; i++) {
    item.member = wrong[i];
    const char *detail = "member: not 1 to 1024 bytes";
    expect_detail(env, SUBMIT(BELAY_RANKING_SET, &item, 1), detail);
    expect_detail(env, belay_ranking_find(r, &q, belay_bytes(b, 1), &wrong[i], 1, on_entries),
                  detail);
    expect_detail(env, belay_ranking_remove(r, &q, belay_bytes(b, 1), &wrong[i], 1, on_count),
                  detail);
    expect_detail(env,
                  belay_ranking_around(r, &q, belay_bytes(b, 1),
                                       &(belay_ranking_around_t){wrong[i], 1, 1}, on_entries),
                  detail);
  }
  none = "members: NULL, or not 1 to 8192 of them";
  expect_detail(env, belay_ranking_find(r, &q, belay_bytes(b, 1), NULL, 1, on_entries), none);
  expect_detail(env, belay_ranking_find(r, &q, belay_bytes(b, 1), wrong, 0, on_entries), none);
  expect_detail(
      env,
      belay_ranking_remove(r, &q, belay_bytes(b, 1), wrong, BELAY_RANKING_ITEMS_MAX + 1, on_count),
      none);
  assert_int_equal(client_stats(env).calls, 0);
}

STAND_TEST(arguments_are_checked, HIGH_FIRST, BY_MEMBER) {
  belay_ranking_t *r = stand->ranking;
  belay_request_t q = {0};
  const char *b = "b";
  const belay_ranking_from_t best = BELAY_RANKING_FROM_BEST;
#define PAGE(...)                                                                                  \
  belay_ranking_page(r, &q, belay_bytes(b, 1), &(belay_ranking_page_t){__VA_ARGS__}, on_entries)
#define RANGE(from, skip, n) PAGE(from, skip, n, false, 0, 0)
#define BY(min, max) PAGE(best, 0, 1, true, min, max)
  expect_detail(env, belay_ranking_page(r, &q, belay_bytes(b, 1), NULL, on_entries), "page: NULL");
  expect_detail(env, belay_ranking_around(r, &q, belay_bytes(b, 1), NULL, on_entries),
                "around: NULL");
  expect_detail(env, RANGE((belay_ranking_from_t)2, 0, 1), "from: not from 0 to 1");
  expect_detail(env, RANGE(best, -1, 1), "skip: not from 0 to 4294967295");
  expect_detail(env, RANGE(best, BELAY_RANKING_SIZE_MAX + 1, 1), "skip: not from 0 to 4294967295");
  expect_detail(env, RANGE(best, 0, 0), "n: not from 1 to 1024");
  expect_detail(env, RANGE(best, 0, BELAY_RANKING_PAGE_MAX + 1), "n: not from 1 to 1024");
  expect_detail(env, RANGE(best, 0, SIZE_MAX), "n: not from 1 to 1024");
  expect_detail(env, belay_ranking_top(r, &q, belay_bytes(b, 1), 0, on_entries),
                "n: not from 1 to 1024");
  expect_detail(env, BY(BELAY_RANKING_SCORE_MIN - 1, 0),
                "min: not from -9007199254740991 to 9007199254740991");
  expect_detail(env, BY(5, 4), "max: not from 5 to 9007199254740991");
  expect_detail(env, BY(5, BELAY_RANKING_SCORE_MAX + 1), "max: not from 5 to 9007199254740991");
  expect_detail(env, belay_ranking_count_by_score(r, &q, belay_bytes(b, 1), 5, 4, on_count),
                "max: not from 5 to 9007199254740991");
  for (int i = 0; i < 3; i++)
    expect_detail(env,
                  belay_ranking_around(r, &q, belay_bytes(b, 1),
                                       &(belay_ranking_around_t){{"a", 1},
                                                                 i == 1 ? 1024 : 1,
                                                                 i == 0   ? 1023
                                                                 : i == 1 ? 0
                                                                          : SIZE_MAX},
                                       on_entries),
                  "before, after: more than 1023 in all");
  for (int i = 0; i < 2; i++)
    expect_detail(env,
                  belay_ranking_trim(r, &q, belay_bytes(b, 1),
                                     i == 0 ? -1 : BELAY_RANKING_SIZE_MAX + 1, on_count),
                  "size: not from 0 to 4294967295");
  assert_int_equal(client_stats(env).calls, 0);
}

STAND_TEST(empty_board_is_refused, HIGH_FIRST, BY_MEMBER) {
  belay_ranking_t *r = stand->ranking;
  belay_request_t q = {0};
  const belay_bytes_t none = {"", 0};
  const belay_ranking_score_t item = {{"a", 1}, 0};
  const belay_bytes_t member = {"a", 1};
  const int no_board[] = {
      belay_ranking_submit(
          r, &q, none,
          &(belay_ranking_submission_t){.mode = BELAY_RANKING_SET, .items = &item, .n = 1},
          on_entries),
      belay_ranking_find(r, &q, none, &member, 1, on_entries),
      belay_ranking_top(r, &q, none, 1, on_entries),
      belay_ranking_page(r, &q, none, &(belay_ranking_page_t){.n = 1}, on_entries),
      belay_ranking_page(r, &q, none, &(belay_ranking_page_t){.n = 1, .by_score = true},
                         on_entries),
      belay_ranking_around(r, &q, none, &(belay_ranking_around_t){{"a", 1}, 1, 1}, on_entries),
      belay_ranking_count(r, &q, none, on_count),
      belay_ranking_count_by_score(r, &q, none, 0, 1, on_count),
      belay_ranking_remove(r, &q, none, &member, 1, on_count),
      belay_ranking_trim(r, &q, none, 1, on_count),
      belay_ranking_clear(r, &q, none, on_count),
  };
  for (size_t i = 0; i < sizeof no_board / sizeof *no_board; i++)
    assert_error(no_board[i], BELAY_EINVAL);
  assert_int_equal(client_stats(env).calls, 0);
}
