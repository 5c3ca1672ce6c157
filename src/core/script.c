#include "core/script.h"

#include <string.h>

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
