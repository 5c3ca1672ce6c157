/* Presence where something goes wrong: answers are lost, keys hold something else, everything is
 * closed. */
#include <stdio.h>

#include "support/models/scripts.h"
#include "support/fixtures/data/seen.h"

#define PREFIX "belay::presence::{site}::"
#define SEGMENT BELAY__PRESENCE_SEGMENT

enum { SET, SETS, CLEAR, CLEARS, IS, ARE, COUNT, RESET, OPERATIONS };

static belay_presence_t *site(env_t *env, int64_t window_ms, int64_t ttl_ms) {
  belay_presence_t *presence;
  belay_presence_options_t o;
  belay_presence_options_init(&o);
  o.name = belay_string("site");
  o.max_id = 20 * SEGMENT - 1;
  o.window_ms = window_ms;
  o.ttl_ms = ttl_ms;
  assert_error(belay_presence_new(env->client, &o, &presence), 0);
  return presence;
}

/* Begins the n-th operation. */
static int begin(env_t *env, belay_presence_t *p, seen_t *seen, int n) {
  static const uint32_t ids[] = {3, SEGMENT, 12 * SEGMENT + 1, 4};
  belay_request_t *r = seen_begin(env, seen);
  switch (n) {
  case SET:
    return seen_begun(seen, belay_presence_set(p, r, 3, on_seen));
  case SETS:
    return seen_begun(seen, belay_presence_set_many(p, r, ids, 4, on_seen));
  case CLEAR:
    return seen_begun(seen, belay_presence_clear(p, r, 3, on_seen));
  case CLEARS:
    return seen_begun(seen, belay_presence_clear_many(p, r, ids, 4, on_seen));
  case IS:
    return seen_begun(seen, belay_presence_is(p, r, 3, on_seen_is));
  case ARE:
    return seen_begun(seen, belay_presence_is_many(p, r, ids, 4, on_seen_is));
  case COUNT:
    return seen_begun(seen, belay_presence_count(p, r, on_seen_count));
  default:
    return seen_begun(seen, belay_presence_reset(p, r, on_seen));
  }
}

/* The key of the first segment, in the present slice. */
static void first_key(belay_presence_t *p, char *out, size_t size) {
  if (p->options.window_ms == 0)
    snprintf(out, size, PREFIX "0");
  else
    snprintf(out, size, PREFIX "%lld::0",
             (long long)(belay__servertime_ms(&p->time, &p->handle) / p->slice_ms));
}

static void learn(env_t *env, belay_presence_t *p) {
  seen_t seen = {0};
  assert_ends(begin(env, p, &seen, IS), end_of_seen(&seen), 0);
}

ENV_TEST(wrong_type_is_left_unchanged) {
  for (int how = 0; how < 3; how++) {
    belay_presence_t *p = site(env, how == 2 ? 86400000 : 0, how == 1 ? 0 : 60000);
    char key[64];
    learn(env, p);
    first_key(p, key, sizeof key);
    server_do(env->server, "RPUSH", key, "1", NULL);
    for (int n = 0; n < RESET; n++) {
      seen_t seen = {0};
      assert_ends(begin(env, p, &seen, n), end_of_seen(&seen), BELAY_EWRONGTYPE);
      if (how < 2) /* of several the first is named */
        assert_memory_equal(seen.detail, key, strlen(key));
      assert_int_equal(server_integer(env->server, "LLEN", key, NULL), 1);
      assert_int_equal(server_integer(env->server, "PTTL", key, NULL), -1);
    }
    server_do(env->server, "FLUSHALL", NULL);
  }
}

ENV_TEST(too_long_bitmap_and_foreign_union) {
  seen_t seen = {0};
  char key[64];
  belay_presence_t *plain = site(env, 0, 0), *window = site(env, 86400000, 0);
  static char ones[(1 << 20) + 8]; /* more bits than a segment has */
  memset(ones, 0xff, sizeof ones);
  const resp_words_t words = {3, {"SET", PREFIX "0", ones}, {3, sizeof PREFIX, sizeof ones}};
  assert_int_equal(server_ask_words(env->server, &words)->type, RESP_STATUS);
  assert_ends(begin(env, plain, &seen, COUNT), end_of_seen(&seen), BELAY_EMISMATCH);
  assert_string_equal(seen.detail, PREFIX "0: it is longer than a segment");
  server_do(env->server, "FLUSHALL", NULL);
  for (int i = 0; i < 2; i++) { /* in two slices, so that a union is made */
    assert_ends(begin(env, window, &seen, SET), end_of_seen(&seen), 0);
    first_key(window, key, sizeof key);
    window->time.shift_us += INT64_C(21600000000);
  }
  server_do(env->server, "SET", PREFIX "union", "mine", NULL);
  assert_ends(begin(env, window, &seen, COUNT), end_of_seen(&seen), BELAY_EMISMATCH);
  assert_string_equal(seen.detail, PREFIX "union: it is where unions are made for a moment");
  assert_string_equal(server_string(env->server, "GET", PREFIX "union", NULL), "mine");
  server_do(env->server, "DEL", PREFIX "union", NULL);
  static const char *const rights[] = {"-unlink", "-bitop", "-bitcount"};
  for (int i = 0; i < 3; i++) {
    server_do(env->server, "ACL", "SETUSER", "default", rights[i], NULL);
    assert_ends(begin(env, window, &seen, COUNT), end_of_seen(&seen), BELAY_EPERM);
    server_do(env->server, "ACL", "SETUSER", "default", "+@all", NULL);
    assert_int_equal(server_integer(env->server, "EXISTS", PREFIX "union", NULL), 0);
  }
  assert_ends(begin(env, window, &seen, COUNT), end_of_seen(&seen), 0);
  assert_int_equal(seen.counts[0], 1);
}

/* The data are lost, the scripts are not: no user is online. */
ENV_TEST(flushed_server) {
  belay_presence_t *p = site(env, 60000, 0);
  seen_t seen = {0};
  for (int i = 0; i < 2; i++) {
    assert_ends(begin(env, p, &seen, SETS), end_of_seen(&seen), 0);
    assert_ends(begin(env, p, &seen, COUNT), end_of_seen(&seen), 0);
    assert_int_equal(seen.counts[0], 4);
    expect_ttls(env->server);
    server_do(env->server, "FLUSHALL", NULL);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    assert_ends(begin(env, p, &seen, COUNT), end_of_seen(&seen), 0);
    assert_int_equal(seen.counts[0], 0);
  }
}

RELAY_TEST(lost_replies) {
  for (int window = 0; window < 2; window++) {
    belay_presence_t *p = site(env, window ? 86400000 : 0, 60000);
    const char *const commands[OPERATIONS] = {"bitfield",    "bitfield",    "bitfield", "strlen",
                                              "bitfield_ro", "bitfield_ro", "bitcount", "unlink"};
    const int64_t calls[OPERATIONS] = {
        1, 3, 1, window ? 21 : 3, window ? 6 : 1, window ? 18 : 3, window ? 1 : 4, 1};
    const int64_t online[OPERATIONS] = {1, 4, 3, 0, 0, 0, 0, 0};
    learn(env, p);
    for (int n = 0; n < OPERATIONS; n++) {
      seen_t seen = {0};
      if (n == IS || n == ARE || n == COUNT) {
        assert_ends(begin(env, p, &seen, n == IS ? SET : SETS), end_of_seen(&seen), 0);
      }
      int64_t before = server_calls(env->server, commands[n]);
      relay_delay(env->relay, 80);
      assert_error(begin(env, p, &seen, n), 0);
      seen_lose_answer(env, commands[n], before + calls[n]);
      assert_error(end_of_seen(&seen), 0);
      assert_true(server_calls(env->server, commands[n]) > before + calls[n] ||
                  n == CLEAR); /* it is clear by then, but looked at again */
      if (n == IS || n == ARE)
        assert_int_equal(seen.online_len, seen.n);
      if (n == COUNT)
        assert_int_equal(seen.counts[0], 4);
      if (n <= CLEARS || n == RESET) {
        assert_ends(begin(env, p, &seen, COUNT), end_of_seen(&seen), 0);
        assert_int_equal(seen.counts[0], online[n]);
      }
    }
    assert_int_equal(server_keys(env->server), 0);
  }
}

/* The possible error of the server's time is half the delay of its reply. After a late reply the
 * client asks again sooner. */
RELAY_TEST(late_time_reply_is_asked_again_sooner) {
  belay_presence_t *p = site(env, 60000, 0);
  for (int late = 1; late >= 0; late--) {
    p->time.learnt = 0;
    relay_delay(env->relay, late ? 60 : 0);
    learn(env, p);
    int64_t off = belay__servertime_ms(&p->time, &p->handle) - server_now_ms(env->server);
    assert_between(off, -100 * slow(), 100 * slow());
    uint64_t left = p->time.ask_at - belay__now(env->belay);
    if (late || left < UINT64_C(6000) * MS) /* or this machine is slow */
      assert_true(left <= UINT64_C(5000) * MS);
    else
      assert_true(left > UINT64_C(50000) * MS);
  }
}
