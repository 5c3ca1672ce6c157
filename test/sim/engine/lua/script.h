/* The interfaces between script.c (commands), interpreter.c (Lua and its functions) and
 * convert.c (values). */
#ifndef TEST_SIM_ENGINE_LUA_SCRIPT_H
#define TEST_SIM_ENGINE_LUA_SCRIPT_H

#include "sim/engine/command.h"

#include <lauxlib.h>
#include <lua.h>

enum { ENGINE_SHA1_LEN = 40 };

/* ---- interpreter.c ---- */

/* Compiles a text. Returns the argument of engine_interpreter_run(); LUA_NOREF: invalid Lua, and
 * the error is the reply. */
int engine_interpreter_compile(engine_call_t *call, engine_bytes_t text);

/* Runs it; its reply, or its error, is the call's. */
void engine_interpreter_run(engine_call_t *call, int function, const char *sha1,
                            const engine_bytes_t *keys, size_t keys_count,
                            const engine_bytes_t *rest, size_t rest_count);

void engine_interpreter_close(void);

/* ---- library.c ---- */

/* Opens what scripts may use of Lua's own libraries, as globals. */
void engine_library_open(lua_State *lua);

/* Replaces the table on the top by a read-only view of it. */
void engine_library_protect(lua_State *lua);

/* ---- struct.c ---- */

/* The global `struct`. */
void engine_struct_open(lua_State *lua);

/* ---- convert.c ---- */

/* Pushes what a reply is in Lua. */
void engine_to_lua(lua_State *lua, const engine_buffer_t *reply);

/* Replies what is on the top, and pops it. */
void engine_from_lua(lua_State *lua, engine_call_t *call);

/* Pushes {err = text}. */
void engine_push_error(lua_State *lua, const char *at, size_t len);

/* ---- script.c ---- */

void engine_sha1(const char *at, size_t len, char hex[ENGINE_SHA1_LEN + 1]);

#endif /* TEST_SIM_ENGINE_LUA_SCRIPT_H */
