/* UUIDs: unique ids that need no server. */
#ifndef BELAY_UUID_H
#define BELAY_UUID_H

#include "belay/export.h"
#include "belay/loop.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BELAY_UUID_TEXT 37 /**< bytes of the text, including the terminating 0 */

/** Write a new UUID of version 7 (RFC 9562), such as 0199c0de-5a17-7c3e-8f02-6d1b9a4e37c5: this
 * machine's time in milliseconds, and 74 random bits. It asks no
 * server and needs no running loop.
 *
 * Use it for ids that must be unique and need not be numbers. For short numbers, or for ids in a
 * strict order, use belay/idgen.h.
 *
 * UUIDs of different milliseconds sort by their times, as far as the clocks of the machines agree.
 * Two UUIDs of the same millisecond have a random order.
 *
 * @code
 * static void print_uuid(belay_t *belay) {
 *   char text[BELAY_UUID_TEXT];
 *   if (belay_uuid_v7(belay, text) == 0)
 *     printf("%s\n", text);
 * }
 * @endcode
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESYSTEM (no random bytes), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_uuid_v7(belay_t *belay, char out[BELAY_UUID_TEXT]);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_UUID_H */
