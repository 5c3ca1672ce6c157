/* A record: what is kept of a key, in memory and as the server keeps it.
 *
 * On the server it is an envelope and what is in it. All numbers are little-endian:
 *
 *    0  4  magic: 0xbe 'l' 'y' and the version, 1
 *    4  1  kind: belay__record_kind_t
 *    5  1  how the data is written: 0 as it is, 1 LZ4 (one block)
 *    6  1  tags
 *    7  1  0
 *    8  8  until when it is fresh                          } changed in place by scripts, and so
 *   16  8  until when nobody tries to load it again, or 0  } not checked
 *   24  8  sum: XXH3 (64 bits) of bytes 32 to the end, exclusive-or bytes 0 to 7 as one number
 *   32  8  when it was stored, in milliseconds since 1970 by the server's clock; so are the other times
 *   40  4  how long the load took, in microseconds (at most 2^32 - 1)
 *   44  4  ERROR: what belay_cache_load_failed() was given
 *   48 16  id: the generation under which it was stored; no two records have the same
 *   64  4  bytes of the data
 *   68  4  bytes of the data as it is written
 *   72     tags, 16 bytes each: their generations; then the data
 *
 * What is not exactly such is no record: no time is negative, only a VALUE has data, only an ERROR has an error, and what
 * is compressed is smaller for it. The server forgets it by the ttl of its key. */
#ifndef BELAY_CACHE_RECORD_H
#define BELAY_CACHE_RECORD_H

#include "belay/cache.h"
#include "core/loop/loop.h"

#define BELAY__RECORD_HEAD ((size_t)72)
#define BELAY__RECORD_ID ((size_t)16) /* bytes of an id, and of a generation */
/* Where scripts look and write. */
#define BELAY__RECORD_MAGIC "\xbely\x01"
#define BELAY__RECORD_AT_FRESH 8
#define BELAY__RECORD_AT_RETRY 16
#define BELAY__RECORD_AT_ID 48

typedef enum belay__record_kind {
  BELAY__RECORD_VALUE = 1,
  BELAY__RECORD_ABSENT,
  BELAY__RECORD_ERROR
} belay__record_kind_t;

/* Shared by all who hold a reference; nobody changes it then. */
typedef struct belay__record {
  unsigned refs;
  uint8_t kind; /* belay__record_kind_t */
  uint8_t tags_len;
  int32_t error;
  uint32_t load_us;
  int64_t created_ms, fresh_ms, retry_ms; /* by the server's clock */
  unsigned char id[BELAY__RECORD_ID];
  size_t len;
  unsigned char bytes[]; /* the data, and behind it the tags' generations */
} belay__record_t;

/* A new one with a reference, of so many bytes, at most BELAY_CACHE_VALUE_MAX, and tags, which are to be filled in; all
 * else is 0. NULL: memory is out. */
belay__record_t *belay__record_new(belay_t *belay, belay__record_kind_t kind, size_t len,
                                   size_t tags_len);
belay__record_t *belay__record_retain(belay__record_t *record);
/* record may be NULL. */
void belay__record_release(belay_t *belay, belay__record_t *record);

/* Memory that it takes. */
size_t belay__record_size(const belay__record_t *record);

static inline unsigned char *belay__record_tag(belay__record_t *record, size_t i) {
  return record->bytes + record->len + i * BELAY__RECORD_ID;
}

/* Reads what a server keeps, of which the data is at most max_len bytes. Returns 0 and a new record; BELAY_EMISMATCH:
 * it is none; or BELAY_ENOMEM. */
int belay__record_read(belay_t *belay, const void *bytes, size_t len, size_t max_len,
                       belay__record_t **out);

/* How a server is to keep it, which is to be as it is said above: bytes of belay__alloc(), for belay__free() with *size. Data of compress_bytes (0: never)
 * or more is compressed, if that makes it smaller. Returns 0 or BELAY_ENOMEM. */
int belay__record_write(belay_t *belay, const belay__record_t *record, size_t compress_bytes,
                        char **out, size_t *len, size_t *size);

/* Writes a time as it stands in the envelope. */
void belay__record_put_ms(char out[8], int64_t ms);

#endif /* BELAY_CACHE_RECORD_H */
