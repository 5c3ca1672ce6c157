/* Fencing: a resource refuses requests of an earlier holder of a lock. */
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

/** State of a guarded resource: the largest fencing number that it has seen, and the token that
 * came with it. Initialize it with zeros. Store it with the resource's own state, and change both
 * together.
 *
 * A lock cannot stop a holder that was paused and continues after its lease. A fencing number makes
 * such a holder harmless: each grant has a larger number (options.fencing in belay/lock.h, or the
 * term of an election). The holder sends number and token with each request, and the resource
 * refuses a number that is too small. Use it where a late write is expensive. It needs a resource
 * that can check the number: for a resource in Redis use belay_fence_script(), for all others
 * belay_fence_guard().
 *
 * @code
 * static belay_fence_t fence; // stored with the file
 *
 * // In the process that owns the resource. number: belay_lock_fence(), token: belay_lock_token().
 * int write_guarded(FILE *file, uint64_t number, belay_bytes_t token, const char *text) {
 *   int error = belay_fence_guard(&fence, number, token);
 *   if (error == 0)
 *     fputs(text, file);
 *   return error; // BELAY_EFENCED: a later holder has already written
 * }
 * @endcode */
typedef struct belay_fence {
  uint64_t number;                   /**< largest number seen; 0: none yet */
  size_t token_len;                  /**< length of the token, in bytes */
  char token[BELAY_FENCE_TOKEN_MAX]; /**< token that came with number, padded with zeros */
} belay_fence_t;

/** Check a request with this fencing number (belay_lock_fence()) and token (belay_lock_token()). If
 * the number is larger than the stored one, or both are equal to the stored ones, the request may
 * proceed, and fence stores them. Otherwise fence does not change. The token may come from a
 * network: it need not be terminated.
 *
 * Returns
 *   0              the request may proceed
 *   BELAY_EFENCED  the number is smaller than the stored one, or equal with another token
 *   BELAY_EINVAL   the number is 0 or over 2^53, or the token is not 1 to BELAY_FENCE_TOKEN_MAX
 *                  bytes */
BELAY_API int belay_fence_guard(belay_fence_t *fence, uint64_t number, belay_bytes_t token);

/** Return the text of a script that does the same for a resource in Redis. The script runs one
 * command if the request may proceed. The check and the command take effect together or not at all.
 * *len is the length of the text; len may be NULL. The text is static.
 *
 *   EVAL text numkeys fence [key ...] number token command [argument ...]
 *
 * KEYS[1] is the fence: a hash with number and token, without a ttl. Further KEYS are those of the
 * command, which must not touch KEYS[1]. In a cluster all of them must share a slot.
 *
 * The reply is that of the command. Integers beyond 2^53 are rounded, as in any script. If the
 * reply is an error, the fence does not change. After one of these errors the command did not run:
 *
 *   FENCED a later holder has been here
 *       the number is too small, or equal with another token
 *   FENCED not a fencing number
 *       the number is 0, over 2^53, or not plain decimal digits without a leading zero
 *   FENCED not a token
 *       the token is empty or longer than BELAY_FENCE_TOKEN_MAX
 *   FENCED not a command
 *       there is no command
 *   FENCED not a fence
 *       the hash is damaged; all requests are refused
 *   WRONGTYPE
 *       KEYS[1] is not a hash
 *
 * If the script runs twice, the command runs twice. */
BELAY_API const char *belay_fence_script(size_t *len);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_FENCE_H */
