/* The latch: one key with the count and the operations that were counted. A wait is a waiter; a
 * count is a request. */
#include "belay/latch.h"

#include <limits.h>
#include <string.h>

#include "core/call/publish.h"
#include "core/client/request.h"
#include "core/key/bytes.h"
#include "sync/awaitable.h"
#include "scripts.gen.h"

#define OP_ID_BYTES 16 /* bytes of an id that belay draws */
#define MADE_MAX 20    /* digits of the time when a latch was made */

struct belay_latch {
  belay__awaitable_t awaitable; /* first */
  belay_latch_cb cb;
  size_t made_len;
  char made[MADE_MAX]; /* when the awaited latch was made; made_len 0: any latch of the name */
};

static belay_latch_t *latch_of(belay__waiter_t *waiter) {
  return (belay_latch_t *)belay__awaitable_of(waiter);
}

/* ---- waiting ---- */

static void begin_call(const belay_latch_t *latch, belay__call_t *call,
                       const belay__script_t *script, size_t args) {
  belay__call_script(call, script, 1, args);
  belay__awaitable_key(&latch->awaitable, call, "}");
  belay__call_arg_int(call, latch->awaitable.count);
  belay__call_arg_int(call, latch->awaitable.ttl_ms);
}

static void build_query(belay__waiter_t *waiter, belay__call_t *call) {
  const belay_latch_t *latch = latch_of(waiter);
  begin_call(latch, call, &belay__script_latch_read, 3);
  belay__call_arg(call, latch->made, latch->made_len);
}

/* Reads the reply: {count left, time when the latch was made}; -1: the latch has another count; -2:
 * the server has forgotten the latch of latch->made. */
static int read_open(belay__waiter_t *waiter, const belay__reply_t *reply, int64_t *holds_ms) {
  belay_latch_t *latch = latch_of(waiter);
  int64_t n;
  (void)holds_ms;
  if (belay__reply_integer(reply, -2, -1, &n))
    return n == -1 ? BELAY_EMISMATCH : BELAY__FORGOTTEN;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 2)
    return BELAY_EPROTO;
  const belay__reply_t *made = reply->items[1];
  if (!belay__reply_integer(reply->items[0], 0, BELAY_LATCH_COUNT_MAX, &n) ||
      made->type != BELAY__REPLY_STRING || made->len > MADE_MAX)
    return BELAY_EPROTO;
  memcpy(latch->made, made->str, made->len);
  latch->made_len = made->len;
  return n == 0 ? 0 : BELAY__NOT_YET;
}

static const belay__waiter_ops_t waiter_ops = {
    .build_query = build_query,
    .read = read_open,
    .finished = belay__awaitable_finished,
};

static int on_init(belay__handle_t *handle, void *options) {
  const belay__waiter_config_t config = {.max_interval = 0};
  return belay__awaitable_init((belay__awaitable_t *)handle, options, BELAY_LATCH_COUNT_MAX, config,
                               &waiter_ops);
}

static const belay__handle_type_t latch_type = {BELAY__AWAITABLE_TYPE(latch, on_init)};

BELAY__AWAITABLE_FUNCTIONS(latch)

static void end(belay__awaitable_t *awaitable, int status) {
  belay_latch_t *latch = (belay_latch_t *)awaitable;
  latch->cb(latch, status);
}

int belay_latch_wait(belay_latch_t *latch, int64_t wait_ms, belay_latch_cb cb) {
  int error = belay__awaitable_check_wait((belay__awaitable_t *)latch, wait_ms, cb != NULL);
  if (error != 0)
    return error;
  latch->cb = cb;
  latch->made_len = 0;
  belay__awaitable_wait(&latch->awaitable, wait_ms, end);
  return 0;
}

/* ---- counting ---- */

/* Reads the number left to count; -1: the latch was made with another count. */
static int read_count(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  (void)call;
  int64_t *values = operation->values;
  if (!belay__reply_integer(reply, -1, BELAY_LATCH_COUNT_MAX, &values[0]))
    return BELAY_EPROTO;
  return values[0] < 0 ? BELAY_EMISMATCH : 0;
}

static void notify_count(belay_request_t *request, void (*cb)(void),
                         const belay__answer_t *answer) {
  unsigned left = answer->status == 0 ? (unsigned)answer->values[0] : UINT_MAX;
  ((belay_latch_count_cb)cb)(request, answer->status, left);
}

static const belay__request_ops_t count_ops = {
    .read = read_count, .notify = notify_count, .idempotent = true};

static int draw_op_id(belay_t *belay, char out[2 * OP_ID_BYTES]) {
  unsigned char bytes[OP_ID_BYTES];
  int error = belay->host->random(belay, bytes, sizeof bytes);
  if (error == 0)
    belay__hex(out, bytes, sizeof bytes);
  return error;
}

int belay_latch_count_down(belay_latch_t *latch, belay_request_t *request, belay_bytes_t op_id,
                           belay_latch_count_cb cb) {
  belay__handle_t *handle = (belay__handle_t *)latch;
  char drawn[2 * OP_ID_BYTES];
  int error = belay__handle_check_request(handle, request, cb != NULL);
  if (error != 0)
    return error;
  belay_t *belay = handle->client->belay;
  error = belay__check_optional(belay, "op_id", op_id, BELAY_LATCH_OP_ID_MAX);
  if (error == 0 && !belay__is_given(op_id)) {
    error = draw_op_id(belay, drawn);
    op_id = belay_bytes(drawn, sizeof drawn);
  }
  if (error != 0)
    return error;
  belay__call_t *call = belay__call_new(handle->client, BELAY__CLASS_DATA);
  begin_call(latch, call, &belay__script_latch_count, 5);
  belay__call_arg(call, op_id.data, op_id.len);
  belay__publish_arg(call, true);
  /* The server remembers the operation until the call cannot be sent again, even if the latch's
   * ttl is shorter. So the operation counts in one latch at most. */
  belay__call_arg_int(call, belay__request_keep_ms(handle->client, request, 0));
  return belay__handle_start(handle, request, call, &count_ops, BELAY__CB(cb));
}
