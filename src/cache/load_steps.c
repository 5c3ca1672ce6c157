/* What a flight asks: the filter, the lease, the generation, the limiter, the server. Each question ends in a step of the
 * flight's. */
#include <stdio.h>
#include <string.h>

#include "cache/single_flight.h"
#include "cache/key.h"
#include "cache/times.h"
#include "core/call/publish.h"
#include "scripts.gen.h"
#include "xxhash.h"

#define LOCK_KEY_MAX ((size_t)1024) /* what a lock takes for an exact key */

static belay__flight_t *flight_of(belay_request_t *request) {
  return BELAY__CONTAINER(request, belay__flight_t, request);
}

static belay_t *belay_of(const belay__flight_t *flight) {
  return flight->cache->handle.client->belay;
}

/* Its request is over: true, and the flight goes on; false: the flight is over too. */
static bool is_back(belay__flight_t *flight) {
  flight->asking = false;
  if (!belay__flight_is_over(flight))
    return true;
  if (flight->lock == NULL)
    belay__flight_free(flight);
  return false;
}

static int asked(belay__flight_t *flight, int error) {
  flight->asking = error == 0;
  return error;
}

/* ---- the filter and the limiter ------------------------------------------------------------------------ */

static void on_filter(belay_request_t *request, int status, bool exists) {
  belay__flight_t *flight = flight_of(request);
  if (is_back(flight))
    belay__flight_step(flight, status != 0 || exists ? BELAY__FLIGHT_YES : BELAY__FLIGHT_NO,
                       status);
}

int belay__flight_ask_filter(belay__flight_t *flight) {
  return asked(flight, belay_bloom_exists(flight->cache->options.filter, &flight->request,
                                          flight->key, flight->key_len, on_filter));
}

static void on_limiter(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  belay__flight_t *flight = flight_of(request);
  bool allowed = result->verdict == BELAY_ALLOWED;
  (void)status;
  if (is_back(flight))
    belay__flight_step(flight, allowed ? BELAY__FLIGHT_YES : BELAY__FLIGHT_NO, 0);
}

int belay__flight_ask_limiter(belay__flight_t *flight) {
  const belay_cache_options_t *o = &flight->cache->options;
  const char *key = o->limit_per_key ? flight->key : "loads";
  size_t len = o->limit_per_key ? flight->key_len : strlen("loads");
  return asked(flight, belay_limiter_take(o->limiter, &flight->request, key, len, 1, on_limiter));
}

/* ---- the lease ----------------------------------------------------------------------------------------- */

static void on_lease(belay_lock_t *lock, int status) {
  belay__flight_t *flight = belay_lock_data(lock);
  if (belay__flight_is_over(flight))
    return;
  belay__flight_step(flight,
                     status == 0             ? BELAY__FLIGHT_YES
                     : status == BELAY_EHELD ? BELAY__FLIGHT_NO
                                             : BELAY__FLIGHT_ERROR,
                     status);
}

/* The load goes on: what it brings is stored unless somebody else has begun one by then. */
static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  belay__flight_t *flight = belay_lock_data(lock);
  (void)reason;
  flight->held = false;
}

/* The key itself is in it if there is room for it; else a hash of it. */
static char *new_lease_key(const belay__flight_t *flight, size_t *len) {
  belay_cache_t *cache = flight->cache;
  char *key = belay__cache_key(cache, flight->key, flight->key_len, BELAY__CACHE_LEASE, len);
  if (key == NULL || *len <= LOCK_KEY_MAX)
    return key;
  belay__free(belay_of(flight), key, *len);
  XXH128_hash_t hash = XXH3_128bits(flight->key, flight->key_len);
  char text[33];
  snprintf(text, sizeof text, "%016llx%016llx", (unsigned long long)hash.high64,
           (unsigned long long)hash.low64);
  return belay__cache_key(cache, text, 32, BELAY__CACHE_LEASE, len);
}

static void on_lock_closed(belay_lock_t *lock, void *data) {
  belay__flight_t *flight = data;
  (void)lock;
  flight->lock = NULL;
  flight->held = false;
  if (belay__flight_is_over(flight) && !flight->asking)
    belay__flight_free(flight);
}

static int new_lock(belay__flight_t *flight) {
  belay_client_t *client = flight->cache->handle.client;
  belay_lock_options_t o;
  belay_lock_options_init(&o);
  char *key = new_lease_key(flight, &o.key_len);
  if (key == NULL)
    return BELAY_ENOMEM;
  o.key = key;
  o.ttl_ms = flight->cache->options.lease_ms;
  o.watchdog = BELAY_WATCHDOG_ON;
  o.wakeup = BELAY_WAKE_POLL; /* what is stored wakes whoever waits */
  o.max_handovers = 0;
  o.repeat_release = true; /* else a failover that loses it keeps the key unloaded for lease_ms */
  o.on_lost = on_lost;
  o.data = flight;
  int error = belay_lock_new(client, flight->key, flight->key_len, &o, &flight->lock);
  belay__free(client->belay, key, o.key_len);
  if (error == 0)
    belay_lock_on_closed(flight->lock, on_lock_closed);
  return error;
}

int belay__flight_ask_lease(belay__flight_t *flight) {
  int error = flight->lock == NULL ? new_lock(flight) : 0;
  return error != 0 ? error : belay_lock_try(flight->lock, on_lease);
}

/* It may be closing already, since its client is. */
bool belay__flight_end_lease(belay__flight_t *flight) {
  if (flight->lock == NULL)
    return false;
  (void)belay_lock_close(flight->lock, on_lock_closed);
  return true;
}

/* ---- requests of the flight's own ---------------------------------------------------------------------- */

/* What a reply said, in the request's values. */
enum { SAID };

/* Begins one, sends its calls, and forgets it if that fails. */
static int ask(belay__flight_t *flight, const belay__request_ops_t *ops, belay__call_t **calls,
               size_t n) {
  belay__handle_t *handle = &flight->cache->handle;
  belay__pending_t *pending;
  int error = belay__handle_begin(handle, &flight->request, ops, NULL, &pending);
  if (error != 0)
    return asked(flight, error);
  pending->fail_fast = belay__cache_fails_fast(flight->cache);
  error = belay__request_send_all(pending, calls, n);
  if (error != 0)
    belay__request_forget(pending);
  return asked(flight, error);
}

static belay__flight_t *flight_of_pending(belay__pending_t *pending) {
  return flight_of(belay__request_of(pending));
}

static int read_said(belay__pending_t *pending, const belay__call_t *call,
                     const belay__reply_t *reply) {
  (void)call;
  return belay__reply_integer(reply, 0, 1, &pending->values[SAID]) ? 0 : BELAY_EPROTO;
}

/* ---- a look -------------------------------------------------------------------------------------------- */

static int read_look(belay__pending_t *pending, const belay__call_t *call,
                     const belay__reply_t *reply) {
  belay__flight_t *flight = flight_of_pending(pending);
  return belay__look_step_read(flight->cache, &flight->look, pending, call, reply);
}

static void tell_look(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  belay__flight_t *flight = flight_of(request);
  (void)cb;
  if (is_back(flight))
    belay__flight_step(flight, answer->status == 0 ? BELAY__FLIGHT_SEEN : BELAY__FLIGHT_ERROR,
                       answer->status);
}

static const belay__request_ops_t look_ops = {
    .read = read_look, .tell = tell_look, .idempotent = true};

int belay__flight_ask_look(belay__flight_t *flight) {
  belay__pending_t *pending;
  belay__look_drop(flight->cache, &flight->look);
  int error =
      belay__handle_begin(&flight->cache->handle, &flight->request, &look_ops, NULL, &pending);
  if (error == 0) {
    error = belay__look_send(flight->cache, pending, &flight->look, BELAY__LOOK_AT_PRIMARY,
                             belay__now(belay_of(flight)), flight->key, flight->key_len);
    if (error != 0)
      belay__request_forget(pending);
  }
  return asked(flight, error);
}

/* ---- the generation, and those of the tags ------------------------------------------------------------- */

static int read_capture(belay__flight_t *flight, size_t i, const belay__call_t *call,
                        const belay__reply_t *reply) {
  if (reply->type != BELAY__REPLY_STRING)
    return BELAY_EPROTO;
  if (reply->len != BELAY__RECORD_ID)
    return belay__handle_mismatch(call, "it holds no generation of a tag");
  memcpy(flight->tags[i], reply->str, BELAY__RECORD_ID);
  flight->look.tags ^= belay__look_fold(i, reply->str);
  return 0;
}

static int read_begin(belay__pending_t *pending, const belay__call_t *call,
                      const belay__reply_t *reply) {
  belay__flight_t *flight = flight_of_pending(pending);
  if (pending->index > 0)
    return read_capture(flight, pending->index - 1, call, reply);
  if (reply->type == BELAY__REPLY_STRING)
    return belay__look_again(flight->cache, &flight->look, reply->str, reply->len);
  return belay__reply_integer(reply, 1, 1, &pending->values[SAID]) ? 0 : BELAY_EPROTO;
}

static void tell_begin(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  belay__flight_t *flight = flight_of(request);
  (void)cb;
  if (is_back(flight))
    belay__flight_step(flight,
                       answer->status != 0    ? BELAY__FLIGHT_ERROR
                       : answer->values[SAID] ? BELAY__FLIGHT_YES
                                              : BELAY__FLIGHT_SEEN,
                       answer->status);
}

/* Not sent again: see cache_begin.lua. */
static const belay__request_ops_t begin_ops = {.read = read_begin, .tell = tell_begin};

static belay__call_t *new_begin(belay__flight_t *flight) {
  belay_cache_t *cache = flight->cache;
  if (belay__cache_generation(cache, flight->generation) != 0)
    return NULL;
  belay__call_t *call =
      belay__cache_script(cache, &belay__script_cache_begin, flight->key, flight->key_len, 3);
  if (call == NULL)
    return NULL;
  belay__call_arg(call, (const char *)flight->seen.id, flight->seen.len);
  belay__call_arg(call, (const char *)flight->generation, BELAY__RECORD_ID);
  belay__call_arg_int(call, belay__cache_generation_ms(cache));
  return call;
}

int belay__flight_ask_begin(belay__flight_t *flight) {
  belay_cache_t *cache = flight->cache;
  belay_bytes_t tags[BELAY_CACHE_TAGS_MAX];
  belay__call_t *calls[1 + BELAY_CACHE_TAGS_MAX];
  size_t tags_len = belay__cache_tags(cache, flight->key, flight->key_len, tags), n = 0;
  while (n < 1 + tags_len) {
    calls[n] =
        n == 0 ? new_begin(flight) : belay__cache_capture(cache, &tags[n - 1], BELAY_DEFAULT);
    if (calls[n] == NULL)
      break;
    n++;
  }
  if (n < 1 + tags_len) {
    belay__calls_discard(calls, n);
    return BELAY_ENOMEM;
  }
  flight->tags_len = (uint8_t)tags_len;
  belay__look_drop(cache, &flight->look);
  flight->look = (belay__look_t){.asked = belay__now(belay_of(flight)),
                                 .tags_len = (uint8_t)tags_len,
                                 .freshness = BELAY__GONE};
  belay__local_stamp(&cache->local, flight->key, flight->key_len, tags, tags_len,
                     &flight->look.stamp);
  return ask(flight, &begin_ops, calls, n);
}

/* ---- what was loaded ----------------------------------------------------------------------------------- */

static void tell_fill(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  belay__flight_t *flight = flight_of(request);
  bool stored = answer->status == 0 && answer->values[SAID];
  (void)cb;
  if (!is_back(flight))
    return;
  flight->cache->stats.refused_fills += answer->status == 0 && !stored;
  flight->cache->stats.bytes_out += stored ? flight->written : 0;
  belay__flight_step(flight,
                     stored                ? BELAY__FLIGHT_YES
                     : answer->status == 0 ? BELAY__FLIGHT_NO
                                           : BELAY__FLIGHT_ERROR,
                     answer->status);
}

static const belay__request_ops_t fill_ops = {
    .read = read_said, .tell = tell_fill, .idempotent = true};

/* Adds a record, or '' where it is not to be kept, and its ttl. */
static int put_record(belay__flight_t *flight, belay__call_t *call, belay__record_t *record,
                      int64_t ttl_ms) {
  belay_t *belay = belay_of(flight);
  char *bytes;
  size_t len, size;
  flight->written = 0;
  if (ttl_ms == 0) {
    belay__call_arg(call, "", 0);
    belay__call_arg_int(call, 1);
    return 0;
  }
  int error = belay__record_write(belay, record, flight->cache->options.compress_bytes, &bytes,
                                  &len, &size);
  if (error != 0)
    return error;
  belay__call_arg(call, bytes, len);
  belay__call_arg_int(call, ttl_ms);
  belay__free(belay, bytes, size);
  flight->written = len;
  return 0;
}

int belay__flight_ask_fill(belay__flight_t *flight) {
  belay_cache_t *cache = flight->cache;
  belay__record_t *record = flight->loaded;
  belay__call_t *call =
      belay__cache_script(cache, &belay__script_cache_fill, flight->key, flight->key_len, 4);
  if (call == NULL)
    return BELAY_ENOMEM;
  int64_t ttl_ms = belay__cache_date(cache, record, BELAY_DEFAULT);
  if (flight->tags_len == 0) { /* else it is as good as its tags were when they were captured */
    flight->look.asked = belay__now(belay_of(flight));
    belay__local_restamp(&cache->local, &flight->look.stamp);
  }
  belay__call_arg(call, (const char *)flight->generation, BELAY__RECORD_ID);
  int error = put_record(flight, call, record, ttl_ms);
  if (error != 0) {
    belay__calls_discard(&call, 1);
    return error;
  }
  belay__publish_arg(call, cache->options.lock);
  return ask(flight, &fill_ops, &call, 1);
}

/* ---- that it failed ------------------------------------------------------------------------------------ */

static void tell_fail(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  belay__flight_t *flight = flight_of(request);
  (void)cb;
  if (is_back(flight))
    belay__flight_step(flight, BELAY__FLIGHT_YES, answer->status);
}

static const belay__request_ops_t fail_ops = {
    .read = read_said, .tell = tell_fail, .idempotent = true};

/* The record that says so, and its ttl; of error_ms 0 neither. */
static int put_failure(belay__flight_t *flight, belay__call_t *call) {
  belay_cache_t *cache = flight->cache;
  belay_t *belay = belay_of(flight);
  belay__record_t *record = belay__record_new(belay, BELAY__RECORD_ERROR, 0, flight->tags_len);
  if (record == NULL)
    return BELAY_ENOMEM;
  record->error = flight->error;
  memcpy(record->id, flight->generation, BELAY__RECORD_ID);
  memcpy(belay__record_tag(record, 0), flight->tags, flight->tags_len * BELAY__RECORD_ID);
  int error = put_record(flight, call, record, belay__cache_date(cache, record, BELAY_DEFAULT));
  char retry[8];
  belay__record_put_ms(retry, record->fresh_ms);
  bool useful = flight->refresh || flight->kept != NULL; /* what is there */
  belay__call_arg(call, retry, useful && cache->options.error_ms > 0 ? sizeof retry : 0);
  belay__record_drop(belay, record);
  return error;
}

int belay__flight_ask_fail(belay__flight_t *flight) {
  belay_cache_t *cache = flight->cache;
  belay__call_t *call =
      belay__cache_script(cache, &belay__script_cache_fail, flight->key, flight->key_len, 5);
  if (call == NULL)
    return BELAY_ENOMEM;
  belay__call_arg(call, (const char *)flight->generation, BELAY__RECORD_ID);
  int error = put_failure(flight, call);
  if (error != 0) {
    belay__calls_discard(&call, 1);
    return error;
  }
  belay__publish_arg(call, cache->options.lock);
  return ask(flight, &fail_ops, &call, 1);
}

/* ---- what others store --------------------------------------------------------------------------------- */

static void hear(belay__ear_t *ear, belay__heard_t what, const char *data, size_t len, int status) {
  belay__flight_t *flight = BELAY__CONTAINER(ear, belay__flight_t, ear);
  (void)data, (void)len, (void)status;
  if (what == BELAY__HEARD_GAP)
    return;
  flight->woken = true;
  if (belay__flight_is_waiting(flight))
    belay__flight_step(flight, BELAY__FLIGHT_WAKE, 0);
}

void belay__flight_listen(belay__flight_t *flight) {
  size_t len;
  if (flight->ear.channel != NULL)
    return;
  char *name =
      belay__cache_key(flight->cache, flight->key, flight->key_len, "}" BELAY__CACHE_FILLED, &len);
  if (name == NULL)
    return; /* it polls */
  flight->ear.hear = hear;
  (void)belay__listen(flight->cache->handle.client, name, len, &flight->ear);
  flight->woken |= belay__ear_is_up(&flight->ear); /* and something may have been stored by then */
  belay__free(belay_of(flight), name, len);
}
