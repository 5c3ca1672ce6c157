#include "data/bloom/bloom.h"

typedef struct census {
  const belay__bloom_layer_t *layers;
  size_t segments; /* Number of segments of each layer */
} census_t;

static belay__call_t *census_call(belay__operation_t *operation, size_t i, const void *arg) {
  const belay_bloom_t *bloom = operation->context;
  const census_t *census = arg;
  belay__call_t *call = belay__call_new(operation->client, BELAY__CLASS_BULK);
  if (i == 0) {
    belay__call_command(call, "PTTL", 2);
    belay__bloom_arg_config(bloom, call);
    return call;
  }
  size_t nth = (i - 1) / 2;
  const belay__bloom_layer_t *layer = &census->layers[nth / census->segments];
  bool head = i % 2 == 1;
  size_t end = head ? BELAY__BLOOM_HEADER : belay__bloom_segment_bytes(&layer->shape);
  belay__call_command(call, head ? "GETRANGE" : "BITCOUNT", 4);
  belay__bloom_arg_segment(bloom, call, layer, (uint32_t)(nth % census->segments), "");
  belay__call_arg_int(call, head ? 0 : BELAY__BLOOM_HEADER);
  belay__call_arg_int(call, (int64_t)end - 1);
  return call;
}

int belay__bloom_census_send(belay__operation_t *operation, const belay__bloom_layer_t *layers,
                             size_t layers_len, size_t n) {
  const census_t census = {.layers = layers, .segments = n};
  return belay__request_send_each(operation, 1 + 2 * layers_len * n, census_call, &census);
}

int belay__bloom_census_read(belay__operation_t *operation, const belay__reply_t *reply,
                             belay__bloom_census_t *out) {
  belay__bloom_op_t *op = belay__bloom_op(operation);
  char header[BELAY__BLOOM_HEADER];
  if (operation->index == 0)
    return belay__reply_integer(reply, -2, INT64_MAX, &op->info.remaining_ms) ? 0 : BELAY_EPROTO;
  out += (operation->index - 1) / 2;
  if (operation->index % 2 == 0)
    return belay__reply_integer(reply, 0, BELAY__BLOOM_SEGMENT_BITS_MAX, &out->bits_set)
               ? 0
               : BELAY_EPROTO;
  if (reply->type != BELAY__REPLY_STRING || reply->len > sizeof header)
    return BELAY_EPROTO;
  belay__bloom_header(op->generation, header);
  out->there = belay__reply_is(reply, header, sizeof header);
  return 0;
}
