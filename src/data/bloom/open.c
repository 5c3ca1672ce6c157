/* Opens a filter, and reads its configuration again for operations that miss a key. The opening is
 * a request of the handle:
 *
 *    READING --in creation--> CREATING: segments, in groups --all exist--> MARKING --> ended
 *     ^   |                      |                                            |
 *     |   +--ready; mismatch; error--> ended                                  |
 *     |                          |                                            |
 *     +---too late to create-----+--------another configuration by now--------+
 *
 * Filters of other kinds than PLAIN have no segments yet: MARKING follows at once. Too late means
 * that CREATE_MS or the lifetime of the filter is over. A client that finds a filter in creation
 * completes it, so no filter stays incomplete. */
#include <string.h>

#include "data/bloom/bloom.h"
#include "scripts.gen.h"

#define AT_ONCE 256u /* Maximum of segments that are created in one step */
/* Time for the creation of segments, by the server's clock, since the configuration was read */
#define CREATE_MS INT64_C(10000)

enum { READING, CREATING, MARKING };   /* values[STEP] */
enum { STEP, CREATE_UNTIL, TOO_LATE }; /* indexes of values */

static int64_t random_generation(belay_t *belay) {
  uint64_t random;
  if (belay->host->random(belay, &random, sizeof random) != 0)
    return 0;
  random >>= 1;
  return random == 0 ? 1 : (int64_t)random;
}

/* ---- reading ---- */

/* Read a configuration, and compare it with the form. Returns 0, BELAY_EPROTO, or BELAY_EMISMATCH
 * with a detail. */
static int read_config_of(const belay_bloom_t *bloom, const belay__call_t *call,
                          const belay__reply_t *reply, belay__bloom_config_t *out) {
  if (reply->type != BELAY__REPLY_STRING)
    return BELAY_EPROTO;
  const char *wrong = belay__bloom_unpack(reply->str, reply->len, out);
  if (wrong == NULL)
    wrong = belay__bloom_differs(&bloom->form, out);
  return wrong == NULL ? 0 : belay__handle_mismatch(call, wrong);
}

static int send_open(belay__operation_t *operation) {
  belay_bloom_t *bloom = operation->context;
  uint8_t fresh[BELAY__BLOOM_CONFIG_LEN];
  int64_t generation = random_generation(operation->client->belay);
  if (generation == 0)
    return BELAY_ESYSTEM;
  belay__bloom_pack(&bloom->form, generation, false, fresh);
  belay__call_t *call = belay__handle_script(&bloom->handle, &belay__script_bloom_open, 1, 2);
  belay__bloom_arg_config(bloom, call);
  belay__call_arg(call, (const char *)fresh, sizeof fresh);
  belay__call_arg_int(call, bloom->ttl_ms);
  operation->values[STEP] = READING;
  return belay__request_send(operation, call);
}

static int read_open(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  belay_bloom_t *bloom = operation->context;
  belay__bloom_config_t config;
  int64_t now;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 2 ||
      !belay__reply_integer(reply->items[1], 0, INT64_C(1) << 53, &now))
    return BELAY_EPROTO;
  int error = read_config_of(bloom, call, reply->items[0], &config);
  if (error != 0)
    return error;
  bloom->config = config;
  bloom->config.form.hasher = bloom->form.hasher;
  memcpy(bloom->value, reply->items[0]->str, sizeof bloom->value);
  bloom->segment = 0;
#if BELAY_HAS_BLOOM_GROWING
  bloom->clock.server_ms = now;
  bloom->clock.at = belay__now(operation->client->belay);
#endif
  operation->values[CREATE_UNTIL] = now + CREATE_MS;
  operation->values[TOO_LATE] = 0;
  return 0;
}

/* ---- creating ---- */

/* Returns the number of segments that the opening creates. Only the plain kind creates segments
 * then; adds create those of the other kinds. */
static uint32_t segments_of(const belay_bloom_t *bloom) {
  return bloom->kind == &belay__bloom_plain ? bloom->config.form.shape.segments : 0;
}

static belay__call_t *new_segment(belay__operation_t *operation, size_t i, const void *first) {
  const belay_bloom_t *bloom = operation->context;
  const belay__bloom_layer_t layer = {.shape = bloom->config.form.shape};
  belay__call_t *call = belay__handle_script(&bloom->handle, &belay__script_bloom_segment, 1, 3);
  belay__bloom_arg_segment(bloom, call, &layer, *(const uint32_t *)first + (uint32_t)i, "");
  belay__bloom_arg_header(call, bloom->config.generation);
  belay__call_arg_int(call, bloom->config.ends_at);
  belay__call_arg_int(call, operation->values[CREATE_UNTIL]);
  return call;
}

/* Create the next n segments. */
static int send_segments(belay__operation_t *operation, uint32_t n) {
  belay_bloom_t *bloom = operation->context;
  uint32_t first = bloom->segment;
  bloom->segment += n;
  operation->values[STEP] = CREATING;
  return belay__request_send_each(operation, n, new_segment, &first);
}

static int read_segment(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply) {
  int64_t what;
  if (!belay__reply_integer(reply, 0, 3, &what))
    return BELAY_EPROTO;
  if (what == 3)
    operation->values[TOO_LATE] = 1;
  if (what != 0)
    return 0;
  return belay__call_blame(call, BELAY_ELOST, "a segment of a filter that has no configuration");
}

/* ---- marking ---- */

static int send_ready(belay__operation_t *operation) {
  belay_bloom_t *bloom = operation->context;
  uint8_t ready[BELAY__BLOOM_VALUE_LEN];
  memcpy(ready, bloom->value, sizeof ready);
  bloom->config.form.hasher = bloom->form.hasher;
  belay__bloom_pack(&bloom->config.form, bloom->config.generation, true, ready);
  belay__call_t *call = belay__handle_script(&bloom->handle, &belay__script_bloom_ready, 1, 2);
  belay__bloom_arg_config(bloom, call);
  belay__call_arg(call, (const char *)bloom->value, sizeof bloom->value);
  belay__call_arg(call, (const char *)ready, sizeof ready);
  operation->values[STEP] = MARKING;
  return belay__request_send(operation, call);
}

static int read_ready(belay__operation_t *operation, const belay__reply_t *reply) {
  belay_bloom_t *bloom = operation->context;
  int64_t done;
  if (!belay__reply_integer(reply, 0, 1, &done))
    return BELAY_EPROTO;
  bloom->config.ready = done == 1;
  return 0;
}

/* ---- the steps ---- */

static int read_step(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  switch (operation->values[STEP]) {
  case READING:
    return read_open(operation, call, reply);
  case CREATING:
    return read_segment(operation, call, reply);
  default:
    return read_ready(operation, reply);
  }
}

static int open_again(belay__operation_t *operation) {
  belay_bloom_t *bloom = operation->context;
  if (++bloom->tries > BELAY__BLOOM_TRIES)
    /* after each try, the filter was deleted or replaced, or the creation took too long */
    return BELAY_ELOST;
  return send_open(operation);
}

static int next_step(belay__operation_t *operation) {
  const belay_bloom_t *bloom = operation->context;
  uint32_t left = segments_of(bloom) - bloom->segment;
  int error;
  if (bloom->config.ready)
    return 0;
  if (operation->values[STEP] == MARKING || operation->values[TOO_LATE])
    error = open_again(operation);
  else if (left > 0)
    error = send_segments(operation, left < AT_ONCE ? left : AT_ONCE);
  else
    error = send_ready(operation);
  return error == 0 ? BELAY__REQUEST_PARK : error;
}

static void notify(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  (void)request;
  (void)cb;
  belay__bloom_opened(answer->context, answer->status);
}

static const belay__request_ops_t opening_ops = {
    .read = read_step, .next = next_step, .notify = notify, .idempotent = true};

int belay__bloom_begin_opening(belay_bloom_t *bloom, int64_t timeout_ms) {
  belay__operation_t *operation;
  int error = belay__handle_begin(&bloom->handle, &bloom->opening, &opening_ops, NULL, &operation);
  if (error != 0)
    return error;
  int64_t least = bloom->handle.client->timeout_ms;
  bloom->opening.timeout_ms = timeout_ms > least ? timeout_ms : least;
  bloom->tries = 0;
  error = send_open(operation);
  if (error != 0)
    belay__request_forget(operation);
  else
    bloom->state = BELAY__BLOOM_OPENING;
  return error;
}

/* ---- reading the configuration again ---- */

enum { GONE, SAME, OTHER }; /* op->found */

void belay__bloom_forget(belay_bloom_t *bloom, int64_t generation) {
  if (bloom->state == BELAY__BLOOM_IS_OPEN &&
      (generation == 0 || bloom->config.generation == generation))
    bloom->state = BELAY__BLOOM_UNREAD;
}

static belay__call_t *reread_call(belay__operation_t *operation, size_t i, const void *make_stray) {
  if (i == 0)
    return belay__bloom_get_config(operation->context);
  return (*(const belay__make_call_fn *)make_stray)(operation, i - 1, NULL);
}

int belay__bloom_reread_config(belay__operation_t *operation, size_t n,
                               belay__make_call_fn make_stray) {
  belay__bloom_op(operation)->rereading = true;
  int error = belay__request_send_each(operation, 1 + n, reread_call, &make_stray);
  return error == 0 ? BELAY__REQUEST_PARK : error;
}

int belay__bloom_read_config_again(belay__operation_t *operation, const belay__call_t *call,
                                   const belay__reply_t *reply) {
  belay_bloom_t *bloom = operation->context;
  belay__bloom_op_t *op = belay__bloom_op(operation);
  belay__bloom_config_t config;
  int64_t removed;
  if (operation->index > 0)
    return belay__reply_integer(reply, 0, 1, &removed) ? 0 : BELAY_EPROTO;
  if (reply->type == BELAY__REPLY_NIL) {
    op->found = GONE;
    return 0;
  }
  int error = read_config_of(bloom, call, reply, &config);
  if (error != 0) {
    belay__bloom_forget(bloom, op->generation);
    return error;
  }
  op->found = config.generation == op->generation ? SAME : OTHER;
  return 0;
}

int belay__bloom_reread_done(belay__operation_t *operation) {
  belay_bloom_t *bloom = operation->context;
  belay__bloom_op_t *op = belay__bloom_op(operation);
  op->rereading = false;
  if (op->found == SAME)
    return BELAY_ELOST;
  if (op->found == OTHER && ++op->tries <= BELAY__BLOOM_TRIES)
    return belay__bloom_restart(operation);
  belay__bloom_forget(bloom, op->generation);
  return BELAY_ELOST;
}

int belay__bloom_restart(belay__operation_t *operation) {
  belay__bloom_forget(operation->context, belay__bloom_op(operation)->generation);
  int error = belay__bloom_submit(operation->context, operation);
  return error == 0 ? BELAY__REQUEST_PARK : error;
}
