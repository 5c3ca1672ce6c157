/* A record: the cached value of a key with its times, in memory and as stored on the server.
 *
 * The stored form is a header, the generations of the tags, and the data. Offset and length are in
 * bytes, all numbers are little-endian, and all times are milliseconds since 1970 by the server's
 * clock:
 *
 *      0  4  magic: 0xbe 'l' 'y' and the version, 1
 *      4  1  kind: belay__record_kind_t
 *      5  1  encoding of the data: 0 plain, 1 LZ4 (one block)
 *      6  1  number of tags
 *      7  1  0
 *      8  8  time until which the record is fresh         } scripts change these two fields
 *     16  8  time until which no load is tried, or 0      } in place; the checksum omits them
 *     24  8  checksum: XXH3 (64 bits) of bytes 32 to the end, xor bytes 0 to 7 as one number
 *     32  8  time at which the record was stored
 *     40  4  duration of the load in microseconds, at most 2^32 - 1
 *     44  4  ERROR: the error given to belay_cache_load_failed()
 *     48 16  id: the generation under which the record was stored; ids are unique
 *     64  4  length of the data
 *     68  4  length of the encoded data
 *     72     generations of the tags, 16 bytes each; then the encoded data
 *
 * Any deviation makes a stored value invalid: a time must not be negative, only a VALUE has data,
 * only an ERROR has an error, and compressed data must be smaller than the data. The ttl of the key
 * deletes the stored record. */
#ifndef BELAY_CACHE_RECORD_H
#define BELAY_CACHE_RECORD_H

#include "belay/cache.h"
#include "core/loop/loop.h"

#define BELAY__RECORD_HEAD ((size_t)72)
#define BELAY__RECORD_ID ((size_t)16) /* bytes of an id and of a generation */
/* Offsets that scripts use. */
#define BELAY__RECORD_MAGIC "\xbely\x01"
#define BELAY__RECORD_AT_FRESH 8
#define BELAY__RECORD_AT_RETRY 16
#define BELAY__RECORD_AT_ID 48

typedef enum belay__record_kind {
  BELAY__RECORD_VALUE = 1,
  BELAY__RECORD_ABSENT,
  BELAY__RECORD_ERROR
} belay__record_kind_t;

/* A record in memory. It is shared by all owners of a reference, and immutable once it is
 * shared. */
typedef struct belay__record {
  unsigned refs;
  uint8_t kind; /* belay__record_kind_t */
  uint8_t tags_len;
  int32_t error;
  uint32_t load_us;
  int64_t created_ms, fresh_ms, retry_ms; /* by the server's clock */
  unsigned char id[BELAY__RECORD_ID];
  size_t len;
  unsigned char bytes[]; /* the data, and after it the tags' generations */
} belay__record_t;

/* Creates a record with one reference, for len bytes of data (at most BELAY_CACHE_VALUE_MAX) and
 * tags_len tags. The caller fills in the data and the tags; all other fields are 0. NULL if there
 * is no memory. */
belay__record_t *belay__record_new(belay_t *belay, belay__record_kind_t kind, size_t len,
                                   size_t tags_len);
belay__record_t *belay__record_retain(belay__record_t *record);
/* record may be NULL. */
void belay__record_release(belay_t *belay, belay__record_t *record);

/* Returns the size of the record in memory, in bytes. */
size_t belay__record_size(const belay__record_t *record);

static inline unsigned char *belay__record_tag(belay__record_t *record, size_t i) {
  return record->bytes + record->len + i * BELAY__RECORD_ID;
}

/* Reads a stored record with at most max_len bytes of data. Returns 0 and a new record;
 * BELAY_EMISMATCH if the bytes are not a valid record; or BELAY_ENOMEM. */
int belay__record_read(belay_t *belay, const void *bytes, size_t len, size_t max_len,
                       belay__record_t **out);

/* Writes the stored form. The record must meet the conditions at the top of this file. *out gets
 * *len bytes in a block of *size bytes, which the caller frees with belay__free(). Data of at least
 * compress_bytes bytes is compressed if that makes it smaller; compress_bytes 0: never. Returns 0
 * or BELAY_ENOMEM. */
int belay__record_write(belay_t *belay, const belay__record_t *record, size_t compress_bytes,
                        char **out, size_t *len, size_t *size);

/* Encodes a time as the header of a stored record contains it. */
void belay__record_put_ms(char out[8], int64_t ms);

#endif /* BELAY_CACHE_RECORD_H */
