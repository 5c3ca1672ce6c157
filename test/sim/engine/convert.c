/* Values on their way into Lua and out of it, as Redis converts them. */
#include <stdlib.h>

#include "sim/engine/lua/script.h"

void engine_push_error(lua_State *lua, const char *at, size_t len) {
  lua_createtable(lua, 0, 2);
  lua_pushlstring(lua, at, len);
  lua_setfield(lua, -2, "err");
}

/* ---- into ---- */

/* Reads the number of a line, and goes behind the line. */
static int64_t read_number(const char **at) {
  bool negative = **at == '-';
  const char *digit = *at + negative;
  uint64_t sum = 0;
  for (; *digit != '\r'; digit++)
    sum = sum * 10 + (uint64_t)(*digit - '0');
  *at = digit + 2;
  return negative ? (int64_t)(0 - sum) : (int64_t)sum;
}

static void push_bulk(lua_State *lua, const char **at) {
  int64_t len = read_number(at);
  if (len < 0) {
    lua_pushboolean(lua, 0);
    return;
  }
  lua_pushlstring(lua, *at, (size_t)len);
  *at += len + 2;
}

static void push_line(lua_State *lua, const char **at, const char *name) {
  const char *end = rawmemchr(*at, '\r');
  lua_createtable(lua, 0, 2);
  lua_pushlstring(lua, *at, (size_t)(end - *at));
  lua_setfield(lua, -2, name);
  *at = end + 2;
}

/* Replies of commands are well-formed and not deep. */
static void push_value(lua_State *lua, const char **at) {
  int64_t count;
  luaL_checkstack(lua, 4, "reply");
  switch (*(*at)++) {
  case ':':
    lua_pushnumber(lua, (lua_Number)read_number(at));
    break;
  case '$':
    push_bulk(lua, at);
    break;
  case '+':
    push_line(lua, at, "ok");
    break;
  case '-':
    push_line(lua, at, "err");
    break;
  default:
    count = read_number(at);
    if (count < 0) {
      lua_pushboolean(lua, 0);
      break;
    }
    lua_createtable(lua, (int)count, 0);
    for (int i = 1; i <= count; i++) {
      push_value(lua, at);
      lua_rawseti(lua, -2, i);
    }
  }
}

void engine_to_lua(lua_State *lua, const engine_buffer_t *reply) {
  const char *at = reply->at;
  push_value(lua, &at);
}

/* ---- out of ---- */

static int64_t truncate_number(lua_Number number) {
  if (!(number >= -0x1p63 && number < 0x1p63))
    return INT64_MIN;
  return (int64_t)number;
}

/* Pushes a field of the table on the top, if it is of that type. */
static bool push_field(lua_State *lua, const char *name, int type) {
  lua_pushstring(lua, name);
  lua_rawget(lua, -2);
  if (lua_type(lua, -1) == type)
    return true;
  lua_pop(lua, 1);
  return false;
}

/* One with a field that says what it is meant to be. */
static bool reply_special(lua_State *lua, engine_call_t *call) {
  const char *at; /* a 0 byte ends it, as in Redis */
  if (push_field(lua, "err", LUA_TSTRING)) {
    at = lua_tostring(lua, -1);
    engine_reply_error_bytes(call, at, strlen(at));
  } else if (push_field(lua, "ok", LUA_TSTRING)) {
    at = lua_tostring(lua, -1);
    engine_reply_status_bytes(call, at, strlen(at));
  } else if (push_field(lua, "double", LUA_TNUMBER)) {
    engine_reply_double(call, lua_tonumber(lua, -1));
  } else {
    return false;
  }
  lua_pop(lua, 1);
  return true;
}

static size_t count_items(lua_State *lua) {
  size_t count = lua_objlen(lua, -1);
  for (size_t i = 1; i <= count; i++) {
    lua_rawgeti(lua, -1, (int)i);
    bool ends = lua_isnil(lua, -1);
    lua_pop(lua, 1);
    if (ends)
      return i - 1;
  }
  return count;
}

static void reply_table(lua_State *lua, engine_call_t *call) {
  if (reply_special(lua, call))
    return;
  size_t count = count_items(lua);
  engine_reply_array(call, count);
  for (size_t i = 1; i <= count; i++) {
    lua_rawgeti(lua, -1, (int)i);
    engine_from_lua(lua, call);
  }
}

void engine_from_lua(lua_State *lua, engine_call_t *call) {
  size_t len;
  const char *at;
  if (!lua_checkstack(lua, 4)) {
    engine_reply_error(call, "ERR reached lua stack limit");
    lua_pop(lua, 1);
    return;
  }
  switch (lua_type(lua, -1)) {
  case LUA_TSTRING:
    at = lua_tolstring(lua, -1, &len);
    engine_reply_bulk(call, at, len);
    break;
  case LUA_TBOOLEAN:
    if (lua_toboolean(lua, -1))
      engine_reply_integer(call, 1);
    else
      engine_reply_nil(call);
    break;
  case LUA_TNUMBER:
    engine_reply_integer(call, truncate_number(lua_tonumber(lua, -1)));
    break;
  case LUA_TTABLE:
    reply_table(lua, call);
    break;
  default:
    engine_reply_nil(call);
  }
  lua_pop(lua, 1);
}
