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

/* Names are escaped in keys (core/key/key.h), and what ? or ] matches there has one byte or three. Writes at out, which has
 * room for 3 * len bytes, a pattern that every name that the pattern matches does match when it is escaped; and some
 * others. Returns its length. */
size_t belay__glob_widen(char *out, const char *pattern, size_t len);

#endif /* BELAY_CORE_KEY_GLOB_H */
