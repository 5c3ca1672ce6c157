/* Of each script is known on how many of its first lines it can have written nothing before: tools/embed_lua.py counts
 * them. Here the text is looked at once more. */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "scripts.gen.h"
#include "support/base/test.h"

/* All that a script calls and that writes. */
static const char *const writers[] = {"BITFIELD",
                                      "BITOP",
                                      "DEL",
                                      "GETSET",
                                      "HDEL",
                                      "HINCRBY",
                                      "HSET",
                                      "INCRBY",
                                      "LPUSH",
                                      "LTRIM",
                                      "PERSIST",
                                      "PEXPIRE",
                                      "PEXPIREAT",
                                      "PFADD",
                                      "PFCOUNT",
                                      "PFMERGE",
                                      "PUBLISH",
                                      "RENAME",
                                      "RPUSH",
                                      "SADD",
                                      "SDIFFSTORE",
                                      "SET",
                                      "SETBIT",
                                      "SETRANGE",
                                      "SINTERSTORE",
                                      "SPUBLISH",
                                      "SREM",
                                      "SUNIONSTORE",
                                      "UNLINK",
                                      "ZADD",
                                      "ZREM",
                                      "ZREMRANGEBYRANK",
                                      "ZREMRANGEBYSCORE",
                                      "ZUNIONSTORE"};

static bool has_word(const char *line, size_t len, const char *word) {
  char quoted[32];
  size_t n = (size_t)snprintf(quoted, sizeof quoted, "'%s'", word);
  return memmem(line, len, quoted, n) != NULL;
}

/* Whether the line calls something that writes, or something that is not named. */
static bool may_write(const char *line, size_t len) {
  static const char call[] = "call(";
  const char *at = memmem(line, len, call, sizeof call - 1);
  if (at == NULL)
    return false;
  for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
    if (has_word(line, len, writers[i]))
      return true;
  return memchr(at, '\'', (size_t)(line + len - at)) == NULL;
}

/* Whether a function begins there that calls nothing of the server: up to the first "end" that is not indented. */
static bool is_pure(const char *line) {
  static const char begins[] = "local function ", call[] = "call(";
  const char *end = strstr(line, "\nend\n");
  return strncmp(line, begins, sizeof begins - 1) == 0 && end != NULL &&
         memmem(line, (size_t)(end - line), call, sizeof call - 1) == NULL;
}

static const char *comment(const char *line, size_t len) {
  const char *at = memmem(line, len, "--", 2);
  return at != NULL ? at : line + len;
}

TEST(on_its_clean_lines_a_script_writes_nothing) {
  unsigned with_some = 0;
  for (size_t i = 0; i < BELAY__SCRIPTS; i++) {
    const belay__script_t *script = belay__scripts[i];
    unsigned number = 0, first = UINT_MAX;
    for (const char *line = script->text, *next; *line != '\0'; line = next) {
      const char *end = strchr(line, '\n');
      next = end != NULL ? end + 1 : line + strlen(line);
      size_t len = (size_t)(comment(line, (size_t)(next - line)) - line);
      number++;
      if (first == UINT_MAX && may_write(line, len))
        first = number;
      if (number <= script->clean_lines && script->clean_lines != UINT_MAX &&
          memmem(line, len, "function", 8) != NULL && !is_pure(line))
        fail_msg("%s: line %u, of a function, may be run at any time", script->name, number);
    }
    if (script->clean_lines == UINT_MAX ? first != UINT_MAX : script->clean_lines > first)
      fail_msg("%s: it writes on line %u, and has %u clean lines", script->name, first,
               script->clean_lines);
    with_some += script->clean_lines > 0;
  }
  assert_true(with_some > BELAY__SCRIPTS / 2);
}
