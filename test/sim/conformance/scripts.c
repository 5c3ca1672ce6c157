/* Every script that belay has, and small ones that turn Lua's values and errors into replies. */
#include "sim/conformance/conformance.h"

#include <string.h>

#include "scripts.gen.h"

#define UNPACK                                                                                     \
  "local function as_text(...)\n"                                                                  \
  "  local t = {...}\n"                                                                            \
  "  for i = 1, #t do\n"                                                                           \
  "    if type(t[i]) == 'number' then t[i] = string.format('%.17g', t[i]) end\n"                   \
  "  end\n"                                                                                        \
  "  return t\n"                                                                                   \
  "end\n"                                                                                          \
  "return as_text(struct.unpack"

/* Scripts for all results of a script; rows call them @v1, @v2, … */
// clang-format off
static conformance_script_t scripts[] = {
    /* commands from the words */
    {"call", "return redis.call(unpack(ARGV))", ""},
    {"pcall", "return redis.pcall(unpack(ARGV))", ""},
    {"look", "local r = redis.pcall(unpack(ARGV))\nif type(r) == 'table' then\n"
     "  if r.err then return {'err', r.err} end\n  if r.ok then return {'ok', r.ok} end\n"
     "  return {'table', #r}\nend\nreturn {type(r), r}", ""},
    {"safe", "local ok, e = pcall(redis.call, unpack(ARGV))\nif ok then return 'fine' end\n"
     "return e.err", ""},
    {"twice", "redis.call('SET', KEYS[1], ARGV[1])\nreturn redis.call('INCRBY', KEYS[1], 1)", ""},
    {"undo", "redis.call('SET', KEYS[1], ARGV[1])\nerror('after ' .. ARGV[1])", ""},
    {"get", "return redis.call('GET', KEYS[1])", ""},
    {"words", "return {#KEYS, #ARGV, KEYS[1], ARGV[1], KEYS[2], ARGV[2]}", ""},
    {"keys", "return KEYS", ""}, {"argv", "return ARGV", ""},
    {"number", "return tonumber(ARGV[1])", ""},
    {"numbers", "local n = tonumber(ARGV[1])\nif not n then return 'none' end\n"
     "return {tostring(n), string.format('%.0f', n), n < 5, n == 5, ARGV[1] == '5'}", ""},
    {"sum", "return tostring(ARGV[1] + 1)", ""}, {"less", "return ARGV[1] < ARGV[2]", ""},
    {"less_number", "return ARGV[1] < 5", ""}, {"join", "return ARGV[1] .. 5 .. ARGV[2]", ""},
    {"error", "return redis.error_reply(ARGV[1])", ""}, {"ok", "return {ok = ARGV[1]}", ""},
    {"err", "return {err = ARGV[1]}", ""}, {"raise", "error(ARGV[1])", ""},
    {"raise_table", "error({err = ARGV[1] or 'MY none'})", ""},
    {"publish", "return redis.call('PUBLISH', ARGV[1], ARGV[2])", ""},
    {"many", "local n = 0\nfor i = 1, 100 do n = n + redis.call('INCRBY', KEYS[1], i) end\nreturn n"
     , ""},
    {"time", "return redis.call('TIME')", ""},
    /* bytes: numbers with all their digits */
    {"pack", "return struct.pack(unpack(ARGV))", ""},
    {"pack_numbers",
     "local t = {}\nfor i = 2, #ARGV do t[i - 1] = tonumber(ARGV[i]) or ARGV[i] end\n"
     "return struct.pack(ARGV[1], unpack(t))", ""},
    {"pack_value",
     "local values = {true, {}, print, 2^53, -2^63, 2^63, 2^64, 1/0, -1/0, 0/0, -0.0, 1.5}\n"
     "return struct.pack(ARGV[1], values[ARGV[2] % 12 + 1], values[(ARGV[2] + 5) % 12 + 1])", ""},
    {"unpack", UNPACK "(ARGV[1], ARGV[2], ARGV[3]))", ""},
    {"unpack_there", UNPACK "(ARGV[1], ARGV[2], tonumber(ARGV[3])))", ""},
    {"back", UNPACK "(ARGV[1], struct.pack(unpack(ARGV))))", ""},
    {"arithmetic",
     "local a, b = tonumber(ARGV[1]), tonumber(ARGV[2])\nif not a or not b then return 'none' end\n"
     "return {string.format('%d %.0f', a, a), string.format('%.17g', a % b),"
     " string.format('%.17g', math.floor(a / b)), string.format('%.0f', a - a % 1),"
     " string.format('%.17g', math.ceil(a / b)), string.format('%5.3f|%5d|%x', a, b, 255),"
     " tostring(a * b), a < b}", ""},
    /* many members at once */
    {"log", "local t, n = {}, math.min(tonumber(ARGV[1]) or 1, 4) * 900\n"
     "for i = 1, n do t[2 * i - 1], t[2 * i] = i, 'm' .. i % 1000 end\n"
     "local r = {redis.call('ZADD', KEYS[1], unpack(t))}\n"
     "r[2] = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. n / 2)\n"
     "local head = redis.call('ZRANGE', KEYS[1], 0, 499)\n"
     "r[3] = redis.call('ZREM', KEYS[1], unpack(head))\n"
     "r[4] = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. n / 2, '+inf', 'LIMIT', 0, 5)\n"
     "r[5] = redis.call('ZRANGE', KEYS[1], -2, -1, 'WITHSCORES')\n"
     "r[6] = redis.call('PEXPIRE', KEYS[1], 60000)\nreturn r", ""},
    /* values */
    {"v1", "return 1", ""}, {"v2", "return 3.99", ""}, {"v3", "return -3.99", ""},
    {"v4", "return 2^53", ""}, {"v5", "return 'text'", ""}, {"v6", "return ''", ""},
    {"v7", "return true", ""}, {"v8", "return false", ""}, {"v9", "return nil", ""},
    {"v10", "return", ""}, {"v11", "return {}", ""},
    {"v12", "return {1, 2, {3, 'x', {4, {}}}}", ""}, {"v13", "return {1, nil, 3}", ""},
    {"v14", "return {'a', false, true, 1.5, x = 1}", ""},
    {"v15", "return {ok = 'fine', err = 'not fine'}", ""},
    {"v16", "return {err = 'MY own error'}", ""}, {"v17", "return redis.error_reply('nocode')", ""},
    {"v18", "return redis.error_reply('-DASH and text')", ""},
    {"v19", "return redis.error_reply('My lower case')", ""},
    {"v20", "local t = {}\nfor i = 1, 10 do t = {t} end\nreturn t", ""},
    {"v21", "return {tostring(0.1), tostring(1e15), tostring(2^53), tostring(1/0), tostring(-1.5)}"
     , ""},
    {"v22", "return {10 / 4, 7 % -3, 2 ^ 10, '10' + 5, math.floor(-2.5), #'abc'}", ""},
    {"v23", "return type(redis.call('TIME')[1])", ""},
    {"v24", "return string.format('%d %s %5.2f %q', 3, 'x', 2.5, 'q')", ""},
    {"v25", "return {string.rep('ab', 3), string.sub('hello', 2, -2), string.upper('x')}", ""},
    {"v26", "return {tonumber('0x10'), tonumber('1e3'), tonumber(' 5 '), tostring(tonumber('z'))}"
     , ""},
    {"v27", "return {string.find('hello', 'l+'), string.match('k=v', '(%w)=(%w)')}", ""},
    {"v28", "local t = {3, 1, 2}\ntable.sort(t)\nt[#t + 1] = table.concat(t, ',')\nreturn t", ""},
    {"v29", "return 'a\\0b\\r\\n'", ""}, {"v30", "return function() end", ""},
    {"v31", "return {1, function() end, 3}", ""}, {"v32", "return -9007199254740993", ""},
    {"v33", "return select('#', unpack({1, 2, 3}))", ""},
    /* errors; but not those that end a server of 7.0: error() of a table without err */
    {"e1", "error('boom')", ""}, {"e2", "error()", ""}, {"e3", "return nothing_of_that_name", ""},
    {"e4", "x = 1\nreturn x", ""}, {"e5", "return redis.call()", ""},
    {"e6", "return redis.call({})", ""}, {"e7", "return redis.call('GET')", ""},
    {"e8", "return redis.call('NOSUCH', 'a')", ""}, {"e9", "return redis.call('GET', {})", ""},
    {"e10", "return redis.call('SET', 'k:1', nil)", ""},
    {"e11", "return redis.call('SUBSCRIBE', 'c')", ""}, {"e12", "return nil + 1", ""},
    {"e13", "local t = nil\nreturn t.field", ""}, {"e14", "return 1 < 'x'", ""},
    {"e15", "return {} .. 'x'", ""}, {"e16", "return redis.pcall('GET')", ""},
    {"e17", "return redis.pcall('NOSUCH')", ""}, {"e18", "return redis.pcall()", ""},
    {"e19", "this is no Lua", ""}, {"e20", "return (", ""},
    {"e21", "return redis.call('INCRBY', 'k:1', 1.5)", ""},
    {"e22", "return redis.call('SET', 'k:1', 1.0)", ""},
    {"e23", "return redis.call('SET', 'k:1', 2^53)", ""}, {"e24", "return redis.error_reply()", ""},
    {"e25", "return redis.call('EVAL', 'return 1', '0')", ""},
    {"e26", "return redis.call('SCRIPT', 'FLUSH')", ""}, {"e27", "local f = nil\nf()", ""},
    {"e28", "return tonumber()", ""}, {"e29", "return string.rep()", ""},
    {"e30", "error({err = 'MY table of mine'})", ""}, {"e31", "error('boom', 0)", ""},
    {"e32", "\n\n\nerror('on line 4')", ""}, {"e33", "return redis.call(true)", ""},
    {"e34", "return redis.nothing_of_that_name()", ""}, {"e35", "redis.call = 1", ""},
    {"e36", "KEYS[1] = 'k:1'\nreturn redis.call('SET', KEYS[1], 'changed')", ""},
    {"e37", "local ok, e = pcall(error, 'inside')\nreturn e", ""},
    {"e38", "return redis.call('HELLO')", ""}, {"e39", "string.x = 1", ""},
    {"e40", "return redis.call('SET', 'k:1', true)", ""},
};
// clang-format on

#define COUNT (sizeof scripts / sizeof *scripts)

static conformance_script_t belays[BELAY__SCRIPTS];

static const conformance_script_t *find_belays(const char *name, size_t len) {
  for (size_t i = 0; i < BELAY__SCRIPTS; i++) {
    const belay__script_t *script = belay__scripts[i];
    if (strlen(script->name) != len || memcmp(script->name, name, len) != 0)
      continue;
    belays[i].name = script->name;
    belays[i].text = script->text;
    memcpy(belays[i].sha1, script->sha1, 40);
    return &belays[i];
  }
  return NULL;
}

const conformance_script_t *conformance_script(const char *name, size_t len) {
  for (size_t i = 0; i < COUNT; i++)
    if (strlen(scripts[i].name) == len && memcmp(scripts[i].name, name, len) == 0)
      return &scripts[i];
  return find_belays(name, len);
}

void conformance_scripts_name(void (*sha1)(void *ctx, const char *text, char out[41]), void *ctx) {
  for (size_t i = 0; i < COUNT; i++)
    sha1(ctx, scripts[i].text, scripts[i].sha1);
}
