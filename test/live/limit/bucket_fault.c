/* Refilled buckets where something goes wrong: answers are lost, keys hold something else,
 * everything is closed. */
#include <stdio.h>

#include "limit/refiller/bucket.h"
#include "support/fixtures/limit/buckets.h"
#include "support/deployments/relay.h"
#include "support/models/scripts.h"

#define KEY "belay::bucket::{tap}"
#define INDEX_KEY KEY "::index"

/* ---- what the keys hold ---- */

static int begin_nth(bucket_t *bucket, bucket_op_t *op, int n) {
  return n == 0   ? begin_fetch(bucket, op, "tap", 1)
         : n == 1 ? begin_add(bucket, op, "tap", 1, 0)
                  : begin_read(bucket, op, "tap");
}

ENV_TEST(garbage_is_left_alone) {
  static const char *const keys[] = {KEY, INDEX_KEY};
  static const char *const texts[] = {"many", "-1", "01", "1.5", "", "9007199254740992"};
  bucket_t bucket;
  bucket_open(&bucket, env, 10, false);
  for (int i = 0; i < 2; i++)
    for (size_t j = 0; j <= sizeof texts / sizeof *texts; j++) {
      bool list = j == sizeof texts / sizeof *texts;
      if (list)
        server_do(env->server, "RPUSH", keys[i], "1", NULL);
      else
        server_do(env->server, "SET", keys[i], texts[j], NULL);
      for (int n = 0; n < 3; n++) {
        bucket_op_t op = {0};
        assert_error(begin_nth(&bucket, &op, n), 0);
        assert_error(end_of_bucket_op(&op), list ? BELAY_EWRONGTYPE : BELAY_EMISMATCH);
        assert_int_equal(server_keys(env->server), 1);
        assert_int_equal(server_integer(env->server, "PTTL", keys[i], NULL), -1);
        if (!list)
          assert_string_equal(server_string(env->server, "GET", keys[i], NULL), texts[j]);
      }
      expect_delete(&bucket, "tap", true, 0);
      expect_add(&bucket, "tap", 1, 0, true, 1, 1); /* it is of use again */
      expect_delete(&bucket, "tap", true, 0);
    }
}

static const char *detail_of_mismatch;

static void keep_detail(bucket_t *bucket) {
  detail_of_mismatch = belay_detail(bucket->env->belay);
}

ENV_TEST(a_mismatch_is_explained) {
  bucket_t bucket;
  bucket_op_t op = {0};
  bucket_open(&bucket, env, 10, false);
  bucket.then = keep_detail;
  server_do(env->server, "SET", KEY, "many", NULL);
  assert_error(begin_read(&bucket, &op, "tap"), 0);
  assert_error(end_of_bucket_op(&op), BELAY_EMISMATCH);
  assert_string_equal(detail_of_mismatch, "belay::bucket::{tap}: it holds no number of tokens");
  server_do(env->server, "DEL", KEY, NULL);
  server_do(env->server, "SET", INDEX_KEY, "many", NULL);
  assert_error(begin_read(&bucket, &op, "tap"), 0);
  assert_error(end_of_bucket_op(&op), BELAY_EMISMATCH);
  assert_string_equal(detail_of_mismatch, "belay::bucket::{tap}: its ::index holds no index");
}

/* ---- lost answers ---- */

static int64_t number_at(env_t *env, const char *key) {
  const char *text = server_string(env->server, "GET", key, NULL);
  return text == NULL ? 0 : atoll(text);
}

/* The server has executed it, and the answer is on its way when the connection is cut. */
static void lose_reply(env_t *env, const char *key, int64_t expected) {
  while (number_at(env, key) != expected)
    uv_run(&env->loop, UV_RUN_NOWAIT);
  relay_cut(env->relay);
  relay_delay(env->relay, 0);
}

RELAY_TEST(an_add_whose_answer_is_lost_adds_once) {
  bucket_t bucket;
  bucket_open(&bucket, env, 1000, false);
  expect_add(&bucket, "tap", 1, 0, true, 1, 1);
  for (int64_t i = 1; i < 6; i++) {
    bucket_op_t op = {0};
    relay_delay(env->relay, RELAY_LONG);
    assert_error(begin_add(&bucket, &op, "tap", 1, i), 0);
    lose_reply(env, INDEX_KEY, i + 1);
    assert_error(end_of_bucket_op(&op), BELAY_EUNKNOWN); /* it was we, and cannot know that */
    expect_read(&bucket, "tap", i + 1, i + 1);
  }
  expect_ttls(env->server);
}

/* The connection is cut, or falls silent, at some time or other. */
RELAY_TEST(an_add_is_done_or_not_known) {
  unsigned known = 0;
  bucket_t bucket;
  bucket_open(&bucket, env, 1000, false);
  expect_add(&bucket, "tap", 1, 0, true, 1, 1);
  for (int64_t i = 1; i < 11; i++) {
    bucket_op_t op = {0};
    relay_delay(env->relay, 20);
    assert_error(begin_add(&bucket, &op, "tap", 1, i), 0);
    env_run_for(env, i % 3 * 13);
    if (i % 5 == 4)
      relay_silence(env->relay);
    else
      relay_cut(env->relay);
    relay_delay(env->relay, 0);
    if (end_of_bucket_op(&op) == 0)
      assert_true(op.state.applied);
    else
      assert_error(op.status, BELAY_EUNKNOWN);
    known += op.status == 0;
    expect_read(&bucket, "tap", i + 1, i + 1);
  }
  assert_true(known > 0);
  expect_ttls(env->server);
}

/* Another one filled it before: the server's first answer would have said so, and the second does
 * not tell. */
RELAY_TEST(add_resent_after_foreign_add) {
  bucket_t bucket;
  bucket_open(&bucket, env, 1000, false);
  expect_add(&bucket, "tap", 5, 0, true, 5, 1);
  bucket_op_t op = {0};
  relay_delay(env->relay, 100);
  assert_error(begin_add(&bucket, &op, "tap", 5, 1), 0);
  server_do(env->server, "SET", INDEX_KEY, "7", "PX", "60000", NULL);
  env_run_for(env, 20);
  relay_cut(env->relay);
  relay_delay(env->relay, 0);
  assert_error(end_of_bucket_op(&op), BELAY_EUNKNOWN);
  expect_read(&bucket, "tap", 5, 7);
  expect_ttls(env->server);
}

RELAY_TEST(a_fetch_is_not_sent_again) {
  bucket_t bucket;
  bucket_open(&bucket, env, 1000, false);
  expect_add(&bucket, "tap", 100, 0, true, 100, 1);
  for (int64_t i = 1; i < 6; i++) {
    bucket_op_t op = {0};
    relay_delay(env->relay, RELAY_LONG);
    assert_error(begin_fetch(&bucket, &op, "tap", 10), 0);
    lose_reply(env, KEY, 100 - 10 * i);
    assert_error(end_of_bucket_op(&op), BELAY_EUNKNOWN);
    expect_read(&bucket, "tap", 100 - 10 * i, 1);
  }
  bucket_op_t op = {0};
  relay_delay(env->relay, RELAY_LONG);
  assert_error(begin_delete(&bucket, &op, "tap"), 0);
  lose_reply(env, KEY, 0);
  assert_error(end_of_bucket_op(&op), BELAY_EUNKNOWN); /* whether there was anything */
  expect_read(&bucket, "tap", 0, 0);
  expect_ttls(env->server);
}

RELAY_TEST(a_read_is_asked_again) {
  bucket_t bucket;
  bucket_open(&bucket, env, 1000, false);
  expect_add(&bucket, "tap", 100, 0, true, 100, 1);
  bucket_op_t op = {0};
  server_pause(env->server);
  assert_error(begin_read(&bucket, &op, "tap"), 0);
  env_run_for(env, 50);
  relay_cut(env->relay);
  server_resume(env->server);
  assert_error(end_of_bucket_op(&op), 0);
  assert_int_equal(op.state.tokens, 100);
  assert_int_equal(op.state.index, 1);
  expect_ttls(env->server);
}

/* ---- closing ---- */

/* A member of a bucket: it ends some time after the request, or at once. */
typedef struct child {
  belay__child_t child;
  belay_bucket_t *bucket;
  unsigned closes;
  bool quick;
} child_t;

static void close_child(belay__child_t *child) {
  child_t *p = BELAY__CONTAINER(child, child_t, child);
  p->closes++;
  if (p->quick)
    belay__handle_detach((belay__handle_t *)p->bucket, child);
}

ENV_TEST(handle_is_freed_after_its_children) {
  for (int how = 0; how < 2; how++) { /* it is closed; the client is */
    bucket_t bucket;
    bucket_open(&bucket, env, 10, false);
    child_t children[4];
    for (int i = 0; i < 4; i++) {
      children[i] = (child_t){.child.close = close_child, .bucket = bucket.handle, .quick = i % 2};
      belay__handle_attach((belay__handle_t *)bucket.handle, &children[i].child);
    }
    uint64_t objects = client_stats(env).objects;
    belay__handle_detach((belay__handle_t *)bucket.handle, &children[3].child); /* before */
    assert_error(how == 0 ? begin_close_bucket(&bucket) : begin_client_close(env), 0);
    env_run_for(env, 30);
    for (int i = 0; i < 4; i++)
      assert_int_equal(children[i].closes, i < 3);
    assert_int_equal(bucket.closed, 0);
    assert_int_equal(client_stats(env).objects, objects);
    belay__handle_detach((belay__handle_t *)bucket.handle, &children[0].child);
    env_run_for(env, 30);
    assert_int_equal(bucket.closed, 0);
    belay__handle_detach((belay__handle_t *)bucket.handle, &children[2].child);
    assert_int_equal(bucket.closed, 0); /* not inside */
    env_until(env, how == 0 ? bucket.closed == 1 : env->client_closed == 1);
  }
}
