/* Lua's libraries for scripts: without outside access, without shared mutable state, without
 * randomness. */
#include <lualib.h>
#include <stdlib.h>

#include "sim/engine/lua/script.h"

/* ---- tables that refuse to be changed ---- */

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

/* An error {err = text} is caught as that text. */
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

/* ---- all of it ---- */

static void open_one(lua_State *lua, lua_CFunction function, const char *name) {
  lua_pushcfunction(lua, function);
  lua_pushstring(lua, name);
  lua_call(lua, 1, 0);
}

/* Removes random functions and everything that a script could change for others. */
static void remove_globals(lua_State *lua) {
  static const char *const names[] = {
      "print",  "dofile",     "loadfile",       "load",   "getfenv", "newproxy",    "setfenv",
      "rawset", "loadstring", "collectgarbage", "gcinfo", "rawget",  "setmetatable"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    lua_pushnil(lua);
    lua_setglobal(lua, names[i]);
  }
  lua_getglobal(lua, LUA_MATHLIBNAME);
  lua_pushnil(lua);
  lua_setfield(lua, -2, "random");
  lua_pop(lua, 1);
}

/* The metatable of ("x"):upper(). */
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
  hide_string_metatable(lua);
  lua_register(lua, "pcall", call_protected);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    lua_getglobal(lua, names[i]);
    engine_library_protect(lua);
    lua_setglobal(lua, names[i]);
  }
}
