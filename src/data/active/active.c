/* Active users: marks, counts, archives and clears. A count is one PFCOUNT over the keys of its
 * periods; several counts are sent together. An operation whose time is BELAY_ACTIVE_NOW may need
 * the server's time first:
 *
 *   begin --the time is known, or given--> next: sends the calls --answered--> ended
 *     |                                      ^
 *     +--> TIME --answered-------------------+ */
#include "data/active/active.h"

#include <stdio.h>
#include <string.h>

#include "data/active/date.h"
#include "scripts.gen.h"

#define TTL_MAX_MS INT64_C(315360000000) /* ten years */

static const belay_active_options_t defaults = {
    .unit = BELAY_ACTIVE_DAY, .ttl_ms = 32 * BELAY__DAY_MS, .archive_ttl_ms = 400 * BELAY__DAY_MS};

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_active_options_t, unit, BELAY_ACTIVE_DAY, BELAY_ACTIVE_HOUR),
    BELAY__RANGE(belay_active_options_t, utc_offset_minutes, -720, 840),
    BELAY__RANGE(belay_active_options_t, ttl_ms, 1000, TTL_MAX_MS),
    BELAY__RANGE_OR(belay_active_options_t, archive_ttl_ms, 0, 1000, TTL_MAX_MS),
    {.name = NULL},
};

static int on_init(belay__handle_t *handle, void *options) {
  belay_active_t *active = (belay_active_t *)handle;
  const belay_active_options_t *o = options;
  active->time.conn_class = BELAY__CLASS_DATA;
  active->unit_ms = o->unit == BELAY_ACTIVE_DAY ? BELAY__DAY_MS : BELAY__HOUR_MS;
  return 0;
}

const belay__handle_type_t belay__active_type = {
    .family = "active",
    .whole = true,
    BELAY__HANDLE_LAYOUT(active),
    .copy_at = offsetof(belay_active_t, options),
    .defaults = &defaults,
    .ranges = ranges,
    .init = on_init,
};

BELAY__HANDLE_FUNCTIONS(active)

typedef enum kind { MARK, LAST, SPAN, CLEAR, ARCHIVE, COUNT_ARCHIVES, CLEAR_ARCHIVES } kind_t;

/* The arguments of an operation. In the room of its request, the items and their bytes follow. */
typedef struct query {
  kind_t kind;
  int64_t from_ms, to_ms;     /* BELAY_ACTIVE_NOW until the server's time is known */
  const belay_bytes_t *items; /* Users or labels, n of them; NULL: none */
  size_t n;
  uint32_t spans[BELAY_ACTIVE_SPANS_MAX]; /* LAST: n lengths in periods */
} query_t;

/* The values of a request: up to 16 counts, their number, and the number of sent steps. */
enum { COUNTED = BELAY_ACTIVE_SPANS_MAX, SENT, VALUES };
_Static_assert(VALUES <= BELAY__REQUEST_VALUES, "the counts fit into a request");

static int read_number(belay__operation_t *operation, const belay__call_t *call,
                       const belay__reply_t *reply) {
  belay_active_t *active = operation->context;
  kind_t kind = ((const query_t *)operation->room)->kind;
  bool counts = kind != MARK && kind != CLEAR && kind != CLEAR_ARCHIVES;
  int64_t max = counts ? INT64_MAX : kind == MARK ? 1 : BELAY_ACTIVE_PERIODS_MAX;
  int64_t *value = &operation->values[operation->index];
  int status;
  if (belay__servertime_learn(&active->time, operation, call, reply, &status))
    return status;
  if (!belay__reply_integer(reply, 0, max, value))
    return BELAY_EPROTO;
  return kind == MARK && *value == 0 ? BELAY_ELOST : 0;
}

static void notify_counts(belay_request_t *request, void (*cb)(void),
                          const belay__answer_t *answer) {
  bool good = answer->status == 0;
  ((belay_active_count_cb)cb)(request, answer->status, good ? answer->values : NULL,
                              good ? (size_t)answer->values[COUNTED] : 0);
}

/* Return the number of the period that contains a time. Period 0 begins on 1970-01-01 at 00:00, by
 * utc_offset_minutes. */
static int64_t period_of(const belay_active_t *active, int64_t time_ms) {
  int64_t offset_ms = (int64_t)active->options.utc_offset_minutes * 60000;
  return belay__date_floor(time_ms + offset_ms, active->unit_ms);
}

static int64_t start_of(const belay_active_t *active, int64_t period) {
  return period * active->unit_ms - (int64_t)active->options.utc_offset_minutes * 60000;
}

static void put_period(const belay_active_t *active, belay__call_t *call, int64_t period) {
  char tail[32];
  int64_t in_day = BELAY__DAY_MS / active->unit_ms, day = belay__date_floor(period, in_day);
  int date = belay__date_of(day), hour = (int)(period - day * in_day);
  if (in_day == 1)
    (void)snprintf(tail, sizeof tail, "}::%08d", date);
  else
    (void)snprintf(tail, sizeof tail, "}::%08d%02d", date, hour);
  belay__handle_arg(&active->handle, call, NULL, 0, tail);
}

static void put_archive(const belay_active_t *active, belay__call_t *call, belay_bytes_t label) {
  belay__handle_arg_id(&active->handle, call, (belay_bytes_t){0}, "}::archive::", label);
}

static belay__call_t *make_call(belay__operation_t *operation, size_t i, const void *arg) {
  const query_t *query = arg;
  const belay_active_t *active = operation->context;
  const belay__handle_t *handle = &active->handle;
  kind_t kind = query->kind;
  bool labels = kind == COUNT_ARCHIVES || kind == CLEAR_ARCHIVES;
  int64_t from = period_of(active, query->from_ms), to = period_of(active, query->to_ms);
  if (kind == LAST)
    from = to - query->spans[i] + 1;
  size_t periods = labels ? 0 : (size_t)(to - from + 1);
  belay__call_t *call;
  if (kind == MARK)
    call = belay__handle_script(handle, &belay__script_active_mark, 1, 1 + query->n);
  else if (kind == ARCHIVE)
    call = belay__handle_script(handle, &belay__script_active_archive, 1 + periods, 1);
  else
    call = belay__handle_command(handle,
                                 kind == CLEAR || kind == CLEAR_ARCHIVES ? "UNLINK" : "PFCOUNT",
                                 1 + (labels ? query->n : periods));
  for (size_t j = 0; j < query->n && (labels || kind == ARCHIVE); j++)
    put_archive(active, call, query->items[j]);
  for (size_t j = 0; j < periods; j++)
    put_period(active, call, from + (int64_t)j);
  if (kind == MARK)
    belay__call_arg_int(call, start_of(active, to + 1) + active->options.ttl_ms);
  for (size_t j = 0; j < query->n && kind == MARK; j++)
    belay__call_arg(call, query->items[j].data, query->items[j].len);
  if (kind == ARCHIVE)
    belay__call_arg_int(call, active->options.archive_ttl_ms);
  return kind == LAST || kind == SPAN || kind == COUNT_ARCHIVES ? belay__call_stale(call) : call;
}

/* Check the number of periods. With BELAY_ACTIVE_NOW this is possible only after the time is
 * known. */
static int check_periods(const belay_active_t *active, const query_t *query) {
  int64_t n = period_of(active, query->to_ms) - period_of(active, query->from_ms);
  if (n >= 0 && n < BELAY_ACTIVE_PERIODS_MAX)
    return 0;
  return belay__invalid(active->handle.client->belay, "to_ms: not from 1 to %d periods",
                        BELAY_ACTIVE_PERIODS_MAX);
}

static int next(belay__operation_t *operation) {
  belay_active_t *active = operation->context;
  query_t *query = operation->room;
  if (operation->values[SENT]++ != 0)
    return 0;
  int64_t now = belay__servertime_ms(&active->time, &active->handle);
  if (query->from_ms == BELAY_ACTIVE_NOW)
    query->from_ms = now;
  if (query->to_ms == BELAY_ACTIVE_NOW)
    query->to_ms = now;
  size_t n = query->kind == LAST ? query->n : 1;
  operation->values[COUNTED] = (int64_t)n;
  int error = check_periods(active, query);
  if (error == 0)
    error = belay__request_send_each(operation, n, make_call, query);
  return error != 0 ? error : BELAY__REQUEST_PARK;
}

static const belay__request_ops_t status_ops = {
    .read = read_number, .next = next, .notify = belay__request_notify_status, .idempotent = true};
static const belay__request_ops_t count_ops = {
    .read = read_number, .next = next, .notify = notify_counts, .idempotent = true};

static void copy_query(void *room, const query_t *query) {
  query_t *copy = room;
  *copy = *query;
  if (query->items == NULL)
    return;
  belay_bytes_t *items = (belay_bytes_t *)(void *)(copy + 1);
  char *at = (char *)(items + query->n);
  copy->items = items;
  for (size_t i = 0; i < query->n; i++) {
    items[i] =
        belay_bytes(memcpy(at, query->items[i].data, query->items[i].len), query->items[i].len);
    at += items[i].len;
  }
}

static int check_time(const belay_active_t *active, const char *what, int64_t time_ms) {
  if (time_ms == BELAY_ACTIVE_NOW)
    return 0;
  return belay__check_range(active->handle.client->belay, what, time_ms, 1, BELAY_ACTIVE_TIME_MAX);
}

/* Check the items and the times; unless a time is BELAY_ACTIVE_NOW, also the number of periods. */
static int check(const belay_active_t *active, const query_t *query) {
  const belay__handle_t *handle = &active->handle;
  bool one_time = query->kind == MARK || query->kind == LAST;
  int error = 0;
  if (query->kind == MARK)
    error = belay__handle_check_array(handle, "user", query->items, query->n,
                                      BELAY__HANDLE_KEYS_MAX, 1, BELAY_ACTIVE_USER_MAX);
  else if (query->kind >= ARCHIVE)
    error = belay__handle_check_array(handle, "label", query->items, query->n,
                                      BELAY_ACTIVE_LABELS_MAX, 1, BELAY_ACTIVE_LABEL_MAX);
  if (error == 0)
    error = check_time(active, one_time ? "time_ms" : "from_ms", query->from_ms);
  if (error == 0)
    error = check_time(active, "to_ms", query->to_ms);
  if (error == 0 && query->from_ms != BELAY_ACTIVE_NOW && query->to_ms != BELAY_ACTIVE_NOW)
    error = check_periods(active, query);
  return error;
}

static int start(belay_active_t *active, belay_request_t *request, const belay__request_ops_t *ops,
                 query_t query, void (*cb)(void)) {
  belay__operation_t *operation;
  size_t items = query.items == NULL ? 0 : query.n,
         size = sizeof query + items * sizeof *query.items;
  int error = belay__handle_check_request((const belay__handle_t *)active, request, cb != NULL);
  if (error == 0)
    error = check(active, &query);
  for (size_t i = 0; i < items && error == 0; i++)
    size += query.items[i].len;
  if (error == 0)
    error = belay__handle_begin_room(&active->handle, request, ops, cb, size, &operation);
  if (error != 0)
    return error;
  copy_query(operation->room, &query);
  bool now = query.from_ms == BELAY_ACTIVE_NOW || query.to_ms == BELAY_ACTIVE_NOW;
  return belay__servertime_begin(&active->time, &active->handle, operation, now);
}

int belay_active_mark_many(belay_active_t *active, belay_request_t *request,
                           const belay_bytes_t *users, size_t n, int64_t time_ms,
                           belay_active_cb cb) {
  return start(
      active, request, &status_ops,
      (query_t){.kind = MARK, .from_ms = time_ms, .to_ms = time_ms, .items = users, .n = n},
      BELAY__CB(cb));
}

int belay_active_mark(belay_active_t *active, belay_request_t *request, belay_bytes_t user,
                      int64_t time_ms, belay_active_cb cb) {
  return belay_active_mark_many(active, request, &user, 1, time_ms, cb);
}

int belay_active_count_last(belay_active_t *active, belay_request_t *request, int64_t time_ms,
                            const uint32_t *spans, size_t n, belay_active_count_cb cb) {
  static const uint32_t days[] = {1, 3, 7, 15, 30};
  int error = belay__handle_check_request((const belay__handle_t *)active, request, cb != NULL);
  if (error != 0)
    return error;
  belay_t *belay = active->handle.client->belay;
  bool usual = spans == NULL && n == 0;
  query_t query = {.kind = LAST,
                   .from_ms = time_ms,
                   .to_ms = time_ms,
                   .n = usual ? sizeof days / sizeof *days : n};
  error = check_time(active, "time_ms", time_ms);
  if (error == 0 && !usual)
    error = belay__check_count(belay, "span", spans, n, BELAY_ACTIVE_SPANS_MAX);
  for (size_t i = 0; i < query.n && error == 0; i++) {
    query.spans[i] = usual ? days[i] * (uint32_t)(BELAY__DAY_MS / active->unit_ms) : spans[i];
    error = belay__check_range(belay, "span", query.spans[i], 1, BELAY_ACTIVE_PERIODS_MAX);
  }
  return error != 0 ? error : start(active, request, &count_ops, query, BELAY__CB(cb));
}

int belay_active_count(belay_active_t *active, belay_request_t *request, int64_t time_ms,
                       belay_active_count_cb cb) {
  static const uint32_t one = 1;
  return belay_active_count_last(active, request, time_ms, &one, 1, cb);
}

int belay_active_count_span(belay_active_t *active, belay_request_t *request, int64_t from_ms,
                            int64_t to_ms, belay_active_count_cb cb) {
  return start(active, request, &count_ops,
               (query_t){.kind = SPAN, .from_ms = from_ms, .to_ms = to_ms}, BELAY__CB(cb));
}

int belay_active_clear(belay_active_t *active, belay_request_t *request, int64_t from_ms,
                       int64_t to_ms, belay_active_cb cb) {
  return start(active, request, &status_ops,
               (query_t){.kind = CLEAR, .from_ms = from_ms, .to_ms = to_ms}, BELAY__CB(cb));
}

int belay_active_archive(belay_active_t *active, belay_request_t *request, int64_t from_ms,
                         int64_t to_ms, belay_bytes_t label, belay_active_count_cb cb) {
  return start(
      active, request, &count_ops,
      (query_t){.kind = ARCHIVE, .from_ms = from_ms, .to_ms = to_ms, .items = &label, .n = 1},
      BELAY__CB(cb));
}

int belay_active_count_archives(belay_active_t *active, belay_request_t *request,
                                const belay_bytes_t *labels, size_t n, belay_active_count_cb cb) {
  return start(active, request, &count_ops,
               (query_t){.kind = COUNT_ARCHIVES, .from_ms = 1, .to_ms = 1, .items = labels, .n = n},
               BELAY__CB(cb));
}

int belay_active_clear_archives(belay_active_t *active, belay_request_t *request,
                                const belay_bytes_t *labels, size_t n, belay_active_cb cb) {
  return start(active, request, &status_ops,
               (query_t){.kind = CLEAR_ARCHIVES, .from_ms = 1, .to_ms = 1, .items = labels, .n = n},
               BELAY__CB(cb));
}
