/* The form of a filter (the options that determine where its bits are), and the representation of
 * the form on the server. Pure functions. */
#ifndef BELAY_DATA_BLOOM_FORM_H
#define BELAY_DATA_BLOOM_FORM_H

#include "belay/bloom.h"
#include "data/bloom/hash.h"

typedef struct belay__bloom_form {
  belay_bloom_kind_t kind;
  belay__bloom_hasher_t hasher;
  belay__bloom_shape_t shape; /* Shape of the first layer */
  int64_t capacity;           /* 0: the filter was made from bits */
  double error_rate;          /* 0: the filter was made from bits */
  int64_t window_ms;
} belay__bloom_form_t;

/* Compute the form of a filter with these options. Returns NULL, or a text about the first invalid
 * option. The options name and ttl_ms are not checked. */
const char *belay__bloom_form_of(const belay_bloom_options_t *options, belay__bloom_form_t *out);

/* The configuration of a filter, stored under NAMESPACE::bloom::{NAME}:
 *
 *    0   "belayBF" and the version, 1
 *    8   one byte each: kind; hash (0 XXH3, 1 SipHash); ready (0 being created, 1 ready); 0
 *    12  hashes; 16 segments; 20 bits of a segment (numbers at 12 to 79 are little-endian)
 *    24  seed; 32 fingerprint of the key
 *    40  capacity; 48 error rate, as IEEE 754 has it; 56 window_ms
 *    64  generation, positive
 *    72  XXH3 (64 bits) of all of the above
 *    80  time at which the filter ends, by the server's clock, in milliseconds: 16 decimal digits;
 *        0: never
 *
 * A script writes the time at 80 (lua/bloom/open.lua). Bytes after it belong to the kind. */
#define BELAY__BLOOM_CONFIG_LEN 80 /* Bytes that the checksum covers, and the checksum */
#define BELAY__BLOOM_DIGITS 16
#define BELAY__BLOOM_VALUE_LEN (BELAY__BLOOM_CONFIG_LEN + BELAY__BLOOM_DIGITS)

typedef struct belay__bloom_config {
  belay__bloom_form_t form; /* As read: the hasher has the seed, and no key */
  uint64_t fingerprint;
  int64_t generation;
  int64_t ends_at; /* Time of the server's clock, in milliseconds; 0: never */
  bool ready;
} belay__bloom_config_t;

/* Write the first BELAY__BLOOM_CONFIG_LEN bytes. */
void belay__bloom_pack(const belay__bloom_form_t *form, int64_t generation, bool ready,
                       uint8_t out[BELAY__BLOOM_CONFIG_LEN]);

/* Read a stored configuration. Returns NULL, or a text about its first error. */
const char *belay__bloom_unpack(const void *value, size_t len, belay__bloom_config_t *out);

/* Read a number of exactly len decimal digits. Returns false if a character is not a digit. */
bool belay__bloom_digits(const char *text, size_t len, int64_t *out);

/* Returns a text about the first difference that changes where bits are; NULL if there is none. */
const char *belay__bloom_differs(const belay__bloom_form_t *form,
                                 const belay__bloom_config_t *config);

/* Add a segment with this number of set bits to an info. *items: sum of the estimates of all added
 * segments; 0 at first. */
void belay__bloom_info_add(belay_bloom_info_t *info, const belay__bloom_shape_t *shape,
                           int64_t bits_set, double *items);

#endif /* BELAY_DATA_BLOOM_FORM_H */
