/* A plain Bloom filter in memory. Each segment begins at a byte, behind the one before. */
#include <stdlib.h>
#include <string.h>

#include "belay/error.h"
#include "data/bloom/form.h"

struct belay_bloomset {
  belay_allocator_t allocator;
  belay__bloom_form_t form;
  size_t segment_len; /* Bytes */
  uint8_t *bits;
};

static void *plain_alloc(void *ctx, size_t size) {
  (void)ctx;
  return malloc(size);
}

static void plain_free(void *ctx, void *ptr) {
  (void)ctx;
  free(ptr);
}

int belay_bloomset_new(const belay_bloom_options_t *options, const belay_allocator_t *allocator,
                       belay_bloomset_t **out) {
  const belay_allocator_t plain = {.alloc = plain_alloc, .free = plain_free};
  belay__bloom_form_t form;
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  if (options == NULL || options->kind != BELAY_BLOOM_PLAIN ||
      belay__bloom_form_of(options, &form) != NULL)
    return BELAY_EINVAL;
  if (allocator == NULL)
    allocator = &plain;
  size_t segment_len = (form.shape.segment_bits + 7) / 8;
  if (segment_len > SIZE_MAX / form.shape.segments)
    return BELAY_ENOMEM;
  size_t len = segment_len * form.shape.segments;
  belay_bloomset_t *set = allocator->alloc(allocator->ctx, sizeof *set);
  uint8_t *bits = set == NULL ? NULL : allocator->alloc(allocator->ctx, len);
  if (bits == NULL) {
    if (set != NULL)
      allocator->free(allocator->ctx, set);
    return BELAY_ENOMEM;
  }
  *set = (belay_bloomset_t){.allocator = *allocator,
                            .form = form,
                            .segment_len = segment_len,
                            .bits = memset(bits, 0, len)};
  *out = set;
  return 0;
}

void belay_bloomset_free(belay_bloomset_t *set) {
  if (set == NULL)
    return;
  belay_allocator_t allocator = set->allocator;
  allocator.free(allocator.ctx, set->bits);
  allocator.free(allocator.ctx, set);
}

/* Return the segment of an item, and set *walk to its first position. */
static uint8_t *find_segment(const belay_bloomset_t *set, const void *item, size_t len,
                             belay__bloom_walk_t *walk) {
  const belay__bloom_shape_t *shape = &set->form.shape;
  belay__bloom_hash_t hash = belay__bloom_hash(&set->form.hasher, item, len);
  *walk = (belay__bloom_walk_t){.g = hash.h1, .step = hash.h2};
  return set->bits + set->segment_len * belay__bloom_segment(hash, shape);
}

bool belay_bloomset_add(belay_bloomset_t *set, belay_bytes_t item) {
  belay__bloom_walk_t walk;
  uint8_t *bits = find_segment(set, item.data, item.len, &walk);
  bool new = false;
  for (uint32_t i = 0; i < set->form.shape.hashes; i++) {
    uint32_t position = belay__bloom_walk(&walk, i, &set->form.shape);
    new |= !belay__bloom_bit(bits, position);
    belay__bloom_bit_set(bits, position);
  }
  return new;
}

bool belay_bloomset_exists(const belay_bloomset_t *set, belay_bytes_t item) {
  belay__bloom_walk_t walk;
  const uint8_t *bits = find_segment(set, item.data, item.len, &walk);
  for (uint32_t i = 0; i < set->form.shape.hashes; i++)
    if (!belay__bloom_bit(bits, belay__bloom_walk(&walk, i, &set->form.shape)))
      return false;
  return true;
}

static int count_bits(uint8_t byte) {
  int n = 0;
  for (; byte != 0; byte &= (uint8_t)(byte - 1))
    n++;
  return n;
}

void belay_bloomset_info(const belay_bloomset_t *set, belay_bloom_info_t *out) {
  const belay__bloom_shape_t *shape = &set->form.shape;
  double items = 0;
  *out = (belay_bloom_info_t){.kind = BELAY_BLOOM_PLAIN,
                              .capacity = set->form.capacity,
                              .hashes = shape->hashes,
                              .layers = 1,
                              .remaining_ms = -1};
  for (uint32_t s = 0; s < shape->segments; s++) {
    int64_t bits_set = 0;
    for (size_t i = 0; i < set->segment_len; i++)
      bits_set += count_bits(set->bits[s * set->segment_len + i]);
    belay__bloom_info_add(out, shape, bits_set, &items);
  }
  out->saturation = (double)out->bits_set / (double)out->bits;
}

const uint8_t *belay_bloomset_bits(const belay_bloomset_t *set, unsigned segment, size_t *len) {
  if (set == NULL || segment >= set->form.shape.segments)
    return NULL;
  if (len != NULL)
    *len = set->segment_len;
  return set->bits + segment * set->segment_len;
}
