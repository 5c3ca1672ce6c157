/* Active users against a model. The users of a period are a set, and a count equals that of a
 * HyperLogLog of the same users on the server. */
#include <stdio.h>

#include "support/base/random.h"
#include "support/models/scripts.h"
#include "support/fixtures/data/seen.h"

#define HOUR INT64_C(3600000)

enum { USERS = 60, PERIODS = 24, ARCHIVES = 3, STEPS = 2500 };

typedef struct model {
  env_t *env;
  belay_active_t *active;
  uint64_t random;
  int64_t first; /* the number of the first period */
  int64_t unit, offset;
  uint64_t seen[PERIODS], archived[ARCHIVES]; /* a bit for each user */
  unsigned marks, counts, archives, clears;
} model_t;

static uint64_t below(model_t *m, uint64_t n) {
  return next_random(&m->random) % n;
}

/* Some time in a period, as the model knows it. */
static int64_t time_in(model_t *m, int period) {
  int64_t begins = (m->first + period) * m->unit - m->offset;
  uint64_t edge = below(m, 4);
  return begins + (edge == 0 ? 0 : edge == 1 ? m->unit - 1 : (int64_t)below(m, (uint64_t)m->unit));
}

static size_t name(char *out, int user) {
  return (size_t)snprintf(out, 16, "user-%d", user);
}

/* The server's count for exactly these users. */
static int64_t reference(model_t *m, uint64_t users) {
  static char names[USERS][16];
  server_do(m->env->server, "DEL", "reference", NULL);
  for (int i = 0; i < USERS;) {
    resp_words_t words = {2, {"PFADD", "reference"}, {5, 9}};
    for (; i < USERS && words.count < RESP_WORDS; i++)
      if (users >> i & 1) {
        words.len[words.count] = name(names[i], i);
        words.word[words.count++] = names[i];
      }
    assert_int_equal(server_ask_words(m->env->server, &words)->type, RESP_INTEGER);
  }
  int64_t count = server_integer(m->env->server, "PFCOUNT", "reference", NULL);
  server_do(m->env->server, "DEL", "reference", NULL);
  return count;
}

static void step_mark(model_t *m) {
  belay_bytes_t users[8];
  char names[8][16];
  seen_t seen = {0};
  int period = (int)below(m, PERIODS);
  size_t n = 1 + below(m, 8);
  for (size_t i = 0; i < n; i++) {
    int user = (int)below(m, USERS);
    users[i] = (belay_bytes_t){names[i], name(names[i], user)};
    m->seen[period] |= UINT64_C(1) << user;
  }
  seen_ok(m->env, &seen,
          belay_active_mark_many(m->active, r_, users, n, time_in(m, period), on_seen));
  m->marks++;
}

static uint64_t seen_in(const model_t *m, int from, int to) {
  uint64_t users = 0;
  for (int i = from < 0 ? 0 : from; i <= to; i++)
    users |= m->seen[i];
  return users;
}

static void step_last(model_t *m) {
  uint32_t spans[4];
  seen_t seen = {0};
  int to = (int)below(m, PERIODS);
  size_t n = 1 + below(m, 4);
  for (size_t i = 0; i < n; i++)
    spans[i] = 1 + (uint32_t)below(m, 2 * PERIODS);
  seen_ok(m->env, &seen,
          belay_active_count_last(m->active, r_, time_in(m, to), spans, n, on_seen_counts));
  assert_int_equal(seen.n, n);
  for (size_t i = 0; i < n; i++)
    assert_int_equal(seen.counts[i], reference(m, seen_in(m, to + 1 - (int)spans[i], to)));
  m->counts++;
}

static void step_span(model_t *m) {
  seen_t seen = {0};
  int from = (int)below(m, PERIODS), to = from + (int)below(m, (uint64_t)(PERIODS - from));
  int64_t from_ms = time_in(m, from), to_ms = time_in(m, to);
  if (below(m, 3) == 0) {
    seen_ok(m->env, &seen, belay_active_clear(m->active, r_, from_ms, to_ms, on_seen));
    for (int i = from; i <= to; i++)
      m->seen[i] = 0;
    m->clears++;
    return;
  }
  seen_ok(m->env, &seen, belay_active_count_span(m->active, r_, from_ms, to_ms, on_seen_counts));
  assert_int_equal(seen.counts[0], reference(m, seen_in(m, from, to)));
  m->counts++;
}

static void step_archive(model_t *m) {
  static const char labels[ARCHIVES][2] = {"a", "b", "c"};
  const belay_bytes_t all[] = {{labels[0], 1}, {labels[1], 1}, {labels[2], 1}};
  seen_t seen = {0};
  size_t one = below(m, ARCHIVES), from = below(m, PERIODS), to = from + below(m, PERIODS - from);
  switch (below(m, 4)) {
  case 0:
    seen_ok(m->env, &seen, belay_active_clear_archives(m->active, r_, &all[one], 1, on_seen));
    m->archived[one] = 0;
    break;
  case 1:
    seen_ok(m->env, &seen,
            belay_active_count_archives(m->active, r_, all, one + 1, on_seen_counts));
    uint64_t users = 0;
    for (size_t i = 0; i <= one; i++)
      users |= m->archived[i];
    assert_int_equal(seen.counts[0], reference(m, users));
    break;
  default:
    m->archived[one] |= seen_in(m, (int)from, (int)to);
    seen_ok(m->env, &seen,
            belay_active_archive(m->active, r_, time_in(m, (int)from), time_in(m, (int)to),
                                 belay_bytes(labels[one], 1), on_seen_counts));
    assert_int_equal(seen.counts[0], reference(m, m->archived[one]));
    m->archives++;
  }
}

static void play(belay_active_unit_t unit, int32_t offset_minutes, uint64_t seed) {
  model_t m = {.env = env_open(NULL), .random = seed};
  belay_active_options_t options;
  belay_active_options_init(&options);
  options.name = belay_string("m{}::");
  options.unit = unit;
  options.utc_offset_minutes = offset_minutes;
  assert_error(belay_active_new(m.env->client, &options, &m.active), 0);
  m.unit = unit == BELAY_ACTIVE_DAY ? 24 * HOUR : HOUR;
  m.offset = offset_minutes * INT64_C(60000);
  m.first = server_now_ms(m.env->server) / m.unit - PERIODS + 3; /* some are yet to come */
  for (int i = 0; i < STEPS; i++) {
    uint64_t what = below(&m, 20);
    if (what < 9)
      step_mark(&m);
    else if (what < 13)
      step_last(&m);
    else if (what < 16)
      step_span(&m);
    else if (what < 19)
      step_archive(&m);
    else
      server_do(m.env->server, "SCRIPT", "FLUSH", NULL);
    if (i % 250 == 0)
      expect_ttls(m.env->server);
  }
  expect_ttls(m.env->server);
  assert_true(m.marks > 500 && m.counts > 300 && m.archives > 100 && m.clears > 50);
  env_close(m.env);
}

TEST(days_match_model) {
  play(BELAY_ACTIVE_DAY, 330, UINT64_C(0x9e3779b97f4a7c15));
}

TEST(hours_match_model) {
  play(BELAY_ACTIVE_HOUR, -210, UINT64_C(0xd1b54a32d192ed03));
}
