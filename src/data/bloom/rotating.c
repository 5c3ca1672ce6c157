/* The rotating kind: one layer per time window. Adds go to the current layer; lookups read the
 * current and the previous one. So an item is found for at least one window and at most two
 * windows after its last add.
 *
 * The server's clock numbers the windows. All layers are in the slot of the name, under
 * NAMESPACE::bloom::{NAME}::wI::0 for window I. The used windows are listed behind the
 * configuration (lua/bloom/rotating.lua). A script needs its keys in advance, so a handle must
 * know the approximate window. Each reply contains the server's time, and the handle continues
 * counting by its own clock. If a call passes the wrong windows, the script changes nothing and
 * returns the right window.
 *
 * All keys expire, the configuration last, two windows after the start of the window of the last
 * add: no data is lost then. The handle remembers from replies until when items can be found. A
 * configuration that is missing before that time was lost. After that time, the filter is created
 * again. */
#include <stdio.h>
#include <string.h>

#include "data/bloom/batch.h"
#include "scripts.gen.h"

#define WINDOW_DIGITS 16
#define STATE_LEN (WINDOW_DIGITS + 1)
#define TIME_MAX (INT64_C(1) << 53)

static belay__bloom_layer_t layer_of(const belay__bloom_form_t *form, int64_t window) {
  belay__bloom_layer_t layer = {.shape = form->shape, .together = true};
  (void)snprintf(layer.label, sizeof layer.label, "::w%lld", (long long)window);
  return layer;
}

/* Read the state of a filter. *last: the last window in which an item was added; 0: none. *before:
 * true if an item was added in the window before that one. */
static bool read_state(const char *text, size_t len, int64_t *last, bool *before) {
  *last = 0;
  *before = false;
  if (len == 0)
    return true;
  if (len != STATE_LEN)
    return false;
  if (!belay__bloom_digits(text, WINDOW_DIGITS, last))
    return false;
  *before = text[WINDOW_DIGITS] == '1';
  return *last <= TIME_MAX && (*before || text[WINDOW_DIGITS] == '0');
}

static unsigned layers(const belay__bloom_config_t *config, const void *value, size_t len,
                       belay__bloom_layer_t out[BELAY__BLOOM_LAYERS_MAX]) {
  int64_t last;
  bool before;
  if (value == NULL || len < BELAY__BLOOM_VALUE_LEN ||
      !read_state((const char *)value + BELAY__BLOOM_VALUE_LEN, len - BELAY__BLOOM_VALUE_LEN, &last,
                  &before) ||
      last == 0)
    return 0;
  out[0] = layer_of(&config->form, last);
  if (before)
    out[1] = layer_of(&config->form, last - 1);
  return before ? 2 : 1;
}

/* Estimate the present time of the server's clock; 0: unknown. */
static int64_t server_ms(const belay_bloom_t *bloom) {
  const belay__bloom_clock_t *clock = &bloom->clock;
  if (clock->server_ms == 0)
    return 0;
  uint64_t since = belay__now(bloom->handle.client->belay) - clock->at;
  return clock->server_ms + (int64_t)(since / BELAY__MS);
}

/* Read the time and the state from a script's reply with the code `what`. Returns 0 or an error. */
static int learn(belay__operation_t *operation, const belay__call_t *call, int64_t what,
                 belay__reply_t *const *items) {
  belay_bloom_t *bloom = operation->context;
  belay__bloom_batch_t *batch = belay__bloom_op(operation)->plan;
  belay__bloom_clock_t *clock = &bloom->clock;
  const belay__reply_t *state = items[3];
  int64_t window, now, last;
  bool before;
  if (!belay__reply_integer(items[1], 0, TIME_MAX, &window) ||
      !belay__reply_integer(items[2], 1, TIME_MAX, &now) || state->type != BELAY__REPLY_STRING)
    return BELAY_EPROTO;
  if (!read_state(state->str, state->len, &last, &before))
    return belay__handle_mismatch(call, BELAY__BLOOM_DAMAGED);
  clock->server_ms = now;
  clock->at = belay__now(bloom->handle.client->belay);
  if (what == 1)
    return 0;
  batch->learnt = true;
  if (what < 0)
    return 0;
  clock->generation = batch->generation;
  clock->of_use_until = last == 0 ? 0 : (last + 2) * bloom->config.form.window_ms;
  clock->window = window;
  clock->current = last == window;
  clock->previous = last == window - 1 || (last == window && before);
  return 0;
}

static belay__call_t *make(belay__operation_t *operation, uint32_t first, uint32_t end) {
  const belay_bloom_t *bloom = operation->context;
  const belay__bloom_form_t *form = &bloom->config.form;
  int64_t window = server_ms(bloom) / form->window_ms, from = window > 0 ? window - 1 : 0;
  belay__call_t *call =
      belay__bloom_batch_script(operation, &belay__script_bloom_rotating, 3, 5, 1, first, end);
  for (int64_t i = from; i < from + 3; i++) {
    const belay__bloom_layer_t layer = layer_of(form, i);
    belay__bloom_arg_segment(bloom, call, &layer, 0, "");
  }
  belay__bloom_batch_head(operation, call);
  belay__call_arg_int(call, form->window_ms);
  belay__call_arg_int(call, from);
  belay__bloom_batch_args(operation, call, first, end, &form->shape, 1);
  return call;
}

static uint32_t bits_of_item(const belay_bloom_t *bloom) {
  return bloom->config.form.shape.hashes;
}

static int read_items(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  int64_t what;
  int error = belay__bloom_batch_answers(operation, call, reply, 5, &what);
  if (error != 0)
    return error;
  return what == 2 ? BELAY_EPROTO : learn(operation, call, what, reply->items);
}

/* A layer is missing, or the configuration is missing or differs. If only the configuration is
 * affected, and no item could be found any more, nothing is lost: the operation starts again.
 * Otherwise it reads the configuration again. */
static int check_config(belay__operation_t *operation) {
  belay_bloom_t *bloom = operation->context;
  belay__bloom_op_t *op = belay__bloom_op(operation);
  const belay__bloom_batch_t *batch = op->plan;
  const belay__bloom_clock_t *clock = &bloom->clock;
  bool of_use = clock->generation == op->generation && server_ms(bloom) < clock->of_use_until;
  if (batch->lost || of_use || ++op->tries > BELAY__BLOOM_TRIES)
    return belay__bloom_reread_config(operation, 0, NULL);
  return belay__bloom_restart(operation);
}

static int live(belay__operation_t *operation, belay__bloom_layer_t out[BELAY__BLOOM_LAYERS_MAX]) {
  const belay_bloom_t *bloom = operation->context;
  const belay__bloom_clock_t *clock = &bloom->clock;
  const belay__bloom_batch_t *batch = belay__bloom_op(operation)->plan;
  int n = 0;
  if (!batch->learnt) /* the call passed the wrong windows */
    return -1;
  if (clock->previous)
    out[n++] = layer_of(&bloom->config.form, clock->window - 1);
  if (clock->current)
    out[n++] = layer_of(&bloom->config.form, clock->window);
  return n;
}

/* Make the info from the census. A layer that has expired since the round does not count. */
static int end_info(belay__operation_t *operation) {
  const belay_bloom_t *bloom = operation->context;
  const belay__bloom_form_t *form = &bloom->config.form;
  belay__bloom_op_t *op = belay__bloom_op(operation);
  const belay__bloom_batch_t *batch = op->plan;
  belay_bloom_info_t *info = &op->info;
  double items = 0;
  *info = (belay_bloom_info_t){.kind = BELAY_BLOOM_ROTATING,
                               .generation = op->generation,
                               .capacity = form->capacity,
                               .hashes = form->shape.hashes,
                               .remaining_ms = info->remaining_ms};
  for (unsigned i = 0; i < batch->layers; i++) {
    if (!batch->census[i].there)
      continue;
    info->layers++;
    info->saturation = (double)batch->census[i].bits_set / form->shape.segment_bits;
    belay__bloom_info_add(info, &form->shape, batch->census[i].bits_set, &items);
  }
  return info->remaining_ms != -2 ? 0 : check_config(operation);
}

static const belay__bloom_batch_kind_t batch_kind = {.plan = sizeof(belay__bloom_batch_t),
                                                     .bits_of_item = bits_of_item,
                                                     .make = make,
                                                     .read = read_items,
                                                     .check_config = check_config,
                                                     .live = live,
                                                     .end_info = end_info};

const belay__bloom_kind_t belay__bloom_rotating = {.batch = &batch_kind,
                                                   .plan_size = belay__bloom_batch_size,
                                                   .send = belay__bloom_batch_send,
                                                   .read = belay__bloom_batch_read,
                                                   .next = belay__bloom_batch_next,
                                                   .layers = layers};
