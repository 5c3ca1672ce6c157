#include "sync/awaitable.h"

#include <string.h>

#include "core/client/lifecycle.h"

static const char wake[] = "}::wake";
#define WAKE_LEN (sizeof wake - 1)
#define BACKOFF_MAX_MS INT64_C(300)

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

const belay__range_t belay__awaitable_ranges[] = {
    BELAY__RANGE(belay_latch_options_t, ttl_ms, 1000, 604800000),
    BELAY__RANGE(belay_latch_options_t, retry_min_ms, 1, 3600000),
    BELAY__RANGE_FROM(belay_latch_options_t, retry_max_ms, NOTHING, retry_min_ms, 3600000),
    BELAY__RANGE_FROM(belay_latch_options_t, backoff_max_ms, DEFAULT, retry_max_ms, 3600000),
    BELAY__RANGE(belay_latch_options_t, waiter_ttl_ms, 100, 600000),
    BELAY__RANGE_OR(belay_latch_options_t, timeout_ms, DEFAULT, 1, 600000),
    {.name = NULL},
};

static belay__waiter_config_t config_of(const belay_client_t *client,
                                        const belay_latch_options_t *o,
                                        belay__waiter_config_t config) {
  int64_t backoff = o->retry_max_ms > BACKOFF_MAX_MS ? o->retry_max_ms : BACKOFF_MAX_MS;
  config.retry_min = (uint32_t)o->retry_min_ms;
  config.retry_max = (uint32_t)o->retry_max_ms;
  config.backoff_max = (uint32_t)(o->backoff_max_ms == BELAY_DEFAULT ? backoff : o->backoff_max_ms);
  config.timeout = (uint32_t)(o->timeout_ms == BELAY_DEFAULT ? client->timeout_ms : o->timeout_ms);
  return config;
}

/* ---- the end of a wait ---- */

static belay_t *belay_of(const belay__awaitable_t *awaitable) {
  return awaitable->handle.client->belay;
}

void belay__awaitable_finished(belay__waiter_t *waiter) {
  belay__awaitable_t *awaitable = belay__awaitable_of(waiter);
  belay__defer(belay_of(awaitable), &awaitable->task);
}

static void run_task(belay__task_t *task) {
  belay__awaitable_t *awaitable = BELAY__CONTAINER(task, belay__awaitable_t, task);
  belay_t *belay = belay_of(awaitable);
  belay__awaitable_end_fn end = awaitable->end;
  int status = awaitable->waiter.status;
  awaitable->end = NULL;
  belay__timer_stop(belay, BELAY__RANK_OTHER, &awaitable->close_timer);
  belay__free_loop(belay);
  belay__client_explain(awaitable->handle.client, status, awaitable->channel,
                        awaitable->channel_len - (WAKE_LEN - 1));
  end(awaitable, status);
  belay__handle_release(&awaitable->handle);
}

void belay__awaitable_close(belay__handle_t *handle) {
  belay__awaitable_t *awaitable = (belay__awaitable_t *)handle;
  belay_t *belay = belay_of(awaitable);
  if (belay__waiter_is_on(&awaitable->waiter))
    belay__waiter_cancel(&awaitable->waiter, BELAY_ECANCELED);
  if (belay__waiter_is_on(&awaitable->waiter))
    belay__timer_set(belay, BELAY__RANK_OTHER, &awaitable->close_timer,
                     belay__after_ms(belay, handle->client->close_timeout_ms));
}

void belay__awaitable_abort(belay__handle_t *handle) {
  belay__waiter_stop(&((belay__awaitable_t *)handle)->waiter);
}

static void on_close_timeout(belay__timer_t *timer) {
  belay__waiter_stop(&BELAY__CONTAINER(timer, belay__awaitable_t, close_timer)->waiter);
}

void belay__awaitable_deinit(belay__handle_t *handle) {
  belay__awaitable_t *awaitable = (belay__awaitable_t *)handle;
  belay__free(handle->client->belay, awaitable->channel, awaitable->channel_len);
}

/* ---- construction ---- */

int belay__awaitable_new(belay_client_t *client, const belay__handle_type_t *type,
                         belay_bytes_t name, const belay_latch_options_t *options,
                         belay__handle_t **out) {
  belay__awaitable_options_t given = {.name = name}, filled;
  belay_latch_options_init(&given.latch);
  if (options != NULL)
    given.latch = *options;
  return belay__handle_new(client, type, &given, &filled, out);
}

int belay__awaitable_init(belay__awaitable_t *awaitable, const belay__awaitable_options_t *options,
                          unsigned count_max, belay__waiter_config_t config,
                          const belay__waiter_ops_t *waiter_ops) {
  const belay_latch_options_t *o = &options->latch;
  belay__handle_t *handle = &awaitable->handle;
  belay_t *belay = handle->client->belay;
  int error = belay__check_range(belay, "count", o->count, 1, count_max);
  if (error != 0)
    return error;
  awaitable->channel_len = handle->prefix_len + WAKE_LEN;
  awaitable->channel = belay__alloc(belay, awaitable->channel_len);
  if (awaitable->channel == NULL)
    return BELAY_ENOMEM;
  memcpy(awaitable->channel, handle->prefix, handle->prefix_len);
  memcpy(awaitable->channel + handle->prefix_len, wake, WAKE_LEN);
  awaitable->count = o->count;
  awaitable->ttl_ms = o->ttl_ms;
  awaitable->waiter_ttl_ms = o->waiter_ttl_ms;
  awaitable->close_timer.fire = on_close_timeout;
  belay__task_init(&awaitable->task, run_task);
  config = config_of(handle->client, o, config);
  belay__waiter_init(&awaitable->waiter, waiter_ops, handle->client, &config, awaitable->channel,
                     awaitable->channel_len);
  awaitable->waiter.route = handle->route;
  return 0;
}

int belay__awaitable_check_wait(const belay__awaitable_t *awaitable, int64_t wait_ms, bool has_cb) {
  int error = belay__handle_check((const belay__handle_t *)awaitable);
  if (error != 0)
    return error;
  if (!has_cb)
    return belay__invalid(belay_of(awaitable), "cb: NULL");
  if (awaitable->end != NULL)
    return BELAY_ESTATE;
  return belay__check_range(belay_of(awaitable), "wait_ms", wait_ms, 0, BELAY_FOREVER);
}

void belay__awaitable_wait(belay__awaitable_t *awaitable, int64_t wait_ms,
                           belay__awaitable_end_fn end) {
  awaitable->end = end;
  belay__hold_loop(belay_of(awaitable));
  belay__handle_retain(&awaitable->handle);
  belay__waiter_start(&awaitable->waiter, wait_ms);
}

int belay__awaitable_cancel(belay__awaitable_t *awaitable) {
  int error = belay__handle_check((const belay__handle_t *)awaitable);
  if (error != 0)
    return error;
  if (!belay__waiter_is_on(&awaitable->waiter))
    return BELAY_ESTATE;
  belay__waiter_cancel(&awaitable->waiter, BELAY_ECANCELED);
  return 0;
}
