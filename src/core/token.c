#include "core/token.h"

#include <string.h>

size_t belay__token_text(char *out, const belay__token_t *token, const char *owner,
                         size_t owner_len) {
  static const char digits[] = "0123456789abcdef";
  char *restrict p = out;
  for (size_t i = 0; i < BELAY__TOKEN_BYTES; i++) {
    *p++ = digits[token->bytes[i] >> 4];
    *p++ = digits[token->bytes[i] & 15];
  }
  *p++ = ':';
  memcpy(p, owner, owner_len);
  return (size_t)(p - out) + owner_len;
}
