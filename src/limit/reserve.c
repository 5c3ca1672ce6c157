/* Tokens on credit: reservations, and requests that wait for the time of theirs.
 *
 *   a wait:  CALLING --reserved--> PARKED until its time --> told
 *               |                    |
 *               +---cancel, close----+--> the reservation is given back, told
 *
 * Of one key and handle, and of those whose answers are in, whose time is first is told first: answers take their time, so
 * that our clock's idea of it may say otherwise; but when one's time has come, so has that of all before it. */
#include <string.h>

#include "limit/refund.h"
#include "limit/limiter.h"

#define WAIT_MAX_US (INT64_C(86400) * 1000000)

/* ---- what waits for a key ------------------------------------------------------------------------------ */

struct belay__queue {
  belay__entry_t entry; /* in limiter->queues */
  size_t waiting;       /* requests, */
  belay__list_t parked; /* and those whose time is known, in the order of it */
  size_t key_len;
  char key[];
};

static bool is_queue(const belay__entry_t *entry, const void *key, size_t len) {
  const belay__queue_t *queue = (const belay__queue_t *)(const void *)entry;
  return queue->key_len == len && memcmp(queue->key, key, len) == 0;
}

/* One more waits. Returns 0, BELAY_EBUSY or BELAY_ENOMEM. */
static int join(belay_limiter_t *limiter, const char *key, size_t len, belay__queue_t **out) {
  belay_t *belay = limiter->client->belay;
  uint64_t hash = belay__table_hash(belay, &limiter->queues, key, len);
  belay__entry_t *entry = belay__table_find(&limiter->queues, hash, is_queue, key, len);
  belay__queue_t *queue = (belay__queue_t *)(void *)entry;
  if ((queue != NULL ? queue->waiting : 0) >= limiter->options.max_waiting)
    return BELAY_EBUSY;
  if (queue == NULL) {
    queue = belay__alloc(belay, sizeof *queue + len);
    if (queue == NULL)
      return BELAY_ENOMEM;
    *queue = (belay__queue_t){.key_len = len};
    belay__list_init(&queue->parked);
    memcpy(queue->key, key, len);
    int error = belay__table_add(belay, &limiter->queues, &queue->entry, hash);
    if (error != 0) {
      belay__free(belay, queue, sizeof *queue + len);
      return error;
    }
  }
  queue->waiting++;
  limiter->stats.waiting++;
  *out = queue;
  return 0;
}

static void part(belay_limiter_t *limiter, belay__queue_t *queue) {
  limiter->stats.waiting--;
  if (--queue->waiting > 0)
    return;
  belay__table_remove(&limiter->queues, &queue->entry);
  belay__free(limiter->client->belay, queue, sizeof *queue + queue->key_len);
}

/* ---- a wait -------------------------------------------------------------------------------------------- */

/* For so long a call may be sent again, by the server's clock. */
static int64_t remembered_us(const belay_limiter_t *limiter, const belay_request_t *request) {
  int64_t ms = belay__request_timeout_ms(limiter->client, request);
  return (ms + ms / 100 + 2) * 1000;
}

static belay__pending_t *parked_at(belay__list_t *node) {
  return BELAY__CONTAINER(node, belay__pending_t, queued);
}

/* Its time, by the server's clock. */
static int64_t act_of(belay__pending_t *pending) {
  const belay__wanted_t *wanted = belay__wanted_of(pending);
  return wanted->owed.at + wanted->owed.answer;
}

static void unpark(belay__pending_t *pending) {
  belay__list_remove(&pending->queued);
  belay__timer_stop(pending->client->belay, BELAY__RANK_OTHER, &pending->timer);
}

/* It is so late by the server's clock. */
static void tell_until(belay__queue_t *queue, int64_t act) {
  while (!belay__list_empty(&queue->parked)) {
    belay__pending_t *pending = parked_at(queue->parked.next);
    if (act_of(pending) > act)
      break;
    unpark(pending);
    belay__request_end(pending, 0);
  }
}

static void on_time(belay__timer_t *timer) {
  belay__pending_t *pending = BELAY__CONTAINER(timer, belay__pending_t, timer);
  tell_until(belay__wanted_of(pending)->queue, act_of(pending));
}

static int read_wait(belay__pending_t *pending, const belay__call_t *call,
                     const belay__reply_t *reply) {
  int error = belay__limiter_read(pending, call, reply);
  const belay__wanted_t *wanted = belay__wanted_of(pending);
  belay__list_t *parked = &wanted->queue->parked, *after = parked->prev;
  if (error == 0 && wanted->owed.answer == 0 && !pending->maybe) /* or it was its turn before */
    tell_until(wanted->queue, wanted->owed.at);
  if (error != 0 || wanted->owed.answer <= 0)
    return error;
  while (after != parked && act_of(parked_at(after)) > act_of(pending))
    after = after->prev;
  belay__list_insert_before(after->next, &pending->queued);
  belay_t *belay = pending->client->belay;
  pending->timer.fire = on_time;
  belay__timer_set(belay, BELAY__RANK_OTHER, &pending->timer,
                   belay__now(belay) + (uint64_t)wanted->owed.answer * 1000);
  return BELAY__REQUEST_PARK;
}

/* Nobody waits any more: what was reserved, or may yet be, is given back. */
static void give_back(belay_limiter_t *limiter, const belay_request_t *request,
                      const belay__wanted_t *wanted) {
  if (limiter->policy->limits_len == 0)
    return;
  char more[8];
  (void)belay__policy_put(more, remembered_us(limiter, request));
  const belay__question_t question = {.op = BELAY__LIMITER_CANCEL,
                                      .key = wanted->queue->key,
                                      .key_len = wanted->queue->key_len,
                                      .more = more,
                                      .more_len = sizeof more,
                                      .reservation = &wanted->reservation};
  belay__errand_send(limiter, belay__limiter_call(limiter, &question), 0);
}

static void tell_wait(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  const belay__wanted_t *wanted = (const belay__wanted_t *)(const void *)answer->values;
  if (answer->status == BELAY_EUNKNOWN)
    give_back(answer->context, request, wanted);
  part(answer->context, wanted->queue);
  belay__limiter_tell(request, cb, answer);
}

static void left_wait(belay__pending_t *pending, bool sent) {
  belay_limiter_t *limiter = pending->context;
  bool reserved = belay__timer_is_set(&pending->timer);
  unpark(pending);
  if (reserved || sent)
    give_back(limiter, belay__request_of(pending), belay__wanted_of(pending));
}

static const belay__request_ops_t wait_ops = {
    .read = read_wait, .tell = tell_wait, .left = left_wait, .idempotent = true};
static const belay__request_ops_t reserve_ops = {
    .read = belay__limiter_read, .tell = belay__limiter_tell, .idempotent = true};

/* ---- the operations ------------------------------------------------------------------------------------ */

static int check(belay_limiter_t *limiter, const belay_request_t *request, const char *key,
                 size_t key_len, int64_t cost, int64_t max_wait_us, belay_limiter_cb cb) {
  int error = belay__limiter_check_request(limiter, request, key, key_len, cb);
  if (error == 0)
    error = belay__limiter_range(limiter, "cost", cost, 1, INT64_MAX);
  if (error == 0)
    error = belay__limiter_range(limiter, "max_wait_us", max_wait_us, 0, WAIT_MAX_US);
  if (error == 0 && !limiter->policy->reservable) {
    belay__detail(limiter->client->belay, "limits: only token buckets with a count give credit");
    error = BELAY_EINVAL;
  }
  return error;
}

/* Of one that was begun: asks, unless the policy alone says it. */
static int ask(belay_limiter_t *limiter, belay__pending_t *pending, const char *key, size_t key_len,
               int64_t max_wait_us) {
  const belay__wanted_t *wanted = belay__wanted_of(pending);
  if (wanted->cost > limiter->policy->most || limiter->policy->limits_len == 0) {
    belay__limiter_answer(pending, BELAY_SOURCE_POLICY, 0);
    return 0;
  }
  char more[16];
  char *end = belay__policy_put(more, max_wait_us);
  (void)belay__policy_put(end, remembered_us(limiter, belay__request_of(pending)));
  const belay__question_t question = {.op = BELAY__LIMITER_RESERVE,
                                      .key = key,
                                      .key_len = key_len,
                                      .cost = wanted->cost,
                                      .more = more,
                                      .more_len = sizeof more,
                                      .reservation = &wanted->reservation};
  return belay__limiter_ask(limiter, pending, &question);
}

static int draw(belay_limiter_t *limiter, belay_reservation_t *out) {
  belay_t *belay = limiter->client->belay;
  return belay->host->random(belay, out->id, sizeof out->id);
}

int belay_limiter_reserve(belay_limiter_t *limiter, belay_request_t *request, const char *key,
                          size_t key_len, int64_t cost, int64_t max_wait_us, belay_limiter_cb cb) {
  key_len = belay__text_len(key, key_len);
  belay_reservation_t drawn;
  belay__pending_t *pending;
  int error = check(limiter, request, key, key_len, cost, max_wait_us, cb);
  if (error == 0)
    error = draw(limiter, &drawn);
  if (error == 0)
    error = belay__limiter_begin(limiter, request, &reserve_ops, BELAY__LIMITER_RESERVE, cost, cb,
                                 &pending);
  if (error != 0)
    return error;
  belay__wanted_of(pending)->reservation = drawn;
  return ask(limiter, pending, key, key_len, max_wait_us);
}

int belay_limiter_wait(belay_limiter_t *limiter, belay_request_t *request, const char *key,
                       size_t key_len, int64_t cost, int64_t max_wait_us, belay_limiter_cb cb) {
  key_len = belay__text_len(key, key_len);
  belay_reservation_t drawn;
  belay__pending_t *pending;
  belay__queue_t *queue;
  int error = check(limiter, request, key, key_len, cost, max_wait_us, cb);
  if (error == 0)
    error = draw(limiter, &drawn);
  if (error == 0)
    error =
        belay__limiter_begin(limiter, request, &wait_ops, BELAY__LIMITER_WAIT, cost, cb, &pending);
  if (error != 0)
    return error;
  error = join(limiter, key, key_len, &queue);
  if (error != 0) {
    belay__limiter_forget(pending);
    return error;
  }
  belay__wanted_of(pending)->reservation = drawn;
  belay__wanted_of(pending)->queue = queue;
  error = ask(limiter, pending, key, key_len, max_wait_us);
  if (error != 0)
    part(limiter, queue);
  return error;
}

int belay_limiter_cancel_reservation(belay_limiter_t *limiter, belay_request_t *request,
                                     const char *key, size_t key_len,
                                     const belay_reservation_t *reservation, belay_limiter_cb cb) {
  key_len = belay__text_len(key, key_len);
  int error = belay__limiter_check_request(limiter, request, key, key_len, cb);
  if (error == 0 && (reservation == NULL || !limiter->policy->reservable)) {
    belay__detail(limiter->client->belay,
                  reservation == NULL ? "reservation: NULL"
                                      : "limits: only token buckets with a count give credit");
    error = BELAY_EINVAL;
  }
  belay__pending_t *pending;
  if (error == 0)
    error = belay__limiter_begin(limiter, request, &reserve_ops, BELAY__LIMITER_CANCEL, 0, cb,
                                 &pending);
  if (error != 0)
    return error;
  if (limiter->policy->limits_len == 0) {
    belay__limiter_answer(pending, BELAY_SOURCE_POLICY, 0);
    return 0;
  }
  char more[8];
  (void)belay__policy_put(more, remembered_us(limiter, request));
  const belay__question_t question = {.op = BELAY__LIMITER_CANCEL,
                                      .key = key,
                                      .key_len = key_len,
                                      .more = more,
                                      .more_len = sizeof more,
                                      .reservation = reservation};
  return belay__limiter_ask(limiter, pending, &question);
}
