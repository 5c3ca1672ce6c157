/* Keys: <namespace>::<family>::{<name>}, each part escaped reversibly.
 *
 * A namespace is one or more parts, wide to narrow, joined by "::" like everything else. The braces make
 * all keys of one name share a cluster slot. In a part, '%', '{', '}', bytes below 0x20, 0x7f, and a ':'
 * that could be taken for half of a separator (at an end of the part, or before another ':') are written
 * as '%' and two upper-case hexadecimal digits; every other byte stands for itself. */
#ifndef BELAY_CORE_KEY_KEY_H
#define BELAY_CORE_KEY_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BELAY__NAME_MAX ((size_t)1024) /* bytes of a name, before it is escaped */

/* Appends the escaped part at out (which may be NULL, to measure); returns its length, at most 3 * len. */
size_t belay__key_escape(char *out, const char *part, size_t len);

/* The reverse: writes at most len bytes at out and their number to *out_len; false if the text was not
 * made by belay__key_escape(). */
bool belay__key_unescape(char *out, size_t *out_len, const char *text, size_t len);

/* Writes the parts of a namespace at out (NULL to measure), escaped and joined; returns the length. No terminating 0. */
size_t belay__key_namespace(char *out, const char *const *parts, size_t count);

/* Writes prefix::family::{name} at out (NULL to measure); returns its length. No terminating 0. */
size_t belay__key_build(char *out, const char *prefix, size_t prefix_len, const char *family,
                        const char *name, size_t name_len);

/* A number that is always the same for the same bytes. */
uint32_t belay__key_hash(const char *key, size_t len);

/* Calls of the same one share a connection, and so keep their order (core/call/call.h). The lower 14 bits are the slot of
 * the key (or of what stands in its braces, escaped), the others a hash. */
uint32_t belay__key_route(const char *key, size_t len);

#endif /* BELAY_CORE_KEY_KEY_H */
