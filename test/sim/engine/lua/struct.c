/* What scripts find as `struct`: numbers and texts as bytes, and back.
 *
 * A format is letters, each with what the next value is. Values:
 *   b B  h H  l L  i I  T   1, 2, 8, 4 and 8 bytes, signed and unsigned; iN and IN: N bytes, up to 32
 *   f d                     4 and 8 bytes, of IEEE 754
 *   s                       a text, with a zero behind it
 *   cN                      N bytes of a text (1 if there is no N); c0: all of it, or as many as the last value says
 * And what is none: x is a byte of padding, a blank is nothing, < and > are the order of bytes that follow, and !N
 * says that each number lies at a multiple of its size, or of N (8 if there is no N), if that is less. */
#include <ctype.h>
#include <limits.h>

#include "sim/engine/lua/script.h"

enum { SIZE_MOST = 32, ALIGN_DEFAULT = 8 };

/* Where in a format one is. */
typedef struct reading {
  const char *at;
  bool big;
  int align;
} reading_t;

/* One letter of it. */
typedef struct item {
  char letter;
  size_t size; /* bytes of the value; c0: 0 */
} item_t;

static reading_t read_from(const char *format) {
  return (reading_t){.at = format, .align = 1};
}

/* ---- formats ------------------------------------------------------------------------------------------- */

/* The number behind a letter, if there is one. */
static int read_count(lua_State *lua, reading_t *reading, int otherwise) {
  if (!isdigit((unsigned char)*reading->at))
    return otherwise;
  int64_t sum = 0;
  for (; isdigit((unsigned char)*reading->at); reading->at++) {
    sum = sum * 10 + (*reading->at - '0');
    if (sum > INT_MAX)
      return luaL_error(lua, "integral size overflow");
  }
  return (int)sum;
}

static size_t read_size(lua_State *lua, reading_t *reading) {
  int size = read_count(lua, reading, 4);
  if (size > SIZE_MOST)
    luaL_error(lua, "integral size %d is larger than limit of %d", size, SIZE_MOST);
  return (size_t)size;
}

/* Takes the next letter and its number, if it is one of a value. There is one. */
static item_t read_item(lua_State *lua, reading_t *reading) {
  item_t item = {.letter = *reading->at++};
  switch (item.letter) {
  case 'b':
  case 'B':
  case 'x':
    item.size = 1;
    break;
  case 'h':
  case 'H':
    item.size = 2;
    break;
  case 'f':
    item.size = 4;
    break;
  case 'l':
  case 'L':
  case 'T':
  case 'd':
    item.size = 8;
    break;
  case 'i':
  case 'I':
    item.size = read_size(lua, reading);
    break;
  case 'c':
    item.size = (size_t)read_count(lua, reading, 1);
    break;
  default:
    break;
  }
  return item;
}

/* A letter of no value: does what it says, or complains. */
static void control(lua_State *lua, reading_t *reading, char letter) {
  switch (letter) {
  case ' ':
    break;
  case '<':
  case '>':
    reading->big = letter == '>';
    break;
  case '!':
    reading->align = read_count(lua, reading, ALIGN_DEFAULT);
    if (reading->align <= 0 || (reading->align & (reading->align - 1)) != 0)
      luaL_error(lua, "alignment %d is not a power of 2", reading->align);
    break;
  default:
    luaL_argerror(lua, 1, lua_pushfstring(lua, "invalid format option '%c'", letter));
  }
}

/* How many bytes lie before it that are none of its own. Sizes that are no powers of 2 are padded as Redis does it,
 * to no multiple of anything. */
static size_t padding(const reading_t *reading, item_t item, size_t at) {
  size_t size = item.size;
  if (size == 0 || item.letter == 'c')
    return 0;
  if (size > (size_t)reading->align)
    size = (size_t)reading->align;
  return (size - (at & (size - 1))) & (size - 1);
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

/* Without its fraction, modulo 2^64. What is out of range is what Redis makes of it on x86-64. */
static uint64_t to_integer(lua_Number number) {
  if (number > -0x1p63 && number < 0x1p63)
    return (uint64_t)(int64_t)number;
  if (number >= 0x1p63)
    return number < 0x1p64 ? (uint64_t)number : 0;
  return UINT64_C(1) << 63;
}

static void add_integer(luaL_Buffer *out, const reading_t *reading, size_t size, uint64_t value) {
  char bytes[SIZE_MOST];
  for (size_t i = 0; i < size; i++) {
    bytes[reading->big ? size - 1 - i : i] = (char)(value & 255);
    value >>= 8;
  }
  luaL_addlstring(out, bytes, size);
}

static uint64_t get_integer(const reading_t *reading, size_t size, const char *at) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; i++)
    value = value << 8 | (unsigned char)at[reading->big ? i : size - 1 - i];
  return value;
}

/* If it has its sign's bit, everything above that is ones. Of more than 8 bytes, that is looked for as far into the
 * last 8 as if there were 8 less, as often as that goes. */
static int64_t extend_sign(uint64_t value, size_t size) {
  uint64_t mask = UINT64_MAX << ((size * 8 - 1) & 63);
  return (int64_t)((value & mask) != 0 ? value | mask : value);
}

static uint64_t bits_of(item_t item, lua_Number number) {
  float single = (float)number;
  uint64_t bits = 0;
  uint32_t few;
  if (item.letter == 'd') {
    memcpy(&bits, &number, sizeof bits);
    return bits;
  }
  memcpy(&few, &single, sizeof few);
  return few;
}

static lua_Number number_of(item_t item, uint64_t bits) {
  uint32_t few = (uint32_t)bits;
  double number;
  float single;
  if (item.letter == 'd') {
    memcpy(&number, &bits, sizeof number);
    return number;
  }
  memcpy(&single, &few, sizeof single);
  return single;
}

/* ---- pack ---------------------------------------------------------------------------------------------- */

/* Adds a text, which is argument `index`; tells how many bytes that were. */
static size_t pack_text(lua_State *lua, luaL_Buffer *out, item_t item, int index) {
  size_t len;
  const char *text = luaL_checklstring(lua, index, &len);
  size_t size = item.letter == 's' || item.size == 0 ? len : item.size;
  luaL_argcheck(lua, len >= size, index + 1, "string too short");
  luaL_addlstring(out, text, size);
  if (item.letter == 's')
    luaL_addchar(out, '\0');
  return size + (item.letter == 's');
}

static void pack_number(lua_State *lua, luaL_Buffer *out, const reading_t *reading, item_t item,
                        int index) {
  lua_Number number = luaL_checknumber(lua, index);
  bool whole = item.letter != 'f' && item.letter != 'd';
  add_integer(out, reading, item.size, whole ? to_integer(number) : bits_of(item, number));
}

/* struct.pack(format, value, ...) */
static int pack(lua_State *lua) {
  reading_t reading = read_from(luaL_checkstring(lua, 1));
  luaL_Buffer out;
  size_t total = 0;
  int next = 2;
  lua_pushnil(lua); /* what is missing is this; the buffer may put something behind it */
  luaL_buffinit(lua, &out);
  while (*reading.at != '\0') {
    item_t item = read_item(lua, &reading);
    for (size_t i = padding(&reading, item, total); i > 0; i--, total++)
      luaL_addchar(&out, '\0');
    if (item.letter == 's' || item.letter == 'c') {
      total += pack_text(lua, &out, item, next++);
      continue;
    }
    if (item.letter == 'x')
      luaL_addchar(&out, '\0');
    else if (strchr("bBhHlLiITfd", item.letter) != NULL)
      pack_number(lua, &out, &reading, item, next++);
    else
      control(lua, &reading, item.letter);
    total += item.size;
  }
  luaL_pushresult(&out);
  return 1;
}

/* ---- unpack -------------------------------------------------------------------------------------------- */

/* Bytes that are taken apart. */
typedef struct source {
  const char *at;
  size_t len, next;
} source_t;

static void expect_bytes(lua_State *lua, const source_t *source, size_t size) {
  luaL_argcheck(lua, size <= source->len && source->next <= source->len - size, 2,
                "data string too short");
}

static void unpack_number(lua_State *lua, const reading_t *reading, item_t item, const char *at) {
  uint64_t bits = get_integer(reading, item.size, at);
  if (item.letter == 'f' || item.letter == 'd')
    lua_pushnumber(lua, number_of(item, bits));
  else if (islower((unsigned char)item.letter))
    lua_pushnumber(lua, (lua_Number)extend_sign(bits, item.size));
  else
    lua_pushnumber(lua, (lua_Number)bits);
}

/* c0: the last value says how long, and is none any more. */
static size_t take_length(lua_State *lua, int *count) {
  if (*count == 0 || !lua_isnumber(lua, -1))
    return (size_t)luaL_error(lua, "format 'c0' needs a previous size");
  size_t size = (size_t)to_integer(lua_tonumber(lua, -1));
  lua_pop(lua, 1);
  --*count;
  return size;
}

/* Pushes the value, if it is one of those; tells how many bytes it took. */
static size_t unpack_item(lua_State *lua, reading_t *reading, item_t item, const source_t *source,
                          int *count) {
  const char *at = source->at + source->next, *end;
  size_t size = item.size;
  switch (item.letter) {
  case 'x':
    return size;
  case 'c':
    if (size == 0) {
      size = take_length(lua, count);
      expect_bytes(lua, source, size);
    }
    lua_pushlstring(lua, at, size);
    break;
  case 's':
    end = source->next < source->len ? memchr(at, '\0', source->len - source->next) : NULL;
    if (end == NULL)
      return (size_t)luaL_error(lua, "unfinished string in data");
    size = (size_t)(end - at) + 1;
    lua_pushlstring(lua, at, size - 1);
    break;
  default:
    if (strchr("bBhHlLiITfd", item.letter) == NULL) {
      control(lua, reading, item.letter);
      return 0;
    }
    unpack_number(lua, reading, item, at);
  }
  ++*count;
  return size;
}

/* struct.unpack(format, bytes[, from]): the values, and where the next one would begin. */
static int unpack(lua_State *lua) {
  reading_t reading = read_from(luaL_checkstring(lua, 1));
  source_t source = {0};
  int count = 0;
  source.at = luaL_checklstring(lua, 2, &source.len);
  source.next = (size_t)luaL_optinteger(lua, 3, 1);
  luaL_argcheck(lua, source.next > 0, 3, "offset must be 1 or greater");
  source.next--;
  while (*reading.at != '\0') {
    item_t item = read_item(lua, &reading);
    source.next += padding(&reading, item, source.next);
    expect_bytes(lua, &source, item.size);
    luaL_checkstack(lua, 2, "too many results");
    source.next += unpack_item(lua, &reading, item, &source, &count);
  }
  lua_pushinteger(lua, (lua_Integer)(source.next + 1));
  return count + 1;
}

/* ---- size ---------------------------------------------------------------------------------------------- */

/* struct.size(format) */
static int size(lua_State *lua) {
  reading_t reading = read_from(luaL_checkstring(lua, 1));
  size_t total = 0;
  while (*reading.at != '\0') {
    item_t item = read_item(lua, &reading);
    total += padding(&reading, item, total) + item.size;
    if (item.letter == 's')
      luaL_argerror(lua, 1, "option 's' has no fixed size");
    else if (item.letter == 'c' && item.size == 0)
      luaL_argerror(lua, 1, "option 'c0' has no fixed size");
    else if (!isalnum((unsigned char)item.letter))
      control(lua, &reading, item.letter);
  }
  lua_pushinteger(lua, (lua_Integer)total);
  return 1;
}

void engine_struct_open(lua_State *lua) {
  static const luaL_Reg functions[] = {
      {"pack", pack}, {"unpack", unpack}, {"size", size}, {NULL, NULL}};
  lua_newtable(lua);
  luaL_register(lua, NULL, functions);
  engine_library_protect(lua);
  lua_setglobal(lua, "struct");
}
