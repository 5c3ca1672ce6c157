/* Dedup: operations on items of one set. Many items are sent as several calls of up to PART items,
 * which are sent together. A mark reports whether the item was new, so a second attempt may get
 * another answer. Therefore, after a lost reply, belay sends a mark again in two cases only. With
 * an operation id, the server has stored the first answer and repeats it. For a COUNT, the second
 * answer may be MAYBE instead of NEW, which is weaker but true. */
#include <stdio.h>
#include <string.h>

#include "core/key/key.h"
#include "data/dedup/dedup.h"
#include "scripts.gen.h"

#define PART ((size_t)512) /* items in one call */
#define WITH_MEMBERS (BELAY__DEDUP_IS(SET) | BELAY__DEDUP_IS(WINDOW) | BELAY__DEDUP_IS(BITMAP))

typedef struct op_args op_args_t;

/* An operation on items. */
typedef struct verb {
  unsigned kinds; /* Mask of the kinds that support the operation */
  size_t max;     /* Maximum number of items */
  bool many;      /* true if the room has one verdict per item; false: values[0] is the result */
  bool once;      /* true if it has an operation id */
  const belay__request_ops_t *ops;
  const belay__request_ops_t *count_ops; /* Ops for a COUNT; NULL: the same as ops */
  /* Make the call for n of the items; NULL if memory is out. */
  belay__call_t *(*make)(const op_args_t *args, const belay_bytes_t *items, size_t n);
} verb_t;

struct op_args {
  const verb_t *verb;
  belay_dedup_t *dedup;
  belay_bytes_t key;
  const belay_bytes_t *items;
  size_t n;
  belay_bytes_t op_id;
  int64_t op_ttl_ms; /* Ttl of the stored answer; set by start() */
};

/* true if item is a decimal number from 0 to max without leading zeros. */
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

static int check_items(const op_args_t *args) {
  const belay_dedup_t *dedup = args->dedup;
  uint64_t max = dedup->options.max_offset;
  int error = belay__handle_check_array(&dedup->handle, "item", args->items, args->n,
                                        args->verb->max, 0, BELAY_DEDUP_ITEM_MAX);
  if (dedup->options.kind != BELAY_DEDUP_BITMAP)
    return error;
  for (size_t i = 0; i < args->n && error == 0; i++)
    if (!is_number(&args->items[i], max))
      error = belay__invalid(dedup->handle.client->belay, "item: not a number from 0 to %llu",
                             (unsigned long long)max);
  return error;
}

static int check(const op_args_t *args, const belay_request_t *request, bool has_cb) {
  const belay_dedup_t *dedup = args->dedup;
  int error = belay__dedup_check(dedup, request, args->verb->kinds, has_cb);
  if (error == 0)
    error = belay__handle_check_key(&dedup->handle, request, args->key, has_cb);
  if (error == 0)
    error = check_items(args);
  if (error == 0 && args->verb->once)
    error = belay__check_bytes(dedup->handle.client->belay, "op_id", args->op_id, 1,
                               BELAY_DEDUP_OP_ID_MAX);
  return error;
}

static belay__call_t *make_part(belay__operation_t *operation, size_t i, const void *arg) {
  const op_args_t *args = arg;
  size_t at = i * PART, left = args->n - at;
  (void)operation;
  return args->verb->make(args, args->items + at, left < PART ? left : PART);
}

static int start(op_args_t args, belay_request_t *request, void (*cb)(void)) {
  belay_dedup_t *dedup = args.dedup;
  const verb_t *verb = args.verb;
  belay__operation_t *operation;
  int error = check(&args, request, cb != NULL);
  if (error != 0)
    return error;
  args.op_ttl_ms = belay__request_keep_ms(dedup->handle.client, request, dedup->options.op_ttl_ms);
  bool count = dedup->options.kind == BELAY_DEDUP_COUNT && verb->count_ops != NULL;
  error = belay__handle_begin(&dedup->handle, request, count ? verb->count_ops : verb->ops, cb,
                              &operation);
  if (error != 0)
    return error;
  if (verb->many && belay__request_room(operation, args.n * sizeof(belay_dedup_verdict_t)) == NULL)
    return belay__request_begun(operation, BELAY_ENOMEM);
  size_t parts = (args.n + PART - 1) / PART;
  return belay__request_begun(operation,
                              belay__request_send_each(operation, parts, make_part, &args));
}

/* Return the number of words of one item in a call. With `command`, an item of a bitmap is
 * "SET u1 N 1" or "GET u1 N". Otherwise an item is one word. */
static size_t words_of(const op_args_t *args, const char *command) {
  if (args->dedup->options.kind != BELAY_DEDUP_BITMAP || command == NULL)
    return 1;
  return *command == 'S' ? 4 : 3;
}

static void put_items(const op_args_t *args, const char *command, belay__call_t *call,
                      const belay_bytes_t *items, size_t n) {
  size_t words = words_of(args, command);
  for (size_t i = 0; i < n; i++) {
    if (words > 1) {
      belay__call_arg(call, command, 3);
      belay__call_arg_text(call, "u1");
    }
    belay__call_arg(call, items[i].len == 0 ? "" : items[i].data, items[i].len);
    if (words == 4)
      belay__call_arg_text(call, "1");
  }
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

/* Read the reply to one part of n items: n digits, or an array of n integers, or one integer if n
 * is 1. verdicts: the meanings of the numbers 0, 1 and 2; -1: such a number is not valid. */
static int read_verdicts(belay__operation_t *operation, const belay__call_t *call,
                         const belay__reply_t *reply, const int verdicts[3]) {
  int64_t answer = 0;
  int error = belay__dedup_fault(call, reply);
  if (error != 0)
    return error;
  size_t all = operation->room == NULL ? 1 : operation->room_len / sizeof(belay_dedup_verdict_t);
  size_t at = operation->index * PART;
  size_t n = all - at < PART ? all - at : PART;
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

static void notify(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  belay_dedup_verdict_t verdict =
      answer->status == 0 ? (belay_dedup_verdict_t)answer->values[0] : BELAY_DEDUP_MAYBE;
  ((belay_dedup_cb)cb)(request, answer->status, verdict);
}

static void notify_many(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  bool good = answer->status == 0;
  ((belay_dedup_many_cb)cb)(request, answer->status, good ? answer->room : NULL,
                            good ? answer->room_len / sizeof(belay_dedup_verdict_t) : 0);
}

static int read_mark(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  static const int verdicts[][3] = {
      [BELAY_DEDUP_SET] = {BELAY_DEDUP_SEEN, BELAY_DEDUP_NEW, -1},
      [BELAY_DEDUP_COUNT] = {BELAY_DEDUP_MAYBE, BELAY_DEDUP_NEW, -1},
      [BELAY_DEDUP_WINDOW] = {BELAY_DEDUP_SEEN, BELAY_DEDUP_NEW, BELAY_DEDUP_FULL},
      [BELAY_DEDUP_BITMAP] = {BELAY_DEDUP_SEEN, BELAY_DEDUP_NEW, -1}};
  static const int old_bits[] = {BELAY_DEDUP_NEW, BELAY_DEDUP_SEEN, -1};
  belay_dedup_kind_t kind = ((const belay_dedup_t *)operation->context)->options.kind;
  bool old =
      reply->type == BELAY__REPLY_ARRAY && kind != BELAY_DEDUP_COUNT && kind != BELAY_DEDUP_WINDOW;
  return read_verdicts(operation, call, reply, old ? old_bits : verdicts[kind]);
}

static const belay__request_ops_t mark_ops = {.read = read_mark, .notify = notify};
static const belay__request_ops_t many_ops = {.read = read_mark, .notify = notify_many};

/* For marks that may be sent again, because the second answer is equal, or weaker and still
 * true. */
static const belay__request_ops_t mark_again_ops = {
    .read = read_mark, .notify = notify, .idempotent = true};
static const belay__request_ops_t many_again_ops = {
    .read = read_mark, .notify = notify_many, .idempotent = true};

/* Return a hash of the items and their lengths (FNV-1a). */
static uint64_t hash_of(const belay_bytes_t *items, size_t n) {
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

/* Add the key of the answer that is stored under the operation id. */
static void put_answer_key(const op_args_t *args, belay__call_t *call) {
  char tail[3 * BELAY_DEDUP_KEY_MAX + 16] = "}::";
  size_t n = 3 + belay__key_escape(tail + 3, args->key.data, args->key.len);
  memcpy(tail + n, "::op::", sizeof "::op::");
  belay__handle_arg_id(&args->dedup->handle, call, (belay_bytes_t){0}, tail, args->op_id);
}

/* Add the words between the key of the set and the items in a call of a mark script: with an
 * operation id the key of the stored answer, then the options. */
static void put_options(const op_args_t *args, belay__call_t *call, const belay_bytes_t *items,
                        size_t n) {
  static const char *const letters[] = {
      [BELAY_DEDUP_SET] = "s", [BELAY_DEDUP_COUNT] = "c", [BELAY_DEDUP_BITMAP] = "b"};
  const belay_dedup_options_t *o = &args->dedup->options;
  char hash[17] = "";
  if (args->verb->once) {
    put_answer_key(args, call);
    (void)snprintf(hash, sizeof hash, "%016llx", (unsigned long long)hash_of(items, n));
  }
  if (o->kind == BELAY_DEDUP_WINDOW) {
    belay__call_arg_int(call, o->window_ms);
    belay__call_arg_int(call, o->extend_ttl);
    belay__call_arg_int(call, o->max_items);
    belay__call_arg_int(call, o->evict);
  } else {
    belay__call_arg_text(call, letters[o->kind]);
    belay__call_arg_int(call, o->ttl_ms);
    belay__call_arg_int(call, o->extend_ttl);
  }
  belay__call_arg_int(call, args->op_ttl_ms);
  belay__call_arg_text(call, hash);
}

/* Make the call that marks n items. With a ttl or an operation id, this is a script. Otherwise it
 * is a command for one item of a SET or a COUNT, or for any items of a BITMAP. All other marks are
 * scripts, too. */
static belay__call_t *make_mark(const op_args_t *args, const belay_bytes_t *items, size_t n) {
  static const char *const commands[] = {
      [BELAY_DEDUP_SET] = "SADD", [BELAY_DEDUP_COUNT] = "PFADD", [BELAY_DEDUP_BITMAP] = "BITFIELD"};
  const belay__handle_t *handle = &args->dedup->handle;
  const belay_dedup_options_t *o = &args->dedup->options;
  bool window = o->kind == BELAY_DEDUP_WINDOW, once = args->verb->once;
  bool plain =
      !window && o->ttl_ms == 0 && !once && (args->n == 1 || o->kind == BELAY_DEDUP_BITMAP);
  size_t words = n * words_of(args, "SET");
  const belay__script_t *script =
      window ? &belay__script_dedup_window_mark : &belay__script_dedup_mark;
  belay__call_t *call =
      plain ? belay__handle_command(handle, commands[o->kind], 2 + words)
            : belay__handle_script(handle, script, once ? 2 : 1, (window ? 6 : 5) + words);
  belay__dedup_arg_key(args->dedup, call, args->key);
  if (!plain)
    put_options(args, call, items, n);
  put_items(args, "SET", call, items, n);
  return call;
}

int belay_dedup_mark(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                     belay_bytes_t item, belay_dedup_cb cb) {
  static const verb_t mark = {.kinds = BELAY__DEDUP_ALL,
                              .max = 1,
                              .ops = &mark_ops,
                              .count_ops = &mark_again_ops,
                              .make = make_mark};
  return start((op_args_t){&mark, dedup, key, &item, .n = 1}, request, BELAY__CB(cb));
}

int belay_dedup_mark_many(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                          const belay_bytes_t *items, size_t n, belay_dedup_many_cb cb) {
  static const verb_t mark_many = {.kinds = BELAY__DEDUP_ALL,
                                   .max = BELAY_DEDUP_ITEMS_MAX,
                                   .many = true,
                                   .ops = &many_ops,
                                   .count_ops = &many_again_ops,
                                   .make = make_mark};
  return start((op_args_t){&mark_many, dedup, key, items, .n = n}, request, BELAY__CB(cb));
}

int belay_dedup_mark_once(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                          const belay_dedup_once_t *once, belay_dedup_many_cb cb) {
  static const verb_t mark_once = {.kinds = BELAY__DEDUP_ALL,
                                   .max = BELAY_DEDUP_ONCE_MAX,
                                   .many = true,
                                   .once = true,
                                   .ops = &many_again_ops,
                                   .make = make_mark};
  if (once == NULL) {
    int error = belay__dedup_check(dedup, request, BELAY__DEDUP_ALL, cb != NULL);
    return error != 0 ? error : belay__invalid(dedup->handle.client->belay, "once: NULL");
  }
  return start((op_args_t){&mark_once, dedup, key, once->items, once->n, .op_id = once->op_id},
               request, BELAY__CB(cb));
}

static int read_seen(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  static const int verdicts[] = {BELAY_DEDUP_NEW, BELAY_DEDUP_SEEN, -1};
  return read_verdicts(operation, call, reply, verdicts);
}

static const belay__request_ops_t seen_ops = {
    .read = read_seen, .notify = notify, .idempotent = true};
static const belay__request_ops_t seen_many_ops = {
    .read = read_seen, .notify = notify_many, .idempotent = true};

static belay__call_t *make_seen(const op_args_t *args, const belay_bytes_t *items, size_t n) {
  const belay__handle_t *handle = &args->dedup->handle;
  belay_dedup_kind_t kind = args->dedup->options.kind;
  belay__call_t *call;
  if (kind == BELAY_DEDUP_BITMAP)
    call = belay__handle_command(handle, "BITFIELD_RO", 2 + n * words_of(args, "GET"));
  else if (kind == BELAY_DEDUP_SET && args->n == 1)
    call = belay__handle_command(handle, "SISMEMBER", 3);
  else
    call = belay__handle_script(handle,
                                kind == BELAY_DEDUP_WINDOW ? &belay__script_dedup_window_seen
                                                           : &belay__script_dedup_seen,
                                1, n);
  belay__dedup_arg_key(args->dedup, call, args->key);
  put_items(args, "GET", call, items, n);
  return belay__call_stale(call);
}

int belay_dedup_seen(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                     belay_bytes_t item, belay_dedup_cb cb) {
  static const verb_t seen = {.kinds = WITH_MEMBERS, .max = 1, .ops = &seen_ops, .make = make_seen};
  return start((op_args_t){&seen, dedup, key, &item, .n = 1}, request, BELAY__CB(cb));
}

int belay_dedup_seen_many(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                          const belay_bytes_t *items, size_t n, belay_dedup_many_cb cb) {
  static const verb_t seen_many = {.kinds = WITH_MEMBERS,
                                   .max = BELAY_DEDUP_ITEMS_MAX,
                                   .many = true,
                                   .ops = &seen_many_ops,
                                   .make = make_seen};
  return start((op_args_t){&seen_many, dedup, key, items, .n = n}, request, BELAY__CB(cb));
}

static int read_forgotten(belay__operation_t *operation, const belay__call_t *call,
                          const belay__reply_t *reply) {
  int64_t n;
  int error = belay__dedup_fault(call, reply);
  if (error != 0)
    return error;
  if (!belay__reply_integer(reply, 0, PART, &n))
    return BELAY_EPROTO;
  operation->values[0] += n;
  return 0;
}

static const belay__request_ops_t forget_ops = {.read = read_forgotten,
                                                .notify = belay__request_notify_count};

static belay__call_t *make_forget(const op_args_t *args, const belay_bytes_t *items, size_t n) {
  const belay__handle_t *handle = &args->dedup->handle;
  belay_dedup_kind_t kind = args->dedup->options.kind;
  belay__call_t *call =
      kind == BELAY_DEDUP_SET
          ? belay__handle_command(handle, "SREM", 2 + n)
          : belay__handle_script(handle,
                                 kind == BELAY_DEDUP_BITMAP ? &belay__script_dedup_bitmap_forget
                                                            : &belay__script_dedup_window_forget,
                                 1, n);
  belay__dedup_arg_key(args->dedup, call, args->key);
  put_items(args, NULL, call, items, n);
  return call;
}

int belay_dedup_forget(belay_dedup_t *dedup, belay_request_t *request, belay_bytes_t key,
                       const belay_bytes_t *items, size_t n, belay_dedup_count_cb cb) {
  static const verb_t forget = {
      .kinds = WITH_MEMBERS, .max = BELAY_DEDUP_ITEMS_MAX, .ops = &forget_ops, .make = make_forget};
  return start((op_args_t){&forget, dedup, key, items, .n = n}, request, BELAY__CB(cb));
}
