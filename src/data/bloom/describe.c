/* Reads the options with which an existing filter was created, from its configuration. */
#include "data/bloom/bloom.h"

static void options_of(const belay__bloom_config_t *config, belay_bloom_options_t *out) {
  const belay__bloom_form_t *form = &config->form;
  belay_bloom_options_init(out);
  out->kind = form->kind;
  out->seed = form->hasher.seed;
  out->window_ms = form->window_ms;
  if (config->ends_at == 0)
    out->ttl_ms = 0;
  if (form->capacity != 0) {
    out->capacity = form->capacity;
    out->error_rate = form->error_rate;
  } else {
    out->bits = (int64_t)belay__bloom_shape_bits(&form->shape);
    out->hashes = form->shape.hashes;
  }
}

static int read_made(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  belay__bloom_config_t config;
  if (reply->type == BELAY__REPLY_NIL)
    return BELAY_EABSENT;
  if (reply->type != BELAY__REPLY_STRING)
    return BELAY_EPROTO;
  const char *wrong = belay__bloom_unpack(reply->str, reply->len, &config);
  if (wrong != NULL)
    return belay__handle_mismatch(call, wrong);
  options_of(&config, operation->room);
  return 0;
}

static void notify(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  const belay_bloom_options_t unknown = {0};
  const belay_bloom_options_t *made = answer->room;
  ((belay_bloom_options_cb)cb)(request, answer->status, answer->status == 0 ? made : &unknown);
}

static const belay__request_ops_t made_ops = {
    .read = read_made, .notify = notify, .idempotent = true};

int belay_bloom_read_options(belay_bloom_t *bloom, belay_request_t *request,
                             belay_bloom_options_cb cb) {
  return belay__bloom_ask_config(bloom, request, &made_ops, BELAY__CB(cb),
                                 sizeof(belay_bloom_options_t));
}
