/* The cache handle: options, creation, close. */
#include "cache/loader.h"

#define DAY_MS INT64_C(86400000)
/* Upper bound for the bytes of a call or a reply without the value: keys, tags, script
 * arguments. */
#define CALL_BYTES ((size_t)8192)

/* ---- closing ---- */

/* Ends the subscription and stops the task. The handle has closed its children, the loads and the
 * fresh keys, before. */
static void on_close(belay__handle_t *handle) {
  belay_cache_t *cache = (belay_cache_t *)handle;
  belay__unlisten(&cache->subscription);
  belay__task_stop(handle->client->belay, &cache->task);
}

static void on_deinit(belay__handle_t *handle) {
  belay_cache_t *cache = (belay_cache_t *)handle;
  belay__local_free(&cache->local);
  belay__table_free(handle->client->belay, &cache->loads);
  belay__table_free(handle->client->belay, &cache->fresh_keys);
}

/* ---- creation ---- */

static const belay_cache_options_t defaults = {
    .ttl_ms = 300000,
    .jitter_percent = 10,
    .lock = true,
    .lease_ms = 10000,
    .load_timeout_ms = 30000,
    .timeout_ms = 10000,
    .retry_min_ms = 20,
    .retry_max_ms = 200,
    .wait_ms = BELAY_FOREVER,
    .late = BELAY_CACHE_LATE_STALE,
    .refresh_ms = BELAY_DEFAULT,
    .max_away_loads = 16,
    .local_ttl_ms = 1000,
    .max_value_bytes = (size_t)8 * 1024 * 1024,
};

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_cache_options_t, ttl_ms, 1, BELAY__CACHE_LIFE_MAX_MS),
    BELAY__RANGE(belay_cache_options_t, jitter_percent, 0, 90),
    BELAY__RANGE(belay_cache_options_t, stale_ms, 0, BELAY__CACHE_LIFE_MAX_MS),
    BELAY__RANGE_FROM(belay_cache_options_t, keep_ms, 0, stale_ms, BELAY__CACHE_LIFE_MAX_MS),
    BELAY__RANGE(belay_cache_options_t, absent_ms, 0, BELAY__CACHE_LIFE_MAX_MS),
    BELAY__RANGE(belay_cache_options_t, error_ms, 0, BELAY__CACHE_LIFE_MAX_MS),
    BELAY__RANGE(belay_cache_options_t, lease_ms, 100, DAY_MS),
    BELAY__RANGE(belay_cache_options_t, load_timeout_ms, 1, 3600000),
    BELAY__RANGE(belay_cache_options_t, timeout_ms, 1, 600000),
    BELAY__RANGE(belay_cache_options_t, retry_min_ms, 1, 60000),
    BELAY__RANGE_FROM(belay_cache_options_t, retry_max_ms, NOTHING, retry_min_ms, 60000),
    BELAY__RANGE_OR(belay_cache_options_t, wait_ms, FOREVER, 0, 600000),
    BELAY__RANGE(belay_cache_options_t, late, BELAY_CACHE_LATE_STALE, BELAY_CACHE_LATE_LOAD),
    BELAY__RANGE(belay_cache_options_t, away, BELAY_CACHE_AWAY_FAIL, BELAY_CACHE_AWAY_LOAD),
    BELAY__RANGE(belay_cache_options_t, max_away_loads, 1, 65536),
    BELAY__RANGE(belay_cache_options_t, local_ttl_ms, 1, DAY_MS),
    BELAY__RANGE(belay_cache_options_t, max_value_bytes, 1, BELAY_CACHE_VALUE_MAX),
    {.name = NULL},
};

/* Set the defaults that depend on other options. */
static void resolve(belay_cache_options_t *o) {
  if (o->keep_ms == 0)
    o->keep_ms = o->stale_ms;
  if (o->refresh_ms == BELAY_DEFAULT)
    o->refresh_ms = o->ttl_ms >= 5 ? o->ttl_ms / 5 : 1;
  if (o->wait_ms == BELAY_FOREVER)
    o->wait_ms = 600000;
}

/* true if the option, a limiter or a filter, is not NULL and belongs to another belay_t. */
static bool is_of_another(const belay_client_t *client, const void *option) {
  const belay__handle_t *handle = option;
  return handle != NULL && handle->client->belay != client->belay;
}

static int check_options(const belay_client_t *client, const belay_cache_options_t *o) {
  belay_t *belay = client->belay;
  int error = belay__check_range(belay, "refresh_ms", o->refresh_ms, 1, o->ttl_ms);
  if (error != 0)
    return error;
  if (!(o->beta >= 0 && o->beta <= 1000))
    return belay__invalid(belay, "beta: not from 0 to 1000");
  if (is_of_another(client, o->limiter) || is_of_another(client, o->filter))
    return belay__invalid(belay, "limiter, filter: of another belay_t");
  if (o->max_value_bytes + CALL_BYTES > client->max_reply ||
      o->max_value_bytes + CALL_BYTES > client->max_bytes)
    return belay__invalid(belay, "max_value_bytes: the client's max_reply or max_bytes is less");
  return 0;
}

static int on_init(belay__handle_t *handle, void *options) {
  belay_cache_t *cache = (belay_cache_t *)handle;
  belay_cache_options_t *o = options;
  resolve(o);
  int error = check_options(handle->client, o);
  if (error != 0)
    return error;
  cache->options = *o;
  cache->options.name.data = NULL;
  cache->time.conn_class = BELAY__CLASS_BULK;
  belay__list_init(&cache->ready);
  belay__list_init(&cache->ready_many);
  belay__task_init(&cache->task, belay__loader_task);
  return belay__local_init(&cache->local, handle->client->belay, o->local_bytes);
}

const belay__handle_type_t belay__cache_type = {
    .family = "cache",
    BELAY__HANDLE_LAYOUT(cache),
    .defaults = &defaults,
    .ranges = ranges,
    .init = on_init,
    .close = on_close,
    .deinit = on_deinit,
};

BELAY__HANDLE_FUNCTIONS(cache)

void belay_cache_stats(const belay_cache_t *cache, belay_cache_stats_t *out) {
  if (out == NULL)
    return;
  *out = (belay_cache_stats_t){0};
  if (cache == NULL)
    return;
  *out = cache->stats;
  out->loading = cache->loads.count;
  out->local_entries = cache->local.table.count;
  out->local_bytes = cache->local.bytes;
}
