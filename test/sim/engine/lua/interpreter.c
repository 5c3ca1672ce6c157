/* The Lua interpreter, shared by all engines, and the functions of Redis for scripts. */
#include <stdio.h>
#include <stdlib.h>

#include "sim/engine/lua/script.h"

enum { WORDS_MAX = 8192 }; /* more than fit on Lua's stack of a C function */

/* Slots at the bottom of the stack. */
enum { GLOBALS = 1, HANDLER, KEYS_NAME, ARGV_NAME };

static lua_State *state;          /* NULL until the first script */
static engine_call_t *running;    /* the EVAL */
static engine_buffer_t answer;    /* reply of a script's command */
static engine_buffer_t complaint; /* its error */

/* ---- errors ---- */

/* Makes a table of the thrown value and adds its position. */
static int on_error(lua_State *lua) {
  lua_Debug where;
  bool known = lua_getstack(lua, 1, &where) && lua_getinfo(lua, "Sl", &where);
  if (known && strcmp(where.what, "C") == 0)
    known = lua_getstack(lua, 2, &where) && lua_getinfo(lua, "Sl", &where);
  if (!lua_istable(lua, 1)) {
    lua_newtable(lua);
    lua_pushliteral(lua, "ERR ");
    lua_getfield(lua, LUA_GLOBALSINDEX, "tostring");
    lua_pushvalue(lua, 1);
    lua_call(lua, 1, 1);
    lua_concat(lua, 2);
    lua_setfield(lua, -2, "err");
    lua_replace(lua, 1);
  }
  lua_settop(lua, 1);
  if (known) {
    lua_pushstring(lua, where.source);
    lua_setfield(lua, 1, "source");
    lua_pushinteger(lua, where.currentline);
    lua_setfield(lua, 1, "line");
  }
  return 1;
}

static void complain(const char *text) {
  engine_buffer_add(&complaint, text, strlen(text));
}

/* Replies the error on the top of the stack: a table of on_error(), or a string if there was no
 * memory. */
static void reply_error(engine_call_t *call, const char *sha1) {
  const char *text; /* a 0 byte ends it, as in Redis */
  complaint.len = 0;
  if (lua_istable(state, -1)) {
    lua_getfield(state, -1, "line");
    lua_getfield(state, -2, "source");
    lua_getfield(state, -3, "err");
  } else {
    lua_pushnil(state);
    lua_pushnil(state);
    lua_pushvalue(state, -3);
    complain("ERR ");
  }
  text = lua_tostring(state, -1);
  complain(text != NULL ? text : "ERR unknown error");
  if (lua_isstring(state, -2) && lua_isstring(state, -3)) {
    complain(" script: ");
    complain(sha1);
    complain(", on ");
    complain(lua_tostring(state, -2));
    complain(":");
    complain(lua_tostring(state, -3));
    complain(".");
  }
  engine_reply_error_bytes(call, complaint.at, complaint.len);
}

/* ---- redis.call ---- */

/* A number as a word; it stays on the stack at that place. */
static void print_number(lua_State *lua, int index) {
  char text[64];
  int len = snprintf(text, sizeof text, "%.17g", lua_tonumber(lua, index));
  lua_pushlstring(lua, text, len < 0 ? 0 : (size_t)len);
  lua_replace(lua, index);
}

static bool read_words(lua_State *lua, engine_bytes_t *words, int count) {
  for (int i = 0; i < count; i++) {
    int type = lua_type(lua, i + 1);
    if (type == LUA_TNUMBER)
      print_number(lua, i + 1);
    else if (type != LUA_TSTRING)
      return false;
    words[i].at = lua_tolstring(lua, i + 1, &words[i].len);
  }
  return true;
}

static void push_complaint(lua_State *lua, const char *text) {
  engine_push_error(lua, text, strlen(text));
}

/* Calls what the arguments say, and pushes its reply. False: that is an error. */
static bool call_command(lua_State *lua) {
  static engine_bytes_t words[WORDS_MAX];
  int count = lua_gettop(lua);
  if (count == 0) {
    push_complaint(lua, "ERR Please specify at least one argument for this redis lib call");
    return false;
  }
  if (count > WORDS_MAX || !read_words(lua, words, count)) {
    push_complaint(lua, "ERR Lua redis lib command arguments must be strings or integers");
    return false;
  }
  engine_call_t call = *running;
  call.argv = words;
  call.argc = (size_t)count;
  call.out = &answer;
  call.in_script = true;
  answer.len = 0;
  engine_run(&call);
  lua_settop(lua, 0); /* as many words as there may be leave no room for the reply */
  engine_to_lua(lua, &answer);
  return answer.at[0] != '-';
}

static int redis_call(lua_State *lua) {
  return call_command(lua) ? 1 : lua_error(lua);
}

static int redis_pcall(lua_State *lua) {
  (void)call_command(lua);
  return 1;
}

/* ---- the rest of redis ---- */

static bool is_one_string(lua_State *lua) {
  bool is = lua_gettop(lua) == 1 && lua_type(lua, 1) == LUA_TSTRING;
  if (!is)
    push_complaint(lua, "ERR wrong number or type of arguments");
  return is;
}

/* An error text begins with a code; ERR is the default. A leading '-' is not part of it. */
static int redis_error_reply(lua_State *lua) {
  if (!is_one_string(lua))
    return 1;
  const char *text = lua_tostring(lua, 1);
  size_t len = strlen(text);
  if (len > 0 && text[0] == '-') {
    text++;
    len--;
  }
  while (len > 0 && (text[len - 1] == '\r' || text[len - 1] == '\n'))
    len--;
  lua_createtable(lua, 0, 1);
  lua_pushstring(lua, memchr(text, ' ', len) != NULL ? "" : "ERR ");
  lua_pushlstring(lua, text, len);
  lua_concat(lua, 2);
  lua_setfield(lua, -2, "err");
  return 1;
}

static void open_redis(lua_State *lua) {
  static const luaL_Reg functions[] = {
      {"call", redis_call},
      {"pcall", redis_pcall},
      {"error_reply", redis_error_reply},
      {NULL, NULL},
  };
  lua_newtable(lua);
  luaL_register(lua, NULL, functions);
  engine_library_protect(lua);
  lua_setglobal(lua, "redis");
}

/* ---- the interpreter ---- */

static int on_missing_global(lua_State *lua) {
  lua_getfield(lua, LUA_GLOBALSINDEX, "tostring");
  lua_pushvalue(lua, 2);
  lua_call(lua, 1, 1);
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                    lua_tostring(lua, -1));
}

/* The globals that scripts see show the true ones, and cannot be changed. */
static void protect_globals(lua_State *lua) {
  lua_newtable(lua);
  lua_pushcfunction(lua, on_missing_global);
  lua_setfield(lua, -2, "__index");
  lua_setmetatable(lua, GLOBALS);
  lua_pushvalue(lua, GLOBALS);
  engine_library_protect(lua);
  lua_pushvalue(lua, -1);
  lua_setfield(lua, GLOBALS, "_G");
  lua_replace(lua, LUA_GLOBALSINDEX);
}

static lua_State *open_state(void) {
  lua_State *lua = luaL_newstate();
  if (lua == NULL)
    abort();
  engine_library_open(lua);
  engine_struct_open(lua);
  open_redis(lua);
  lua_pushvalue(lua, LUA_GLOBALSINDEX);
  lua_pushcfunction(lua, on_error);
  lua_pushliteral(lua, "KEYS");
  lua_pushliteral(lua, "ARGV");
  protect_globals(lua);
  return lua;
}

void engine_interpreter_close(void) {
  if (state != NULL)
    lua_close(state);
  state = NULL;
  engine_buffer_free(&answer);
  engine_buffer_free(&complaint);
}

int engine_interpreter_compile(engine_call_t *call, engine_bytes_t text) {
  if (state == NULL)
    state = open_state();
  if (luaL_loadbuffer(state, text.at, text.len, "@user_script") == 0)
    return luaL_ref(state, LUA_REGISTRYINDEX);
  complaint.len = 0;
  complain("ERR Error compiling script (new function): ");
  complain(lua_tostring(state, -1));
  engine_reply_error_bytes(call, complaint.at, complaint.len);
  lua_pop(state, 1);
  return LUA_NOREF;
}

static void set_words(int name, const engine_bytes_t *words, size_t count) {
  lua_pushvalue(state, name);
  lua_createtable(state, (int)count, 0);
  for (size_t i = 0; i < count; i++) {
    lua_pushlstring(state, words[i].at, words[i].len);
    lua_rawseti(state, -2, (int)i + 1);
  }
  lua_rawset(state, GLOBALS);
}

void engine_interpreter_run(engine_call_t *call, int function, const char *sha1,
                            const engine_bytes_t *keys, size_t keys_count,
                            const engine_bytes_t *rest, size_t rest_count) {
  int top = lua_gettop(state);
  running = call;
  set_words(KEYS_NAME, keys, keys_count);
  set_words(ARGV_NAME, rest, rest_count);
  lua_rawgeti(state, LUA_REGISTRYINDEX, function);
  if (lua_pcall(state, 0, 1, HANDLER) == 0)
    engine_from_lua(state, call);
  else
    reply_error(call, sha1);
  lua_settop(state, top);
  running = NULL;
}
