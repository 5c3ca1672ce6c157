/* Chapter: a site's active users. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"
#include "shell/units.h"

enum { DAYS = 30, PER_DAY = 40, STAYING = 10, SPANS = 5 };

typedef struct site {
  demo_t *demo;
  belay_request_t request;
  belay_active_t *active;
  int64_t counts[SPANS];
  unsigned marked; /* calls */
} site_t;

static void wait_for(site_t *site, const char *what, int error) {
  (void)demo_await(site->demo, what, error);
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
           belay_active_mark_many(site->active, &site->request, users, PER_DAY,
                                  today_ms - (int64_t)ago * DAY_MS, on_marked));
}

static bool is_close(int64_t count, int64_t expected) {
  return count * 100 >= expected * 95 && count * 100 <= expected * 105;
}

static void count(site_t *site) {
  static const unsigned days[SPANS] = {1, 3, 7, 15, 30};
  demo_t *demo = site->demo;
  bool close = site->marked == DAYS;
  wait_for(
      site, "counting",
      belay_active_count_last(site->active, &site->request, BELAY_ACTIVE_NOW, NULL, 0, on_counts));
  for (unsigned i = 0; i < SPANS; i++)
    close = close && is_close(site->counts[i], STAYING + (PER_DAY - STAYING) * (int64_t)days[i]);
  demo_fact(demo, close,
            "active in the last 1, 3, 7, 15, 30 days: %lld, %lld, %lld, %lld, %lld, in one call",
            (long long)site->counts[0], (long long)site->counts[1], (long long)site->counts[2],
            (long long)site->counts[3], (long long)site->counts[4]);
}

void chapter_active(demo_t *demo) {
  site_t site = {.demo = demo, .request.data = &site};
  uv_timeval64_t now = {0};
  (void)uv_gettimeofday(&now);
  int64_t today_ms = now.tv_sec * 1000;
  belay_active_options_t options;
  belay_active_options_init(&options);
  options.name = demo->name;
  /* A time zone where it is about noon: no midnight comes while the chapter runs. */
  options.utc_offset_minutes = (int32_t)(720 - today_ms % DAY_MS / 60000);
  if (!demo_await(demo, "making a series",
                  belay_active_new(demo->client[DEMO_A], &options, &site.active)))
    return;
  for (unsigned ago = 0; ago < DAYS; ago++)
    come(&site, today_ms, ago);
  count(&site);
  (void)belay_active_close(site.active, NULL);
  (void)demo_sweep(demo, "active::*", true);
}
