#include "data/bloom/bloom.h"

#include <stdio.h>
#include <string.h>

#define TTL_MAX_MS INT64_C(315360000000) /* ten years */

/* ---- the handle ---- */

const belay__bloom_kind_t *belay__bloom_kind(belay_bloom_kind_t kind) {
  switch (kind) {
  case BELAY_BLOOM_PLAIN:
    return &belay__bloom_plain;
#if BELAY_HAS_BLOOM_GROWING
  case BELAY_BLOOM_SCALING:
    return &belay__bloom_scaling;
  case BELAY_BLOOM_ROTATING:
    return &belay__bloom_rotating;
#endif
  default:
    return NULL;
  }
}

static const belay_bloom_options_t defaults = {
    .kind = BELAY_BLOOM_PLAIN, .error_rate = 0.01, .ttl_ms = INT64_C(2592000000)};

static int on_init(belay__handle_t *handle, void *options) {
  belay_bloom_t *bloom = (belay_bloom_t *)handle;
  const belay_bloom_options_t *o = options;
  const char *wrong = belay__bloom_form_of(o, &bloom->form);
  if (wrong == NULL && belay__bloom_kind(o->kind) == NULL)
    wrong = "kind: not in this build";
  if (wrong == NULL &&
      (o->ttl_ms < 0 || (o->ttl_ms > 0 && o->ttl_ms < 1000) || o->ttl_ms > TTL_MAX_MS))
    wrong = "ttl_ms: not 0, or from 1000 to 315360000000";
  if (wrong != NULL)
    return belay__invalid(handle->client->belay, "%s", wrong);
  bloom->kind = belay__bloom_kind(o->kind);
  bloom->ttl_ms = o->kind == BELAY_BLOOM_ROTATING ? 2 * o->window_ms + 2000 : o->ttl_ms;
  belay__list_init(&bloom->waiting);
  return 0;
}

const belay__handle_type_t belay__bloom_type = {
    .family = "bloom",
    .whole = true,
    BELAY__HANDLE_LAYOUT(bloom),
    .defaults = &defaults,
    .init = on_init,
};

BELAY__HANDLE_FUNCTIONS(bloom)

/* ---- keys ---- */

void belay__bloom_arg_config(const belay_bloom_t *bloom, belay__call_t *call) {
  belay__handle_arg(&bloom->handle, call, "", 0, "}");
}

belay__call_t *belay__bloom_get_config(const belay_bloom_t *bloom) {
  belay__call_t *call = belay__handle_command(&bloom->handle, "GET", 2);
  belay__bloom_arg_config(bloom, call);
  return call;
}

int belay__bloom_ask_config(belay_bloom_t *bloom, belay_request_t *request,
                            const belay__request_ops_t *ops, void (*cb)(void), size_t room) {
  belay__operation_t *operation;
  int error = belay__handle_check_request((const belay__handle_t *)bloom, request, cb != NULL);
  if (error == 0)
    error = belay__handle_begin_room(&bloom->handle, request, ops, cb, room, &operation);
  if (error != 0)
    return error;
  return belay__request_begun(operation,
                              belay__request_send(operation, belay__bloom_get_config(bloom)));
}

void belay__bloom_arg_segment(const belay_bloom_t *bloom, belay__call_t *call,
                              const belay__bloom_layer_t *layer, uint32_t segment,
                              const char *part) {
  char tail[BELAY__BLOOM_TAIL_MAX];
  (void)snprintf(tail, sizeof tail, layer->together ? "}%s::%u%s" : "%s::%u}%s", layer->label,
                 (unsigned)segment, part);
  belay__handle_arg(&bloom->handle, call, "", 0, tail);
}

void belay__bloom_header(int64_t generation, char out[BELAY__BLOOM_HEADER]) {
  for (int i = 0; i < BELAY__BLOOM_HEADER; i++)
    out[i] = (char)((uint64_t)generation >> (56 - 8 * i) & 0xff);
}

void belay__bloom_arg_header(belay__call_t *call, int64_t generation) {
  char header[BELAY__BLOOM_HEADER];
  belay__bloom_header(generation, header);
  belay__call_arg(call, header, sizeof header);
}

/* ---- operations that need an open filter ---- */

static int on_reply(belay__operation_t *operation, const belay__call_t *call,
                    const belay__reply_t *reply) {
  const belay_bloom_t *bloom = operation->context;
  return belay__bloom_op(operation)->rereading
             ? belay__bloom_read_config_again(operation, call, reply)
             : bloom->kind->read(operation, call, reply);
}

static int on_next(belay__operation_t *operation) {
  const belay_bloom_t *bloom = operation->context;
  return belay__bloom_op(operation)->rereading ? belay__bloom_reread_done(operation)
                                               : bloom->kind->next(operation);
}

static void on_left(belay__operation_t *operation, bool sent) {
  (void)sent;
  belay__list_remove(&operation->queued);
  belay__timer_stop(operation->client->belay, BELAY__RANK_OTHER, &operation->timer);
}

static void on_timer(belay__timer_t *timer) {
  belay__operation_t *operation = BELAY__CONTAINER(timer, belay__operation_t, timer);
  belay__list_remove(&operation->queued);
  belay__request_end(operation, BELAY_ETIMEDOUT);
}

/* Returns the status of the operation. An add that was executed in part ends with BELAY_EUNKNOWN
 * instead of an error that permits a retry. */
static int status_of_items(const belay__answer_t *answer) {
  const belay__bloom_op_t *op = answer->room;
  bool part = op->what == BELAY__BLOOM_ADD && op->touched;
  return part && belay_err_retryable(answer->status) ? BELAY_EUNKNOWN : answer->status;
}

static void notify_answer(belay_request_t *request, void (*cb)(void),
                          const belay__answer_t *answer) {
  const belay__bloom_op_t *op = answer->room;
  int status = status_of_items(answer);
  ((belay_bloom_answer_cb)cb)(request, status, status == 0 && op->answers[0]);
}

static void notify_answers(belay_request_t *request, void (*cb)(void),
                           const belay__answer_t *answer) {
  const belay__bloom_op_t *op = answer->room;
  int status = status_of_items(answer);
  bool well = status == 0;
  ((belay_bloom_answers_cb)cb)(request, status, well ? op->answers : NULL, well ? op->n : 0);
}

static void notify_info(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  const belay_bloom_info_t unknown = {0};
  const belay__bloom_op_t *op = answer->room;
  ((belay_bloom_info_cb)cb)(request, answer->status, answer->status == 0 ? &op->info : &unknown);
}

#define OPS .read = on_reply, .next = on_next, .left = on_left

static const belay__request_ops_t open_ops = {OPS, .notify = belay__request_notify_status,
                                              .idempotent = true};
static const belay__request_ops_t add_ops = {OPS, .notify = notify_answer, .idempotent = false};
static const belay__request_ops_t exists_ops = {OPS, .notify = notify_answer, .idempotent = true};
static const belay__request_ops_t add_many_ops = {OPS, .notify = notify_answers,
                                                  .idempotent = false};
static const belay__request_ops_t exists_many_ops = {OPS, .notify = notify_answers,
                                                     .idempotent = true};
static const belay__request_ops_t info_ops = {OPS, .notify = notify_info, .idempotent = true};

int belay__bloom_submit(belay_bloom_t *bloom, belay__operation_t *operation) {
  if (bloom->state == BELAY__BLOOM_IS_OPEN) {
    if (belay__bloom_op(operation)->what == BELAY__BLOOM_OPEN) {
      belay__request_end(operation, 0);
      return 0;
    }
    return bloom->kind->send(operation);
  }
  if (bloom->state == BELAY__BLOOM_UNREAD) {
    int64_t ms = belay__request_timeout_ms(operation->client, belay__request_of(operation));
    int error = belay__bloom_begin_opening(bloom, ms);
    if (error != 0)
      return error;
  }
  operation->timer.fire = on_timer;
  belay__timer_set(operation->client->belay, BELAY__RANK_OTHER, &operation->timer,
                   operation->deadline);
  belay__list_push(&bloom->waiting, &operation->queued);
  return 0;
}

void belay__bloom_opened(belay_bloom_t *bloom, int status) {
  bloom->state = status == 0 ? BELAY__BLOOM_IS_OPEN : BELAY__BLOOM_UNREAD;
  belay__list_t *node;
  while ((node = belay__list_pop(&bloom->waiting)) != NULL) {
    belay__operation_t *operation = BELAY__CONTAINER(node, belay__operation_t, queued);
    belay__timer_stop(operation->client->belay, BELAY__RANK_OTHER, &operation->timer);
    int error = status != 0 ? status : belay__bloom_submit(bloom, operation);
    if (error != 0)
      belay__request_end(operation, error);
  }
}

/* Allocates the room of a request: the operation, the hashes, the plan of its kind, and the
 * answers. */
static belay__bloom_op_t *room_for(const belay_bloom_t *bloom, belay__operation_t *operation,
                                   belay__bloom_what_t what, size_t n) {
  size_t plan = what == BELAY__BLOOM_OPEN ? 0 : bloom->kind->plan_size(bloom, what, n);
  plan = (plan + 15) / 16 * 16;
  size_t hashes = n * sizeof(belay__bloom_hash_t);
  belay__bloom_op_t *op = belay__request_room(operation, sizeof *op + hashes + plan + n);
  if (op == NULL)
    return NULL;
  op->what = what;
  op->n = (uint32_t)n;
  op->hashes = (belay__bloom_hash_t *)(op + 1);
  op->plan = (char *)op->hashes + hashes;
  op->answers = (bool *)op->plan + plan;
  return op;
}

static int start(belay_bloom_t *bloom, belay_request_t *request, const belay__request_ops_t *ops,
                 belay__bloom_what_t what, const belay_bytes_t *items, size_t n, void (*cb)(void)) {
  belay__operation_t *operation;
  int error = belay__handle_check_request((const belay__handle_t *)bloom, request, cb != NULL);
  if (error == 0 && (what == BELAY__BLOOM_ADD || what == BELAY__BLOOM_EXISTS))
    error = belay__handle_check_array(&bloom->handle, "item", items, n, BELAY_BLOOM_ITEMS_MAX, 0,
                                      BELAY_BLOOM_ITEM_MAX);
  if (error == 0)
    error = belay__handle_begin(&bloom->handle, request, ops, cb, &operation);
  if (error != 0)
    return error;
  belay_client_t *client = bloom->handle.client;
  operation->deadline = belay__after_ms(client->belay, belay__request_timeout_ms(client, request));
  belay__bloom_op_t *op = room_for(bloom, operation, what, n);
  if (op == NULL)
    return belay__request_begun(operation, BELAY_ENOMEM);
  for (size_t i = 0; i < n; i++)
    op->hashes[i] = belay__bloom_hash(&bloom->form.hasher, items[i].data, items[i].len);
  return belay__request_begun(operation, belay__bloom_submit(bloom, operation));
}

int belay_bloom_open(belay_bloom_t *bloom, belay_request_t *request, belay_bloom_cb cb) {
  return start(bloom, request, &open_ops, BELAY__BLOOM_OPEN, NULL, 0, BELAY__CB(cb));
}

int belay_bloom_add(belay_bloom_t *bloom, belay_request_t *request, belay_bytes_t item,
                    belay_bloom_answer_cb cb) {
  const belay_bytes_t one = {.data = item.data, .len = item.len};
  return start(bloom, request, &add_ops, BELAY__BLOOM_ADD, &one, 1, BELAY__CB(cb));
}

int belay_bloom_exists(belay_bloom_t *bloom, belay_request_t *request, belay_bytes_t item,
                       belay_bloom_answer_cb cb) {
  const belay_bytes_t one = {.data = item.data, .len = item.len};
  return start(bloom, request, &exists_ops, BELAY__BLOOM_EXISTS, &one, 1, BELAY__CB(cb));
}

int belay_bloom_add_many(belay_bloom_t *bloom, belay_request_t *request, const belay_bytes_t *items,
                         size_t n, belay_bloom_answers_cb cb) {
  return start(bloom, request, &add_many_ops, BELAY__BLOOM_ADD, items, n, BELAY__CB(cb));
}

int belay_bloom_exists_many(belay_bloom_t *bloom, belay_request_t *request,
                            const belay_bytes_t *items, size_t n, belay_bloom_answers_cb cb) {
  return start(bloom, request, &exists_many_ops, BELAY__BLOOM_EXISTS, items, n, BELAY__CB(cb));
}

int belay_bloom_info(belay_bloom_t *bloom, belay_request_t *request, belay_bloom_info_cb cb) {
  return start(bloom, request, &info_ops, BELAY__BLOOM_INFO, NULL, 0, BELAY__CB(cb));
}
