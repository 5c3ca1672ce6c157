#include "data/bloom/form.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "core/key/bytes.h"

#define WINDOW_MIN_MS 1000
#define WINDOW_MAX_MS INT64_C(31536000000) /* a year */

_Static_assert(BELAY_BLOOM_KEY_LEN == BELAY__SIPHASH_KEY_LEN, "one key");
_Static_assert(BELAY_BLOOM_SEGMENT_BITS == BELAY__BLOOM_SEGMENT_BITS_MAX, "one size of segments");
_Static_assert(BELAY_BLOOM_BITS_MAX == BELAY_BLOOM_SEGMENT_BITS * BELAY__BLOOM_SEGMENTS_MAX,
               "as many as there can be");

static const char *check_window(const belay_bloom_options_t *o) {
  if (o->kind != BELAY_BLOOM_PLAIN && o->kind != BELAY_BLOOM_SCALING &&
      o->kind != BELAY_BLOOM_ROTATING)
    return "kind: not one of the three";
  bool rotating = o->kind == BELAY_BLOOM_ROTATING;
  if (!rotating && o->window_ms != 0)
    return "window_ms: not of this kind";
  if (rotating && (o->window_ms < WINDOW_MIN_MS || o->window_ms > WINDOW_MAX_MS))
    return "window_ms: not from 1000 to 31536000000";
  return NULL;
}

/* Check that a layer of a SCALING or ROTATING filter is one segment. Returns NULL, or a text about
 * the wrong option. */
static const char *check_segments(const belay_bloom_options_t *o, const belay__bloom_shape_t *s) {
  if (o->kind == BELAY_BLOOM_PLAIN || s->segments == 1)
    return NULL;
  return o->bits != 0 ? "bits: not from 1 to 33554432, of this kind"
                      : "capacity: a layer takes more than 33554432 bits";
}

static const char *shape_of(const belay_bloom_options_t *o, belay__bloom_shape_t *out) {
  if ((o->capacity == 0) == (o->bits == 0))
    return "capacity, bits: one of them must be given";
  if (o->bits != 0) {
    if (o->kind == BELAY_BLOOM_SCALING)
      return "bits: not of this kind";
    if (o->bits < 1 || o->bits > BELAY_BLOOM_BITS_MAX)
      return "bits: not from 1 to 137438953472";
    if (o->hashes > BELAY_BLOOM_HASHES_MAX)
      return "hashes: not from 1 to 32";
    unsigned hashes = o->hashes == 0 ? BELAY__BLOOM_HASHES_DEFAULT : o->hashes;
    /* options are in range here */
    (void)belay__bloom_shape_of_bits((uint64_t)o->bits, hashes, out);
    return check_segments(o, out);
  }
  if (o->capacity < 1 || o->capacity > BELAY_BLOOM_CAPACITY_MAX)
    return "capacity: not from 1 to 4294967296";
  if (!(o->error_rate >= BELAY_BLOOM_ERROR_RATE_MIN && o->error_rate <= BELAY_BLOOM_ERROR_RATE_MAX))
    return "error_rate: not from 1e-9 to 0.5";
  if (o->hashes != 0)
    return "hashes: they follow from the error rate";
  /* SCALING: the first layer has half of the rate, all others together the other half.
   * ROTATING: each of the two layers has half. */
  double rate = o->kind == BELAY_BLOOM_PLAIN ? o->error_rate : o->error_rate / 2;
  if (!belay__bloom_shape_of_capacity((uint64_t)o->capacity, rate, out))
    return "capacity: it takes more than 137438953472 bits";
  return check_segments(o, out);
}

const char *belay__bloom_form_of(const belay_bloom_options_t *options, belay__bloom_form_t *out) {
  *out = (belay__bloom_form_t){.kind = options->kind, .window_ms = options->window_ms};
  const char *wrong = check_window(options);
  if (wrong == NULL)
    wrong = shape_of(options, &out->shape);
  if (wrong == NULL && options->key != NULL && options->seed != 0)
    wrong = "seed: a key is one";
  if (wrong != NULL)
    return wrong;
  if (options->capacity != 0) {
    out->capacity = options->capacity;
    out->error_rate = options->error_rate;
  }
  out->hasher.seed = options->seed;
  out->hasher.keyed = options->key != NULL;
  if (options->key != NULL)
    memcpy(out->hasher.key, options->key, BELAY_BLOOM_KEY_LEN);
  return NULL;
}

static const char magic[8] = {'b', 'e', 'l', 'a', 'y', 'B', 'F', 1};

void belay__bloom_pack(const belay__bloom_form_t *form, int64_t generation, bool ready,
                       uint8_t out[BELAY__BLOOM_CONFIG_LEN]) {
  uint64_t rate;
  _Static_assert(sizeof rate == sizeof form->error_rate, "IEEE 754");
  memcpy(&rate, &form->error_rate, sizeof rate);
  memcpy(out, magic, sizeof magic);
  out[8] = (uint8_t)form->kind;
  out[9] = form->hasher.keyed;
  out[10] = ready;
  out[11] = 0;
  belay__put_le(out + 12, form->shape.hashes, 4);
  belay__put_le(out + 16, form->shape.segments, 4);
  belay__put_le(out + 20, form->shape.segment_bits, 4);
  belay__put_le(out + 24, form->hasher.seed, 8);
  belay__put_le(out + 32, belay__bloom_fingerprint(&form->hasher), 8);
  belay__put_le(out + 40, (uint64_t)form->capacity, 8);
  belay__put_le(out + 48, rate, 8);
  belay__put_le(out + 56, (uint64_t)form->window_ms, 8);
  belay__put_le(out + 64, (uint64_t)generation, 8);
  belay__put_le(out + 72, XXH3_64bits(out, 72), 8);
}

bool belay__bloom_digits(const char *text, size_t len, int64_t *out) {
  *out = 0;
  for (size_t i = 0; i < len; i++) {
    if (text[i] < '0' || text[i] > '9')
      return false;
    *out = *out * 10 + (text[i] - '0');
  }
  return true;
}

static bool is_shape(const belay__bloom_shape_t *s) {
  return s->hashes >= 1 && s->hashes <= BELAY__BLOOM_K_MAX && s->segments >= 1 &&
         s->segments <= BELAY__BLOOM_SEGMENTS_MAX && s->segment_bits >= 1 &&
         s->segment_bits <= BELAY__BLOOM_SEGMENT_BITS_MAX;
}

const char *belay__bloom_unpack(const void *value, size_t len, belay__bloom_config_t *out) {
  const uint8_t *at = value;
  uint64_t rate;
  if (len < sizeof magic || memcmp(at, magic, sizeof magic - 1) != 0)
    return "it holds no configuration of a Bloom filter";
  if (at[7] != (uint8_t)magic[7])
    return "it is of another version of Bloom filters";
  if (len < BELAY__BLOOM_VALUE_LEN || belay__get_le(at + 72, 8) != XXH3_64bits(at, 72))
    return "its configuration is damaged";
  belay__bloom_form_t *f = &out->form;
  *f = (belay__bloom_form_t){.kind = (belay_bloom_kind_t)at[8],
                             .hasher = {.keyed = at[9] != 0, .seed = belay__get_le(at + 24, 8)},
                             .shape = {.hashes = (uint32_t)belay__get_le(at + 12, 4),
                                       .segments = (uint32_t)belay__get_le(at + 16, 4),
                                       .segment_bits = (uint32_t)belay__get_le(at + 20, 4)},
                             .capacity = (int64_t)belay__get_le(at + 40, 8),
                             .window_ms = (int64_t)belay__get_le(at + 56, 8)};
  rate = belay__get_le(at + 48, 8);
  memcpy(&f->error_rate, &rate, sizeof rate);
  out->fingerprint = belay__get_le(at + 32, 8);
  out->generation = (int64_t)belay__get_le(at + 64, 8);
  out->ready = at[10] != 0;
  if (at[8] > BELAY_BLOOM_ROTATING || at[9] > 1 || at[10] > 1 || at[11] != 0 ||
      !is_shape(&f->shape) || out->generation <= 0 || f->capacity < 0 || f->window_ms < 0 ||
      !belay__bloom_digits((const char *)at + BELAY__BLOOM_CONFIG_LEN, BELAY__BLOOM_DIGITS,
                           &out->ends_at))
    return "its configuration is damaged";
  return NULL;
}

const char *belay__bloom_differs(const belay__bloom_form_t *form,
                                 const belay__bloom_config_t *config) {
  const belay__bloom_form_t *there = &config->form;
  if (form->kind != there->kind)
    return "it is of another kind";
  if (form->hasher.keyed != there->hasher.keyed)
    return there->hasher.keyed ? "its items are hashed under a key"
                               : "its items are not hashed under a key";
  if (belay__bloom_fingerprint(&form->hasher) != config->fingerprint)
    return "its items are hashed under another key";
  if (form->hasher.seed != there->hasher.seed)
    return "it has another seed";
  if (form->shape.hashes != there->shape.hashes)
    return "it has another number of hashes";
  if (belay__bloom_shape_bits(&form->shape) != belay__bloom_shape_bits(&there->shape))
    return "it has another number of bits";
  if (form->shape.segments != there->shape.segments)
    return "it has another number of segments";
  if (form->window_ms != there->window_ms)
    return "it has another window";
  if (form->kind == BELAY_BLOOM_SCALING &&
      (form->capacity != there->capacity || form->error_rate != there->error_rate))
    return "it grows from another capacity or error rate";
  return NULL;
}

void belay__bloom_info_add(belay_bloom_info_t *info, const belay__bloom_shape_t *shape,
                           int64_t bits_set, double *items) {
  *items += belay__bloom_shape_items(shape, (uint64_t)bits_set);
  info->items = (int64_t)(*items + 0.5);
  info->segments++;
  info->bits += shape->segment_bits;
  info->bits_set += bits_set;
}
