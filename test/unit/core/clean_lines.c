/* The number of a script's lines before its first write, which tools/embed_lua.py counts, against
 * an independent search of the text. */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "scripts.gen.h"
#include "support/base/test.h"

/* All commands that a script calls and that write. */
static const char writers[] =
    " BITFIELD BITOP DEL GETSET HDEL HINCRBY HSET INCRBY LPUSH LTRIM PERSIST PEXPIRE PEXPIREAT "
    "PFADD PFCOUNT PFMERGE PUBLISH RENAME RPUSH SADD SDIFFSTORE SET SETBIT SETRANGE SINTERSTORE "
    "SPUBLISH SREM SUNIONSTORE UNLINK ZADD ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE ZUNIONSTORE ";

/* true if the line has one of the writers in quotes. */
static bool has_writer(const char *line, size_t len) {
  const char *end = line + len;
  for (const char *close; (line = memchr(line, '\'', (size_t)(end - line))) != NULL; line = close) {
    char word[32];
    close = memchr(line + 1, '\'', (size_t)(end - line - 1));
    if (close == NULL)
      return false;
    snprintf(word, sizeof word, " %.*s ", (int)(close - line - 1), line + 1);
    if (strstr(writers, word) != NULL)
      return true;
  }
  return false;
}

/* true if the line calls a command that writes, or one that the line does not name. The contention
 * flag of a lock does not count. */
static bool may_write(const char *line, size_t len) {
  static const char call[] = "call(", flag[] = "'::contended'";
  const char *at = memmem(line, len, call, sizeof call - 1);
  if (at == NULL || memmem(line, len, flag, sizeof flag - 1) != NULL)
    return false;
  if (has_writer(line, len))
    return true;
  return memchr(at, '\'', (size_t)(line + len - at)) == NULL;
}

/* true if a function begins there whose calls to the server raise no error. It ends with the first
 * "end" that is not indented. */
static bool is_pure(const char *line) {
  static const char begins[] = "local function ", call[] = "redis.call(";
  const char *end = strstr(line, "\nend\n");
  return strncmp(line, begins, sizeof begins - 1) == 0 && end != NULL &&
         memmem(line, (size_t)(end - line), call, sizeof call - 1) == NULL;
}

static const char *comment(const char *line, size_t len) {
  const char *at = memmem(line, len, "--", 2);
  return at != NULL ? at : line + len;
}

TEST(clean_lines_of_scripts_write_nothing) {
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
