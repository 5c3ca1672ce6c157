/* What scripts find of Lua's own libraries: nothing that reaches outside, nothing that one script could change for
 * another, and nothing that depends on chance. */
#include <lualib.h>
#include <math.h>
#include <stdlib.h>

#include "sim/engine/lua/script.h"

static uint64_t *random_state;

void engine_library_use(uint64_t *random) {
  random_state = random;
}

/* ---- tables that refuse to be changed ------------------------------------------------------------------ */

#define REFUSAL "Attempt to modify a readonly table"

static int refuse(lua_State *lua) {
  return luaL_error(lua, REFUSAL);
}

void engine_library_protect(lua_State *lua) {
  lua_newtable(lua); /* what is shown */
  lua_newtable(lua); /* its metatable */
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, refuse);
  lua_setfield(lua, -2, "__newindex");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_setmetatable(lua, -2);
  lua_remove(lua, -2);
}

static bool is_protected(lua_State *lua, int index) {
  if (!lua_istable(lua, index) || !lua_getmetatable(lua, index))
    return false;
  lua_getfield(lua, -1, "__newindex");
  bool result = lua_tocfunction(lua, -1) == refuse;
  lua_pop(lua, 2);
  return result;
}

/* rawset and setmetatable, which is the upvalue. */
static int change(lua_State *lua) {
  if (is_protected(lua, 1)) {
    lua_pushliteral(lua, REFUSAL);
    return lua_error(lua);
  }
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, lua_gettop(lua) - 1, LUA_MULTRET);
  return lua_gettop(lua);
}

/* ---- functions that are other ones --------------------------------------------------------------------- */

/* An error that is {err = text} is that text for whoever catches it. */
static int call_protected(lua_State *lua) {
  luaL_checkany(lua, 1);
  int status = lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0);
  if (status != 0 && lua_istable(lua, -1)) {
    lua_getfield(lua, -1, "err");
    if (lua_isstring(lua, -1))
      lua_replace(lua, -2);
    else
      lua_pop(lua, 1);
  }
  lua_pushboolean(lua, status == 0);
  lua_insert(lua, 1);
  return lua_gettop(lua);
}

/* Bytecode begins with a byte that no text begins with; behind a blank it is no bytecode. */
int engine_library_load(lua_State *lua, const char *at, size_t len, const char *name) {
  if (len == 0 || at[0] != LUA_SIGNATURE[0])
    return luaL_loadbuffer(lua, at, len, name);
  engine_buffer_t text = {0};
  engine_buffer_add(&text, " ", 1);
  engine_buffer_add(&text, at, len);
  int status = luaL_loadbuffer(lua, text.at, text.len, name);
  engine_buffer_free(&text);
  return status;
}

static int load_string(lua_State *lua) {
  size_t len;
  const char *text = luaL_checklstring(lua, 1, &len);
  if (engine_library_load(lua, text, len, luaL_optstring(lua, 2, text)) == 0)
    return 1;
  lua_pushnil(lua);
  lua_insert(lua, -2);
  return 2;
}

/* When garbage is collected is not the scripts' business. */
static int collect_nothing(lua_State *lua) {
  lua_pushnumber(lua, 0);
  return 1;
}

/* ---- numbers by chance --------------------------------------------------------------------------------- */

/* The generator of lrand48(): what Redis has, so that the numbers are the same, too. */
static lua_Number next_random(void) {
  const uint64_t modulus = UINT64_C(1) << 48;
  *random_state = (*random_state * UINT64_C(0x5deece66d) + 11) % modulus;
  return (lua_Number)((*random_state >> 17) % INT32_MAX) / INT32_MAX;
}

static int math_random(lua_State *lua) {
  lua_Number number = next_random();
  int low = 1, high;
  switch (lua_gettop(lua)) {
  case 0:
    lua_pushnumber(lua, number);
    return 1;
  case 1:
    high = luaL_checkint(lua, 1);
    luaL_argcheck(lua, low <= high, 1, "interval is empty");
    break;
  case 2:
    low = luaL_checkint(lua, 1);
    high = luaL_checkint(lua, 2);
    luaL_argcheck(lua, low <= high, 2, "interval is empty");
    break;
  default:
    return luaL_error(lua, "wrong number of arguments");
  }
  lua_pushnumber(lua, floor(number * ((lua_Number)high - low + 1)) + low);
  return 1;
}

static int math_randomseed(lua_State *lua) {
  *random_state = (uint64_t)(uint32_t)luaL_checkint(lua, 1) << 16 | 0x330e;
  return 0;
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

static void open_one(lua_State *lua, lua_CFunction function, const char *name) {
  lua_pushcfunction(lua, function);
  lua_pushstring(lua, name);
  lua_call(lua, 1, 0);
}

static void guard(lua_State *lua, const char *name) {
  lua_getglobal(lua, name);
  lua_pushcclosure(lua, change, 1);
  lua_setglobal(lua, name);
}

static void remove_globals(lua_State *lua) {
  static const char *const names[] = {"print",   "dofile",   "loadfile", "load",
                                      "getfenv", "newproxy", "setfenv"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    lua_pushnil(lua);
    lua_setglobal(lua, names[i]);
  }
}

static void replace_random(lua_State *lua) {
  lua_getglobal(lua, LUA_MATHLIBNAME);
  lua_pushcfunction(lua, math_random);
  lua_setfield(lua, -2, "random");
  lua_pushcfunction(lua, math_randomseed);
  lua_setfield(lua, -2, "randomseed");
  lua_pop(lua, 1);
}

/* What ("x"):upper() looks in. */
static void hide_string_metatable(lua_State *lua) {
  lua_pushliteral(lua, "");
  lua_getmetatable(lua, -1);
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_pop(lua, 2);
}

void engine_library_open(lua_State *lua) {
  static const char *const names[] = {LUA_COLIBNAME, LUA_TABLIBNAME, LUA_STRLIBNAME,
                                      LUA_MATHLIBNAME};
  open_one(lua, luaopen_base, "");
  open_one(lua, luaopen_table, LUA_TABLIBNAME);
  open_one(lua, luaopen_string, LUA_STRLIBNAME);
  open_one(lua, luaopen_math, LUA_MATHLIBNAME);
  remove_globals(lua);
  replace_random(lua);
  hide_string_metatable(lua);
  lua_register(lua, "pcall", call_protected);
  lua_register(lua, "loadstring", load_string);
  lua_register(lua, "collectgarbage", collect_nothing);
  lua_register(lua, "gcinfo", collect_nothing);
  guard(lua, "rawset");
  guard(lua, "setmetatable");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    lua_getglobal(lua, names[i]);
    engine_library_protect(lua);
    lua_setglobal(lua, names[i]);
  }
}
