/* Strings. */
#include <stdio.h>

#include "command.h"

#define STRING_MAX (512LL * 1024 * 1024) /* proto-max-bulk-len */

/* The options of SET. */
enum { NX = 1, XX = 2, KEEPTTL = 4, PX = 8, GET = 16 };

static unsigned flag_of(engine_bytes_t word) {
  static const char *const names[] = {"NX", "XX", "KEEPTTL", "PX", "GET"};
  for (unsigned i = 0; i < 5; i++)
    if (engine_bytes_is(word, names[i]))
      return 1U << i;
  return 0;
}

/* time: the argument of PX. */
static bool parse_wishes(engine_call_t *call, unsigned *flags, const engine_bytes_t **time) {
  for (size_t i = 3; i < call->argc; i++) {
    unsigned flag = flag_of(call->argv[i]);
    unsigned others = (flag & (NX | XX)) != 0 ? (NX | XX) & ~flag : (KEEPTTL | PX) & ~flag;
    if (flag == GET)
      others = 0;
    if (flag == 0 || (*flags & others) != 0 || (flag == PX && i + 1 == call->argc)) {
      engine_reply_syntax_error(call);
      return false;
    }
    *flags |= flag;
    if (flag == PX)
      *time = &call->argv[++i];
  }
  return true;
}

static bool read_time(engine_call_t *call, engine_bytes_t word, int64_t *ends_ms) {
  int64_t value;
  if (!engine_get_integer(call, word, &value))
    return false;
  if (value > 0)
    return engine_to_end(call, "set", value, true, ends_ms);
  engine_reply_error(call, "ERR invalid expire time in 'set' command");
  return false;
}

static void reply_object(engine_call_t *call, const engine_object_t *object) {
  if (object == NULL)
    engine_reply_nil(call);
  else
    engine_reply_bytes(call, engine_buffer_bytes(&object->as.string));
}

static void set(engine_call_t *call) {
  unsigned flags = 0;
  const engine_bytes_t *time = NULL;
  int64_t ends_ms = ENGINE_FOREVER;
  if (!parse_wishes(call, &flags, &time) || (time != NULL && !read_time(call, *time, &ends_ms)))
    return;
  engine_object_t *object = engine_lookup(call, call->argv[1]);
  bool gets = (flags & GET) != 0;
  if (gets && object != NULL && object->type != ENGINE_STRING) {
    engine_reply_wrongtype(call);
    return;
  }
  if (gets)
    reply_object(call, object);
  bool refused = (flags & (object != NULL ? NX : XX)) != 0;
  if (!refused) {
    object = engine_string_put(call, call->argv[1], call->argv[2], (flags & KEEPTTL) != 0);
    if (time != NULL)
      object->ends_ms = ends_ms;
  }
  if (!gets && refused)
    engine_reply_nil(call);
  else if (!gets)
    engine_reply_ok(call);
}

static void get(engine_call_t *call) {
  reply_object(call, call->object);
}

bool engine_add(engine_call_t *call, int64_t value, int64_t step, int64_t *sum) {
  if (!__builtin_add_overflow(value, step, sum))
    return true;
  engine_reply_error(call, "ERR increment or decrement would overflow");
  return false;
}

engine_bytes_t engine_print_integer(char text[ENGINE_NUMBER_MAX], int64_t value) {
  return (engine_bytes_t){text,
                          (size_t)snprintf(text, ENGINE_NUMBER_MAX, "%lld", (long long)value)};
}

static void incrby(engine_call_t *call) {
  int64_t value = 0;
  char text[ENGINE_NUMBER_MAX];
  if ((call->object != NULL &&
       !engine_get_integer(call, engine_buffer_bytes(&call->object->as.string), &value)) ||
      !engine_add(call, value, call->number[0], &value))
    return;
  engine_string_put(call, call->argv[1], engine_print_integer(text, value), true);
  engine_reply_integer(call, value);
}

/* ---- pieces ---- */

static bool is_too_long(engine_call_t *call, int64_t len) {
  if (len > STRING_MAX)
    engine_reply_error(call, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
  return len > STRING_MAX;
}

static void setrange(engine_call_t *call) {
  engine_bytes_t piece = call->argv[3];
  engine_object_t *object;
  int64_t offset;
  if (!engine_get_integer(call, call->argv[2], &offset))
    return;
  if (offset < 0) {
    engine_reply_error(call, "ERR offset is out of range");
    return;
  }
  if (!engine_find(call, call->argv[1], ENGINE_STRING, &object))
    return;
  if (piece.len == 0) {
    engine_reply_integer(call, object == NULL ? 0 : (int64_t)object->as.string.len);
    return;
  }
  if (is_too_long(call, offset > STRING_MAX ? offset : offset + (int64_t)piece.len))
    return;
  object = engine_string_open(call, call->argv[1], (size_t)offset + piece.len);
  memcpy(object->as.string.at + offset, piece.at, piece.len);
  engine_string_close(call, object);
  engine_reply_integer(call, (int64_t)object->as.string.len);
}

/* Counted from the end if it is negative; not before the beginning. */
static int64_t counted(int64_t index, int64_t len) {
  if (index < 0)
    index = index < -len ? 0 : index + len;
  return index;
}

static void getrange(engine_call_t *call) {
  const engine_object_t *object = call->object;
  int64_t first = call->number[0], last = call->number[1];
  int64_t len = object == NULL ? 0 : (int64_t)object->as.string.len;
  bool crossed = first < 0 && last < 0 && first > last;
  first = counted(first, len);
  last = counted(last, len);
  if (last >= len)
    last = len - 1;
  if (crossed || first > last)
    engine_reply_text(call, "");
  else
    engine_reply_bulk(call, object->as.string.at + first, (size_t)(last - first + 1));
}

const engine_command_t engine_string_commands[] = {
    {"SET", set, -3, ENGINE_WRITES, NULL},
    {"GET", get, 2, ENGINE_OF(STRING), NULL},
    {"SETRANGE", setrange, 4, ENGINE_WRITES, NULL},
    {"GETRANGE", getrange, 4, ENGINE_OF(STRING) | ENGINE_INTEGER_2 | ENGINE_INTEGER_3, NULL},
    {"INCRBY", incrby, 3, ENGINE_WRITES | ENGINE_OF(STRING) | ENGINE_INTEGER_2, NULL},
    {NULL, NULL, 0, 0, NULL},
};
