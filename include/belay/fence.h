/* Fencing: the resource itself refuses whoever held the lock before its present holder. */
#ifndef BELAY_FENCE_H
#define BELAY_FENCE_H

#include <stddef.h>
#include <stdint.h>

#include "belay/bytes.h"
#include "belay/export.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BELAY_FENCE_TOKEN_MAX 128 /**< bytes of a token */

/** What a guarded resource remembers: the largest fencing number that it has seen, and whose it was. Starts
 * as zeros. To be kept wherever the resource's own state is kept, and changed together with it. */
typedef struct belay_fence {
  uint64_t number;                   /**< 0: none was seen yet */
  size_t token_len;                  /**< bytes of the token */
  char token[BELAY_FENCE_TOKEN_MAX]; /**< its bytes, then zeros */
} belay_fence_t;

/** Whether a request that came with this fencing number (belay_lock_fence()) and token
 * (belay_lock_token()) may go on. If so it is remembered. It may not if its number is smaller than one
 * that was seen, or equal and another's: then nothing changes.
 *
 * The token may come from a network: it need not be terminated.
 *
 * Returns 0, BELAY_EFENCED, or BELAY_EINVAL: number 0 or over 2^53, an empty token or a longer one than
 * BELAY_FENCE_TOKEN_MAX. */
BELAY_API int belay_fence_guard(belay_fence_t *fence, uint64_t number, belay_bytes_t token);

/** The same for a resource that lives in Redis: the text of a script that runs one command if the
 * request may go on, both or neither; *len is its length, and len may be NULL. A static string.
 *
 *   EVAL text numkeys fence [key ...] number token command [argument ...]
 *
 * KEYS[1] remembers the number and token (a hash of these two fields, without a ttl); further KEYS are those
 * that the command uses. It must not touch KEYS[1] itself. In a cluster all of them must share a slot.
 *
 * The reply is the command's, with integers beyond 2^53 rounded as by any script. If it is an error, the
 * request is not remembered. With one of these, and with WRONGTYPE if KEYS[1] is no hash, nothing was run:
 *
 *   FENCED a later holder has been here
 *   FENCED not a fencing number  it is 0, over 2^53, or not just decimal digits without a leading zero
 *   FENCED not a token           it is empty, or longer than BELAY_FENCE_TOKEN_MAX
 *   FENCED not a command         there is none
 *   FENCED not a fence           the hash is damaged, so that nobody may go on
 *
 * Run twice, it runs the command twice. */
BELAY_API const char *belay_fence_script(size_t *len);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_FENCE_H */
