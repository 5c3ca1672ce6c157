/* Records and their envelopes, made up. */
#ifndef TEST_SUPPORT_MODELS_ENVELOPES_H
#define TEST_SUPPORT_MODELS_ENVELOPES_H

#include <xxhash.h>

#include "cache/record.h"
#include "support/base/small.h"

#define MIB ((size_t)1024 * 1024)
#define HEAD BELAY__RECORD_HEAD

/* Where the head says what, as it is documented. */
enum { KIND = 4, ENCODING, TAGS, ZERO, FRESH = 8, RETRY = 16, SUM = 24, CREATED = 32 };
enum { LOAD = 40, ERROR = 44, ID = 48, RAW = 64, WRITTEN = 68 };

typedef enum content { ZEROS, TEXT, RANDOM, CONTENTS } content_t;

static inline void fill(world_t *world, unsigned char *out, size_t len, content_t content) {
  static const char text[] = "what a key stands for is kept on the server for a while; ";
  for (size_t i = 0; i < len; i++)
    out[i] = content == ZEROS  ? 0
             : content == TEXT ? (unsigned char)text[i % (sizeof text - 1)]
                               : (unsigned char)draw(world);
}

static inline belay__record_t *new_record(world_t *world, belay__record_kind_t kind, size_t len,
                                          size_t tags_len, content_t content) {
  belay__record_t *record = belay__record_new(&world->belay, kind, len, tags_len);
  assert_non_null(record);
  fill(world, record->bytes, len, content);
  for (size_t i = 0; i < tags_len; i++)
    fill(world, belay__record_tag(record, i), BELAY__RECORD_ID, RANDOM);
  fill(world, record->id, sizeof record->id, RANDOM);
  record->error = kind == BELAY__RECORD_ERROR ? -5 : 0;
  record->load_us = (uint32_t)draw(world);
  record->created_ms = (int64_t)(draw(world) >> 1);
  record->fresh_ms = (int64_t)(draw(world) >> 1);
  record->retry_ms = (int64_t)(draw(world) >> 1);
  return record;
}

/* An envelope in malloc's memory, of just its size, so that reading beyond it is noticed. */
typedef struct envelope {
  unsigned char *bytes;
  size_t len;
} envelope_t;

static inline envelope_t copy_of(const void *bytes, size_t len) {
  envelope_t copy = {malloc(len > 0 ? len : 1), len};
  assert_non_null(copy.bytes);
  memcpy(copy.bytes, bytes, len);
  return copy;
}

static inline envelope_t written(world_t *world, const belay__record_t *record,
                                 size_t compress_bytes) {
  char *bytes;
  size_t len, size;
  assert_error(belay__record_write(&world->belay, record, compress_bytes, &bytes, &len, &size), 0);
  assert_true(len <= size);
  envelope_t envelope = copy_of(bytes, len);
  belay__free(&world->belay, bytes, size);
  return envelope;
}

static inline void put(envelope_t *envelope, size_t at, uint64_t number, size_t len) {
  for (size_t i = 0; i < len; i++)
    envelope->bytes[at + i] = (unsigned char)(number >> 8 * i);
}

/* Makes the sum right, as the format is documented. */
static inline void seal(envelope_t *envelope) {
  put(envelope, SUM, XXH3_64bits(envelope->bytes + CREATED, envelope->len - CREATED), 8);
  for (size_t i = 0; i < 8; i++)
    envelope->bytes[SUM + i] ^= envelope->bytes[i];
}

static inline int read_as(world_t *world, const envelope_t *envelope, size_t max_len) {
  belay__record_t *record;
  int error = belay__record_read(&world->belay, envelope->bytes, envelope->len, max_len, &record);
  assert_true((record != NULL) == (error == 0));
  belay__record_release(&world->belay, record);
  return error;
}

#endif /* TEST_SUPPORT_MODELS_ENVELOPES_H */
