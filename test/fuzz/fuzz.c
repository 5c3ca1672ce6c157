#include "fuzz/fuzz.h"

#include <hiredis/hiredis.h>
#include <string.h>

#include "redis/net/reader.h"

#define MAX_REPLY ((size_t)65536)

static void *alloc(void *ctx, size_t size) {
  (void)ctx;
  return malloc(size);
}

static void give_back(void *ctx, void *memory) {
  (void)ctx;
  free(memory);
}

void fuzz_belay_init(belay_t *belay) {
  *belay = (belay_t){.allocator = {.alloc = alloc, .free = give_back}};
}

void *fuzz_copy(const uint8_t *data, size_t len) {
  void *copy = malloc(len + (len == 0));
  REQUIRE(copy != NULL);
  memcpy(copy, data, len);
  return copy;
}

void fuzz_replies(const uint8_t *data, size_t len, void (*visit)(const belay__reply_t *reply)) {
  belay_t belay;
  belay__reader_t reader;
  size_t replies_due = SIZE_MAX, chunk;
  void *object = NULL;
  if (len == 0)
    return;
  redisReader *hiredis = redisReaderCreate();
  REQUIRE(hiredis != NULL);
  fuzz_belay_init(&belay);
  belay__reader_init(&reader, &belay, MAX_REPLY, &replies_due);
  reader.resp3 = (data[0] & 1) != 0;
  reader.push_mode = (data[0] & 2) != 0;
  belay__reader_attach(&reader, hiredis);
  for (size_t at = 1, most = data[0] / 4 + (size_t)1; at < len; at += chunk) {
    chunk = len - at < most ? len - at : most;
    if (redisReaderFeed(hiredis, (const char *)data + at, chunk) != REDIS_OK)
      break;
    while (redisReaderGetReply(hiredis, &object) == REDIS_OK && object != NULL) {
      visit(belay__reader_reply(object));
      hiredis->fn->freeObject(object);
    }
    REQUIRE(reader.bytes <= MAX_REPLY);
    if (hiredis->err != 0)
      break;
  }
  redisReaderFree(hiredis);
  belay__reader_deinit(&reader);
  REQUIRE(belay.stats.memory_bytes == 0);
}
