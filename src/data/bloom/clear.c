/* Clears a filter, in two steps. The first step reads the configuration. The second step deletes
 * the configuration together with the layers in its slot. Other calls of this step delete the
 * segments with slots of their own. A filter that another client creates meanwhile stays, because
 * each delete names the configuration or the generation that was read.
 *
 * If the configuration was missing or not readable, the options of the handle determine the keys,
 * and the keys are deleted whatever they contain. The same is true for the segments of a filter
 * that was not ready. */
#include <string.h>

#include "data/bloom/bloom.h"
#include "scripts.gen.h"

typedef struct plan {
  bool removing; /* false while it reads the configuration */
  bool ready;
  int64_t generation; /* 0: none */
  size_t value_len;   /* 0: none */
  uint8_t value[BELAY__BLOOM_VALUE_LEN];
  unsigned layers_len;
  belay__bloom_layer_t layers[BELAY__BLOOM_LAYERS_MAX];
} plan_t;

static unsigned own_layers(const belay_bloom_t *bloom, plan_t *plan) {
  const belay__bloom_config_t own = {.form = bloom->form};
  return bloom->kind->layers(&own, NULL, 0, plan->layers);
}

static int read_config(belay__operation_t *operation, plan_t *plan, const belay__reply_t *reply) {
  const belay_bloom_t *bloom = operation->context;
  belay__bloom_config_t config;
  if (reply->type != BELAY__REPLY_NIL && reply->type != BELAY__REPLY_STRING)
    return BELAY_EPROTO;
  plan->layers_len = 0;
  if (reply->type == BELAY__REPLY_STRING &&
      belay__bloom_unpack(reply->str, reply->len, &config) == NULL) {
    plan->value_len = sizeof plan->value;
    memcpy(plan->value, reply->str, sizeof plan->value);
    plan->ready = config.ready;
    plan->generation = config.generation;
    const belay__bloom_kind_t *kind = belay__bloom_kind(config.form.kind);
    if (kind != NULL)
      plan->layers_len = kind->layers(&config, reply->str, reply->len, plan->layers);
  }
  if (plan->layers_len == 0)
    plan->layers_len = own_layers(bloom, plan);
  return 0;
}

static int read_step(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  int64_t removed;
  plan_t *plan = operation->room;
  (void)call;
  if (!plan->removing)
    return read_config(operation, plan, reply);
  return belay__reply_integer(reply, 0, 1, &removed) ? 0 : BELAY_EPROTO;
}

/* Makes the call that deletes the configuration and all layers in its slot, in one step. */
static belay__call_t *discard_together(const belay_bloom_t *bloom, const plan_t *plan) {
  size_t together = 0;
  for (unsigned i = 0; i < plan->layers_len; i++)
    together += plan->layers[i].together;
  belay__call_t *call =
      belay__handle_script(&bloom->handle, &belay__script_bloom_discard, 1 + together, 1);
  belay__bloom_arg_config(bloom, call);
  for (unsigned i = 0; i < plan->layers_len; i++)
    if (plan->layers[i].together)
      belay__bloom_arg_segment(bloom, call, &plan->layers[i], 0, "");
  belay__call_arg(call, (const char *)plan->value, plan->value_len);
  return call;
}

static size_t segments_of(const belay__bloom_layer_t *layer) {
  return layer->together ? 0 : layer->shape.segments;
}

/* Makes the call for the configuration (i is 0), or for a segment that has a slot of its own. */
static belay__call_t *discard(belay__operation_t *operation, size_t i, const void *arg) {
  const belay_bloom_t *bloom = operation->context;
  const plan_t *plan = arg;
  const belay__bloom_layer_t *layer = plan->layers;
  char header[BELAY__BLOOM_HEADER];
  if (i == 0)
    return discard_together(bloom, plan);
  for (i--; i >= segments_of(layer); layer++)
    i -= segments_of(layer);
  belay__call_t *call = belay__handle_script(&bloom->handle, &belay__script_bloom_discard, 1, 1);
  belay__bloom_arg_segment(bloom, call, layer, (uint32_t)i, "");
  belay__bloom_header(plan->generation, header);
  belay__call_arg(call, header, plan->ready ? sizeof header : 0);
  return call;
}

static int next_step(belay__operation_t *operation) {
  plan_t *plan = operation->room;
  size_t n = 1;
  if (plan->removing)
    return 0;
  plan->removing = true;
  for (unsigned i = 0; i < plan->layers_len; i++)
    n += segments_of(&plan->layers[i]);
  int error = belay__request_send_each(operation, n, discard, plan);
  return error == 0 ? BELAY__REQUEST_PARK : error;
}

static void notify(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  const plan_t *plan = answer->room;
  if (plan->removing)
    belay__bloom_forget(answer->context, 0);
  ((belay_bloom_cb)cb)(request, answer->status);
}

static const belay__request_ops_t clear_ops = {
    .read = read_step, .next = next_step, .notify = notify, .idempotent = true};

int belay_bloom_clear(belay_bloom_t *bloom, belay_request_t *request, belay_bloom_cb cb) {
  return belay__bloom_ask_config(bloom, request, &clear_ops, BELAY__CB(cb), sizeof(plan_t));
}
