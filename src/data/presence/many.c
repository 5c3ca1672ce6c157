/* Presence: operations on ids. They are sorted, and each run of ids in one segment is a call;
 * lookups have one call per slice. */
#include <stdlib.h>

#include "data/presence/presence.h"
#include "scripts.gen.h"

#define RUN_MAX 4096 /* ids in one call */

typedef struct item {
  uint32_t id, at; /* and its place in what the caller said */
} item_t;

typedef struct run {
  uint32_t from, len; /* among the items */
} run_t;

/* In the request's room: behind it n items, as many runs as there may be, and n answers. */
typedef struct work {
  uint32_t n, runs_len;
  run_t *runs;
  bool *online;
  item_t items[];
} work_t;

static int by_id(const void *a, const void *b) {
  const item_t *x = a, *y = b;
  return (x->id > y->id) - (x->id < y->id);
}

static void find_runs(work_t *work) {
  for (uint32_t i = 0; i < work->n; i++) {
    uint32_t segment = work->items[i].id / BELAY__PRESENCE_SEGMENT;
    run_t *run = work->runs_len == 0 ? NULL : &work->runs[work->runs_len - 1];
    if (run == NULL || run->len == RUN_MAX ||
        work->items[run->from].id / BELAY__PRESENCE_SEGMENT != segment) {
      run = &work->runs[work->runs_len++];
      *run = (run_t){.from = i};
    }
    run->len++;
  }
}

static bool make_work(belay__operation_t *operation, const uint32_t *ids, uint32_t n) {
  uint32_t runs = BELAY__PRESENCE_SEGMENTS + n / RUN_MAX;
  if (runs > n)
    runs = n;
  work_t *work = belay__request_room(operation, sizeof *work + n * sizeof(item_t) +
                                                    runs * sizeof(run_t) + n * sizeof(bool));
  if (work == NULL)
    return false;
  work->n = n;
  work->runs = (run_t *)(void *)(work->items + n);
  work->online = (bool *)(void *)(work->runs + runs);
  for (uint32_t i = 0; i < n; i++)
    work->items[i] = (item_t){.id = ids[i], .at = i};
  if (n > 1)
    qsort(work->items, n, sizeof *work->items, by_id);
  find_runs(work);
  return true;
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static uint32_t segment_of(const work_t *work, const run_t *run) {
  return work->items[run->from].id / BELAY__PRESENCE_SEGMENT;
}

static void put_bits(belay__call_t *call, const work_t *work, const run_t *run, const char *before,
                     const char *after) {
  for (uint32_t i = run->from; i < run->from + run->len; i++) {
    if (before != NULL) {
      belay__call_arg(call, before, 3);
      belay__call_arg_text(call, "u1");
    }
    belay__call_arg_int(call, work->items[i].id % BELAY__PRESENCE_SEGMENT);
    if (after != NULL)
      belay__call_arg(call, after, 1);
  }
}

static belay__call_t *make_set(const belay_presence_t *presence, int64_t slice, const work_t *work,
                               const run_t *run) {
  const belay__handle_t *handle = &presence->handle;
  bool window = presence->window_ms != 0;
  uint32_t segment = segment_of(work, run);
  if (!window && presence->ttl_ms == 0) {
    belay__call_t *call = belay__handle_command(handle, "BITFIELD", 2 + (size_t)4 * run->len);
    belay__presence_put(presence, call, slice, 0, segment);
    put_bits(call, work, run, "SET", "1");
    return call;
  }
  belay__call_t *call =
      belay__handle_script(handle, &belay__script_presence_set, 1, 2 + (size_t)run->len);
  belay__presence_put(presence, call, slice, presence->slices, segment);
  belay__call_arg_text(call, window ? "PEXPIREAT" : "PEXPIRE");
  /* It counts for as many slices as there are after its own, and then for a client whose clock is late. */
  belay__call_arg_int(call, window ? (slice + presence->slices + 2) * presence->slice_ms
                                   : presence->ttl_ms);
  put_bits(call, work, run, NULL, NULL);
  return call;
}

static belay__call_t *make_clear(const belay_presence_t *presence, int64_t slice,
                                 const work_t *work, const run_t *run) {
  belay__call_t *call = belay__handle_script(&presence->handle, &belay__script_presence_clear,
                                             belay__presence_all(presence), run->len);
  belay__presence_put_all(presence, call, slice, segment_of(work, run));
  put_bits(call, work, run, NULL, NULL);
  return call;
}

static belay__call_t *make_is(const belay_presence_t *presence, int64_t slice, uint32_t i,
                              const work_t *work, const run_t *run) {
  belay__call_t *call =
      belay__handle_command(&presence->handle, "BITFIELD_RO", 2 + (size_t)3 * run->len);
  belay__presence_put(presence, call, slice, i, segment_of(work, run));
  put_bits(call, work, run, "GET", NULL);
  return belay__call_stale(call);
}

/* ---- steps --------------------------------------------------------------------------------------------- */

typedef enum what { SET, CLEAR, IS } what_t;

/* How many calls there are for a run. */
static uint32_t calls_of_run(const belay_presence_t *presence, what_t what) {
  return what == IS ? belay__presence_live(presence) : 1;
}

static belay__call_t *make_call(belay__operation_t *operation, size_t i, const void *arg) {
  const belay_presence_t *presence = operation->context;
  const work_t *work = operation->room;
  what_t what = *(const what_t *)arg;
  int64_t slice = operation->values[BELAY__PRESENCE_SLICE];
  uint32_t each = calls_of_run(presence, what);
  const run_t *run = &work->runs[i / each];
  if (what == SET)
    return make_set(presence, slice, work, run);
  return what == CLEAR ? make_clear(presence, slice, work, run)
                       : make_is(presence, slice, (uint32_t)i % each, work, run);
}

/* There is one step. */
static int send(belay__operation_t *operation, what_t what) {
  const belay_presence_t *presence = operation->context;
  const work_t *work = operation->room;
  belay__presence_settle(operation);
  if (operation->values[BELAY__PRESENCE_NEXT]++ != 0)
    return 0;
  size_t n = (size_t)work->runs_len * calls_of_run(presence, what);
  int error = belay__request_send_each(operation, n, make_call, &what);
  return error != 0 ? error : BELAY__REQUEST_PARK;
}

static int next_set(belay__operation_t *operation) {
  return send(operation, SET);
}

static int next_clear(belay__operation_t *operation) {
  return send(operation, CLEAR);
}

static int next_is(belay__operation_t *operation) {
  return send(operation, IS);
}

/* ---- answers ------------------------------------------------------------------------------------------- */

/* A bit for each id of a run. */
static bool read_bits(const belay__reply_t *reply, work_t *work, const run_t *run) {
  int64_t bit;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != run->len)
    return false;
  for (uint32_t i = 0; i < run->len; i++) {
    if (!belay__reply_integer(reply->items[i], 0, 1, &bit))
      return false;
    if (bit == 1)
      work->online[work->items[run->from + i].at] = true;
  }
  return true;
}

static int read_done(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  belay_presence_t *presence = operation->context;
  int status;
  int64_t one;
  work_t *work = operation->room;
  if (belay__servertime_learn(&presence->time, operation, call, reply, &status))
    return status;
  if (call->script != NULL)
    return belay__reply_integer(reply, 1, 1, &one) ? 0 : BELAY_EPROTO;
  return read_bits(reply, work, &work->runs[operation->index]) ? 0
                                                               : BELAY_EPROTO; /* as they were */
}

static int read_is(belay__operation_t *operation, const belay__call_t *call,
                   const belay__reply_t *reply) {
  belay_presence_t *presence = operation->context;
  int status;
  work_t *work = operation->room;
  if (belay__servertime_learn(&presence->time, operation, call, reply, &status))
    return status;
  const run_t *run = &work->runs[operation->index / belay__presence_live(presence)];
  return read_bits(reply, work, run) ? 0 : BELAY_EPROTO;
}

static void tell_is(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  const work_t *work = answer->room;
  bool well = answer->status == 0;
  ((belay_presence_is_cb)cb)(request, answer->status, well ? work->online : NULL,
                             well ? work->n : 0);
}

static const belay__request_ops_t set_ops = {.read = read_done,
                                             .next = next_set,
                                             .notify = belay__request_notify_status,
                                             .idempotent = true};
static const belay__request_ops_t clear_ops = {.read = read_done,
                                               .next = next_clear,
                                               .notify = belay__request_notify_status,
                                               .idempotent = true};
static const belay__request_ops_t is_ops = {
    .read = read_is, .next = next_is, .notify = tell_is, .idempotent = true};

/* ---- operations ---------------------------------------------------------------------------------------- */

static int check_ids(const belay_presence_t *presence, const uint32_t *ids, size_t n) {
  belay_t *belay = presence->handle.client->belay;
  int error = belay__check_count(belay, "id", ids, n, BELAY_PRESENCE_IDS_MAX);
  for (size_t i = 0; i < n && error == 0; i++)
    error = belay__check_range(belay, "id", ids[i], 0, presence->max_id);
  return error;
}

static int begin(belay_presence_t *presence, belay_request_t *request,
                 const belay__request_ops_t *ops, const uint32_t *ids, size_t n, void (*cb)(void)) {
  belay__operation_t *operation;
  int error = belay__handle_check_request((const belay__handle_t *)presence, request, cb != NULL);
  if (error == 0)
    error = check_ids(presence, ids, n);
  if (error == 0)
    error = belay__handle_begin(&presence->handle, request, ops, cb, &operation);
  if (error != 0)
    return error;
  if (!make_work(operation, ids, (uint32_t)n))
    return belay__request_begun(operation, BELAY_ENOMEM);
  return belay__presence_go(operation);
}

int belay_presence_set_many(belay_presence_t *presence, belay_request_t *request,
                            const uint32_t *ids, size_t n, belay_presence_cb cb) {
  return begin(presence, request, &set_ops, ids, n, BELAY__CB(cb));
}

int belay_presence_set(belay_presence_t *presence, belay_request_t *request, uint32_t id,
                       belay_presence_cb cb) {
  return belay_presence_set_many(presence, request, &id, 1, cb);
}

int belay_presence_clear_many(belay_presence_t *presence, belay_request_t *request,
                              const uint32_t *ids, size_t n, belay_presence_cb cb) {
  return begin(presence, request, &clear_ops, ids, n, BELAY__CB(cb));
}

int belay_presence_clear(belay_presence_t *presence, belay_request_t *request, uint32_t id,
                         belay_presence_cb cb) {
  return belay_presence_clear_many(presence, request, &id, 1, cb);
}

int belay_presence_is_many(belay_presence_t *presence, belay_request_t *request,
                           const uint32_t *ids, size_t n, belay_presence_is_cb cb) {
  return begin(presence, request, &is_ops, ids, n, BELAY__CB(cb));
}

int belay_presence_is(belay_presence_t *presence, belay_request_t *request, uint32_t id,
                      belay_presence_is_cb cb) {
  return belay_presence_is_many(presence, request, &id, 1, cb);
}
