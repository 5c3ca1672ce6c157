/* Presence against a model: the last beat of each user, and later removals. The test moves the
 * clock. */
#include <stdio.h>

#include "support/base/random.h"
#include "support/models/scripts.h"
#include "support/fixtures/data/seen.h"

#define SEGMENT BELAY__PRESENCE_SEGMENT

enum { IDS = 80, STEPS = 1500, MANY = 24 };

typedef struct model {
  env_t *env;
  belay_presence_t *presence;
  uint64_t random;
  int64_t slice_us, slices; /* 0: there is no window */
  int64_t now_us; /* the present time of the moved clock; the real time that passes is negligible */
  uint32_t id[IDS];
  int64_t seen[IDS]; /* in which slice last; -1: never, or cleared */
  unsigned online, offline, counts;
} model_t;

static uint64_t below(model_t *m, uint64_t n) {
  return next_random(&m->random) % n;
}

static int64_t slice_of(const model_t *m) {
  return m->slice_us == 0 ? 0 : m->now_us / m->slice_us;
}

static bool is_online(const model_t *m, size_t i) {
  return m->seen[i] >= 0 && (m->slice_us == 0 || m->seen[i] + m->slices >= slice_of(m));
}

/* Moves to the middle of a slice, so that real time does not leave it. */
static void move_to(model_t *m, int64_t slice) {
  m->now_us = slice * m->slice_us + m->slice_us / 2;
  m->presence->time.shift_us = 0;
  if (m->presence->time.learnt != 0)
    m->presence->time.shift_us =
        m->now_us - belay__servertime_ms(&m->presence->time, &m->presence->handle) * 1000;
}

static void step(model_t *m) {
  uint32_t ids[MANY];
  size_t at[MANY], n = 1 + below(m, below(m, 2) ? MANY : 2);
  seen_t seen = {0};
  for (size_t i = 0; i < n; i++)
    ids[i] = m->id[at[i] = below(m, IDS)];
  uint64_t what = below(m, 16);
  if (what < 5) {
    seen_ok(m->env, &seen, belay_presence_set_many(m->presence, r_, ids, n, on_seen));
    for (size_t i = 0; i < n; i++)
      m->seen[at[i]] = slice_of(m);
  } else if (what < 7) {
    seen_ok(m->env, &seen, belay_presence_clear_many(m->presence, r_, ids, n, on_seen));
    for (size_t i = 0; i < n; i++)
      m->seen[at[i]] = -1;
  } else if (what < 12) {
    if (n > 16)
      n = 16;
    seen_ok(m->env, &seen, belay_presence_is_many(m->presence, r_, ids, n, on_seen_is));
    assert_int_equal(seen.n, n);
    for (size_t i = 0; i < n; i++) {
      assert_int_equal(seen.online[i], is_online(m, at[i]));
      m->online += seen.online[i];
      m->offline += !seen.online[i];
    }
  } else if (what < 14) {
    int64_t expected = 0;
    for (size_t i = 0; i < IDS; i++)
      expected += is_online(m, i);
    seen_ok(m->env, &seen, belay_presence_count(m->presence, r_, on_seen_count));
    assert_int_equal(seen.counts[0], expected);
    m->counts++;
  } else if (m->slice_us != 0 && below(m, 2)) {
    move_to(m, slice_of(m) + 1 + (int64_t)below(m, below(m, 8) ? 1 : 8));
  } else if (below(m, 8) == 0) {
    seen_ok(m->env, &seen, belay_presence_reset(m->presence, r_, on_seen));
    for (size_t i = 0; i < IDS; i++)
      m->seen[i] = -1;
  } else if (below(m, 4) == 0) {
    server_do(m->env->server, "SCRIPT", "FLUSH", NULL);
  }
}

static void play(uint32_t slices, int64_t ttl_ms, uint64_t seed) {
  model_t m = {.env = env_open(NULL), .random = seed};
  belay_presence_options_t options;
  belay_presence_options_init(&options);
  options.name = belay_string("m");
  options.max_id = 3 * SEGMENT - 1;
  options.ttl_ms = ttl_ms;
  if (slices > 0) {
    options.slices = slices;
    options.window_ms = slices * INT64_C(100000);
  }
  assert_error(belay_presence_new(m.env->client, &options, &m.presence), 0);
  for (uint32_t i = 0; i < IDS;
       i++) { /* in three segments; where there is one bitmap, at their edges */
    m.id[i] = i % 3 * SEGMENT + (i % 2 && slices == 0 ? SEGMENT - 1 - i : 11 * i);
    m.seen[i] = -1;
  }
  m.slices = slices;
  m.slice_us = slices == 0 ? 0 : INT64_C(100000000);
  if (slices > 0) {
    seen_t seen = {0};
    seen_ok(m.env, &seen, belay_presence_is(m.presence, r_, 0, on_seen_is));
    move_to(&m, server_now_ms(m.env->server) * 1000 / m.slice_us);
  }
  for (int i = 0; i < STEPS; i++)
    step(&m);
  assert_true(m.online > 100 && m.offline > 100 && m.counts > 100);
  if (slices > 0)
    assert_true(server_keys(m.env->server) > 3);
  env_close(m.env);
}

TEST(bitmap_matches_model) {
  play(0, 86400000, UINT64_C(0x9e3779b97f4a7c15));
  play(0, 0, UINT64_C(0x2545f4914f6cdd1d));
}

TEST(window_matches_model) {
  play(4, 0, UINT64_C(0xd1b54a32d192ed03));
  play(1, 0, UINT64_C(0x8cb92ba72f3d8dd7));
  play(14, 0, UINT64_C(0xaef17502108ef2d9));
}
