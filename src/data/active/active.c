/* Active users: the series, its keys, and marks. An operation is one step, or two if it says "now":
 *
 *   begin --the time is known, or given--> next: sends its calls --answered--> told
 *     |                                      ^
 *     +--> TIME --answered-------------------+ */
#include "data/active/active.h"

#include <stdio.h>
#include <string.h>

#include "core/key/key.h"
#include "scripts.gen.h"

#define TTL_MAX_MS INT64_C(315360000000) /* ten years */
#define OFFSET_MIN (-720)
#define OFFSET_MAX 840

/* ---- the handle ----------------------------------------------------------------------------------------- */

static const belay_active_options_t defaults = {
    .unit = BELAY_ACTIVE_DAY, .ttl_ms = 32 * BELAY__DAY_MS, .archive_ttl_ms = 400 * BELAY__DAY_MS};

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_active_options_t, unit, BELAY_ACTIVE_DAY, BELAY_ACTIVE_HOUR),
    BELAY__RANGE(belay_active_options_t, utc_offset_minutes, OFFSET_MIN, OFFSET_MAX),
    BELAY__RANGE(belay_active_options_t, ttl_ms, 1000, TTL_MAX_MS),
    BELAY__RANGE_OR(belay_active_options_t, archive_ttl_ms, 0, 1000, TTL_MAX_MS),
    {.name = NULL},
};

static int on_init(belay__handle_t *handle, void *options) {
  belay_active_t *active = (belay_active_t *)handle;
  const belay_active_options_t *o = options;
  active->time.conn_class = BELAY__CLASS_DATA;
  active->unit_ms = o->unit == BELAY_ACTIVE_DAY ? BELAY__DAY_MS : BELAY__HOUR_MS;
  active->offset_ms = (int64_t)o->utc_offset_minutes * 60000;
  active->ttl_ms = o->ttl_ms;
  active->archive_ttl_ms = o->archive_ttl_ms;
  return 0;
}

const belay__handle_type_t belay__active_type = {
    .family = "active",
    .whole = true,
    BELAY__HANDLE_LAYOUT(active),
    .defaults = &defaults,
    .ranges = ranges,
    .init = on_init,
};

BELAY__HANDLE_FUNCTIONS(active)

/* ---- keys ---------------------------------------------------------------------------------------------- */

void belay__active_put_period(const belay_active_t *active, belay__call_t *call, int64_t period) {
  char tail[32];
  int64_t in_day = BELAY__DAY_MS / active->unit_ms, day = belay__date_floor(period, in_day);
  int date = belay__date_of(day), hour = (int)(period - day * in_day);
  if (in_day == 1)
    (void)snprintf(tail, sizeof tail, "}::%08d", date);
  else
    (void)snprintf(tail, sizeof tail, "}::%08d%02d", date, hour);
  belay__handle_arg(&active->handle, call, NULL, 0, tail);
}

void belay__active_put_archive(const belay_active_t *active, belay__call_t *call, const char *label,
                               size_t label_len) {
  static const char head[] = "}::archive::";
  char tail[sizeof head + 3 * BELAY_ACTIVE_LABEL_MAX];
  memcpy(tail, head, sizeof head);
  size_t n = belay__key_escape(tail + sizeof head - 1, label, label_len); /* none of it is a 0 */
  tail[sizeof head - 1 + n] = '\0';
  belay__handle_arg(&active->handle, call, NULL, 0, tail);
}

/* ---- steps --------------------------------------------------------------------------------------------- */

int belay__active_check_time(const belay_active_t *active, const char *what, int64_t time_ms) {
  return time_ms == BELAY_ACTIVE_NOW ? 0
                                     : belay__check_range(active->handle.client->belay, what,
                                                          time_ms, 1, BELAY_ACTIVE_TIME_MAX);
}

/* Copies what is asked into the request's room. */
static void keep(void *room, const belay__active_ask_t *ask) {
  belay__active_ask_t *copy = room;
  *copy = *ask;
  if (ask->items == NULL)
    return;
  belay_bytes_t *to = (belay_bytes_t *)(void *)(copy + 1);
  char *at = (char *)(to + ask->n);
  copy->items = to;
  for (size_t i = 0; i < ask->n; i++) {
    to[i] = (belay_bytes_t){.data = at, .len = ask->items[i].len};
    memcpy(at, ask->items[i].data, ask->items[i].len);
    at += ask->items[i].len;
  }
}

int belay__active_begin(belay_active_t *active, belay_request_t *request,
                        const belay__request_ops_t *ops, const belay__active_ask_t *ask,
                        void (*cb)(void)) {
  belay__operation_t *operation;
  size_t items = ask->items == NULL ? 0 : ask->n, size = sizeof *ask + items * sizeof *ask->items;
  for (size_t i = 0; i < items; i++)
    size += ask->items[i].len;
  int error = belay__handle_begin_room(&active->handle, request, ops, cb, size, &operation);
  if (error != 0)
    return error;
  keep(operation->room, ask);
  bool now = ask->from_ms == BELAY_ACTIVE_NOW || ask->to_ms == BELAY_ACTIVE_NOW;
  return belay__servertime_begin(&active->time, &active->handle, operation, now);
}

int belay__active_next(belay__operation_t *operation) {
  belay_active_t *active = operation->context;
  belay__active_ask_t *ask = operation->room;
  if (operation->values[BELAY__ACTIVE_SENT]++ != 0)
    return 0;
  int64_t now = belay__servertime_ms(&active->time, &active->handle);
  if (ask->from_ms == BELAY_ACTIVE_NOW)
    ask->from_ms = now;
  if (ask->to_ms == BELAY_ACTIVE_NOW)
    ask->to_ms = now;
  int error = ask->send(active, operation, ask);
  return error != 0 ? error : BELAY__REQUEST_PARK;
}

/* ---- marks --------------------------------------------------------------------------------------------- */

static int read_marked(belay__operation_t *operation, const belay__call_t *call,
                       const belay__reply_t *reply) {
  belay_active_t *active = operation->context;
  int status;
  int64_t kept;
  if (belay__servertime_learn(&active->time, operation, call, reply, &status))
    return status;
  if (!belay__reply_integer(reply, 0, 1, &kept))
    return BELAY_EPROTO;
  return kept ? 0 : BELAY_ELOST;
}

static const belay__request_ops_t mark_ops = {.read = read_marked,
                                              .next = belay__active_next,
                                              .notify = belay__request_notify_status,
                                              .idempotent = true};

static int send_mark(belay_active_t *active, belay__operation_t *operation,
                     const belay__active_ask_t *ask) {
  int64_t period = belay__active_period(active, ask->from_ms);
  belay__call_t *call =
      belay__handle_script(&active->handle, &belay__script_active_mark, 1, 1 + ask->n);
  belay__active_put_period(active, call, period);
  belay__call_arg_int(call, belay__active_begins_ms(active, period + 1) + active->ttl_ms);
  for (size_t i = 0; i < ask->n; i++)
    belay__call_arg(call, ask->items[i].data, ask->items[i].len);
  return belay__request_send(operation, call);
}

int belay_active_mark_many(belay_active_t *active, belay_request_t *request,
                           const belay_bytes_t *users, size_t n, int64_t time_ms,
                           belay_active_cb cb) {
  const belay__handle_t *handle = (const belay__handle_t *)active;
  int error = belay__handle_check_request(handle, request, cb != NULL);
  if (error == 0)
    error = belay__handle_check_array(handle, "user", users, n, BELAY__HANDLE_KEYS_MAX, 1,
                                      BELAY_ACTIVE_USER_MAX);
  if (error == 0)
    error = belay__active_check_time(active, "time_ms", time_ms);
  if (error != 0)
    return error;
  const belay__active_ask_t ask = {
      .send = send_mark, .from_ms = time_ms, .to_ms = time_ms, .items = users, .n = n};
  return belay__active_begin(active, request, &mark_ops, &ask, BELAY__CB(cb));
}

int belay_active_mark(belay_active_t *active, belay_request_t *request, belay_bytes_t user,
                      int64_t time_ms, belay_active_cb cb) {
  const belay_bytes_t users = {.data = user.data, .len = user.len};
  return belay_active_mark_many(active, request, &users, 1, time_ms, cb);
}
