/* Chapter: a site's active users, and an archiver that stops in the middle of a day. */
#include <stdio.h>
#include <string.h>

#include "demo/demo.h"
#include "shell/units.h"

enum { DAYS = 30, PER_DAY = 40, STAYING = 10, ARCHIVED = 4, SPANS = 5 };

typedef struct site site_t;

/* An archiver of one of the two clients. */
typedef struct keeper {
  site_t *site;
  char who;
  bool stops; /* in the middle of the second day */
  unsigned told;
  belay_active_t *active;
  belay_archiver_t *archiver;
} keeper_t;

struct site {
  demo_t *demo;
  belay_request_t request;
  keeper_t keeper[DEMO_CONTENDERS];
  int64_t counts[SPANS];
  unsigned marked, told, completed;
  int32_t date[2 * ARCHIVED], last; /* the days that were begun */
};

static void wait_for(site_t *site, const char *what, int error) {
  if (error != 0)
    demo_trouble(site->demo, what, error);
  (void)uv_run(&site->demo->loop, UV_RUN_DEFAULT);
}

/* ---- users --------------------------------------------------------------------------------------------- */

static void on_marked(belay_request_t *request, int status) {
  site_t *site = request->data;
  site->marked += status == 0;
}

static void on_counts(belay_request_t *request, int status, const int64_t *counts, size_t n) {
  site_t *site = request->data;
  if (status != 0)
    demo_trouble(site->demo, "counting", status);
  for (size_t i = 0; i < n && i < SPANS; i++)
    site->counts[i] = counts[i];
}

/* On each day some who always come, and others who come on this day only. */
static void come(site_t *site, int64_t today_ms, unsigned ago) {
  char names[PER_DAY][16];
  belay_bytes_t users[PER_DAY];
  for (unsigned i = 0; i < PER_DAY; i++) {
    unsigned number = i < STAYING ? i : 1000 * (ago + 1) + i;
    int len = snprintf(names[i], sizeof names[i], "user-%u", number);
    users[i] = (belay_bytes_t){.data = names[i], .len = (size_t)len};
  }
  wait_for(site, "marking",
           belay_active_mark_many(site->keeper[DEMO_A].active, &site->request, users, PER_DAY,
                                  today_ms - (int64_t)ago * DAY_MS, on_marked));
}

static bool is_close(int64_t count, int64_t expected) {
  return count * 100 >= expected * 95 && count * 100 <= expected * 105;
}

static void count(site_t *site) {
  static const unsigned days[SPANS] = {1, 3, 7, 15, 30};
  demo_t *demo = site->demo;
  bool close = site->marked == DAYS;
  wait_for(site, "counting",
           belay_active_count_last(site->keeper[DEMO_A].active, &site->request, BELAY_ACTIVE_NOW,
                                   NULL, 0, on_counts));
  for (unsigned i = 0; i < SPANS; i++)
    close = close && is_close(site->counts[i], STAYING + (PER_DAY - STAYING) * (int64_t)days[i]);
  demo_fact(demo, close,
            "active in the last 1, 3, 7, 15, 30 days: %lld, %lld, %lld, %lld, %lld, in one call",
            (long long)site->counts[0], (long long)site->counts[1], (long long)site->counts[2],
            (long long)site->counts[3], (long long)site->counts[4]);
}

/* ---- archivers ----------------------------------------------------------------------------------------- */

static void on_day(belay_archiver_t *archiver, const belay_archiver_day_t *day) {
  keeper_t *keeper = belay_archiver_data(archiver);
  site_t *site = keeper->site;
  bool stop = keeper->stops && ++keeper->told == 2;
  if (site->told < 2 * ARCHIVED)
    site->date[site->told++] = day->date;
  demo_event(site->demo, 0, "%c archives %d%s", keeper->who, (int)day->date,
             stop ? ", and stops in the middle of it" : "");
  if (stop)
    (void)belay_archiver_close(archiver, NULL);
  else
    (void)belay_archiver_done(archiver, day->date, true);
}

static void on_look(uv_timer_t *timer) {
  site_t *site = timer->data;
  belay_archiver_stats_t stats;
  belay_archiver_stats(site->keeper[DEMO_B].archiver, &stats);
  site->completed = (unsigned)stats.completed;
  site->last = stats.last;
  if (site->completed < ARCHIVED - 1 && demo_seconds(site->demo->began, uv_hrtime()) < 20)
    return;
  demo_timer_close(timer);
  (void)belay_archiver_close(site->keeper[DEMO_B].archiver, NULL);
}

static void archive(site_t *site, int64_t today_ms) {
  demo_t *demo = site->demo;
  belay_archiver_options_t options;
  belay_archiver_options_init(&options);
  options.on_day = on_day;
  options.months = true;
  options.from_ms = today_ms - ARCHIVED * DAY_MS;
  options.delay_ms = options.jitter_ms = 0;
  for (unsigned i = 0; i < DEMO_CONTENDERS; i++) {
    options.data = &site->keeper[i];
    int error = belay_archiver_new(site->keeper[i].active, &options, &site->keeper[i].archiver);
    if (error != 0) {
      demo_trouble(demo, "making an archiver", error);
      return;
    }
  }
  uv_timer_t timer;
  demo_timer_open(demo, &timer, site);
  demo_timer_start(demo, &timer, on_look, 10, 10);
  (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
  bool again = site->told == ARCHIVED + 1 && site->date[1] == site->date[2];
  demo_fact(demo, again && site->completed == ARCHIVED - 1 && site->last == site->date[ARCHIVED],
            "%d days were archived, each recorded once; B began one day again that A had left",
            ARCHIVED);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static void on_swept(belay_sweep_t *sweep, int status, const belay_sweep_totals_t *totals) {
  site_t *site = belay_sweep_data(sweep);
  (void)totals;
  if (status != 0)
    demo_trouble(site->demo, "sweeping", status);
  (void)belay_sweep_close(sweep, NULL);
}

static void sweep(site_t *site, const char *pattern) {
  belay_sweep_options_t options;
  belay_sweep_t *sweep;
  belay_sweep_options_init(&options);
  options.pattern = pattern;
  options.pattern_len = strlen(pattern);
  options.remove = true;
  options.data = site;
  int error = belay_sweep_new(site->demo->client[DEMO_A], &options, &sweep);
  if (error == 0)
    error = belay_sweep_start(sweep, on_swept);
  wait_for(site, "sweeping", error);
}

/* It is about noon there, so that no midnight comes in between. */
static bool open_series(site_t *site, int64_t now_ms) {
  belay_active_options_t options;
  belay_active_options_init(&options);
  options.name = site->demo->lock_name;
  options.name_len = strlen(options.name);
  options.utc_offset_minutes = (int32_t)(720 - now_ms % DAY_MS / 60000);
  for (unsigned i = 0; i < DEMO_CONTENDERS; i++) {
    site->keeper[i] = (keeper_t){.site = site, .who = "AB"[i], .stops = i == DEMO_A};
    int error = belay_active_new(site->demo->client[i], &options, &site->keeper[i].active);
    if (error != 0) {
      demo_trouble(site->demo, "making a series", error);
      return false;
    }
  }
  return true;
}

void play_active(demo_t *demo) {
  demo_text(demo,
            "  A month of users, and two archivers who merge the last days into the archives\n"
            "  of their months. One of them is elected, and stops in the middle of a day.");
  site_t site = {.demo = demo, .request.data = &site};
  uv_timeval64_t now;
  if (uv_gettimeofday(&now) != 0)
    return;
  int64_t today_ms = now.tv_sec * 1000;
  if (!open_series(&site, today_ms))
    return;
  for (unsigned ago = 0; ago < DAYS; ago++)
    come(&site, today_ms, ago);
  count(&site);
  archive(&site, today_ms);
  for (unsigned i = 0; i < DEMO_CONTENDERS; i++)
    (void)belay_active_close(site.keeper[i].active, NULL);
  (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
  sweep(&site, "active::*");
  sweep(&site, "election::*active/*");
  demo_used(demo, WORKER_NAMESPACE "::%s::active::{active}::archived", demo->run);
  for (unsigned i = 0; i < 2; i++)
    demo_used(demo, WORKER_NAMESPACE "::%s::active::{active}::%d", demo->run, (int)site.date[i]);
}
