#include "data/bloom/batch.h"

#include <string.h>

#define CALL_BITS 8192u    /* in a call: some milliseconds of the server's */
#define ROUND_BITS 524288u /* in all calls of a round: some MiB */
#define FRUITLESS_MAX 8

/* ---- plans --------------------------------------------------------------------------------------------- */

size_t belay__bloom_batch_size(size_t plan, size_t n) {
  return plan + n;
}

void belay__bloom_batch_begin(belay__pending_t *pending, size_t plan) {
  const belay_bloom_t *bloom = pending->context;
  belay__bloom_op_t *op = belay__bloom_op(pending);
  belay__bloom_batch_t *batch = op->plan;
  op->generation = bloom->config.generation;
  batch->dealt = (bool *)op->plan + plan;
  batch->other = batch->lost = false;
  if (batch->generation == op->generation)
    return;
  batch->generation = op->generation;
  batch->left = op->n;
  memset(batch->dealt, 0, op->n);
}

/* ---- rounds -------------------------------------------------------------------------------------------- */

/* Cuts what is left, as much as goes into one round. */
static void cut(belay__bloom_op_t *op, uint32_t bits) {
  belay__bloom_batch_t *batch = op->plan;
  uint32_t most = bits < CALL_BITS ? CALL_BITS / bits : 1, in_call = 0, in_round = 0, i = 0;
  batch->calls_len = 0;
  batch->first[0] = 0;
  for (; i < op->n; i++) {
    if (batch->dealt[i])
      continue;
    if (in_call == most) {
      batch->first[++batch->calls_len] = i;
      in_call = 0;
      if (batch->calls_len == BELAY__BLOOM_CALLS_MAX || in_round >= ROUND_BITS)
        return;
    }
    in_call++;
    in_round += bits;
  }
  batch->first[++batch->calls_len] = i;
}

int belay__bloom_batch_send(belay__pending_t *pending, uint32_t bits, belay__bloom_make_fn make) {
  belay__bloom_op_t *op = belay__bloom_op(pending);
  belay__bloom_batch_t *batch = op->plan;
  belay__call_t *calls[BELAY__BLOOM_CALLS_MAX];
  cut(op, bits);
  batch->learnt = false;
  for (size_t i = 0; i < batch->calls_len; i++)
    calls[i] = make(pending, batch->first[i], batch->first[i + 1]);
  return belay__request_send_all(pending, calls, batch->calls_len);
}

uint32_t belay__bloom_batch_items(const belay__pending_t *pending, uint32_t first, uint32_t end) {
  const belay__bloom_op_t *op = pending->room;
  const belay__bloom_batch_t *batch = op->plan;
  uint32_t n = 0;
  for (uint32_t i = first; i < end; i++)
    n += !batch->dealt[i];
  return n;
}

static size_t put_number(char *out, uint32_t number) {
  char text[10];
  size_t n = 0, len = 0;
  do
    text[n++] = (char)('0' + number % 10);
  while ((number /= 10) > 0);
  while (n > 0)
    out[len++] = text[--n];
  return len;
}

void belay__bloom_batch_args(const belay__pending_t *pending, belay__call_t *call, uint32_t first,
                             uint32_t end, const belay__bloom_shape_t *shapes, size_t shapes_len) {
  const belay__bloom_op_t *op = pending->room;
  const belay__bloom_batch_t *batch = op->plan;
  uint32_t positions[BELAY__BLOOM_K_MAX];
  char text[BELAY__BLOOM_K_MAX * 11];
  for (uint32_t i = first; i < end; i++)
    for (size_t j = 0; j < shapes_len && !batch->dealt[i]; j++) {
      size_t n = 0;
      belay__bloom_positions(op->hashes[i], &shapes[j], positions);
      for (uint32_t k = 0; k < shapes[j].hashes; k++) {
        n += put_number(text + n, 8 * BELAY__BLOOM_HEADER + positions[k]);
        text[n++] = ' ';
      }
      belay__call_arg(call, text, n);
    }
}

/* ---- answers ------------------------------------------------------------------------------------------- */

/* Those of a call, for its first items or for all of them. */
static bool take_answers(belay__bloom_op_t *op, uint32_t part, const belay__reply_t *text,
                         bool all) {
  belay__bloom_batch_t *batch = op->plan;
  size_t at = 0;
  if (text->type != BELAY__REPLY_STRING)
    return false;
  for (uint32_t i = batch->first[part]; i < batch->first[part + 1]; i++) {
    if (batch->dealt[i])
      continue;
    if (at == text->len)
      return !all;
    char c = text->str[at++];
    if (c != '0' && c != '1')
      return false;
    op->answers[i] = c == '1';
    batch->dealt[i] = op->touched = true;
    batch->learnt = true;
    batch->left--;
  }
  return at == text->len;
}

int belay__bloom_batch_read(belay__pending_t *pending, const belay__call_t *call,
                            const belay__reply_t *reply, size_t count, int64_t *what) {
  belay__bloom_op_t *op = belay__bloom_op(pending);
  belay__bloom_batch_t *batch = op->plan;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != count ||
      !belay__reply_integer(reply->items[0], -3, 2, what))
    return BELAY_EPROTO;
  if (*what == -3)
    return belay__handle_mismatch(call, BELAY__BLOOM_DAMAGED);
  batch->other |= *what == -1;
  batch->lost |= *what == -2;
  return take_answers(op, pending->index, reply->items[count - 1], *what == 0) ? 0 : BELAY_EPROTO;
}

int belay__bloom_batch_next(belay__pending_t *pending, uint32_t bits, belay__bloom_make_fn make) {
  belay__bloom_op_t *op = belay__bloom_op(pending);
  belay__bloom_batch_t *batch = op->plan;
  if (batch->other || batch->lost)
    return belay__bloom_look(pending, NULL, 0);
  return batch->left == 0 ? 0 : belay__bloom_batch_again(pending, bits, make);
}

int belay__bloom_batch_again(belay__pending_t *pending, uint32_t bits, belay__bloom_make_fn make) {
  belay__bloom_batch_t *batch = belay__bloom_op(pending)->plan;
  batch->fruitless = batch->learnt ? 0 : batch->fruitless + 1;
  if (batch->fruitless > FRUITLESS_MAX)
    return BELAY_EPROTO;
  int error = belay__bloom_batch_send(pending, bits, make);
  return error == 0 ? BELAY__REQUEST_PARK : error;
}

/* ---- info ---------------------------------------------------------------------------------------------- */

belay__call_t *belay__bloom_census_call(belay_bloom_t *bloom, const belay__bloom_layer_t *layer,
                                        uint32_t segment, size_t part) {
  belay__call_t *call = belay__call_new(bloom->handle.client, BELAY__LANE_BULK);
  if (call == NULL)
    return NULL;
  if (part == 0) {
    belay__call_command(call, "PTTL", 2);
    belay__bloom_arg_config(bloom, call);
    return call;
  }
  bool head = part % 2 == 1;
  belay__call_command(call, head ? "GETRANGE" : "BITCOUNT", 4);
  size_t end = head ? BELAY__BLOOM_HEADER : belay__bloom_segment_bytes(&layer->shape);
  belay__bloom_arg_segment(bloom, call, layer, segment);
  belay__call_arg_int(call, head ? 0 : BELAY__BLOOM_HEADER);
  belay__call_arg_int(call, (int64_t)end - 1);
  return call;
}

int belay__bloom_census_send(belay__pending_t *pending, const belay__bloom_layer_t *layers,
                             size_t n) {
  belay__call_t *calls[1 + 2 * BELAY__BLOOM_LAYERS_MAX];
  size_t all = 1 + 2 * n;
  for (size_t i = 0; i < all; i++)
    calls[i] =
        belay__bloom_census_call(pending->context, i == 0 ? NULL : &layers[(i - 1) / 2], 0, i);
  return belay__request_send_all(pending, calls, all);
}

int belay__bloom_census_read(belay__pending_t *pending, const belay__call_t *call,
                             const belay__reply_t *reply, belay__bloom_census_t *out) {
  belay__bloom_op_t *op = belay__bloom_op(pending);
  char header[BELAY__BLOOM_HEADER];
  (void)call;
  if (pending->index == 0)
    return belay__reply_integer(reply, -2, INT64_MAX, &op->info.ttl_ms) ? 0 : BELAY_EPROTO;
  out += (pending->index - 1) / 2;
  if (pending->index % 2 == 0)
    return belay__reply_integer(reply, 0, BELAY__BLOOM_SEGMENT_BITS_MAX, &out->bits_set)
               ? 0
               : BELAY_EPROTO;
  if (reply->type != BELAY__REPLY_STRING || reply->len > sizeof header)
    return BELAY_EPROTO;
  belay__bloom_header(op->generation, header);
  out->there = belay__reply_is(reply, header, sizeof header);
  return 0;
}
