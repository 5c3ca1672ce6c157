/* Presence: the handle, its keys, counts and resets. An operation has a few steps:
 *
 *    begin, go --no window, or the time is known--> next: sends calls --answered--> next ... --> ended
 *                 |                                 ^
 *                 +--> TIME --answered--------------+
 *
 * Calls for several segments are sent together. Expensive calls are sent in portions, one after
 * another, so that the server can serve other clients between them. */
#include "data/presence/presence.h"

#include <inttypes.h>
#include <stdio.h>

#include "scripts.gen.h"

#define WINDOW_MIN_MS 100
#define TTL_MIN_MS 1000
#define TTL_MAX_MS INT64_C(31536000000) /* a year */
#define SLICES_MAX 14    /* the union of more than 16 bitmaps takes the server 20 times as long */
#define COUNTS_AT_ONCE 4 /* segments: as many calls */
#define UNLINKS_AT_ONCE 1024 /* keys of segments, in one call */

/* ---- the handle ----------------------------------------------------------------------------------------- */

static const belay_presence_options_t defaults = {
    .max_id = (UINT32_C(1) << 24) - 1, .slices = 4, .ttl_ms = INT64_C(86400000)};

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_presence_options_t, slices, 1, SLICES_MAX),
    BELAY__RANGE_OR(belay_presence_options_t, window_ms, 0, WINDOW_MIN_MS, TTL_MAX_MS),
    BELAY__RANGE_OR(belay_presence_options_t, ttl_ms, 0, TTL_MIN_MS, TTL_MAX_MS),
    {.name = NULL},
};

static int on_init(belay__handle_t *handle, void *options) {
  belay_presence_t *presence = (belay_presence_t *)handle;
  const belay_presence_options_t *o = options;
  presence->time.conn_class = BELAY__CLASS_DATA;
  presence->max_id = o->max_id;
  presence->slices = o->slices;
  presence->window_ms = o->window_ms;
  presence->slice_ms = (o->window_ms + o->slices - 1) / o->slices;
  presence->ttl_ms = o->ttl_ms;
  return 0;
}

const belay__handle_type_t belay__presence_type = {
    .family = "presence",
    .whole = true,
    BELAY__HANDLE_LAYOUT(presence),
    .defaults = &defaults,
    .ranges = ranges,
    .init = on_init,
};

BELAY__HANDLE_FUNCTIONS(presence)

/* ---- keys ---------------------------------------------------------------------------------------------- */

void belay__presence_put(const belay_presence_t *presence, belay__call_t *call, int64_t slice,
                         uint32_t i, uint32_t segment) {
  char tail[64];
  if (presence->window_ms == 0)
    (void)snprintf(tail, sizeof tail, "}::%u", segment);
  else
    (void)snprintf(tail, sizeof tail, "}::%" PRId64 "::%u", slice - presence->slices + i, segment);
  belay__handle_arg(&presence->handle, call, NULL, 0, tail);
}

/* Add the segment in all live slices. */
static void put_live(const belay_presence_t *presence, belay__call_t *call, int64_t slice,
                     uint32_t segment) {
  for (uint32_t i = 0; i < belay__presence_live(presence); i++)
    belay__presence_put(presence, call, slice, i, segment);
}

void belay__presence_put_all(const belay_presence_t *presence, belay__call_t *call, int64_t slice,
                             uint32_t segment) {
  if (presence->window_ms != 0)
    belay__presence_put(presence, call, slice - 1, 0, segment);
  put_live(presence, call, slice, segment);
}

/* ---- steps --------------------------------------------------------------------------------------------- */

void belay__presence_settle(belay__operation_t *operation) {
  const belay_presence_t *presence = operation->context;
  if (presence->window_ms != 0 && operation->values[BELAY__PRESENCE_NEXT] == 0)
    operation->values[BELAY__PRESENCE_SLICE] =
        belay__servertime_ms(&presence->time, &presence->handle) / presence->slice_ms;
}

/* ---- counts -------------------------------------------------------------------------------------------- */

static int read_count(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  belay_presence_t *presence = operation->context;
  int status;
  int64_t count;
  if (belay__servertime_learn(&presence->time, operation, call, reply, &status))
    return status;
  if (!belay__reply_integer(reply, -1, INT64_MAX, &count))
    return BELAY_EPROTO;
  if (count == -1)
    return belay__handle_mismatch(call, "it is where unions are made for a moment");
  if (count > BELAY__PRESENCE_SEGMENT)
    return belay__handle_mismatch(call, "it is longer than a segment");
  operation->values[BELAY__PRESENCE_COUNT] += count;
  return 0;
}

static belay__call_t *count_call(const belay_presence_t *presence, int64_t slice,
                                 uint32_t segment) {
  const belay__handle_t *handle = &presence->handle;
  uint32_t live = belay__presence_live(presence);
  belay__call_t *call;
  if (presence->window_ms == 0) {
    call = belay__call_stale(belay__handle_command(handle, "BITCOUNT", 2));
  } else { /* it writes for a moment, which a replica does not do */
    call = belay__handle_script(handle, &belay__script_presence_count, 1 + live, 0);
    belay__handle_arg(handle, call, NULL, 0, "}::union");
  }
  put_live(presence, call, slice, segment);
  return call;
}

static int next_count(belay__operation_t *operation) {
  const belay_presence_t *presence = operation->context;
  belay__call_t *calls[COUNTS_AT_ONCE];
  uint32_t n = 0, segments = belay__presence_segments(presence);
  belay__presence_settle(operation);
  uint32_t from = (uint32_t)operation->values[BELAY__PRESENCE_NEXT];
  if (from == segments)
    return 0;
  for (; n < COUNTS_AT_ONCE && from + n < segments; n++)
    calls[n] = count_call(presence, operation->values[BELAY__PRESENCE_SLICE], from + n);
  operation->values[BELAY__PRESENCE_NEXT] = from + n;
  int error = belay__request_send_all(operation, calls, n);
  return error != 0 ? error : BELAY__REQUEST_PARK;
}

static const belay__request_ops_t count_ops = {.read = read_count,
                                               .next = next_count,
                                               .notify = belay__request_notify_count,
                                               .idempotent = true};

/* ---- resets -------------------------------------------------------------------------------------------- */

static int read_reset(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  belay_presence_t *presence = operation->context;
  int status;
  int64_t keys;
  if (belay__servertime_learn(&presence->time, operation, call, reply, &status))
    return status;
  return belay__reply_integer(reply, 0, UNLINKS_AT_ONCE + 1, &keys) ? 0 : BELAY_EPROTO;
}

static int next_reset(belay__operation_t *operation) {
  const belay_presence_t *presence = operation->context;
  uint32_t all = belay__presence_all(presence), segments = belay__presence_segments(presence);
  belay__presence_settle(operation);
  uint32_t from = (uint32_t)operation->values[BELAY__PRESENCE_NEXT];
  if (from == segments)
    return 0;
  uint32_t n = UNLINKS_AT_ONCE / all;
  if (n > segments - from)
    n = segments - from;
  bool last = from + n == segments; /* the configuration record goes with them */
  belay__call_t *call =
      belay__handle_command(&presence->handle, "UNLINK", 1 + (size_t)n * all + last);
  for (uint32_t i = from; i < from + n; i++)
    belay__presence_put_all(presence, call, operation->values[BELAY__PRESENCE_SLICE], i);
  if (last)
    belay__handle_arg(&presence->handle, call, NULL, 0, "}::config");
  operation->values[BELAY__PRESENCE_NEXT] = from + n;
  int error = belay__request_send(operation, call);
  return error != 0 ? error : BELAY__REQUEST_PARK;
}

static const belay__request_ops_t reset_ops = {.read = read_reset,
                                               .next = next_reset,
                                               .notify = belay__request_notify_status,
                                               .idempotent = true};

/* ---- operations ---------------------------------------------------------------------------------------- */

static int begin(belay_presence_t *presence, belay_request_t *request,
                 const belay__request_ops_t *ops, void (*cb)(void)) {
  belay__operation_t *operation;
  int error = belay__handle_check_request((const belay__handle_t *)presence, request, cb != NULL);
  if (error == 0)
    error = belay__handle_begin(&presence->handle, request, ops, cb, &operation);
  return error != 0 ? error : belay__presence_go(operation);
}

int belay_presence_count(belay_presence_t *presence, belay_request_t *request,
                         belay_presence_count_cb cb) {
  return begin(presence, request, &count_ops, BELAY__CB(cb));
}

int belay_presence_reset(belay_presence_t *presence, belay_request_t *request,
                         belay_presence_cb cb) {
  return begin(presence, request, &reset_ops, BELAY__CB(cb));
}
