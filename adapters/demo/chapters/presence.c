/* Chapter: which users are online: a bit each, until logout or for a window of time. */
#include "demo/chapters.h"

enum { USERS = 5000, LEAVERS = 1000, APART = 3200, WINDOW_MS = 400, SLICES = 4, GRACE_MS = 200 };
enum { LONGEST_MS = WINDOW_MS + WINDOW_MS / SLICES + GRACE_MS };

static belay_presence_t *make(demo_t *demo, const char *name, int64_t window_ms) {
  belay_presence_t *presence = NULL;
  belay_presence_options_t options;
  belay_presence_options_init(&options);
  options.name = belay_string(name);
  options.window_ms = window_ms;
  options.slices = SLICES;
  (void)demo_made(demo, "a presence",
                  belay_presence_new(demo->client[DEMO_A], &options, &presence));
  return presence;
}

static int64_t count(demo_t *demo, belay_presence_t *presence) {
  (void)demo_await(demo, "counting",
                   belay_presence_count(presence, &demo->request, demo_on_number));
  return demo->number;
}

static void on_is(belay_request_t *request, int status, const bool *online, size_t n) {
  demo_on_yes(request, status, n == 1 && online[0]);
}

static bool is_online(demo_t *demo, belay_presence_t *presence, uint32_t id) {
  return demo_await(demo, "asking for a user",
                    belay_presence_is(presence, &demo->request, id, on_is)) &&
         demo->yes;
}

static void log_in_and_out(demo_t *demo, belay_presence_t *presence) {
  static uint32_t ids[USERS];
  for (uint32_t i = 0; i < USERS; i++)
    ids[i] = i * APART;
  (void)demo_await(demo, "logging in",
                   belay_presence_set_many(presence, &demo->request, ids, USERS, demo_on_done));
  int64_t all = count(demo, presence);
  demo_event(demo, 0, "%d have logged in, with ids up to %u: one call", USERS, ids[USERS - 1]);
  (void)demo_await(demo, "logging out",
                   belay_presence_clear_many(presence, &demo->request, ids, LEAVERS, demo_on_done));
  int64_t left = count(demo, presence);
  demo_event(demo, 0, "%d have logged out", LEAVERS);
  demo_fact(demo,
            all == USERS && left == USERS - LEAVERS && !is_online(demo, presence, ids[0]) &&
                is_online(demo, presence, ids[LEAVERS]),
            "%lld are online, not more and not less", (long long)left);
}

static void pass_by(demo_t *demo, belay_presence_t *presence) {
  (void)demo_await(demo, "seeing a user",
                   belay_presence_set(presence, &demo->request, 0, demo_on_done));
  uint64_t seen = uv_hrtime(), last = seen;
  bool online = true;
  for (; online && demo_seconds(seen, last) < 5; last = uv_hrtime())
    online = is_online(demo, presence, 0);
  double seconds = demo_seconds(seen, last);
  demo_fact(demo, !online && seconds >= (WINDOW_MS - 10) / 1e3 && seconds <= LONGEST_MS / 1e3,
            "with a window of %.1f s in %d slices: seen once, a user was online for %.2f s",
            WINDOW_MS / 1e3, SLICES, seconds);
}

void chapter_presence(demo_t *demo) {
  belay_presence_t *until_logout = make(demo, "online", 0);
  belay_presence_t *with_window = make(demo, "window", WINDOW_MS);
  if (until_logout == NULL || with_window == NULL)
    return;
  log_in_and_out(demo, until_logout);
  pass_by(demo, with_window);
  (void)belay_presence_close(until_logout, NULL);
  (void)belay_presence_close(with_window, NULL);
}
