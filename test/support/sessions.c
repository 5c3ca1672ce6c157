#include "support/sessions.h"

#include <stdio.h>

belay_session_options_t session_options(void) {
  belay_session_options_t options;
  belay_session_options_init(&options);
  return options;
}

void place_of(place_t *place, bed_t *bed, belay_client_t *client,
              const belay_session_options_t *options) {
  *place = (place_t){.bed = bed};
  belay_session_options_t o = *options;
  o.data = place;
  int error = belay_session_new(client, &o, &place->session);
  if (error != 0)
    fail_msg("belay_session_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  assert_ptr_equal(belay_session_data(place->session), place);
}

void place_new(place_t *place, bed_t *bed) {
  belay_session_options_t options = session_options();
  options.name = "shop";
  options.name_len = 4;
  place_of(place, bed, bed->client, &options);
}

static void then(place_t *place) {
  unsigned inside = place->bed->inside;
  place->bed->wrong += inside;
  place->bed->inside = 0;
  if (place->then != NULL)
    place->then(place);
  place->bed->inside = inside;
}

static void keep_text(char out[STAY_TEXT], const void *data, size_t len) {
  memset(out, 0, STAY_TEXT);
  if (len > 0)
    memcpy(out, data, len < STAY_TEXT - 1 ? len : STAY_TEXT - 1);
}

void on_stay(belay_request_t *request, int status, const belay_session_state_t *state) {
  stay_t *stay = request->data;
  place_t *place = stay->place;
  assert_non_null(state);
  assert_true(status == 0 || (!state->exists && !state->is_new && !state->ended &&
                              state->id == NULL && state->events == NULL && state->count == 0));
  stay->ended++;
  stay->status = status;
  snprintf(stay->detail, sizeof stay->detail, "%s", belay_detail(place->bed->belay));
  stay->state = (belay_session_state_t){.count = -1};
  if (status == 0) {
    stay->state = *state;
    assert_int_equal(state->id != NULL, state->id_len > 0);
    assert_int_equal(state->events != NULL, state->events_len > 0);
    keep_text(stay->id, state->id, state->id_len);
    for (size_t i = 0; i < state->events_len && i < STAY_EVENTS; i++)
      keep_text(stay->event[i], state->events[i].data, state->events[i].len);
    stay->state.id = NULL;
    stay->state.events = NULL;
  }
  place->bed->wrong += stay->ended > stay->begun || place->closed > 0;
  place->pending--;
  then(place);
}

static void on_place_closed(belay_session_t *session, void *data) {
  place_t *place = data;
  assert_ptr_equal(session, place->session);
  place->closed++;
  place->bed->wrong += place->pending > 0 || place->closed > place->closing;
  place->session = NULL;
  then(place);
}

static belay_request_t *begin(place_t *place, stay_t *stay) {
  stay->place = place;
  stay->request.data = stay;
  place->bed->inside++;
  return &stay->request;
}

static int begun(place_t *place, stay_t *stay, int error) {
  place->bed->inside--;
  place->pending += error == 0;
  stay->begun += error == 0;
  return error;
}

static size_t length(const char *text) {
  return text == NULL ? 0 : strlen(text);
}

int begin_touch(place_t *place, stay_t *stay, const char *user, const char *event, const char *id,
                const char *op) {
  belay_request_t *request = begin(place, stay);
  const belay_session_touch_t touch = {.event = event,
                                       .event_len = length(event),
                                       .id = id,
                                       .id_len = length(id),
                                       .op = op,
                                       .op_len = length(op)};
  return begun(place, stay,
               belay_session_touch(place->session, request, user, strlen(user), &touch, on_stay));
}

int begin_look(place_t *place, stay_t *stay, const char *user, size_t n) {
  belay_request_t *request = begin(place, stay);
  return begun(place, stay,
               belay_session_read(place->session, request, user, strlen(user), n, on_stay));
}

int begin_exists(place_t *place, stay_t *stay, const char *user) {
  belay_request_t *request = begin(place, stay);
  return begun(place, stay,
               belay_session_exists(place->session, request, user, strlen(user), on_stay));
}

int begin_end(place_t *place, stay_t *stay, const char *user, const char *id) {
  belay_request_t *request = begin(place, stay);
  return begun(
      place, stay,
      belay_session_end(place->session, request, user, strlen(user), id, length(id), on_stay));
}

int begin_close_place(place_t *place) {
  place->bed->inside++;
  int error = belay_session_close(place->session, on_place_closed);
  place->bed->inside--;
  place->closing += error == 0;
  return error;
}

int end_of_stay(stay_t *stay) {
  bed_until(stay->place->bed, stay->ended == stay->begun);
  return stay->status;
}

void touch_it(place_t *place, stay_t *stay, const char *user, const char *event, const char *id) {
  assert_error(begin_touch(place, stay, user, event, id, NULL), 0);
  assert_error(end_of_stay(stay), 0);
  assert_true(stay->state.exists);
}

void look_at(place_t *place, stay_t *stay, const char *user, size_t n) {
  assert_error(begin_look(place, stay, user, n), 0);
  assert_error(end_of_stay(stay), 0);
}

/* ---- who watches --------------------------------------------------------------------------------------- */

static void on_notice(belay_session_watch_t *watch, const belay_session_ended_t *ended) {
  guard_t *guard = belay_session_watch_data(watch);
  assert_ptr_equal(watch, guard->watch);
  guard->place->bed->wrong += guard->closing > 0 || guard->place->bed->inside > 0;
  assert_true(guard->told < NOTICES);
  snprintf(guard->notice[guard->told++], STAY_TEXT, "%.*s %.*s", (int)ended->user_len, ended->user,
           (int)ended->id_len, (const char *)ended->id);
  if (guard->then != NULL)
    guard->then(guard);
}

void guard_new(guard_t *guard, place_t *place, uint32_t interval_ms, bool hints) {
  belay_session_watch_options_t options;
  belay_session_watch_options_init(&options);
  options.interval_ms = interval_ms;
  options.hints = hints;
  options.data = guard;
  *guard = (guard_t){.place = place};
  assert_error(belay_session_watch(place->session, &options, on_notice, &guard->watch), 0);
}

static void on_guard_closed(belay_session_watch_t *watch, void *data) {
  guard_t *guard = data;
  assert_ptr_equal(watch, guard->watch);
  guard->closed++;
  guard->place->bed->wrong += guard->closed > guard->closing || guard->place->closed > 0;
  guard->watch = NULL;
}

int guard_close(guard_t *guard) {
  int error = belay_session_watch_close(guard->watch, on_guard_closed);
  guard->closing += error == 0;
  return error;
}

unsigned guard_count(const guard_t *guard, const char *user, const char *id) {
  char text[STAY_TEXT];
  unsigned n = 0;
  snprintf(text, sizeof text, "%s %s", user, id);
  for (unsigned i = 0; i < guard->told; i++)
    n += strcmp(guard->notice[i], text) == 0;
  return n;
}

bool guard_knows(const guard_t *guard, const char *user, const char *id) {
  return guard_count(guard, user, id) > 0;
}

/* ---- the index ------------------------------------------------------------------------------------------- */

void place_noting(place_t *place, bed_t *bed, int64_t ttl_ms) {
  belay_session_options_t options = session_options();
  options.name = "shop";
  options.name_len = 4;
  options.notice = true;
  options.ttl_ms = ttl_ms;
  place_of(place, bed, bed->client, &options);
}

/* The context of that user is over: as if its time had come. */
void pass(bed_t *bed, const char *user) {
  char key[64];
  snprintf(key, sizeof key, "belay::session::shop::{%s}", user);
  server_do(bed->server, "DEL", key, NULL);
  snprintf(key, sizeof key, "belay::session::shop::{%s}::events", user);
  server_do(bed->server, "DEL", key, NULL);
}

/* All that stands in the index is due, if it lives or not. */
unsigned make_due(bed_t *bed) {
  unsigned n = 0;
  for (int i = 0; i < SHARDS; i++) {
    char key[64];
    snprintf(key, sizeof key, "belay::session::shop::{%d}::due", i);
    static const char script[] =
        "local a = redis.call('ZRANGE', KEYS[1], 0, -1) "
        "for i = 1, #a do "
        "redis.call('ZADD', KEYS[1], redis.call('TIME')[1] * 1000 - 5000, a[i]) end return #a";
    n += (unsigned)server_integer(bed->server, "EVAL", script, "1", key, NULL);
  }
  return n;
}

unsigned in_index(bed_t *bed) {
  unsigned n = 0;
  for (int i = 0; i < SHARDS; i++) {
    char key[64];
    snprintf(key, sizeof key, "belay::session::shop::{%d}::due", i);
    n += (unsigned)server_integer(bed->server, "ZCARD", key, NULL);
  }
  return n;
}

uint64_t guard_looks(const guard_t *guard) {
  belay_session_watch_stats_t stats;
  belay_session_watch_stats(guard->watch, &stats);
  return stats.looks;
}

/* It has looked at everything, from beginning to end. */
void look_twice(guard_t *guard) {
  uint64_t now = guard_looks(guard);
  bed_until(guard->place->bed, guard_looks(guard) >= now + 3);
}
