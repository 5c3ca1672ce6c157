/* Stored values of a cache: bytes that are not a valid record are refused, others survive a
 * writing and reading. The checksum of the input is corrected, or else no input would pass. */
#include <string.h>
#include <xxhash.h>

#include "cache/record.h"
#include "fuzz/fuzz.h"

#define VALUE_MAX ((size_t)65536)
#define AT_SUM 24
#define AT_SUMMED 32

static void correct_sum(unsigned char *bytes, size_t len) {
  if (len < BELAY__RECORD_HEAD)
    return;
  memcpy(bytes, BELAY__RECORD_MAGIC, 4);
  uint64_t sum = XXH3_64bits(bytes + AT_SUMMED, len - AT_SUMMED);
  for (size_t i = 0; i < 8; i++)
    bytes[AT_SUM + i] = (unsigned char)(sum >> 8 * i) ^ bytes[i];
}

static void check_again(belay_t *belay, const belay__record_t *record, size_t compress_bytes) {
  char *stored;
  size_t len, size;
  belay__record_t *again;
  REQUIRE(belay__record_write(belay, record, compress_bytes, &stored, &len, &size) == 0);
  REQUIRE(belay__record_read(belay, stored, len, VALUE_MAX, &again) == 0);
  REQUIRE(again->len == record->len && again->tags_len == record->tags_len);
  REQUIRE(again->kind == record->kind && again->error == record->error);
  REQUIRE(again->fresh_ms == record->fresh_ms && again->retry_ms == record->retry_ms);
  REQUIRE(memcmp(again->bytes, record->bytes, record->len + record->tags_len * BELAY__RECORD_ID) ==
          0);
  belay__record_release(belay, again);
  belay__free(belay, stored, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
  belay_t belay;
  belay__record_t *record;
  unsigned char *bytes = fuzz_copy(data, len);
  fuzz_belay_init(&belay);
  correct_sum(bytes, len);
  int error = belay__record_read(&belay, bytes, len, VALUE_MAX, &record);
  REQUIRE(error == 0 || error == BELAY_EMISMATCH);
  if (error == 0) {
    REQUIRE(record->len <= VALUE_MAX && record->tags_len <= BELAY_CACHE_TAGS_MAX);
    check_again(&belay, record, 0);
    check_again(&belay, record, 1);
    belay__record_release(&belay, record);
  }
  REQUIRE(belay.stats.memory_bytes == 0);
  free(bytes);
  return 0;
}
