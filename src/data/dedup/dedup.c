/* Dedup: the handle, the keys of its sets, and how batches travel. A set is a key behind the braces, so that all sets of
 * a handle live together and can be combined. */
#include "data/dedup/dedup.h"

#include <string.h>

#include "core/key/key.h"

#define TTL_MAX_MS INT64_C(31536000000) /* a year */

/* ---- the handle ----------------------------------------------------------------------------------------- */

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

static int on_init(belay__handle_t *handle, void *options) {
  belay_dedup_t *dedup = (belay_dedup_t *)handle;
  const belay_dedup_options_t *o = options;
  dedup->kind = o->kind;
  dedup->ttl_ms = o->ttl_ms;
  dedup->window_ms = o->window_ms;
  dedup->max_items = o->max_items;
  dedup->op_ttl_ms = o->op_ttl_ms;
  dedup->max_offset = o->max_offset;
  dedup->extend_ttl = o->extend_ttl;
  dedup->evict = o->evict;
  return 0;
}

const belay__handle_type_t belay__dedup_type = {
    .family = "dedup",
    .whole = true,
    BELAY__HANDLE_LAYOUT(dedup),
    .defaults = &defaults,
    .ranges = ranges,
    .init = on_init,
};

BELAY__HANDLE_FUNCTIONS(dedup)

/* ---- checks -------------------------------------------------------------------------------------------- */

int belay__dedup_check(const belay_dedup_t *dedup, const belay_request_t *request, unsigned kinds,
                       bool has_cb) {
  int error = belay__handle_check_request((const belay__handle_t *)dedup, request, has_cb);
  if (error == 0 && (kinds & 1U << dedup->kind) == 0) {
    static const char *const names[] = {"a set", "a count", "a window", "a bitmap"};
    return belay__invalid(dedup->handle.client->belay, "kind: %s cannot do that",
                          names[dedup->kind]);
  }
  return error;
}

/* A number as it is written, from 0 to max. */
static bool is_number(const belay_bytes_t *item, uint64_t max) {
  const char *text = item->data;
  uint64_t n = 0;
  if (item->len < 1 || item->len > 10 || (text[0] == '0' && item->len > 1))
    return false;
  for (size_t i = 0; i < item->len; i++) {
    if (text[i] < '0' || text[i] > '9')
      return false;
    n = n * 10 + (uint64_t)(text[i] - '0');
  }
  return n <= max;
}

static int check_items(const belay_dedup_t *dedup, const belay_bytes_t *items, size_t n,
                       size_t max) {
  belay_t *belay = dedup->handle.client->belay;
  int error =
      belay__handle_check_array(&dedup->handle, "item", items, n, max, 0, BELAY_DEDUP_ITEM_MAX);
  for (size_t i = 0; i < n && error == 0 && dedup->kind == BELAY_DEDUP_BITMAP; i++)
    if (!is_number(&items[i], dedup->max_offset)) {
      belay__detail(belay, "item: not a number from 0 to %llu",
                    (unsigned long long)dedup->max_offset);
      error = BELAY_EINVAL;
    }
  return error;
}

/* ---- calls --------------------------------------------------------------------------------------------- */

/* All calls of one handle use one connection, so that combinations follow the marks before them. */
static belay__call_t *new_call(const belay_dedup_t *dedup) {
  belay__call_t *call = belay__call_new(dedup->handle.client, BELAY__CLASS_DATA);
  if (call != NULL)
    call->route = dedup->handle.route;
  return call;
}

belay__call_t *belay__dedup_script(const belay_dedup_t *dedup, const belay__script_t *script,
                                   size_t keys, size_t args) {
  belay__call_t *call = new_call(dedup);
  if (call != NULL)
    belay__call_script(call, script, keys, args);
  return call;
}

belay__call_t *belay__dedup_command(const belay_dedup_t *dedup, const char *name, size_t argc) {
  belay__call_t *call = new_call(dedup);
  if (call != NULL)
    belay__call_command(call, name, argc);
  return call;
}

#define CLOSING "}::" /* the end of the braces of a key */

void belay__dedup_arg_answer(const belay_dedup_t *dedup, belay__call_t *call, const char *key,
                             size_t key_len, const void *id, size_t id_len) {
  static const char answer[] = "::op::";
  char rest[sizeof CLOSING + 3 * BELAY_DEDUP_KEY_MAX + sizeof answer + 3 * BELAY_DEDUP_OP_ID_MAX] =
      CLOSING;
  size_t n = sizeof CLOSING - 1;
  n += belay__key_escape(rest + n, key, key_len);
  if (id_len > 0) {
    memcpy(rest + n, answer, sizeof answer - 1);
    n += sizeof answer - 1;
    n += belay__key_escape(rest + n, id, id_len);
  }
  belay__call_arg_joined(call, dedup->handle.prefix, dedup->handle.prefix_len, rest, n);
}

void belay__dedup_arg_key(const belay_dedup_t *dedup, belay__call_t *call, const char *key,
                          size_t key_len) {
  belay__dedup_arg_answer(dedup, call, key, key_len, NULL, 0);
}

/* ---- batches ------------------------------------------------------------------------------------------- */

size_t belay__dedup_words(const belay__dedup_batch_t *batch, const char *word, size_t n) {
  if (batch->dedup->kind != BELAY_DEDUP_BITMAP || word == NULL)
    return n;
  return n * (*word == 'S' ? 4 : 3);
}

void belay__dedup_arg_items(const belay__dedup_batch_t *batch, const char *word,
                            belay__call_t *call, const belay_bytes_t *items, size_t n) {
  bool words = batch->dedup->kind == BELAY_DEDUP_BITMAP && word != NULL;
  for (size_t i = 0; i < n; i++) {
    if (words) {
      belay__call_arg(call, word, 3);
      belay__call_arg_text(call, "u1");
    }
    belay__call_arg(call, items[i].len == 0 ? "" : items[i].data, items[i].len);
    if (words && *word == 'S')
      belay__call_arg_text(call, "1");
  }
}

static belay__call_t *part_call(belay__operation_t *operation, size_t i, const void *arg) {
  const belay__dedup_batch_t *batch = arg;
  size_t at = i * BELAY__DEDUP_PART, left = batch->n - at;
  (void)operation;
  return batch->part(batch, batch->items + at, left < BELAY__DEDUP_PART ? left : BELAY__DEDUP_PART);
}

static int check_batch(belay__dedup_batch_t *batch, const belay_request_t *request, bool has_cb) {
  const belay_dedup_t *dedup = batch->dedup;
  int error = belay__dedup_check(dedup, request, batch->kinds, has_cb);
  if (error == 0)
    error = belay__handle_check_key(&dedup->handle, request,
                                    belay_bytes(batch->key, batch->key_len), has_cb);
  if (error == 0)
    error = check_items(dedup, batch->items, batch->n, batch->max);
  if (error == 0 && batch->once)
    error = belay__check_bytes(dedup->handle.client->belay, "op_id",
                               belay_bytes(batch->id, batch->id_len), 1, BELAY_DEDUP_OP_ID_MAX);
  return error;
}

int belay__dedup_start(belay__dedup_batch_t *batch, belay_request_t *request, void (*cb)(void)) {
  belay_dedup_t *dedup = batch->dedup;
  belay__operation_t *operation;
  int error = check_batch(batch, request, cb != NULL);
  if (error != 0)
    return error;
  batch->op_ttl_ms = belay__request_keep_ms(dedup->handle.client, request, dedup->op_ttl_ms);
  bool count = dedup->kind == BELAY_DEDUP_COUNT && batch->count_ops != NULL;
  error = belay__handle_begin(&dedup->handle, request, count ? batch->count_ops : batch->ops, cb,
                              &operation);
  if (error != 0)
    return error;
  if (batch->many &&
      belay__request_room(operation, batch->n * sizeof(belay_dedup_verdict_t)) == NULL)
    return belay__request_begun(operation, BELAY_ENOMEM);
  size_t parts = (batch->n + BELAY__DEDUP_PART - 1) / BELAY__DEDUP_PART;
  return belay__request_begun(operation,
                              belay__request_send_each(operation, parts, part_call, batch));
}

static int put_verdict(belay__operation_t *operation, size_t at, int64_t answer,
                       const int verdicts[3]) {
  if (answer < 0 || answer > 2 || verdicts[answer] < 0)
    return BELAY_EPROTO;
  if (operation->room != NULL)
    ((belay_dedup_verdict_t *)operation->room)[at] = (belay_dedup_verdict_t)verdicts[answer];
  else
    operation->values[0] = verdicts[answer];
  return 0;
}

int belay__dedup_fault(const belay__call_t *call, const belay__reply_t *reply) {
  static const belay__fault_t faults[] = {
      {BELAY_EMISMATCH, "its ::op has the answer for other items"},
      {BELAY_EMISMATCH, "its scores are no times"},
  };
  return belay__handle_fault(call, reply, faults, sizeof faults / sizeof *faults);
}

int belay__dedup_read(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply, const int verdicts[3]) {
  int64_t answer = 0;
  int error = belay__dedup_fault(call, reply);
  if (error != 0)
    return error;
  size_t all = operation->room == NULL ? 1 : operation->room_len / sizeof(belay_dedup_verdict_t);
  size_t at = operation->index * BELAY__DEDUP_PART;
  size_t n = all - at < BELAY__DEDUP_PART ? all - at : BELAY__DEDUP_PART;
  if (reply->type == BELAY__REPLY_INTEGER && n == 1)
    return put_verdict(operation, at, reply->integer, verdicts);
  bool array = reply->type == BELAY__REPLY_ARRAY;
  if ((!array && reply->type != BELAY__REPLY_STRING) || (array ? reply->count : reply->len) != n)
    return BELAY_EPROTO;
  for (size_t i = 0; i < n && error == 0; i++) {
    if (!array)
      answer = reply->str[i] - '0';
    else if (!belay__reply_integer(reply->items[i], 0, 1, &answer))
      return BELAY_EPROTO;
    error = put_verdict(operation, at + i, answer, verdicts);
  }
  return error;
}

void belay__dedup_tell(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  belay_dedup_verdict_t verdict =
      answer->status == 0 ? (belay_dedup_verdict_t)answer->values[0] : BELAY_DEDUP_MAYBE;
  ((belay_dedup_cb)cb)(request, answer->status, verdict);
}

void belay__dedup_tell_many(belay_request_t *request, void (*cb)(void),
                            const belay__answer_t *answer) {
  bool well = answer->status == 0;
  ((belay_dedup_many_cb)cb)(request, answer->status, well ? answer->room : NULL,
                            well ? answer->room_len / sizeof(belay_dedup_verdict_t) : 0);
}
