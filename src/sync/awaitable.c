/* The post.
 *
 *   OPEN --wait--> PENDING --the vigil is over--> OVER --the task tells it--> OPEN
 *
 *   any --close--> CLOSING: a wait ends first, canceled, or as it comes; for at most the client's close_timeout
 *                    |--the task has told that
 *                    v
 *                  the task tells that it is closed, and the face frees it */
#include "sync/awaitable.h"

#include <string.h>

#include "core/client/ranges.h"
#include "core/key/key.h"
#include "core/client/lifecycle.h"

static const char wake[] = "::wake";
#define WAKE_LEN (sizeof wake - 1)
#define BACKOFF_MAX_MS INT64_C(300)

/* ---- options --------------------------------------------------------------------------------------------- */

void belay_latch_options_init(belay_latch_options_t *options) {
  if (options == NULL)
    return;
  *options = (belay_latch_options_t){
      .count = 1,
      .ttl_ms = 3600000,
      .retry_min_ms = 25,
      .retry_max_ms = 75,
      .backoff_max_ms = BELAY_DEFAULT,
      .waiter_ttl_ms = 3000,
      .timeout_ms = BELAY_DEFAULT,
  };
}

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_latch_options_t, ttl_ms, 1000, 604800000),
    BELAY__RANGE(belay_latch_options_t, retry_min_ms, 1, 3600000),
    BELAY__RANGE_FROM(belay_latch_options_t, retry_max_ms, NOTHING, retry_min_ms, 3600000),
    BELAY__RANGE_FROM(belay_latch_options_t, backoff_max_ms, DEFAULT, retry_max_ms, 3600000),
    BELAY__RANGE(belay_latch_options_t, waiter_ttl_ms, 100, 600000),
    BELAY__RANGE_OR(belay_latch_options_t, timeout_ms, DEFAULT, 1, 600000),
    {.name = NULL},
};

int belay__post_options(belay_client_t *client, const char *name, size_t name_len,
                        const belay_latch_options_t *options, unsigned count_max,
                        belay_latch_options_t *out) {
  belay_t *belay = client->belay;
  int error = belay__check_bytes(belay, "name", name, name_len, 1, BELAY__NAME_MAX);
  if (error != 0)
    return error;
  if (options == NULL)
    belay_latch_options_init(out);
  else
    *out = *options;
  error = belay__check_range(belay, "count", out->count, 1, count_max);
  if (error == 0)
    error = belay__check_ranges(belay, out, ranges);
  if (out->timeout_ms == BELAY_DEFAULT)
    out->timeout_ms = client->timeout_ms;
  if (out->backoff_max_ms == BELAY_DEFAULT)
    out->backoff_max_ms = out->retry_max_ms > BACKOFF_MAX_MS ? out->retry_max_ms : BACKOFF_MAX_MS;
  return error;
}

size_t belay__post_channel(const belay_client_t *client, const char *family, const char *name,
                           size_t name_len, char *out) {
  size_t len = belay__key_build(out, client->prefix, client->prefix_len, family, name, name_len);
  if (out != NULL)
    memcpy(out + len, wake, WAKE_LEN);
  return len + WAKE_LEN;
}

/* ---- what happens ---------------------------------------------------------------------------------------- */

static belay_t *host_of(const belay__post_t *post) {
  return post->vigil.client->belay;
}

void belay__post_over(belay__vigil_t *vigil) {
  belay__post_t *post = BELAY__CONTAINER(vigil, belay__post_t, vigil);
  post->over = true;
  belay__defer(host_of(post), &post->task);
}

static void tell_end(belay__post_t *post) {
  post->over = post->pending = false;
  belay__free_loop(host_of(post));
  belay__client_explain(post->vigil.client, post->vigil.status, post->vigil.channel, post->key_len);
  post->ops->ended(post, post->vigil.status);
}

static void run_task(belay__task_t *task) {
  belay__post_t *post = BELAY__CONTAINER(task, belay__post_t, task);
  belay_t *belay = host_of(post);
  bool closing = post->closing;
  if (post->over)
    tell_end(post);
  if (!closing ||
      post->pending) /* where the callback has closed it, what else has ended is told before */
    return;
  belay__timer_stop(belay, BELAY__RANK_OTHER, &post->patience);
  belay__client_remove(post->vigil.client, &post->object);
  belay__free_loop(belay);
  post->ops->closed(post);
}

static void start_close(belay__post_t *post) {
  if (post->closing)
    return;
  belay_t *belay = host_of(post);
  post->closing = true;
  belay__hold_loop(belay);
  if (post->ops->closing != NULL)
    post->ops->closing(post);
  if (belay__vigil_is_on(&post->vigil))
    belay__vigil_cancel(&post->vigil, BELAY_ECANCELED);
  if (belay__vigil_is_on(&post->vigil))
    belay__timer_set(belay, BELAY__RANK_OTHER, &post->patience,
                     belay__after_ms(belay, post->vigil.client->close_timeout_ms));
  belay__task_stop(belay, &post->task); /* what the face has ended is told before */
  belay__defer(belay, &post->task);
}

static void object_close(belay__object_t *object) {
  start_close(BELAY__CONTAINER(object, belay__post_t, object));
}

static void object_abort(belay__object_t *object) {
  belay__post_t *post = BELAY__CONTAINER(object, belay__post_t, object);
  start_close(post);
  belay__vigil_stop(&post->vigil);
}

static void out_of_patience(belay__timer_t *timer) {
  belay__vigil_stop(&BELAY__CONTAINER(timer, belay__post_t, patience)->vigil);
}

/* ---- the face's side ------------------------------------------------------------------------------------- */

static const belay__object_ops_t object_ops = {.close = object_close, .abort = object_abort};

void belay__post_init(belay__post_t *post, const belay__post_ops_t *ops,
                      const belay__vigil_ops_t *vigil_ops, belay_client_t *client,
                      const belay__vigil_terms_t *terms, const char *channel, size_t channel_len) {
  *post = (belay__post_t){.object = {.ops = &object_ops},
                          .ops = ops,
                          .patience = {.fire = out_of_patience},
                          .key_len = channel_len - WAKE_LEN};
  belay__task_init(&post->task, run_task);
  belay__vigil_init(&post->vigil, vigil_ops, client, terms, channel, channel_len);
  belay__client_add(client, &post->object);
}

int belay__post_check(const belay__post_t *post) {
  int error = belay__check(host_of(post));
  return error == 0 && post->closing ? BELAY_ECLOSING : error;
}

int belay__post_may_wait(const belay__post_t *post, int64_t wait_ms, bool has_cb) {
  if (!has_cb)
    return belay__invalid(host_of(post), "cb: NULL");
  if (post->pending)
    return BELAY_ESTATE;
  return belay__check_range(host_of(post), "wait_ms", wait_ms, 0, BELAY_FOREVER);
}

void belay__post_wait(belay__post_t *post, int64_t wait_ms) {
  post->pending = true;
  belay__hold_loop(host_of(post));
  belay__vigil_start(&post->vigil, wait_ms);
}

int belay__post_cancel(belay__post_t *post) {
  if (!belay__vigil_is_on(&post->vigil))
    return BELAY_ESTATE;
  belay__vigil_cancel(&post->vigil, BELAY_ECANCELED);
  return 0;
}

void belay__post_close(belay__post_t *post) {
  start_close(post);
}

void belay__post_put_key(const belay__post_t *post, belay__call_t *call, const char *part) {
  belay__call_arg_joined(call, post->vigil.channel, post->key_len, part, strlen(part));
}
