/* Chapter: a visitor clicks, leaves, and comes back. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { TTL_MS = 1000 };
static const char user[] = "ann";

typedef struct answer {
  char id[BELAY_SESSION_ID_MAX + 1];
  bool is_new, exists, ended;
  size_t events;
} answer_t;

static void on_answer(belay_request_t *request, int status, const belay_session_state_t *state) {
  demo_t *demo = request->data;
  answer_t *answer = demo->out;
  if (status == 0) {
    *answer = (answer_t){"", state->is_new, state->exists, state->ended, state->events_len};
    (void)snprintf(answer->id, sizeof answer->id, "%.*s", (int)state->id_len,
                   (const char *)state->id);
  }
  demo_done(demo, status);
}

static answer_t click(demo_t *demo, belay_session_t *session, const char *page) {
  const belay_session_touch_t touch = {.event = belay_string(page)};
  answer_t answer = {0};
  demo->out = &answer;
  (void)demo_await(
      demo, "a click",
      belay_session_touch(session, &demo->request, belay_string(user), &touch, on_answer));
  demo_event(demo, 0, "%-10s  %s %.18s...", page,
             answer.is_new ? "a new session," : "the same one, ", answer.id);
  return answer;
}

static answer_t read_events(demo_t *demo, belay_session_t *session) {
  answer_t answer = {0};
  demo->out = &answer;
  (void)demo_await(demo, "reading a session",
                   belay_session_read(session, &demo->request, belay_string(user), 10, on_answer));
  return answer;
}

static void play(demo_t *demo, belay_session_t *session) {
  answer_t home = click(demo, session, "home"), ropes = click(demo, session, "ropes");
  demo_sleep(demo, TTL_MS + 50);
  answer_t away = read_events(demo, session), again = click(demo, session, "home again");
  answer_t events = read_events(demo, session), end = {0};
  demo->out = &end;
  (void)demo_await(demo, "ending a session",
                   belay_session_end(session, &demo->request, belay_string(user),
                                     belay_string(again.id), on_answer));
  demo_print("\n");
  demo_fact(demo,
            home.is_new && !ropes.is_new && !away.exists && again.is_new &&
                strcmp(home.id, again.id) < 0,
            "three clicks, two sessions; their ids are in the order in which they began");
  demo_fact(demo, events.events == 1, "the second one has none of the events of the first");
  demo_fact(demo, end.ended, "and it ends when the visitor logs out");
}

void chapter_session(demo_t *demo) {
  belay_session_t *session;
  belay_session_options_t options;
  belay_session_options_init(&options);
  options.name = belay_string("shop");
  options.ttl_ms = TTL_MS;
  if (!demo_made(demo, "sessions", belay_session_new(demo->client[DEMO_A], &options, &session)))
    return;
  play(demo, session);
  (void)belay_session_close(session, NULL);
}
