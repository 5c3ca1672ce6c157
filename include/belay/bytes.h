/* Bytes: a pointer and a length, for names, keys, values, items and messages. */
#ifndef BELAY_BYTES_H
#define BELAY_BYTES_H

#include <stddef.h>
#include <string.h>

/** A string of bytes with an exact length. It needs no terminating 0 and may contain zeros. It does
 * not own the bytes: a function that takes one copies the bytes that it keeps, so that the caller
 * may change them when the function has returned.
 *
 * Absent and empty bytes differ. Where a header allows absent bytes, data == NULL with len == 0
 * means absent, and any other data with len == 0 means empty. data == NULL with another length is
 * BELAY_EINVAL.
 *
 * @code
 * static const unsigned char id[] = {0x00, 0x01, 0xff};
 *
 * static void use_bytes(void) {
 *   belay_bytes_t name = belay_string("orders/42"), binary = belay_bytes(id, sizeof id);
 *   belay_bytes_t absent = belay_string(NULL);
 *   printf("%zu %zu %zu\n", name.len, binary.len, absent.len); // 9 3 0
 * }
 * @endcode */
typedef struct belay_bytes {
  const void *data; /**< first byte; may be NULL if len is 0 */
  size_t len;       /**< number of bytes */
} belay_bytes_t;

/** Make a belay_bytes_t of len bytes at data. */
static inline belay_bytes_t belay_bytes(const void *data, size_t len) {
  belay_bytes_t bytes;
  bytes.data = data;
  bytes.len = len;
  return bytes;
}

/** Make a belay_bytes_t of a terminated string, without its terminating 0. NULL gives absent
 * bytes. */
static inline belay_bytes_t belay_string(const char *string) {
  return belay_bytes(string, string == NULL ? 0 : strlen(string));
}

#endif /* BELAY_BYTES_H */
