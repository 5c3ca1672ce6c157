/* Chapter: a visitor clicks, leaves, and comes back; and somebody is told when he has gone. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { TTL_MS = 1000, LOOK_MS = 10, CLICKS = 4 };
static const char user[] = "ann";
static const char *const pages[CLICKS] = {"home", "ropes", "cart", "home again"};

typedef struct visit {
  demo_t *demo;
  belay_session_t *session;
  belay_session_watch_t *watch;
  belay_request_t request;
  unsigned clicks;
  char first[BELAY_SESSION_ID_MAX + 1], second[BELAY_SESSION_ID_MAX + 1];
  unsigned contexts, told; /* that began, that were told */
  bool alone;              /* the second one has its own event alone */
  bool right;              /* what was told was the first one, and the second */
} visit_t;

static void click(visit_t *visit);

static void copy_id(char out[BELAY_SESSION_ID_MAX + 1], const void *id, size_t len) {
  memcpy(out, id, len);
  out[len] = '\0';
}

static void on_ended(belay_session_watch_t *watch, const belay_session_ended_t *ended) {
  visit_t *visit = belay_session_watch_data(watch);
  char id[BELAY_SESSION_ID_MAX + 1];
  copy_id(id, ended->id, ended->id_len);
  bool right = strcmp(id, visit->told == 0 ? visit->first : visit->second) == 0;
  visit->right = right && (visit->told == 0 || visit->right);
  visit->told++;
  demo_event(visit->demo, 0, "told: %.*s has gone, %.18s...", (int)ended->user_len, ended->user,
             id);
  if (visit->told == 1)
    click(visit);
  else
    (void)belay_session_watch_close(watch, NULL);
}

static void on_done(belay_request_t *request, int status, const belay_session_state_t *state) {
  visit_t *visit = request->data;
  (void)state;
  if (status != 0)
    demo_trouble(visit->demo, "ending a session", status);
}

static void on_read(belay_request_t *request, int status, const belay_session_state_t *state) {
  visit_t *visit = request->data;
  visit->alone =
      status == 0 && state->events_len == 1 && state->events[0].len == strlen(pages[CLICKS - 1]);
  int error = belay_session_end(visit->session, request, user, strlen(user), visit->second,
                                strlen(visit->second), on_done);
  if (error != 0)
    demo_trouble(visit->demo, "ending a session", error);
}

static void on_clicked(belay_request_t *request, int status, const belay_session_state_t *state) {
  visit_t *visit = request->data;
  if (status != 0) {
    demo_trouble(visit->demo, "a click", status);
    (void)belay_session_watch_close(visit->watch, NULL);
    return;
  }
  copy_id(state->is_new && visit->contexts > 0 ? visit->second : visit->first, state->id,
          state->id_len);
  visit->contexts += state->is_new;
  demo_event(visit->demo, 0, "%-10s  %s %.18s..., event %lld", pages[visit->clicks],
             state->is_new ? "a new session," : "the same one, ", (const char *)state->id,
             (long long)state->count);
  if (++visit->clicks < CLICKS - 1)
    click(visit);
  else if (visit->clicks == CLICKS)
    (void)belay_session_read(visit->session, request, user, strlen(user), 10, on_read);
}

static void click(visit_t *visit) {
  const char *page = pages[visit->clicks];
  const belay_session_touch_t touch = {.event = page, .event_len = strlen(page)};
  int error =
      belay_session_touch(visit->session, &visit->request, user, strlen(user), &touch, on_clicked);
  if (error == 0)
    return;
  demo_trouble(visit->demo, "a click", error);
  (void)belay_session_watch_close(visit->watch, NULL);
}

static bool open_all(visit_t *visit) {
  belay_session_options_t options;
  belay_session_watch_options_t watching;
  belay_session_options_init(&options);
  belay_session_watch_options_init(&watching);
  options.name = "shop";
  options.name_len = 4;
  options.ttl_ms = TTL_MS;
  options.notice = true;
  watching.interval_ms = LOOK_MS;
  watching.data = visit;
  int error = belay_session_new(visit->demo->client[DEMO_A], &options, &visit->session);
  if (error == 0)
    error = belay_session_watch(visit->session, &watching, on_ended, &visit->watch);
  if (error != 0)
    demo_trouble(visit->demo, "watching sessions", error);
  return error == 0;
}

void chapter_session(demo_t *demo) {
  visit_t visit = {.demo = demo};
  if (!open_all(&visit))
    return;
  visit.request.data = &visit;
  click(&visit);
  demo_run(demo);
  term_print(&demo->term, "\n");
  demo_fact(demo, visit.contexts == 2 && strcmp(visit.first, visit.second) < 0,
            "four clicks, two sessions; their ids are in the order in which they began");
  demo_fact(demo, visit.alone, "the second one has none of the events of the first");
  demo_fact(demo, visit.told == 2 && visit.right,
            "that each has ended was told once: the first by its time, the second by hand");
  (void)belay_session_close(visit.session, NULL);
  demo_run(demo);
}
