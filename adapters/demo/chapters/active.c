/* Chapter: a site's active users. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"
#include "shell/units.h"

enum { DAYS = 30, PER_DAY = 40, STAYING = 10, SPANS = 5 };

static void on_counts(belay_request_t *request, int status, const int64_t *counts, size_t n) {
  demo_t *demo = request->data;
  memcpy(demo->out, counts, (n < SPANS ? n : SPANS) * sizeof *counts);
  demo_done(demo, status);
}

/* Each day has users that come every day, and others that come on this day only. */
static bool mark(demo_t *demo, belay_active_t *active, int64_t today_ms, unsigned ago) {
  char names[PER_DAY][16];
  belay_bytes_t users[PER_DAY];
  for (unsigned i = 0; i < PER_DAY; i++) {
    unsigned number = i < STAYING ? i : 1000 * (ago + 1) + i;
    int len = snprintf(names[i], sizeof names[i], "user-%u", number);
    users[i] = (belay_bytes_t){.data = names[i], .len = (size_t)len};
  }
  return demo_await(demo, "marking",
                    belay_active_mark_many(active, &demo->request, users, PER_DAY,
                                           today_ms - (int64_t)ago * DAY_MS, demo_on_done));
}

static bool is_close(int64_t count, int64_t expected) {
  return count * 100 >= expected * 95 && count * 100 <= expected * 105;
}

void chapter_active(demo_t *demo) {
  static const unsigned days[SPANS] = {1, 3, 7, 15, 30};
  long long counts[SPANS] = {0};
  uv_timeval64_t now = {0};
  (void)uv_gettimeofday(&now);
  int64_t today_ms = now.tv_sec * 1000, found[SPANS] = {0};
  belay_active_t *active;
  belay_active_options_t options;
  belay_active_options_init(&options);
  options.name = belay_string(demo->name);
  /* A time zone where it is about noon: no midnight comes while the chapter runs. */
  options.utc_offset_minutes = (int32_t)(720 - today_ms % DAY_MS / 60000);
  if (!demo_made(demo, "a series", belay_active_new(demo->client[DEMO_A], &options, &active)))
    return;
  bool close = true;
  for (unsigned ago = 0; ago < DAYS; ago++)
    close = mark(demo, active, today_ms, ago) && close;
  demo->out = found;
  close = demo_await(demo, "counting",
                     belay_active_count_last(active, &demo->request, BELAY_ACTIVE_NOW, NULL, 0,
                                             on_counts)) &&
          close;
  for (unsigned i = 0; i < SPANS; i++) {
    close = close && is_close(found[i], STAYING + (PER_DAY - STAYING) * (int64_t)days[i]);
    counts[i] = found[i];
  }
  demo_fact(demo, close,
            "active in the last 1, 3, 7, 15, 30 days: %lld, %lld, %lld, %lld, %lld, in one call",
            counts[0], counts[1], counts[2], counts[3], counts[4]);
  (void)belay_active_close(active, NULL);
}
