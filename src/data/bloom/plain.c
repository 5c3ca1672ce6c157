/* The plain kind: one layer, whose items never go. */
#include <string.h>

#include "data/bloom/batch.h"
#include "data/bloom/plan.h"

/* Of an info. */
typedef struct tally {
  double items;
  bool lost;
} tally_t;

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
  return what == BELAY__BLOOM_INFO ? sizeof(tally_t)
                                   : belay__bloom_plan_size(bloom, &bloom->form.shape, n);
}

/* ---- info ---------------------------------------------------------------------------------------------- */

static int send_info(belay__pending_t *pending) {
  belay_bloom_t *bloom = pending->context;
  belay__bloom_op_t *op = belay__bloom_op(pending);
  const belay__bloom_config_t *config = &bloom->config;
  const belay__bloom_shape_t *shape = &config->form.shape;
  const belay__bloom_layer_t layer = layer_of(&config->form);
  memset(op->plan, 0, sizeof(tally_t));
  op->info = (belay_bloom_info_t){.kind = BELAY_BLOOM_PLAIN,
                                  .generation = config->generation,
                                  .capacity = config->form.capacity,
                                  .bits = (int64_t)belay__bloom_shape_bits(shape),
                                  .hashes = shape->hashes,
                                  .layers = 1,
                                  .segments = shape->segments};
  size_t n = 1 + 2 * (size_t)shape->segments;
  belay_t *belay = pending->client->belay;
  belay__call_t **calls = belay__alloc(belay, n * sizeof(belay__call_t *));
  if (calls == NULL)
    return BELAY_ENOMEM;
  for (size_t i = 0; i < n; i++)
    calls[i] = belay__bloom_census_call(bloom, &layer, i == 0 ? 0 : (uint32_t)((i - 1) / 2), i);
  int error = belay__request_send_all(pending, calls, n);
  belay__free(belay, calls, n * sizeof(belay__call_t *));
  return error;
}

static int read_info(belay__pending_t *pending, const belay__call_t *call,
                     const belay__reply_t *reply) {
  belay__bloom_op_t *op = belay__bloom_op(pending);
  tally_t *tally = op->plan;
  const belay_bloom_t *bloom = pending->context;
  const belay__bloom_shape_t *shape = &bloom->form.shape;
  char header[BELAY__BLOOM_HEADER];
  int64_t n;
  if (pending->index == 0) {
    if (!belay__reply_integer(reply, -2, INT64_MAX, &op->info.ttl_ms))
      return BELAY_EPROTO;
    tally->lost |= op->info.ttl_ms == -2;
    return 0;
  }
  if (pending->index % 2 == 1) {
    belay__bloom_header(op->generation, header);
    if (reply->type != BELAY__REPLY_STRING || reply->len > sizeof header)
      return BELAY_EPROTO;
    tally->lost |= !belay__reply_is(reply, header, sizeof header);
    return 0;
  }
  if (!belay__reply_integer(reply, 0, INT64_MAX, &n))
    return BELAY_EPROTO;
  if (n >
      shape
          ->segment_bits) /* it is somebody else's; or a part of the next layer: more than there are */
    return belay__handle_mismatch(call, "a segment has more bits than it can have");
  op->info.bits_set += n;
  tally->items += belay__bloom_shape_items(shape, (uint64_t)n);
  return 0;
}

static int end_info(belay__pending_t *pending) {
  belay__bloom_op_t *op = belay__bloom_op(pending);
  const tally_t *tally = op->plan;
  if (tally->lost)
    return belay__bloom_look(pending, NULL, 0);
  op->info.items = (int64_t)(tally->items + 0.5);
  op->info.saturation = (double)op->info.bits_set / (double)op->info.bits;
  return 0;
}

/* ---- items --------------------------------------------------------------------------------------------- */

static int send_items(belay__pending_t *pending) {
  belay_bloom_t *bloom = pending->context;
  belay__bloom_op_t *op = belay__bloom_op(pending);
  belay__bloom_plan_t *plan = op->plan;
  const belay__bloom_layer_t layer = layer_of(&bloom->form);
  belay_t *belay = pending->client->belay;
  belay__call_t *one[1], **calls = one;
  if (op->tries == 0)
    belay__bloom_plan_make(bloom, plan, &layer, op);
  uint32_t left = belay__bloom_plan_left(plan, op->generation);
  if (left == 0) { /* all of them had met the new filter */
    belay__request_end(pending, 0);
    return 0;
  }
  size_t size = left * sizeof(belay__call_t *);
  if (left > 1 && (calls = belay__alloc(belay, size)) == NULL)
    return BELAY_ENOMEM;
  belay__bloom_plan_calls(bloom, plan, op, calls);
  int error = belay__request_send_all(pending, calls, left);
  if (left > 1)
    belay__free(belay, calls, size);
  return error;
}

static int end_items(belay__pending_t *pending) {
  belay_bloom_t *bloom = pending->context;
  belay__bloom_op_t *op = belay__bloom_op(pending);
  const belay__bloom_plan_t *plan = op->plan;
  uint32_t left = belay__bloom_plan_left(plan, op->generation);
  if (left == 0)
    return 0;
  if (op->stale) { /* perhaps a replica has not heard of it yet: its primary knows */
    op->stale = false;
    int error = send_items(pending);
    return error != 0 ? error : BELAY__REQUEST_PARK;
  }
  if (op->what != BELAY__BLOOM_ADD)
    return belay__bloom_look(pending, NULL, 0);
  belay_t *belay = pending->client->belay;
  size_t size = left * sizeof(belay__call_t *);
  belay__call_t **strays = belay__alloc(belay, size);
  if (strays == NULL)
    return BELAY_ENOMEM;
  uint32_t n = belay__bloom_plan_strays(bloom, plan, strays, left);
  int error = belay__bloom_look(pending, strays, n);
  belay__free(belay, strays, size);
  return error;
}

/* ---- the kind ------------------------------------------------------------------------------------------ */

static int send(belay__pending_t *pending) {
  const belay_bloom_t *bloom = pending->context;
  belay__bloom_op_t *op = belay__bloom_op(pending);
  op->generation = bloom->config.generation;
  op->stale = op->what == BELAY__BLOOM_EXISTS && pending->client->read_from != BELAY_READ_PRIMARY;
  return op->what == BELAY__BLOOM_INFO ? send_info(pending) : send_items(pending);
}

static int read(belay__pending_t *pending, const belay__call_t *call, const belay__reply_t *reply) {
  belay__bloom_op_t *op = belay__bloom_op(pending);
  return op->what == BELAY__BLOOM_INFO
             ? read_info(pending, call, reply)
             : belay__bloom_plan_read(pending->context, op->plan, op, pending->index, reply);
}

static int next(belay__pending_t *pending) {
  return belay__bloom_op(pending)->what == BELAY__BLOOM_INFO ? end_info(pending)
                                                             : end_items(pending);
}

const belay__bloom_kind_t belay__bloom_plain = {
    .plan_size = plan_size, .send = send, .read = read, .next = next, .layers = layers};
