/* Dedup: marks. One step marks an item and answers whether it was new. So a second try would get
 * another answer, unless the first answer was stored under an operation id. */
#include <stdio.h>

#include "data/dedup/dedup.h"
#include "scripts.gen.h"

/* ---- answers ------------------------------------------------------------------------------------------- */

static int read_mark(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  static const int exact[] = {BELAY_DEDUP_SEEN, BELAY_DEDUP_NEW, -1};
  static const int count[] = {BELAY_DEDUP_MAYBE, BELAY_DEDUP_NEW, -1};
  static const int window[] = {BELAY_DEDUP_SEEN, BELAY_DEDUP_NEW, BELAY_DEDUP_FULL};
  static const int bits[] = {BELAY_DEDUP_NEW, BELAY_DEDUP_SEEN, -1}; /* that were there before */
  const belay_dedup_t *dedup = operation->context;
  const int *verdicts = exact;
  if (dedup->kind == BELAY_DEDUP_COUNT)
    verdicts = count;
  else if (dedup->kind == BELAY_DEDUP_WINDOW)
    verdicts = window;
  else if (reply->type == BELAY__REPLY_ARRAY)
    verdicts = bits;
  return belay__dedup_read(operation, call, reply, verdicts);
}

static const belay__request_ops_t mark_ops = {.read = read_mark, .notify = belay__dedup_tell};
static const belay__request_ops_t many_ops = {.read = read_mark, .notify = belay__dedup_tell_many};

/* Operations whose repeated answer is equal, or weaker and still true. */
static const belay__request_ops_t mark_again_ops = {
    .read = read_mark, .notify = belay__dedup_tell, .idempotent = true};
static const belay__request_ops_t many_again_ops = {
    .read = read_mark, .notify = belay__dedup_tell_many, .idempotent = true};

/* ---- calls --------------------------------------------------------------------------------------------- */

/* Without a ttl and an operation's id, a command does where there is one. */
static belay__call_t *new_command(const belay__dedup_batch_t *batch, const belay_bytes_t *items,
                                  size_t n) {
  static const char *const names[] = {
      [BELAY_DEDUP_SET] = "SADD", [BELAY_DEDUP_COUNT] = "PFADD", [BELAY_DEDUP_BITMAP] = "BITFIELD"};
  const belay_dedup_t *dedup = batch->dedup;
  size_t words = belay__dedup_words(batch, "SET", n);
  belay__call_t *call = belay__dedup_command(dedup, names[dedup->kind], 2 + words);
  belay__dedup_arg_key(dedup, call, batch->key, batch->key_len);
  belay__dedup_arg_items(batch, "SET", call, items, n);
  return call;
}

/* FNV-1a, of the items and their lengths. */
static uint64_t fingerprint(const belay_bytes_t *items, size_t n) {
  uint64_t hash = UINT64_C(14695981039346656037);
  for (size_t i = 0; i < n; i++) {
    const unsigned char *bytes = items[i].data;
    for (size_t j = 0; j < items[i].len; j++)
      hash = (hash ^ bytes[j]) * UINT64_C(1099511628211);
    for (size_t j = 0; j < 2; j++)
      hash = (hash ^ (items[i].len >> 8 * j & 0xff)) * UINT64_C(1099511628211);
  }
  return hash;
}

static void put_answer(const belay__dedup_batch_t *batch, belay__call_t *call,
                       const belay_bytes_t *items, size_t n) {
  char text[17] = "";
  if (batch->once)
    (void)snprintf(text, sizeof text, "%016llx", (unsigned long long)fingerprint(items, n));
  belay__call_arg_int(call, batch->op_ttl_ms);
  belay__call_arg(call, text, batch->once ? 16 : 0);
}

static void put_keys(const belay__dedup_batch_t *batch, belay__call_t *call) {
  belay__dedup_arg_key(batch->dedup, call, batch->key, batch->key_len);
  if (batch->once)
    belay__dedup_arg_answer(batch->dedup, call, batch->key, batch->key_len, batch->id,
                            batch->id_len);
}

static belay__call_t *new_window_script(const belay__dedup_batch_t *batch,
                                        const belay_bytes_t *items, size_t n) {
  const belay_dedup_t *dedup = batch->dedup;
  belay__call_t *call =
      belay__dedup_script(dedup, &belay__script_dedup_window_mark, batch->once ? 2 : 1, 6 + n);
  put_keys(batch, call);
  belay__call_arg_int(call, dedup->window_ms);
  belay__call_arg_int(call, dedup->extend_ttl);
  belay__call_arg_int(call, dedup->max_items);
  belay__call_arg_int(call, dedup->evict);
  put_answer(batch, call, items, n);
  belay__dedup_arg_items(batch, NULL, call, items, n);
  return call;
}

static belay__call_t *new_script(const belay__dedup_batch_t *batch, const belay_bytes_t *items,
                                 size_t n) {
  static const char *const letters[] = {
      [BELAY_DEDUP_SET] = "s", [BELAY_DEDUP_COUNT] = "c", [BELAY_DEDUP_BITMAP] = "b"};
  const belay_dedup_t *dedup = batch->dedup;
  size_t words = belay__dedup_words(batch, "SET", n);
  belay__call_t *call =
      belay__dedup_script(dedup, &belay__script_dedup_mark, batch->once ? 2 : 1, 5 + words);
  put_keys(batch, call);
  belay__call_arg(call, letters[dedup->kind], 1);
  belay__call_arg_int(call, dedup->ttl_ms);
  belay__call_arg_int(call, dedup->extend_ttl);
  put_answer(batch, call, items, n);
  belay__dedup_arg_items(batch, "SET", call, items, n);
  return call;
}

static belay__call_t *new_part(const belay__dedup_batch_t *batch, const belay_bytes_t *items,
                               size_t n) {
  const belay_dedup_t *dedup = batch->dedup;
  if (dedup->kind == BELAY_DEDUP_WINDOW)
    return new_window_script(batch, items, n);
  bool plain = dedup->ttl_ms == 0 && !batch->once;
  if (plain && (batch->n == 1 || dedup->kind == BELAY_DEDUP_BITMAP))
    return new_command(batch, items, n);
  return new_script(batch, items, n);
}

/* ---- operations ---------------------------------------------------------------------------------------- */

int belay_dedup_mark(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                     belay_bytes_t item, belay_dedup_cb cb) {
  const belay_bytes_t one = {item.data, item.len};
  belay__dedup_batch_t batch = {.dedup = dedup,
                                .kinds = BELAY__DEDUP_ALL_KINDS,
                                .key = key.data,
                                .key_len = key.len,
                                .items = &one,
                                .n = 1,
                                .max = 1,
                                .ops = &mark_ops,
                                .count_ops = &mark_again_ops,
                                .part = new_part};
  return belay__dedup_start(&batch, request, BELAY__CB(cb));
}

int belay_dedup_mark_many(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                          const belay_bytes_t *items, size_t n, belay_dedup_many_cb cb) {
  belay__dedup_batch_t batch = {.dedup = dedup,
                                .kinds = BELAY__DEDUP_ALL_KINDS,
                                .key = key.data,
                                .key_len = key.len,
                                .items = items,
                                .n = n,
                                .max = BELAY_DEDUP_ITEMS_MAX,
                                .many = true,
                                .ops = &many_ops,
                                .count_ops = &many_again_ops,
                                .part = new_part};
  return belay__dedup_start(&batch, request, BELAY__CB(cb));
}

int belay_dedup_mark_once(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                          const belay_dedup_once_t *once, belay_dedup_many_cb cb) {
  if (once == NULL) {
    int error = belay__dedup_check(dedup, request, BELAY__DEDUP_ALL_KINDS, cb != NULL);
    return error != 0 ? error : belay__invalid(dedup->handle.client->belay, "once: NULL");
  }
  belay__dedup_batch_t batch = {.dedup = dedup,
                                .kinds = BELAY__DEDUP_ALL_KINDS,
                                .key = key.data,
                                .key_len = key.len,
                                .items = once->items,
                                .n = once->n,
                                .max = BELAY_DEDUP_ONCE_MAX,
                                .many = true,
                                .once = true,
                                .id = once->op_id.data,
                                .id_len = once->op_id.len,
                                .ops = &many_again_ops,
                                .part = new_part};
  return belay__dedup_start(&batch, request, BELAY__CB(cb));
}
