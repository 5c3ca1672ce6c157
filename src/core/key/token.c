#include "core/key/token.h"

#include <string.h>

#include "core/key/bytes.h"

size_t belay__token_text(char *out, const belay__token_t *token, const char *owner,
                         size_t owner_len) {
  const belay__token_t copy = *token; /* out may overlap the token */
  char *p = belay__hex(out, copy.bytes, BELAY__TOKEN_BYTES);
  *p++ = ':';
  memcpy(p, owner, owner_len);
  return (size_t)(p - out) + owner_len;
}
