#include "core/call/parts.h"

#include <assert.h>

/* Read a number up to its line end, and skip the line end. */
static size_t read_number(const char **at) {
  size_t value = 0;
  const char *p = *at;
  for (; *p != '\r'; p++)
    value = 10 * value + (size_t)(*p - '0');
  *at = p + 2;
  return value;
}

belay__call_parts_t belay__call_parts(const belay__call_t *call) {
  assert(call->script != NULL);
  const char *head = call->data + 1, *at = call->data + call->tail + 1;
  size_t words = read_number(&head);
  (void)read_number(&at); /* length of the next number */
  belay__call_parts_t parts = {.keys_count = read_number(&at)};
  parts.keys = at;
  for (size_t i = 0; i < parts.keys_count; i++) {
    at++;
    size_t len = read_number(&at);
    at += len + 2;
  }
  parts.args = at;
  parts.keys_len = (size_t)(at - parts.keys);
  parts.args_len = (size_t)(call->data + call->len - at);
  parts.args_count = words - 3 - parts.keys_count;
  return parts;
}
