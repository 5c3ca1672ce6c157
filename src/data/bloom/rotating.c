/* The rotating kind: a layer for each window of time, of which the current one is added to, and that and the one before it
 * are looked at: so an item is found for one window at least, and for two at most, after it was added.
 *
 * Windows are numbered by the server's clock. All layers are in the slot of the name, under NAMESPACE::bloom::{NAME}::wI::0 for
 * the window I, and in which something was added is written behind the configuration (lua/bloom/rotating.lua). A
 * script has to be given its keys, so a handle has to know about which window it is: it is told with each answer, and
 * counts on by its own clock. If it is wrong, it is told, and nothing was done.
 *
 * All ends by itself, the configuration last, when nothing has been added for two windows: nothing is lost then. A
 * handle knows until when what it has seen of the filter was of use. A configuration that is missing before that
 * time was lost; after it, the filter is only made anew. */
#include <stdio.h>
#include <string.h>

#include "data/bloom/batch.h"
#include "scripts.gen.h"

#define WINDOW_DIGITS 16
#define STATE_LEN (WINDOW_DIGITS + 1)
#define TIME_MAX (INT64_C(1) << 53)

enum { ITEMS, LOOKING, COUNTING }; /* op->step; the last two of an info */

typedef struct plan {
  belay__bloom_batch_t batch; /* first */
  unsigned layers;            /* that are counted */
  belay__bloom_census_t census[2];
} plan_t;

/* ---- windows ------------------------------------------------------------------------------------------- */

static belay__bloom_layer_t layer_of(const belay__bloom_form_t *form, int64_t window) {
  belay__bloom_layer_t layer = {.shape = form->shape, .together = true};
  (void)snprintf(layer.label, sizeof layer.label, "::w%lld", (long long)window);
  return layer;
}

/* Reads the state of a filter: the last window in which something was added, 0 if there was none, and whether in the
 * one before it. */
static bool read_state(const char *text, size_t len, int64_t *last, bool *before) {
  *last = 0;
  *before = false;
  if (len == 0)
    return true;
  if (len != STATE_LEN)
    return false;
  for (int i = 0; i < WINDOW_DIGITS; i++) {
    if (text[i] < '0' || text[i] > '9')
      return false;
    *last = *last * 10 + (text[i] - '0');
  }
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

/* The server's time, as far as it is known; 0: it is not. */
static int64_t server_ms(const belay_bloom_t *bloom) {
  const belay__bloom_clock_t *clock = &bloom->clock;
  if (clock->server_ms == 0)
    return 0;
  uint64_t since = belay__now(bloom->handle.client->belay) - clock->at;
  return clock->server_ms + (int64_t)(since / BELAY__MS);
}

/* What a script has said: 0 or an error. */
static int learn(belay__pending_t *pending, const belay__call_t *call, int64_t what,
                 belay__reply_t *const *items) {
  belay_bloom_t *bloom = pending->context;
  plan_t *plan = belay__bloom_op(pending)->plan;
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
  plan->batch.learnt = true;
  if (what < 0)
    return 0;
  clock->generation = plan->batch.generation;
  clock->of_use_until = last == 0 ? 0 : (last + 2) * bloom->config.form.window_ms;
  clock->window = window;
  clock->current = last == window;
  clock->previous = last == window - 1 || (last == window && before);
  return 0;
}

/* ---- items --------------------------------------------------------------------------------------------- */

static belay__call_t *make(belay__pending_t *pending, uint32_t first, uint32_t end) {
  belay_bloom_t *bloom = pending->context;
  const belay__bloom_op_t *op = belay__bloom_op(pending);
  const belay__bloom_form_t *form = &bloom->config.form;
  uint8_t begins[BELAY__BLOOM_CONFIG_LEN];
  char header[BELAY__BLOOM_HEADER];
  int64_t window = server_ms(bloom) / form->window_ms, from = window > 0 ? window - 1 : 0;
  belay__call_t *call = belay__call_new(pending->client, BELAY__LANE_DATA);
  if (call == NULL)
    return NULL;
  belay__call_script(call, &belay__script_bloom_rotating, 4,
                     5 + (size_t)belay__bloom_batch_items(pending, first, end));
  belay__bloom_arg_config(bloom, call);
  for (int64_t i = from; i < from + 3; i++) {
    const belay__bloom_layer_t layer = layer_of(form, i);
    belay__bloom_arg_segment(bloom, call, &layer, 0);
  }
  belay__bloom_pack(form, op->generation, true, begins);
  belay__call_arg(call, (const char *)begins, sizeof begins);
  belay__bloom_header(op->generation, header);
  belay__call_arg(call, header, sizeof header);
  belay__call_arg_int(call, op->what == BELAY__BLOOM_ADD);
  belay__call_arg_int(call, form->window_ms);
  belay__call_arg_int(call, from);
  belay__bloom_batch_args(pending, call, first, end, &form->shape, 1);
  return call;
}

static int read_items(belay__pending_t *pending, const belay__call_t *call,
                      const belay__reply_t *reply) {
  int64_t what;
  int error = belay__bloom_batch_read(pending, call, reply, 5, &what);
  if (error != 0)
    return error;
  return what == 2 ? BELAY_EPROTO : learn(pending, call, what, reply->items);
}

/* The configuration is missing, or another one. If what it was about was of no use any more by then, nothing is lost, and
 * all begins anew. */
static int look(belay__pending_t *pending) {
  belay_bloom_t *bloom = pending->context;
  belay__bloom_op_t *op = belay__bloom_op(pending);
  const belay__bloom_batch_t *batch = op->plan;
  const belay__bloom_clock_t *clock = &bloom->clock;
  bool of_use = clock->generation == op->generation && server_ms(bloom) < clock->of_use_until;
  if (batch->lost || of_use || ++op->tries > BELAY__BLOOM_TRIES)
    return belay__bloom_look(pending, NULL, 0);
  belay__bloom_forget(bloom, op->generation);
  int error = belay__bloom_submit(bloom, pending);
  return error == 0 ? BELAY__REQUEST_PARK : error;
}

/* ---- info ---------------------------------------------------------------------------------------------- */

static int send_census(belay__pending_t *pending) {
  const belay_bloom_t *bloom = pending->context;
  const belay__bloom_clock_t *clock = &bloom->clock;
  belay__bloom_op_t *op = belay__bloom_op(pending);
  plan_t *plan = op->plan;
  belay__bloom_layer_t live[2];
  plan->layers = 0;
  if (clock->previous)
    live[plan->layers++] = layer_of(&bloom->config.form, clock->window - 1);
  if (clock->current)
    live[plan->layers++] = layer_of(&bloom->config.form, clock->window);
  op->step = COUNTING;
  int error = belay__bloom_census_send(pending, live, plan->layers);
  return error == 0 ? BELAY__REQUEST_PARK : error;
}

/* A layer that was there is missing if its time has come meanwhile: then it is none any more. */
static int end_info(belay__pending_t *pending) {
  const belay_bloom_t *bloom = pending->context;
  const belay__bloom_form_t *form = &bloom->config.form;
  belay__bloom_op_t *op = belay__bloom_op(pending);
  const plan_t *plan = op->plan;
  belay_bloom_info_t *info = &op->info;
  double items = 0;
  *info = (belay_bloom_info_t){.kind = BELAY_BLOOM_ROTATING,
                               .generation = op->generation,
                               .capacity = form->capacity,
                               .hashes = form->shape.hashes,
                               .ttl_ms = info->ttl_ms};
  for (unsigned i = 0; i < plan->layers; i++) {
    if (!plan->census[i].there)
      continue;
    info->layers++;
    info->segments++;
    info->bits += form->shape.segment_bits;
    info->bits_set += plan->census[i].bits_set;
    info->saturation = (double)plan->census[i].bits_set / form->shape.segment_bits;
    items += belay__bloom_shape_items(&form->shape, (uint64_t)plan->census[i].bits_set);
  }
  info->items = (int64_t)(items + 0.5);
  return info->ttl_ms != -2 ? 0 : look(pending);
}

static int next_of_info(belay__pending_t *pending) {
  belay__bloom_op_t *op = belay__bloom_op(pending);
  belay__bloom_batch_t *batch = op->plan;
  if (op->step == COUNTING)
    return end_info(pending);
  if (batch->other || batch->lost)
    return look(pending);
  if (!batch->learnt) /* it was given other windows */
    return belay__bloom_batch_again(pending, 1, make);
  return send_census(pending);
}

/* ---- the kind ------------------------------------------------------------------------------------------ */

static size_t plan_size(const belay_bloom_t *bloom, belay__bloom_what_t what, size_t n) {
  (void)bloom;
  (void)what;
  return belay__bloom_batch_size(sizeof(plan_t), n);
}

static int send(belay__pending_t *pending) {
  const belay_bloom_t *bloom = pending->context;
  belay__bloom_op_t *op = belay__bloom_op(pending);
  op->step = op->what == BELAY__BLOOM_INFO ? LOOKING : ITEMS;
  belay__bloom_batch_begin(pending, sizeof(plan_t));
  return belay__bloom_batch_send(pending, bloom->config.form.shape.hashes, make);
}

static int read(belay__pending_t *pending, const belay__call_t *call, const belay__reply_t *reply) {
  belay__bloom_op_t *op = belay__bloom_op(pending);
  plan_t *plan = op->plan;
  return op->step == COUNTING ? belay__bloom_census_read(pending, call, reply, plan->census)
                              : read_items(pending, call, reply);
}

static int next(belay__pending_t *pending) {
  const belay_bloom_t *bloom = pending->context;
  const belay__bloom_op_t *op = belay__bloom_op(pending);
  const belay__bloom_batch_t *batch = op->plan;
  if (op->step != ITEMS)
    return next_of_info(pending);
  return batch->other || batch->lost
             ? look(pending)
             : belay__bloom_batch_next(pending, bloom->config.form.shape.hashes, make);
}

const belay__bloom_kind_t belay__bloom_rotating = {
    .plan_size = plan_size, .send = send, .read = read, .next = next, .layers = layers};
