/* RESP, the way in. */
#include <string.h>

#include "engine.h"

#define LEN_MAX (512 * 1024 * 1024) /* of one word, as in Redis */

/* The unread rest. */
typedef struct rest {
  const char *at, *end;
} rest_t;

/* Reads a line: this letter and a number up to that. 1: read; 0: it is not complete; -1: it is
 * wrong. */
static int read_number(rest_t *rest, char kind, long max, long *value) {
  const char *at = rest->at;
  if (at == rest->end)
    return 0;
  if (*at++ != kind)
    return -1;
  const char *digits = at;
  for (*value = 0; at < rest->end && *at >= '0' && *at <= '9'; at++) {
    *value = *value * 10 + (*at - '0');
    if (*value > max)
      return -1;
  }
  if (at == rest->end)
    return 0;
  if (*at != '\r' || at == digits)
    return -1;
  if (at + 1 == rest->end)
    return 0;
  if (at[1] != '\n')
    return -1;
  rest->at = at + 2;
  return 1;
}

static int read_word(rest_t *rest, engine_bytes_t *word) {
  long len;
  int result = read_number(rest, '$', LEN_MAX, &len);
  if (result != 1)
    return result;
  if (rest->end - rest->at < len + 2)
    return 0;
  *word = (engine_bytes_t){rest->at, (size_t)len};
  rest->at += len;
  if (memcmp(rest->at, "\r\n", 2) != 0)
    return -1;
  rest->at += 2;
  return 1;
}

long engine_parse(const char *at, size_t len, engine_bytes_t argv[ENGINE_ARGS_MAX], size_t *argc) {
  rest_t rest = {at, at + len};
  long count;
  int result = read_number(&rest, '*', ENGINE_ARGS_MAX, &count);
  for (long i = 0; result == 1 && i < count; i++)
    result = read_word(&rest, &argv[i]);
  if (result != 1)
    return result;
  *argc = (size_t)count;
  return count == 0 ? -1 : rest.at - at;
}
