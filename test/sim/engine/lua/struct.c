/* The library `struct` for scripts: doubles as bytes and back. Of its formats belay's scripts
 * use one: "<ddd", 8 little-endian bytes for each d. */
#include "sim/engine/lua/script.h"

/* The number of doubles of a format. */
static int read_format(lua_State *lua) {
  const char *format = luaL_checkstring(lua, 1);
  size_t count = strspn(format + (format[0] == '<'), "d");
  luaL_argcheck(lua, format[0] == '<' && format[1 + count] == '\0', 1,
                "a format that the engine does not know");
  return (int)count;
}

/* struct.pack(format, value, ...) */
static int pack(lua_State *lua) {
  luaL_Buffer out;
  int count = read_format(lua);
  lua_pushnil(lua); /* result of missing bytes; the buffer may append to it */
  luaL_buffinit(lua, &out);
  for (int i = 2; i < 2 + count; i++) {
    lua_Number number = luaL_checknumber(lua, i);
    luaL_addlstring(&out, (const char *)&number, sizeof number);
  }
  luaL_pushresult(&out);
  return 1;
}

/* struct.unpack(format, bytes[, from]): the values, and where the next one would begin. */
static int unpack(lua_State *lua) {
  int count = read_format(lua);
  size_t len;
  const char *bytes = luaL_checklstring(lua, 2, &len);
  size_t at = (size_t)luaL_optinteger(lua, 3, 1);
  luaL_argcheck(lua, at > 0, 3, "offset must be 1 or greater");
  at--;
  luaL_checkstack(lua, count + 1, "too many results");
  for (int i = 0; i < count; i++, at += sizeof(lua_Number)) {
    lua_Number number;
    luaL_argcheck(lua, sizeof number <= len && at <= len - sizeof number, 2,
                  "data string too short");
    memcpy(&number, bytes + at, sizeof number);
    lua_pushnumber(lua, number);
  }
  lua_pushinteger(lua, (lua_Integer)(at + 1));
  return count + 1;
}

void engine_struct_open(lua_State *lua) {
  static const luaL_Reg functions[] = {{"pack", pack}, {"unpack", unpack}, {NULL, NULL}};
  lua_newtable(lua);
  luaL_register(lua, NULL, functions);
  engine_library_protect(lua);
  lua_setglobal(lua, "struct");
}
