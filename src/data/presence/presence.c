/* Presence: one bitmap, or with a window one bitmap for each slice. A bitmap is split into segments
 * of SEGMENT bits, each with its own key. An operation has one or more steps:
 *
 *    start --no window, or the time is known--> next: sends calls --answered--> next ... --> ended
 *      |                                         ^
 *      +--> TIME --answered----------------------+
 *
 * An operation on ids sorts the ids. Up to RUN_MAX ids of one segment are a run. A set or a clear
 * sends one call per run, a lookup one call per run and live slice, all of them in one step. A
 * count or a reset sends a portion of the segments in each step, so that the server can serve other
 * clients between the steps. */
#include "data/presence/presence.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "scripts.gen.h"

#define WINDOW_MIN_MS 100
#define TTL_MIN_MS 1000
#define TTL_MAX_MS INT64_C(31536000000) /* one year */
/* A count unites this number of bitmaps and 2 more. The union of more than 16 takes the server 20
 * times as long. */
#define SLICES_MAX 14
#define COUNTS_AT_ONCE 4     /* segments that a step of a count reads, with one call each */
#define UNLINKS_AT_ONCE 1024 /* keys of segments in one call of a reset */
#define SEGMENT BELAY__PRESENCE_SEGMENT
#define SEGMENTS_MAX 512 /* segments of a bitmap of 2^32 ids */
#define RUN_MAX 4096     /* ids in one call */

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
  presence->slice_ms = (o->window_ms + o->slices - 1) / o->slices;
  return 0;
}

const belay__handle_type_t belay__presence_type = {
    .family = "presence",
    .whole = true,
    BELAY__HANDLE_LAYOUT(presence),
    .copy_at = offsetof(belay_presence_t, options),
    .defaults = &defaults,
    .ranges = ranges,
    .init = on_init,
};

BELAY__HANDLE_FUNCTIONS(presence)

/* Indices of the values of a request. COUNT: sum of the counts. SLICE: number of the present slice.
 * NEXT: for a count or a reset, the next segment; for other requests, the number of sent steps. */
enum { COUNT, SLICE, NEXT };

typedef struct item {
  uint32_t id, at; /* at: position in the caller's array */
} item_t;

/* Items of one segment that share a call: `len` items of the work, from item `from` on. */
typedef struct run {
  uint32_t from, len;
} run_t;

typedef enum kind { SET, CLEAR, IS } kind_t;

/* The room of a request on ids, followed by the runs and the results. The items are sorted by id;
 * online has the caller's order. */
typedef struct work {
  kind_t kind;
  uint32_t n, runs_len;
  run_t *runs;
  bool *online;
  item_t items[];
} work_t;

static int by_id(const void *a, const void *b) {
  const item_t *x = a, *y = b;
  return (x->id > y->id) - (x->id < y->id);
}

static uint32_t segment_of(const work_t *work, const run_t *run) {
  return work->items[run->from].id / SEGMENT;
}

static void find_runs(work_t *work) {
  run_t *run = NULL;
  for (uint32_t i = 0; i < work->n; i++) {
    if (run == NULL || run->len == RUN_MAX ||
        segment_of(work, run) != work->items[i].id / SEGMENT) {
      run = &work->runs[work->runs_len++];
      *run = (run_t){.from = i};
    }
    run->len++;
  }
}

static bool make_work(belay__operation_t *operation, kind_t kind, const uint32_t *ids, uint32_t n) {
  uint32_t runs = SEGMENTS_MAX + n / RUN_MAX;
  if (runs > n)
    runs = n;
  work_t *work = belay__request_room(operation, sizeof *work + n * sizeof(item_t) +
                                                    runs * sizeof(run_t) + n * sizeof(bool));
  if (work == NULL)
    return false;
  work->kind = kind;
  work->n = n;
  work->runs = (run_t *)(void *)(work->items + n);
  work->online = (bool *)(void *)(work->runs + runs);
  for (uint32_t i = 0; i < n; i++)
    work->items[i] = (item_t){.id = ids[i], .at = i};
  qsort(work->items, n, sizeof *work->items, by_id);
  find_runs(work);
  return true;
}

static uint32_t segments_of(const belay_presence_t *presence) {
  return presence->options.max_id / SEGMENT + 1;
}

/* Return the number of slices that are read: the present one, options.slices before it, and the
 * next one, to which a process whose clock is ahead already writes. Without a window: 1. */
static uint32_t live_slices(const belay_presence_t *presence) {
  return presence->options.window_ms == 0 ? 1 : presence->options.slices + 2;
}

/* Return the number of slices that are cleared: the live ones and the one before them, which a
 * process whose clock is behind still reads. Without a window: 1. */
static uint32_t all_slices(const belay_presence_t *presence) {
  return live_slices(presence) + (presence->options.window_ms == 0 ? 0 : 1);
}

/* Add the key of a segment in live slice i. i: 0 is the oldest live slice, -1 the slice before it.
 * slice: number of the present slice. */
static void put_key(const belay_presence_t *presence, belay__call_t *call, int64_t slice, int64_t i,
                    uint32_t segment) {
  char tail[64];
  if (presence->options.window_ms == 0)
    (void)snprintf(tail, sizeof tail, "}::%u", segment);
  else
    (void)snprintf(tail, sizeof tail, "}::%" PRId64 "::%u", slice - presence->options.slices + i,
                   segment);
  belay__handle_arg(&presence->handle, call, NULL, 0, tail);
}

/* Add the keys of a segment in n slices, of which the last one is the newest live slice. */
static void put_keys(const belay_presence_t *presence, belay__call_t *call, int64_t slice,
                     uint32_t n, uint32_t segment) {
  int64_t live = live_slices(presence);
  for (int64_t i = live - n; i < live; i++)
    put_key(presence, call, slice, i, segment);
}

static void put_bits(belay__call_t *call, const work_t *work, const run_t *run, const char *before,
                     const char *after) {
  for (uint32_t i = run->from; i < run->from + run->len; i++) {
    if (before != NULL) {
      belay__call_arg(call, before, 3);
      belay__call_arg_text(call, "u1");
    }
    belay__call_arg_int(call, work->items[i].id % SEGMENT);
    if (after != NULL)
      belay__call_arg(call, after, 1);
  }
}

static belay__call_t *make_set(const belay_presence_t *presence, int64_t slice, const work_t *work,
                               const run_t *run) {
  const belay__handle_t *handle = &presence->handle;
  const belay_presence_options_t *o = &presence->options;
  bool window = o->window_ms != 0;
  if (!window && o->ttl_ms == 0) {
    belay__call_t *call = belay__handle_command(handle, "BITFIELD", 2 + (size_t)4 * run->len);
    put_key(presence, call, slice, 0, segment_of(work, run));
    put_bits(call, work, run, "SET", "1");
    return call;
  }
  belay__call_t *call =
      belay__handle_script(handle, &belay__script_presence_set, 1, 2 + (size_t)run->len);
  put_key(presence, call, slice, o->slices, segment_of(work, run));
  belay__call_arg_text(call, window ? "PEXPIREAT" : "PEXPIRE");
  /* A bit counts until `slices` more slices are over. Its key lives one slice longer, because
   * a process whose clock is behind still reads it. */
  belay__call_arg_int(call, window ? (slice + o->slices + 2) * presence->slice_ms : o->ttl_ms);
  put_bits(call, work, run, NULL, NULL);
  return call;
}

static belay__call_t *make_clear(const belay_presence_t *presence, int64_t slice,
                                 const work_t *work, const run_t *run) {
  uint32_t slices = all_slices(presence);
  belay__call_t *call =
      belay__handle_script(&presence->handle, &belay__script_presence_clear, slices, run->len);
  put_keys(presence, call, slice, slices, segment_of(work, run));
  put_bits(call, work, run, NULL, NULL);
  return call;
}

static belay__call_t *make_is(const belay_presence_t *presence, int64_t slice, uint32_t i,
                              const work_t *work, const run_t *run) {
  belay__call_t *call =
      belay__handle_command(&presence->handle, "BITFIELD_RO", 2 + (size_t)3 * run->len);
  put_key(presence, call, slice, i, segment_of(work, run));
  put_bits(call, work, run, "GET", NULL);
  return belay__call_stale(call);
}

/* Return the number of calls for each run. */
static uint32_t calls_of(const belay_presence_t *presence, const work_t *work) {
  return work->kind == IS ? live_slices(presence) : 1;
}

static belay__call_t *make_call(belay__operation_t *operation, size_t i, const void *arg) {
  (void)arg;
  const belay_presence_t *presence = operation->context;
  const work_t *work = operation->room;
  int64_t slice = operation->values[SLICE];
  uint32_t each = calls_of(presence, work);
  const run_t *run = &work->runs[i / each];
  if (work->kind == IS)
    return make_is(presence, slice, (uint32_t)i % each, work, run);
  return work->kind == SET ? make_set(presence, slice, work, run)
                           : make_clear(presence, slice, work, run);
}

/* Compute the present slice at the first step. */
static void find_slice(belay__operation_t *operation) {
  const belay_presence_t *presence = operation->context;
  if (presence->options.window_ms != 0 && operation->values[NEXT] == 0)
    operation->values[SLICE] =
        belay__servertime_ms(&presence->time, &presence->handle) / presence->slice_ms;
}

static int next_ids(belay__operation_t *operation) {
  const work_t *work = operation->room;
  find_slice(operation);
  if (operation->values[NEXT]++ != 0)
    return 0;
  size_t n = (size_t)work->runs_len * calls_of(operation->context, work);
  int error = belay__request_send_each(operation, n, make_call, NULL);
  return error != 0 ? error : BELAY__REQUEST_PARK;
}

static belay__call_t *make_count(belay__operation_t *operation, size_t i, const void *arg) {
  const belay_presence_t *presence = operation->context;
  const belay__handle_t *handle = &presence->handle;
  uint32_t live = live_slices(presence), from = *(const uint32_t *)arg;
  belay__call_t *call;
  if (presence->options.window_ms == 0) {
    call = belay__call_stale(belay__handle_command(handle, "BITCOUNT", 2));
  } else { /* the script writes a temporary key, so a replica cannot run it */
    call = belay__handle_script(handle, &belay__script_presence_count, 1 + live, 0);
    belay__handle_arg(handle, call, NULL, 0, "}::union");
  }
  put_keys(presence, call, operation->values[SLICE], live, from + (uint32_t)i);
  return call;
}

static int next_count(belay__operation_t *operation) {
  find_slice(operation);
  uint32_t from = (uint32_t)operation->values[NEXT], n = segments_of(operation->context) - from;
  if (n == 0)
    return 0;
  if (n > COUNTS_AT_ONCE)
    n = COUNTS_AT_ONCE;
  operation->values[NEXT] = from + n;
  int error = belay__request_send_each(operation, n, make_count, &from);
  return error != 0 ? error : BELAY__REQUEST_PARK;
}

/* Delete the keys of the next segments. The last call also deletes the configuration record. */
static int next_reset(belay__operation_t *operation) {
  const belay_presence_t *presence = operation->context;
  uint32_t all = all_slices(presence), segments = segments_of(presence);
  find_slice(operation);
  uint32_t from = (uint32_t)operation->values[NEXT], n = UNLINKS_AT_ONCE / all;
  if (from == segments)
    return 0;
  if (n > segments - from)
    n = segments - from;
  bool last = from + n == segments;
  belay__call_t *call =
      belay__handle_command(&presence->handle, "UNLINK", 1 + (size_t)n * all + last);
  for (uint32_t i = from; i < from + n; i++)
    put_keys(presence, call, operation->values[SLICE], all, i);
  if (last)
    belay__handle_arg(&presence->handle, call, NULL, 0, "}::config");
  operation->values[NEXT] = from + n;
  int error = belay__request_send(operation, call);
  return error != 0 ? error : BELAY__REQUEST_PARK;
}

/* Read one bit for each id of a run. If a bit is 1, set work->online of the id to true. */
static int read_bits(const belay__reply_t *reply, work_t *work, const run_t *run) {
  int64_t bit;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != run->len)
    return BELAY_EPROTO;
  for (uint32_t i = 0; i < run->len; i++) {
    if (!belay__reply_integer(reply->items[i], 0, 1, &bit))
      return BELAY_EPROTO;
    if (bit == 1)
      work->online[work->items[run->from + i].at] = true;
  }
  return 0;
}

static int read_ids(belay__operation_t *operation, const belay__call_t *call,
                    const belay__reply_t *reply) {
  belay_presence_t *presence = operation->context;
  work_t *work = operation->room;
  int status;
  int64_t one;
  if (belay__servertime_learn(&presence->time, operation, call, reply, &status))
    return status;
  if (call->script == NULL)
    return read_bits(reply, work, &work->runs[operation->index / calls_of(presence, work)]);
  return belay__reply_integer(reply, 1, 1, &one) ? 0 : BELAY_EPROTO;
}

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
  if (count > SEGMENT)
    return belay__handle_mismatch(call, "it is longer than a segment");
  operation->values[COUNT] += count;
  return 0;
}

static int read_reset(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  belay_presence_t *presence = operation->context;
  int status;
  int64_t keys;
  if (belay__servertime_learn(&presence->time, operation, call, reply, &status))
    return status;
  return belay__reply_integer(reply, 0, UNLINKS_AT_ONCE + 1, &keys) ? 0 : BELAY_EPROTO;
}

static void notify_is(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  const work_t *work = answer->room;
  bool good = answer->status == 0;
  ((belay_presence_is_cb)cb)(request, answer->status, good ? work->online : NULL,
                             good ? work->n : 0);
}

static const belay__request_ops_t change_ops = {
    .read = read_ids, .next = next_ids, .notify = belay__request_notify_status, .idempotent = true};
static const belay__request_ops_t is_ops = {
    .read = read_ids, .next = next_ids, .notify = notify_is, .idempotent = true};
static const belay__request_ops_t count_ops = {.read = read_count,
                                               .next = next_count,
                                               .notify = belay__request_notify_count,
                                               .idempotent = true};
static const belay__request_ops_t reset_ops = {.read = read_reset,
                                               .next = next_reset,
                                               .notify = belay__request_notify_status,
                                               .idempotent = true};

static int check_ids(const belay_presence_t *presence, const uint32_t *ids, size_t n) {
  belay_t *belay = presence->handle.client->belay;
  int error = belay__check_count(belay, "id", ids, n, BELAY_PRESENCE_IDS_MAX);
  for (size_t i = 0; i < n && error == 0; i++)
    error = belay__check_range(belay, "id", ids[i], 0, presence->options.max_id);
  return error;
}

static int start(belay_presence_t *presence, belay__operation_t *operation) {
  return belay__servertime_begin(&presence->time, &presence->handle, operation,
                                 presence->options.window_ms != 0);
}

static int start_ids(belay_presence_t *presence, belay_request_t *request, kind_t kind,
                     const uint32_t *ids, size_t n, void (*cb)(void)) {
  belay__operation_t *operation;
  int error = belay__handle_check_request((const belay__handle_t *)presence, request, cb != NULL);
  if (error == 0)
    error = check_ids(presence, ids, n);
  if (error == 0)
    error = belay__handle_begin(&presence->handle, request, kind == IS ? &is_ops : &change_ops, cb,
                                &operation);
  if (error != 0)
    return error;
  if (!make_work(operation, kind, ids, (uint32_t)n))
    return belay__request_begun(operation, BELAY_ENOMEM);
  return start(presence, operation);
}

/* Start an operation without ids. */
static int start_all(belay_presence_t *presence, belay_request_t *request,
                     const belay__request_ops_t *ops, void (*cb)(void)) {
  belay__operation_t *operation;
  int error = belay__handle_check_request((const belay__handle_t *)presence, request, cb != NULL);
  if (error == 0)
    error = belay__handle_begin(&presence->handle, request, ops, cb, &operation);
  return error != 0 ? error : start(presence, operation);
}

int belay_presence_set_many(belay_presence_t *presence, belay_request_t *request,
                            const uint32_t *ids, size_t n, belay_presence_cb cb) {
  return start_ids(presence, request, SET, ids, n, BELAY__CB(cb));
}

int belay_presence_set(belay_presence_t *presence, belay_request_t *request, uint32_t id,
                       belay_presence_cb cb) {
  return belay_presence_set_many(presence, request, &id, 1, cb);
}

int belay_presence_clear_many(belay_presence_t *presence, belay_request_t *request,
                              const uint32_t *ids, size_t n, belay_presence_cb cb) {
  return start_ids(presence, request, CLEAR, ids, n, BELAY__CB(cb));
}

int belay_presence_clear(belay_presence_t *presence, belay_request_t *request, uint32_t id,
                         belay_presence_cb cb) {
  return belay_presence_clear_many(presence, request, &id, 1, cb);
}

int belay_presence_is_many(belay_presence_t *presence, belay_request_t *request,
                           const uint32_t *ids, size_t n, belay_presence_is_cb cb) {
  return start_ids(presence, request, IS, ids, n, BELAY__CB(cb));
}

int belay_presence_is(belay_presence_t *presence, belay_request_t *request, uint32_t id,
                      belay_presence_is_cb cb) {
  return belay_presence_is_many(presence, request, &id, 1, cb);
}

int belay_presence_count(belay_presence_t *presence, belay_request_t *request,
                         belay_presence_count_cb cb) {
  return start_all(presence, request, &count_ops, BELAY__CB(cb));
}

int belay_presence_reset(belay_presence_t *presence, belay_request_t *request,
                         belay_presence_cb cb) {
  return start_all(presence, request, &reset_ops, BELAY__CB(cb));
}
