/* EVAL, EVALSHA and SCRIPT. A text is compiled once in a process; each server has a bit for
 * each compiled script that it knows. */
#include <openssl/evp.h>
#include <stdlib.h>

#include "sim/engine/lua/script.h"

typedef struct script {
  engine_entry_t entry; /* the text */
  char sha1[ENGINE_SHA1_LEN + 1];
  size_t index; /* from 0 */
  int function;
} script_t;

typedef struct script_name {
  engine_entry_t entry; /* the sha1 */
  script_t *script;
} script_name_t;

/* Of all engines. */
static engine_table_t by_text, by_sha1;

void engine_sha1(const char *at, size_t len, char hex[ENGINE_SHA1_LEN + 1]) {
  static const char digits[] = "0123456789abcdef";
  unsigned char bytes[EVP_MAX_MD_SIZE];
  if (EVP_Digest(at, len, bytes, NULL, EVP_sha1(), NULL) != 1)
    abort();
  for (size_t i = 0; i < ENGINE_SHA1_LEN; i++)
    hex[i] = digits[i % 2 == 0 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15];
  hex[ENGINE_SHA1_LEN] = '\0';
}

/* ---- which are known ---- */

static bool is_loaded(const engine_t *engine, const script_t *script) {
  size_t byte = script->index / 8;
  return byte < engine->scripts_cap && (engine->scripts[byte] >> (script->index % 8) & 1) != 0;
}

static void mark_loaded(engine_t *engine, const script_t *script) {
  size_t byte = script->index / 8, cap = engine->scripts_cap;
  if (byte >= cap) {
    engine->scripts_cap = 2 * byte + 16;
    engine->scripts = engine_reallocate(engine->scripts, engine->scripts_cap);
    memset(engine->scripts + cap, 0, engine->scripts_cap - cap);
  }
  engine->scripts[byte] = (uint8_t)(engine->scripts[byte] | 1U << (script->index % 8));
}

void engine_scripts_forget(engine_t *engine) {
  if (engine->scripts_cap > 0)
    memset(engine->scripts, 0, engine->scripts_cap);
}

void engine_scripts_shutdown(void) {
  engine_table_clear(&by_text);
  engine_table_clear(&by_sha1);
  engine_interpreter_close();
}

static script_t *remember(engine_bytes_t text, int function) {
  script_t *script = engine_table_add(&by_text, text, sizeof *script);
  engine_sha1(text.at, text.len, script->sha1);
  script->index = by_text.count - 1;
  script->function = function;
  script_name_t *name = engine_table_add(&by_sha1, engine_text(script->sha1), sizeof *name);
  name->script = script;
  return script;
}

/* The script of a text, which the server knows from now on. NULL: it does not compile, and the
 * error is the reply. */
static const script_t *load(engine_call_t *call, engine_bytes_t text) {
  script_t *script = (script_t *)engine_table_find(&by_text, text);
  if (script == NULL) {
    int function = engine_interpreter_compile(call, text);
    if (function == LUA_NOREF)
      return NULL;
    script = remember(text, function);
  }
  mark_loaded(call->engine, script);
  return script;
}

/* NULL: the server knows none of that sha1. */
static const script_t *find(const engine_t *engine, engine_bytes_t sha1) {
  char lower[ENGINE_SHA1_LEN];
  if (sha1.len != sizeof lower)
    return NULL;
  for (size_t i = 0; i < sizeof lower; i++)
    lower[i] = sha1.at[i] >= 'A' && sha1.at[i] <= 'Z' ? (char)(sha1.at[i] - 'A' + 'a') : sha1.at[i];
  const script_name_t *name =
      (const script_name_t *)engine_table_find(&by_sha1, (engine_bytes_t){lower, sizeof lower});
  return name != NULL && is_loaded(engine, name->script) ? name->script : NULL;
}

/* ---- EVAL ---- */

static bool read_count(engine_call_t *call, size_t *count) {
  int64_t value, most = (int64_t)call->argc - 3;
  if (!engine_get_integer(call, call->argv[2], &value))
    return false;
  if (value > most)
    engine_reply_error(call, "ERR Number of keys can't be greater than number of args");
  else if (value < 0)
    engine_reply_error(call, "ERR Number of keys can't be negative");
  *count = (size_t)value;
  return value >= 0 && value <= most;
}

static void run(engine_call_t *call, const script_t *script, size_t count) {
  const engine_bytes_t *keys = call->argv + 3;
  engine_interpreter_run(call, script->function, script->sha1, keys, count, keys + count,
                         call->argc - 3 - count);
}

static void eval(engine_call_t *call) {
  size_t count;
  if (!read_count(call, &count))
    return;
  const script_t *script = load(call, call->argv[1]);
  if (script != NULL)
    run(call, script, count);
}

static void evalsha(engine_call_t *call) {
  size_t count = 0;
  if (call->argv[1].len == ENGINE_SHA1_LEN && !read_count(call, &count))
    return;
  const script_t *script = find(call->engine, call->argv[1]);
  if (script != NULL)
    run(call, script, count);
  else
    engine_reply_error(call, "NOSCRIPT No matching script. Please use EVAL.");
}

/* ---- SCRIPT ---- */

static void script_load(engine_call_t *call) {
  const script_t *script = load(call, call->argv[2]);
  if (script != NULL)
    engine_reply_bulk(call, script->sha1, ENGINE_SHA1_LEN);
}

static void script_flush(engine_call_t *call) {
  bool known = call->argc == 2 || (call->argc == 3 && (engine_bytes_is(call->argv[2], "SYNC") ||
                                                       engine_bytes_is(call->argv[2], "ASYNC")));
  if (!known) {
    engine_reply_error(call, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
    return;
  }
  engine_scripts_forget(call->engine);
  engine_reply_ok(call);
}

static const engine_command_t script_parts[] = {
    {"LOAD", script_load, 3, ENGINE_NO_SCRIPT, NULL},
    {"FLUSH", script_flush, -2, ENGINE_NO_SCRIPT, NULL},
    {NULL, NULL, 0, 0, NULL},
};

const engine_command_t engine_script_commands[] = {
    {"EVAL", eval, -3, ENGINE_NO_SCRIPT, NULL},
    {"EVALSHA", evalsha, -3, ENGINE_NO_SCRIPT, NULL},
    {"SCRIPT", NULL, -2, ENGINE_NO_SCRIPT, script_parts},
    {NULL, NULL, 0, 0, NULL},
};
