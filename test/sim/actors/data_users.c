/* More subjects of data.c: permissions, presence, active users, sessions, snowflakes. A request
 * that follows a success asks about its result (self->known). */
#include <belay/active.h>
#include <belay/idgen.h>
#include <belay/permission.h>
#include <belay/presence.h>
#include <belay/session.h>

#include "sim/actors/data.h"

#define LONG_MS 3600000 /* longer than any world */

/* ---- permissions ---- */

/* A compare-and-set has a field of this width in two pieces. */
SIM_ACTOR_CLOSE(permission)
SIM_DATA_MAKE(permission, make_permission, options.width = 33; options.ttl_ms = LONG_MS)

/* The key belongs to this request: its value before is 0. */
static void on_changed(belay_request_t *request, int status,
                       const belay_permission_result_t *results, size_t n) {
  sim_data_check(request->data, status, n == 1 && results->answer && results->before == 0,
                 "it was set before, although only this request sets it");
}

static int ask_permission_set(sim_data_t *self) {
  const belay_permission_field_t field = {.index = 1, .value = self->number};
  return (self->number % 2 == 0 ? belay_permission_set : belay_permission_grant)(
      SIM_DATA_ARGS(self), self->tag, &field, 1, on_changed);
}

static int ask_permission_swap(sim_data_t *self) {
  const belay_permission_swap_t swap = {.index = 0, .expected = 0, .value = UINT64_C(1) << 32};
  return belay_permission_compare_and_set(SIM_DATA_ARGS(self), self->tag, &swap, on_changed);
}

/* ---- presence ---- */

SIM_ACTOR_CLOSE(presence)
SIM_DATA_MAKE(presence, make_presence, options.name = belay_string("site"); options.window_ms = 0)
SIM_DATA_MAKE(presence, make_presence_window, options.name = belay_string("window");
              options.window_ms = LONG_MS)

static void on_set(belay_request_t *request, int status) {
  sim_data_t *self = request->data;
  if (status == 0)
    self->known = self->number;
  sim_data_ended(self, status, NULL);
}

static void on_online(belay_request_t *request, int status, const bool *online, size_t n) {
  sim_data_check(request->data, status, n == 2 && online[0] && !online[1],
                 "a present user is not online, or an absent one is");
}

static int ask_presence(sim_data_t *self) {
  unsigned known = sim_data_take_known(self);
  if (known == 0)
    return belay_presence_set(SIM_DATA_ARGS(self), self->number, on_set);
  const uint32_t ids[] = {known, SIM_DATA_ABSENT + known};
  return belay_presence_is_many(SIM_DATA_ARGS(self), ids, 2, on_online);
}

/* ---- active users ---- */

SIM_ACTOR_CLOSE(active)
SIM_DATA_MAKE(active, make_active, options.name = belay_string("users"))

static void on_marked(belay_request_t *request, int status) {
  sim_data_t *self = request->data;
  if (status == 0) {
    sim_data_shared(self)->active++;
    self->known = self->number;
  }
  sim_data_check(self, status, sim_data_request(self)->executed > 0,
                 "and no server has executed it");
}

/* The estimate includes reported users and possibly others, within six standard errors. */
static void on_counted(belay_request_t *request, int status, const int64_t *counts, size_t n) {
  sim_data_t *self = request->data;
  const sim_data_shared_t *shared = sim_data_shared(self);
  bool right = n == 1 && counts[0] >= self->last - self->last / 20 - 3 &&
               counts[0] <= (int64_t)shared->requests + shared->requests / 20 + 3;
  sim_data_check(self, status, right, "another number than there were");
}

static int ask_active(sim_data_t *self) {
  static const uint32_t days = 2;
  if (sim_data_take_known(self) == 0)
    return belay_active_mark(SIM_DATA_ARGS(self), self->tag, BELAY_ACTIVE_NOW, on_marked);
  self->last = sim_data_shared(self)->active;
  return belay_active_count_last(SIM_DATA_ARGS(self), BELAY_ACTIVE_NOW, &days, 1, on_counted);
}

/* ---- sessions ---- */

enum { EVENTS_MAX = 5 };

SIM_ACTOR_CLOSE(session)
SIM_DATA_MAKE(session, make_session, options.ttl_ms = LONG_MS; options.max_events = EVENTS_MAX)

static void count_event(sim_data_shared_t *shared, sim_data_request_t *request) {
  request->value = ++shared->events[request->key];
}

static void on_touched(belay_request_t *request, int status, const belay_session_state_t *state) {
  sim_data_t *self = request->data;
  int64_t value = sim_data_request(self)->value;
  bool right = status == 0 && state->exists && state->count == value &&
               state->is_new == (value == 1) &&
               state->kept == (value < EVENTS_MAX ? value : EVENTS_MAX);
  sim_data_check(self, status, right, "the state after another event than its own");
}

static int touch(sim_data_t *self, bool once) {
  belay_session_touch_t touch = {.event = self->tag};
  if (once)
    touch.op_id = self->tag;
  return belay_session_touch(SIM_DATA_ARGS(self), self->key, &touch, on_touched);
}

static int ask_touch(sim_data_t *self) {
  return touch(self, false);
}

static int ask_touch_once(sim_data_t *self) {
  return touch(self, true);
}

/* ---- snowflakes ---- */

SIM_ACTOR_CLOSE(idgen)
SIM_DATA_MAKE(idgen, make_flakes, options.name = belay_string("flakes");
              options.mode = BELAY_IDGEN_SNOWFLAKE;
              options.worker = (int)sim_actor_between(&self->base, 0, SIM_DATA_WORKERS - 1);
              options.ttl_ms = 300; options.ahead_ms = 200)

/* Ids of a worker number grow across all its owners. */
static const char *check_flake(const sim_data_t *self, int64_t id) {
  belay_idgen_parts_t parts;
  if (belay_idgen_decode(id, BELAY_IDGEN_EPOCH_MS, &parts) != 0 || parts.worker >= SIM_DATA_WORKERS)
    return "an id of no worker";
  int64_t *last = &sim_data_shared(self)->flake[parts.worker];
  if (id <= *last)
    return "an id that is not above all earlier ones of that worker";
  *last = id;
  return NULL;
}

/* Success includes BELAY_EHELD: another process owns the worker. */
static void on_flake(belay_request_t *request, int status, int64_t id) {
  sim_data_t *self = request->data;
  const char *fault = status == 0 ? check_flake(self, id) : NULL;
  for (int i = 0; i < 3 && status == 0 && fault == NULL; i++)
    if (belay_idgen_next(self->base.handle, &id) == 0)
      fault = check_flake(self, id);
  sim_data_ended(self, status == BELAY_EHELD ? 0 : status, fault);
}

static int ask_flake(sim_data_t *self) {
  return belay_idgen_get(SIM_DATA_ARGS(self), on_flake);
}

/* ---- all subjects ---- */

const sim_data_subject_t sim_data_users[] = {
    {"permission", SIM_ONCE, make_permission, close_permission, ask_permission_set, NULL},
    {"swap", SIM_ONCE, make_permission, close_permission, ask_permission_swap, NULL},
    {"presence", SIM_SILENT, make_presence, close_presence, ask_presence, NULL},
    {"presence in a window", SIM_SILENT, make_presence_window, close_presence, ask_presence, NULL},
    {"active", SIM_SILENT, make_active, close_active, ask_active, NULL},
    {"touch", SIM_ONCE, make_session, close_session, ask_touch, count_event},
    {"touch once", SIM_AGAIN, make_session, close_session, ask_touch_once, count_event},
    {"snowflake", SIM_SILENT, make_flakes, close_idgen, ask_flake, NULL},
};
const size_t sim_data_users_len = sizeof sim_data_users / sizeof *sim_data_users;
