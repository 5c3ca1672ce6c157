/* Chapter: a visitor clicks, leaves, and comes back. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { TTL_MS = 1000, CLICKS = 4 };
static const char user[] = "ann";
static const char *const pages[CLICKS] = {"home", "ropes", "cart", "home again"};

typedef struct visit {
  demo_t *demo;
  belay_session_t *session;
  belay_request_t request;
  char id[CLICKS][BELAY_SESSION_ID_MAX + 1]; /* of the session that each click belongs to */
  bool is_new[CLICKS];
  unsigned clicks;
  bool gone;  /* no session is left after its ttl */
  bool alone; /* the second session has one event, its own */
} visit_t;

static void on_clicked(belay_request_t *request, int status, const belay_session_state_t *state) {
  visit_t *visit = request->data;
  unsigned i = visit->clicks++;
  if (status != 0) {
    demo_trouble(visit->demo, "a click", status);
    return;
  }
  (void)snprintf(visit->id[i], sizeof visit->id[i], "%.*s", (int)state->id_len,
                 (const char *)state->id);
  visit->is_new[i] = state->is_new;
  demo_event(visit->demo, 0, "%-10s  %s %.18s..., event %lld", pages[i],
             state->is_new ? "a new session," : "the same one, ", visit->id[i],
             (long long)state->count);
}

static void on_read(belay_request_t *request, int status, const belay_session_state_t *state) {
  visit_t *visit = request->data;
  visit->gone = status == 0 && !state->exists;
  visit->alone =
      status == 0 && state->events_len == 1 && state->events[0].len == strlen(pages[CLICKS - 1]);
}

static void on_ended(belay_request_t *request, int status, const belay_session_state_t *state) {
  const visit_t *visit = request->data;
  demo_fact(visit->demo, status == 0 && state->ended, "and it ends when the visitor logs out");
}

static void click(visit_t *visit) {
  const char *page = pages[visit->clicks];
  const belay_session_touch_t touch = {.event = page, .event_len = strlen(page)};
  (void)demo_await(
      visit->demo, "a click",
      belay_session_touch(visit->session, &visit->request, user, strlen(user), &touch, on_clicked));
}

static void read_events(visit_t *visit) {
  (void)demo_await(
      visit->demo, "reading a session",
      belay_session_read(visit->session, &visit->request, user, strlen(user), 10, on_read));
}

static void play(visit_t *visit) {
  demo_t *demo = visit->demo;
  for (unsigned i = 0; i + 1 < CLICKS; i++)
    click(visit);
  DEMO_WAIT(demo, TTL_MS + 50, false);
  read_events(visit);
  bool gone = visit->gone;
  demo_event(demo, 0, "%s was away for longer than a second", user);
  click(visit);
  read_events(visit);
  const char *first = visit->id[0], *last = visit->id[CLICKS - 1];
  term_print(&demo->term, "\n");
  demo_fact(demo,
            visit->is_new[0] && !visit->is_new[1] && !visit->is_new[2] && gone &&
                visit->is_new[CLICKS - 1] && strcmp(first, last) < 0,
            "four clicks, two sessions; their ids are in the order in which they began");
  demo_fact(demo, visit->alone, "the second one has none of the events of the first");
  (void)demo_await(demo, "ending a session",
                   belay_session_end(visit->session, &visit->request, user, strlen(user), last,
                                     strlen(last), on_ended));
}

void chapter_session(demo_t *demo) {
  visit_t visit = {.demo = demo, .request.data = &visit};
  belay_session_options_t options;
  belay_session_options_init(&options);
  options.name = "shop";
  options.ttl_ms = TTL_MS;
  int error = belay_session_new(demo->client[DEMO_A], &options, &visit.session);
  if (!demo_await(demo, "opening sessions", error))
    return;
  play(&visit);
  (void)belay_session_close(visit.session, NULL);
  demo_run(demo);
}
