/* Keys: <namespace>::<family>::{<name>}, each part escaped reversibly.
 *
 * A namespace is one or more parts, wide to narrow, joined by "::" too. The braces make all keys of
 * one name share a cluster slot. In a part, '%', '{', '}', bytes below 0x20 and 0x7f are written as
 * '%' and two upper-case hexadecimal digits. A ':' at an end of the part, or before another ':', is
 * also written in this way. It could look like half of a separator. Every other byte stands for
 * itself. */
#ifndef BELAY_CORE_KEY_KEY_H
#define BELAY_CORE_KEY_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BELAY__NAME_MAX ((size_t)1024) /* bytes of a name, before it is escaped */

/* Write the escaped part to out (NULL to measure). Returns its length, at most 3 * len. */
size_t belay__key_escape(char *out, const char *part, size_t len);

/* Undo belay__key_escape(): write at most len bytes to out and their number to *out_len. Returns
 * false if the text was not made by belay__key_escape(). */
bool belay__key_unescape(char *out, size_t *out_len, const char *text, size_t len);

/* Write the parts of a namespace, escaped and joined, to out (NULL to measure). Returns the
 * length; no terminating 0. */
size_t belay__key_namespace(char *out, const char *const *parts, size_t count);

/* Write prefix::family::{name} to out (NULL to measure). Returns the length; no terminating 0. */
size_t belay__key_build(char *out, const char *prefix, size_t prefix_len, const char *family,
                        const char *name, size_t name_len);

/* Return a hash of the key. Equal keys have equal hashes, also in other processes. */
uint32_t belay__key_hash(const char *key, size_t len);

/* Return the route of a key. Calls with the same route share a connection and so keep their order
 * (core/call/state.h). The lower 14 bits of a route are the slot of the key, the others a hash.
 * key: the whole key, or only the escaped text in its braces, which has the same slot but another
 * route. */
uint32_t belay__key_route(const char *key, size_t len);

/* Write the glob pattern of Redis (KEYS, SCAN, access rules) that matches only this text. out has
 * room for 2 * len bytes. Returns the length. */
size_t belay__glob_quote(char *out, const char *text, size_t len);

#endif /* BELAY_CORE_KEY_KEY_H */
