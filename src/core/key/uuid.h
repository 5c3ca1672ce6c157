/* UUIDs of version 7 (RFC 9562): 48 bits of milliseconds since 1970, and 74 random bits. */
#ifndef BELAY_CORE_KEY_UUID_H
#define BELAY_CORE_KEY_UUID_H

#include <stdint.h>

#define BELAY__UUID_TEXT 36 /* bytes of the text, without a terminating 0 */

/* belay__uuid_make() makes a UUID from a time in milliseconds since 1970 and random bytes, of which
 * it uses 74 bits. belay__uuid_text() writes a UUID as text, without a terminating 0. */
void belay__uuid_make(uint8_t out[16], uint64_t ms, const uint8_t random[10]);
void belay__uuid_text(char out[BELAY__UUID_TEXT], const uint8_t uuid[16]);

#endif /* BELAY_CORE_KEY_UUID_H */
