/* Strings of bytes with their length: names, keys, values, items, messages. */
#ifndef BELAY_BYTES_H
#define BELAY_BYTES_H

#include <stddef.h>
#include <string.h>

/** A string of bytes. It needs no terminating 0, may contain zeros, and its length is exact. A function that takes one
 * copies the bytes that it keeps: the caller may change them when the function has returned.
 *
 * Absent and empty bytes differ. Where a header says that an argument or a field may be NULL, data == NULL with len == 0
 * means that it is absent, and any other data with len == 0 means that it is empty. data == NULL with another length is
 * BELAY_EINVAL. */
typedef struct belay_bytes {
  const void *data; /**< may be NULL if len is 0 */
  size_t len;       /**< in bytes */
} belay_bytes_t;

/** Make a belay_bytes_t of len bytes at data. */
static inline belay_bytes_t belay_bytes(const void *data, size_t len) {
  belay_bytes_t bytes;
  bytes.data = data;
  bytes.len = len;
  return bytes;
}

/** Make a belay_bytes_t of a terminated string, without its terminating 0. NULL gives absent bytes. */
static inline belay_bytes_t belay_string(const char *string) {
  return belay_bytes(string, string == NULL ? 0 : strlen(string));
}

#endif /* BELAY_BYTES_H */
