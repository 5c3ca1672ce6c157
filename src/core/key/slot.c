#include "core/key/slot.h"

#include <string.h>

uint16_t belay__slot(const char *key, size_t len) {
  const char *open = memchr(key, '{', len), *end = key + len;
  const char *close = open == NULL ? NULL : memchr(open + 1, '}', (size_t)(end - open - 1));
  if (close != NULL && close > open + 1) {
    key = open + 1;
    end = close;
  }
  unsigned crc = 0;
  /* Add each byte to the CRC, all 8 bits in one step. The polynomial is 0x1021 = 1 << 12 | 1 << 5 |
   * 1. */
  for (; key < end; key++) {
    unsigned x = (crc >> 8 ^ (unsigned char)*key) & 0xff;
    x ^= x >> 4;
    crc = (crc << 8 ^ x << 12 ^ x << 5 ^ x) & 0xffff;
  }
  return (uint16_t)(crc % BELAY__SLOTS);
}
