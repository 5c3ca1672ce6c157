/* Expiry of keys. */
#include "command.h"

bool engine_to_end(engine_call_t *call, const char *name, int64_t value, bool from_now,
                   int64_t *ends_ms) {
  bool fits = !__builtin_add_overflow(value, from_now ? call->now_ms : 0, ends_ms);
  if (!fits)
    engine_reply_error(call, "ERR invalid expire time in '%s' command", name);
  return fits;
}

/* PEXPIRE, PEXPIREAT. */
static void pexpire(engine_call_t *call) {
  bool from_now = (call->command->flags & ENGINE_SECOND) == 0;
  int64_t value, ends_ms;
  if (call->argc > 3) {
    engine_bytes_t word = call->argv[3];
    engine_reply_error(call, "ERR Unsupported option %.*s", (int)strnlen(word.at, word.len),
                       word.at);
    return;
  }
  if (!engine_get_integer(call, call->argv[2], &value) ||
      !engine_to_end(call, from_now ? "pexpire" : "pexpireat", value, from_now, &ends_ms))
    return;
  engine_object_t *object = engine_lookup(call, call->argv[1]);
  if (object == NULL) {
    engine_reply_integer(call, 0);
    return;
  }
  if (ends_ms <= call->now_ms)
    engine_delete(call, object);
  else
    object->ends_ms = ends_ms;
  engine_reply_integer(call, 1);
}

/* -2: there is no such key; -1: it has no end. */
static void pttl(engine_call_t *call) {
  const engine_object_t *object = engine_lookup(call, call->argv[1]);
  if (object == NULL || object->ends_ms == ENGINE_FOREVER)
    engine_reply_integer(call, object == NULL ? -2 : -1);
  else
    engine_reply_integer(call, object->ends_ms - call->now_ms);
}

static void persist(engine_call_t *call) {
  engine_object_t *object = engine_lookup(call, call->argv[1]);
  bool has_end = object != NULL && object->ends_ms != ENGINE_FOREVER;
  if (has_end)
    object->ends_ms = ENGINE_FOREVER;
  engine_reply_integer(call, has_end);
}

const engine_command_t engine_expiry_commands[] = {
    {"PEXPIRE", pexpire, -3, ENGINE_WRITES, NULL},
    {"PEXPIREAT", pexpire, -3, ENGINE_WRITES | ENGINE_SECOND, NULL},
    {"PTTL", pttl, 2, 0, NULL},
    {"PERSIST", persist, 2, ENGINE_WRITES, NULL},
    {NULL, NULL, 0, 0, NULL},
};
