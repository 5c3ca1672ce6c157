/* Dedup: unions, intersections and differences of the sets of one handle. The scripts name a key
 * of another type. */
#include <string.h>

#include "data/dedup/dedup.h"
#include "scripts.gen.h"

#define COMBINABLE (1U << BELAY_DEDUP_SET | 1U << BELAY_DEDUP_COUNT)

/* ---- answers ------------------------------------------------------------------------------------------- */

/* The nth key of a script, from 0. */
static const char *key_of(const belay__call_t *call, int64_t nth, size_t *len) {
  const char *key = belay__call_key(call, len);
  for (; nth > 0; nth--) {
    const char *at = key + *len + strlen("\r\n$");
    *len = 0;
    for (; *at != '\r'; at++)
      *len = 10 * *len + (size_t)(*at - '0');
    key = at + strlen("\r\n");
  }
  return key;
}

/* 0, or the error if a key, by its number from -1 down, holds something else. */
static int read_wrong_key(const belay__call_t *call, const belay__reply_t *reply) {
  static const char text[] = "it holds something else";
  int64_t nth;
  if (!belay__reply_integer(reply, -(int64_t)BELAY_DEDUP_KEYS_MAX - 1, -1, &nth))
    return 0;
  size_t len;
  const char *key = key_of(call, -nth - 1, &len);
  return belay__call_blame_key(call, key, len, BELAY_EWRONGTYPE, text, sizeof text - 1);
}

static int read_count(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  int error = call->script == NULL ? 0 : read_wrong_key(call, reply);
  if (error == 0 && !belay__reply_integer(reply, 0, INT64_MAX, &operation->values[0]))
    error = BELAY_EPROTO;
  return error;
}

static const belay__request_ops_t count_ops = {
    .read = read_count, .notify = belay__request_notify_count, .idempotent = true};
static const belay__request_ops_t once_ops = {.read = read_count,
                                              .notify = belay__request_notify_count};

/* ---- calls --------------------------------------------------------------------------------------------- */

static const char *letter_of(belay_dedup_operator_t how) {
  return how == BELAY_DEDUP_UNION ? "u" : how == BELAY_DEDUP_INTERSECTION ? "i" : "d";
}

static void put_keys(const belay_dedup_t *dedup, belay__call_t *call, const belay_bytes_t *keys,
                     size_t n) {
  for (size_t i = 0; i < n; i++)
    belay__dedup_arg_key(dedup, call, keys[i].data, keys[i].len);
}

static int check(const belay_dedup_t *dedup, const belay_request_t *request, unsigned kinds,
                 const belay_dedup_sets_t *sets, bool has_cb) {
  int error = belay__dedup_check(dedup, request, kinds, has_cb);
  if (error != 0)
    return error;
  belay_t *belay = dedup->handle.client->belay;
  if (sets == NULL)
    return belay__invalid(belay, "sets: NULL");
  bool count = dedup->kind == BELAY_DEDUP_COUNT;
  size_t max = count ? BELAY_DEDUP_KEYS_MAX : 2;
  error = belay__check_range(belay, "how", (int64_t)sets->how, 0,
                             count ? BELAY_DEDUP_UNION : BELAY_DEDUP_DIFFERENCE);
  if (error != 0)
    return error;
  return belay__handle_check_array(&dedup->handle, "key", sets->keys, sets->n, max, 1,
                                   BELAY_DEDUP_KEY_MAX);
}

/* ---- counts -------------------------------------------------------------------------------------------- */

static belay__call_t *new_count(const belay_dedup_t *dedup, belay_dedup_operator_t how,
                                const belay_bytes_t *keys, size_t n) {
  bool count = dedup->kind == BELAY_DEDUP_COUNT;
  belay__call_t *call;
  if (n == 1)
    call = belay__dedup_command(dedup, count ? "PFCOUNT" : "SCARD", 2);
  else if (count)
    call = belay__dedup_script(dedup, &belay__script_dedup_estimate, n, 0);
  else
    call = belay__dedup_script(dedup, &belay__script_dedup_count, n, 1);
  put_keys(dedup, call, keys, n);
  if (n > 1 && !count)
    belay__call_arg(call, letter_of(how), 1);
  return belay__call_stale(call);
}

int belay_dedup_count_of(belay_dedup_t *dedup, belay_request_t *request,
                         const belay_dedup_sets_t *sets, belay_dedup_count_cb cb) {
  int error = check(dedup, request, COMBINABLE, sets, cb != NULL);
  if (error != 0)
    return error;
  belay__call_t *call = new_count(dedup, sets->how, sets->keys, sets->n);
  return belay__handle_start(&dedup->handle, request, call, &count_ops, BELAY__CB(cb));
}

/* ---- store --------------------------------------------------------------------------------------------- */

static belay__call_t *new_merge(const belay_dedup_t *dedup, const belay_bytes_t *keys, size_t n,
                                const char *into, size_t into_len) {
  belay__call_t *call = belay__dedup_script(dedup, &belay__script_dedup_merge, n + 1, 2);
  belay__dedup_arg_key(dedup, call, into, into_len);
  put_keys(dedup, call, keys, n);
  belay__call_arg_int(call, dedup->ttl_ms);
  belay__call_arg_int(call, dedup->extend_ttl);
  return call;
}

/* One set is its union with itself. */
static belay__call_t *new_store(const belay_dedup_t *dedup, belay_dedup_operator_t how,
                                const belay_bytes_t *keys, size_t n, const char *into,
                                size_t into_len) {
  belay__call_t *call = belay__dedup_script(dedup, &belay__script_dedup_store, 3, 2);
  belay__dedup_arg_key(dedup, call, into, into_len);
  put_keys(dedup, call, keys, n);
  if (n == 1)
    put_keys(dedup, call, keys, n);
  belay__call_arg(call, letter_of(n == 1 ? BELAY_DEDUP_UNION : how), 1);
  belay__call_arg_int(call, dedup->ttl_ms);
  return call;
}

/* A difference in place of its second set is another one the second time. */
static bool is_its_own_end(belay_dedup_operator_t how, const belay_bytes_t *keys, size_t n,
                           const char *into, size_t into_len) {
  return how == BELAY_DEDUP_DIFFERENCE && n == 2 && keys[1].len == into_len &&
         memcmp(keys[1].data, into, into_len) == 0;
}

int belay_dedup_store(belay_dedup_t *dedup, belay_request_t *request,
                      const belay_dedup_sets_t *sets, belay_bytes_t into, belay_dedup_count_cb cb) {
  int error = check(dedup, request, COMBINABLE, sets, cb != NULL);
  if (error == 0)
    error = belay__check_bytes(dedup->handle.client->belay, "into", into, 1, BELAY_DEDUP_KEY_MAX);
  if (error != 0)
    return error;
  belay__call_t *call = dedup->kind == BELAY_DEDUP_COUNT
                            ? new_merge(dedup, sets->keys, sets->n, into.data, into.len)
                            : new_store(dedup, sets->how, sets->keys, sets->n, into.data, into.len);
  bool once = is_its_own_end(sets->how, sets->keys, sets->n, into.data, into.len);
  return belay__handle_start(&dedup->handle, request, call, once ? &once_ops : &count_ops,
                             BELAY__CB(cb));
}

/* ---- pages --------------------------------------------------------------------------------------------- */

enum { MEMBERS, NEXT }; /* the values of a page */

/* A cursor is the server's, with the set that is being walked in its lowest bit. */
static int read_page(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  int64_t which;
  uint64_t where;
  int error = read_wrong_key(call, reply);
  if (error != 0)
    return error;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 3 ||
      !belay__reply_integer(reply->items[0], 0, 1, &which) ||
      !belay__reply_number(reply->items[1], 0, INT64_MAX, &where) ||
      reply->items[2]->type != BELAY__REPLY_ARRAY)
    return BELAY_EPROTO;
  operation->values[NEXT] = (int64_t)(where << 1 | (uint64_t)which);
  operation->values[MEMBERS] = (int64_t)reply->items[2]->count;
  return belay__request_keep(operation, reply->items[2]->items, reply->items[2]->count);
}

static void tell_page(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  bool well = answer->status == 0;
  ((belay_dedup_page_cb)cb)(request, answer->status, well ? answer->room : NULL,
                            well ? (size_t)answer->values[MEMBERS] : 0,
                            well ? (uint64_t)answer->values[NEXT] : 0);
}

static const belay__request_ops_t page_ops = {
    .read = read_page, .notify = tell_page, .idempotent = true};

int belay_dedup_page(belay_dedup_t *dedup, belay_request_t *request, const belay_dedup_sets_t *sets,
                     uint64_t cursor, size_t limit, belay_dedup_page_cb cb) {
  int error =
      check(dedup, request, 1U << BELAY_DEDUP_SET | 1U << BELAY_DEDUP_WINDOW, sets, cb != NULL);
  if (error != 0)
    return error;
  bool window = dedup->kind == BELAY_DEDUP_WINDOW;
  belay_t *belay = dedup->handle.client->belay;
  if (window && sets->n != 1)
    return belay__invalid(belay, "keys: of a window, 1");
  if ((cursor & 1) != 0 && (sets->how != BELAY_DEDUP_UNION || sets->n != 2))
    return belay__invalid(belay, "cursor: not of a page of this");
  error = belay__check_range(belay, "limit", limit > BELAY_DEDUP_PAGE_MAX ? -1 : (int64_t)limit, 1,
                             BELAY_DEDUP_PAGE_MAX);
  if (error != 0)
    return error;
  belay__call_t *call = window ? belay__dedup_script(dedup, &belay__script_dedup_window_page, 1, 2)
                               : belay__dedup_script(dedup, &belay__script_dedup_page, sets->n, 4);
  put_keys(dedup, call, sets->keys, sets->n);
  if (!window) {
    belay__call_arg(call, letter_of(sets->how), 1);
    belay__call_arg_int(call, (int64_t)(cursor & 1));
  }
  belay__call_arg_int(call, (int64_t)(cursor >> 1));
  belay__call_arg_int(call, (int64_t)limit);
  return belay__handle_start(&dedup->handle, request, call, &page_ops, BELAY__CB(cb));
}
