/* The form of a filter, from its options, and its representation on the server. Pure functions. */
#ifndef BELAY_DATA_BLOOM_FORM_H
#define BELAY_DATA_BLOOM_FORM_H

#include "belay/bloom.h"
#include "data/bloom/hash.h"

typedef struct belay__bloom_form {
  belay_bloom_kind_t kind;
  belay__bloom_hasher_t hasher;
  belay__bloom_shape_t shape; /* Shape of the first layer */
  int64_t capacity;           /* 0: the filter was made from bits */
  double error_rate;          /* 0: the same */
  int64_t window_ms;
} belay__bloom_form_t;

/* Set *out. Returns NULL, or the text of the first invalid option; name and ttl_ms are not
 * checked. */
const char *belay__bloom_form_of(const belay_bloom_options_t *options, belay__bloom_form_t *out);

/* The configuration of a filter, stored under NAMESPACE::bloom::{NAME}:
 *
 *    0   "belayBF" and the version, 1
 *    8   kind, hash (0 XXH3, 1 SipHash), ready (0 being created, 1), 0
 *    12  hashes; 16 segments; 20 bits of a segment          (little-endian, as all that follows)
 *    24  seed; 32 fingerprint of the key
 *    40  capacity; 48 error rate, as IEEE 754 has it; 56 window_ms
 *    64  generation, positive
 *    72  XXH3 (64 bits) of all of the above
 *    80  the server's time of its end, milliseconds, 16 decimal digits; 0: never
 *
 * The server writes the last line. Bytes after it belong to the kind. */
#define BELAY__BLOOM_CONFIG_LEN 80 /* Bytes that the checksum covers, and the checksum */
#define BELAY__BLOOM_DIGITS 16
#define BELAY__BLOOM_VALUE_LEN (BELAY__BLOOM_CONFIG_LEN + BELAY__BLOOM_DIGITS)

typedef struct belay__bloom_config {
  belay__bloom_form_t form; /* Its hasher has the seed, and no key */
  uint64_t fingerprint;
  int64_t generation;
  int64_t ends_at; /* 0: never */
  bool ready;
} belay__bloom_config_t;

/* Write the first BELAY__BLOOM_CONFIG_LEN bytes. */
void belay__bloom_pack(const belay__bloom_form_t *form, int64_t generation, bool ready,
                       uint8_t out[BELAY__BLOOM_CONFIG_LEN]);

/* Read a stored configuration. Returns NULL, or what is wrong with it. */
const char *belay__bloom_unpack(const void *value, size_t len, belay__bloom_config_t *out);

/* Read a number of exactly len decimal digits. Returns false if it is none. */
bool belay__bloom_digits(const char *text, size_t len, int64_t *out);

/* Returns a text about the first difference that moves bits; NULL if there is none. */
const char *belay__bloom_differs(const belay__bloom_form_t *form,
                                 const belay__bloom_config_t *config);

/* Add a segment with this number of set bits to an info. *items: sum of the estimates so far. */
void belay__bloom_info_add(belay_bloom_info_t *info, const belay__bloom_shape_t *shape,
                           int64_t bits_set, double *items);

#endif /* BELAY_DATA_BLOOM_FORM_H */
