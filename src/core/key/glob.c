#include "core/key/glob.h"

#include <string.h>

size_t belay__glob_quote(char *out, const char *text, size_t len) {
  size_t n = 0;
  for (size_t i = 0; i < len; i++) {
    if (strchr("*?[]\\", text[i]) != NULL && text[i] != '\0')
      out[n++] = '\\';
    out[n++] = text[i];
  }
  return n;
}
