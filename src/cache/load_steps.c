#include "cache/load_steps.h"

#include <stdio.h>
#include <string.h>

#include "cache/key.h"
#include "core/call/publish.h"
#include "scripts.gen.h"
#include "xxhash.h"

#define LOCK_KEY_MAX ((size_t)1024) /* longest exact key of a lock */

static belay__load_t *load_of(belay_request_t *request) {
  return BELAY__CONTAINER(request, belay__load_t, request);
}

static void free_load(belay__load_t *load) {
  belay_cache_t *cache = load->cache;
  belay_t *belay = belay__load_belay(load);
  belay__lookup_release(cache, &load->lookup);
  belay__record_release(belay, load->fallback);
  belay__record_release(belay, load->loaded);
  belay__handle_detach(&cache->handle, &load->child);
  belay__keyed_free(belay, &load->keyed);
}

static void free_if_ended(belay__load_t *load) {
  if (belay__load_is_over(load) && !load->requesting && load->lock == NULL)
    free_load(load);
}

/* Notes that the request of the load has ended. true if the load goes on. Otherwise the caller must
 * not use the load, which may be freed. */
static bool request_ended(belay__load_t *load) {
  bool over = belay__load_is_over(load);
  load->requesting = false;
  free_if_ended(load);
  return !over;
}

/* Notes that a request of the load is under way if error is 0. error: result of the function that
 * began the request. Returns error. */
static int note_request(belay__load_t *load, int error) {
  load->requesting = error == 0;
  return error;
}

/* ---- the filter and the limiter ---- */

static void on_filter(belay_request_t *request, int status, bool exists) {
  belay__load_t *load = load_of(request);
  if (request_ended(load))
    belay__load_step(load, status != 0 || exists ? BELAY__LOAD_YES : BELAY__LOAD_NO, status);
}

int belay__load_start_filter(belay__load_t *load) {
  return note_request(load, belay_bloom_exists(load->cache->options.filter, &load->request,
                                               belay__load_key(load), on_filter));
}

static void on_limiter(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  belay__load_t *load = load_of(request);
  bool allowed = result->verdict == BELAY_ALLOWED;
  (void)status;
  if (request_ended(load))
    belay__load_step(load, allowed ? BELAY__LOAD_YES : BELAY__LOAD_NO, 0);
}

int belay__load_start_limiter(belay__load_t *load) {
  const belay_cache_options_t *o = &load->cache->options;
  belay_bytes_t key = o->limit_per_key ? belay__load_key(load) : belay_string("loads");
  return note_request(load, belay_limiter_take(o->limiter, &load->request, key, 1, on_limiter));
}

/* ---- the lease ---- */

static void on_lease(belay_lock_t *lock, int status) {
  belay__load_t *load = belay_lock_data(lock);
  if (belay__load_is_over(load))
    return;
  belay__load_step(load,
                   status == 0             ? BELAY__LOAD_YES
                   : status == BELAY_EHELD ? BELAY__LOAD_NO
                                           : BELAY__LOAD_ERROR,
                   status);
}

/* Notes the loss of the lease; the load goes on. The server stores the load's value unless,
 * since the load began, another load or a put has begun, or the key was invalidated. */
static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  belay__load_t *load = belay_lock_data(lock);
  (void)reason;
  load->held = false;
}

/* Builds the key of the lease. It contains the key of the load if that fits, and otherwise a hash
 * of the key of the load. NULL if there is no memory. */
static char *new_lease_key(const belay__load_t *load, size_t *len) {
  belay_cache_t *cache = load->cache;
  char *key = belay__cache_key(cache, belay__load_key(load), BELAY__CACHE_LEASE, len);
  if (key == NULL || *len <= LOCK_KEY_MAX)
    return key;
  belay__free(belay__load_belay(load), key, *len);
  XXH128_hash_t hash = XXH3_128bits(load->keyed.key, load->keyed.key_len);
  char text[33];
  snprintf(text, sizeof text, "%016llx%016llx", (unsigned long long)hash.high64,
           (unsigned long long)hash.low64);
  return belay__cache_key(cache, belay_bytes(text, 32), BELAY__CACHE_LEASE, len);
}

static void on_lock_closed(belay_lock_t *lock, void *data) {
  belay__load_t *load = data;
  (void)lock;
  load->lock = NULL;
  load->held = false;
  free_if_ended(load);
}

static int new_lock(belay__load_t *load) {
  belay_client_t *client = load->cache->handle.client;
  belay_lock_options_t o;
  belay_lock_options_init(&o);
  char *key = new_lease_key(load, &o.key.len);
  if (key == NULL)
    return BELAY_ENOMEM;
  o.key.data = key;
  o.ttl_ms = load->cache->options.lease_ms;
  o.watchdog = BELAY_WATCHDOG_ON;
  o.wakeup = BELAY_WAKE_POLL; /* the channel of stored values wakes the waiters */
  o.max_handovers = 0;
  /* otherwise a failover that loses the release blocks loads of the key for lease_ms */
  o.repeat_release = true;
  o.on_lost = on_lost;
  o.data = load;
  int error = belay_lock_new(client, belay__load_key(load), &o, &load->lock);
  belay__free(client->belay, key, o.key.len);
  if (error == 0)
    belay_lock_on_closed(load->lock, on_lock_closed);
  return error;
}

int belay__load_start_lease(belay__load_t *load) {
  int error = load->lock == NULL ? new_lock(load) : 0;
  return error != 0 ? error : belay_lock_try(load->lock, on_lease);
}

/* ---- requests of the load ---- */

/* Index of the reply in the values of the request. */
enum { RESULT };

/* Sends the calls as the request of the load. Takes ownership of the calls, also on error. */
static int send_calls(belay__load_t *load, const belay__request_ops_t *ops, belay__call_t **calls,
                      size_t n) {
  belay__operation_t *operation;
  int error = belay__handle_begin(&load->cache->handle, &load->request, ops, NULL, &operation);
  if (error != 0) {
    belay__calls_discard(calls, n);
    return note_request(load, error);
  }
  operation->fail_fast = belay__cache_fails_fast(load->cache);
  error = belay__request_send_all(operation, calls, n);
  return note_request(load, belay__request_begun(operation, error));
}

static belay__load_t *load_of_operation(belay__operation_t *operation) {
  return load_of(belay__request_of(operation));
}

static int read_result(belay__operation_t *operation, const belay__call_t *call,
                       const belay__reply_t *reply) {
  (void)call;
  return belay__reply_integer(reply, 0, 1, &operation->values[RESULT]) ? 0 : BELAY_EPROTO;
}

static void end_step(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  belay__load_t *load = load_of(request);
  (void)cb;
  if (request_ended(load))
    belay__load_step(load,
                     answer->status != 0      ? BELAY__LOAD_ERROR
                     : answer->values[RESULT] ? BELAY__LOAD_YES
                                              : BELAY__LOAD_SEEN,
                     answer->status);
}

/* ---- lookup ---- */

static int read_lookup(belay__operation_t *operation, const belay__call_t *call,
                       const belay__reply_t *reply) {
  belay__load_t *load = load_of_operation(operation);
  return operation->index <= load->lookup.tags_len
             ? belay__lookup_read(load->cache, &load->lookup, operation->index, reply)
             : belay__servertime_read(&load->cache->time, call, reply);
}

static const belay__request_ops_t lookup_ops = {
    .read = read_lookup, .notify = end_step, .idempotent = true};

int belay__load_start_lookup(belay__load_t *load) {
  belay_cache_t *cache = load->cache;
  belay__call_t *calls[BELAY__LOOKUP_CALLS_MAX + 1];
  uint64_t now = belay__now(belay__load_belay(load));
  belay__lookup_release(cache, &load->lookup);
  size_t n = belay__lookup_calls(cache, &load->lookup, BELAY__LOOKUP_AT_PRIMARY, now,
                                 belay__load_key(load), calls);
  n = belay__lookup_add_time(cache, now, calls, n);
  return send_calls(load, &lookup_ops, calls, n);
}

/* ---- begin: the generations of the key and of its tags ---- */

static int read_begin(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  belay__load_t *load = load_of_operation(operation);
  if (operation->index > 0) {
    size_t i = operation->index - 1;
    int error = belay__cache_read_tag(call, reply, load->tags[i]);
    if (error == 0)
      load->lookup.tags ^= belay__lookup_fold(i, load->tags[i]);
    return error;
  }
  if (reply->type == BELAY__REPLY_STRING)
    return belay__lookup_replace(load->cache, &load->lookup, reply->str, reply->len);
  return belay__reply_integer(reply, 1, 1, &operation->values[RESULT]) ? 0 : BELAY_EPROTO;
}

/* Not idempotent: see src/lua/cache/begin.lua. */
static const belay__request_ops_t begin_ops = {.read = read_begin, .notify = end_step};

int belay__load_start_begin(belay__load_t *load) {
  belay_cache_t *cache = load->cache;
  belay_bytes_t tags[BELAY_CACHE_TAGS_MAX];
  belay__call_t *calls[1 + BELAY_CACHE_TAGS_MAX];
  size_t tags_len = belay__cache_tags(cache, belay__load_key(load), tags);
  calls[0] = belay__cache_begin(cache, belay__load_key(load), load->seen_id.id, load->seen_id.len,
                                load->generation);
  for (size_t i = 0; i < tags_len; i++)
    calls[1 + i] = belay__cache_capture(cache, tags[i], BELAY_DEFAULT);
  load->tags_len = (uint8_t)tags_len;
  belay__lookup_release(cache, &load->lookup);
  load->lookup = (belay__lookup_t){.asked_at = belay__now(belay__load_belay(load)),
                                   .tags_len = (uint8_t)tags_len,
                                   .freshness = BELAY__EXPIRED};
  belay__local_stamp(&cache->local, load->keyed.key, load->keyed.key_len, tags, tags_len,
                     &load->lookup.stamp);
  return send_calls(load, &begin_ops, calls, 1 + tags_len);
}

/* ---- storing the value ---- */

static const belay__request_ops_t store_ops = {
    .read = read_result, .notify = end_step, .idempotent = true};

/* Sends the call that stores a value or a failure. error: result of adding arguments to the call;
 * if it is not 0, the call is discarded, and error is returned. Takes ownership of the call, also
 * on error. */
static int start_store(belay__load_t *load, belay__call_t *call, int error) {
  if (error != 0) {
    belay__calls_discard(&call, 1);
    return error;
  }
  belay__publish_arg(call, load->cache->options.lock);
  return send_calls(load, &store_ops, &call, 1);
}

int belay__load_start_fill(belay__load_t *load) {
  belay_cache_t *cache = load->cache;
  belay__record_t *record = load->loaded;
  belay__call_t *call =
      belay__cache_script(cache, &belay__script_cache_fill, belay__load_key(load), 4);
  if (call == NULL)
    return BELAY_ENOMEM;
  int64_t ttl_ms = belay__cache_date(cache, record, BELAY_DEFAULT);
  if (load->tags_len == 0) { /* a record with tags keeps the stamp from the capture of its tags */
    load->lookup.asked_at = belay__now(belay__load_belay(load));
    belay__local_restamp(&cache->local, &load->lookup.stamp);
  }
  int error =
      belay__cache_record_args(cache, call, load->generation, record, ttl_ms, &load->written);
  return start_store(load, call, error);
}

/* ---- storing a failure ---- */

/* Adds arguments to the call: an ERROR record, its ttl, and the retry time that the script sets in
 * a usable stored value. The retry time is "" if no such value was seen. If error_ms is 0, record
 * and retry time are "". */
static int put_failure(belay__load_t *load, belay__call_t *call) {
  belay_cache_t *cache = load->cache;
  belay_t *belay = belay__load_belay(load);
  belay__record_t *record = belay__record_new(belay, BELAY__RECORD_ERROR, 0, load->tags_len);
  if (record == NULL)
    return BELAY_ENOMEM;
  record->error = load->error;
  memcpy(record->id, load->generation, BELAY__RECORD_ID);
  memcpy(belay__record_tag(record, 0), load->tags, load->tags_len * BELAY__RECORD_ID);
  int64_t ttl_ms = belay__cache_date(cache, record, BELAY_DEFAULT);
  size_t written;
  int error = belay__cache_record_args(cache, call, load->generation, record, ttl_ms, &written);
  char retry[8];
  belay__record_put_ms(retry, record->fresh_ms);
  bool useful = load->refresh || load->fallback != NULL; /* a usable value was seen on the server */
  belay__call_arg(call, retry, useful && cache->options.error_ms > 0 ? sizeof retry : 0);
  belay__record_release(belay, record);
  return error;
}

int belay__load_start_fail(belay__load_t *load) {
  belay_cache_t *cache = load->cache;
  belay__call_t *call =
      belay__cache_script(cache, &belay__script_cache_fail, belay__load_key(load), 5);
  if (call == NULL)
    return BELAY_ENOMEM;
  return start_store(load, call, put_failure(load, call));
}

/* ---- values stored by other processes ---- */

static void on_message(belay__subscription_t *subscription, belay__channel_event_t what,
                       const char *data, size_t len, int status) {
  belay__load_t *load = BELAY__CONTAINER(subscription, belay__load_t, subscription);
  (void)data, (void)len, (void)status;
  if (what == BELAY__CHANNEL_GAP)
    return;
  load->woken = true;
  if (belay__load_is_waiting(load))
    belay__load_step(load, BELAY__LOAD_WAKE, 0);
}

void belay__load_subscribe(belay__load_t *load) {
  size_t len;
  if (load->subscription.channel != NULL)
    return;
  char *name = belay__cache_key(load->cache, belay__load_key(load), "}" BELAY__CACHE_FILLED, &len);
  if (name == NULL)
    return; /* the load polls */
  load->subscription.on_event = on_message;
  (void)belay__listen(load->cache->handle.client, name, len, &load->subscription);
  /* the subscription may be up already: a value may have been stored since the last lookup */
  load->woken |= belay__subscription_is_up(&load->subscription);
  belay__free(belay__load_belay(load), name, len);
}

/* ---- the end ---- */

/* belay_lock_close() fails if the client is closing its locks already; on_lock_closed() runs in any
 * case. */
void belay__load_end_steps(belay__load_t *load) {
  belay__unlisten(&load->subscription);
  if (load->requesting)
    (void)belay_request_cancel(&load->request);
  if (load->lock != NULL)
    (void)belay_lock_close(load->lock, on_lock_closed);
  free_if_ended(load);
}
