/* Strings as rows of bits: bit 0 is the highest one of the first byte. */
#include "command.h"

#include <stdlib.h>

#define STRING_MAX (INT64_C(512) << 20) /* bytes */
#define NO_OFFSET "ERR bit offset is not an integer or out of range"

static bool bit_at(engine_bytes_t bytes, uint64_t bit) {
  return bit / 8 < bytes.len && ((unsigned char)bytes.at[bit / 8] >> (7 - bit % 8) & 1) != 0;
}

static void put_bit(engine_buffer_t *bytes, uint64_t bit, bool on) {
  unsigned char mask = (unsigned char)(1 << (7 - bit % 8));
  unsigned char byte = (unsigned char)bytes->at[bit / 8];
  byte = (unsigned char)(on ? byte | mask : byte & ~mask);
  bytes->at[bit / 8] = (char)byte;
}

/* width: of a field, for an offset in fields ("#3"); 0: no such form. */
static bool read_offset(engine_call_t *call, engine_bytes_t word, unsigned width,
                        uint64_t *offset) {
  int64_t value;
  bool fields = width > 0 && word.len > 0 && word.at[0] == '#';
  if (fields)
    word = (engine_bytes_t){word.at + 1, word.len - 1};
  bool is = engine_bytes_integer(word, &value);
  if (is && fields)
    value = (int64_t)((uint64_t)value * width);
  if (!is || value < 0 || value / 8 >= STRING_MAX) {
    engine_reply_error(call, NO_OFFSET);
    return false;
  }
  *offset = (uint64_t)value;
  return true;
}

/* ---- single bits ---- */

static void getbit(engine_call_t *call) {
  uint64_t offset;
  engine_object_t *object;
  if (!read_offset(call, call->argv[2], 0, &offset) ||
      !engine_find(call, call->argv[1], ENGINE_STRING, &object))
    return;
  engine_reply_integer(call,
                       object != NULL && bit_at(engine_buffer_bytes(&object->as.string), offset));
}

/* ---- fields ---- */

typedef enum act { GET, SET, INCRBY } act_t;

/* One of BITFIELD's. A value is in the low bits, signed ones are extended to 64. */
typedef struct field {
  act_t act;
  bool is_signed;
  unsigned width;
  uint64_t offset;
  int64_t value;
} field_t;

static bool read_type(engine_call_t *call, engine_bytes_t word, field_t *field) {
  int64_t width = 0;
  word.len = strnlen(word.at, word.len); /* Redis looks no further */
  field->is_signed = word.len > 0 && word.at[0] == 'i';
  bool is = field->is_signed || (word.len > 0 && word.at[0] == 'u');
  is = is && engine_bytes_integer((engine_bytes_t){word.at + 1, word.len - 1}, &width);
  if (!is || width < 1 || width > (field->is_signed ? 64 : 63)) {
    engine_reply_error(call, "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 "
                             "is not supported but i64 is.");
    return false;
  }
  field->width = (unsigned)width;
  return true;
}

/* Reads one, at *at, which is behind it then. */
static bool read_field(engine_call_t *call, size_t *at, field_t *field) {
  static const char *const names[] = {"GET", "SET", "INCRBY"};
  const engine_bytes_t *words = &call->argv[*at];
  unsigned act = 0;
  while (act < 3 && !engine_bytes_is(words[0], names[act]))
    act++;
  size_t needed = act == GET ? 3 : 4;
  if (act == 3 || call->argc - *at < needed) {
    engine_reply_syntax_error(call);
    return false;
  }
  field->act = (act_t)act;
  field->value = 0;
  *at += needed;
  return read_type(call, words[1], field) &&
         read_offset(call, words[2], field->width, &field->offset) &&
         (act == GET || engine_get_integer(call, words[3], &field->value));
}

/* NULL: there was an error, and it is the reply. */
static field_t *read_fields(engine_call_t *call, size_t *count) {
  field_t *fields = engine_allocate(call->argc * sizeof *fields);
  *count = 0;
  for (size_t i = 2; i < call->argc;) {
    if (!read_field(call, &i, &fields[(*count)++])) {
      free(fields);
      return NULL;
    }
  }
  return fields;
}

static uint64_t extend(uint64_t value, const field_t *field) {
  if (field->width == 64)
    return value;
  uint64_t mask = (UINT64_C(1) << field->width) - 1;
  bool negative = field->is_signed && (value >> (field->width - 1) & 1) != 0;
  return negative ? value | ~mask : value & mask;
}

static uint64_t field_at(engine_bytes_t bytes, const field_t *field) {
  uint64_t value = 0;
  for (unsigned i = 0; i < field->width; i++)
    value = value << 1 | (bit_at(bytes, field->offset + i) ? 1 : 0);
  return extend(value, field);
}

static void put_field(engine_buffer_t *bytes, const field_t *field, uint64_t value) {
  for (unsigned i = 0; i < field->width; i++)
    put_bit(bytes, field->offset + i, (value >> (field->width - 1 - i) & 1) != 0);
}

/* A sum that does not fit wraps around. */
static void change_field(engine_call_t *call, engine_buffer_t *bytes, const field_t *field) {
  uint64_t was = field_at(engine_buffer_bytes(bytes), field), more = (uint64_t)field->value;
  uint64_t is = extend(field->act == SET ? more : was + more, field);
  put_field(bytes, field, is);
  engine_reply_integer(call, (int64_t)(field->act == SET ? was : is));
}

/* Reads only, or the string is open. */
static void run_fields(engine_call_t *call, engine_object_t *object, const field_t *fields,
                       size_t count) {
  engine_reply_array(call, count);
  for (size_t i = 0; i < count; i++) {
    engine_bytes_t bytes = {"", 0};
    if (object != NULL)
      bytes = engine_buffer_bytes(&object->as.string);
    if (fields[i].act == GET)
      engine_reply_integer(call, (int64_t)field_at(bytes, &fields[i]));
    else
      change_field(call, &object->as.string, &fields[i]);
  }
}

/* BITFIELD, BITFIELD_RO. */
static void bitfield(engine_call_t *call) {
  size_t count;
  uint64_t len = 0;
  field_t *fields = read_fields(call, &count);
  if (fields == NULL)
    return;
  for (size_t i = 0; i < count; i++) {
    uint64_t needed = (fields[i].offset + fields[i].width - 1) / 8 + 1;
    if (fields[i].act != GET && needed > len)
      len = needed;
  }
  engine_object_t *object;
  if (len == 0) {
    if (engine_find(call, call->argv[1], ENGINE_STRING, &object))
      run_fields(call, object, fields, count);
  } else if ((call->command->flags & ENGINE_SECOND) != 0) {
    engine_reply_error(call, "ERR BITFIELD_RO only supports the GET subcommand");
  } else if ((object = engine_string_open(call, call->argv[1], (size_t)len)) != NULL) {
    run_fields(call, object, fields, count);
    engine_string_close(call, object);
  }
  free(fields);
}

const engine_command_t engine_bit_commands[] = {
    {"GETBIT", getbit, 3, 0, NULL},
    {"BITFIELD", bitfield, -2, ENGINE_WRITES, NULL},
    {"BITFIELD_RO", bitfield, -2, ENGINE_SECOND, NULL},
    {NULL, NULL, 0, 0, NULL},
};
