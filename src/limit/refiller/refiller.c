/* The refiller: a contender for a place, which fills buckets while it holds the place.
 *
 *    RESTING --time; at once if new or elected before--> WAITING --granted--> ELECTED
 *      ^ ^                                                  |                    |
 *      | +--refused, for a temporary reason-----------------+                    |
 *      +--------------------------------lost-------------------------------------+
 *
 *    any --close--> CLOSING: the place is given back, own requests are canceled
 *                     |--all of that is done; the task, repeated until the table is freed
 *                     v
 *                   close callback, freed
 *
 * A place is a permit of a semaphore, with automatic renewal. The lease is renewed after a third
 * of its ttl. With less than half of the ttl left, the holder has missed a renewal and is
 * SUSPECT to every observer. It keeps the place until the end of the ttl; then it is lost, which
 * the lock reports. The lock's clock, not the state, decides whether the refiller may fill. */
#include "limit/refiller/refiller.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "belay/semaphore.h"
#include "core/client/ranges.h"
#include "core/client/request.h"
#include "core/loop/backoff.h"

#define NAME_MAX_LEN ((size_t)128)
#define PERIOD_MAX_MS 86400000
#define PERIODS_IDLE 2   /* periods that a bucket's tokens outlast */
#define PERIODS_INDEX 10 /* periods that its index outlasts */

enum {
  RESTING, /* new; or the place was lost; or the acquire was refused */
  WAITING, /* the lock's acquire is pending */
  ELECTED, /* the place is held */
  CLOSING  /* closed; remaining work ends */
};

typedef enum event {
  EV_SEEK, /* time to acquire a place */
  EV_GRANTED,
  EV_REFUSED,
  EV_LOST,
  EV_CLOSE
} event_t;

static void step(belay_refiller_t *refiller, event_t event);

bool belay__refiller_fills(const belay_refiller_t *refiller) {
  return refiller->state == ELECTED && belay_lock_remaining_us(refiller->lock) > 0;
}

/* ---- what happens ---- */

static void on_acquired(belay_lock_t *lock, int status) {
  belay_refiller_t *refiller = belay_lock_data(lock);
  if (refiller == NULL || refiller->state == CLOSING)
    return;
  step(refiller, status == 0 ? EV_GRANTED : EV_REFUSED);
  if (status == 0 && refiller->on_change != NULL)
    refiller->on_change(refiller, BELAY_REFILLER_ELECTED);
}

static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  belay_refiller_t *refiller = belay_lock_data(lock);
  (void)reason;
  if (refiller == NULL || refiller->state == CLOSING)
    return;
  step(refiller, EV_LOST);
  if (refiller->on_change != NULL)
    refiller->on_change(refiller, BELAY_REFILLER_WAITING);
}

static void on_timer(belay__timer_t *timer) {
  belay_refiller_t *refiller = BELAY__CONTAINER(timer, belay_refiller_t, timer);
  if (refiller->state == RESTING)
    step(refiller, EV_SEEK);
  else
    belay__defer(belay__refiller_host(refiller), &refiller->task);
}

static void finish(belay_refiller_t *refiller) {
  belay_t *belay = belay__refiller_host(refiller);
  if (refiller->close_cb != NULL)
    refiller->close_cb(refiller, refiller->data);
  belay__refill_free_slots(refiller);
  belay__handle_detach((belay__handle_t *)refiller->bucket, &refiller->child);
  belay__free_loop(belay);
  belay__free(belay, refiller, refiller->size);
}

static bool is_through(const belay_refiller_t *refiller) {
  return refiller->lock == NULL && refiller->asked_len == 0;
}

void belay__refiller_answered(belay_refiller_t *refiller) {
  if (refiller->state != CLOSING)
    belay__refill(refiller);
  else if (is_through(refiller))
    belay__defer(belay__refiller_host(refiller), &refiller->task);
}

static void on_lock_closed(belay_lock_t *lock, void *data) {
  belay_refiller_t *refiller = data;
  (void)lock;
  refiller->lock = NULL;
  belay__refiller_answered(refiller);
}

static void on_task(belay__task_t *task) {
  belay_refiller_t *refiller = BELAY__CONTAINER(task, belay_refiller_t, task);
  belay_t *belay = belay__refiller_host(refiller);
  if (refiller->state == CLOSING) {
    if (is_through(refiller) && belay__refill_clear(refiller))
      finish(refiller);
    else if (is_through(refiller))
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

/* ---- the machine ---- */

/* Set the time of the next acquire, some time after a refusal. Returns the next state. */
static int rest(belay_refiller_t *refiller) {
  belay_t *belay = belay__refiller_host(refiller);
  belay__timer_set(belay, BELAY__RANK_OTHER, &refiller->timer,
                   belay__now(belay) +
                       belay__period(belay, (uint64_t)refiller->lease_ms * BELAY__MS));
  return RESTING;
}

static int seek(belay_refiller_t *refiller) {
  return belay_lock_acquire(refiller->lock, BELAY_FOREVER, on_acquired) == 0 ? WAITING
                                                                             : rest(refiller);
}

static int begin(belay_refiller_t *refiller) {
  refiller->stats.elections++;
  refiller->next_round =
      refiller->on_round == NULL ? BELAY__NEVER : belay__now(belay__refiller_host(refiller));
  belay__defer(belay__refiller_host(refiller), &refiller->task);
  return ELECTED;
}

static void leave_off(belay_refiller_t *refiller) {
  belay__timer_stop(belay__refiller_host(refiller), BELAY__RANK_OTHER, &refiller->timer);
}

/* If the client closes too, the lock does not report its end, and no further event follows. */
static int start_close(belay_refiller_t *refiller) {
  leave_off(refiller);
  belay__refill_cancel(refiller);
  belay__requests_cancel(&refiller->requests);
  if (belay_lock_close(refiller->lock, on_lock_closed) != 0) {
    belay_lock_set_data(refiller->lock, NULL);
    refiller->lock = NULL;
  }
  belay__defer(belay__refiller_host(refiller), &refiller->task);
  return CLOSING;
}

/* All transitions. */
static void step(belay_refiller_t *refiller, event_t event) {
  assert(refiller->state != CLOSING);
  switch (event) {
  case EV_LOST:
    leave_off(refiller);
    refiller->state = (uint8_t)seek(refiller);
    break;
  case EV_SEEK:
    refiller->state = (uint8_t)seek(refiller);
    break;
  case EV_GRANTED:
    refiller->state = (uint8_t)begin(refiller);
    break;
  case EV_REFUSED:
    refiller->state = (uint8_t)rest(refiller);
    break;
  case EV_CLOSE:
    refiller->state = (uint8_t)start_close(refiller);
    break;
  }
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

/* A bucket must outlive the time between two fillings. Otherwise it expires and is always full,
 * or always empty. */
static int check_period(const belay_bucket_t *bucket, int64_t ms) {
  belay_t *belay = belay__bucket_client(bucket)->belay;
  if (ms <= belay__bucket_idle_ms(bucket) / PERIODS_IDLE &&
      ms <= belay__bucket_index_ms(bucket) / PERIODS_INDEX)
    return 0;
  return belay__invalid(belay, ms > belay__bucket_idle_ms(bucket) / PERIODS_IDLE
                                   ? "period_ms: more than half of the bucket's idle_ms"
                                   : "period_ms: more than a tenth of the bucket's index_ms");
}

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_refiller_options_t, refillers, 1, 1000),
    BELAY__RANGE(belay_refiller_options_t, lease_ms, 1000, 600000),
    BELAY__RANGE(belay_refiller_options_t, period_ms, 10, PERIOD_MAX_MS),
    {.name = NULL},
};

static int check_options(const belay_bucket_t *bucket, const belay_refiller_options_t *o) {
  belay_t *belay = belay__bucket_client(bucket)->belay;
  int error = belay__check_bytes(belay, "name", o->name, 1, NAME_MAX_LEN);
  if (error == 0)
    error = belay__check_ranges(belay, o, ranges);
  if (error == 0)
    error = belay__check_range(belay, "tokens", o->tokens, 1, belay__bucket_capacity(bucket));
  return error != 0 ? error : check_period(bucket, o->period_ms);
}

/* ---- a new one ---- */

/* The bucket's name as it stands in keys, behind the family "bucket". */
static const char *bucket_name(const belay_bucket_t *bucket, size_t *len) {
  const char *prefix = belay__bucket_prefix(bucket, len);
  size_t before = belay__bucket_client(bucket)->prefix_len + sizeof "::bucket" - 1;
  size_t after = sizeof "::{" - 1;
  *len -= before + after;
  if (*len == 0)
    return "";
  *len -= 2;
  return prefix + before + 2;
}

/* Write the name of the semaphore, which has room for a terminating 0 too. out: NULL to measure. */
static size_t put_election(char *out, const belay_bucket_t *bucket,
                           const belay_refiller_options_t *o) {
  char head[32];
  size_t len, n = 0;
  const char *name = bucket_name(bucket, &len);
  size_t head_len = (size_t)snprintf(head, sizeof head, "refill/%zu/", len);
  const struct {
    const char *text;
    size_t len;
  } parts[] = {{head, head_len}, {name, len}, {"/", 1}, {o->name.data, o->name.len}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (out != NULL)
      memcpy(out + n, parts[i].text, parts[i].len);
    n += parts[i].len;
  }
  return n;
}

static int make_lock(belay_refiller_t *refiller, const belay_refiller_options_t *o) {
  belay_lock_options_t lock;
  belay_lock_options_init(&lock);
  lock.ttl_ms = o->lease_ms;
  lock.watchdog = BELAY_WATCHDOG_ON;
  lock.retry_min_ms =
      /* a place may be held for weeks: vacancies are notified, or end with the ttl */
      o->lease_ms / 4;
  lock.retry_max_ms = o->lease_ms / 2;
  lock.label = o->label;
  lock.on_lost = on_lost;
  lock.data = refiller;
  return belay_semaphore_new(
      &refiller->client, 1, belay_bytes(refiller->election, refiller->election_len),
      &(belay_semaphore_size_t){.limit = o->refillers, .permits = 1}, &lock, &refiller->lock);
}

static void child_close(belay__child_t *child) {
  belay_refiller_t *refiller = BELAY__CONTAINER(child, belay_refiller_t, child);
  if (refiller->state != CLOSING)
    step(refiller, EV_CLOSE);
}

static belay_refiller_t *new_refiller(belay_bucket_t *bucket, const belay_refiller_options_t *o) {
  belay_client_t *client = belay__bucket_client(bucket);
  size_t election_len = put_election(NULL, bucket, o);
  size_t size = sizeof(belay_refiller_t) + election_len;
  belay_refiller_t *refiller = belay__alloc(client->belay, size);
  if (refiller == NULL)
    return NULL;
  *refiller = (belay_refiller_t){
      .child = {.close = child_close},
      .bucket = bucket,
      .client = client,
      .timer = {.fire = on_timer},
      .on_change = o->on_change,
      .on_round = o->on_round,
      .data = o->data,
      .period = o->period_ms * BELAY__MS,
      .lease_ms = o->lease_ms,
      .tokens = o->tokens,
      .state = RESTING,
      .size = size,
      .election_len = election_len,
  };
  put_election(refiller->election, bucket, o);
  belay__task_init(&refiller->task, on_task);
  belay__refill_table_init(&refiller->table);
  belay__list_init(&refiller->slots);
  belay__list_init(&refiller->asked);
  belay__list_init(&refiller->requests);
  return refiller;
}

int belay_refiller_new(belay_bucket_t *bucket, const belay_refiller_options_t *options,
                       belay_refiller_t **out) {
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  int error = belay__bucket_check(bucket);
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
  belay_t *belay = belay__refiller_host(refiller);
  error = make_lock(refiller, &o);
  if (error != 0) {
    belay__free(belay, refiller, refiller->size);
    return error;
  }
  belay__handle_attach((belay__handle_t *)bucket, &refiller->child);
  belay__hold_loop(belay);
  step(refiller, EV_SEEK);
  *out = refiller;
  return 0;
}

/* ---- operations ---- */

int belay__refiller_check(const belay_refiller_t *refiller) {
  int error = refiller == NULL ? BELAY_EINVAL : belay__bucket_check(refiller->bucket);
  return error == 0 && refiller->state == CLOSING ? BELAY_ECLOSING : error;
}

static int check_key(const belay_refiller_t *refiller, const char *key, size_t key_len) {
  int error = belay__refiller_check(refiller);
  return error != 0 ? error
                    : belay__check_bytes(refiller->client->belay, "key", belay_bytes(key, key_len),
                                         1, BELAY_BUCKET_KEY_MAX);
}

int belay_refiller_add(belay_refiller_t *refiller, belay_bytes_t key, int64_t tokens) {
  int error = check_key(refiller, key.data, key.len);
  if (error == 0)
    error = belay__check_range(refiller->client->belay, "tokens", tokens, 0,
                               belay__bucket_capacity(refiller->bucket));
  if (error != 0)
    return error;
  belay__refill_key_t *one = belay__refill_find(refiller, key.data, key.len);
  if (one == NULL && (error = belay__refill_add(refiller, key.data, key.len, &one)) != 0)
    return error;
  one->tokens = tokens;
  if (refiller->state == ELECTED)
    belay__defer(belay__refiller_host(refiller), &refiller->task);
  return 0;
}

int belay_refiller_remove(belay_refiller_t *refiller, belay_bytes_t key) {
  int error = check_key(refiller, key.data, key.len);
  if (error != 0)
    return error;
  belay__refill_key_t *one = belay__refill_find(refiller, key.data, key.len);
  if (one != NULL)
    belay__refill_drop(refiller, one);
  return 0;
}

int belay_refiller_close(belay_refiller_t *refiller, belay_refiller_close_cb cb) {
  int error = belay__refiller_check(refiller);
  if (error != 0)
    return error;
  refiller->close_cb = cb;
  step(refiller, EV_CLOSE);
  return 0;
}

/* ---- questions ---- */

belay_refiller_state_t belay_refiller_state(const belay_refiller_t *refiller) {
  if (refiller == NULL || !belay__refiller_fills(refiller))
    return BELAY_REFILLER_WAITING;
  return belay_lock_remaining_us(refiller->lock) < refiller->lease_ms * 1000 / 2
             ? BELAY_REFILLER_SUSPECT
             : BELAY_REFILLER_ELECTED;
}

void belay_refiller_stats(const belay_refiller_t *refiller, belay_refiller_stats_t *stats) {
  *stats = (belay_refiller_stats_t){0};
  if (refiller == NULL)
    return;
  *stats = refiller->stats;
  stats->keys = refiller->table.table.count;
}

void *belay_refiller_data(const belay_refiller_t *refiller) {
  return refiller == NULL ? NULL : refiller->data;
}
