/* Dedup: unions, intersections and differences of the sets of one handle. If a key has another
 * type, the scripts reply the number of that key, so that the detail of the error names it. */
#include <string.h>

#include "data/dedup/dedup.h"
#include "scripts.gen.h"

#define COMBINABLE (BELAY__DEDUP_IS(SET) | BELAY__DEDUP_IS(COUNT))

/* Find the nth key, from 0, in the encoded call of a script. */
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

/* Return BELAY_EWRONGTYPE if the reply is -N, which means that the Nth key, from 1, has another
 * type. Otherwise return 0. */
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

static const char *letter_of(belay_dedup_operator_t how) {
  return how == BELAY_DEDUP_UNION ? "u" : how == BELAY_DEDUP_INTERSECTION ? "i" : "d";
}

static void put_keys(const belay_dedup_t *dedup, belay__call_t *call,
                     const belay_dedup_sets_t *sets) {
  for (size_t i = 0; i < sets->n; i++)
    belay__dedup_arg_key(dedup, call, sets->keys[i]);
}

static int check(const belay_dedup_t *dedup, const belay_request_t *request, unsigned kinds,
                 const belay_dedup_sets_t *sets, bool has_cb) {
  int error = belay__dedup_check(dedup, request, kinds, has_cb);
  if (error != 0)
    return error;
  belay_t *belay = dedup->handle.client->belay;
  if (sets == NULL)
    return belay__invalid(belay, "sets: NULL");
  bool count = dedup->options.kind == BELAY_DEDUP_COUNT;
  error = belay__check_range(belay, "how", (int64_t)sets->how, 0,
                             count ? BELAY_DEDUP_UNION : BELAY_DEDUP_DIFFERENCE);
  if (error != 0)
    return error;
  return belay__handle_check_array(&dedup->handle, "key", sets->keys, sets->n,
                                   count ? BELAY_DEDUP_KEYS_MAX : 2, 1, BELAY_DEDUP_KEY_MAX);
}

int belay_dedup_count_of(belay_dedup_t *dedup, belay_request_t *request,
                         const belay_dedup_sets_t *sets, belay_dedup_count_cb cb) {
  int error = check(dedup, request, COMBINABLE, sets, cb != NULL);
  if (error != 0)
    return error;
  bool count = dedup->options.kind == BELAY_DEDUP_COUNT;
  belay__call_t *call;
  if (sets->n == 1)
    call = belay__handle_command(&dedup->handle, count ? "PFCOUNT" : "SCARD", 2);
  else if (count)
    call = belay__handle_script(&dedup->handle, &belay__script_dedup_estimate, sets->n, 0);
  else
    call = belay__handle_script(&dedup->handle, &belay__script_dedup_count, sets->n, 1);
  put_keys(dedup, call, sets);
  if (sets->n > 1 && !count)
    belay__call_arg(call, letter_of(sets->how), 1);
  return belay__handle_start(&dedup->handle, request, belay__call_stale(call), &count_ops,
                             BELAY__CB(cb));
}

static belay__call_t *make_store(const belay_dedup_t *dedup, const belay_dedup_sets_t *sets,
                                 belay_bytes_t into) {
  const belay__handle_t *handle = &dedup->handle;
  bool count = dedup->options.kind == BELAY_DEDUP_COUNT;
  belay__call_t *call =
      count ? belay__handle_script(handle, &belay__script_dedup_merge, sets->n + 1, 2)
            : belay__handle_script(handle, &belay__script_dedup_store, 3, 2);
  belay__dedup_arg_key(dedup, call, into);
  put_keys(dedup, call, sets);
  if (!count && sets->n == 1) /* one set is its union with itself */
    put_keys(dedup, call, sets);
  if (!count)
    belay__call_arg(call, letter_of(sets->n == 1 ? BELAY_DEDUP_UNION : sets->how), 1);
  belay__call_arg_int(call, dedup->options.ttl_ms);
  if (count)
    belay__call_arg_int(call, dedup->options.extend_ttl);
  return call;
}

/* true if a second run of the store has another result: a difference that replaces its second
 * set. */
static bool replaces_operand(const belay_dedup_sets_t *sets, belay_bytes_t into) {
  return sets->how == BELAY_DEDUP_DIFFERENCE && sets->n == 2 && sets->keys[1].len == into.len &&
         memcmp(sets->keys[1].data, into.data, into.len) == 0;
}

int belay_dedup_store(belay_dedup_t *dedup, belay_request_t *request,
                      const belay_dedup_sets_t *sets, belay_bytes_t into, belay_dedup_count_cb cb) {
  int error = check(dedup, request, COMBINABLE, sets, cb != NULL);
  if (error == 0)
    error = belay__check_bytes(dedup->handle.client->belay, "into", into, 1, BELAY_DEDUP_KEY_MAX);
  if (error != 0)
    return error;
  return belay__handle_start(&dedup->handle, request, make_store(dedup, sets, into),
                             replaces_operand(sets, into) ? &once_ops : &count_ops, BELAY__CB(cb));
}

enum { MEMBERS, NEXT }; /* the values of a page */

/* Read a page of members and the cursor of the next page. The cursor is the server's cursor times
 * 2, plus the index (0 or 1) of the set that the next page scans. */
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

static void notify_page(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  bool good = answer->status == 0;
  ((belay_dedup_page_cb)cb)(request, answer->status, good ? answer->room : NULL,
                            good ? (size_t)answer->values[MEMBERS] : 0,
                            good ? (uint64_t)answer->values[NEXT] : 0);
}

static const belay__request_ops_t page_ops = {
    .read = read_page, .notify = notify_page, .idempotent = true};

int belay_dedup_page(belay_dedup_t *dedup, belay_request_t *request, const belay_dedup_sets_t *sets,
                     uint64_t cursor, size_t limit, belay_dedup_page_cb cb) {
  unsigned kinds = BELAY__DEDUP_IS(SET) | BELAY__DEDUP_IS(WINDOW);
  int error = check(dedup, request, kinds, sets, cb != NULL);
  if (error != 0)
    return error;
  bool window = dedup->options.kind == BELAY_DEDUP_WINDOW;
  belay_t *belay = dedup->handle.client->belay;
  if (window && sets->n != 1)
    return belay__invalid(belay, "keys: of a window, 1");
  if ((cursor & 1) != 0 && (sets->how != BELAY_DEDUP_UNION || sets->n != 2))
    return belay__invalid(belay, "cursor: not of a page of these sets");
  error = belay__check_range(belay, "limit", limit > BELAY_DEDUP_PAGE_MAX ? -1 : (int64_t)limit, 1,
                             BELAY_DEDUP_PAGE_MAX);
  if (error != 0)
    return error;
  belay__call_t *call = belay__handle_script(
      &dedup->handle, window ? &belay__script_dedup_window_page : &belay__script_dedup_page,
      sets->n, window ? 2 : 4);
  put_keys(dedup, call, sets);
  if (!window) {
    belay__call_arg(call, letter_of(sets->how), 1);
    belay__call_arg_int(call, (int64_t)(cursor & 1));
  }
  belay__call_arg_int(call, (int64_t)(cursor >> 1));
  belay__call_arg_int(call, (int64_t)limit);
  return belay__handle_start(&dedup->handle, request, call, &page_ops, BELAY__CB(cb));
}
