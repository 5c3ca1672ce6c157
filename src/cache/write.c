/* Writes: put, touch, invalidate. Each is a sequence of steps:
 *
 *     put --> PREPARING --begun--> STORING --stored----------------> PUBLISHING --> applied
 *                   |                 +--refused--> DELETING ------> PUBLISHING --> not applied
 *                   +--reply lost----------------------^
 *     touch --> PREPARING --tags last long enough, time known--> STORING --> end
 *          +--no tags, and the time is known------------------------^
 *     invalidate --> DELETING --> PUBLISHING --> end
 *
 * A step whose reply was lost is sent again until the deadline. Its calls are built anew, because a
 * generation of a tag must not be sent twice. PREPARING of a put is the exception: a second begin
 * could run after an invalidation that followed the first, and the value of the put is older than
 * that invalidation. So a late command never stores a value after an invalidation.
 *
 * PUBLISHING informs the local tables of other processes; options.quiet skips it. The result of a
 * write does not depend on the outcome of PUBLISHING. */
#include <string.h>

#include "cache/key.h"
#include "core/call/publish.h"
#include "core/key/bytes.h"
#include "scripts.gen.h"

typedef enum kind { PUT, TOUCH, INVALIDATION, TAG_INVALIDATION } kind_t;

typedef enum state {
  /* Captures the tags; reads the time. A put also registers a generation, so that running loads
   * cannot store. */
  PREPARING,
  STORING,    /* stores the record; a touch extends it */
  DELETING,   /* deletes the record: for an invalidation, or for a put that did not store */
  PUBLISHING, /* the write is done; informs the local tables of other processes */
  OVER
} state_t;

/* State of the request, in its room. */
typedef struct write {
  belay__record_t *record; /* the record that a put stores; otherwise NULL */
  int64_t ttl_ms;
  uint64_t hash; /* hash of the key or tag; the message to the local tables contains it */
  size_t bytes;  /* size of the record as stored, in bytes */
  uint8_t kind;  /* kind_t */
  uint8_t state; /* state_t */
  uint8_t tags_len;
  bool applied;    /* put, touch: STORING had an effect; invalidations: always true */
  bool reply_lost; /* the reply to an earlier attempt of this step was lost */
  unsigned char generation[BELAY__RECORD_ID];
  unsigned char tags[BELAY_CACHE_TAGS_MAX][BELAY__RECORD_ID]; /* generations of the tags */
  belay_bytes_t key;
  char key_bytes[];
} write_t;

/* ---- calls ---- */

static belay__call_t *begin_call(const belay_cache_t *cache, write_t *write) {
  static const char any[] = "whatever is there";
  return belay__cache_begin(cache, write->key, any, sizeof any - 1, write->generation);
}

static belay__call_t *fill_call(belay_cache_t *cache, write_t *write) {
  belay__record_t *record = write->record;
  int64_t keep_ms = belay__cache_date(cache, record, write->ttl_ms);
  memcpy(record->id, write->generation, BELAY__RECORD_ID);
  memcpy(belay__record_tag(record, 0), write->tags, record->tags_len * BELAY__RECORD_ID);
  belay__call_t *call = belay__cache_script(cache, &belay__script_cache_fill, write->key, 4);
  if (call == NULL)
    return NULL;
  if (belay__cache_record_args(cache, call, write->generation, record, keep_ms, &write->bytes) !=
      0) {
    belay__calls_discard(&call, 1);
    return NULL;
  }
  belay__publish_arg(call, true);
  return call;
}

static belay__call_t *delete_call(const belay_cache_t *cache, const write_t *write) {
  static const char *const tails[] = {"}", BELAY__CACHE_GENERATION};
  static const char *const tag_tails[] = {BELAY__CACHE_TAG};
  bool is_tag = write->kind == TAG_INVALIDATION;
  size_t n = is_tag ? 1 : 2;
  belay__cache_note_write(cache);
  belay__call_t *call = belay__cache_command(cache, "DEL", 1 + n);
  for (size_t i = 0; i < n; i++)
    belay__handle_arg(&cache->handle, call, write->key.data, write->key.len,
                      is_tag ? tag_tails[i] : tails[i]);
  return call;
}

static belay__call_t *touch_call(belay_cache_t *cache, const write_t *write) {
  belay__record_t dates = {.kind = BELAY__RECORD_VALUE};
  char fresh[8];
  int64_t keep_ms = belay__cache_date(cache, &dates, write->ttl_ms);
  belay__record_put_ms(fresh, dates.fresh_ms);
  belay__cache_note_write(cache);
  belay__call_t *call = belay__call_new(cache->handle.client, BELAY__CLASS_BULK);
  belay__call_script(call, &belay__script_cache_touch, 1, 3);
  belay__handle_arg(&cache->handle, call, write->key.data, write->key.len, "}");
  belay__call_arg(call, fresh, sizeof fresh);
  belay__call_arg_int(call, keep_ms);
  belay__call_arg(call, (const char *)write->tags, write->tags_len * BELAY__RECORD_ID);
  return call;
}

static belay__call_t *publish_call(const belay_cache_t *cache, const write_t *write) {
  char message[8];
  size_t len = 0;
  char *channel = belay__cache_key(cache, belay_bytes("", 0), BELAY__CACHE_DROPPED, &len);
  belay__call_t *call =
      channel == NULL ? NULL : belay__call_new(cache->handle.client, BELAY__CLASS_BULK);
  if (call != NULL) {
    belay__put_le(message, write->hash, sizeof message);
    belay__publish_build(call, channel, len, message, sizeof message);
    call->route = cache->handle.route;
  }
  belay__free(cache->handle.client->belay, channel, len);
  return call;
}

/* ---- steps ---- */

/* Builds and sends the calls of PREPARING: the begin of a put, the tags, and TIME if gets_time is
 * true. */
static int send_first(belay_cache_t *cache, belay__operation_t *operation, write_t *write,
                      bool gets_time) {
  belay__call_t *calls[2 + BELAY_CACHE_TAGS_MAX];
  belay_bytes_t tags[BELAY_CACHE_TAGS_MAX];
  size_t n = 0, tags_len = belay__cache_tags(cache, write->key, tags);
  /* A tags option that is not deterministic may now return fewer tags. The record then lacks
   * generations of tags, so no lookup serves it. */
  if (tags_len < write->tags_len)
    write->tags_len = (uint8_t)tags_len;
  if (write->kind == PUT)
    calls[n++] = begin_call(cache, write);
  for (size_t i = 0; i < write->tags_len; i++)
    calls[n++] = belay__cache_capture(cache, tags[i], write->ttl_ms);
  if (gets_time)
    calls[n++] = belay__servertime_call(&cache->time, &cache->handle);
  return belay__request_send_all(operation, calls, n);
}

/* Limits PUBLISHING to local_ttl_ms: after that time no other process serves the old value as fresh
 * from its table. */
static void limit_deadline(const belay_cache_t *cache, belay__operation_t *operation) {
  uint64_t until = belay__after_ms(cache->handle.client->belay, cache->options.local_ttl_ms);
  if (until < operation->deadline)
    operation->deadline = until;
}

/* All transitions. */
static state_t next_state(belay_cache_t *cache, const write_t *write) {
  state_t last = cache->options.quiet ? OVER : PUBLISHING;
  switch ((state_t)write->state) {
  case PREPARING: /* after a lost reply a put does not send its begin again */
    return write->kind == PUT && write->reply_lost ? DELETING : STORING;
  case STORING:
    return write->kind == TOUCH ? OVER : write->applied ? last : DELETING;
  case DELETING:
    return last;
  case PUBLISHING:
  case OVER:
    break;
  }
  return OVER;
}

/* Builds and sends the calls of the state; also called to repeat a step whose reply was lost. */
static int enter_state(belay__operation_t *operation) {
  belay_cache_t *cache = operation->context;
  write_t *write = operation->room;
  bool gets_time =
      write->state == PREPARING &&
      !belay__servertime_known(&cache->time, &cache->handle, belay__now(operation->client->belay));
  if (write->state == PREPARING && write->kind == TOUCH && write->tags_len == 0 && !gets_time)
    write->state = STORING;
  switch ((state_t)write->state) {
  case PREPARING:
    return send_first(cache, operation, write, gets_time);
  case STORING:
    return belay__request_send(operation, write->kind == PUT ? fill_call(cache, write)
                                                             : touch_call(cache, write));
  case DELETING:
    return belay__request_send(operation, delete_call(cache, write));
  case PUBLISHING:
    limit_deadline(cache, operation);
    return belay__request_send(operation, publish_call(cache, write));
  case OVER:
    break;
  }
  return 0;
}

/* Updates statistics and the local table after a step. */
static void count_step(belay_cache_t *cache, const write_t *write) {
  bool fills = write->state == STORING && write->kind == PUT;
  cache->stats.fills += fills && write->applied;
  cache->stats.bytes_out += fills && write->applied ? write->bytes : 0;
  cache->stats.refused_fills += fills && !write->applied;
  if (write->state == STORING || write->state == DELETING)
    belay__local_invalidate(&cache->local, write->hash);
}

static int next_step(belay__operation_t *operation) {
  belay_cache_t *cache = operation->context;
  write_t *write = operation->room;
  count_step(cache, write);
  write->state = (uint8_t)next_state(cache, write);
  write->reply_lost = false;
  if (write->state == OVER)
    return 0;
  int error = enter_state(operation);
  return error != 0 ? error : BELAY__REQUEST_PARK;
}

static int recover_step(belay__operation_t *operation, int status) {
  write_t *write = operation->room;
  belay_client_t *client = operation->client;
  if (status == BELAY_EUNKNOWN && !client->closing &&
      belay__now(client->belay) < operation->deadline) {
    write->reply_lost = true;
    if (write->state == PREPARING && write->kind == PUT)
      write->state = (uint8_t)next_state(operation->context, write);
    if (enter_state(operation) == 0)
      return BELAY__REQUEST_PARK;
  }
  return write->reply_lost ? BELAY_EUNKNOWN : status;
}

/* ---- replies ---- */

static int read_first(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  belay_cache_t *cache = operation->context;
  write_t *write = operation->room;
  size_t i = operation->index;
  int64_t begun;
  if (write->kind == PUT && i-- == 0)
    return belay__reply_integer(reply, 1, 1, &begun) ? 0 : BELAY_EPROTO;
  return i < write->tags_len ? belay__cache_read_tag(call, reply, write->tags[i])
                             : belay__servertime_read(&cache->time, call, reply);
}

static int read_reply(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  write_t *write = operation->room;
  int64_t n = 0, max = write->state == STORING ? 1 : write->state == DELETING ? 2 : INT64_MAX;
  if (write->state == PREPARING)
    return read_first(operation, call, reply);
  bool is_touch = write->state == STORING && write->kind == TOUCH;
  if (is_touch && belay__reply_integer(reply, -1, -1, &n))
    return belay__handle_mismatch(call, "it holds no cached value");
  if (!belay__reply_integer(reply, 0, max, &n))
    return BELAY_EPROTO;
  if (write->state == STORING)
    write->applied = n == 1;
  return 0;
}

/* Calls the callback of the write. The write has succeeded once PUBLISHING begins, even if
 * PUBLISHING fails. */
static void run_callback(belay_request_t *request, void (*cb)(void),
                         const belay__answer_t *answer) {
  write_t *write = answer->room;
  bool done = write->state == PUBLISHING || write->state == OVER, applied = write->applied;
  belay__record_release(answer->client->belay, write->record);
  int status = done ? 0 : answer->status;
  ((belay_cache_change_cb)cb)(request, status, status == 0 && applied);
}

static const belay__request_ops_t write_ops = {
    .read = read_reply, .next = next_step, .recover = recover_step, .notify = run_callback};

/* ---- operations ---- */

/* Creates the request without sending anything. */
static int begin_write(belay_cache_t *cache, belay_request_t *request, kind_t kind,
                       belay_bytes_t key, belay_cache_change_cb cb, belay__operation_t **out) {
  belay_bytes_t tags[BELAY_CACHE_TAGS_MAX];
  int error = belay__handle_begin_room(&cache->handle, request, &write_ops, BELAY__CB(cb),
                                       sizeof(write_t) + key.len, out);
  if (error != 0)
    return error;
  write_t *write = (*out)->room;
  write->kind = (uint8_t)kind;
  write->key = belay_bytes(memcpy(write->key_bytes, key.data, key.len), key.len);
  write->hash = belay__local_hash(key.data, key.len, kind == TAG_INVALIDATION);
  if (kind == PUT || kind == TOUCH) {
    write->tags_len = (uint8_t)belay__cache_tags(cache, write->key, tags);
  } else {
    write->state = DELETING;
    write->applied = true;
  }
  return 0;
}

static int start_write(belay_cache_t *cache, belay__operation_t *operation) {
  write_t *write = operation->room;
  if (write->kind != TOUCH)
    belay__local_invalidate(&cache->local, write->hash);
  int error = enter_state(operation);
  if (error != 0)
    belay__record_release(operation->client->belay, write->record);
  return belay__request_begun(operation, error);
}

static int check(const belay_cache_t *cache, const belay_request_t *request, belay_bytes_t key,
                 int64_t ttl_ms, belay_cache_change_cb cb) {
  int error = belay__handle_check_key((const belay__handle_t *)cache, request, key, cb != NULL);
  return error != 0 || ttl_ms == BELAY_DEFAULT
             ? error
             : belay__check_range(cache->handle.client->belay, "ttl_ms", ttl_ms, 1,
                                  BELAY__CACHE_LIFE_MAX_MS);
}

int belay_cache_put(belay_cache_t *cache, belay_request_t *request, belay_bytes_t key,
                    belay_bytes_t value, int64_t ttl_ms, belay_cache_change_cb cb) {
  belay__operation_t *operation;
  int error = check(cache, request, key, ttl_ms, cb);
  if (error == 0)
    error = belay__check_bytes(cache->handle.client->belay, "value", value, 0,
                               cache->options.max_value_bytes);
  if (error == 0)
    error = begin_write(cache, request, PUT, key, cb, &operation);
  if (error != 0)
    return error;
  write_t *write = operation->room;
  write->ttl_ms = ttl_ms;
  write->record =
      belay__record_new(operation->client->belay, BELAY__RECORD_VALUE, value.len, write->tags_len);
  if (write->record == NULL)
    return belay__request_begun(operation, BELAY_ENOMEM);
  if (value.len > 0)
    memcpy(write->record->bytes, value.data, value.len);
  return start_write(cache, operation);
}

int belay_cache_touch(belay_cache_t *cache, belay_request_t *request, belay_bytes_t key,
                      int64_t ttl_ms, belay_cache_change_cb cb) {
  belay__operation_t *operation;
  int error = check(cache, request, key, ttl_ms, cb);
  if (error == 0)
    error = begin_write(cache, request, TOUCH, key, cb, &operation);
  if (error != 0)
    return error;
  ((write_t *)operation->room)->ttl_ms = ttl_ms;
  return start_write(cache, operation);
}

int belay_cache_invalidate(belay_cache_t *cache, belay_request_t *request, belay_bytes_t key,
                           belay_cache_change_cb cb) {
  belay__operation_t *operation;
  int error = check(cache, request, key, BELAY_DEFAULT, cb);
  if (error == 0)
    error = begin_write(cache, request, INVALIDATION, key, cb, &operation);
  return error != 0 ? error : start_write(cache, operation);
}

int belay_cache_invalidate_tag(belay_cache_t *cache, belay_request_t *request, belay_bytes_t tag,
                               belay_cache_change_cb cb) {
  belay__operation_t *operation;
  int error = belay__handle_check_request((const belay__handle_t *)cache, request, cb != NULL);
  if (error == 0)
    error = belay__check_bytes(cache->handle.client->belay, "tag", tag, 1, BELAY_CACHE_TAG_MAX);
  if (error == 0)
    error = begin_write(cache, request, TAG_INVALIDATION, tag, cb, &operation);
  return error != 0 ? error : start_write(cache, operation);
}
