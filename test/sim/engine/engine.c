/* The engine: creation, the table of commands, and inspection. */
#include <stdio.h>
#include <stdlib.h>

#include "command.h"

enum { NAME_MAX_LEN = 24, SLOTS = 1024 };

static const engine_command_t *const tables[] = {
    engine_key_commands,    engine_expiry_commands, engine_string_commands, engine_hash_commands,
    engine_zset_commands,   engine_bit_commands,    engine_pubsub_commands, engine_script_commands,
    engine_server_commands, engine_union_commands,  engine_list_commands,   engine_sketch_commands,
};

/* Open addressing by the hash of the name. */
static const engine_command_t *slots[SLOTS];
static bool slots_filled;

/* ---- its making ---- */

engine_t *engine_new(const engine_options_t *options) {
  engine_t *engine = engine_allocate(sizeof *engine);
  engine->options = *options;
  memcpy(engine->run_id, options->run_id, sizeof engine->run_id - 1);
  memset(engine->data_id, '0', sizeof engine->data_id - 1);
  if (options->data_id != NULL)
    memcpy(engine->data_id, options->data_id, sizeof engine->data_id - 1);
  else
    engine->options.data_offset = -1;
  engine->options.run_id = engine->options.data_id = NULL;
  return engine;
}

void engine_free(engine_t *engine) {
  if (engine == NULL)
    return;
  engine_pubsub_free(engine);
  engine_keys_clear(&engine->keys);
  engine_buffer_free(&engine->was);
  free(engine->scripts);
  free(engine);
}

void engine_shutdown(void) {
  engine_scripts_shutdown();
}

void engine_disconnect(engine_t *engine, engine_conn_t *conn) {
  engine_pubsub_leave(engine, conn);
}

/* ---- commands ---- */

static uint64_t hash_of(engine_bytes_t name) {
  return engine_hash(name.at, name.len) % SLOTS;
}

static void fill_slots(void) {
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    for (const engine_command_t *command = tables[i]; command->name != NULL; command++) {
      uint64_t slot = hash_of(engine_text(command->name));
      while (slots[slot] != NULL)
        slot = (slot + 1) % SLOTS;
      slots[slot] = command;
    }
  slots_filled = true;
}

const engine_command_t *engine_command_find(engine_bytes_t name) {
  char upper[NAME_MAX_LEN];
  if (name.len > sizeof upper)
    return NULL;
  if (!slots_filled)
    fill_slots();
  for (size_t i = 0; i < name.len; i++) {
    char c = name.at[i];
    upper[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
  }
  engine_bytes_t wanted = {upper, name.len};
  uint64_t slot = hash_of(wanted);
  while (slots[slot] != NULL && !engine_bytes_equal(wanted, engine_text(slots[slot]->name)))
    slot = (slot + 1) % SLOTS;
  return slots[slot];
}

/* The number of bytes of a word that are shown; a zero byte ends it, as in Redis. */
static int shown(engine_bytes_t word, size_t max) {
  return (int)strnlen(word.at, word.len < max ? word.len : max);
}

static void reply_unknown(engine_call_t *call) {
  enum { SHOWN = 128 };
  char args[SHOWN + 8] = "";
  size_t len = 0;
  if (call->in_script) {
    engine_reply_error(call, "ERR Unknown Redis command called from script");
    return;
  }
  for (size_t i = 1; i < call->argc && len < SHOWN; i++) {
    engine_bytes_t word = call->argv[i];
    size_t n = (size_t)shown(word, SHOWN - len);
    args[len++] = '\'';
    memcpy(args + len, word.at, n);
    memcpy(args + len + n, "' ", 2);
    len += n + 2;
  }
  engine_bytes_t name = call->argv[0];
  engine_reply_error(call, "ERR unknown command '%.*s', with args beginning with: %.*s",
                     shown(name, SHOWN), name.at, (int)len, args);
}

static void reply_unknown_part(engine_call_t *call, const engine_command_t *whole) {
  engine_bytes_t name = call->argv[1];
  if (call->in_script)
    engine_reply_error(call, "ERR Unknown Redis command called from script");
  else
    engine_reply_error(call, "ERR unknown subcommand '%.*s'. Try %s HELP.", shown(name, 128),
                       name.at, whole->name);
}

/* "client|setname". */
static size_t print_name(const engine_call_t *call, const engine_command_t *whole,
                         char name[NAME_MAX_LEN * 2]) {
  bool is_part = call->command != whole;
  int len = snprintf(name, NAME_MAX_LEN * 2, "%s%s%s", whole->name, is_part ? "|" : "",
                     is_part ? call->command->name : "");
  for (int i = 0; i < len; i++)
    name[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
  return (size_t)len;
}

void engine_reply_wrong_number(engine_call_t *call, const engine_command_t *whole) {
  char name[NAME_MAX_LEN * 2];
  int len = (int)print_name(call, whole, name);
  engine_reply_error(call, "ERR wrong number of arguments for '%.*s' command", len, name);
}

static void reply_arity(engine_call_t *call, const engine_command_t *whole) {
  if (call->in_script)
    engine_reply_error(call, "ERR Wrong number of args calling Redis command from script");
  else
    engine_reply_wrong_number(call, whole);
}

static bool arity_is_right(const engine_command_t *command, size_t argc) {
  int arity = command->arity;
  return arity < 0 ? argc >= (size_t)-arity : argc == (size_t)arity;
}

/* Finds the command and the part of it; or complains. */
static bool resolve(engine_call_t *call) {
  const engine_command_t *whole = engine_command_find(call->argv[0]);
  if (whole == NULL) {
    reply_unknown(call);
    return false;
  }
  call->command = whole;
  if (whole->parts != NULL && call->argc > 1) {
    call->command = whole->parts;
    while (call->command->name != NULL && !engine_bytes_is(call->argv[1], call->command->name))
      call->command++;
    if (call->command->name == NULL) {
      reply_unknown_part(call, whole);
      return false;
    }
  }
  if (arity_is_right(call->command, call->argc))
    return true;
  reply_arity(call, whole);
  return false;
}

/* False: an argument is wrong, and the error is the reply. */
static bool check_arguments(engine_call_t *call, unsigned flags) {
  if (((flags & ENGINE_INTEGER_2) != 0 &&
       !engine_get_integer(call, call->argv[2], &call->number[0])) ||
      ((flags & ENGINE_INTEGER_3) != 0 &&
       !engine_get_integer(call, call->argv[3], &call->number[1])))
    return false;
  if (flags >> ENGINE_TYPE_SHIFT == 0)
    return true;
  engine_type_t type = (engine_type_t)((flags >> ENGINE_TYPE_SHIFT) - 1);
  return (flags & ENGINE_MAKES) != 0 ? engine_find_or_make(call, call->argv[1], type, &call->object)
                                     : engine_find(call, call->argv[1], type, &call->object);
}

/* A connection that has subscribed listens, and in RESP2 may do little else. */
static void refuse_subscriber(engine_call_t *call) {
  char name[NAME_MAX_LEN * 2];
  int len = (int)print_name(call, engine_command_find(call->argv[0]), name);
  engine_reply_error(call,
                     "ERR Can't execute '%.*s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / "
                     "QUIT / RESET are allowed in this context",
                     len, name);
}

void engine_run(engine_call_t *call) {
  if (!resolve(call))
    return;
  unsigned flags = call->command->flags;
  if (call->in_script && (flags & ENGINE_NO_SCRIPT) != 0)
    engine_reply_error(call, "ERR This Redis command is not allowed from script");
  else if (!call->in_script && call->conn->channels > 0 && !engine_is_resp3(call) &&
           (flags & ENGINE_SUBSCRIBED) == 0)
    refuse_subscriber(call);
  else {
    call->engine->writes += (flags & ENGINE_WRITES) != 0;
    if (check_arguments(call, flags))
      call->command->run(call);
  }
}

void engine_execute(engine_t *engine, engine_conn_t *conn, uint64_t now_us,
                    const engine_bytes_t *argv, size_t argc, engine_buffer_t *out) {
  engine_call_t call = {.engine = engine,
                        .conn = conn,
                        .argv = argv,
                        .argc = argc,
                        .out = out,
                        .now_us = now_us,
                        .now_ms = (int64_t)(now_us / 1000)};
  engine_run(&call);
}

/* ---- from outside ---- */

struct engine_image {
  engine_table_t keys;
};

engine_image_t *engine_save(const engine_t *engine) {
  engine_image_t *image = engine_allocate(sizeof *image);
  engine_keys_copy(&image->keys, &engine->keys);
  return image;
}

void engine_load(engine_t *engine, const engine_image_t *image) {
  engine_keys_clear(&engine->keys);
  engine_keys_copy(&engine->keys, &image->keys);
}

void engine_image_free(engine_image_t *image) {
  if (image == NULL)
    return;
  engine_keys_clear(&image->keys);
  free(image);
}

size_t engine_each_key(const engine_t *engine, uint64_t now_us, engine_key_fn fn, void *ctx) {
  size_t count = 0;
  int64_t now_ms = (int64_t)(now_us / 1000);
  for (engine_entry_t *entry = engine->keys.first; entry != NULL; entry = entry->after) {
    const engine_object_t *object = (const engine_object_t *)entry;
    if (engine_has_ended(object, now_ms))
      continue;
    count++;
    if (fn != NULL)
      fn(ctx, entry->key, engine_type_name(object->type),
         object->ends_ms == ENGINE_FOREVER ? -1 : object->ends_ms - now_ms);
  }
  return count;
}

/* The number that it begins with, and that a blank ends; 0: it does not. */
static double time_in(const engine_buffer_t *value) {
  double sum = 0;
  for (size_t i = 0; i < value->len && value->at[i] >= '0' && value->at[i] <= '9'; i++)
    sum = sum * 10 + (value->at[i] - '0');
  return memchr(engine_buffer_bytes(value).at, ' ', value->len) != NULL ? sum : 0;
}

static void each_value_of(const engine_object_t *object, engine_value_fn fn, void *ctx) {
  engine_bytes_t key = object->entry.key;
  const engine_table_t *table = object->type == ENGINE_ZSET   ? &object->as.zset.members
                                : object->type == ENGINE_HASH ? &object->as.hash
                                                              : &object->as.set;
  if (object->type == ENGINE_STRING) {
    fn(ctx, key, engine_buffer_bytes(&object->as.string), INT64_MAX);
    return;
  }
  if (object->type == ENGINE_LIST) {
    for (size_t i = 0; i < object->as.list.count; i++)
      fn(ctx, key, engine_buffer_bytes(&object->as.list.items[i]), INT64_MAX);
    return;
  }
  for (const engine_entry_t *entry = table->first; entry != NULL; entry = entry->after) {
    double until = object->type == ENGINE_ZSET   ? ((const engine_score_t *)entry)->score
                   : object->type == ENGINE_HASH ? time_in(&((const engine_field_t *)entry)->value)
                                                 : 0;
    fn(ctx, key, entry->key, until > 1e12 && until < 1e15 ? (int64_t)until : INT64_MAX);
    if (object->type == ENGINE_HASH)
      fn(ctx, key, engine_buffer_bytes(&((const engine_field_t *)entry)->value), INT64_MAX);
  }
}

void engine_each_value(const engine_t *engine, uint64_t now_us, engine_value_fn fn, void *ctx) {
  for (engine_entry_t *entry = engine->keys.first; entry != NULL; entry = entry->after)
    if (!engine_has_ended((const engine_object_t *)entry, (int64_t)(now_us / 1000)))
      each_value_of((const engine_object_t *)entry, fn, ctx);
}

engine_bytes_t engine_peek(const engine_t *engine, uint64_t now_us, engine_bytes_t key) {
  const engine_object_t *object = (const engine_object_t *)engine_table_find(&engine->keys, key);
  if (object == NULL || object->type != ENGINE_STRING ||
      engine_has_ended(object, (int64_t)(now_us / 1000)))
    return (engine_bytes_t){NULL, 0};
  return engine_buffer_bytes(&object->as.string);
}

uint64_t engine_writes(const engine_t *engine) {
  return engine->writes;
}
