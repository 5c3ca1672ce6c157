/* The scaling kind: layers, each with twice the capacity and half the error rate of the one before,
 * so that all layers together meet the rate (the first one has half of it). When the newest layer
 * is full, the script of the next add of a new item creates a layer. A layer that would be larger
 * than a segment gets the size of a segment.
 *
 * All layers are in the slot of the name, under NAMESPACE::bloom::{NAME}::lI::0. The list of layers
 * is stored behind the configuration (lua/bloom/scaling.lua). A handle sends the bit positions of
 * an item for the layers that it knows and for the next one. If the filter has other layers, the
 * reply lists the layers of the filter.
 *
 * The size of a layer follows from logarithms, whose last bits differ between machines: the stored
 * size counts. */
#include <stdio.h>
#include <string.h>

#include "data/bloom/batch.h"
#include "scripts.gen.h"

#define COUNT_DIGITS 16

typedef struct plan {
  belay__bloom_batch_t batch;
  int64_t count; /* Items in the newest layer */
} plan_t;

/* ---- layers ---- */

static belay__bloom_layer_t layer_at(const belay__bloom_shape_t *shape, unsigned i) {
  belay__bloom_layer_t layer = {.shape = *shape, .together = true};
  (void)snprintf(layer.label, sizeof layer.label, "::l%u", i);
  return layer;
}

static bool fits(uint64_t n, double rate, belay__bloom_shape_t *out) {
  return belay__bloom_shape_of_capacity(n, rate, out) && out->segments == 1;
}

/* Compute the layer i of a filter. Returns false if there is no such layer. */
static bool next_layer(const belay__bloom_form_t *form, unsigned i, belay__bloom_growth_t *out) {
  double rate = form->error_rate / 2;
  for (unsigned j = 0; j < i; j++)
    rate /= 2;
  if (i >= BELAY__BLOOM_LAYERS_MAX || rate < BELAY__BLOOM_RATE_MIN)
    return false;
  uint64_t most = (uint64_t)form->capacity << i, least = 1;
  belay__bloom_shape_t *shape = &out->shapes[i];
  if (i == 0) {
    *shape = form->shape;
  } else if (!fits(most, rate, shape)) {
    while (most - least > 1) {
      uint64_t middle = least + (most - least) / 2;
      *(fits(middle, rate, shape) ? &least : &most) = middle;
    }
    most = least;
    if (!fits(most, rate, shape))
      return false;
  }
  out->capacities[i] = (int64_t)most;
  return true;
}

static size_t put_layer(const belay__bloom_growth_t *growth, unsigned i,
                        char out[BELAY__BLOOM_LAYER_DIGITS + 1]) {
  (void)snprintf(out, BELAY__BLOOM_LAYER_DIGITS + 1, "%02u%08u%012llu",
                 (unsigned)growth->shapes[i].hashes % 100u,
                 (unsigned)growth->shapes[i].segment_bits % 100000000u,
                 (unsigned long long)growth->capacities[i] % 1000000000000u);
  return BELAY__BLOOM_LAYER_DIGITS;
}

/* Read the state of a filter: its layers, and the number of items in the newest one. */
static bool read_state(const char *text, size_t len, belay__bloom_growth_t *out, int64_t *count) {
  int64_t hashes, bits, capacity;
  out->there = 0;
  *count = 0;
  if (len == 0)
    return true;
  if (len < COUNT_DIGITS || (len - COUNT_DIGITS) % BELAY__BLOOM_LAYER_DIGITS != 0 ||
      !belay__bloom_digits(text, COUNT_DIGITS, count))
    return false;
  size_t layers = (len - COUNT_DIGITS) / BELAY__BLOOM_LAYER_DIGITS;
  if (layers < 1 || layers > BELAY__BLOOM_LAYERS_MAX)
    return false;
  text += COUNT_DIGITS;
  for (size_t i = 0; i < layers; i++, text += BELAY__BLOOM_LAYER_DIGITS) {
    if (!belay__bloom_digits(text, 2, &hashes) || !belay__bloom_digits(text + 2, 8, &bits) ||
        !belay__bloom_digits(text + 10, 12, &capacity) || hashes < 1 ||
        hashes > BELAY__BLOOM_K_MAX || bits < 1 || bits > BELAY__BLOOM_SEGMENT_BITS_MAX ||
        capacity < 1)
      return false;
    out->shapes[i] = (belay__bloom_shape_t){
        .hashes = (uint32_t)hashes, .segments = 1, .segment_bits = (uint32_t)bits};
    out->capacities[i] = capacity;
  }
  out->there = (unsigned)layers;
  return *count <= out->capacities[layers - 1];
}

static void add_next(belay_bloom_t *bloom) {
  belay__bloom_growth_t *growth = &bloom->growth;
  growth->given = growth->there + next_layer(&bloom->config.form, growth->there, growth);
}

/* Drop the known layers if they belong to another generation than the open filter. */
static void prepare(belay_bloom_t *bloom) {
  if (bloom->growth.generation == bloom->config.generation)
    return;
  bloom->growth.generation = bloom->config.generation;
  bloom->growth.there = 0;
  add_next(bloom);
}

/* Reads the layers from a script's reply. Returns false if the state is damaged. */
static bool learn(belay__operation_t *operation, const belay__reply_t *state) {
  belay_bloom_t *bloom = operation->context;
  plan_t *plan = belay__bloom_op(operation)->plan;
  belay__bloom_growth_t now;
  int64_t count;
  if (!read_state(state->str, state->len, &now, &count))
    return false;
  belay__bloom_growth_t *growth = &bloom->growth;
  if (growth->generation != plan->batch.generation)
    return true; /* the handle has opened another filter since */
  plan->count = count;
  if (now.there < growth->there)
    return true; /* the reply is older than the known layers */
  size_t n = now.there;
  if (now.there > growth->there ||
      memcmp(now.shapes, growth->shapes, n * sizeof *now.shapes) != 0) {
    memcpy(growth->shapes, now.shapes, n * sizeof *now.shapes);
    memcpy(growth->capacities, now.capacities, n * sizeof *now.capacities);
    growth->there = now.there;
    add_next(bloom);
    plan->batch.learnt = true;
  }
  return true;
}

/* List all possible layers, so that a clear also deletes the layers of a lost configuration. */
static unsigned layers(const belay__bloom_config_t *config, const void *value, size_t len,
                       belay__bloom_layer_t out[BELAY__BLOOM_LAYERS_MAX]) {
  (void)value;
  (void)len;
  for (unsigned i = 0; i < BELAY__BLOOM_LAYERS_MAX; i++)
    out[i] = layer_at(&config->form.shape, i);
  return BELAY__BLOOM_LAYERS_MAX;
}

/* ---- items ---- */

static unsigned layers_max(const belay_bloom_t *bloom) {
  unsigned n = 0;
  double rate = bloom->config.form.error_rate / 2;
  for (; n < BELAY__BLOOM_LAYERS_MAX && rate >= BELAY__BLOOM_RATE_MIN; n++)
    rate /= 2;
  return n;
}

static belay__call_t *make(belay__operation_t *operation, uint32_t first, uint32_t end) {
  const belay_bloom_t *bloom = operation->context;
  const belay__bloom_growth_t *growth = &bloom->growth;
  char given[BELAY__BLOOM_LAYERS_MAX * BELAY__BLOOM_LAYER_DIGITS + 1];
  size_t len = 0;
  belay__call_t *call = belay__bloom_batch_script(operation, &belay__script_bloom_scaling,
                                                  growth->given, 5, growth->given, first, end);
  for (unsigned i = 0; i < growth->given; i++) {
    const belay__bloom_layer_t layer = layer_at(&growth->shapes[i], i);
    belay__bloom_arg_segment(bloom, call, &layer, 0, "");
    len += put_layer(growth, i, given + len);
  }
  belay__bloom_batch_head(operation, call);
  belay__call_arg(call, given, len);
  belay__call_arg_int(call, layers_max(bloom));
  belay__bloom_batch_args(operation, call, first, end, growth->shapes, growth->given);
  return call;
}

static uint32_t bits_of_item(const belay_bloom_t *bloom) {
  uint32_t bits = 0;
  for (unsigned i = 0; i < bloom->growth.given; i++)
    bits += bloom->growth.shapes[i].hashes;
  return bits;
}

static int read_items(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  int64_t what;
  int error = belay__bloom_batch_answers(operation, call, reply, 3, &what);
  if (error != 0)
    return error;
  if (reply->items[1]->type != BELAY__REPLY_STRING)
    return BELAY_EPROTO;
  if (what >= 0 && !learn(operation, reply->items[1]))
    return belay__handle_mismatch(call, BELAY__BLOOM_DAMAGED);
  if (what != 2)
    return 0;
  return belay__call_blame(call, BELAY_EOVERFLOW, "it is full, and cannot grow any more");
}

/* ---- info ---- */

static int live(belay__operation_t *operation, belay__bloom_layer_t out[BELAY__BLOOM_LAYERS_MAX]) {
  const belay__bloom_growth_t *growth = &((const belay_bloom_t *)operation->context)->growth;
  for (unsigned i = 0; i < growth->there; i++)
    out[i] = layer_at(&growth->shapes[i], i);
  return (int)growth->there;
}

/* Makes the info of the layers that existed when the calls of the census were made; there may be
 * more now. */
static int end_info(belay__operation_t *operation) {
  const belay_bloom_t *bloom = operation->context;
  const belay__bloom_growth_t *growth = &bloom->growth;
  belay__bloom_op_t *op = belay__bloom_op(operation);
  plan_t *plan = op->plan;
  belay_bloom_info_t *info = &op->info;
  unsigned n = plan->batch.layers;
  int64_t items = 0;
  double estimate = 0; /* not used: the filter counts its items */
  bool whole = info->remaining_ms != -2 && growth->generation == op->generation;
  *info = (belay_bloom_info_t){.kind = BELAY_BLOOM_SCALING,
                               .generation = op->generation,
                               .layers = n,
                               .hashes = growth->shapes[n == 0 ? 0 : n - 1].hashes,
                               .remaining_ms = info->remaining_ms};
  for (unsigned i = 0; i < n; i++) {
    whole = whole && plan->batch.census[i].there;
    info->capacity += growth->capacities[i];
    belay__bloom_info_add(info, &growth->shapes[i], plan->batch.census[i].bits_set, &estimate);
    items += i + 1 == n ? plan->count : growth->capacities[i];
    info->saturation = (double)plan->batch.census[i].bits_set / growth->shapes[i].segment_bits;
  }
  info->items = items;
  return whole ? 0 : belay__bloom_reread_config(operation, 0, NULL);
}

/* ---- the kind ---- */

static const belay__bloom_batch_kind_t batch_kind = {.plan = sizeof(plan_t),
                                                     .begin = prepare,
                                                     .bits_of_item = bits_of_item,
                                                     .make = make,
                                                     .read = read_items,
                                                     .live = live,
                                                     .end_info = end_info};

const belay__bloom_kind_t belay__bloom_scaling = {.batch = &batch_kind,
                                                  .plan_size = belay__bloom_batch_size,
                                                  .send = belay__bloom_batch_send,
                                                  .read = belay__bloom_batch_read,
                                                  .next = belay__bloom_batch_next,
                                                  .layers = layers};
