/* Glob patterns of Redis (KEYS, SCAN, access rules): "*" any text, ? any byte, [a-z] and [^a-z]
 * one byte of a set, \x the byte x. */
#ifndef BELAY_CORE_KEY_GLOB_H
#define BELAY_CORE_KEY_GLOB_H

#include <stddef.h>

/* Write the pattern that matches only this text. out has room for 2 * len bytes. Returns the
 * length. */
size_t belay__glob_quote(char *out, const char *text, size_t len);

#endif /* BELAY_CORE_KEY_GLOB_H */
