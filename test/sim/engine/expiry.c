/* When keys end: EXPIRE, TTL and their kin. */
#include "command.h"

/* When the key is to end only if it has no end yet; has one; if that is later; if that is earlier. */
enum { NX = 1, XX = 2, GT = 4, LT = 8 };

bool engine_to_end(engine_call_t *call, const char *name, int64_t value, unsigned unit,
                   int64_t *ends_ms) {
  bool seconds = (unit & ENGINE_SECONDS) != 0, from_now = (unit & ENGINE_FROM_NOW) != 0;
  int64_t most = INT64_MAX / 1000, ms = value;
  bool fits = !seconds || (value <= most && value >= -most);
  if (fits && seconds)
    ms = value * 1000;
  if (fits && from_now)
    fits = !__builtin_add_overflow(ms, call->now_ms, &ms);
  if (!fits)
    engine_reply_error(call, "ERR invalid expire time in '%s' command", name);
  *ends_ms = ms;
  return fits;
}

static bool parse_flag(engine_word_t word, unsigned *flags) {
  static const char *const names[] = {"NX", "XX", "GT", "LT"};
  for (unsigned i = 0; i < 4; i++)
    if (engine_word_is(word, names[i])) {
      *flags |= 1U << i;
      return true;
    }
  return false;
}

static bool parse_flags(engine_call_t *call, unsigned *flags) {
  *flags = 0;
  for (size_t i = 3; i < call->argc; i++) {
    engine_word_t word = call->argv[i];
    if (!parse_flag(word, flags)) {
      engine_reply_error(call, "ERR Unsupported option %.*s", (int)strnlen(word.at, word.len),
                         word.at);
      return false;
    }
  }
  if ((*flags & NX) != 0 && (*flags & ~(unsigned)NX) != 0) {
    engine_reply_error(call, "ERR NX and XX, GT or LT options at the same time are not compatible");
    return false;
  }
  if ((*flags & GT) != 0 && (*flags & LT) != 0) {
    engine_reply_error(call, "ERR GT and LT options at the same time are not compatible");
    return false;
  }
  return true;
}

/* What has no end ends later than everything else. */
static bool permitted(unsigned flags, int64_t is, int64_t wanted) {
  bool has_end = is != ENGINE_FOREVER;
  if (((flags & NX) != 0 && has_end) || ((flags & XX) != 0 && !has_end))
    return false;
  if ((flags & GT) != 0 && (!has_end || wanted <= is))
    return false;
  return (flags & LT) == 0 || !has_end || wanted < is;
}

static void expire_by(engine_call_t *call, const char *name, unsigned unit) {
  unsigned flags;
  int64_t value, ends_ms;
  if (!parse_flags(call, &flags) || !engine_get_integer(call, call->argv[2], &value) ||
      !engine_to_end(call, name, value, unit, &ends_ms))
    return;
  engine_object_t *object = engine_look(call, call->argv[1]);
  if (object == NULL || !permitted(flags, object->ends_ms, ends_ms)) {
    engine_reply_integer(call, 0);
    return;
  }
  if (ends_ms <= call->now_ms)
    engine_delete(call, object);
  else
    object->ends_ms = ends_ms;
  engine_reply_integer(call, 1);
}

static void expire(engine_call_t *call) {
  expire_by(call, "expire", ENGINE_SECONDS | ENGINE_FROM_NOW);
}

static void pexpire(engine_call_t *call) {
  expire_by(call, "pexpire", ENGINE_FROM_NOW);
}

static void expireat(engine_call_t *call) {
  expire_by(call, "expireat", ENGINE_SECONDS);
}

static void pexpireat(engine_call_t *call) {
  expire_by(call, "pexpireat", 0);
}

/* -2: there is no such key; -1: it has no end. Seconds are rounded. */
static void reply_end(engine_call_t *call, unsigned unit) {
  const engine_object_t *object = engine_look(call, call->argv[1]);
  if (object == NULL || object->ends_ms == ENGINE_FOREVER) {
    engine_reply_integer(call, object == NULL ? -2 : -1);
    return;
  }
  int64_t ms = object->ends_ms;
  if ((unit & ENGINE_FROM_NOW) != 0)
    ms -= call->now_ms;
  engine_reply_integer(call, (unit & ENGINE_SECONDS) == 0 ? ms : ms / 1000 + (ms % 1000 >= 500));
}

static void ttl(engine_call_t *call) {
  reply_end(call, ENGINE_SECONDS | ENGINE_FROM_NOW);
}

static void pttl(engine_call_t *call) {
  reply_end(call, ENGINE_FROM_NOW);
}

static void expiretime(engine_call_t *call) {
  reply_end(call, ENGINE_SECONDS);
}

static void pexpiretime(engine_call_t *call) {
  reply_end(call, 0);
}

static void persist(engine_call_t *call) {
  engine_object_t *object = engine_look(call, call->argv[1]);
  bool has_end = object != NULL && object->ends_ms != ENGINE_FOREVER;
  if (has_end)
    object->ends_ms = ENGINE_FOREVER;
  engine_reply_integer(call, has_end);
}

const engine_command_t engine_expiry_commands[] = {
    {"EXPIRE", expire, -3, ENGINE_WRITES, NULL},
    {"PEXPIRE", pexpire, -3, ENGINE_WRITES, NULL},
    {"EXPIREAT", expireat, -3, ENGINE_WRITES, NULL},
    {"PEXPIREAT", pexpireat, -3, ENGINE_WRITES, NULL},
    {"TTL", ttl, 2, 0, NULL},
    {"PTTL", pttl, 2, 0, NULL},
    {"EXPIRETIME", expiretime, 2, 0, NULL},
    {"PEXPIRETIME", pexpiretime, 2, 0, NULL},
    {"PERSIST", persist, 2, ENGINE_WRITES, NULL},
    {NULL, NULL, 0, 0, NULL},
};
