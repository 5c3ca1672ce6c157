/* The plain kind: one layer of a fixed size. */
#include "data/bloom/plan.h"

static belay__bloom_layer_t layer_of(const belay__bloom_form_t *form) {
  return (belay__bloom_layer_t){.shape = form->shape};
}

static unsigned layers(const belay__bloom_config_t *config, const void *value, size_t len,
                       belay__bloom_layer_t out[BELAY__BLOOM_LAYERS_MAX]) {
  (void)value;
  (void)len;
  out[0] = layer_of(&config->form);
  return 1;
}

static size_t plan_size(const belay_bloom_t *bloom, belay__bloom_what_t what, size_t n) {
  return what == BELAY__BLOOM_INFO ? bloom->form.shape.segments * sizeof(belay__bloom_census_t)
                                   : belay__bloom_plan_size(bloom, &bloom->form.shape, n);
}

static int send_info(belay__operation_t *operation) {
  const belay_bloom_t *bloom = operation->context;
  const belay__bloom_layer_t layer = layer_of(&bloom->config.form);
  return belay__bloom_census_send(operation, &layer, 1, layer.shape.segments);
}

static int read_info(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  const belay_bloom_t *bloom = operation->context;
  belay__bloom_census_t *census = belay__bloom_op(operation)->plan;
  int error = belay__bloom_census_read(operation, reply, census);
  if (error != 0 || operation->index == 0)
    return error;
  /* More bits are set than the segment has: another program, or a filter with more bits, has
   * written the key. */
  if (census[(operation->index - 1) / 2].bits_set > bloom->form.shape.segment_bits)
    return belay__handle_mismatch(call, "a segment has more bits than it can have");
  return 0;
}

static int end_info(belay__operation_t *operation) {
  const belay_bloom_t *bloom = operation->context;
  const belay__bloom_form_t *form = &bloom->config.form;
  belay__bloom_op_t *op = belay__bloom_op(operation);
  const belay__bloom_census_t *census = op->plan;
  belay_bloom_info_t *info = &op->info;
  bool whole = info->remaining_ms != -2;
  double items = 0;
  *info = (belay_bloom_info_t){.kind = BELAY_BLOOM_PLAIN,
                               .generation = op->generation,
                               .capacity = form->capacity,
                               .hashes = form->shape.hashes,
                               .layers = 1,
                               .remaining_ms = info->remaining_ms};
  for (uint32_t i = 0; i < form->shape.segments; i++) {
    whole = whole && census[i].there;
    belay__bloom_info_add(info, &form->shape, census[i].bits_set, &items);
  }
  info->saturation = (double)info->bits_set / (double)info->bits;
  return whole ? 0 : belay__bloom_reread_config(operation, 0, NULL);
}

static int send_items(belay__operation_t *operation) {
  const belay_bloom_t *bloom = operation->context;
  belay__bloom_op_t *op = belay__bloom_op(operation);
  belay__bloom_plan_t *plan = op->plan;
  const belay__bloom_layer_t layer = layer_of(&bloom->form);
  if (op->tries == 0)
    belay__bloom_plan_make(bloom, plan, &layer, op);
  uint32_t n = belay__bloom_plan_select(plan, op->generation);
  if (n > 0)
    return belay__request_send_each(operation, n, belay__bloom_plan_call, NULL);
  belay__request_end(operation, 0); /* all chunks have read the new generation */
  return 0;
}

static int end_items(belay__operation_t *operation) {
  belay__bloom_op_t *op = belay__bloom_op(operation);
  belay__bloom_plan_t *plan = op->plan;
  if (belay__bloom_plan_select(plan, op->generation) == 0)
    return 0;
  if (op->stale) { /* a replica may lag behind: ask the primary */
    op->stale = false;
    int error = send_items(operation);
    return error != 0 ? error : BELAY__REQUEST_PARK;
  }
  size_t strays = op->what == BELAY__BLOOM_ADD ? belay__bloom_plan_select_strays(plan) : 0;
  return belay__bloom_reread_config(operation, strays, belay__bloom_plan_stray);
}

static int send(belay__operation_t *operation) {
  const belay_bloom_t *bloom = operation->context;
  belay__bloom_op_t *op = belay__bloom_op(operation);
  op->generation = bloom->config.generation;
  op->stale = op->what == BELAY__BLOOM_EXISTS && operation->client->read_from != BELAY_READ_PRIMARY;
  return op->what == BELAY__BLOOM_INFO ? send_info(operation) : send_items(operation);
}

static int read(belay__operation_t *operation, const belay__call_t *call,
                const belay__reply_t *reply) {
  belay__bloom_op_t *op = belay__bloom_op(operation);
  return op->what == BELAY__BLOOM_INFO
             ? read_info(operation, call, reply)
             : belay__bloom_plan_read(operation->context, op->plan, op, operation->index, reply);
}

static int next(belay__operation_t *operation) {
  return belay__bloom_op(operation)->what == BELAY__BLOOM_INFO ? end_info(operation)
                                                               : end_items(operation);
}

const belay__bloom_kind_t belay__bloom_plain = {
    .plan_size = plan_size, .send = send, .read = read, .next = next, .layers = layers};
