/* Strings as rows of bits: bit 0 is the highest one of the first byte. */
#include "command.h"

#include <stdlib.h>

#define STRING_MAX (INT64_C(512) << 20) /* bytes */
#define NO_OFFSET "ERR bit offset is not an integer or out of range"
#define NO_BIT "ERR bit is not an integer or out of range"

static bool bit_at(engine_word_t bytes, uint64_t bit) {
  return bit / 8 < bytes.len && ((unsigned char)bytes.at[bit / 8] >> (7 - bit % 8) & 1) != 0;
}

static void put_bit(engine_buffer_t *bytes, uint64_t bit, bool on) {
  unsigned char mask = (unsigned char)(1 << (7 - bit % 8));
  unsigned char byte = (unsigned char)bytes->at[bit / 8];
  byte = (unsigned char)(on ? byte | mask : byte & ~mask);
  bytes->at[bit / 8] = (char)byte;
}

/* width: of a field, for an offset of so many of them ("#3"); 0: there is no such. */
static bool read_offset(engine_call_t *call, engine_word_t word, unsigned width, uint64_t *offset) {
  int64_t value;
  bool fields = width > 0 && word.len > 0 && word.at[0] == '#';
  if (fields)
    word = (engine_word_t){word.at + 1, word.len - 1};
  bool is = engine_word_integer(word, &value);
  if (is && fields)
    value = (int64_t)((uint64_t)value * width);
  if (!is || value < 0 || value / 8 >= STRING_MAX) {
    engine_reply_error(call, NO_OFFSET);
    return false;
  }
  *offset = (uint64_t)value;
  return true;
}

/* The string at a key, an empty one too. */
static bool find(engine_call_t *call, engine_word_t key, bool *is_there, engine_word_t *bytes) {
  engine_object_t *object;
  if (!engine_find(call, key, ENGINE_STRING, &object))
    return false;
  *is_there = object != NULL;
  *bytes = object != NULL ? engine_bytes(&object->as.string) : (engine_word_t){"", 0};
  return true;
}

/* ---- single bits --------------------------------------------------------------------------------------- */

static void setbit(engine_call_t *call) {
  uint64_t offset;
  int64_t on;
  if (!read_offset(call, call->argv[2], 0, &offset))
    return;
  if (!engine_word_integer(call->argv[3], &on) || (on != 0 && on != 1)) {
    engine_reply_error(call, NO_BIT);
    return;
  }
  engine_object_t *object = engine_string_open(call, call->argv[1], offset / 8 + 1);
  if (object == NULL)
    return;
  bool was = bit_at(engine_bytes(&object->as.string), offset);
  put_bit(&object->as.string, offset, on != 0);
  engine_string_close(call, object);
  engine_reply_integer(call, was);
}

static void getbit(engine_call_t *call) {
  uint64_t offset;
  bool is_there;
  engine_word_t bytes;
  if (read_offset(call, call->argv[2], 0, &offset) && find(call, call->argv[1], &is_there, &bytes))
    engine_reply_integer(call, bit_at(bytes, offset));
}

/* ---- ranges -------------------------------------------------------------------------------------------- */

/* Bits from first to last, both included; none if first > last. */
typedef struct span {
  int64_t first, last;
} span_t;

/* Of a string of that length; both counted from the end if they are negative. */
static span_t span_of(span_t span, size_t len, bool in_bits) {
  int64_t total = (int64_t)len * (in_bits ? 8 : 1);
  span.first += span.first < 0 ? total : 0;
  span.last += span.last < 0 ? total : 0;
  span.first = span.first < 0 ? 0 : span.first;
  span.last = span.last < 0 ? 0 : span.last;
  span.last = span.last >= total ? total - 1 : span.last;
  if (span.first > span.last)
    return (span_t){0, -1};
  return in_bits ? span : (span_t){span.first * 8, span.last * 8 + 7};
}

static bool read_unit(engine_call_t *call, engine_word_t word, bool *in_bits) {
  *in_bits = engine_word_is(word, "BIT");
  if (*in_bits || engine_word_is(word, "BYTE"))
    return true;
  engine_reply_syntax_error(call);
  return false;
}

static void bitcount(engine_call_t *call) {
  span_t span = {0, -1};
  bool is_there, in_bits = false;
  engine_word_t bytes;
  if (!find(call, call->argv[1], &is_there, &bytes))
    return;
  if (!is_there) { /* whatever else is asked */
    engine_reply_integer(call, 0);
    return;
  }
  if (call->argc == 3 || call->argc > 5) {
    engine_reply_syntax_error(call);
    return;
  }
  if (call->argc > 3) {
    if (!engine_get_integer(call, call->argv[2], &span.first) ||
        !engine_get_integer(call, call->argv[3], &span.last))
      return;
    if (span.first < 0 && span.last < 0 && span.first > span.last) { /* before the unit is read */
      engine_reply_integer(call, 0);
      return;
    }
    if (call->argc == 5 && !read_unit(call, call->argv[4], &in_bits))
      return;
  }
  span = span_of(span, bytes.len, in_bits);
  int64_t count = 0;
  for (int64_t i = span.first; i <= span.last; i++)
    count += bit_at(bytes, (uint64_t)i);
  engine_reply_integer(call, count);
}

/* Behind the last byte there are zeros, unless the end was given. */
static int64_t find_bit(engine_word_t bytes, span_t span, bool bit, bool end_given) {
  for (int64_t i = span.first; i <= span.last; i++)
    if (bit_at(bytes, (uint64_t)i) == bit)
      return i;
  return bit || end_given || span.first > span.last ? -1 : span.last + 1;
}

static void bitpos(engine_call_t *call) {
  int64_t bit;
  span_t span = {0, -1};
  bool is_there, in_bits = false;
  engine_word_t bytes;
  if (!engine_get_integer(call, call->argv[2], &bit))
    return;
  if (bit != 0 && bit != 1) {
    engine_reply_error(call, "ERR The bit argument must be 1 or 0.");
    return;
  }
  if (!find(call, call->argv[1], &is_there, &bytes))
    return;
  if (!is_there) {
    engine_reply_integer(call, bit != 0 ? -1 : 0);
    return;
  }
  if (call->argc > 6) {
    engine_reply_syntax_error(call);
    return;
  }
  if (call->argc > 3 && !engine_get_integer(call, call->argv[3], &span.first))
    return;
  if (call->argc == 6 && !read_unit(call, call->argv[5], &in_bits))
    return;
  if (call->argc > 4 && !engine_get_integer(call, call->argv[4], &span.last))
    return;
  span = span_of(span, bytes.len, in_bits);
  engine_reply_integer(call, find_bit(bytes, span, bit != 0, call->argc > 4));
}

/* ---- fields -------------------------------------------------------------------------------------------- */

typedef enum overflow { WRAP, SAT, FAIL } overflow_t;
typedef enum act { GET, SET, INCRBY } act_t;

/* One of BITFIELD's. A value is in the low bits, signed ones are extended to 64. */
typedef struct field {
  act_t act;
  overflow_t overflow;
  bool is_signed;
  unsigned width;
  uint64_t offset;
  int64_t value;
} field_t;

static bool read_type(engine_call_t *call, engine_word_t word, field_t *field) {
  int64_t width = 0;
  word.len = strnlen(word.at, word.len); /* Redis looks no further */
  field->is_signed = word.len > 0 && word.at[0] == 'i';
  bool is = field->is_signed || (word.len > 0 && word.at[0] == 'u');
  is = is && engine_word_integer((engine_word_t){word.at + 1, word.len - 1}, &width);
  if (!is || width < 1 || width > (field->is_signed ? 64 : 63)) {
    engine_reply_error(call, "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 "
                             "is not supported but i64 is.");
    return false;
  }
  field->width = (unsigned)width;
  return true;
}

static bool read_overflow(engine_call_t *call, engine_word_t word, overflow_t *overflow) {
  static const char *const names[] = {"WRAP", "SAT", "FAIL"};
  for (unsigned i = 0; i < 3; i++)
    if (engine_word_is(word, names[i])) {
      *overflow = (overflow_t)i;
      return true;
    }
  engine_reply_error(call, "ERR Invalid OVERFLOW type specified");
  return false;
}

/* Reads one, at *at, which is behind it then. */
static bool read_field(engine_call_t *call, size_t *at, field_t *field) {
  static const char *const names[] = {"GET", "SET", "INCRBY"};
  const engine_word_t *words = &call->argv[*at];
  unsigned act = 0;
  while (act < 3 && !engine_word_is(words[0], names[act]))
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
  overflow_t overflow = WRAP;
  *count = 0;
  for (size_t i = 2; i < call->argc;) {
    bool good;
    if (engine_word_is(call->argv[i], "OVERFLOW") && i + 1 < call->argc) {
      good = read_overflow(call, call->argv[i + 1], &overflow);
      i += 2;
    } else {
      fields[*count].overflow = overflow;
      good = read_field(call, &i, &fields[(*count)++]);
    }
    if (!good) {
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

static uint64_t field_at(engine_word_t bytes, const field_t *field) {
  uint64_t value = 0;
  for (unsigned i = 0; i < field->width; i++)
    value = value << 1 | (bit_at(bytes, field->offset + i) ? 1 : 0);
  return extend(value, field);
}

static void put_field(engine_buffer_t *bytes, const field_t *field, uint64_t value) {
  for (unsigned i = 0; i < field->width; i++)
    put_bit(bytes, field->offset + i, (value >> (field->width - 1 - i) & 1) != 0);
}

/* 1: the sum is over the largest value; -1: under the smallest. Signed. The differences may wrap around, as they do
 * in Redis: -2^63 in 63 bits is over, not under. */
static int is_over_signed(int64_t was, int64_t more, unsigned width) {
  int64_t max = width == 64 ? INT64_MAX : (INT64_C(1) << (width - 1)) - 1, sum;
  if (width == 64)
    return !__builtin_add_overflow(was, more, &sum) ? 0 : more > 0 ? 1 : -1;
  if (was > max || more > (int64_t)((uint64_t)max - (uint64_t)was))
    return 1;
  return was < -max - 1 || more < (int64_t)((uint64_t)(-max - 1) - (uint64_t)was) ? -1 : 0;
}

/* The same of an unsigned one, of which was is any 64 bits with SET: a negative number is a large one then. */
static int is_over_unsigned(uint64_t was, int64_t more, unsigned width) {
  uint64_t max = (UINT64_C(1) << width) - 1;
  if (was > max || (more > 0 && (uint64_t)more > max - was))
    return 1;
  return more < 0 && UINT64_C(0) - (uint64_t)more > was ? -1 : 0;
}

static uint64_t extreme(const field_t *field, int over) {
  uint64_t high = UINT64_C(1) << (field->width - 1);
  if (field->is_signed)
    return extend(over > 0 ? high - 1 : high, field);
  return over > 0 ? (high - 1) * 2 + 1 : 0;
}

static void change_field(engine_call_t *call, engine_buffer_t *bytes, const field_t *field) {
  uint64_t was = field_at(engine_bytes(bytes), field);
  uint64_t from = field->act == SET ? (uint64_t)field->value : was;
  int64_t more = field->act == SET ? 0 : field->value;
  int over = field->is_signed ? is_over_signed((int64_t)from, more, field->width)
                              : is_over_unsigned(from, more, field->width);
  if (over != 0 && field->overflow == FAIL) {
    engine_reply_nil(call);
    return;
  }
  uint64_t is = over != 0 && field->overflow == SAT ? extreme(field, over)
                                                    : extend(from + (uint64_t)more, field);
  put_field(bytes, field, is);
  engine_reply_integer(call, (int64_t)(field->act == SET ? was : is));
}

/* Reads only, or the string is open. */
static void run_fields(engine_call_t *call, engine_object_t *object, const field_t *fields,
                       size_t count) {
  engine_reply_array(call, count);
  for (size_t i = 0; i < count; i++) {
    engine_word_t bytes = {"", 0};
    if (object != NULL)
      bytes = engine_bytes(&object->as.string);
    if (fields[i].act == GET)
      engine_reply_integer(call, (int64_t)field_at(bytes, &fields[i]));
    else
      change_field(call, &object->as.string, &fields[i]);
  }
}

static void bitfield_of(engine_call_t *call, bool may_write) {
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
  } else if (!may_write) {
    engine_reply_error(call, "ERR BITFIELD_RO only supports the GET subcommand");
  } else if ((object = engine_string_open(call, call->argv[1], (size_t)len)) != NULL) {
    run_fields(call, object, fields, count);
    engine_string_close(call, object);
  }
  free(fields);
}

static void bitfield(engine_call_t *call) {
  bitfield_of(call, true);
}

static void bitfield_ro(engine_call_t *call) {
  bitfield_of(call, false);
}

/* ---- several strings ----------------------------------------------------------------------------------- */

typedef enum op { AND, OR, XOR, NOT, NO_OP } op_t;

static void combine(op_t op, char *to, size_t to_len, engine_word_t with, bool is_first) {
  for (size_t i = 0; i < to_len; i++) {
    unsigned a = (unsigned char)to[i], b = i < with.len ? (unsigned char)with.at[i] : 0;
    if (op == NOT)
      a = ~b;
    else if (is_first)
      a = b;
    else
      a = op == AND ? a & b : op == OR ? a | b : a ^ b;
    to[i] = (char)(unsigned char)(a & 0xff);
  }
}

/* Puts the result at the key; what was there goes, if there are no bytes. */
static void put_result(engine_call_t *call, engine_word_t bytes) {
  engine_object_t *object;
  if (bytes.len > 0)
    engine_string_put(call, call->argv[2], bytes, false);
  else if ((object = engine_look(call, call->argv[2])) != NULL)
    engine_delete(call, object);
  engine_reply_integer(call, (int64_t)bytes.len);
}

static void bitop(engine_call_t *call) {
  static const char *const names[] = {"AND", "OR", "XOR", "NOT"};
  unsigned op = 0;
  bool is_there;
  engine_word_t bytes;
  while (op < NO_OP && !engine_word_is(call->argv[1], names[op]))
    op++;
  if (op == NO_OP) {
    engine_reply_syntax_error(call);
    return;
  }
  if (op == NOT && call->argc != 4) {
    engine_reply_error(call, "ERR BITOP NOT must be called with a single source key.");
    return;
  }
  size_t len = 0;
  for (size_t i = 3; i < call->argc; i++) {
    if (!find(call, call->argv[i], &is_there, &bytes))
      return;
    len = bytes.len > len ? bytes.len : len;
  }
  char *result = engine_allocate(len + 1);
  for (size_t i = 3; i < call->argc; i++)
    if (find(call, call->argv[i], &is_there, &bytes))
      combine((op_t)op, result, len, bytes, i == 3);
  put_result(call, (engine_word_t){result, len});
  free(result);
}

const engine_command_t engine_bit_commands[] = {
    {"SETBIT", setbit, 4, ENGINE_WRITES, NULL},
    {"GETBIT", getbit, 3, 0, NULL},
    {"BITCOUNT", bitcount, -2, 0, NULL},
    {"BITPOS", bitpos, -3, 0, NULL},
    {"BITFIELD", bitfield, -2, ENGINE_WRITES, NULL},
    {"BITFIELD_RO", bitfield_ro, -2, 0, NULL},
    {"BITOP", bitop, -4, ENGINE_WRITES, NULL},
    {NULL, NULL, 0, 0, NULL},
};
