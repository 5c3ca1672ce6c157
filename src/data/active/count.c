/* Active users: counts, archives and clears. A count is one PFCOUNT over the keys of its
 * periods; several counts are sent together. */
#include <stdint.h>

#include "data/active/active.h"
#include "scripts.gen.h"

_Static_assert(BELAY__ACTIVE_LEN <= BELAY__REQUEST_VALUES, "counts have room");

enum { COUNTED = BELAY__ACTIVE_LEN }; /* of a request: how many counts there are */
_Static_assert(COUNTED < BELAY__REQUEST_VALUES, "and how many they are");

/* ---- answers ------------------------------------------------------------------------------------------- */

static int read_count(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  belay_active_t *active = operation->context;
  int status;
  if (belay__servertime_learn(&active->time, operation, call, reply, &status))
    return status;
  return belay__reply_integer(reply, 0, INT64_MAX, &operation->values[operation->index])
             ? 0
             : BELAY_EPROTO;
}

static int read_cleared(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply) {
  belay_active_t *active = operation->context;
  int status;
  int64_t keys;
  if (belay__servertime_learn(&active->time, operation, call, reply, &status))
    return status;
  return belay__reply_integer(reply, 0, BELAY_ACTIVE_PERIODS_MAX, &keys) ? 0 : BELAY_EPROTO;
}

static void tell_counts(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  bool well = answer->status == 0;
  ((belay_active_count_cb)cb)(request, answer->status, well ? answer->values : NULL,
                              well ? (size_t)answer->values[COUNTED] : 0);
}

static const belay__request_ops_t count_ops = {
    .read = read_count, .next = belay__active_next, .notify = tell_counts, .idempotent = true};
static const belay__request_ops_t clear_ops = {.read = read_cleared,
                                               .next = belay__active_next,
                                               .notify = belay__request_notify_status,
                                               .idempotent = true};

/* ---- calls --------------------------------------------------------------------------------------------- */

static void put_periods(const belay_active_t *active, belay__call_t *call, int64_t from,
                        int64_t to) {
  for (int64_t period = from; period <= to; period++)
    belay__active_put_period(active, call, period);
}

/* A command on all periods from one to another; NULL if memory is out. */
static belay__call_t *on_periods(const belay_active_t *active, const char *name, int64_t from,
                                 int64_t to) {
  belay__call_t *call = belay__handle_command(&active->handle, name, 1 + (size_t)(to - from + 1));
  put_periods(active, call, from, to);
  return call;
}

static belay__call_t *last_call(belay__operation_t *operation, size_t i, const void *arg) {
  const belay_active_t *active = operation->context;
  const belay__active_ask_t *ask = arg;
  int64_t to = belay__active_period(active, ask->to_ms);
  return belay__call_stale(on_periods(active, "PFCOUNT", to - ask->spans[i] + 1, to));
}

static int send_last(belay_active_t *active, belay__operation_t *operation,
                     const belay__active_ask_t *ask) {
  (void)active;
  operation->values[COUNTED] = (int64_t)ask->n;
  return belay__request_send_each(operation, ask->n, last_call, ask);
}

/* A span that ends now was measured with the time that was given only: it may be too long, or end before it begins. */
static int periods_of(const belay_active_t *active, const belay__active_ask_t *ask, int64_t *from,
                      int64_t *to) {
  *from = belay__active_period(active, ask->from_ms);
  *to = belay__active_period(active, ask->to_ms);
  if (*to >= *from && *to - *from < BELAY_ACTIVE_PERIODS_MAX)
    return 0;
  return belay__invalid(active->handle.client->belay, "to_ms: not from 1 to %d periods",
                        BELAY_ACTIVE_PERIODS_MAX);
}

static int send_span(belay_active_t *active, belay__operation_t *operation,
                     const belay__active_ask_t *ask) {
  int64_t from, to;
  int error = periods_of(active, ask, &from, &to);
  operation->values[COUNTED] = 1;
  return error != 0 ? error
                    : belay__request_send(
                          operation, belay__call_stale(on_periods(active, "PFCOUNT", from, to)));
}

static int send_clear(belay_active_t *active, belay__operation_t *operation,
                      const belay__active_ask_t *ask) {
  int64_t from, to;
  int error = periods_of(active, ask, &from, &to);
  return error != 0 ? error
                    : belay__request_send(operation, on_periods(active, "UNLINK", from, to));
}

static int send_archive(belay_active_t *active, belay__operation_t *operation,
                        const belay__active_ask_t *ask) {
  int64_t from, to;
  int error = periods_of(active, ask, &from, &to);
  if (error != 0)
    return error;
  belay__call_t *call = belay__handle_script(&active->handle, &belay__script_active_archive,
                                             1 + (size_t)(to - from + 1), 1);
  belay__active_put_archive(active, call, ask->items[0].data, ask->items[0].len);
  put_periods(active, call, from, to);
  belay__call_arg_int(call, active->archive_ttl_ms);
  operation->values[COUNTED] = 1;
  return belay__request_send(operation, call);
}

static belay__call_t *on_archives(const belay_active_t *active, const char *name,
                                  const belay__active_ask_t *ask) {
  belay__call_t *call = belay__handle_command(&active->handle, name, 1 + ask->n);
  for (size_t i = 0; i < ask->n; i++)
    belay__active_put_archive(active, call, ask->items[i].data, ask->items[i].len);
  return call;
}

static int send_count_archives(belay_active_t *active, belay__operation_t *operation,
                               const belay__active_ask_t *ask) {
  operation->values[COUNTED] = 1;
  return belay__request_send(operation, belay__call_stale(on_archives(active, "PFCOUNT", ask)));
}

static int send_clear_archives(belay_active_t *active, belay__operation_t *operation,
                               const belay__active_ask_t *ask) {
  return belay__request_send(operation, on_archives(active, "UNLINK", ask));
}

/* ---- operations ---------------------------------------------------------------------------------------- */

static int check(const belay_active_t *active, const belay_request_t *request, bool has_cb) {
  return belay__handle_check_request((const belay__handle_t *)active, request, has_cb);
}

int belay_active_count_last(belay_active_t *active, belay_request_t *request, int64_t time_ms,
                            const uint32_t *spans, size_t n, belay_active_count_cb cb) {
  static const uint32_t days[] = {1, 3, 7, 15, 30};
  int error = check(active, request, cb != NULL);
  if (error != 0)
    return error;
  belay_t *belay = active->handle.client->belay;
  bool usual = spans == NULL && n == 0;
  belay__active_ask_t ask = {.send = send_last, .from_ms = time_ms, .to_ms = time_ms, .n = n};
  error = belay__active_check_time(active, "time_ms", time_ms);
  if (error == 0 && !usual)
    error = belay__check_count(belay, "span", spans, n, BELAY_ACTIVE_SPANS_MAX);
  if (usual)
    ask.n = sizeof days / sizeof *days;
  for (size_t i = 0; i < ask.n && error == 0; i++) {
    ask.spans[i] = usual ? days[i] * (uint32_t)(BELAY__DAY_MS / active->unit_ms) : spans[i];
    error = belay__check_range(belay, "span", ask.spans[i], 1, BELAY_ACTIVE_PERIODS_MAX);
  }
  return error != 0 ? error : belay__active_begin(active, request, &count_ops, &ask, BELAY__CB(cb));
}

int belay_active_count(belay_active_t *active, belay_request_t *request, int64_t time_ms,
                       belay_active_count_cb cb) {
  static const uint32_t one = 1;
  return belay_active_count_last(active, request, time_ms, &one, 1, cb);
}

/* Checks a span as far as possible without the server's time. */
static int check_span(const belay_active_t *active, const belay__active_ask_t *ask) {
  int64_t from, to;
  int error = belay__active_check_time(active, "from_ms", ask->from_ms);
  if (error == 0)
    error = belay__active_check_time(active, "to_ms", ask->to_ms);
  if (error == 0 && ask->from_ms != BELAY_ACTIVE_NOW && ask->to_ms != BELAY_ACTIVE_NOW)
    error = periods_of(active, ask, &from, &to);
  return error;
}

int belay_active_count_span(belay_active_t *active, belay_request_t *request, int64_t from_ms,
                            int64_t to_ms, belay_active_count_cb cb) {
  const belay__active_ask_t ask = {.send = send_span, .from_ms = from_ms, .to_ms = to_ms};
  int error = check(active, request, cb != NULL);
  if (error == 0)
    error = check_span(active, &ask);
  return error != 0 ? error : belay__active_begin(active, request, &count_ops, &ask, BELAY__CB(cb));
}

int belay_active_clear(belay_active_t *active, belay_request_t *request, int64_t from_ms,
                       int64_t to_ms, belay_active_cb cb) {
  const belay__active_ask_t ask = {.send = send_clear, .from_ms = from_ms, .to_ms = to_ms};
  int error = check(active, request, cb != NULL);
  if (error == 0)
    error = check_span(active, &ask);
  return error != 0 ? error : belay__active_begin(active, request, &clear_ops, &ask, BELAY__CB(cb));
}

static int check_labels(const belay_active_t *active, const belay_bytes_t *labels, size_t n) {
  return belay__handle_check_array(&active->handle, "label", labels, n, BELAY_ACTIVE_LABELS_MAX, 1,
                                   BELAY_ACTIVE_LABEL_MAX);
}

int belay_active_archive(belay_active_t *active, belay_request_t *request, int64_t from_ms,
                         int64_t to_ms, belay_bytes_t label, belay_active_count_cb cb) {
  const belay_bytes_t labels = {.data = label.data, .len = label.len};
  const belay__active_ask_t ask = {
      .send = send_archive, .from_ms = from_ms, .to_ms = to_ms, .items = &labels, .n = 1};
  int error = check(active, request, cb != NULL);
  if (error == 0)
    error = check_labels(active, &labels, 1);
  if (error == 0)
    error = check_span(active, &ask);
  return error != 0 ? error : belay__active_begin(active, request, &count_ops, &ask, BELAY__CB(cb));
}

/* Of archives, whatever the time. */
static int begin_archives(belay_active_t *active, belay_request_t *request,
                          const belay__request_ops_t *ops, const belay__active_ask_t *ask,
                          void (*cb)(void)) {
  int error = check(active, request, cb != NULL);
  if (error == 0)
    error = check_labels(active, ask->items, ask->n);
  return error != 0 ? error : belay__active_begin(active, request, ops, ask, cb);
}

int belay_active_count_archives(belay_active_t *active, belay_request_t *request,
                                const belay_bytes_t *labels, size_t n, belay_active_count_cb cb) {
  const belay__active_ask_t ask = {
      .send = send_count_archives, .from_ms = 1, .to_ms = 1, .items = labels, .n = n};
  return begin_archives(active, request, &count_ops, &ask, BELAY__CB(cb));
}

int belay_active_clear_archives(belay_active_t *active, belay_request_t *request,
                                const belay_bytes_t *labels, size_t n, belay_active_cb cb) {
  const belay__active_ask_t ask = {
      .send = send_clear_archives, .from_ms = 1, .to_ms = 1, .items = labels, .n = n};
  return begin_archives(active, request, &clear_ops, &ask, BELAY__CB(cb));
}
