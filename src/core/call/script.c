#include "core/call/script.h"

#include <assert.h>
#include <string.h>

bool belay__scripts_add(belay__scripts_t *scripts, const belay__script_t *script) {
  assert(script->index < BELAY__SCRIPTS_MAX);
  uint64_t *word = &scripts->bits[script->index / 64], bit = UINT64_C(1) << script->index % 64;
  bool there = (*word & bit) != 0;
  *word |= bit;
  return there;
}

const char *belay__script_line(const belay__script_t *script, unsigned number, size_t *len) {
  const char *at = script->text, *end = script->text + script->len;
  for (unsigned i = 1; i < number && at != NULL; i++) {
    at = memchr(at, '\n', (size_t)(end - at));
    at = at == NULL ? NULL : at + 1;
  }
  *len = 0;
  if (number == 0 || at == NULL)
    return "";
  *len = strcspn(at, "\n"); /* the text ends with a 0 */
  const char *call = memmem(at, *len, "call(", 5);
  size_t skip = call == NULL ? strspn(at, " ") : (size_t)(call - at);
  *len -= skip;
  return at + skip;
}
