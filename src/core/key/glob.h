/* Patterns of servers (KEYS, SCAN, access rules): "*" any text, ? any byte, [a-z] and [^a-z] one byte of some, \x the
 * byte x. */
#ifndef BELAY_CORE_KEY_GLOB_H
#define BELAY_CORE_KEY_GLOB_H

#include <stddef.h>

/* Write the pattern that matches this text only at out, which has room for 2 * len bytes. Returns its length. */
size_t belay__glob_quote(char *out, const char *text, size_t len);

#endif /* BELAY_CORE_KEY_GLOB_H */
