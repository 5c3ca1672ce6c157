/* Active users: which key a time leads to, what is counted, archived and cleared, and how long
 * all of it lives. */
#include <stdio.h>

#include "support/models/scripts.h"
#include "data/active/date.h"
#include "support/fixtures/data/seen.h"

#define PREFIX "belay::active::{site}::"
#define NOON INT64_C(1795262400000) /* 2026-11-21 12:00 UTC */
#define HOUR INT64_C(3600000)
#define DAY (24 * HOUR)

static belay_active_options_t usual(void) {
  belay_active_options_t options;
  belay_active_options_init(&options);
  options.name = belay_string("site");
  return options;
}

static belay_active_t *series(env_t *env, const belay_active_options_t *options) {
  belay_active_t *active;
  belay_active_options_t o = options == NULL ? usual() : *options;
  int error = belay_active_new(env->client, &o, &active);
  if (error != 0)
    fail_msg("belay_active_new: %s: %s", belay_strerror(error), belay_detail(env->belay));
  return active;
}

static int mark(env_t *env, belay_active_t *active, const char *user, int64_t time_ms) {
  seen_t seen = {0};
  return seen_do(env, &seen, belay_active_mark(active, r_, belay_string(user), time_ms, on_seen));
}

static int64_t count(env_t *env, belay_active_t *active, int64_t from_ms, int64_t to_ms) {
  seen_t seen = {0};
  seen_ok(env, &seen, belay_active_count_span(active, r_, from_ms, to_ms, on_seen_counts));
  assert_int_equal(seen.n, 1);
  return seen.counts[0];
}

ENV_TEST(key_of_time_unit_and_offset) {
  static const struct {
    belay_active_unit_t unit;
    int32_t offset;
    int64_t time_ms;
    const char *key;
  } rows[] = {
      {BELAY_ACTIVE_DAY, 0, NOON, "20261121"},
      {BELAY_ACTIVE_DAY, 0, NOON - 12 * HOUR, "20261121"},
      {BELAY_ACTIVE_DAY, 0, NOON - 12 * HOUR - 1, "20261120"},
      {BELAY_ACTIVE_DAY, 0, NOON + 12 * HOUR - 1, "20261121"},
      {BELAY_ACTIVE_DAY, 0, NOON + 12 * HOUR, "20261122"},
      {BELAY_ACTIVE_DAY, 720, NOON, "20261122"},
      {BELAY_ACTIVE_DAY, 719, NOON, "20261121"},
      {BELAY_ACTIVE_DAY, 840, NOON - 2 * HOUR, "20261122"},
      {BELAY_ACTIVE_DAY, -720, NOON - 1, "20261120"},
      {BELAY_ACTIVE_DAY, -720, NOON, "20261121"},
      {BELAY_ACTIVE_DAY, 330, NOON + 6 * HOUR + HOUR / 2, "20261122"},
      {BELAY_ACTIVE_HOUR, 0, NOON + 3 * HOUR, "2026112115"},
      {BELAY_ACTIVE_HOUR, 0, NOON + 3 * HOUR - 1, "2026112114"},
      {BELAY_ACTIVE_HOUR, 0, NOON + 12 * HOUR, "2026112200"},
      {BELAY_ACTIVE_HOUR, 330, NOON, "2026112117"},
      {BELAY_ACTIVE_HOUR, -90, NOON - 10 * HOUR - 31 * HOUR / 60, "2026112023"},
      {BELAY_ACTIVE_HOUR, 0, NOON + 99 * DAY + 12 * HOUR - 1, "2027022823"},
      {BELAY_ACTIVE_DAY, 0, BELAY_ACTIVE_TIME_MAX, "99981231"},
      {BELAY_ACTIVE_HOUR, 840, BELAY_ACTIVE_TIME_MAX, "9999010113"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char key[64];
    belay_active_options_t options = usual();
    options.unit = rows[i].unit;
    options.utc_offset_minutes = rows[i].offset;
    options.ttl_ms = INT64_C(315360000000); /* some of them are long over */
    belay_active_t *active = series(env, &options);
    server_do(env->server, "FLUSHALL", NULL);
    assert_error(mark(env, active, "ann", rows[i].time_ms), 0);
    snprintf(key, sizeof key, PREFIX "%s", rows[i].key);
    assert_string_equal(server_string(env->server, "RANDOMKEY", NULL), key);
    assert_int_equal(server_keys(env->server), 1);
    assert_int_equal(server_integer(env->server, "PFCOUNT", key, NULL), 1);
    assert_int_equal(count(env, active, rows[i].time_ms, rows[i].time_ms), 1);
    expect_ttls(env->server);
  }
}

ENV_TEST(now_uses_server_clock) {
  belay_active_t *active = series(env, NULL);
  assert_error(mark(env, active, "ann", BELAY_ACTIVE_NOW), 0);
  int64_t now = server_now_ms(env->server);
  assert_between(belay__servertime_ms(&active->time, &active->handle), now - 1000 * slow(),
                 now + 1000);
  /* Midnight is between two marks. */
  server_do(env->server, "FLUSHALL", NULL);
  int64_t to_midnight = DAY - now % DAY;
  active->time.shift_us = (to_midnight - 60000) * 1000;
  assert_error(mark(env, active, "ann", BELAY_ACTIVE_NOW), 0);
  active->time.shift_us = (to_midnight + 60000) * 1000;
  assert_error(mark(env, active, "ben", BELAY_ACTIVE_NOW), 0);
  assert_int_equal(server_keys(env->server), 2);
  assert_int_equal(count(env, active, now, now), 1);
  assert_int_equal(count(env, active, now + DAY, BELAY_ACTIVE_NOW), 1);
  assert_int_equal(count(env, active, now, BELAY_ACTIVE_NOW), 2);
  assert_int_equal(server_calls(env->server, "time"), 1 + 1); /* ours, and the test's */
}

ENV_TEST(server_time_is_cached) {
  enum { MANY = 20 };
  belay_active_t *active = series(env, NULL);
  /* with an explicit time, the server's time is not asked */
  assert_error(mark(env, active, "ann", NOON), 0);
  assert_int_equal(server_calls(env->server, "time"), 0);
  for (int round = 0; round < 4; round++) {
    seen_t seen[MANY] = {0};
    int64_t before = server_calls(env->server, "time");
    if (round == 1)
      active->time.ask_at = 1; /* a minute is over */
    else if (round == 2)
      active->time.learnt = 0; /* ten are */
    for (int i = 0; i < MANY; i++) {
      (void)seen_begin(env, &seen[i]);
      assert_error(
          seen_begun(&seen[i], belay_active_mark(active, &seen[i].request, belay_string("ann"),
                                                 BELAY_ACTIVE_NOW, on_seen)),
          0);
    }
    for (int i = 0; i < MANY; i++)
      assert_error(end_of_seen(&seen[i]), 0);
    int64_t asked = server_calls(env->server, "time") - before;
    static const int64_t expected[] = {MANY, 1, MANY, 0};
    assert_int_equal(asked, expected[round]);
  }
  server_kill(env->server);
  server_restart(env->server); /* another one */
  env_until(env, client_stats(env).connections_up == 0);
  assert_int_equal(server_calls(env->server, "time"), 0);
  int status = BELAY_EUNKNOWN;
  for (int i = 0; i < 2 || status != 0; i++)
    status = mark(env, active, "ann", BELAY_ACTIVE_NOW);
  assert_int_equal(server_calls(env->server, "time"), 1);
}

ENV_TEST(period_expires) {
  belay_active_options_t options = usual();
  options.ttl_ms = 10 * DAY;
  belay_active_t *active = series(env, &options);
  int64_t now = server_now_ms(env->server), today = now - now % DAY;
  char key[64];
  for (int64_t ago = 0; ago <= 10; ago++) {
    assert_error(mark(env, active, "ann", now - ago * DAY), 0);
    snprintf(key, sizeof key, PREFIX "%08d", belay__date_of(now / DAY - ago));
    int64_t left = server_integer(env->server, "PTTL", key, NULL);
    assert_between(left, today + (11 - ago) * DAY - now - 60000, today + (11 - ago) * DAY - now);
  }
  assert_int_equal(server_keys(env->server), 11);
  assert_error(mark(env, active, "ann", now - 11 * DAY), BELAY_ELOST);
  assert_error(mark(env, active, "ann", 1), BELAY_ELOST);
  assert_int_equal(server_keys(env->server), 11);
  server_do(env->server, "PEXPIRE", key, "50000", NULL); /* it is not touched again */
  assert_error(mark(env, active, "ben", now - 10 * DAY), 0);
  assert_between(server_integer(env->server, "PTTL", key, NULL), 1, 50000);
  assert_int_equal(server_integer(env->server, "PFCOUNT", key, NULL), 2);
  expect_ttls(env->server);
}

ENV_TEST(archive_survives_clear) {
  static const char label[] = {'a', '}', '{', ':', ':', '\0', '%'};
  belay_active_options_t options = usual();
  options.archive_ttl_ms = 100 * DAY;
  belay_active_t *mortal = series(env, &options);
  options.archive_ttl_ms = 0;
  belay_active_t *eternal = series(env, &options);
  seen_t seen = {0};
  static const char key[] = PREFIX "archive::a%7D%7B%3A:%00%25";
  int64_t now = server_now_ms(env->server);
  assert_error(mark(env, mortal, "ann", now), 0);
  assert_error(mark(env, mortal, "ben", now - DAY), 0);
#define ARCHIVE(active, from)                                                                      \
  belay_active_archive((active), r_, (from), now, belay_bytes(label, sizeof label), on_seen_counts)
  seen_ok(env, &seen, ARCHIVE(mortal, now));
  assert_true(seen.n == 1 && seen.counts[0] == 1);
  assert_between(server_integer(env->server, "PTTL", key, NULL), 100 * DAY - 60000, 100 * DAY);
  seen_ok(env, &seen, ARCHIVE(eternal, now - DAY));
  assert_int_equal(seen.counts[0], 2);
  assert_int_equal(server_integer(env->server, "PTTL", key, NULL), -1);
  seen_ok(env, &seen, belay_active_clear(mortal, r_, now - DAY, now, on_seen));
  assert_int_equal(server_keys(env->server), 1);
  seen_ok(env, &seen, ARCHIVE(mortal, now - DAY)); /* nothing is added, or taken */
  assert_int_equal(seen.counts[0], 2);
  assert_between(server_integer(env->server, "PTTL", key, NULL), 100 * DAY - 60000, 100 * DAY);
  const belay_bytes_t labels[] = {{label, sizeof label}, {"b", 1}};
  seen_ok(env, &seen, belay_active_count_archives(mortal, r_, labels, 2, on_seen_counts));
  assert_true(seen.n == 1 && seen.counts[0] == 2);
  seen_ok(env, &seen, belay_active_clear_archives(mortal, r_, labels, 2, on_seen));
  assert_int_equal(server_keys(env->server), 0);
}

ENV_TEST(count_last_days) {
  for (int hours = 0; hours < 2; hours++) {
    belay_active_options_t options = usual();
    options.unit = hours ? BELAY_ACTIVE_HOUR : BELAY_ACTIVE_DAY;
    belay_active_t *active = series(env, &options);
    seen_t seen = {0};
    int64_t now = server_now_ms(env->server);
    active->time.shift_us = (12 * HOUR - now % DAY) * 1000; /* noon */
    now += active->time.shift_us / 1000;
    int days = 0;
    for (int ago = 0; ago < 40; ago++) { /* one more each day; one comes every day */
      char user[16];
      snprintf(user, sizeof user, "user-%d", ago);
      int status = mark(env, active, user, now - ago * DAY);
      if (ago != 32) /* which may be over by the server's clock, that is not shifted */
        assert_error(status, ago < 32 ? 0 : BELAY_ELOST);
      days += status == 0;
      assert_error(mark(env, active, "ann", now - ago * DAY), status);
    }
    seen_ok(env, &seen,
            belay_active_count_last(active, r_, BELAY_ACTIVE_NOW, NULL, 0, on_seen_counts));
    static const int64_t expected[] = {2, 4, 8, 16, 31};
    assert_int_equal(seen.n, 5);
    for (int i = 0; i < 5; i++)
      assert_int_equal(seen.counts[i], expected[i]);
    const uint32_t spans[BELAY_ACTIVE_SPANS_MAX] = {768, 1, 1, 1, 1, 1, 1, 1,
                                                    1,   1, 1, 1, 1, 1, 1, 25};
    seen_ok(env, &seen, belay_active_count_last(active, r_, now - DAY, spans, 16, on_seen_counts));
    assert_int_equal(seen.n, 16);
    assert_int_equal(seen.counts[0], days);
    assert_int_equal(seen.counts[15], hours ? 3 : 26);
    assert_int_equal(seen.counts[7], 2);
    seen_ok(env, &seen, belay_active_count(active, r_, now - 2 * DAY, on_seen_counts));
    assert_true(seen.n == 1 && seen.counts[0] == 2);
    server_do(env->server, "FLUSHALL", NULL);
  }
}

ENV_TEST(largest_mark_and_span) {
  static belay_bytes_t users[BELAY_ACTIVE_USERS_MAX];
  static char names[BELAY_ACTIVE_USERS_MAX][8];
  static char longest[BELAY_ACTIVE_USER_MAX];
  const int64_t then = NOON + 1000 * DAY;
  belay_active_t *active = series(env, NULL);
  for (size_t i = 0; i < BELAY_ACTIVE_USERS_MAX; i++)
    users[i] = (belay_bytes_t){names[i], (size_t)snprintf(names[i], sizeof names[i], "%zu", i)};
  seen_t seen = {0};
  for (int i = 0; i < 2; i++) { /* the second time the time is known */
    seen_ok(env, &seen,
            belay_active_mark_many(active, r_, users, BELAY_ACTIVE_USERS_MAX, BELAY_ACTIVE_NOW,
                                   on_seen));
    assert_between(count(env, active, BELAY_ACTIVE_NOW, BELAY_ACTIVE_NOW), 65536 - 2654,
                   65536 + 2654);
  }
  memset(longest, 0, sizeof longest);
  users[0] = (belay_bytes_t){longest, sizeof longest};
  seen_ok(env, &seen, belay_active_mark_many(active, r_, users, 2, then, on_seen));
  assert_int_equal(count(env, active, then, then), 2);
  int64_t last = then + (BELAY_ACTIVE_PERIODS_MAX - 1) * DAY;
  assert_int_equal(count(env, active, then, last), 2);
  seen_ok(env, &seen,
          belay_active_archive(active, r_, then, last, belay_string("all"), on_seen_counts));
  assert_int_equal(seen.counts[0], 2);
  seen_ok(env, &seen, belay_active_clear(active, r_, then, last, on_seen));
  assert_int_equal(count(env, active, then, last), 0);
}

ENV_TEST(arguments_are_checked) {
  static char big[BELAY_ACTIVE_USER_MAX + 1];
  belay_active_t *a = series(env, NULL);
  belay_request_t request = {0}, *r = &request;
  const belay_bytes_t one = {"x", 1}, none = {NULL, 1}, large = {big, 33};
  const uint32_t zero = 0, much = BELAY_ACTIVE_PERIODS_MAX + 1, span = 1;
  const int64_t far = BELAY_ACTIVE_TIME_MAX + 1;
  belay_active_count_cb cc = on_seen_counts;
  const int rows[] = {
      belay_active_mark(a, r, belay_bytes(NULL, 1), NOON, on_seen),
      belay_active_mark(a, r, belay_string(""), NOON, on_seen),
      belay_active_mark(a, r, belay_bytes(big, sizeof big), NOON, on_seen),
      belay_active_mark(a, r, belay_string("x"), -1, on_seen),
      belay_active_mark(a, r, belay_string("x"), far, on_seen),
      belay_active_mark_many(a, r, NULL, 1, NOON, on_seen),
      belay_active_mark_many(a, r, &one, 0, NOON, on_seen),
      belay_active_mark_many(a, r, &one, BELAY_ACTIVE_USERS_MAX + 1, NOON, on_seen),
      belay_active_count(a, r, far, cc),
      belay_active_count_last(a, r, NOON, &zero, 1, cc),
      belay_active_count_last(a, r, NOON, &much, 1, cc),
      belay_active_count_last(a, r, NOON, &span, 0, cc),
      belay_active_count_last(a, r, NOON, NULL, 1, cc),
      belay_active_count_last(a, r, NOON, &span, BELAY_ACTIVE_SPANS_MAX + 1, cc),
      belay_active_count_span(a, r, NOON, NOON - DAY, cc),
      belay_active_count_span(a, r, NOON, NOON + BELAY_ACTIVE_PERIODS_MAX * DAY, cc),
      belay_active_count_span(a, r, -1, NOON, cc),
      belay_active_count_span(a, r, NOON, far, cc),
      belay_active_clear(a, r, NOON, NOON - DAY, on_seen),
      belay_active_archive(a, r, NOON, NOON, belay_bytes(NULL, 1), cc),
      belay_active_archive(a, r, NOON, NOON, belay_string(""), cc),
      belay_active_archive(a, r, NOON, NOON, belay_bytes(big, 33), cc),
      belay_active_archive(a, r, NOON, NOON - DAY, belay_string("x"), cc),
      belay_active_count_archives(a, r, NULL, 1, cc),
      belay_active_count_archives(a, r, &one, 0, cc),
      belay_active_count_archives(a, r, &one, BELAY_ACTIVE_LABELS_MAX + 1, cc),
      belay_active_count_archives(a, r, &none, 1, cc),
      belay_active_clear_archives(a, r, &large, 1, on_seen),
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i] != BELAY_EINVAL)
      fail_msg("row %zu: %s", i, belay_err_name(rows[i]));
  assert_int_equal(client_stats(env).calls, 0);
  /* A span whose end is not known yet is checked when it is. */
  seen_t seen = {0};
  assert_error(
      seen_do(env, &seen, belay_active_count_span(a, r_, 1, BELAY_ACTIVE_NOW, on_seen_counts)),
      BELAY_EINVAL);
  assert_int_equal(seen.ended, 1);
  assert_error(
      seen_do(env, &seen, belay_active_count_span(a, r_, 1, BELAY_ACTIVE_NOW, on_seen_counts)),
      BELAY_EINVAL);
  assert_int_equal(seen.ended, 1);
}
