/* Archivers: of many one does each day that is over, in its order; it is recorded once, whoever dies in between. */
#include <stdio.h>

#include "data/archiver/archiver.h"
#include "support/models/scripts.h"
#include "support/fixtures/data/seen.h"

#define PREFIX "belay::active::{site}::"
#define RECORD PREFIX "archived"
#define LEASE "belay::election::{active/site}"
#define HOUR INT64_C(3600000)
#define DAY (24 * HOUR)

enum { DAYS_MAX = 64 };

typedef enum how { AT_ONCE, LATER, BADLY, CLOSES, CLOSES_ALL } how_t;

/* One archiver, and what was heard of it. */
typedef struct keeper {
  bed_t *bed;
  belay_active_t *active;
  belay_archiver_t *archiver;
  how_t how;
  unsigned told, closed, series_closed;
  belay_archiver_day_t day[DAYS_MAX];
} keeper_t;

static void on_closed(belay_archiver_t *archiver, void *data) {
  keeper_t *k = data;
  assert_ptr_equal(archiver, k->archiver);
  k->archiver = NULL;
  k->closed++;
}

static void on_series_closed(belay_active_t *active, void *data) {
  keeper_t *k = data;
  assert_ptr_equal(active, k->active);
  assert_null(k->archiver); /* it goes first */
  k->series_closed++;
}

static void on_day(belay_archiver_t *archiver, const belay_archiver_day_t *day) {
  keeper_t *k = belay_archiver_data(archiver);
  k->bed->wrong += k->bed->inside + k->closed;
  assert_true(k->told < DAYS_MAX);
  assert_true(day->term != 0 && day->to_ms - day->from_ms == DAY - 1);
  assert_error(belay_archiver_done(archiver, day->date - 1, true), BELAY_ESTATE);
  k->day[k->told++] = *day;
  switch (k->how) {
  case AT_ONCE:
  case BADLY:
    assert_error(belay_archiver_done(archiver, day->date, k->how == AT_ONCE), 0);
    assert_error(belay_archiver_done(archiver, day->date, true), BELAY_ESTATE);
    break;
  case LATER:
    break;
  case CLOSES:
    assert_error(belay_archiver_close(archiver, on_closed), 0);
    assert_error(belay_archiver_close(archiver, on_closed), BELAY_ECLOSING);
    assert_error(belay_archiver_done(archiver, day->date, true), BELAY_ECLOSING);
    break;
  case CLOSES_ALL:
    assert_error(begin_belay_close(k->bed), 0);
  }
}

static belay_archiver_options_t usual(void) {
  belay_archiver_options_t options;
  belay_archiver_options_init(&options);
  options.on_day = on_day;
  options.delay_ms = options.jitter_ms = 0;
  options.retry_ms = 20;
  options.lease_ms = 1000 * slow();
  return options;
}

static void series(keeper_t *k, bed_t *bed, belay_client_t *client, belay_active_unit_t unit) {
  belay_active_options_t options;
  belay_active_options_init(&options);
  options.name = "site";
  options.name_len = 4;
  options.unit = unit;
  options.ttl_ms = 10 * DAY;
  options.data = k;
  k->bed = bed;
  assert_error(belay_active_new(client, &options, &k->active), 0);
}

/* NULL: as usual. */
static void keep(keeper_t *k, const belay_archiver_options_t *options) {
  belay_archiver_options_t o = options == NULL ? usual() : *options;
  o.data = k;
  k->bed->inside++;
  int error = belay_archiver_new(k->active, &o, &k->archiver);
  k->bed->inside--;
  if (error != 0)
    fail_msg("belay_archiver_new: %s: %s", belay_err_name(error), belay_detail(k->bed->belay));
  assert_ptr_equal(belay_archiver_data(k->archiver), k);
}

static belay_archiver_stats_t stats(const keeper_t *k) {
  belay_archiver_stats_t s;
  belay_archiver_stats(k->archiver, &s);
  return s;
}

static void close_keeper(keeper_t *k) {
  k->closed = 0;
  assert_error(belay_archiver_close(k->archiver, on_closed), 0);
  bed_until(k->bed, k->closed == 1);
}

/* The date of so many days ago, by the server's clock, in UTC. */
static int32_t ago(bed_t *bed, int64_t days) {
  return belay__date_of(server_now_ms(bed->server) / DAY - days);
}

static int64_t recorded(bed_t *bed) {
  const char *day = server_string(bed->server, "HGET", RECORD, "day", NULL);
  return day == NULL ? 0 : atoll(day);
}

/* ---- one archiver ---------------------------------------------------------------------------------------- */

TEST(days_are_done_in_their_order) {
  bed_t *bed = bed_open(NULL);
  keeper_t k = {0};
  series(&k, bed, bed->client, BELAY_ACTIVE_DAY);
  keep(&k, NULL); /* a new one: of the days before it the last */
  bed_until(bed, stats(&k).completed == 1);
  assert_int_equal(k.told, 1);
  assert_int_equal(k.day[0].date, ago(bed, 1));
  assert_int_equal(stats(&k).last, ago(bed, 1));
  assert_int_equal(recorded(bed), ago(bed, 1));
  assert_true(k.day[0].term == belay_archiver_term(k.archiver));
  for (int64_t later = 1; later <= 3; later++) { /* midnight, three times */
    k.active->time.shift_us = later * DAY * 1000;
    belay__timer_set(bed->belay, BELAY__RANK_OTHER, &k.archiver->timer, belay__now(bed->belay));
    bed_until(bed, stats(&k).completed == (uint64_t)later + 1);
    assert_int_equal(k.day[later].date, ago(bed, 1 - later));
    assert_int_equal(k.day[later].from_ms, k.day[later - 1].to_ms + 1);
  }
  k.active->time.shift_us = 7 * DAY * 1000; /* it was away for a while */
  belay__timer_set(bed->belay, BELAY__RANK_OTHER, &k.archiver->timer, belay__now(bed->belay));
  bed_until(bed, stats(&k).completed == 8);
  k.active->time.shift_us = 37 * DAY * 1000; /* and for too long */
  belay__timer_set(bed->belay, BELAY__RANK_OTHER, &k.archiver->timer, belay__now(bed->belay));
  bed_until(bed, stats(&k).completed == 8 + 10);
  assert_int_equal(stats(&k).skipped, 20);
  assert_int_equal(k.told, 18);
  for (unsigned i = 1; i < k.told; i++)
    assert_true(k.day[i].from_ms > k.day[i - 1].to_ms);
  k.active->time.shift_us = 0; /* a clock that is set back does nothing twice */
  belay__timer_set(bed->belay, BELAY__RANK_OTHER, &k.archiver->timer, belay__now(bed->belay));
  bed_run_for(bed, 50);
  assert_int_equal(k.told, 18);
  expect_ttls(bed->server);
  assert_true(server_integer(bed->server, "PTTL", RECORD, NULL) > 375 * DAY);
  bed_close(bed);
}

/* It sleeps until midnight, by the server's clock, and a little longer. */
TEST(it_wakes_when_a_day_is_over) {
  bed_t *bed = bed_open(NULL);
  keeper_t k = {0};
  belay_archiver_options_t options = usual();
  options.delay_ms = 200;
  series(&k, bed, bed->client, BELAY_ACTIVE_DAY);
  int64_t now = server_now_ms(bed->server), wait = 700 * slow();
  k.active->time.shift_us = (DAY - now % DAY - wait) * 1000;
  int64_t began = clock_now();
  keep(&k, &options);
  bed_until(bed, k.told == 1);
  int64_t first = k.day[0].to_ms;
  bed_until(bed, k.told == 2);
  assert_between(clock_since_ms(began), wait + 190, wait + 1500 * slow());
  assert_int_equal(k.day[1].to_ms, first + DAY);
  bed_until(bed, stats(&k).completed == 2);
  uint64_t left = k.archiver->timer.when - belay__now(bed->belay);
  assert_true(belay__timer_is_set(&k.archiver->timer) && left <= HOUR * MS); /* it looks then */
  bed_close(bed);
}

TEST(months_are_merged) {
  bed_t *bed = bed_open(NULL);
  for (int hours = 0; hours < 2; hours++) {
    keeper_t k = {0};
    seen_t seen = {0};
    char user[16], month[2][16];
    int64_t now = server_now_ms(bed->server);
    series(&k, bed, bed->client, hours ? BELAY_ACTIVE_HOUR : BELAY_ACTIVE_DAY);
    for (int i = 1; i <= 8; i++) { /* two a day; one of them comes again the next day */
      for (int j = 0; j < 2; j++) {
        snprintf(user, sizeof user, "user-%d", i + j);
        int64_t then = now - now % DAY - i * DAY + (j == 0 ? 0 : DAY - 1);
        assert_error(
            seen_do(bed, &seen, belay_active_mark(k.active, r_, user, strlen(user), then, on_seen)),
            0);
      }
    }
    belay_archiver_options_t options = usual();
    options.months = true;
    options.from_ms = now - 8 * DAY;
    options.on_day = hours ? on_day : NULL;
    keep(&k, &options);
    bed_until(bed, stats(&k).completed == 8);
    assert_int_equal(stats(&k).told, hours ? 8 : 0);
    snprintf(month[0], sizeof month[0], "%06d", ago(bed, 8) / 100);
    snprintf(month[1], sizeof month[1], "%06d", ago(bed, 1) / 100);
    const belay_bytes_t labels[] = {{month[0], 6}, {month[1], 6}};
    assert_error(
        seen_do(bed, &seen, belay_active_count_archives(k.active, r_, labels, 2, on_seen_counts)),
        0);
    assert_int_equal(seen.counts[0], 9);
    close_keeper(&k);
    server_do(bed->server, "FLUSHALL", NULL);
  }
  bed_close(bed);
}

TEST(what_is_not_done_is_told_again) {
  bed_t *bed = bed_open(NULL);
  keeper_t k = {.how = BADLY};
  series(&k, bed, bed->client, BELAY_ACTIVE_DAY);
  keep(&k, NULL);
  bed_until(bed, k.told == 4);
  assert_int_equal(recorded(bed), 0);
  k.how = LATER;
  bed_until(bed, k.told == 5);
  bed_run_for(bed, 100);
  assert_int_equal(k.told, 5); /* it waits */
  for (int i = 1; i < 5; i++)
    assert_int_equal(k.day[i].date, k.day[0].date);
  assert_error(belay_archiver_done(k.archiver, k.day[0].date + 1, true), BELAY_ESTATE);
  assert_error(belay_archiver_done(k.archiver, k.day[0].date, true), 0);
  bed_until(bed, stats(&k).completed == 1);
  assert_error(belay_archiver_done(k.archiver, k.day[0].date, true), BELAY_ESTATE);
  bed_close(bed);
}

/* What is done is not told again, though it cannot be recorded for a while. */
TEST(what_is_done_is_recorded_sooner_or_later) {
  bed_t *bed = bed_open(NULL);
  for (int how = 0; how < 2; how++) {
    keeper_t k = {.how = LATER};
    series(&k, bed, bed->client, BELAY_ACTIVE_DAY);
    server_do(bed->server, "FLUSHALL", NULL);
    keep(&k, NULL);
    bed_until(bed, k.told == 1);
    if (how == 0)
      server_do(bed->server, "ACL", "SETUSER", "default", "-hset", NULL);
    else
      server_do(bed->server, "DEL", RECORD, NULL); /* and its claim is gone */
    assert_error(belay_archiver_done(k.archiver, k.day[0].date, true), 0);
    if (how == 0)
      bed_until(bed, stats(&k).failed >= 3);
    assert_int_equal(recorded(bed), 0);
    server_do(bed->server, "ACL", "SETUSER", "default", "+@all", NULL);
    bed_until(bed, stats(&k).completed == 1);
    assert_int_equal(k.told, 1);
    assert_int_equal(recorded(bed), k.day[0].date);
    close_keeper(&k);
  }
  bed_close(bed);
}

TEST(a_foreign_record_is_left_alone) {
  bed_t *bed = bed_open(NULL);
  for (int how = 0; how < 4; how++) {
    keeper_t k = {0};
    series(&k, bed, bed->client, BELAY_ACTIVE_DAY);
    if (how == 0)
      server_do(bed->server, "SET", RECORD, "text", NULL);
    else
      server_do(bed->server, "HSET", RECORD, "term", how == 1 ? "many" : "1", "day",
                how == 2   ? "20261301"
                : how == 3 ? "-1"
                           : "20261101",
                NULL);
    keep(&k, NULL);
    bed_until(bed, stats(&k).failed >= 2);
    assert_int_equal(k.told, 0);
    assert_int_equal(server_integer(bed->server, "PTTL", RECORD, NULL), -1);
    server_do(bed->server, "DEL", RECORD, NULL);
    bed_until(bed, stats(&k).completed == 1);
    close_keeper(&k);
    server_do(bed->server, "DEL", RECORD, NULL);
  }
  bed_close(bed);
}

/* ---- several --------------------------------------------------------------------------------------------- */

TEST(of_many_one_does_each_day) {
  bed_t *bed = bed_open(NULL);
  enum { N = 4 };
  keeper_t k[N] = {0};
  belay_archiver_options_t options = usual();
  options.from_ms = server_now_ms(bed->server) - 9 * DAY;
  for (int i = 0; i < N; i++) {
    belay_client_t *client = i == 0 ? bed->client : bed_connect(bed, server_url(bed->server), NULL);
    series(&k[i], bed, client, BELAY_ACTIVE_DAY);
    k[i].how = i == 0 ? LATER : AT_ONCE;
    keep(&k[i], &options);
    if (i == 0)
      bed_until(bed, k[0].told == 1);
  }
  bed_run_for(bed, 100);
  assert_int_equal(k[1].told + k[2].told + k[3].told, 0);
  close_keeper(&k[0]); /* in the middle of it */
  bed_until(bed, recorded(bed) == ago(bed, 1));
  unsigned told = 0, leaders = 0;
  for (int i = 1; i < N; i++) {
    told += k[i].told;
    leaders += k[i].told > 0;
    if (k[i].told > 0) {
      assert_int_equal(k[i].day[0].date, k[0].day[0].date); /* it was started before */
      assert_true(k[i].day[0].term > k[0].day[0].term);
    }
  }
  assert_int_equal(told, 9);
  assert_int_equal(leaders, 1);
  bed_close(bed);
}

/* A leader is paused in the middle of a day, another one does it, and the first wakes up. */
TEST(an_old_leader_records_nothing) {
  bed_t *bed = bed_open(NULL);
  keeper_t old = {.how = LATER}, next = {0};
  series(&old, bed, bed->client, BELAY_ACTIVE_DAY);
  series(&next, bed, bed_connect(bed, server_url(bed->server), NULL), BELAY_ACTIVE_DAY);
  keep(&old, NULL);
  bed_until(bed, old.told == 1);
  server_do(bed->server, "DEL", LEASE, NULL); /* it does not know yet */
  keep(&next, NULL);
  bed_until(bed, stats(&next).completed == 1);
  assert_int_equal(next.day[0].date, old.day[0].date);
  assert_true(next.day[0].term > old.day[0].term);
  int error = belay_archiver_done(old.archiver, old.day[0].date, true);
  if (error == 0) { /* it was not deposed yet */
    bed_until(bed, stats(&old).fenced > 0 || old.archiver->state == 0);
    assert_int_equal(stats(&old).completed, 0);
  } else {
    assert_error(error, BELAY_ESTATE);
  }
  bed_until(bed, belay_archiver_term(old.archiver) == 0);
  char term[24];
  snprintf(term, sizeof term, "%llu", (unsigned long long)next.day[0].term);
  assert_string_equal(server_string(bed->server, "HGET", RECORD, "term", NULL), term);
  close_keeper(&next);
  bed_until(bed, belay_archiver_term(old.archiver) != 0); /* it stands again */
  bed_run_for(bed, 50);
  assert_int_equal(old.told, 1);
  bed_close(bed);
}

/* The server goes, and comes again without its data. */
TEST(a_server_that_forgets) {
  bed_t *bed = bed_open(NULL);
  keeper_t k = {.how = LATER};
  series(&k, bed, bed->client, BELAY_ACTIVE_DAY);
  keep(&k, NULL);
  bed_until(bed, k.told == 1);
  server_kill(bed->server);
  server_restart(bed->server);
  bed_until(bed, stats(&k).elections == 2 && k.told == 2);
  assert_int_equal(k.day[1].date, k.day[0].date);
  assert_error(belay_archiver_done(k.archiver, k.day[1].date, true), 0);
  bed_until(bed, stats(&k).completed == 1);
  bed_close(bed);
}

/* ---- closing --------------------------------------------------------------------------------------------- */

TEST(every_state_may_be_closed) {
  for (int ms = 0; ms < 12; ms++)
    for (int what = 0; what < 3; what++) {
      bed_t *bed = bed_open(NULL);
      keeper_t k = {.how = ms % 3 == 0 ? LATER : AT_ONCE};
      belay_archiver_options_t options = usual();
      options.months = true;
      options.from_ms = server_now_ms(bed->server) - 9 * DAY;
      series(&k, bed, bed->client, BELAY_ACTIVE_DAY);
      keep(&k, &options);
      for (int i = 0; i < ms * ms; i++)
        uv_run(&bed->loop, UV_RUN_NOWAIT);
      if (what == 0) {
        close_keeper(&k);
      } else if (what == 1) {
        k.archiver->close_cb = on_closed;
        assert_error(belay_active_close(k.active, on_series_closed), 0);
        assert_error(belay_archiver_close(k.archiver, NULL), BELAY_ECLOSING);
        bed_until(bed, k.series_closed == 1);
      } else {
        assert_error(begin_client_close(bed), 0);
        bed_until(bed, bed->client_closed == 1);
      }
      bed_close(bed);
    }
}

TEST(the_callback_may_end_everything) {
  for (int how = CLOSES; how <= CLOSES_ALL; how++) {
    bed_t *bed = bed_open(NULL);
    keeper_t k = {.how = (how_t)how};
    series(&k, bed, bed->client, BELAY_ACTIVE_DAY);
    keep(&k, NULL);
    bed_until(bed, k.told == 1);
    if (how == CLOSES)
      bed_until(bed, k.closed == 1);
    bed_close(bed);
  }
}

TEST(options_are_checked) {
  bed_t *bed = bed_open(NULL);
  keeper_t k = {0};
  belay_archiver_t *out;
  series(&k, bed, bed->client, BELAY_ACTIVE_DAY);
  static const struct {
    int64_t from_ms, delay_ms, jitter_ms, retry_ms, lease_ms;
    const char *what;
  } rows[] = {
      {-1, 0, 0, 10, 1000, "from_ms"},   {BELAY_ACTIVE_TIME_MAX + 1, 0, 0, 10, 1000, "from_ms"},
      {0, -1, 0, 10, 1000, "delay_ms"},  {0, HOUR + 1, 0, 10, 1000, "delay_ms"},
      {0, 0, -1, 10, 1000, "jitter_ms"}, {0, 0, HOUR + 1, 10, 1000, "jitter_ms"},
      {0, 0, 0, 9, 1000, "retry_ms"},    {0, 0, 0, HOUR + 1, 1000, "retry_ms"},
      {0, 0, 0, 10, 999, "lease_ms"},    {0, 0, 0, 10, 600001, "lease_ms"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    belay_archiver_options_t o = {on_day,
                                  false,
                                  rows[i].from_ms,
                                  rows[i].delay_ms,
                                  rows[i].jitter_ms,
                                  rows[i].retry_ms,
                                  rows[i].lease_ms,
                                  NULL};
    out = (belay_archiver_t *)bed;
    assert_error(belay_archiver_new(k.active, &o, &out), BELAY_EINVAL);
    assert_null(out);
    assert_memory_equal(belay_detail(bed->belay), rows[i].what, strlen(rows[i].what));
  }
  assert_error(belay_archiver_new(k.active, NULL, &out), BELAY_EINVAL);
  assert_memory_equal(belay_detail(bed->belay), "on_day", 6);
  belay_archiver_options_t o = usual();
  assert_error(belay_archiver_new(NULL, &o, &out), BELAY_EINVAL);
  assert_error(belay_archiver_new(k.active, &o, NULL), BELAY_EINVAL);
  k.active->ttl_ms = 2 * DAY - 1;
  assert_error(belay_archiver_new(k.active, &o, &out), BELAY_EINVAL);
  assert_memory_equal(belay_detail(bed->belay), "active", 6);
  belay_archiver_options_init(NULL);
  belay_archiver_stats_t s;
  belay_archiver_stats(NULL, &s);
  assert_null(belay_archiver_data(NULL));
  assert_true(belay_archiver_term(NULL) == 0 && s.told == 0);
  assert_error(belay_archiver_done(NULL, 20261121, true), BELAY_EINVAL);
  assert_error(belay_archiver_close(NULL, NULL), BELAY_EINVAL);
  bed_close(bed);
}
