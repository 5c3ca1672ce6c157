/* Tokens: they identify the holder of a lease. The text of a token on the server is 40 hexadecimal
 * digits, a colon and the owner's label. */
#ifndef BELAY_CORE_KEY_TOKEN_H
#define BELAY_CORE_KEY_TOKEN_H

#include <stddef.h>
#include <stdint.h>

#define BELAY__TOKEN_BYTES 20
#define BELAY__OWNER_MAX 64
#define BELAY__TOKEN_TEXT_MAX (2 * BELAY__TOKEN_BYTES + 1 + BELAY__OWNER_MAX)

typedef struct belay__token {
  uint8_t bytes[BELAY__TOKEN_BYTES]; /* Random; new for each attempt to acquire */
} belay__token_t;

/* Write the text without a terminating 0. out has room for BELAY__TOKEN_TEXT_MAX bytes. Returns
 * the length. owner_len is at most BELAY__OWNER_MAX. */
size_t belay__token_text(char *out, const belay__token_t *token, const char *owner,
                         size_t owner_len);

#endif /* BELAY_CORE_KEY_TOKEN_H */
