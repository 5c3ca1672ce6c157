#include "data/bloom/batch.h"

#include <string.h>

/* Maximum number of bit positions in a call. The server needs some milliseconds for them. */
#define CALL_BITS 8192u
/* After this number of bit positions, a round gets no further call. As text in the calls, the
 * positions then take some MiB. */
#define ROUND_BITS 524288u
#define FRUITLESS_MAX 8

static const belay__bloom_batch_kind_t *kind_of(const belay__operation_t *operation) {
  return ((const belay_bloom_t *)operation->context)->kind->batch;
}

size_t belay__bloom_batch_size(const belay_bloom_t *bloom, belay__bloom_what_t what, size_t n) {
  (void)what;
  return bloom->kind->batch->plan + n;
}

static void begin_batch(belay__operation_t *operation) {
  const belay_bloom_t *bloom = operation->context;
  belay__bloom_op_t *op = belay__bloom_op(operation);
  belay__bloom_batch_t *batch = op->plan;
  op->generation = bloom->config.generation;
  batch->dealt = (bool *)op->plan + kind_of(operation)->plan;
  batch->other = batch->lost = batch->counting = false;
  if (batch->generation == op->generation)
    return;
  batch->generation = op->generation;
  batch->left = op->n;
  memset(batch->dealt, 0, op->n);
}

/* Divide the remaining items into the calls of a round. */
static void divide(belay__bloom_op_t *op, uint32_t bits) {
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

static belay__call_t *make_call(belay__operation_t *operation, size_t i, const void *arg) {
  const belay__bloom_batch_t *batch = belay__bloom_op(operation)->plan;
  (void)arg;
  return kind_of(operation)->make(operation, batch->first[i], batch->first[i + 1]);
}

/* Send a round: the calls for the items without an answer. For an info, which has no items, send
 * one call. */
static int send_round(belay__operation_t *operation) {
  belay__bloom_op_t *op = belay__bloom_op(operation);
  belay__bloom_batch_t *batch = op->plan;
  divide(op, kind_of(operation)->bits_of_item(operation->context));
  batch->learnt = false;
  return belay__request_send_each(operation, batch->calls_len, make_call, NULL);
}

int belay__bloom_batch_send(belay__operation_t *operation) {
  const belay__bloom_batch_kind_t *kind = kind_of(operation);
  begin_batch(operation);
  if (kind->begin != NULL)
    kind->begin(operation->context);
  return send_round(operation);
}

belay__call_t *belay__bloom_batch_script(belay__operation_t *operation,
                                         const belay__script_t *script, size_t layers, size_t more,
                                         size_t each, uint32_t first, uint32_t end) {
  const belay_bloom_t *bloom = operation->context;
  const belay__bloom_batch_t *batch = belay__bloom_op(operation)->plan;
  size_t n = 0;
  for (uint32_t i = first; i < end; i++)
    n += !batch->dealt[i];
  belay__call_t *call = belay__handle_script(&bloom->handle, script, 1 + layers, more + each * n);
  belay__bloom_arg_config(bloom, call);
  return call;
}

void belay__bloom_batch_head(const belay__operation_t *operation, belay__call_t *call) {
  const belay_bloom_t *bloom = operation->context;
  const belay__bloom_op_t *op = operation->room;
  uint8_t begins[BELAY__BLOOM_CONFIG_LEN];
  belay__bloom_pack(&bloom->config.form, op->generation, true, begins);
  belay__call_arg(call, (const char *)begins, sizeof begins);
  belay__bloom_arg_header(call, op->generation);
  belay__call_arg_int(call, op->what == BELAY__BLOOM_ADD);
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

void belay__bloom_batch_args(const belay__operation_t *operation, belay__call_t *call,
                             uint32_t first, uint32_t end, const belay__bloom_shape_t *shapes,
                             size_t shapes_len) {
  const belay__bloom_op_t *op = operation->room;
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

/* Read the answers of a call. all: every item must have an answer; otherwise the last items may
 * lack one. Returns false if the text is wrong. */
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

int belay__bloom_batch_answers(belay__operation_t *operation, const belay__call_t *call,
                               const belay__reply_t *reply, size_t count, int64_t *what) {
  belay__bloom_op_t *op = belay__bloom_op(operation);
  belay__bloom_batch_t *batch = op->plan;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != count ||
      !belay__reply_integer(reply->items[0], -3, 2, what))
    return BELAY_EPROTO;
  if (*what == -3)
    return belay__handle_mismatch(call, BELAY__BLOOM_DAMAGED);
  batch->other |= *what == -1;
  batch->lost |= *what == -2;
  return take_answers(op, operation->index, reply->items[count - 1], *what == 0) ? 0 : BELAY_EPROTO;
}

/* Send another round, because items are left, or because the last round had the wrong layers.
 * Returns BELAY_EPROTO after too many rounds without progress. */
static int send_next_round(belay__operation_t *operation) {
  belay__bloom_batch_t *batch = belay__bloom_op(operation)->plan;
  batch->fruitless = batch->learnt ? 0 : batch->fruitless + 1;
  if (batch->fruitless > FRUITLESS_MAX)
    return BELAY_EPROTO;
  int error = send_round(operation);
  return error == 0 ? BELAY__REQUEST_PARK : error;
}

static int count_layers(belay__operation_t *operation) {
  belay__bloom_batch_t *batch = belay__bloom_op(operation)->plan;
  belay__bloom_layer_t layers[BELAY__BLOOM_LAYERS_MAX];
  int n = kind_of(operation)->live(operation, layers);
  if (n < 0)
    return send_next_round(operation);
  batch->layers = (unsigned)n;
  batch->counting = true;
  int error = belay__bloom_census_send(operation, layers, batch->layers, 1);
  return error == 0 ? BELAY__REQUEST_PARK : error;
}

int belay__bloom_batch_next(belay__operation_t *operation) {
  const belay__bloom_batch_kind_t *kind = kind_of(operation);
  const belay__bloom_op_t *op = belay__bloom_op(operation);
  const belay__bloom_batch_t *batch = op->plan;
  if (batch->counting)
    return kind->end_info(operation);
  if (batch->other || batch->lost)
    return kind->check_config != NULL ? kind->check_config(operation)
                                      : belay__bloom_reread_config(operation, 0, NULL);
  if (op->what == BELAY__BLOOM_INFO)
    return count_layers(operation);
  return batch->left == 0 ? 0 : send_next_round(operation);
}

int belay__bloom_batch_read(belay__operation_t *operation, const belay__call_t *call,
                            const belay__reply_t *reply) {
  belay__bloom_batch_t *batch = belay__bloom_op(operation)->plan;
  return batch->counting ? belay__bloom_census_read(operation, reply, batch->census)
                         : kind_of(operation)->read(operation, call, reply);
}
