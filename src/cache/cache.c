/* belay_cache_t: its options, a new one, its end. */
#include "cache/single_flight.h"
#include "cache/times.h"

#define DAY_MS INT64_C(86400000)
#define CALL_BYTES                                                                                 \
  ((size_t)8192) /* of a call or a reply, beside the value: keys, tags, what the script is given */

/* ---- closing ------------------------------------------------------------------------------------------- */

/* Flights are parts, and have closed by now. */
static void on_close(belay__handle_t *handle) {
  belay_cache_t *cache = (belay_cache_t *)handle;
  belay__unlisten(&cache->ear);
  belay__pins_free(cache);
  belay__task_stop(handle->client->belay, &cache->task);
}

static void on_gone(belay__handle_t *handle) {
  belay_cache_t *cache = (belay_cache_t *)handle;
  belay__local_free(&cache->local);
  belay__table_free(handle->client->belay, &cache->flights);
  belay__table_free(handle->client->belay, &cache->pins);
  if (handle->close_cb != NULL)
    ((belay_cache_close_cb)handle->close_cb)(cache, handle->data);
}

static const belay__handle_ops_t handle_ops = {
    .name = "cache", .size = sizeof(belay_cache_t), .close = on_close, .gone = on_gone};

int belay_cache_close(belay_cache_t *cache, belay_cache_close_cb cb) {
  return belay__handle_close((belay__handle_t *)cache, (void (*)(void))cb);
}

void *belay_cache_data(const belay_cache_t *cache) {
  return belay__handle_data((const belay__handle_t *)cache);
}

/* ---- a new one ----------------------------------------------------------------------------------------- */

void belay_cache_options_init(belay_cache_options_t *options) {
  if (options == NULL)
    return;
  *options = (belay_cache_options_t){
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
}

/* What stands for something else, does from now on. */
static void resolve(belay_cache_options_t *o) {
  if (o->keep_ms == 0)
    o->keep_ms = o->stale_ms;
  if (o->refresh_ms == BELAY_DEFAULT)
    o->refresh_ms = o->ttl_ms >= 5 ? o->ttl_ms / 5 : 1;
  if (o->wait_ms == BELAY_FOREVER)
    o->wait_ms = 600000;
}

static int check_ranges(belay_t *belay, const belay_cache_options_t *o) {
  const struct {
    const char *what;
    int64_t value, min, max;
  } rows[] = {
      {"ttl_ms", o->ttl_ms, 1, BELAY__CACHE_LIFE_MAX_MS},
      {"jitter_percent", o->jitter_percent, 0, 90},
      {"stale_ms", o->stale_ms, 0, BELAY__CACHE_LIFE_MAX_MS},
      {"keep_ms", o->keep_ms, o->stale_ms, BELAY__CACHE_LIFE_MAX_MS},
      {"absent_ms", o->absent_ms, 0, BELAY__CACHE_LIFE_MAX_MS},
      {"error_ms", o->error_ms, 0, BELAY__CACHE_LIFE_MAX_MS},
      {"lease_ms", o->lease_ms, 100, DAY_MS},
      {"load_timeout_ms", o->load_timeout_ms, 1, 3600000},
      {"timeout_ms", o->timeout_ms, 1, 600000},
      {"retry_min_ms", o->retry_min_ms, 1, 60000},
      {"retry_max_ms", o->retry_max_ms, o->retry_min_ms, 60000},
      {"wait_ms", o->wait_ms, 0, 600000},
      {"late", (int64_t)o->late, BELAY_CACHE_LATE_STALE, BELAY_CACHE_LATE_LOAD},
      {"refresh_ms", o->refresh_ms, 1, o->ttl_ms},
      {"away", (int64_t)o->away, BELAY_CACHE_AWAY_FAIL, BELAY_CACHE_AWAY_LOAD},
      {"max_away_loads", o->max_away_loads, 1, 65536},
      {"local_ttl_ms", o->local_ttl_ms, 1, DAY_MS},
      {"max_value_bytes", (int64_t)(o->max_value_bytes <= INT64_MAX ? o->max_value_bytes : 0), 1,
       (int64_t)BELAY_CACHE_VALUE_MAX},
  };
  int error = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows && error == 0; i++)
    error = belay__check_range(belay, rows[i].what, rows[i].value, rows[i].min, rows[i].max);
  return error;
}

/* option: a limiter or a filter, or NULL. */
static bool is_of_another(const belay_client_t *client, const void *option) {
  const belay__handle_t *handle = option;
  return handle != NULL && handle->client->belay != client->belay;
}

static int check_options(const belay_client_t *client, const belay_cache_options_t *o) {
  belay_t *belay = client->belay;
  int error = check_ranges(belay, o);
  if (error != 0)
    return error;
  if (!(o->beta >= 0 && o->beta <= 1000)) {
    belay__detail(belay, "beta: not from 0 to 1000");
    return BELAY_EINVAL;
  }
  if (is_of_another(client, o->limiter) || is_of_another(client, o->filter)) {
    belay__detail(belay, "limiter, filter: of another belay_t");
    return BELAY_EINVAL;
  }
  if (o->max_value_bytes + CALL_BYTES > client->max_reply ||
      o->max_value_bytes + CALL_BYTES > client->max_bytes) {
    belay__detail(belay, "max_value_bytes: the client's max_reply or max_bytes is less");
    return BELAY_EINVAL;
  }
  return 0;
}

static void init(belay_cache_t *cache, const belay_cache_options_t *o) {
  cache->handle.data = o->data;
  cache->options = *o;
  cache->options.name = NULL;
  cache->terms = (belay__fresh_terms_t){o->stale_ms, o->keep_ms, o->beta};
  cache->time.lane = BELAY__LANE_BULK;
  belay__list_init(&cache->pinned);
  belay__list_init(&cache->ready);
  belay__list_init(&cache->together);
  belay__task_init(&cache->task, belay__load_task);
}

int belay_cache_new(belay_client_t *client, const belay_cache_options_t *options,
                    belay_cache_t **out) {
  belay_cache_options_t o;
  belay__handle_t *handle;
  belay__local_t local;
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  int error = belay__client_check(client);
  if (error != 0)
    return error;
  belay_cache_options_init(&o);
  if (options != NULL)
    o = *options;
  resolve(&o);
  error = check_options(client, &o);
  if (error == 0)
    error = belay__local_init(&local, client->belay, o.local_bytes);
  if (error != 0)
    return error;
  error = belay__handle_new(client, &handle_ops, o.name, o.name_len, &handle);
  if (error != 0) {
    belay__local_free(&local);
    return error;
  }
  belay_cache_t *cache = *out = (belay_cache_t *)handle;
  belay__local_move(&cache->local, &local);
  init(cache, &o);
  return 0;
}

void belay_cache_stats(const belay_cache_t *cache, belay_cache_stats_t *out) {
  if (out == NULL)
    return;
  *out = (belay_cache_stats_t){0};
  if (cache == NULL)
    return;
  *out = cache->stats;
  out->flights = cache->flights.count;
  out->local_entries = cache->local.table.count;
  out->local_bytes = cache->local.bytes;
}
