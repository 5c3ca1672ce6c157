/* Bytes as hexadecimal text, numbers as little-endian bytes. */
#ifndef BELAY_CORE_KEY_BYTES_H
#define BELAY_CORE_KEY_BYTES_H

#include <stddef.h>
#include <stdint.h>

static inline char belay__hex_digit(unsigned value) {
  return (char)(value + '0' + (value > 9 ? 'a' - '0' - 10 : 0));
}

/* Write `len` bytes as 2 * len lower-case hexadecimal digits. Returns the address behind the
 * digits. There is no table of digits, so that compilers turn the loop into vector instructions. */
static inline char *belay__hex(char *out, const void *bytes, size_t len) {
  for (size_t i = 0; i < len; i++) {
    unsigned char byte = ((const unsigned char *)bytes)[i];
    out[2 * i] = belay__hex_digit(byte >> 4);
    out[2 * i + 1] = belay__hex_digit(byte & 15);
  }
  return out + 2 * len;
}

/* Write a number as len little-endian bytes. len: 0 to 8. */
static inline void belay__put_le(void *out, uint64_t number, size_t len) {
  for (size_t i = 0; i < len; i++)
    ((unsigned char *)out)[i] = (unsigned char)(number >> 8 * i);
}

static inline uint64_t belay__get_le(const void *bytes, size_t len) {
  uint64_t number = 0;
  for (size_t i = 0; i < len; i++)
    number |= (uint64_t)((const unsigned char *)bytes)[i] << 8 * i;
  return number;
}

#endif /* BELAY_CORE_KEY_BYTES_H */
