/* The guard in C. src/lua/fence/guard.lua must accept and refuse the same tokens. */
#include "belay/fence.h"

#include <stdbool.h>
#include <string.h>

#include "belay/error.h"
#include "core/loop/loop.h"
#include "scripts.gen.h"

#define NUMBER_MAX (UINT64_C(1) << 53) /* exact as a double too, which is what Lua has */

static bool is_request(uint64_t number, const void *token, size_t token_len) {
  return number >= 1 && number <= NUMBER_MAX && token != NULL && token_len >= 1 &&
         token_len <= BELAY_FENCE_TOKEN_MAX;
}

static bool is_same_token(const belay_fence_t *fence, const void *token, size_t token_len) {
  return token_len == fence->token_len && memcmp(token, fence->token, token_len) == 0;
}

/* Stores the number and the token. Clears the rest of the former token, because callers may store
 * or compare a fence as bytes. */
static void remember(belay_fence_t *fence, uint64_t number, const void *token, size_t token_len) {
  fence->number = number;
  fence->token_len = token_len;
  memcpy(fence->token, token, token_len);
  memset(fence->token + token_len, 0, sizeof fence->token - token_len);
}

int belay_fence_guard(belay_fence_t *fence, uint64_t number, belay_bytes_t token) {
  if (fence == NULL || !is_request(number, token.data, token.len))
    return BELAY_EINVAL;
  if (number < fence->number)
    return BELAY_EFENCED;
  if (number == fence->number)
    return is_same_token(fence, token.data, token.len) ? 0 : BELAY_EFENCED;
  remember(fence, number, token.data, token.len);
  return 0;
}

const char *belay_fence_script(size_t *len) {
  if (len != NULL)
    *len = belay__script_fence_guard.len;
  return belay__script_fence_guard.text;
}
