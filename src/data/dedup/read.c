/* Dedup: lookups, counts and removal. */
#include "data/dedup/dedup.h"
#include "scripts.gen.h"

#define WITH_MEMBERS (1U << BELAY_DEDUP_SET | 1U << BELAY_DEDUP_WINDOW | 1U << BELAY_DEDUP_BITMAP)

/* ---- seen ---------------------------------------------------------------------------------------------- */

static int read_seen(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  static const int verdicts[] = {BELAY_DEDUP_NEW, BELAY_DEDUP_SEEN, -1};
  return belay__dedup_read(operation, call, reply, verdicts);
}

static const belay__request_ops_t seen_ops = {
    .read = read_seen, .notify = belay__dedup_tell, .idempotent = true};
static const belay__request_ops_t seen_many_ops = {
    .read = read_seen, .notify = belay__dedup_tell_many, .idempotent = true};

static belay__call_t *new_seen(const belay__dedup_batch_t *batch, const belay_bytes_t *items,
                               size_t n) {
  const belay_dedup_t *dedup = batch->dedup;
  belay__call_t *call;
  if (dedup->kind == BELAY_DEDUP_BITMAP)
    call = belay__dedup_command(dedup, "BITFIELD_RO", 2 + belay__dedup_words(batch, "GET", n));
  else if (dedup->kind == BELAY_DEDUP_WINDOW)
    call = belay__dedup_script(dedup, &belay__script_dedup_window_seen, 1, n);
  else if (batch->n == 1)
    call = belay__dedup_command(dedup, "SISMEMBER", 3);
  else
    call = belay__dedup_script(dedup, &belay__script_dedup_seen, 1, n);
  belay__dedup_arg_key(dedup, call, batch->key, batch->key_len);
  belay__dedup_arg_items(batch, "GET", call, items, n);
  return belay__call_stale(call);
}

int belay_dedup_seen(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                     belay_bytes_t item, belay_dedup_cb cb) {
  const belay_bytes_t one = {item.data, item.len};
  belay__dedup_batch_t batch = {.dedup = dedup,
                                .kinds = WITH_MEMBERS,
                                .key = key.data,
                                .key_len = key.len,
                                .items = &one,
                                .n = 1,
                                .max = 1,
                                .ops = &seen_ops,
                                .part = new_seen};
  return belay__dedup_start(&batch, request, BELAY__CB(cb));
}

int belay_dedup_seen_many(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                          const belay_bytes_t *items, size_t n, belay_dedup_many_cb cb) {
  belay__dedup_batch_t batch = {.dedup = dedup,
                                .kinds = WITH_MEMBERS,
                                .key = key.data,
                                .key_len = key.len,
                                .items = items,
                                .n = n,
                                .max = BELAY_DEDUP_ITEMS_MAX,
                                .many = true,
                                .ops = &seen_many_ops,
                                .part = new_seen};
  return belay__dedup_start(&batch, request, BELAY__CB(cb));
}

/* ---- forget -------------------------------------------------------------------------------------------- */

/* Each part adds what it has taken out. */
static int read_forgotten(belay__operation_t *operation, const belay__call_t *call,
                          const belay__reply_t *reply) {
  int64_t n;
  int error = belay__dedup_fault(call, reply);
  if (error != 0)
    return error;
  if (!belay__reply_integer(reply, 0, BELAY__DEDUP_PART, &n))
    return BELAY_EPROTO;
  operation->values[0] += n;
  return 0;
}

static const belay__request_ops_t forget_ops = {.read = read_forgotten,
                                                .notify = belay__request_notify_count};

static belay__call_t *new_forget(const belay__dedup_batch_t *batch, const belay_bytes_t *items,
                                 size_t n) {
  const belay_dedup_t *dedup = batch->dedup;
  belay__call_t *call;
  if (dedup->kind == BELAY_DEDUP_BITMAP)
    call = belay__dedup_script(dedup, &belay__script_dedup_bitmap_forget, 1, n);
  else if (dedup->kind == BELAY_DEDUP_WINDOW)
    call = belay__dedup_script(dedup, &belay__script_dedup_window_forget, 1, n);
  else
    call = belay__dedup_command(dedup, "SREM", 2 + n);
  belay__dedup_arg_key(dedup, call, batch->key, batch->key_len);
  belay__dedup_arg_items(batch, NULL, call, items, n);
  return call;
}

int belay_dedup_forget(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                       const belay_bytes_t *items, size_t n, belay_dedup_count_cb cb) {
  belay__dedup_batch_t batch = {.dedup = dedup,
                                .kinds = WITH_MEMBERS,
                                .key = key.data,
                                .key_len = key.len,
                                .items = items,
                                .n = n,
                                .max = BELAY_DEDUP_ITEMS_MAX,
                                .ops = &forget_ops,
                                .part = new_forget};
  return belay__dedup_start(&batch, request, BELAY__CB(cb));
}

/* ---- count, clear -------------------------------------------------------------------------------------- */

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
  belay__call_t *call = dedup->kind == BELAY_DEDUP_WINDOW
                            ? belay__dedup_script(dedup, &belay__script_dedup_window_seen, 1, 0)
                            : belay__dedup_command(dedup, names[dedup->kind], 2);
  belay__dedup_arg_key(dedup, call, key.data, key.len);
  return belay__handle_start(&dedup->handle, request, belay__call_stale(call), &count_ops,
                             BELAY__CB(cb));
}

int belay_dedup_clear(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                      belay_dedup_count_cb cb) {
  int error = belay__handle_check_key((belay__handle_t *)dedup, request, key, cb != NULL);
  if (error != 0)
    return error;
  belay__call_t *call = belay__dedup_command(dedup, "UNLINK", 2);
  belay__dedup_arg_key(dedup, call, key.data, key.len);
  return belay__handle_start(&dedup->handle, request, call, &clear_ops, BELAY__CB(cb));
}
