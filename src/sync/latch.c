/* The latch: one key that has the count and what was counted. Waiting for it is a vigil; counting it is a request. */
#include "belay/latch.h"

#include <limits.h>
#include <string.h>

#include "core/call/publish.h"
#include "core/client/request.h"
#include "sync/awaitable.h"
#include "scripts.gen.h"

#define OPERATION_BYTES 16 /* of an id that we draw */
#define MADE_MAX 20        /* digits of when a latch was made */

struct belay_latch {
  belay__post_t post;
  belay_latch_cb cb;
  belay_latch_close_cb close_cb;
  void *data;
  int64_t count, ttl_ms;
  belay__list_t counts; /* that are pending */
  size_t made_len;
  char made[MADE_MAX]; /* which latch is waited for; made_len 0: whichever is there */
  size_t channel_len;
  char channel[];
};

static belay_latch_t *latch_of(belay__post_t *post) {
  return BELAY__CONTAINER(post, belay_latch_t, post);
}

/* ---- waiting --------------------------------------------------------------------------------------------- */

static void put_head(const belay_latch_t *latch, belay__call_t *call, const belay__script_t *script,
                     size_t args) {
  belay__call_script(call, script, 1, args);
  belay__post_put_key(&latch->post, call, "");
  belay__call_arg_int(call, latch->count);
  belay__call_arg_int(call, latch->ttl_ms);
}

static belay_latch_t *latch_of_vigil(belay__vigil_t *vigil) {
  return latch_of(BELAY__CONTAINER(vigil, belay__post_t, vigil));
}

static void ask(belay__vigil_t *vigil, belay__call_t *call) {
  const belay_latch_t *latch = latch_of_vigil(vigil);
  put_head(latch, call, &belay__script_latch_read, 3);
  belay__call_arg(call, latch->made, latch->made_len);
}

/* {what is left, when it was made}; -1 another count, -2 it is forgotten. */
static int read_open(belay__vigil_t *vigil, const belay__reply_t *reply, int64_t *holds_ms) {
  belay_latch_t *latch = latch_of_vigil(vigil);
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

static const belay__vigil_ops_t vigil_ops = {
    .ask = ask,
    .read = read_open,
    .over = belay__post_over,
};

static void closing(belay__post_t *post) {
  belay__requests_cancel(&latch_of(post)->counts);
}

static void ended(belay__post_t *post, int status) {
  belay_latch_t *latch = latch_of(post);
  belay_latch_cb cb = latch->cb;
  latch->cb = NULL;
  cb(latch, status);
}

static size_t size_of(size_t channel_len) {
  return sizeof(belay_latch_t) + channel_len;
}

static void closed(belay__post_t *post) {
  belay_latch_t *latch = latch_of(post);
  if (latch->close_cb != NULL)
    latch->close_cb(latch, latch->data);
  belay__free(belay__post_client(post)->belay, latch, size_of(latch->channel_len));
}

static const belay__post_ops_t post_ops = {.closing = closing, .ended = ended, .closed = closed};

static int check(const belay_latch_t *latch) {
  return latch == NULL ? BELAY_EINVAL : belay__post_check(&latch->post);
}

int belay_latch_new(belay_client_t *client, const char *name, size_t name_len,
                    const belay_latch_options_t *options, belay_latch_t **out) {
  name_len = belay__text_len(name, name_len);
  belay_latch_options_t o;
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  int error = belay__client_check(client);
  if (error == 0)
    error = belay__post_options(client, name, name_len, options, BELAY_LATCH_COUNT_MAX, &o);
  if (error != 0)
    return error;
  size_t channel_len = belay__post_channel(client, "latch", name, name_len, NULL);
  belay_latch_t *latch = belay__alloc(client->belay, size_of(channel_len));
  if (latch == NULL)
    return BELAY_ENOMEM;
  *latch = (belay_latch_t){.count = o.count, .ttl_ms = o.ttl_ms, .channel_len = channel_len};
  belay__post_channel(client, "latch", name, name_len, latch->channel);
  belay__list_init(&latch->counts);
  const belay__vigil_terms_t terms = {
      .retry_min = (uint32_t)o.retry_min_ms,
      .retry_max = (uint32_t)o.retry_max_ms,
      .backoff_max = (uint32_t)o.backoff_max_ms,
      .timeout = (uint32_t)o.timeout_ms,
  };
  belay__post_init(&latch->post, &post_ops, &vigil_ops, client, &terms, latch->channel,
                   channel_len);
  *out = latch;
  return 0;
}

/* ---- counting -------------------------------------------------------------------------------------------- */

/* What is left, or -1: another count. */
static int read_count(belay__pending_t *pending, const belay__call_t *call,
                      const belay__reply_t *reply) {
  (void)call;
  int64_t *values = pending->values;
  if (!belay__reply_integer(reply, -1, BELAY_LATCH_COUNT_MAX, &values[0]))
    return BELAY_EPROTO;
  return values[0] < 0 ? BELAY_EMISMATCH : 0;
}

static void tell_count(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  unsigned left = answer->status == 0 ? (unsigned)answer->values[0] : UINT_MAX;
  ((belay_latch_count_cb)cb)(request, answer->status, left);
}

static const belay__request_ops_t count_ops = {
    .read = read_count, .tell = tell_count, .idempotent = true};

/* The server remembers a count for longer than it may be sent again, whatever the latch's ttl: so it counts in one
 * latch at most. */
static int64_t remembered_ms(const belay_client_t *client, const belay_request_t *request) {
  int64_t ms = belay__request_timeout_ms(client, request);
  return ms + ms / 100 + 2;
}

/* An id of our own, as text. */
static int draw_operation(belay_t *belay, char out[2 * OPERATION_BYTES]) {
  static const char digits[] = "0123456789abcdef";
  unsigned char bytes[OPERATION_BYTES];
  int error = belay->host->random(belay, bytes, sizeof bytes);
  for (size_t i = 0; i < sizeof bytes && error == 0; i++) {
    out[2 * i] = digits[bytes[i] >> 4];
    out[2 * i + 1] = digits[bytes[i] & 15];
  }
  return error;
}

static int check_count(const belay_latch_t *latch, const belay_request_t *request,
                       const char *operation, size_t operation_len, bool has_cb) {
  int error = check(latch);
  if (error != 0)
    return error;
  belay_client_t *client = belay__post_client(&latch->post);
  if (operation != NULL && (operation_len < 1 || operation_len > BELAY_OPERATION_MAX))
    return belay__invalid(client->belay, "operation: not 1 to %d bytes", BELAY_OPERATION_MAX);
  return belay__request_check(client, request, has_cb);
}

int belay_latch_count_down(belay_latch_t *latch, belay_request_t *request, const char *operation,
                           size_t operation_len, belay_latch_count_cb cb) {
  operation_len = belay__text_len(operation, operation_len);
  char drawn[2 * OPERATION_BYTES];
  int error = check_count(latch, request, operation, operation_len, cb != NULL);
  if (error != 0)
    return error;
  belay_client_t *client = belay__post_client(&latch->post);
  if (operation == NULL) {
    if ((error = draw_operation(client->belay, drawn)) != 0)
      return error;
    operation = drawn;
    operation_len = sizeof drawn;
  }
  belay__call_t *call = belay__call_new(client, BELAY__LANE_DATA);
  if (call == NULL)
    return BELAY_ENOMEM;
  put_head(latch, call, &belay__script_latch_count, 5);
  belay__call_arg(call, operation, operation_len);
  belay__publish_arg(call, true);
  belay__call_arg_int(call, remembered_ms(client, request));
  call->affinity = latch->post.vigil.affinity;
  return belay__request_start(request, call, &count_ops, NULL, &latch->counts, (void (*)(void))cb);
}

/* ---- the rest -------------------------------------------------------------------------------------------- */

int belay_latch_wait(belay_latch_t *latch, int64_t wait_ms, belay_latch_cb cb) {
  int error = check(latch);
  if (error == 0)
    error = belay__post_may_wait(&latch->post, wait_ms, cb != NULL);
  if (error != 0)
    return error;
  latch->cb = cb;
  latch->made_len = 0;
  belay__post_wait(&latch->post, wait_ms);
  return 0;
}

int belay_latch_cancel(belay_latch_t *latch) {
  int error = check(latch);
  return error != 0 ? error : belay__post_cancel(&latch->post);
}

int belay_latch_close(belay_latch_t *latch, belay_latch_close_cb cb) {
  int error = check(latch);
  if (error != 0)
    return error;
  latch->close_cb = cb;
  belay__post_close(&latch->post);
  return 0;
}

void belay_latch_set_data(belay_latch_t *latch, void *data) {
  if (latch != NULL)
    latch->data = data;
}

void *belay_latch_data(const belay_latch_t *latch) {
  return latch == NULL ? NULL : latch->data;
}
