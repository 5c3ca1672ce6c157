/* Buckets that a pattern finds. */
#include <stdio.h>

#include "support/fixtures/limit/refillers.h"

#define CAPACITY INT64_C(1000000)

typedef struct scene {
  bed_t *bed;
  pail_t pail;
  hand_t hand;
} scene_t;

/* Skips the test where there are no patterns. */
static belay_refiller_options_t pattern_options(const char *pattern) {
  if (deployment_is_cluster())
    skip();
  belay_refiller_options_t options = refiller_options("me", 1, 20);
  options.pattern = pattern;
  options.pattern_len = strlen(pattern);
  options.sweep_ms = 100;
  return options;
}

static void scene_open(scene_t *s, const char *pattern, const belay_client_options_t *client) {
  belay_refiller_options_t options = pattern_options(pattern);
  *s = (scene_t){.bed = bed_open(client)};
  pail_new(&s->pail, s->bed, CAPACITY, false);
  hand_new(&s->hand, &s->pail, &options);
}

static int64_t index_of(pail_t *pail, const char *key) {
  dip_t dip = {0};
  assert_error(begin_read(pail, &dip, key), 0);
  assert_error(end_of_dip(&dip), 0);
  return dip.state.index;
}

static void await_index(pail_t *pail, const char *key, int64_t index) {
  int64_t begun = clock_now();
  while (index_of(pail, key) < index) {
    if (clock_since_ms(begun) > 10000 * slow())
      fail_msg("%s is not filled", key);
    bed_run_for(pail->bed, 5);
  }
}

static void one_token(pail_t *pail, const char *key) {
  expect_add(pail, key, 1, 0, true, 1, 1);
}

static size_t keys_of(const scene_t *s) {
  return hand_stats(&s->hand).keys;
}

/* ---- what is found --------------------------------------------------------------------------------------- */

static const struct {
  const char *pattern;
  const char *found[8], *other[8];
} rows[] = {
    {"user:*",
     {"user:", "user:1", "user::2", "user:{a}%", "user:\x01*"},
     {"user", "users:1", "xuser:1"}},
    {"?", {"a", ":", "%", "{", "}", "*", "\x7f"}, {"ab", "::", "%3A"}},
    {"[:{x]-\\*", {":-*", "{-*", "x-*"}, {"y-*", "x-a", "%3A-*"}},
    {":a\\:", {":a:"}, {"a", ":a", "a:"}},
    {"{*}", {"{}", "{x}", "{}}"}, {"{", "x", "%7B%7D"}},
    {"*[^a]%\\?", {"x%?", "::%?"}, {"a%?", "x%x"}},
};

/* Namespace and name have what patterns are made of, too; and others have keys that these would match. */
static void test_only_what_matches_is_found(void **state) {
  (void)state;
  static const char *const strange[] = {"a*b", "[x]?"}, *const like[] = {"aZZb", "x?"};
  belay_client_options_t options = client_options();
  belay_bucket_options_t bucket = bucket_options(CAPACITY, false), similar = bucket;
  options.namespace_parts = strange;
  options.namespace_count = 2;
  bucket.name = "q\\?*-^]";
  bucket.name_len = strlen(bucket.name);
  similar.name = "q\\zzz-^]";
  similar.name_len = strlen(similar.name);
  bed_t *bed = bed_open(&options);
  options.namespace_parts = like;
  belay_client_t *neighbour = bed_connect(bed, server_url(bed->server), &options);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    pail_t pail, others[2];
    hand_t hand = {0};
    size_t found = 0, all = 0;
    server_do(bed->server, "FLUSHALL", NULL);
    pail_of(&pail, bed, bed->client, &bucket);
    pail_of(&others[0], bed, neighbour, &bucket);
    pail_of(&others[1], bed, bed->client, &similar);
    for (; rows[i].found[found] != NULL; found++)
      one_token(&pail, rows[i].found[found]);
    for (size_t j = 0; rows[i].other[j] != NULL; j++, all++)
      one_token(&pail, rows[i].other[j]);
    all += found;
    for (int j = 0; j < 2; j++)
      one_token(&others[j], rows[i].found[0]);
    belay_refiller_options_t o = pattern_options(rows[i].pattern);
    hand_new(&hand, &pail, &o);
    for (size_t j = 0; j < found; j++)
      await_index(&pail, rows[i].found[j], 2);
    assert_int_equal(hand_stats(&hand).keys, found);
    close_hand(&hand);
    for (size_t j = 0; rows[i].other[j] != NULL; j++)
      assert_int_equal(index_of(&pail, rows[i].other[j]), 1);
    for (int j = 0; j < 2; j++)
      assert_int_equal(index_of(&others[j], rows[i].found[0]), 1);
    bed_settle(bed);
    assert_int_equal(server_keys(bed->server), 2 * (all + 2));
    for (int j = 0; j < 2; j++)
      assert_error(begin_close_pail(&others[j]), 0);
    assert_error(begin_close_pail(&pail), 0);
    bed_until(bed, pail.closed == 1 && others[0].closed == 1 && others[1].closed == 1);
  }
  bed_close(bed);
}

/* ---- what becomes of it ---------------------------------------------------------------------------------- */

static void test_what_is_gone_is_dropped(void **state) {
  (void)state;
  scene_t s;
  scene_open(&s, "a*", NULL);
  one_token(&s.pail, "a1");
  one_token(&s.pail, "a2");
  hand_add(&s.hand, "a3", 0); /* by hand */
  hand_add(&s.hand, "b", 0);
  bed_until(s.bed, keys_of(&s) == 4);
  hand_add(&s.hand, "a2", 7); /* found, and by hand then */
  server_do(s.bed->server, "SET", "belay::bucket::{a4}::index", "5", NULL); /* an index is enough */
  server_do(s.bed->server, "SET", "belay::bucket::{a5}", "5", NULL);        /* or tokens are */
  server_do(s.bed->server, "SET", "belay::bucket::{a6}::other", "5", NULL);
  server_do(s.bed->server, "SET", "belay::bucket::{a7", "5", NULL);
  server_do(s.bed->server, "SET", "belay::bucket::{a%8}", "5", NULL);
  bed_until(s.bed, keys_of(&s) == 6);
  await_index(&s.pail, "a4", 6);
  await_index(&s.pail, "a5", 1);
  server_do(s.bed->server, "DEL", "belay::bucket::{a%8}", NULL);
  server_do(s.bed->server, "DEL", "belay::bucket::{a7", NULL);
  server_do(s.bed->server, "DEL", "belay::bucket::{a6}::other", NULL);
  /* It is filled again and again, and so there again: only who forgets it at the right moment is rid of it. */
  for (int i = 0; i < 500 && keys_of(&s) > 3; i++) {
    server_do(s.bed->server, "FLUSHALL", NULL);
    bed_run_for(s.bed, 10);
  }
  assert_int_equal(keys_of(&s), 3);
  bed_close(s.bed);
}

static void test_what_was_removed_comes_back(void **state) {
  (void)state;
  scene_t s;
  scene_open(&s, "*", NULL);
  one_token(&s.pail, "a");
  for (int i = 0; i < 3; i++) {
    bed_until(s.bed, keys_of(&s) == 1);
    assert_error(belay_refiller_remove(s.hand.refiller, "a", 1), 0);
    assert_int_equal(keys_of(&s), 0);
  }
  hand_add(&s.hand, "a", 0); /* what it was found as does not count any more */
  bed_run_for(s.bed, 150 * slow());
  assert_int_equal(keys_of(&s), 1);
  bed_close(s.bed);
}

/* ---- how it is looked for -------------------------------------------------------------------------------- */

/* Cursor by cursor, and no reply is larger than a client reads; what is found once stays, whatever becomes of a sweep. */
static void test_many_keys_are_found_little_by_little(void **state) {
  (void)state;
  needs_one_process("keys in one place");
  enum { KEYS = 400 };
  static const char fill[] = "for i = 1, ARGV[1] do redis.call('SET', 'belay::bucket::{' .. "
                             "string.rep('k', 900) .. i .. '}', 1) end return 1";
  belay_client_options_t options = client_options();
  options.max_reply = 65536;
  server_t *server = server_start(NULL);
  server_do(server, "EVAL", fill, "0", "400", NULL);
  bed_t *bed = bed_open_with(server, &options);
  scene_t s = {.bed = bed};
  belay_refiller_options_t o = pattern_options("kkk*");
  o.period_ms = 60000;
  pail_new(&s.pail, bed, CAPACITY, false);
  hand_new(&s.hand, &s.pail, &o);
  bed_until(bed, keys_of(&s) == KEYS);
  int64_t scans = server_calls(server, "scan");
  assert_between(scans, KEYS / 64, 4 * KEYS);
  bed_until(bed, server_calls(server, "scan") > scans + 20);
  assert_int_equal(keys_of(&s), KEYS);
  assert_int_equal(client_stats(bed).drops, 0);
  /* A cursor of another server's says nothing about this one's keys. */
  server_restart_keeping(server);
  bed_until(bed, keys_of(&s) < KEYS || server_calls(server, "scan") > scans);
  assert_int_equal(keys_of(&s), KEYS);
  bed_close(bed);
}

/* Where nothing may be looked for, what was found stays; and what was added is filled. */
static void test_a_sweep_that_fails_drops_nothing(void **state) {
  (void)state;
  scene_t s;
  scene_open(&s, "a*", NULL);
  one_token(&s.pail, "a1");
  bed_until(s.bed, keys_of(&s) == 1);
  server_do(s.bed->server, "ACL", "SETUSER", "default", "-scan", NULL);
  int64_t at = index_of(&s.pail, "a1");
  bed_run_for(s.bed, 250);
  assert_int_equal(keys_of(&s), 1);
  await_index(&s.pail, "a1", at + 3);
  one_token(&s.pail, "a2");
  server_do(s.bed->server, "ACL", "SETUSER", "default", "+scan", NULL);
  bed_until(s.bed, keys_of(&s) == 2);
  bed_close(s.bed);
}

/* And is tried again soon, however seldom it is looked. */
static void test_a_sweep_that_failed_is_made_again(void **state) {
  (void)state;
  belay_refiller_options_t options = pattern_options("a*");
  options.sweep_ms = 86400000;
  scene_t s = {.bed = bed_open(NULL)};
  server_do(s.bed->server, "ACL", "SETUSER", "default", "-scan", NULL);
  pail_new(&s.pail, s.bed, CAPACITY, false);
  one_token(&s.pail, "a1");
  hand_new(&s.hand, &s.pail, &options);
  bed_until(s.bed, client_stats(s.bed).refused > 0);
  assert_true(s.bed->warnings > 0);
  server_do(s.bed->server, "ACL", "SETUSER", "default", "+scan", NULL);
  bed_until(s.bed, keys_of(&s) == 1);
  bed_close(s.bed);
}

/* Who is not elected does not look. */
static void test_who_waits_does_not_look(void **state) {
  (void)state;
  scene_t s;
  scene_open(&s, "*", NULL);
  one_token(&s.pail, "a");
  bed_until(s.bed, keys_of(&s) == 1);
  hand_t second = {0};
  belay_refiller_options_t options = pattern_options("*");
  hand_new(&second, &s.pail, &options);
  bed_run_for(s.bed, 250);
  assert_int_equal(hand_stats(&second).keys, 0);
  close_hand(&s.hand);
  bed_until(s.bed, second.elected == 1);
  bed_until(s.bed, hand_stats(&second).keys == 1);
  close_hand(&second);
  int64_t scans = server_calls(s.bed->server, "scan");
  bed_run_for(s.bed, 200);
  assert_int_equal(server_calls(s.bed->server, "scan"), scans);
  bed_close(s.bed);
}

/* In any state of a sweep. */
static void test_it_is_closed_at_any_time(void **state) {
  (void)state;
  for (int ms = 0; ms < 60; ms += 10)
    for (int how = 0; how < 2; how++) {
      scene_t s;
      scene_open(&s, "*", NULL);
      for (int i = 0; i < 20; i++) {
        char key[32];
        snprintf(key, sizeof key, "belay::bucket::{%d}", i);
        server_do(s.bed->server, "SET", key, "1", NULL);
      }
      bed_run_for(s.bed, ms);
      if (how == 0)
        close_hand(&s.hand);
      bed_close(s.bed);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_only_what_matches_is_found),
      cmocka_unit_test(test_what_is_gone_is_dropped),
      cmocka_unit_test(test_what_was_removed_comes_back),
      cmocka_unit_test(test_many_keys_are_found_little_by_little),
      cmocka_unit_test(test_a_sweep_that_fails_drops_nothing),
      cmocka_unit_test(test_a_sweep_that_failed_is_made_again),
      cmocka_unit_test(test_who_waits_does_not_look),
      cmocka_unit_test(test_it_is_closed_at_any_time),
  };
  return cmocka_run_group_tests_name("refiller_sweep", tests, NULL, NULL);
}
