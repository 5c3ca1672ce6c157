/* Memory, and bytes that grow. */
#include <stdlib.h>
#include <string.h>

#include "store.h"

void *engine_allocate(size_t size) {
  void *at = calloc(1, size);
  if (at == NULL)
    abort();
  return at;
}

void *engine_reallocate(void *at, size_t size) {
  at = realloc(at, size);
  if (at == NULL)
    abort();
  return at;
}

char *engine_buffer_room(engine_buffer_t *buffer, size_t more) {
  size_t needed = buffer->len + more;
  if (needed > buffer->cap || buffer->at == NULL) {
    size_t cap = needed > 2 * buffer->cap ? needed : 2 * buffer->cap;
    buffer->cap = cap > 16 ? cap : 16;
    buffer->at = engine_reallocate(buffer->at, buffer->cap);
  }
  return buffer->at + buffer->len;
}

void engine_buffer_add(engine_buffer_t *buffer, const char *at, size_t len) {
  char *end = engine_buffer_room(buffer, len);
  if (len > 0)
    memcpy(end, at, len);
  buffer->len += len;
}

void engine_buffer_set(engine_buffer_t *buffer, const char *at, size_t len) {
  buffer->len = 0;
  engine_buffer_add(buffer, at, len);
}

void engine_buffer_free(engine_buffer_t *buffer) {
  free(buffer->at);
  *buffer = (engine_buffer_t){0};
}
