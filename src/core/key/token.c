#include "core/key/token.h"

#include <string.h>

size_t belay__token_text(char *out, const belay__token_t *token, const char *owner,
                         size_t owner_len) {
  static const char digits[] = "0123456789abcdef";
  const belay__token_t copy = *token; /* which is not where this is written to */
  char *p = out;
  for (size_t i = 0; i < BELAY__TOKEN_BYTES; i++, p += 2) {
    p[0] = digits[copy.bytes[i] >> 4];
    p[1] = digits[copy.bytes[i] & 15];
  }
  *p++ = ':';
  memcpy(p, owner, owner_len);
  return (size_t)(p - out) + owner_len;
}
