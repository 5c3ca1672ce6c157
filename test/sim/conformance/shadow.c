/* Rebuilds the engine's strings from its change hook, and compares them. */
#include "sim/conformance/conformance.h"

#include <stdlib.h>
#include <string.h>

#include "sim/engine/store.h"

struct conformance_shadow {
  engine_table_t strings; /* of engine_field_t */
  const char *wrong;      /* NULL: nothing yet */
};

conformance_shadow_t *conformance_shadow_new(void) {
  return engine_allocate(sizeof(conformance_shadow_t));
}

static void forget(conformance_shadow_t *shadow, engine_field_t *field) {
  engine_buffer_free(&field->value);
  engine_table_remove(&shadow->strings, &field->entry);
  free(field);
}

void conformance_shadow_free(conformance_shadow_t *shadow) {
  while (shadow->strings.first != NULL)
    forget(shadow, (engine_field_t *)shadow->strings.first);
  engine_table_clear(&shadow->strings);
  free(shadow);
}

static bool has(const engine_buffer_t *buffer, engine_bytes_t word) {
  return buffer->len == word.len && (word.len == 0 || memcmp(buffer->at, word.at, word.len) == 0);
}

void conformance_shadow_changed(conformance_shadow_t *shadow, engine_bytes_t key,
                                engine_bytes_t was, engine_bytes_t is) {
  engine_field_t *field = (engine_field_t *)engine_table_find(&shadow->strings, key);
  if ((field != NULL) != (was.at != NULL))
    shadow->wrong =
        was.at != NULL ? "a string is deleted that was not created" : "a string is created again";
  else if (field != NULL && !has(&field->value, was))
    shadow->wrong = "a string had another value";
  if (is.at == NULL) {
    if (field != NULL)
      forget(shadow, field);
    return;
  }
  if (field == NULL)
    field = engine_table_add(&shadow->strings, key, sizeof *field);
  engine_buffer_set(&field->value, is.at, is.len);
}

typedef struct counting {
  const conformance_shadow_t *shadow;
  size_t strings, known;
} counting_t;

static void count_key(void *ctx, engine_bytes_t key, const char *type, int64_t ttl_ms) {
  counting_t *counting = ctx;
  (void)ttl_ms;
  if (strcmp(type, "string") != 0)
    return;
  counting->strings++;
  counting->known += engine_table_find(&counting->shadow->strings, key) != NULL;
}

const char *conformance_shadow_check(const conformance_shadow_t *shadow, const engine_t *engine,
                                     uint64_t now_us) {
  counting_t counting = {.shadow = shadow};
  if (shadow->wrong != NULL)
    return shadow->wrong;
  engine_each_key(engine, now_us, count_key, &counting);
  if (counting.known < counting.strings)
    return "a string was not reported";
  for (const engine_entry_t *entry = shadow->strings.first; entry != NULL; entry = entry->after) {
    engine_bytes_t bytes = engine_peek(engine, now_us, entry->key);
    if (bytes.at != NULL && !has(&((const engine_field_t *)entry)->value, bytes))
      return "a string differs from the last report";
    if (bytes.at == NULL) /* expired, and not looked up yet */
      counting.known++;
  }
  return counting.known == shadow->strings.count ? NULL : "a reported string does not exist";
}
