/* UUIDs. */
#ifndef BELAY_UUID_H
#define BELAY_UUID_H

#include "belay/export.h"
#include "belay/loop.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BELAY_UUID_TEXT 37 /**< bytes of the text, with the 0 behind it */

/** A new UUID of version 7 (RFC 9562), such as 0199c0de-5a17-7c3e-8f02-6d1b9a4e37c5: this machine's time in
 * milliseconds, and 74 random bits. Those of different milliseconds are in the order of their times, as far as clocks
 * are; two of the same one are in any order. Asks no server.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESYSTEM (no random bytes), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_uuid_v7(belay_t *belay, char out[BELAY_UUID_TEXT]);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_UUID_H */
