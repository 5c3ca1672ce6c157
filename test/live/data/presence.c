/* Presence: bits that are set, cleared, asked for and counted; over segments, and in slices that
 * end by themselves. */
#include <stdio.h>

#include "support/models/scripts.h"
#include "support/fixtures/data/seen.h"

#define PREFIX "belay::presence::{site}::"
#define SEGMENT BELAY__PRESENCE_SEGMENT

static belay_presence_options_t usual(void) {
  belay_presence_options_t options;
  belay_presence_options_init(&options);
  options.name = belay_string("site");
  return options;
}

static belay_presence_t *site(env_t *env, uint32_t max_id, int64_t window_ms, uint32_t slices) {
  belay_presence_t *presence;
  belay_presence_options_t o = usual();
  o.max_id = max_id;
  o.window_ms = window_ms;
  o.slices = slices;
  int error = belay_presence_new(env->client, &o, &presence);
  if (error != 0)
    fail_msg("belay_presence_new: %s: %s", belay_strerror(error), belay_detail(env->belay));
  return presence;
}

static void set(env_t *env, belay_presence_t *p, uint32_t id) {
  seen_t seen = {0};
  seen_ok(env, &seen, belay_presence_set(p, r_, id, on_seen));
}

static void clear(env_t *env, belay_presence_t *p, uint32_t id) {
  seen_t seen = {0};
  seen_ok(env, &seen, belay_presence_clear(p, r_, id, on_seen));
}

static bool is(env_t *env, belay_presence_t *p, uint32_t id) {
  seen_t seen = {0};
  seen_ok(env, &seen, belay_presence_is(p, r_, id, on_seen_is));
  assert_int_equal(seen.n, 1);
  return seen.online[0];
}

static int64_t count(env_t *env, belay_presence_t *p) {
  seen_t seen = {0};
  seen_ok(env, &seen, belay_presence_count(p, r_, on_seen_count));
  return seen.counts[0];
}

static void reset(env_t *env, belay_presence_t *p) {
  seen_t seen = {0};
  seen_ok(env, &seen, belay_presence_reset(p, r_, on_seen));
}

ENV_TEST(set_clear_is_count) {
  belay_presence_t *p = site(env, 1000, 0, 4);
  assert_false(is(env, p, 7));
  assert_int_equal(count(env, p), 0);
  clear(env, p, 7);
  assert_int_equal(server_keys(env->server), 0); /* that makes nothing */
  set(env, p, 7);
  set(env, p, 7);
  set(env, p, 1000);
  set(env, p, 0);
  assert_true(is(env, p, 7) && is(env, p, 0) && is(env, p, 1000) && !is(env, p, 8));
  assert_int_equal(count(env, p), 3);
  clear(env, p, 7);
  clear(env, p, 999);
  assert_true(!is(env, p, 7) && count(env, p) == 2);
  const uint32_t ids[] = {5, 0, 1000, 5, 7, 999, 0};
  seen_t seen = {0};
  seen_ok(env, &seen, belay_presence_is_many(p, r_, ids, 7, on_seen_is));
  static const bool before[] = {false, true, true, false, false, false, true};
  assert_memory_equal(seen.online, before, sizeof before);
  seen_ok(env, &seen, belay_presence_set_many(p, r_, ids, 7, on_seen));
  seen_ok(env, &seen, belay_presence_is_many(p, r_, ids, 7, on_seen_is));
  assert_true(seen.n == 7 && seen.online_len == 7);
  assert_int_equal(count(env, p), 5);
  seen_ok(env, &seen, belay_presence_clear_many(p, r_, ids, 4, on_seen));
  assert_int_equal(count(env, p), 2);
  assert_int_equal(server_keys(env->server), 1);
  assert_int_equal(server_integer(env->server, "GETBIT", PREFIX "0", "999", NULL), 1);
  assert_int_equal(server_calls(env->server, "time"), 0);
  reset(env, p);
  assert_int_equal(server_keys(env->server), 0);
}

ENV_TEST(ttl_without_window) {
  belay_presence_options_t options = usual();
  belay_presence_t *day = site(env, 1000, 0, 1), *eternal;
  options.ttl_ms = 0;
  assert_error(belay_presence_new(env->client, &options, &eternal), 0);
  set(env, day, 1);
  assert_between(server_integer(env->server, "PTTL", PREFIX "0", NULL), 86340000, 86400000);
  server_do(env->server, "PEXPIRE", PREFIX "0", "50000", NULL);
  clear(env, day, 1);
  assert_true(!is(env, day, 1) && count(env, day) == 0);
  assert_between(server_integer(env->server, "PTTL", PREFIX "0", NULL), 1, 50000);
  set(env, eternal, 2); /* does not shorten it, or make it longer */
  assert_between(server_integer(env->server, "PTTL", PREFIX "0", NULL), 1, 50000);
  set(env, day, 1);
  assert_between(server_integer(env->server, "PTTL", PREFIX "0", NULL), 86340000, 86400000);
  assert_int_equal(count(env, eternal), 2);
  reset(env, eternal);
  int64_t scripts = server_calls(env->server, "evalsha") + server_calls(env->server, "eval");
  set(env, eternal, 2);
  assert_int_equal(server_integer(env->server, "PTTL", PREFIX "0", NULL), -1);
  assert_int_equal(server_calls(env->server, "evalsha") + server_calls(env->server, "eval"),
                   scripts);
}

ENV_TEST(ids_of_several_segments) {
  static uint32_t ids[BELAY_PRESENCE_IDS_MAX];
  for (int window = 0; window < 2; window++) {
    belay_presence_t *p = site(env, UINT32_MAX, window ? 60000 : 0, 4);
    seen_t seen = {0};
    static const uint32_t edges[] = {
        0, SEGMENT - 1, SEGMENT, 2 * SEGMENT - 1, UINT32_MAX - SEGMENT, UINT32_MAX};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
      set(env, p, edges[i]);
      assert_true(is(env, p, edges[i]));
      assert_int_equal(count(env, p), (int64_t)i + 1);
    }
    assert_int_equal(server_keys(env->server), 4);
    if (!window) {
      assert_int_equal(server_integer(env->server, "GETBIT", PREFIX "511", "8388607", NULL), 1);
      assert_int_equal(server_integer(env->server, "STRLEN", PREFIX "511", NULL), 1 << 20);
    }
    for (uint32_t i = 0; i < BELAY_PRESENCE_IDS_MAX; i++) /* the first bits of 64 segments */
      ids[i] = i % 64 * SEGMENT + i / 64;
    seen_ok(env, &seen, belay_presence_set_many(p, r_, ids, BELAY_PRESENCE_IDS_MAX, on_seen));
    assert_int_equal(count(env, p), BELAY_PRESENCE_IDS_MAX + 6 - 2);
    seen_ok(env, &seen, belay_presence_is_many(p, r_, ids, BELAY_PRESENCE_IDS_MAX, on_seen_is));
    assert_true(seen.n == BELAY_PRESENCE_IDS_MAX && seen.online_len == seen.n);
    seen_ok(env, &seen, belay_presence_clear_many(p, r_, ids, BELAY_PRESENCE_IDS_MAX, on_seen));
    assert_int_equal(count(env, p), 6 - 2);
    reset(env, p);
    assert_int_equal(server_keys(env->server), 0);
  }
}

/* As many as there may be of one segment: several calls. */
ENV_TEST(many_ids_of_one_segment) {
  static uint32_t ids[BELAY_PRESENCE_IDS_MAX];
  for (int window = 0; window < 2; window++) {
    belay_presence_t *p = site(env, SEGMENT - 1, window ? 60000 : 0, 14);
    seen_t seen = {0};
    for (uint32_t i = 0; i < BELAY_PRESENCE_IDS_MAX; i++)
      ids[i] = SEGMENT - 1 - 3 * i;
    seen_ok(env, &seen, belay_presence_set_many(p, r_, ids, BELAY_PRESENCE_IDS_MAX, on_seen));
    assert_int_equal(count(env, p), BELAY_PRESENCE_IDS_MAX);
    ids[3] = 1;
    seen_ok(env, &seen, belay_presence_is_many(p, r_, ids, BELAY_PRESENCE_IDS_MAX, on_seen_is));
    assert_int_equal(seen.online_len, BELAY_PRESENCE_IDS_MAX - 1);
    assert_true(seen.online[2] && !seen.online[3] && seen.online[4]);
    seen_ok(env, &seen, belay_presence_clear_many(p, r_, ids, BELAY_PRESENCE_IDS_MAX, on_seen));
    assert_int_equal(count(env, p), 1);
    reset(env, p);
  }
}

ENV_TEST(window_of_a_minute) {
  const int64_t slice = 15000, window = 60000;
  belay_presence_t *p = site(env, 1000, window, 4);
  set(env, p, 1);
  assert_int_equal(server_calls(env->server, "time"), 1);
  int64_t begun = belay__servertime_ms(&p->time, &p->handle);
  p->time.shift_us = (slice - begun % slice + 10 * slice) * 1000; /* a slice begins */
  for (int64_t ms = 0; ms < slice; ms += 5000) {
    int64_t begins = p->time.shift_us;
    reset(env, p);
    server_do(env->server, "FLUSHALL", NULL);
    p->time.shift_us = begins + ms * 1000;
    set(env, p, 1);
    for (int64_t later = 0; later < 2 * window; later += 5000) {
      p->time.shift_us = begins + (ms + later) * 1000;
      bool online = is(env, p, 1);
      assert_int_equal(count(env, p), online);
      if (later < window)
        assert_true(online); /* for T at least, */
      if (later >= window + slice)
        assert_false(online);                                /* and T + T/R at most: */
      assert_int_equal(online, later < window + slice - ms); /* here just so long */
    }
    p->time.shift_us = begins;
  }
}

ENV_TEST(slices_expire) {
  belay_presence_t *p = site(env, 1000, 60000, 4);
  for (int i = 0; i < 12; i++) {
    set(env, p, 1);
    set(env, p, (uint32_t)i);
    p->time.shift_us += INT64_C(15000000);
  }
  assert_int_equal(server_keys(env->server), 12);
  int64_t now = server_now_ms(env->server), slice;
  const resp_t *keys = server_ask(env->server, "KEYS", "*", NULL);
  char names[12][64];
  for (int i = 0; i < 12; i++)
    snprintf(names[i], sizeof names[i], "%s", keys->items[i]->str);
  for (int i = 0; i < 12; i++) {
    assert_int_equal(sscanf(names[i], PREFIX "%lld::0", (long long *)&slice), 1);
    int64_t left = server_integer(env->server, "PTTL", names[i], NULL);
    int64_t ends = (slice + 6) * 15000 - now; /* no clock can be late enough to read it */
    assert_between(left, ends - 5000 * slow(), ends);
  }
  expect_ttls(env->server);
}

/* Two whose clocks are nearly a slice apart see each other's bits; and a logout reaches all
 * slices. */
ENV_TEST(clients_with_different_clocks) {
  belay_presence_t *p = site(env, 1000, 60000, 4), *q = site(env, 1000, 60000, 4);
  set(env, p, 1);
  set(env, q, 2);
  for (int64_t apart = -14000; apart <= 14000; apart += 4000) {
    q->time.shift_us = apart * 1000;
    set(env, q, 3);
    assert_true(is(env, p, 3) && is(env, q, 1) && is(env, p, 2));
    assert_int_equal(count(env, p), 3);
    assert_int_equal(count(env, q), 3);
    clear(env, p, 3);
    assert_false(is(env, q, 3));
    assert_int_equal(count(env, q), 2);
  }
  for (int i = 0; i < 5; i++) { /* in all that are live */
    set(env, p, 9);
    p->time.shift_us += INT64_C(15000000);
  }
  clear(env, p, 9);
  p->time.shift_us -= INT64_C(15000000);
  assert_false(is(env, p, 9));
}

/* It really ends, after a time that is really over. */
ENV_TEST(window_of_100_ms) {
  belay_presence_t *p = site(env, 1000, 400, 4);
  set(env, p, 1);
  int64_t begun = clock_now();
  while (is(env, p, 1))
    env_run_for(env, 20);
  assert_between(clock_since_ms(begun), 395, 600 + lag() + 200 * (slow() - 1));
  assert_int_equal(count(env, p), 0);
  env_until(env, server_keys(env->server) == 0);
}

ENV_TEST(arguments_are_checked) {
  belay_presence_t *p = site(env, 1000, 0, 4);
  belay_request_t request = {0}, *r = &request;
  const uint32_t ids[] = {1, 1001};
  const int rows[] = {
      belay_presence_set(p, r, 1001, on_seen),
      belay_presence_set(p, r, UINT32_MAX, on_seen),
      belay_presence_set_many(p, r, ids, 2, on_seen),
      belay_presence_set_many(p, r, ids, 0, on_seen),
      belay_presence_set_many(p, r, NULL, 1, on_seen),
      belay_presence_set_many(p, r, ids, BELAY_PRESENCE_IDS_MAX + 1, on_seen),
      belay_presence_clear(p, r, 1001, on_seen),
      belay_presence_clear_many(p, r, ids, 2, on_seen),
      belay_presence_is(p, r, 1001, on_seen_is),
      belay_presence_is_many(p, r, ids, 2, on_seen_is),
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i] != BELAY_EINVAL)
      fail_msg("row %zu: %s", i, belay_err_name(rows[i]));
  assert_error(belay_presence_set(p, r, 1001, on_seen), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "id: not from 0 to 1000");
  assert_int_equal(client_stats(env).calls, 0);
}
