/* More kinds of data.c: permissions, presence, active users, sessions, snowflakes. The next
 * request asks about the result of an answered one (hand->known). */
#include <belay/active.h>
#include <belay/idgen.h>
#include <belay/permission.h>
#include <belay/presence.h>
#include <belay/session.h>
#include <string.h>

#include "sim/actors/data.h"

#define LONG_MS 3600000 /* longer than any world */

static const char *const users[SIM_DATA_KEYS] = {"u0", "u1", "u2"};

/* ---- permissions ----------------------------------------------------------------------------------------- */

SIM_CRAFT_CLOSE(permission)

static int make_permission(sim_data_hand_t *hand) {
  belay_permission_options_t options;
  belay_permission_options_init(&options);
  options.width = 33; /* which a compare-and-set has in two pieces */
  options.ttl_ms = LONG_MS;
  options.data = hand;
  return belay_permission_new(client_of(hand), &options, (belay_permission_t **)&hand->handle);
}

/* The key is its own: so what was before is nothing. */
static void on_changed(belay_request_t *request, int status,
                       const belay_permission_result_t *results, size_t n) {
  bool right = n == 1 && results->answer && results->before == 0;
  tell(request->data, status, right, "that it was so before, because of its own try");
}

static int ask_permission_set(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag,
                              size_t len) {
  const belay_permission_field_t field = {.index = 1, .value = hand->ask};
  (void)ask;
  return hand->ask % 2 == 0 ? belay_permission_set(hand->handle, &hand->request,
                                                   belay_bytes(tag, len), &field, 1, on_changed)
                            : belay_permission_grant(hand->handle, &hand->request,
                                                     belay_bytes(tag, len), &field, 1, on_changed);
}

static int ask_permission_swap(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag,
                               size_t len) {
  (void)ask;
  return belay_permission_compare_and_set(
      hand->handle, &hand->request, belay_bytes(tag, len),
      &(belay_permission_swap_t){.index = 0, .expected = 0, .value = UINT64_C(1) << 32},
      on_changed);
}

/* ---- presence -------------------------------------------------------------------------------------------- */

SIM_CRAFT_CLOSE(presence)

static int make_presence_of(sim_data_hand_t *hand, const char *name, int64_t window_ms) {
  belay_presence_options_t options;
  belay_presence_options_init(&options);
  options.name = belay_string(name);
  options.window_ms = window_ms;
  options.data = hand;
  return belay_presence_new(client_of(hand), &options, (belay_presence_t **)&hand->handle);
}

static int make_presence(sim_data_hand_t *hand) {
  return make_presence_of(hand, "site", 0);
}

static int make_presence_window(sim_data_hand_t *hand) {
  return make_presence_of(hand, "window", LONG_MS);
}

static void on_seen(belay_request_t *request, int status) {
  sim_data_hand_t *hand = request->data;
  if (status == 0)
    hand->known = hand->ask;
  tell(hand, status, true, NULL);
}

static void on_online(belay_request_t *request, int status, const bool *online, size_t n) {
  bool right = n == 2 && online[0] && !online[1];
  tell(request->data, status, right, "that who was seen is not online, or who was not is");
}

static int ask_presence(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag,
                        size_t len) {
  (void)ask, (void)tag, (void)len;
  unsigned known = take_known(hand);
  if (known == 0)
    return belay_presence_set(hand->handle, &hand->request, hand->ask, on_seen);
  const uint32_t ids[] = {known, NOBODY + known};
  return belay_presence_is_many(hand->handle, &hand->request, ids, 2, on_online);
}

/* ---- active users ---------------------------------------------------------------------------------------- */

SIM_CRAFT_CLOSE(active)

static int make_active(sim_data_hand_t *hand) {
  belay_active_options_t options;
  belay_active_options_init(&options);
  options.name = belay_string("users");
  options.data = hand;
  return belay_active_new(client_of(hand), &options, (belay_active_t **)&hand->handle);
}

static void on_marked(belay_request_t *request, int status) {
  sim_data_hand_t *hand = request->data;
  sim_data_t *data = sim_data_of(hand);
  if (status == 0) {
    data->active++;
    hand->known = hand->ask;
  }
  tell(hand, status, sim_data_asked(hand)->executed > 0, "and no server has done it");
}

/* The estimate includes reported users and possibly others, within six standard errors. */
static void on_counted(belay_request_t *request, int status, const int64_t *counts, size_t n) {
  sim_data_hand_t *hand = request->data;
  const sim_data_t *data = sim_data_of(hand);
  bool right = n == 1 && counts[0] >= hand->last - hand->last / 20 - 3 &&
               counts[0] <= (int64_t)data->asks + data->asks / 20 + 3;
  tell(hand, status, right, "another number than there were");
}

static int ask_active(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag,
                      size_t len) {
  static const uint32_t days = 2;
  (void)ask;
  if (take_known(hand) == 0)
    return belay_active_mark(hand->handle, &hand->request, belay_bytes(tag, len), BELAY_ACTIVE_NOW,
                             on_marked);
  hand->last = sim_data_of(hand)->active;
  return belay_active_count_last(hand->handle, &hand->request, BELAY_ACTIVE_NOW, &days, 1,
                                 on_counted);
}

/* ---- sessions -------------------------------------------------------------------------------------------- */

SIM_CRAFT_CLOSE(session)

static int make_session(sim_data_hand_t *hand) {
  belay_session_options_t options;
  belay_session_options_init(&options);
  options.ttl_ms = LONG_MS;
  options.max_events = 5;
  options.data = hand;
  return belay_session_new(client_of(hand), &options, (belay_session_t **)&hand->handle);
}

static void count_event(sim_data_t *data, sim_data_ask_t *ask) {
  ask->value = ++data->events[ask->key];
}

static void on_touched(belay_request_t *request, int status, const belay_session_state_t *state) {
  sim_data_hand_t *hand = request->data;
  const sim_data_ask_t *ask = sim_data_asked(hand);
  bool right = status == 0 && state->exists && state->count == ask->value &&
               state->is_new == (ask->value == 1) &&
               state->kept == (ask->value < 5 ? ask->value : 5);
  tell(hand, status, right, "of another event than its own");
}

static int touch(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag, size_t len,
                 bool once) {
  belay_session_touch_t touch = {.event = belay_bytes(tag, len)};
  if (once) {
    touch.op_id = belay_bytes(tag, len);
  }
  return belay_session_touch(hand->handle, &hand->request, belay_bytes(users[ask->key], 2), &touch,
                             on_touched);
}

static int ask_touch(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag,
                     size_t len) {
  return touch(hand, ask, tag, len, false);
}

static int ask_touch_once(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag,
                          size_t len) {
  return touch(hand, ask, tag, len, true);
}

/* ---- snowflakes ------------------------------------------------------------------------------------------ */

SIM_CRAFT_CLOSE(idgen)

static int make_flakes(sim_data_hand_t *hand) {
  belay_idgen_options_t options;
  belay_idgen_options_init(&options);
  options.name = belay_string("flakes");
  options.mode = BELAY_IDGEN_SNOWFLAKE;
  options.worker = (int)sim_hand_between(&hand->base, 0, SIM_DATA_WORKERS - 1);
  options.ttl_ms = 300;
  options.ahead_ms = 200;
  options.data = hand;
  return belay_idgen_new(client_of(hand), &options, (belay_idgen_t **)&hand->handle);
}

/* Ids of a worker number grow across all its owners. */
static const char *check_flake(const sim_data_hand_t *hand, int64_t id) {
  belay_idgen_parts_t parts;
  if (belay_idgen_decode(id, BELAY_IDGEN_EPOCH_MS, &parts) != 0 || parts.worker >= SIM_DATA_WORKERS)
    return "an id that nobody can have been given";
  int64_t *last = &sim_data_of(hand)->flake[parts.worker];
  if (id <= *last)
    return "an id that is not above all of that worker's";
  *last = id;
  return NULL;
}

/* That others have the worker is an answer too. */
static void on_flake(belay_request_t *request, int status, int64_t id) {
  sim_data_hand_t *hand = request->data;
  const char *wrong = status == 0 ? check_flake(hand, id) : NULL;
  for (int i = 0; i < 3 && status == 0 && wrong == NULL; i++)
    if (belay_idgen_next(hand->handle, &id) == 0)
      wrong = check_flake(hand, id);
  sim_data_told(hand, status == BELAY_EHELD ? 0 : status, wrong);
}

static int ask_flake(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag,
                     size_t len) {
  (void)ask, (void)tag, (void)len;
  return belay_idgen_get(hand->handle, &hand->request, on_flake);
}

/* ---- all of them ----------------------------------------------------------------------------------------- */

static const sim_craft_t crafts[] = {
    {"permission", SIM_ONCE, make_permission, close_permission, ask_permission_set, NULL},
    {"swap", SIM_ONCE, make_permission, close_permission, ask_permission_swap, NULL},
    {"presence", SIM_SILENT, make_presence, close_presence, ask_presence, NULL},
    {"presence in a window", SIM_SILENT, make_presence_window, close_presence, ask_presence, NULL},
    {"active", SIM_SILENT, make_active, close_active, ask_active, NULL},
    {"touch", SIM_ONCE, make_session, close_session, ask_touch, count_event},
    {"touch once", SIM_AGAIN, make_session, close_session, ask_touch_once, count_event},
    {"snowflake", SIM_SILENT, make_flakes, close_idgen, ask_flake, NULL},
};

const sim_craft_t *sim_crafts_of_users(size_t *len) {
  *len = sizeof crafts / sizeof *crafts;
  return crafts;
}
