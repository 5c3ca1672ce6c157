/* Keys, whatever is in them. When they end is in expiry.c. */
#include "command.h"

static void del(engine_call_t *call) {
  int64_t count = 0;
  for (size_t i = 1; i < call->argc; i++) {
    engine_object_t *object = engine_lookup(call, call->argv[i]);
    if (object == NULL)
      continue;
    engine_delete(call, object);
    count++;
  }
  engine_reply_integer(call, count);
}

static void exists(engine_call_t *call) {
  int64_t count = 0;
  for (size_t i = 1; i < call->argc; i++)
    count += engine_lookup(call, call->argv[i]) != NULL;
  engine_reply_integer(call, count);
}

static void type(engine_call_t *call) {
  const engine_object_t *object = engine_lookup(call, call->argv[1]);
  engine_reply_status(call, object == NULL ? "none" : engine_type_name(object->type));
}

static void rename_key(engine_call_t *call) {
  engine_object_t *object = engine_lookup(call, call->argv[1]);
  if (object == NULL) {
    engine_reply_error(call, "ERR no such key");
    return;
  }
  if (!engine_bytes_equal(call->argv[1], call->argv[2]))
    engine_rename(call, object, call->argv[2]);
  engine_reply_ok(call);
}

static void flush(engine_call_t *call) {
  bool known = call->argc == 1 || (call->argc == 2 && (engine_bytes_is(call->argv[1], "SYNC") ||
                                                       engine_bytes_is(call->argv[1], "ASYNC")));
  if (!known) {
    engine_reply_syntax_error(call);
    return;
  }
  engine_flush(call);
  engine_reply_ok(call);
}

const engine_command_t engine_key_commands[] = {
    {"DEL", del, -2, ENGINE_WRITES, NULL},
    {"UNLINK", del, -2, ENGINE_WRITES, NULL},
    {"EXISTS", exists, -2, 0, NULL},
    {"TYPE", type, 2, 0, NULL},
    {"RENAME", rename_key, 3, ENGINE_WRITES, NULL},
    {"FLUSHALL", flush, -1, ENGINE_WRITES, NULL},
    {NULL, NULL, 0, 0, NULL},
};
