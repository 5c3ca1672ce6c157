/* Dedup: the handle; the count and the removal of one set. The key of a set is behind the braces,
 * so that all sets of a handle share a slot and can be combined. All calls of a handle to one
 * server use one connection. So the server executes a combination after the marks that were sent
 * before it, unless such a mark is sent again. */
#include "data/dedup/dedup.h"

#include "scripts.gen.h"

#define TTL_MAX_MS INT64_C(31536000000) /* one year */

static const belay_dedup_options_t defaults = {.kind = BELAY_DEDUP_SET,
                                               .ttl_ms = 86400000,
                                               .window_ms = 3600000,
                                               .max_items = 1000000,
                                               .max_offset = (1 << 24) - 1,
                                               .op_ttl_ms = 60000};

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_dedup_options_t, kind, 0, BELAY_DEDUP_BITMAP),
    BELAY__RANGE_OR(belay_dedup_options_t, ttl_ms, 0, 1000, TTL_MAX_MS),
    BELAY__RANGE(belay_dedup_options_t, window_ms, 1, TTL_MAX_MS),
    BELAY__RANGE(belay_dedup_options_t, max_items, 1, BELAY_DEDUP_WINDOW_ITEMS_MAX),
    BELAY__RANGE(belay_dedup_options_t, op_ttl_ms, 1000, 86400000),
    BELAY__RANGE(belay_dedup_options_t, max_offset, 0, BELAY_DEDUP_OFFSET_MAX),
    {.name = NULL},
};

const belay__handle_type_t belay__dedup_type = {
    .family = "dedup",
    .whole = true,
    BELAY__HANDLE_LAYOUT(dedup),
    .copy_at = offsetof(belay_dedup_t, options),
    .defaults = &defaults,
    .ranges = ranges,
};

BELAY__HANDLE_FUNCTIONS(dedup)

int belay__dedup_check(const belay_dedup_t *dedup, const belay_request_t *request, unsigned kinds,
                       bool has_cb) {
  static const char *const names[] = {"a set", "a count", "a window", "a bitmap"};
  int error = belay__handle_check_request((const belay__handle_t *)dedup, request, has_cb);
  if (error != 0 || (kinds & 1U << dedup->options.kind) != 0)
    return error;
  return belay__invalid(dedup->handle.client->belay, "kind: %s cannot do that",
                        names[dedup->options.kind]);
}

void belay__dedup_arg_key(const belay_dedup_t *dedup, belay__call_t *call, belay_bytes_t key) {
  belay__handle_arg_id(&dedup->handle, call, (belay_bytes_t){0}, "}::", key);
}

int belay__dedup_fault(const belay__call_t *call, const belay__reply_t *reply) {
  static const belay__fault_t faults[] = {
      {BELAY_EMISMATCH, "its ::op has the answer for other items"},
      {BELAY_EMISMATCH, "its scores are no times"},
  };
  return belay__handle_fault(call, reply, faults, sizeof faults / sizeof *faults);
}

static int read_count(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  int error = belay__dedup_fault(call, reply);
  if (error != 0)
    return error;
  return belay__reply_integer(reply, 0, INT64_MAX, &operation->values[0]) ? 0 : BELAY_EPROTO;
}

static int read_cleared(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply) {
  (void)call;
  return belay__reply_integer(reply, 0, 1, &operation->values[0]) ? 0 : BELAY_EPROTO;
}

static const belay__request_ops_t count_ops = {
    .read = read_count, .notify = belay__request_notify_count, .idempotent = true};
static const belay__request_ops_t clear_ops = {.read = read_cleared,
                                               .notify = belay__request_notify_count};

int belay_dedup_count(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                      belay_dedup_count_cb cb) {
  static const char *const names[] = {[BELAY_DEDUP_SET] = "SCARD",
                                      [BELAY_DEDUP_COUNT] = "PFCOUNT",
                                      [BELAY_DEDUP_BITMAP] = "BITCOUNT"};
  int error = belay__handle_check_key((belay__handle_t *)dedup, request, key, cb != NULL);
  if (error != 0)
    return error;
  belay__call_t *call =
      dedup->options.kind == BELAY_DEDUP_WINDOW
          ? belay__handle_script(&dedup->handle, &belay__script_dedup_window_seen, 1, 0)
          : belay__handle_command(&dedup->handle, names[dedup->options.kind], 2);
  belay__dedup_arg_key(dedup, call, key);
  return belay__handle_start(&dedup->handle, request, belay__call_stale(call), &count_ops,
                             BELAY__CB(cb));
}

int belay_dedup_clear(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                      belay_dedup_count_cb cb) {
  int error = belay__handle_check_key((belay__handle_t *)dedup, request, key, cb != NULL);
  if (error != 0)
    return error;
  belay__call_t *call = belay__handle_command(&dedup->handle, "UNLINK", 2);
  belay__dedup_arg_key(dedup, call, key);
  return belay__handle_start(&dedup->handle, request, call, &clear_ops, BELAY__CB(cb));
}
