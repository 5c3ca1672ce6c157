/* Strings. Those that are numbers are in numbers.c. */
#include "command.h"

#define STRING_MAX (512LL * 1024 * 1024) /* proto-max-bulk-len */

/* What SET and GETEX may be told. */
enum {
  NX = 1,
  XX = 2,
  GET = 4,
  KEEPTTL = 8,
  PERSIST = 16,
  EX = 32,
  PX = 64,
  EXAT = 128,
  PXAT = 256
};
enum {
  FOR_SET = NX | XX | GET | KEEPTTL | EX | PX | EXAT | PXAT,
  FOR_GETEX = PERSIST | EX | PX | EXAT | PXAT,
  TIMES = EX | PX | EXAT | PXAT,
  ENDS = TIMES | KEEPTTL | PERSIST /* one of these at most */
};

typedef struct wishes {
  unsigned flags;
  const engine_word_t *time; /* for one of TIMES */
} wishes_t;

/* ---- what they may be told ----------------------------------------------------------------------------- */

static unsigned flag_of(engine_word_t word) {
  static const struct {
    const char *name;
    unsigned flag;
  } rows[] = {{"NX", NX}, {"XX", XX}, {"GET", GET},   {"KEEPTTL", KEEPTTL}, {"PERSIST", PERSIST},
              {"EX", EX}, {"PX", PX}, {"EXAT", EXAT}, {"PXAT", PXAT}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (engine_word_is(word, rows[i].name))
      return rows[i].flag;
  return 0;
}

static bool parse_wishes(engine_call_t *call, size_t from, unsigned permitted, wishes_t *wishes) {
  *wishes = (wishes_t){0};
  for (size_t i = from; i < call->argc; i++) {
    unsigned flag = flag_of(call->argv[i]) & permitted;
    unsigned others = (flag & ENDS) != 0 ? ENDS & ~flag : (flag & (NX | XX)) ^ (NX | XX);
    if (flag == GET)
      others = 0;
    bool needs_time = (flag & TIMES) != 0;
    if (flag == 0 || (wishes->flags & others) != 0 || (needs_time && i + 1 == call->argc)) {
      engine_reply_syntax_error(call);
      return false;
    }
    wishes->flags |= flag;
    if (needs_time)
      wishes->time = &call->argv[++i];
  }
  return true;
}

/* When it is to end that is to end then. */
static bool read_time(engine_call_t *call, const char *name, engine_word_t word, unsigned flags,
                      int64_t *ends_ms) {
  unsigned unit = ((flags & (EX | EXAT)) != 0 ? ENGINE_SECONDS : 0) |
                  ((flags & (EX | PX)) != 0 ? ENGINE_FROM_NOW : 0);
  int64_t value;
  if (!engine_get_integer(call, word, &value))
    return false;
  if (value > 0)
    return engine_to_end(call, name, value, unit, ends_ms);
  engine_reply_error(call, "ERR invalid expire time in '%s' command", name);
  return false;
}

/* ---- SET ----------------------------------------------------------------------------------------------- */

static void reply_object(engine_call_t *call, const engine_object_t *object) {
  if (object == NULL)
    engine_reply_nil(call);
  else
    engine_reply_word(call, engine_bytes(&object->as.string));
}

static void set(engine_call_t *call) {
  wishes_t wishes = {0};
  int64_t ends_ms = ENGINE_FOREVER;
  if (call->argc > 3 && !parse_wishes(call, 3, FOR_SET, &wishes))
    return;
  unsigned flags = wishes.flags;
  if (wishes.time != NULL && !read_time(call, "set", *wishes.time, flags, &ends_ms))
    return;
  engine_object_t *object = engine_look(call, call->argv[1]);
  if ((flags & GET) != 0) {
    if (object != NULL && object->type != ENGINE_STRING) {
      engine_reply_wrongtype(call);
      return;
    }
    reply_object(call, object);
  }
  bool refused = (flags & (object != NULL ? NX : XX)) != 0;
  if (!refused) {
    object = engine_string_put(call, call->argv[1], call->argv[2], (flags & KEEPTTL) != 0);
    if (wishes.time != NULL)
      object->ends_ms = ends_ms;
  }
  if ((flags & GET) == 0 && refused)
    engine_reply_nil(call);
  else if ((flags & GET) == 0)
    engine_reply_ok(call);
}

static void set_until(engine_call_t *call, const char *name, unsigned flag) {
  int64_t ends_ms;
  if (!read_time(call, name, call->argv[2], flag, &ends_ms))
    return;
  engine_string_put(call, call->argv[1], call->argv[3], false)->ends_ms = ends_ms;
  engine_reply_ok(call);
}

static void setex(engine_call_t *call) {
  set_until(call, "setex", EX);
}

static void psetex(engine_call_t *call) {
  set_until(call, "psetex", PX);
}

static void setnx(engine_call_t *call) {
  bool free = engine_look(call, call->argv[1]) == NULL;
  if (free)
    engine_string_put(call, call->argv[1], call->argv[2], false);
  engine_reply_integer(call, free);
}

/* ---- GET ----------------------------------------------------------------------------------------------- */

static void get(engine_call_t *call) {
  engine_object_t *object;
  if (engine_find(call, call->argv[1], ENGINE_STRING, &object))
    reply_object(call, object);
}

static void getset(engine_call_t *call) {
  engine_object_t *object;
  if (!engine_find(call, call->argv[1], ENGINE_STRING, &object))
    return;
  reply_object(call, object);
  engine_string_put(call, call->argv[1], call->argv[2], false);
}

static void getdel(engine_call_t *call) {
  engine_object_t *object;
  if (!engine_find(call, call->argv[1], ENGINE_STRING, &object))
    return;
  reply_object(call, object);
  if (object != NULL)
    engine_delete(call, object);
}

static void getex(engine_call_t *call) {
  wishes_t wishes;
  engine_object_t *object;
  int64_t ends_ms = ENGINE_FOREVER;
  if (!parse_wishes(call, 2, FOR_GETEX, &wishes) ||
      !engine_find(call, call->argv[1], ENGINE_STRING, &object))
    return;
  if (object != NULL && wishes.time != NULL &&
      !read_time(call, "getex", *wishes.time, wishes.flags, &ends_ms))
    return;
  reply_object(call, object);
  if (object == NULL || wishes.flags == 0)
    return;
  if (wishes.time != NULL && ends_ms <= call->now_ms)
    engine_delete(call, object);
  else
    object->ends_ms = ends_ms;
}

static void mget(engine_call_t *call) {
  engine_reply_array(call, call->argc - 1);
  for (size_t i = 1; i < call->argc; i++) {
    const engine_object_t *object = engine_look(call, call->argv[i]);
    reply_object(call, object != NULL && object->type == ENGINE_STRING ? object : NULL);
  }
}

/* ---- several ------------------------------------------------------------------------------------------- */

static void put_all(engine_call_t *call) {
  for (size_t i = 1; i < call->argc; i += 2)
    engine_string_put(call, call->argv[i], call->argv[i + 1], false);
}

static void mset(engine_call_t *call) {
  if (call->argc % 2 == 0) {
    engine_reply_wrong_number(call, call->command);
    return;
  }
  put_all(call);
  engine_reply_ok(call);
}

static void msetnx(engine_call_t *call) {
  if (call->argc % 2 == 0) {
    engine_reply_wrong_number(call, call->command);
    return;
  }
  bool all_free = true;
  for (size_t i = 1; i < call->argc && all_free; i += 2)
    all_free = engine_look(call, call->argv[i]) == NULL;
  if (all_free)
    put_all(call);
  engine_reply_integer(call, all_free);
}

/* ---- pieces -------------------------------------------------------------------------------------------- */

static bool is_too_long(engine_call_t *call, int64_t len) {
  if (len > STRING_MAX)
    engine_reply_error(call, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
  return len > STRING_MAX;
}

static void append(engine_call_t *call) {
  engine_word_t tail = call->argv[2];
  engine_object_t *object;
  if (!engine_find(call, call->argv[1], ENGINE_STRING, &object) ||
      is_too_long(call, (int64_t)(object == NULL ? 0 : object->as.string.len + tail.len)))
    return;
  object = engine_string_open(call, call->argv[1], 0);
  engine_buffer_add(&object->as.string, tail.at, tail.len);
  engine_string_close(call, object);
  engine_reply_integer(call, (int64_t)object->as.string.len);
}

static void length(engine_call_t *call) {
  engine_object_t *object;
  if (engine_find(call, call->argv[1], ENGINE_STRING, &object))
    engine_reply_integer(call, object == NULL ? 0 : (int64_t)object->as.string.len);
}

static void setrange(engine_call_t *call) {
  engine_word_t piece = call->argv[3];
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
  engine_object_t *object;
  int64_t first, last;
  if (!engine_get_integer(call, call->argv[2], &first) ||
      !engine_get_integer(call, call->argv[3], &last) ||
      !engine_find(call, call->argv[1], ENGINE_STRING, &object))
    return;
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
    {"SETEX", setex, 4, ENGINE_WRITES, NULL},
    {"PSETEX", psetex, 4, ENGINE_WRITES, NULL},
    {"SETNX", setnx, 3, ENGINE_WRITES, NULL},
    {"GET", get, 2, 0, NULL},
    {"GETSET", getset, 3, ENGINE_WRITES, NULL},
    {"GETDEL", getdel, 2, ENGINE_WRITES, NULL},
    {"GETEX", getex, -2, ENGINE_WRITES, NULL},
    {"MGET", mget, -2, 0, NULL},
    {"MSET", mset, -3, ENGINE_WRITES, NULL},
    {"MSETNX", msetnx, -3, ENGINE_WRITES, NULL},
    {"APPEND", append, 3, ENGINE_WRITES, NULL},
    {"STRLEN", length, 2, 0, NULL},
    {"SETRANGE", setrange, 4, ENGINE_WRITES, NULL},
    {"GETRANGE", getrange, 4, 0, NULL},
    {"SUBSTR", getrange, 4, 0, NULL},
    {NULL, NULL, 0, 0, NULL},
};
