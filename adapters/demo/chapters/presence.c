/* Chapter: who is online, by a bit for each: until he logs out, and for as long as he was seen of late. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { USERS = 5000, LEAVERS = 1000, APART = 3200, WINDOW_MS = 400, SLICES = 4, GRACE_MS = 200 };
enum { LONGEST_MS = WINDOW_MS + WINDOW_MS / SLICES + GRACE_MS };

typedef struct hall {
  demo_t *demo;
  belay_presence_t *until_logout, *of_late;
  belay_request_t request;
  uint32_t ids[USERS];
  int64_t count;
  bool online;
} hall_t;

static void on_done(belay_request_t *request, int status) {
  hall_t *hall = request->data;
  if (status != 0)
    demo_trouble(hall->demo, "presence", status);
}

static void on_count(belay_request_t *request, int status, int64_t count) {
  hall_t *hall = request->data;
  hall->count = status == 0 ? count : -1;
}

static void on_is(belay_request_t *request, int status, const bool *online, size_t n) {
  hall_t *hall = request->data;
  if (status != 0)
    demo_trouble(hall->demo, "asking who is online", status);
  hall->online = status == 0 && n == 1 && online[0];
}

/* Waits for what was begun. */
static void wait_for(hall_t *hall, int error) {
  if (error != 0)
    demo_trouble(hall->demo, "presence", error);
  demo_run(hall->demo);
}

static int64_t count(hall_t *hall, belay_presence_t *presence) {
  wait_for(hall, belay_presence_count(presence, &hall->request, on_count));
  return hall->count;
}

static void come_and_go(hall_t *hall) {
  demo_t *demo = hall->demo;
  belay_presence_t *p = hall->until_logout;
  wait_for(hall, belay_presence_set_many(p, &hall->request, hall->ids, USERS, on_done));
  int64_t all = count(hall, p);
  demo_event(demo, 0, "%d have logged in, with ids up to %u: one call", USERS,
             hall->ids[USERS - 1]);
  wait_for(hall, belay_presence_clear_many(p, &hall->request, hall->ids, LEAVERS, on_done));
  int64_t left = count(hall, p);
  wait_for(hall, belay_presence_is(p, &hall->request, hall->ids[0], on_is));
  bool first = hall->online;
  wait_for(hall, belay_presence_is(p, &hall->request, hall->ids[LEAVERS], on_is));
  demo_event(demo, 0, "%d have logged out", LEAVERS);
  demo_fact(demo, all == USERS && left == USERS - LEAVERS && !first && hall->online,
            "%lld are online, not more and not less", (long long)left);
}

/* How long somebody who came once is online. */
static void pass_by(hall_t *hall) {
  demo_t *demo = hall->demo;
  belay_presence_t *p = hall->of_late;
  wait_for(hall, belay_presence_set(p, &hall->request, hall->ids[0], on_done));
  uint64_t seen = uv_hrtime(), last = seen;
  for (hall->online = true; hall->online && demo_seconds(seen, last) < 5; last = uv_hrtime()) {
    wait_for(hall, belay_presence_is(p, &hall->request, hall->ids[0], on_is));
  }
  double seconds = demo_seconds(seen, last);
  demo_fact(demo, !hall->online && seconds >= (WINDOW_MS - 10) / 1e3 && seconds <= LONGEST_MS / 1e3,
            "seen in the last %.1f s, in %d slices: who came once was online for %.2f s",
            WINDOW_MS / 1e3, SLICES, seconds);
}

static belay_presence_t *open_one(demo_t *demo, const char *name, int64_t window_ms) {
  belay_presence_t *presence;
  belay_presence_options_t options;
  belay_presence_options_init(&options);
  options.name = name;
  options.name_len = strlen(name);
  options.window_ms = window_ms;
  options.slices = SLICES;
  int error = belay_presence_new(demo->client[DEMO_A], &options, &presence);
  if (error != 0)
    demo_trouble(demo, "making a presence", error);
  return presence;
}

void chapter_presence(demo_t *demo) {
  static hall_t hall;
  hall = (hall_t){.demo = demo, .request.data = &hall};
  for (uint32_t i = 0; i < USERS; i++)
    hall.ids[i] = i * APART;
  hall.until_logout = open_one(demo, "online", 0);
  hall.of_late = open_one(demo, "late", WINDOW_MS);
  if (hall.until_logout != NULL && hall.of_late != NULL) {
    come_and_go(&hall);
    pass_by(&hall);
    wait_for(&hall, belay_presence_reset(hall.until_logout, &hall.request, on_done));
    wait_for(&hall, belay_presence_reset(hall.of_late, &hall.request, on_done));
  }
  (void)belay_presence_close(hall.until_logout, NULL);
  (void)belay_presence_close(hall.of_late, NULL);
  demo_run(demo);
}
