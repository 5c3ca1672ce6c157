/* Patterns as servers match them (KEYS, SCAN): * any text, ? any byte, [a-z] and [^a-z] one byte of some, \x the byte x.
 * The ends of a range are compared as plain `char`, as servers do: where that is signed, as on x86-64, [a-\xff] goes from
 * \xff up to a. A server whose platform has the other sign matches such ranges differently. */
#ifndef BELAY_CORE_KEY_GLOB_H
#define BELAY_CORE_KEY_GLOB_H

#include <stdbool.h>
#include <stddef.h>

bool belay__glob_match(const char *pattern, size_t pattern_len, const char *text, size_t len);

/* Writes at out, which has room for 2 * len bytes, the pattern that only this text matches; returns its length. */
size_t belay__glob_quote(char *out, const char *text, size_t len);

#endif /* BELAY_CORE_KEY_GLOB_H */
