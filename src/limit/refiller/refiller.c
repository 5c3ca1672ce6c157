/* The refiller: a contender for a place, which fills buckets while it holds the place.
 *
 *    RESTING --time; at once if new or elected before--> WAITING --granted--> ELECTED
 *      ^ ^                                                  |                    |
 *      | +--the acquire failed------------------------------+                    |
 *      +--------------------------------lost-------------------------------------+
 *
 *    any --close--> CLOSING: the place is given back, requests in flight are canceled
 *                     |--all of that is done; the task, repeated until the table is freed
 *                     v
 *                   close callback, freed
 *
 * A place is a permit of a semaphore, with automatic renewal. The lease is renewed after a third of
 * its ttl. If less than half of the ttl is left, the holder has missed a renewal and counts as
 * SUSPECT. It keeps the place until the end of the ttl. Then the place is lost, and the lock
 * reports the loss. The lock's clock, not `state`, decides whether the refiller may fill. */
#include "limit/refiller/refiller.h"

#include <stdio.h>
#include <string.h>

#include "belay/semaphore.h"
#include "core/client/ranges.h"
#include "core/loop/backoff.h"

#define NAME_MAX_LEN ((size_t)128)
#define PERIODS_IDLE 2   /* the bucket's idle_ms is at least this number of periods */
#define PERIODS_INDEX 10 /* the bucket's index_ms is at least this number of periods */

enum {
  RESTING, /* new, or an acquire failed: the timer starts the next one */
  WAITING, /* the lock's acquire is pending */
  ELECTED, /* the place is held */
  CLOSING  /* closed; remaining work ends */
};

bool belay__refiller_is_elected(const belay_refiller_t *refiller) {
  return refiller->state == ELECTED;
}

bool belay__refiller_fills(const belay_refiller_t *refiller) {
  return refiller->state == ELECTED && belay_lock_remaining_us(refiller->lock) > 0;
}

static int check_refiller(const belay_refiller_t *refiller) {
  if (refiller == NULL)
    return BELAY_EINVAL;
  int error = belay__handle_check(&refiller->bucket->handle);
  return error == 0 && refiller->state == CLOSING ? BELAY_ECLOSING : error;
}

int belay__refiller_check_key(const belay_refiller_t *refiller, belay_bytes_t key) {
  int error = check_refiller(refiller);
  return error != 0 ? error
                    : belay__check_bytes(belay__refiller_belay(refiller), "key", key, 1,
                                         BELAY_BUCKET_KEY_MAX);
}

/* ---- the election ---- */

static void on_acquired(belay_lock_t *lock, int status);

/* Acquire again about lease_ms after a failed acquire. */
static void rest(belay_refiller_t *refiller) {
  belay_t *belay = belay__refiller_belay(refiller);
  uint64_t rest_ns = belay__period(belay, (uint64_t)refiller->lease_ms * BELAY__MS);
  refiller->state = RESTING;
  belay__timer_set(belay, BELAY__RANK_OTHER, &refiller->timer, belay__now(belay) + rest_ns);
}

static void acquire_place(belay_refiller_t *refiller) {
  if (belay_lock_acquire(refiller->lock, BELAY_FOREVER, on_acquired) == 0)
    refiller->state = WAITING;
  else
    rest(refiller);
}

static void stop_timer(belay_refiller_t *refiller) {
  belay__timer_stop(belay__refiller_belay(refiller), BELAY__RANK_OTHER, &refiller->timer);
}

static void on_acquired(belay_lock_t *lock, int status) {
  belay_refiller_t *refiller = belay_lock_data(lock);
  if (refiller == NULL || refiller->state == CLOSING)
    return;
  if (status != 0) {
    rest(refiller);
    return;
  }
  belay_t *belay = belay__refiller_belay(refiller);
  refiller->state = ELECTED;
  refiller->stats.elections++;
  refiller->next_round = refiller->on_round == NULL ? BELAY__NEVER : belay__now(belay);
  belay__defer(belay, &refiller->task);
  if (refiller->on_change != NULL)
    refiller->on_change(refiller, BELAY_REFILLER_ELECTED);
}

static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  belay_refiller_t *refiller = belay_lock_data(lock);
  (void)reason;
  if (refiller == NULL || refiller->state == CLOSING)
    return;
  stop_timer(refiller);
  acquire_place(refiller);
  if (refiller->on_change != NULL)
    refiller->on_change(refiller, BELAY_REFILLER_WAITING);
}

static void on_timer(belay__timer_t *timer) {
  belay_refiller_t *refiller = BELAY__CONTAINER(timer, belay_refiller_t, timer);
  if (refiller->state == RESTING)
    acquire_place(refiller);
  else
    belay__defer(belay__refiller_belay(refiller), &refiller->task);
}

/* ---- the task; the end ---- */

static void finish(belay_refiller_t *refiller) {
  belay_t *belay = belay__refiller_belay(refiller);
  if (refiller->close_cb != NULL)
    refiller->close_cb(refiller, refiller->data);
  belay__handle_detach(&refiller->bucket->handle, &refiller->child);
  belay__free_loop(belay);
  belay__free(belay, refiller, refiller->size);
}

static bool has_ended(const belay_refiller_t *refiller) {
  return refiller->lock == NULL && refiller->in_flight_len == 0;
}

void belay__refiller_replied(belay_refiller_t *refiller) {
  if (refiller->state != CLOSING)
    belay__refill(refiller);
  else if (has_ended(refiller))
    belay__defer(belay__refiller_belay(refiller), &refiller->task);
}

static void on_lock_closed(belay_lock_t *lock, void *data) {
  belay_refiller_t *refiller = data;
  (void)lock;
  refiller->lock = NULL;
  belay__refiller_replied(refiller);
}

static void on_task(belay__task_t *task) {
  belay_refiller_t *refiller = BELAY__CONTAINER(task, belay_refiller_t, task);
  belay_t *belay = belay__refiller_belay(refiller);
  if (refiller->state == CLOSING) {
    if (has_ended(refiller) && belay__refill_clear(refiller))
      finish(refiller);
    else if (has_ended(refiller))
      belay__defer(belay, &refiller->task);
    return;
  }
  if (belay__now(belay) >= refiller->next_round && belay__refiller_fills(refiller)) {
    refiller->next_round = belay__now(belay) + refiller->period;
    refiller->on_round(refiller);
  }
  if (refiller->state != CLOSING)
    belay__refill(refiller);
}

/* Start a close. If the client closes too, belay_lock_close() fails and on_lock_closed() does not
 * run. So this function starts the task itself. */
static void start_close(belay_refiller_t *refiller) {
  stop_timer(refiller);
  refiller->state = CLOSING;
  belay__refill_cancel(refiller);
  if (belay_lock_close(refiller->lock, on_lock_closed) != 0) {
    belay_lock_set_data(refiller->lock, NULL);
    refiller->lock = NULL;
  }
  belay__defer(belay__refiller_belay(refiller), &refiller->task);
}

static void on_close(belay__child_t *child) {
  belay_refiller_t *refiller = BELAY__CONTAINER(child, belay_refiller_t, child);
  if (refiller->state != CLOSING)
    start_close(refiller);
}

int belay_refiller_close(belay_refiller_t *refiller, belay_refiller_close_cb cb) {
  int error = check_refiller(refiller);
  if (error != 0)
    return error;
  refiller->close_cb = cb;
  start_close(refiller);
  return 0;
}

/* ---- options ---- */

void belay_refiller_options_init(belay_refiller_options_t *options) {
  if (options == NULL)
    return;
  *options = (belay_refiller_options_t){
      .refillers = 3,
      .lease_ms = 10000,
      .period_ms = 1000,
      .tokens = 1,
  };
}

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_refiller_options_t, refillers, 1, 1000),
    BELAY__RANGE(belay_refiller_options_t, lease_ms, 1000, 600000),
    BELAY__RANGE(belay_refiller_options_t, period_ms, 10, 86400000),
    {.name = NULL},
};

/* Check the options of a refiller of this bucket. The keys of a bucket must outlive the time
 * between two fillings. Otherwise they expire, and the bucket is always full, or always empty. */
static int check_options(const belay_bucket_t *bucket, const belay_refiller_options_t *o) {
  belay_t *belay = bucket->handle.client->belay;
  int error = belay__check_bytes(belay, "name", o->name, 1, NAME_MAX_LEN);
  if (error == 0)
    error = belay__check_ranges(belay, o, ranges);
  if (error == 0)
    error = belay__check_range(belay, "tokens", o->tokens, 1, bucket->capacity);
  if (error == 0 && o->period_ms > bucket->idle_ms / PERIODS_IDLE)
    error = belay__invalid(belay, "period_ms: more than half of the bucket's idle_ms");
  if (error == 0 && o->period_ms > bucket->index_ms / PERIODS_INDEX)
    error = belay__invalid(belay, "period_ms: more than a tenth of the bucket's index_ms");
  return error;
}

/* ---- creation ---- */

/* Write the name of the semaphore to `out`, which has `size` bytes; NULL: write nothing. Returns
 * the length of the name. */
static size_t put_election(char *out, size_t size, const belay_bucket_t *bucket,
                           const belay_refiller_options_t *o) {
  const belay__handle_t *handle = &bucket->handle;
  /* the bucket's name as it stands in keys: between NAMESPACE::bucket:: and ::{ */
  size_t before = handle->client->prefix_len + sizeof "::bucket" - 1;
  size_t len = handle->prefix_len - before - (sizeof "::{" - 1);
  const char *name = handle->prefix + before;
  if (len > 0) {
    name += 2;
    len -= 2;
  }
  size_t head = (size_t)snprintf(out, size, "refill/%zu/%.*s/", len, (int)len, name);
  if (out != NULL)
    memcpy(out + head, o->name.data, o->name.len);
  return head + o->name.len;
}

static int new_lock(belay_refiller_t *refiller, const belay_refiller_options_t *o) {
  belay_lock_options_t lock;
  belay_lock_options_init(&lock);
  lock.ttl_ms = o->lease_ms;
  lock.watchdog = BELAY_WATCHDOG_ON;
  /* rare retries suffice: a release is notified, and other vacancies arise at the end of a ttl */
  lock.retry_min_ms = o->lease_ms / 4;
  lock.retry_max_ms = o->lease_ms / 2;
  lock.label = o->label;
  lock.on_lost = on_lost;
  lock.data = refiller;
  return belay_semaphore_new(&refiller->bucket->handle.client, 1, belay_refiller_election(refiller),
                             &(belay_semaphore_size_t){.limit = o->refillers, .permits = 1}, &lock,
                             &refiller->lock);
}

static belay_refiller_t *new_refiller(belay_bucket_t *bucket, const belay_refiller_options_t *o) {
  size_t election_len = put_election(NULL, 0, bucket, o);
  size_t size = sizeof(belay_refiller_t) + election_len + 1;
  belay_refiller_t *refiller = belay__alloc(bucket->handle.client->belay, size);
  if (refiller == NULL)
    return NULL;
  *refiller = (belay_refiller_t){
      .child = {.close = on_close},
      .bucket = bucket,
      .timer = {.fire = on_timer},
      .on_change = o->on_change,
      .on_round = o->on_round,
      .data = o->data,
      .period = o->period_ms * BELAY__MS,
      .lease_ms = o->lease_ms,
      .tokens = o->tokens,
      .size = size,
      .election_len = election_len,
  };
  put_election(refiller->election, election_len + 1, bucket, o);
  belay__task_init(&refiller->task, on_task);
  belay__list_init(&refiller->due);
  belay__list_init(&refiller->in_flight);
  return refiller;
}

int belay_refiller_new(belay_bucket_t *bucket, const belay_refiller_options_t *options,
                       belay_refiller_t **out) {
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  int error = belay__handle_check((const belay__handle_t *)bucket);
  belay_refiller_options_t o;
  belay_refiller_options_init(&o);
  if (options != NULL)
    o = *options;
  if (error == 0)
    error = check_options(bucket, &o);
  if (error != 0)
    return error;
  belay_refiller_t *refiller = new_refiller(bucket, &o);
  if (refiller == NULL)
    return BELAY_ENOMEM;
  belay_t *belay = belay__refiller_belay(refiller);
  error = new_lock(refiller, &o);
  if (error != 0) {
    belay__free(belay, refiller, refiller->size);
    return error;
  }
  belay__handle_attach(&bucket->handle, &refiller->child);
  belay__hold_loop(belay);
  acquire_place(refiller);
  *out = refiller;
  return 0;
}

/* ---- state ---- */

belay_refiller_state_t belay_refiller_state(const belay_refiller_t *refiller) {
  if (refiller == NULL || !belay__refiller_fills(refiller))
    return BELAY_REFILLER_WAITING;
  return belay_lock_remaining_us(refiller->lock) < refiller->lease_ms * 1000 / 2
             ? BELAY_REFILLER_SUSPECT
             : BELAY_REFILLER_ELECTED;
}

belay_bytes_t belay_refiller_election(const belay_refiller_t *refiller) {
  return refiller == NULL ? belay_bytes(NULL, 0)
                          : belay_bytes(refiller->election, refiller->election_len);
}

void belay_refiller_stats(const belay_refiller_t *refiller, belay_refiller_stats_t *stats) {
  *stats = (belay_refiller_stats_t){0};
  if (refiller == NULL)
    return;
  *stats = refiller->stats;
  stats->keys = refiller->keys.count;
}

void *belay_refiller_data(const belay_refiller_t *refiller) {
  return refiller == NULL ? NULL : refiller->data;
}
