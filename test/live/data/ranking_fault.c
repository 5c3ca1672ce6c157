/* Rankings where something goes wrong: answers are lost, keys hold something else or are gone,
 * everything is closed. */
#include <stdio.h>

#include "scripts.gen.h"
#include "support/deployments/relay.h"
#include "support/models/scripts.h"
#include "support/fixtures/data/stands.h"

static env_t *open_with_digest(void) {
  return env_open_with(server_with_digest(), NULL);
}

static char detail[256];

static void keep_detail(stand_t *stand) {
  snprintf(detail, sizeof detail, "%s", belay_detail(stand->env->belay));
}

/* All operations end like that and leave everything as it is; but a clear, which makes it of use
 * again. */
static void expect_all_to_fail(stand_t *stand, int error, const char *why) {
  server_t *server = stand->env->server;
  uint64_t digest = server_digest(server);
  stand->then = keep_detail;
  for (unsigned n = 0; n < STAND_OPERATIONS - 1; n++) {
    query_t query = {0};
    assert_ends(begin_operation(stand, &query, n), end_of_query(&query), error);
    if (strncmp(detail, why, strlen(why)) != 0)
      fail_msg("\"%s\" does not begin with \"%s\"", detail, why);
    assert_true(server_digest(server) == digest);
  }
  query_t query = {0};
  assert_ends(begin_operation(stand, &query, STAND_OPERATIONS - 1), end_of_query(&query), 0);
  assert_int_equal(server_keys(server), 0);
  expect_submit(stand, BELAY_RANKING_SET, "ada", 7, "0 ada 7!");
}

TEST_IN(wrong_type_is_left_unchanged, env, open_with_digest()) {
  static const char *const keys[] = {STAND_KEY, STAND_TIMED, STAND_TURNS};
  for (int i = 0; i < 3; i++) {
    stand_t stand;
    stand_new(&stand, env, BELAY_RANKING_HIGH_FIRST,
              i == 0 ? BELAY_RANKING_BY_MEMBER : BELAY_RANKING_EARLIER_FIRST);
    server_do(env->server, "FLUSHALL", NULL);
    server_do(env->server, "SET", keys[i], "text", NULL);
    expect_all_to_fail(&stand, BELAY_EWRONGTYPE,
                       i == 0 ? STAND_KEY ": WRONG" : STAND_TIMED ": WRONG");
  }
}

TEST_IN(other_order_or_ties, env, open_with_digest()) {
  stand_t early, late;
  stand_new(&early, env, BELAY_RANKING_HIGH_FIRST, BELAY_RANKING_EARLIER_FIRST);
  stand_new(&late, env, BELAY_RANKING_HIGH_FIRST, BELAY_RANKING_LATER_FIRST);
  expect_submit(&late, BELAY_RANKING_SET, "ada", 7, "0 ada 7!");
  expect_all_to_fail(&early, BELAY_EMISMATCH, STAND_TIMED ": it has another order, or other ties");
  static const char *const heads[] = {"", "1", "high-earlier", "high-earlier x", "high-earlier 1 "};
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
    server_do(env->server, "HSET", STAND_TURNS, "", heads[i], NULL);
    expect_all_to_fail(&early, BELAY_EMISMATCH, STAND_TIMED ": its ::turns are none");
  }
}

/* One of the two keys was evicted, or a part of it is gone. */
TEST_IN(lost_key_or_member, env, open_with_digest()) {
  stand_t stand;
  stand_new(&stand, env, BELAY_RANKING_HIGH_FIRST, BELAY_RANKING_EARLIER_FIRST);
  for (int how = 0; how < 4; how++) {
    if (how > 0)
      expect_submit(&stand, BELAY_RANKING_SET, "bob", 7, "1 bob 7!");
    else
      expect_submit(&stand, BELAY_RANKING_SET, "ada", 7, "0 ada 7!");
    if (how < 2)
      server_do(env->server, "DEL", how == 0 ? STAND_TIMED : STAND_TURNS, NULL);
    else if (how == 2)
      server_do(env->server, "HDEL", STAND_TURNS, "bob", NULL);
    else
      server_do(env->server, "ZREMRANGEBYRANK", STAND_TIMED, "0", "0", NULL);
    expect_all_to_fail(&stand, BELAY_ELOST, "");
  }
}

/* The expected number of members, but others: a question about an absent member is answered as
 * such. */
TEST_IN(replaced_member, env, open_with_digest()) {
  stand_t stand;
  stand_new(&stand, env, BELAY_RANKING_HIGH_FIRST, BELAY_RANKING_EARLIER_FIRST);
  expect_submit(&stand, BELAY_RANKING_SET, "ada", 7, "0 ada 7!");
  server_do(env->server, "DEL", STAND_TIMED, NULL);
  server_do(env->server, "ZADD", STAND_TIMED, "7", "foreign", NULL);
  for (unsigned n = 0; n < 8; n++) {
    query_t query = {0};
    assert_ends(begin_operation(&stand, &query, n), end_of_query(&query),
                n < 4 || n == 7 ? BELAY_ELOST : BELAY_EMISMATCH);
  }
}

TEST_IN(foreign_score_is_left_unchanged, env, open_with_digest()) {
  static const char *const scores[] = {"1.5", "inf", "-inf", "9007199254740992", "1e300"};
  stand_t stand;
  stand_new(&stand, env, BELAY_RANKING_HIGH_FIRST, BELAY_RANKING_BY_MEMBER);
  stand.then = keep_detail;
  for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
    server_do(env->server, "ZADD", STAND_KEY, scores[i], "ada", NULL);
    uint64_t digest = server_digest(env->server);
    for (unsigned n = 0; n < 8; n++) {
      query_t query = {0};
      if (n == 6) /* by score: it has none from 0 to 100, but the first */
        continue;
      assert_ends(begin_operation(&stand, &query, n), end_of_query(&query), BELAY_EMISMATCH);
      assert_string_equal(detail,
                          STAND_KEY ": it holds a score that is no whole number within 2^53");
      assert_true(server_digest(env->server) == digest);
    }
  }
}

STAND_TEST(turns_overflow, HIGH_FIRST, EARLIER_FIRST) {
  expect_submit(stand, BELAY_RANKING_SET, "ada", 7, "0 ada 7!");
  server_do(env->server, "HSET", STAND_TURNS, "", "high-earlier 9007199254740989", NULL);
  expect_submit(stand, BELAY_RANKING_SET, "bob", 7, "1 bob 7!");
  expect_submit(stand, BELAY_RANKING_SET, "eve", 7, "2 eve 7!");
  query_t query = {0};
  assert_ends(begin_submit(stand, &query, BELAY_RANKING_SET, "zoe", 7), end_of_query(&query),
              BELAY_EOVERFLOW);
  expect_all(stand, "0 ada 7, 1 bob 7, 2 eve 7");
}

/* The two kinds have keys of their own. */
ENV_TEST(tie_kinds_have_own_keys) {
  stand_t plain, timed;
  stand_new(&plain, env, BELAY_RANKING_HIGH_FIRST, BELAY_RANKING_BY_MEMBER);
  stand_new(&timed, env, BELAY_RANKING_HIGH_FIRST, BELAY_RANKING_EARLIER_FIRST);
  expect_submit(&plain, BELAY_RANKING_SET, "ada", 7, "0 ada 7!");
  expect_submit(&timed, BELAY_RANKING_SET, "bob", 7, "0 bob 7!");
  expect_all(&plain, "0 ada 7");
  expect_all(&timed, "0 bob 7");
  server_do(env->server, "FLUSHALL", NULL);
  expect_all(&plain, "");
  expect_all(&timed, "");
  expect_submit(&timed, BELAY_RANKING_ADD, "bob", 7, "0 bob 7!");
}

/* It is executed, and the connection is cut before the answer comes. */
TEST(lost_replies) {
  for (unsigned ties = 0; ties < 2; ties++) {
    env_t *env = env_open_relayed(NULL);
    stand_t stand;
    stand_new(&stand, env, BELAY_RANKING_HIGH_FIRST, (belay_ranking_ties_t)ties);
    expect_submit(&stand, BELAY_RANKING_SET, "ada", 1, "0 ada 1!");
    expect_submit(&stand, BELAY_RANKING_SET, "bob", 50, "0 bob 50!");
    int64_t score = 1;
    for (unsigned n = 0; n < STAND_OPERATIONS; n++) {
      query_t query = {0};
      relay_delay(env->relay, RELAY_LONG);
      int64_t looks = 1, before = server_commands(env->server);
      assert_error(begin_operation(&stand, &query, n), 0);
      for (; server_commands(env->server) == before + looks; looks++) /* each is a command too */
        uv_run(&env->loop, UV_RUN_NOWAIT);
      relay_cut(env->relay);
      relay_delay(env->relay, 0);
      assert_error(end_of_query(&query), OPERATION_IS_SENT_AGAIN(n) ? 0 : BELAY_EUNKNOWN);
      score = n == 0 ? 7 : n == 1 ? 14 : score; /* once */
      if (n < 9) {
        char text[64];
        snprintf(text, sizeof text, "0 bob 50, 1 ada %lld", (long long)score);
        expect_all(&stand, text);
      }
    }
    assert_int_equal(server_keys(env->server), 0);
    expect_ttls(env->server);
    env_close(env);
  }
}

/* A request that is too large is refused before anything is sent: the client's limit of bytes. */
ENV_TEST_OF(request_beyond_max_bytes, o.max_bytes = 65536) {
  stand_t stand;
  stand_new(&stand, env, BELAY_RANKING_HIGH_FIRST, BELAY_RANKING_BY_MEMBER);
  static char member[BELAY_RANKING_MEMBER_MAX];
  belay_ranking_score_t items[100];
  belay_bytes_t members[100];
  for (int i = 0; i < 100; i++) {
    members[i] = (belay_bytes_t){member, sizeof member};
    items[i] = (belay_ranking_score_t){members[i], i};
  }
  query_t query = {0};
  belay_ranking_t *r = stand.ranking;
  belay_request_t *q = &query.request;
  for (int i = 0; i < 2; i++) {
    assert_error(belay_ranking_submit(r, q, BOARD,
                                      &(belay_ranking_submission_t){
                                          .mode = BELAY_RANKING_SET, .items = items, .n = 100},
                                      on_entries),
                 BELAY_EBUSY);
    assert_error(belay_ranking_find(r, q, BOARD, members, 100, on_entries), BELAY_EBUSY);
    assert_error(belay_ranking_remove(r, q, BOARD, members, 100, on_count), BELAY_EBUSY);
  }
  expect_submit(&stand, BELAY_RANKING_SET, "ada", 7, "0 ada 7!");
}
