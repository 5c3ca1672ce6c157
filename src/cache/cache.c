/* belay_cache_t: a new one, its end, and what the others share. */
#include "cache/cache.h"

#include <string.h>

#include "cache/single_flight.h"

#define LIFE_MAX_MS INT64_C(31536000000) /* a year */
#define DAY_MS INT64_C(86400000)
#define CALL_BYTES                                                                                 \
  ((size_t)8192) /* of a call or a reply, beside the value: keys, tags, what the script is given */

/* ---- closing ------------------------------------------------------------------------------------------- */

/* Flights are parts, and have closed by now. */
static void on_close(belay__family_t *family) {
  belay_cache_t *cache = (belay_cache_t *)family;
  belay__unlisten(&cache->ear);
  belay__pins_free(cache);
  belay__task_stop(family->client->belay, &cache->task);
}

static void on_gone(belay__family_t *family) {
  belay_cache_t *cache = (belay_cache_t *)family;
  belay__local_free(&cache->local);
  belay__table_free(family->client->belay, &cache->flights);
  belay__table_free(family->client->belay, &cache->pins);
  if (family->close_cb != NULL)
    ((belay_cache_close_cb)family->close_cb)(cache, family->data);
}

static const belay__family_ops_t family_ops = {
    .name = "cache", .size = sizeof(belay_cache_t), .close = on_close, .gone = on_gone};

int belay_cache_close(belay_cache_t *cache, belay_cache_close_cb cb) {
  return belay__family_close((belay__family_t *)cache, (void (*)(void))cb);
}

void *belay_cache_data(const belay_cache_t *cache) {
  return belay__family_data((const belay__family_t *)cache);
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
      {"ttl_ms", o->ttl_ms, 1, LIFE_MAX_MS},
      {"jitter_percent", o->jitter_percent, 0, 90},
      {"stale_ms", o->stale_ms, 0, LIFE_MAX_MS},
      {"keep_ms", o->keep_ms, o->stale_ms, LIFE_MAX_MS},
      {"absent_ms", o->absent_ms, 0, LIFE_MAX_MS},
      {"error_ms", o->error_ms, 0, LIFE_MAX_MS},
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

/* A limiter and a filter are families, too; NULL is nobody's. */
static bool is_of_another(const belay_client_t *client, const void *handle) {
  const belay__family_t *family = handle;
  return family != NULL && family->client->belay != client->belay;
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
  cache->family.data = o->data;
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
  belay__family_t *family;
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
  error = belay__family_new(client, &family_ops, o.name, o.name_len, &family);
  if (error != 0) {
    belay__local_free(&local);
    return error;
  }
  belay_cache_t *cache = *out = (belay_cache_t *)family;
  belay__local_move(&cache->local, &local);
  init(cache, &o);
  return 0;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

int64_t belay__cache_ms_at(const belay_cache_t *cache, uint64_t now) {
  return cache->time.learnt == 0 ? 0 : belay__servertime_ms_at(&cache->time, now);
}

int64_t belay__cache_now_ms(const belay_cache_t *cache) {
  return belay__cache_ms_at(cache, belay__turn(cache->family.client->belay));
}

int64_t belay__cache_date(belay_cache_t *cache, belay__record_t *record, int64_t ttl_ms) {
  const belay_cache_options_t *o = &cache->options;
  belay_t *belay = cache->family.client->belay;
  int64_t keep = 0;
  switch ((belay__record_kind_t)record->kind) {
  case BELAY__RECORD_VALUE:
    ttl_ms = ttl_ms == BELAY_DEFAULT ? o->ttl_ms : ttl_ms;
    keep = o->keep_ms;
    break;
  case BELAY__RECORD_ABSENT:
    ttl_ms = o->absent_ms;
    break;
  case BELAY__RECORD_ERROR:
    ttl_ms = o->error_ms;
    break;
  }
  int64_t off = ttl_ms / 100 * o->jitter_percent + ttl_ms % 100 * o->jitter_percent / 100;
  ttl_ms -= (int64_t)belay__random_below(belay, (uint64_t)off + 1);
  record->created_ms = belay__cache_now_ms(cache);
  record->fresh_ms = record->created_ms + ttl_ms;
  return ttl_ms + keep;
}

void belay__cache_keep_local(belay_cache_t *cache, const char *key, size_t key_len,
                             belay__record_t *record, const belay__stamp_t *stamp, uint64_t asked) {
  const belay_cache_options_t *o = &cache->options;
  if (o->local_bytes == 0)
    return;
  if (record == NULL) {
    belay__local_remove(&cache->local, key, key_len);
    return;
  }
  uint64_t now = belay__turn(cache->family.client->belay);
  uint64_t until = asked + (uint64_t)o->local_ttl_ms * BELAY__MS, keep_until = now;
  int64_t left = record->fresh_ms - belay__cache_ms_at(cache, now);
  if (left > LIFE_MAX_MS)
    left = LIFE_MAX_MS; /* the time in an envelope is not checked */
  uint64_t fresh_until = left > 0 ? now + (uint64_t)left * BELAY__MS : now;
  if (until > fresh_until)
    until = fresh_until;
  if (record->kind == BELAY__RECORD_VALUE && o->away != BELAY_CACHE_AWAY_FAIL &&
      left + o->keep_ms > 0)
    keep_until = now + (uint64_t)(left + o->keep_ms) * BELAY__MS;
  if (until > now || keep_until > now)
    belay__local_put(&cache->local, key, key_len, record, stamp, until, keep_until);
  else
    belay__local_remove(&cache->local, key, key_len); /* which knows no better */
}

void belay__cache_deadlines(const belay_cache_t *cache, belay__pending_t *pending, uint64_t now,
                            uint64_t *deadline) {
  const belay_client_t *client = cache->family.client;
  const belay_request_t *request = belay__request_of(pending);
  int64_t ms = request->timeout_ms;
  if (ms == 0 || ms == BELAY_DEFAULT)
    ms = cache->options.timeout_ms;
  int64_t call_ms = cache->options.away == BELAY_CACHE_AWAY_LOAD ? (ms + 1) / 2 : ms;
  if (call_ms > client->timeout_ms)
    call_ms = client->timeout_ms;
  *deadline = now + (uint64_t)ms * BELAY__MS;
  pending->deadline = now + (uint64_t)call_ms * BELAY__MS;
}

/* ---- what is invalidated elsewhere --------------------------------------------------------------------- */

static void hear(belay__ear_t *ear, belay__heard_t what, const char *data, size_t len, int status) {
  belay_cache_t *cache = BELAY__CONTAINER(ear, belay_cache_t, ear);
  (void)status;
  if (what != BELAY__HEARD_MESSAGE) {
    belay__local_doubt(&cache->local);
    return;
  }
  uint64_t hash = 0;
  for (size_t i = 0; i < len && i < 8; i++)
    hash |= (uint64_t)(unsigned char)data[i] << (8 * i);
  if (len == 8)
    belay__local_invalidate(&cache->local, hash);
}

/* If it cannot now, it may the next time: local_ttl_ms bounds what is not heard. */
void belay__cache_listen(belay_cache_t *cache) {
  size_t len;
  if (cache->options.local_bytes == 0 || cache->ear.channel != NULL)
    return;
  char *name = belay__cache_key(cache, "", 0, BELAY__CACHE_DROPPED, &len);
  if (name == NULL)
    return;
  cache->ear.hear = hear;
  (void)belay__listen(cache->family.client, name, len, &cache->ear);
  belay__free(cache->family.client->belay, name, len);
}

/* ---- what a get came to --------------------------------------------------------------------------------- */

belay__served_t belay__cache_serve(belay__record_t *record, belay_cache_from_t from, bool stale,
                                   int reason, int load_error) {
  belay__served_t served = {
      .record = record, .from = (uint8_t)from, .reason = reason, .load_error = load_error};
  switch ((belay__record_kind_t)record->kind) {
  case BELAY__RECORD_VALUE:
    served.stale = stale;
    break;
  case BELAY__RECORD_ABSENT:
    served.status = BELAY_EABSENT;
    break;
  case BELAY__RECORD_ERROR:
    served.status = BELAY_ELOAD;
    served.load_error = record->error;
    break;
  }
  return served;
}

belay__served_t belay__cache_refuse(int status, int load_error) {
  return (belay__served_t){.status = status, .load_error = load_error};
}

bool belay__cache_is_away(int status) {
  return status != BELAY_ECANCELED && status != BELAY_EWRONGTYPE && status != BELAY_EMISMATCH &&
         status != BELAY_ENOMEM;
}

bool belay__cache_fails_fast(const belay_cache_t *cache) {
  return cache->options.away != BELAY_CACHE_AWAY_FAIL;
}

belay__served_t belay__cache_serve_away(belay_cache_t *cache, const char *key, size_t key_len,
                                        int status) {
  if (cache->options.away == BELAY_CACHE_AWAY_FAIL || cache->options.local_bytes == 0)
    return belay__cache_refuse(status, 0);
  belay__local_hit_t hit =
      belay__local_find(&cache->local, key, key_len, belay__now(cache->family.client->belay));
  if (hit.record == NULL)
    return belay__cache_refuse(status, 0);
  return belay__cache_serve(hit.record, BELAY_CACHE_FROM_LOCAL, !hit.fresh, hit.fresh ? 0 : status,
                            0);
}

void belay__cache_count(belay_cache_t *cache, const belay__served_t *served, bool at_once) {
  belay_cache_stats_t *stats = &cache->stats;
  if (served->record == NULL)
    return;
  stats->absent_served += served->status == BELAY_EABSENT;
  stats->stale_served += served->stale;
  if (!served->stale && at_once)
    *(served->from == BELAY_CACHE_FROM_LOCAL ? &stats->local_hits : &stats->hits) += 1;
}

bool belay__cache_serve_local(belay_cache_t *cache, const char *key, size_t key_len, uint64_t now,
                              belay__served_t *served) {
  if (cache->options.local_bytes == 0)
    return false;
  belay__local_hit_t hit = belay__local_find(&cache->local, key, key_len, now);
  if (hit.record == NULL || !hit.fresh)
    return false;
  *served = belay__cache_serve(hit.record, BELAY_CACHE_FROM_LOCAL, false, 0, 0);
  belay__cache_count(cache, served, true);
  return true;
}

void belay__cache_result(const belay_cache_t *cache, const belay__served_t *served, uint64_t now,
                         belay_cache_result_t *result) {
  const belay__record_t *record = served->record;
  *result = (belay_cache_result_t){.status = served->status,
                                   .data = "",
                                   .from = (belay_cache_from_t)served->from,
                                   .stale = served->stale,
                                   .reason = served->reason,
                                   .load_error = served->load_error};
  if (record == NULL)
    return;
  int64_t now_ms = belay__cache_ms_at(cache, now);
  if (now_ms > record->created_ms)
    result->age_ms = now_ms - record->created_ms;
  if (record->fresh_ms > now_ms)
    result->ttl_ms = record->fresh_ms - now_ms;
  if (record->kind != BELAY__RECORD_VALUE)
    return;
  result->data = record->bytes;
  result->len = record->len;
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
