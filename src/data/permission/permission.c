/* Permissions: BITFIELD on one string. A field is unsigned and its highest bit comes first, so that bit b of field i is
 * bit i * w + (w - 1 - b) of the string; bits of a field that lie together are set at once.
 *
 *   width 4, index 2     bit  8  9 10 11
 *                         b   3  2  1  0     grant 0b0110: SET u2 9 3, GET u4 8
 *
 * A number that passes through a script is a double there, so what is wider than 32 bits goes there in two pieces. */
#include "data/permission/permission.h"

#include <stdio.h>
#include <string.h>

#include "scripts.gen.h"

#define NATIVE_BITS 63                  /* of a piece, in a command */
#define SCRIPT_BITS 32                  /* and in a script */
#define TTL_MAX_MS INT64_C(31536000000) /* a year */

/* ---- the handle ---------------------------------------------------------------------------------------- */

static const belay_permission_options_t defaults = {.max_index = 1048575};

static const belay__range_t ranges[] = {
    BELAY__RANGE_OR(belay_permission_options_t, width, 0, 1, BELAY_PERMISSION_WIDTH_MAX),
    BELAY__RANGE_OR(belay_permission_options_t, ttl_ms, 0, 1000, TTL_MAX_MS),
    {.name = NULL},
};

static int on_init(belay__handle_t *handle, void *options) {
  belay_permission_t *permission = (belay_permission_t *)handle;
  belay_permission_options_t *o = options;
  int error = belay__permission_check_options(handle->client->belay, o);
  if (error != 0)
    return error;
  permission->width = o->width;
  permission->max_index = o->max_index;
  permission->ttl_ms = o->ttl_ms;
  (void)snprintf(permission->tail, sizeof permission->tail, "}::u%u", o->width);
  return belay__permission_copy_names(handle->client->belay, o, &permission->names) ? 0
                                                                                    : BELAY_ENOMEM;
}

static void on_deinit(belay__handle_t *handle) {
  belay__permission_free_names(handle->client->belay, ((belay_permission_t *)handle)->names);
}

const belay__handle_type_t belay__permission_type = {
    .family = "permission",
    BELAY__HANDLE_LAYOUT(permission),
    .defaults = &defaults,
    .ranges = ranges,
    .init = on_init,
    .deinit = on_deinit,
};

BELAY__HANDLE_FUNCTIONS(permission)

/* ---- pieces -------------------------------------------------------------------------------------------- */

/* Writes what a BITFIELD is given; or counts its words, while there is no call. */
typedef struct writer {
  belay__call_t *call;
  size_t words;
  unsigned piece; /* bits of one, at most */
} writer_t;

static void put_word(writer_t *writer, const char *text) {
  writer->words++;
  belay__call_arg_text(writer->call, text);
}

static void put_number(writer_t *writer, uint64_t n) {
  writer->words++;
  belay__call_arg_int(writer->call, (int64_t)n);
}

static void put_place(writer_t *writer, uint64_t offset, unsigned width) {
  char type[16];
  (void)snprintf(type, sizeof type, "u%u", width);
  put_word(writer, type);
  put_number(writer, offset);
}

/* The number of bits of `width` that are not in the first piece. */
static unsigned rest_of(unsigned width, unsigned piece) {
  return width > piece ? piece : 0;
}

static uint64_t mask_of(unsigned width) {
  return (UINT64_C(1) << width) - 1; /* at most 63 */
}

static void put_get(writer_t *writer, uint64_t offset, unsigned width) {
  unsigned rest = rest_of(width, writer->piece);
  put_word(writer, "GET");
  put_place(writer, offset, width - rest);
  if (rest > 0)
    put_get(writer, offset + width - rest, rest);
}

static void put_set(writer_t *writer, uint64_t offset, unsigned width, uint64_t value) {
  unsigned rest = rest_of(width, writer->piece);
  put_word(writer, "SET");
  put_place(writer, offset, width - rest);
  put_number(writer, value >> rest);
  if (rest > 0)
    put_set(writer, offset + width - rest, rest, value & mask_of(rest));
}

/* Reads the numbers of a reply, one after the other. */
typedef struct reader {
  const belay__reply_t *reply;
  size_t at;
  unsigned piece;
} reader_t;

/* Reads the reply to put_get() or put_set(); false if it is invalid. */
static bool take_number(reader_t *reader, unsigned width, uint64_t *out) {
  unsigned rest = rest_of(width, reader->piece);
  int64_t n;
  uint64_t low = 0;
  if (reader->at == reader->reply->count ||
      !belay__reply_integer(reader->reply->items[reader->at], 0, (int64_t)mask_of(width - rest),
                            &n))
    return false;
  reader->at++;
  if (rest > 0 && !take_number(reader, rest, &low))
    return false;
  *out = (uint64_t)n << rest | low;
  return true;
}

/* The highest bits of mask that lie together: how many, 0 if there are none; *low is the number of the lowest. */
static unsigned run_of(uint64_t mask, unsigned *low) {
  unsigned high = BELAY_PERMISSION_WIDTH_MAX, bits = 0;
  if (mask == 0)
    return 0;
  while ((mask >> high & 1) == 0)
    high--;
  while (bits <= high && (mask >> (high - bits) & 1) != 0)
    bits++;
  *low = high + 1 - bits;
  return bits;
}

/* ---- what is asked, and what comes of it --------------------------------------------------------------- */

typedef enum what { GET, HAS, SET, GRANT, REVOKE } what_t;

/* A request's room: the results hold the arguments until the reply is read. */
typedef struct room {
  size_t n;
  what_t what;
  belay_permission_result_t results[];
} room_t;

/* All of a field: in value is what it was given. */
static void put_field(writer_t *writer, what_t what, unsigned width,
                      const belay_permission_result_t *field) {
  uint64_t offset = field->index * width, mask = field->value;
  unsigned low, bits;
  if (what == SET) {
    put_set(writer, offset, width, field->value);
    return;
  }
  for (; (what == GRANT || what == REVOKE) && (bits = run_of(mask, &low)) > 0;
       mask &= mask_of(low)) {
    uint64_t ones = mask_of(bits);
    put_set(writer, offset + width - low - bits, bits, what == GRANT ? ones : 0);
  }
  put_get(writer, offset, width);
}

static bool take_field(reader_t *reader, what_t what, unsigned width,
                       belay_permission_result_t *field) {
  uint64_t given = field->value, old = 0, n;
  unsigned low, bits;
  if (what == SET) {
    if (!take_number(reader, width, &field->before))
      return false;
    field->answer = field->before != given;
    return true;
  }
  uint64_t changing = what == GRANT || what == REVOKE ? given : 0;
  for (uint64_t mask = changing; (bits = run_of(mask, &low)) > 0; mask &= mask_of(low)) {
    if (!take_number(reader, bits, &n))
      return false;
    old |= n << low;
  }
  if (!take_number(reader, width, &field->value))
    return false;
  field->before = (field->value & ~changing) | old;
  field->answer = what == GET   ? field->value != 0
                  : what == HAS ? (field->value & given) == given
                                : field->value != field->before;
  return true;
}

static bool is_script(const belay_permission_t *permission, what_t what) {
  return permission->ttl_ms != 0 && what != GET && what != HAS;
}

static int read_fields(belay__operation_t *operation, const belay__call_t *call,
                       const belay__reply_t *reply) {
  const belay_permission_t *permission = operation->context;
  room_t *room = operation->room;
  reader_t reader = {.reply = reply, .piece = call->script != NULL ? SCRIPT_BITS : NATIVE_BITS};
  if (reply->type != BELAY__REPLY_ARRAY)
    return BELAY_EPROTO;
  for (size_t i = 0; i < room->n; i++)
    if (!take_field(&reader, room->what, permission->width, &room->results[i]))
      return BELAY_EPROTO;
  return reader.at == reply->count ? 0 : BELAY_EPROTO;
}

/* The reply: 1 or 0, and the pieces of the old value. */
static int read_swapped(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply) {
  (void)call;
  const belay_permission_t *permission = operation->context;
  belay_permission_result_t *field = ((room_t *)operation->room)->results;
  reader_t reader = {.reply = reply, .at = 1, .piece = SCRIPT_BITS};
  int64_t swapped;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count < 1 ||
      !belay__reply_integer(reply->items[0], 0, 1, &swapped) ||
      !take_number(&reader, permission->width, &field->before) || reader.at != reply->count)
    return BELAY_EPROTO;
  field->answer = swapped != 0;
  if (!field->answer)
    field->value = field->before;
  return 0;
}

static int read_cleared(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply) {
  (void)operation, (void)call;
  int64_t keys;
  return belay__reply_integer(reply, 0, 2, &keys) ? 0 : BELAY_EPROTO;
}

static void tell(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  const room_t *room = answer->status == 0 ? answer->room : NULL;
  ((belay_permission_cb)cb)(request, answer->status, room != NULL ? room->results : NULL,
                            room != NULL ? room->n : 0);
}

static const belay__request_ops_t ask_ops = {
    .read = read_fields, .notify = tell, .idempotent = true};
static const belay__request_ops_t change_ops = {.read = read_fields, .notify = tell};
static const belay__request_ops_t swap_ops = {.read = read_swapped, .notify = tell};
static const belay__request_ops_t clear_ops = {
    .read = read_cleared, .notify = tell, .idempotent = true};

/* ---- operations ---------------------------------------------------------------------------------------- */

static int check(const belay_permission_t *permission, const belay_request_t *request,
                 belay_bytes_t key, const void *fields, size_t n, size_t max, bool has_cb) {
  int error = belay__handle_check_key((const belay__handle_t *)permission, request, key, has_cb);
  return error != 0 ? error
                    : belay__check_count(permission->handle.client->belay, "field", fields, n, max);
}

static int check_field(const belay_permission_t *permission, uint64_t index, uint64_t value) {
  belay_t *belay = permission->handle.client->belay;
  if (index > permission->max_index)
    return belay__invalid(belay, "index: not from 0 to %llu",
                          (unsigned long long)permission->max_index);
  if (value > mask_of(permission->width))
    return belay__invalid(belay, "value: not of %u bits", permission->width);
  return 0;
}

static belay__call_t *new_call(const belay_permission_t *permission, const char *key,
                               size_t key_len, const room_t *room) {
  bool script = is_script(permission, room->what), asks = room->what <= HAS;
  writer_t writer = {.piece = script ? SCRIPT_BITS : NATIVE_BITS};
  for (size_t i = 0; i < room->n; i++)
    put_field(&writer, room->what, permission->width, &room->results[i]);
  belay__call_t *call =
      script ? belay__handle_script(&permission->handle, &belay__script_permission_write, 1,
                                    1 + writer.words)
             : belay__handle_command(&permission->handle, asks ? "BITFIELD_RO" : "BITFIELD",
                                     2 + writer.words);
  belay__handle_arg(&permission->handle, call, key, key_len, permission->tail);
  if (script)
    belay__call_arg_int(call, permission->ttl_ms);
  writer.call = call;
  for (size_t i = 0; i < room->n; i++)
    put_field(&writer, room->what, permission->width, &room->results[i]);
  return call;
}

/* Of what was checked: begins it, with room for n results. */
static int begin(belay_permission_t *permission, belay_request_t *request,
                 const belay__request_ops_t *ops, what_t what, size_t n, belay_permission_cb cb,
                 belay__operation_t **out) {
  const size_t size = sizeof(room_t) + n * sizeof(belay_permission_result_t);
  int error = belay__handle_begin_room(&permission->handle, request, ops, BELAY__CB(cb), size, out);
  if (error == 0)
    *(room_t *)(*out)->room = (room_t){.n = n, .what = what};
  return error;
}

/* Either indices or fields. */
static int start(belay_permission_t *permission, belay_request_t *request, const char *key,
                 size_t key_len, what_t what, const uint64_t *indices,
                 const belay_permission_field_t *fields, size_t n, belay_permission_cb cb) {
  belay__operation_t *operation;
  bool many = what <= SET;
  const void *given = what == GET ? (const void *)indices : (const void *)fields;
  int error = check(permission, request, belay_bytes(key, key_len), given, n,
                    many ? BELAY_PERMISSION_FIELDS_MAX : BELAY_PERMISSION_GRANTS_MAX, cb != NULL);
  for (size_t i = 0; i < n && error == 0; i++)
    error = what == GET ? check_field(permission, indices[i], 0)
                        : check_field(permission, fields[i].index, fields[i].value);
  if (error == 0)
    error =
        begin(permission, request, what <= HAS ? &ask_ops : &change_ops, what, n, cb, &operation);
  if (error != 0)
    return error;
  room_t *room = operation->room;
  for (size_t i = 0; i < n; i++) {
    room->results[i].index = what == GET ? indices[i] : fields[i].index;
    room->results[i].value = what == GET ? 0 : fields[i].value;
  }
  return belay__request_begun(
      operation, belay__request_send(operation, new_call(permission, key, key_len, room)));
}

int belay_permission_get(belay_permission_t *permission, belay_request_t *request,
                         belay_bytes_t key, const uint64_t *indices, size_t n,
                         belay_permission_cb cb) {
  return start(permission, request, key.data, key.len, GET, indices, NULL, n, cb);
}

int belay_permission_has(belay_permission_t *permission, belay_request_t *request,
                         belay_bytes_t key, const belay_permission_field_t *fields, size_t n,
                         belay_permission_cb cb) {
  return start(permission, request, key.data, key.len, HAS, NULL, fields, n, cb);
}

int belay_permission_set(belay_permission_t *permission, belay_request_t *request,
                         belay_bytes_t key, const belay_permission_field_t *fields, size_t n,
                         belay_permission_cb cb) {
  return start(permission, request, key.data, key.len, SET, NULL, fields, n, cb);
}

int belay_permission_grant(belay_permission_t *permission, belay_request_t *request,
                           belay_bytes_t key, const belay_permission_field_t *fields, size_t n,
                           belay_permission_cb cb) {
  return start(permission, request, key.data, key.len, GRANT, NULL, fields, n, cb);
}

int belay_permission_revoke(belay_permission_t *permission, belay_request_t *request,
                            belay_bytes_t key, const belay_permission_field_t *fields, size_t n,
                            belay_permission_cb cb) {
  return start(permission, request, key.data, key.len, REVOKE, NULL, fields, n, cb);
}

static belay__call_t *new_swap(const belay_permission_t *permission, const char *key,
                               size_t key_len, uint64_t index, uint64_t expected, uint64_t value) {
  unsigned width = permission->width, rest = rest_of(width, SCRIPT_BITS);
  uint64_t offset = index * width;
  belay__call_t *call = belay__handle_script(&permission->handle, &belay__script_permission_swap, 1,
                                             rest > 0 ? 9 : 5);
  writer_t writer = {.call = call};
  belay__handle_arg(&permission->handle, call, key, key_len, permission->tail);
  belay__call_arg_int(call, permission->ttl_ms);
  put_place(&writer, offset, width - rest);
  put_number(&writer, expected >> rest);
  put_number(&writer, value >> rest);
  if (rest == 0)
    return call;
  put_place(&writer, offset + width - rest, rest);
  put_number(&writer, expected & mask_of(rest));
  put_number(&writer, value & mask_of(rest));
  return call;
}

int belay_permission_compare_and_set(belay_permission_t *permission, belay_request_t *request,
                                     belay_bytes_t key, const belay_permission_swap_t *swap,
                                     belay_permission_cb cb) {
  belay__operation_t *operation;
  int error =
      belay__handle_check_key((const belay__handle_t *)permission, request, key, cb != NULL);
  if (error == 0 && swap == NULL)
    return belay__invalid(permission->handle.client->belay, "swap: NULL");
  if (error == 0)
    error = check_field(permission, swap->index, swap->value);
  if (error == 0)
    error = check_field(permission, swap->index, swap->expected);
  if (error == 0)
    error = begin(permission, request, &swap_ops, SET, 1, cb, &operation);
  if (error != 0)
    return error;
  room_t *room = operation->room;
  room->results[0] = (belay_permission_result_t){.index = swap->index, .value = swap->value};
  return belay__request_begun(
      operation, belay__request_send(operation, new_swap(permission, key.data, key.len, swap->index,
                                                         swap->expected, swap->value)));
}

int belay_permission_clear(belay_permission_t *permission, belay_request_t *request,
                           belay_bytes_t key, belay_permission_cb cb) {
  int error =
      belay__handle_check_key((const belay__handle_t *)permission, request, key, cb != NULL);
  if (error != 0)
    return error;
  belay__call_t *call = belay__handle_command(&permission->handle, "UNLINK", 3);
  belay__handle_arg(&permission->handle, call, key.data, key.len, permission->tail);
  belay__handle_arg(&permission->handle, call, key.data, key.len, "}::config");
  return belay__handle_start(&permission->handle, request, call, &clear_ops, BELAY__CB(cb));
}
