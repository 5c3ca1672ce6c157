/* Permissions: BITFIELD on one string. A field is unsigned, its highest bit first: with the width
 * w, bit b of field i is bit i * w + (w - 1 - b) of the string. A grant or revoke changes each run
 * of adjacent bits with one SET.
 *
 *   width 4, index 2     bit  8  9 10 11
 *                         b   3  2  1  0     grant 0b0110: SET u2 9 3, GET u4 8
 *
 * A script handles numbers as doubles, so a field of more than 32 bits is sent to it in two
 * pieces. */
#include <stdio.h>
#include <string.h>

#include "belay/permission.h"
#include "core/client/handle.h"
#include "scripts.gen.h"

#define NATIVE_BITS 63                  /* maximum bits of a piece in a command */
#define SCRIPT_BITS 32                  /* maximum bits of a piece in a script */
#define TTL_MAX_MS INT64_C(31536000000) /* one year */
#define NAME_MAX_LEN ((size_t)128)

/* The names of values, followed by their texts. */
typedef struct names {
  size_t size; /* Bytes of this struct and the texts */
  size_t count;
  const char *text[];
} names_t;

struct belay_permission {
  belay__handle_t handle; /* first */
  belay_permission_options_t options;
  names_t *names; /* NULL: there are none */
  char tail[16];  /* End of the keys, such as "}::u5" */
};

static const belay_permission_options_t defaults = {.max_index = 1048575};

static const belay__range_t ranges[] = {
    BELAY__RANGE_OR(belay_permission_options_t, width, 0, 1, BELAY_PERMISSION_WIDTH_MAX),
    BELAY__RANGE_OR(belay_permission_options_t, ttl_ms, 0, 1000, TTL_MAX_MS),
    {.name = NULL},
};

unsigned belay_permission_width(uint64_t levels) {
  if (levels == 0 || levels > UINT64_C(1) << BELAY_PERMISSION_WIDTH_MAX)
    return 0;
  unsigned width = 1;
  while (UINT64_C(1) << width < levels)
    width++;
  return width;
}

const char *belay_permission_name(const belay_permission_t *permission, uint64_t value) {
  const names_t *names = permission == NULL ? NULL : permission->names;
  const char *text = names != NULL && value < names->count ? names->text[value] : NULL;
  return text != NULL ? text : "unknown";
}

/* Check that the levels fit into the width, and the names into the levels. Replace a width of 0 by
 * the smallest one for the levels, or for the names if levels is 0. */
static int check_width(belay_t *belay, belay_permission_options_t *o) {
  uint64_t levels = o->levels;
  if (levels == 0)
    levels = o->width != 0 ? UINT64_C(1) << o->width : o->names_len;
  if (levels == 0)
    return belay__invalid(belay, "width: neither it nor levels nor names are given");
  unsigned needed = belay_permission_width(levels);
  if (needed == 0)
    return belay__invalid(belay, "levels: more than 2^63");
  if (o->width == 0)
    o->width = needed;
  if (needed > o->width)
    return belay__invalid(belay, "levels: more than fit into width");
  if (o->names_len > levels)
    return belay__invalid(belay, "names: more than there are values");
  return 0;
}

static int check_names(belay_t *belay, const belay_permission_options_t *o) {
  if (o->names_len > BELAY_PERMISSION_NAMES_MAX || (o->names_len > 0 && o->names == NULL))
    return belay__invalid(belay, "names: NULL, or more than 65536 of them");
  for (size_t i = 0; i < o->names_len; i++)
    if (o->names[i] != NULL && strnlen(o->names[i], NAME_MAX_LEN + 1) > NAME_MAX_LEN)
      return belay__invalid(belay, "names: one of more than 128 bytes");
  return 0;
}

static int check_options(belay_t *belay, belay_permission_options_t *options) {
  int error = check_names(belay, options);
  if (error == 0)
    error = check_width(belay, options);
  if (error != 0)
    return error;
  uint64_t fields = BELAY_PERMISSION_BITS_MAX / options->width;
  if (options->max_index >= fields)
    return belay__invalid(belay, "max_index: not from 0 to %llu", (unsigned long long)fields - 1);
  return 0;
}

static bool copy_names(belay_t *belay, const belay_permission_options_t *options, names_t **out) {
  names_t *names = *out = NULL;
  size_t n = options->names_len, size = sizeof *names + n * sizeof names->text[0];
  if (n == 0)
    return true;
  for (size_t i = 0; i < n; i++)
    size += options->names[i] == NULL ? 0 : strlen(options->names[i]) + 1;
  names = *out = belay__alloc(belay, size);
  if (names == NULL)
    return false;
  names->size = size;
  names->count = n;
  char *at = (char *)&names->text[n];
  for (size_t i = 0; i < n; i++) {
    names->text[i] = NULL;
    if (options->names[i] == NULL)
      continue;
    size_t len = strlen(options->names[i]) + 1;
    names->text[i] = memcpy(at, options->names[i], len);
    at += len;
  }
  return true;
}

static int on_init(belay__handle_t *handle, void *options) {
  belay_permission_t *permission = (belay_permission_t *)handle;
  belay_permission_options_t *o = options;
  int error = check_options(handle->client->belay, o);
  if (error != 0)
    return error;
  (void)snprintf(permission->tail, sizeof permission->tail, "}::u%u", o->width);
  return copy_names(handle->client->belay, o, &permission->names) ? 0 : BELAY_ENOMEM;
}

static void on_deinit(belay__handle_t *handle) {
  names_t *names = ((belay_permission_t *)handle)->names;
  if (names != NULL)
    belay__free(handle->client->belay, names, names->size);
}

const belay__handle_type_t belay__permission_type = {
    .family = "permission",
    BELAY__HANDLE_LAYOUT(permission),
    .copy_at = offsetof(belay_permission_t, options),
    .defaults = &defaults,
    .ranges = ranges,
    .init = on_init,
    .deinit = on_deinit,
};

BELAY__HANDLE_FUNCTIONS(permission)

/* Adds the words of a BITFIELD to a call; without a call it only counts them. */
typedef struct writer {
  belay__call_t *call;
  size_t words;
  unsigned piece; /* maximum bits of a piece */
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

/* Return the number of bits of the second piece; 0: one piece suffices. */
static unsigned rest_of(unsigned width, unsigned piece) {
  return width > piece ? piece : 0;
}

static uint64_t mask_of(unsigned width) {
  return (UINT64_C(1) << width) - 1; /* width is at most 63 */
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

typedef struct reader {
  const belay__reply_t *reply;
  size_t at;
  unsigned piece;
} reader_t;

/* Read the reply to put_get() or put_set(). Returns false if it is not valid. */
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

/* Return the length of the highest run of set bits in mask, or 0 if there is none. *low is the
 * number of the lowest bit in that run. */
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

typedef enum kind { GET, HAS, SET, GRANT, REVOKE } kind_t;

/* The room of a request. The results hold the arguments until the reply is read. */
typedef struct room {
  size_t n;
  kind_t kind;
  belay_permission_result_t results[];
} room_t;

/* Add the words for a field. field->value: the new value, or the mask of bits to grant or
 * revoke. */
static void put_field(writer_t *writer, kind_t kind, unsigned width,
                      const belay_permission_result_t *field) {
  uint64_t offset = field->index * width, mask = field->value;
  unsigned low, bits;
  if (kind == SET) {
    put_set(writer, offset, width, field->value);
    return;
  }
  for (; (kind == GRANT || kind == REVOKE) && (bits = run_of(mask, &low)) > 0;
       mask &= mask_of(low)) {
    uint64_t ones = mask_of(bits);
    put_set(writer, offset + width - low - bits, bits, kind == GRANT ? ones : 0);
  }
  put_get(writer, offset, width);
}

static bool take_field(reader_t *reader, kind_t kind, unsigned width,
                       belay_permission_result_t *field) {
  uint64_t given = field->value, old = 0, n;
  unsigned low, bits;
  if (kind == SET) {
    if (!take_number(reader, width, &field->before))
      return false;
    field->answer = field->before != given;
    return true;
  }
  uint64_t changing = kind == GRANT || kind == REVOKE ? given : 0;
  for (uint64_t mask = changing; (bits = run_of(mask, &low)) > 0; mask &= mask_of(low)) {
    if (!take_number(reader, bits, &n))
      return false;
    old |= n << low;
  }
  if (!take_number(reader, width, &field->value))
    return false;
  field->before = (field->value & ~changing) | old;
  field->answer = kind == GET   ? field->value != 0
                  : kind == HAS ? (field->value & given) == given
                                : field->value != field->before;
  return true;
}

static bool is_script(const belay_permission_t *permission, kind_t kind) {
  return permission->options.ttl_ms != 0 && kind != GET && kind != HAS;
}

static int read_fields(belay__operation_t *operation, const belay__call_t *call,
                       const belay__reply_t *reply) {
  const belay_permission_t *permission = operation->context;
  room_t *room = operation->room;
  reader_t reader = {.reply = reply, .piece = call->script != NULL ? SCRIPT_BITS : NATIVE_BITS};
  if (reply->type != BELAY__REPLY_ARRAY)
    return BELAY_EPROTO;
  for (size_t i = 0; i < room->n; i++)
    if (!take_field(&reader, room->kind, permission->options.width, &room->results[i]))
      return BELAY_EPROTO;
  return reader.at == reply->count ? 0 : BELAY_EPROTO;
}

/* Read the reply to a swap: 1 if the script has swapped the value, else 0; then the pieces of the
 * old value. */
static int read_swapped(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply) {
  (void)call;
  const belay_permission_t *permission = operation->context;
  belay_permission_result_t *field = ((room_t *)operation->room)->results;
  reader_t reader = {.reply = reply, .at = 1, .piece = SCRIPT_BITS};
  int64_t swapped;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count < 1 ||
      !belay__reply_integer(reply->items[0], 0, 1, &swapped) ||
      !take_number(&reader, permission->options.width, &field->before) || reader.at != reply->count)
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

static void notify(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  const room_t *room = answer->status == 0 ? answer->room : NULL;
  ((belay_permission_cb)cb)(request, answer->status, room != NULL ? room->results : NULL,
                            room != NULL ? room->n : 0);
}

static const belay__request_ops_t read_ops = {
    .read = read_fields, .notify = notify, .idempotent = true};
static const belay__request_ops_t change_ops = {.read = read_fields, .notify = notify};
static const belay__request_ops_t swap_ops = {.read = read_swapped, .notify = notify};
static const belay__request_ops_t clear_ops = {
    .read = read_cleared, .notify = notify, .idempotent = true};

static int check_field(const belay_permission_t *permission, uint64_t index, uint64_t value) {
  belay_t *belay = permission->handle.client->belay;
  if (index > permission->options.max_index)
    return belay__invalid(belay, "index: not from 0 to %llu",
                          (unsigned long long)permission->options.max_index);
  if (value > mask_of(permission->options.width))
    return belay__invalid(belay, "value: not of %u bits", permission->options.width);
  return 0;
}

static belay__call_t *new_call(const belay_permission_t *permission, belay_bytes_t key,
                               const room_t *room) {
  bool script = is_script(permission, room->kind), asks = room->kind <= HAS;
  writer_t writer = {.piece = script ? SCRIPT_BITS : NATIVE_BITS};
  for (size_t i = 0; i < room->n; i++)
    put_field(&writer, room->kind, permission->options.width, &room->results[i]);
  belay__call_t *call =
      script ? belay__handle_script(&permission->handle, &belay__script_permission_write, 1,
                                    1 + writer.words)
             : belay__handle_command(&permission->handle, asks ? "BITFIELD_RO" : "BITFIELD",
                                     2 + writer.words);
  belay__handle_arg(&permission->handle, call, key.data, key.len, permission->tail);
  if (script)
    belay__call_arg_int(call, permission->options.ttl_ms);
  writer.call = call;
  for (size_t i = 0; i < room->n; i++)
    put_field(&writer, room->kind, permission->options.width, &room->results[i]);
  return call;
}

/* Begin an operation with room for n results. */
static int begin(belay_permission_t *permission, belay_request_t *request,
                 const belay__request_ops_t *ops, kind_t kind, size_t n, belay_permission_cb cb,
                 belay__operation_t **out) {
  const size_t size = sizeof(room_t) + n * sizeof(belay_permission_result_t);
  int error = belay__handle_begin_room(&permission->handle, request, ops, BELAY__CB(cb), size, out);
  if (error == 0)
    *(room_t *)(*out)->room = (room_t){.n = n, .kind = kind};
  return error;
}

static belay_permission_field_t field_of(kind_t kind, const void *given, size_t i) {
  if (kind == GET)
    return (belay_permission_field_t){.index = ((const uint64_t *)given)[i]};
  return ((const belay_permission_field_t *)given)[i];
}

/* Start an operation. given: n indices for GET, else n fields. */
static int start(belay_permission_t *permission, belay_request_t *request, belay_bytes_t key,
                 kind_t kind, const void *given, size_t n, belay_permission_cb cb) {
  belay__operation_t *operation;
  size_t max = kind <= SET ? BELAY_PERMISSION_FIELDS_MAX : BELAY_PERMISSION_GRANTS_MAX;
  int error =
      belay__handle_check_key((const belay__handle_t *)permission, request, key, cb != NULL);
  if (error == 0)
    error = belay__check_count(permission->handle.client->belay, "field", given, n, max);
  for (size_t i = 0; i < n && error == 0; i++)
    error = check_field(permission, field_of(kind, given, i).index, field_of(kind, given, i).value);
  if (error == 0)
    error =
        begin(permission, request, kind <= HAS ? &read_ops : &change_ops, kind, n, cb, &operation);
  if (error != 0)
    return error;
  room_t *room = operation->room;
  for (size_t i = 0; i < n; i++) {
    belay_permission_field_t field = field_of(kind, given, i);
    room->results[i] = (belay_permission_result_t){.index = field.index, .value = field.value};
  }
  return belay__request_begun(operation,
                              belay__request_send(operation, new_call(permission, key, room)));
}

int belay_permission_get(belay_permission_t *permission, belay_request_t *request,
                         belay_bytes_t key, const uint64_t *indices, size_t n,
                         belay_permission_cb cb) {
  return start(permission, request, key, GET, indices, n, cb);
}

int belay_permission_has(belay_permission_t *permission, belay_request_t *request,
                         belay_bytes_t key, const belay_permission_field_t *fields, size_t n,
                         belay_permission_cb cb) {
  return start(permission, request, key, HAS, fields, n, cb);
}

int belay_permission_set(belay_permission_t *permission, belay_request_t *request,
                         belay_bytes_t key, const belay_permission_field_t *fields, size_t n,
                         belay_permission_cb cb) {
  return start(permission, request, key, SET, fields, n, cb);
}

int belay_permission_grant(belay_permission_t *permission, belay_request_t *request,
                           belay_bytes_t key, const belay_permission_field_t *fields, size_t n,
                           belay_permission_cb cb) {
  return start(permission, request, key, GRANT, fields, n, cb);
}

int belay_permission_revoke(belay_permission_t *permission, belay_request_t *request,
                            belay_bytes_t key, const belay_permission_field_t *fields, size_t n,
                            belay_permission_cb cb) {
  return start(permission, request, key, REVOKE, fields, n, cb);
}

static belay__call_t *new_swap(const belay_permission_t *permission, belay_bytes_t key,
                               const belay_permission_swap_t *swap) {
  unsigned width = permission->options.width, rest = rest_of(width, SCRIPT_BITS);
  uint64_t offset = swap->index * width;
  belay__call_t *call = belay__handle_script(&permission->handle, &belay__script_permission_swap, 1,
                                             rest > 0 ? 9 : 5);
  writer_t writer = {.call = call};
  belay__handle_arg(&permission->handle, call, key.data, key.len, permission->tail);
  belay__call_arg_int(call, permission->options.ttl_ms);
  put_place(&writer, offset, width - rest);
  put_number(&writer, swap->expected >> rest);
  put_number(&writer, swap->value >> rest);
  if (rest == 0)
    return call;
  put_place(&writer, offset + width - rest, rest);
  put_number(&writer, swap->expected & mask_of(rest));
  put_number(&writer, swap->value & mask_of(rest));
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
  return belay__request_begun(operation,
                              belay__request_send(operation, new_swap(permission, key, swap)));
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
