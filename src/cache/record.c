#include "cache/record.h"

#include <assert.h>
#include <lz4.h>
#include <string.h>
#include <xxhash.h>

#include "core/key/bytes.h"

_Static_assert(XXH_VERSION_NUMBER >= 800, "XXH3 is what it is since 0.8.0");
_Static_assert(BELAY_CACHE_VALUE_MAX <= LZ4_MAX_INPUT_SIZE, "one block");
_Static_assert(sizeof BELAY__RECORD_MAGIC == 5, "four bytes");

#define PLAIN 0
#define LZ4 1
#define LZ4_RATIO_MAX 255 /* one byte of an LZ4 block decodes to at most this many bytes */

/* Offsets of the other header fields. */
#define AT_KIND 4
#define AT_ENCODING 5
#define AT_TAGS 6
#define AT_ZERO 7
#define AT_SUM 24
#define AT_CREATED 32
#define AT_LOAD 40
#define AT_ERROR 44
#define AT_RAW 64
#define AT_WRITTEN 68

/* the checksum covers the stored record from this offset on, and also its first 8 bytes */
#define SUMMED 32

/* ---- numbers ---- */

/* Written without a loop, so that compilers generate one load. */
static uint32_t number_at4(const unsigned char *b) {
  return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint64_t number_at8(const unsigned char *b) {
  return number_at4(b) | (uint64_t)number_at4(b + 4) << 32;
}

/* Interprets the number as two's complement. */
static int64_t signed_of(uint64_t number) {
  return number <= INT64_MAX ? (int64_t)number : -(int64_t)~number - 1;
}

void belay__record_put_ms(char out[8], int64_t ms) {
  belay__put_le(out, (uint64_t)ms, 8);
}

/* Computes the checksum of a stored record. The checksum covers all fields except itself and the
 * two that scripts change. */
static uint64_t sum_of(const unsigned char *bytes, size_t len) {
  return XXH3_64bits(bytes + SUMMED, len - SUMMED) ^ number_at8(bytes);
}

/* ---- records ---- */

static size_t size_of(size_t len, size_t tags_len) {
  return sizeof(belay__record_t) + len + tags_len * BELAY__RECORD_ID;
}

belay__record_t *belay__record_new(belay_t *belay, belay__record_kind_t kind, size_t len,
                                   size_t tags_len) {
  assert(len <= BELAY_CACHE_VALUE_MAX && tags_len <= BELAY_CACHE_TAGS_MAX);
  belay__record_t *record = belay__alloc(belay, size_of(len, tags_len));
  if (record == NULL)
    return NULL;
  *record = (belay__record_t){
      .refs = 1, .kind = (uint8_t)kind, .tags_len = (uint8_t)tags_len, .len = len};
  return record;
}

belay__record_t *belay__record_retain(belay__record_t *record) {
  record->refs++;
  return record;
}

void belay__record_release(belay_t *belay, belay__record_t *record) {
  if (record == NULL)
    return;
  assert(record->refs > 0);
  if (--record->refs == 0)
    belay__free(belay, record, belay__record_size(record));
}

size_t belay__record_size(const belay__record_t *record) {
  return size_of(record->len, record->tags_len);
}

/* ---- reading ---- */

/* Layout of a stored record, from its header. */
typedef struct shape {
  size_t raw, written, tags_len;
  bool compressed;
} shape_t;

/* true if the header, the length of the value and the checksum are valid. Then *shape has the
 * layout. The checksum comes last, because only it reads all bytes. */
static bool is_envelope(const unsigned char *bytes, size_t len, size_t max_len, shape_t *shape) {
  if (len < BELAY__RECORD_HEAD || memcmp(bytes, BELAY__RECORD_MAGIC, 4) != 0)
    return false;
  uint8_t kind = bytes[AT_KIND], encoding = bytes[AT_ENCODING];
  *shape = (shape_t){.raw = number_at4(bytes + AT_RAW),
                     .written = number_at4(bytes + AT_WRITTEN),
                     .tags_len = bytes[AT_TAGS],
                     .compressed = encoding == LZ4};
  if (kind < BELAY__RECORD_VALUE || kind > BELAY__RECORD_ERROR || encoding > LZ4 ||
      shape->tags_len > BELAY_CACHE_TAGS_MAX || bytes[AT_ZERO] != 0)
    return false;
  if (shape->raw > max_len || shape->raw > BELAY_CACHE_VALUE_MAX)
    return false;
  if (shape->compressed
          ? shape->written >= shape->raw || shape->raw / LZ4_RATIO_MAX > shape->written
          : shape->written != shape->raw)
    return false;
  if (shape->raw > 0 && kind != BELAY__RECORD_VALUE)
    return false;
  if ((number_at4(bytes + AT_ERROR) != 0) != (kind == BELAY__RECORD_ERROR))
    return false;
  return len - BELAY__RECORD_HEAD == shape->tags_len * BELAY__RECORD_ID + shape->written &&
         number_at8(bytes + AT_SUM) == sum_of(bytes, len);
}

/* Reads the times, the error and the id. false if a time is negative. */
static bool read_head(belay__record_t *record, const unsigned char *bytes) {
  record->created_ms = signed_of(number_at8(bytes + AT_CREATED));
  record->fresh_ms = signed_of(number_at8(bytes + BELAY__RECORD_AT_FRESH));
  record->retry_ms = signed_of(number_at8(bytes + BELAY__RECORD_AT_RETRY));
  record->load_us = number_at4(bytes + AT_LOAD);
  uint32_t error = number_at4(bytes + AT_ERROR);
  record->error = error <= INT32_MAX ? (int32_t)error : -(int32_t)~error - 1;
  memcpy(record->id, bytes + BELAY__RECORD_AT_ID, BELAY__RECORD_ID);
  return record->created_ms >= 0 && record->fresh_ms >= 0 && record->retry_ms >= 0;
}

static bool read_data(belay__record_t *record, const unsigned char *from, const shape_t *shape) {
  if (!shape->compressed) {
    memcpy(record->bytes, from, shape->raw);
    return true;
  }
  return LZ4_decompress_safe((const char *)from, (char *)record->bytes, (int)shape->written,
                             (int)shape->raw) == (int)shape->raw;
}

int belay__record_read(belay_t *belay, const void *bytes, size_t len, size_t max_len,
                       belay__record_t **out) {
  *out = NULL;
  shape_t shape;
  if (!is_envelope(bytes, len, max_len, &shape))
    return BELAY_EMISMATCH;
  const unsigned char *head = bytes, *tags = head + BELAY__RECORD_HEAD;
  belay__record_t *record =
      belay__record_new(belay, (belay__record_kind_t)head[AT_KIND], shape.raw, shape.tags_len);
  if (record == NULL)
    return BELAY_ENOMEM;
  size_t tags_size = shape.tags_len * BELAY__RECORD_ID;
  if (!read_head(record, head) || !read_data(record, tags + tags_size, &shape)) {
    belay__record_release(belay, record);
    return BELAY_EMISMATCH;
  }
  memcpy(belay__record_tag(record, 0), tags, tags_size);
  *out = record;
  return 0;
}

/* ---- writing ---- */

/* Writes the data, compressed if that is requested and makes it smaller. Returns the bytes
 * written. */
static size_t write_data(const belay__record_t *record, size_t compress_bytes, unsigned char *out,
                         uint8_t *encoding) {
  *encoding = LZ4;
  if (compress_bytes > 0 && record->len >= compress_bytes && record->len > 1) {
    int len = LZ4_compress_default((const char *)record->bytes, (char *)out, (int)record->len,
                                   (int)record->len - 1);
    if (len > 0)
      return (size_t)len;
  }
  *encoding = PLAIN;
  memcpy(out, record->bytes, record->len);
  return record->len;
}

int belay__record_write(belay_t *belay, const belay__record_t *record, size_t compress_bytes,
                        char **out, size_t *len, size_t *size) {
  assert(record->created_ms >= 0 && record->fresh_ms >= 0 && record->retry_ms >= 0);
  assert((record->error != 0) == (record->kind == BELAY__RECORD_ERROR));
  assert(record->len == 0 || record->kind == BELAY__RECORD_VALUE);
  size_t tags_size = record->tags_len * BELAY__RECORD_ID;
  *size = BELAY__RECORD_HEAD + tags_size + record->len;
  unsigned char *bytes = belay__alloc(belay, *size);
  *out = (char *)bytes;
  if (bytes == NULL)
    return BELAY_ENOMEM;
  unsigned char *data = bytes + BELAY__RECORD_HEAD + tags_size;
  size_t written = write_data(record, compress_bytes, data, &bytes[AT_ENCODING]);
  *len = BELAY__RECORD_HEAD + tags_size + written;
  memcpy(bytes, BELAY__RECORD_MAGIC, 4);
  bytes[AT_KIND] = record->kind;
  bytes[AT_TAGS] = record->tags_len;
  bytes[AT_ZERO] = 0;
  belay__put_le(bytes + AT_CREATED, (uint64_t)record->created_ms, 8);
  belay__put_le(bytes + BELAY__RECORD_AT_FRESH, (uint64_t)record->fresh_ms, 8);
  belay__put_le(bytes + BELAY__RECORD_AT_RETRY, (uint64_t)record->retry_ms, 8);
  belay__put_le(bytes + AT_LOAD, record->load_us, 4);
  belay__put_le(bytes + AT_ERROR, (uint32_t)record->error, 4);
  belay__put_le(bytes + AT_RAW, record->len, 4);
  belay__put_le(bytes + AT_WRITTEN, written, 4);
  memcpy(bytes + BELAY__RECORD_AT_ID, record->id, BELAY__RECORD_ID);
  memcpy(bytes + BELAY__RECORD_HEAD, record->bytes + record->len, tags_size);
  belay__put_le(bytes + AT_SUM, sum_of(bytes, *len), 8);
  return 0;
}
