/* Sums that are added locally and sent later: a tally for each key, with one sum in flight at a
 * time.
 *
 *    add_local--> READY --the timer--> SENT --counted; nothing was added since--> freed
 *                 ^ ^ |                | |
 *                 | | |                | +--lasting refusal; unknown for too long; abort--> LOST
 *                 | | +--abort, or unknown for too long----------------------------------^ |
 *                 | +--no reply, temporary refusal; counted, and more was added since--+   |
 *                 |                                    (from SENT)                         |
 *                 +--reported, and more was added since--------------------------TOLD <----+
 *                                              freed <--reported, nothing was added since--+
 *
 * A sum keeps its operation id until it is known to be counted, so that it can be sent again:
 * while the server remembers the operation; without a time limit if the call was surely not
 * executed. move() has all transitions. */
#include <stdio.h>
#include <string.h>

#include "data/counter/counter.h"

#define RETRY_MS INT64_C(100) /* the least time before something is sent again */
#define OPEN_MAX 512 /* sums on the way at a time: a turn of the loop is not to take long */
#define ID_MAX (2 * BELAY__COUNTER_LABEL_BYTES + 1 + BELAY__COUNTER_NUMBER_MAX)

typedef enum state {
  READY, /* to be sent when the timer fires */
  SENT,  /* a call is open */
  LOST,  /* to be told */
  TOLD,  /* the user is being told */
  GONE
} state_t;

struct belay__tally {
  belay__entry_t entry;
  belay__list_t node; /* in one of the lists; TOLD: alone */
  belay_counter_t *counter;
  belay__call_t *call; /* SENT */
  int64_t gathered;    /* since the sum that is on the way; or all */
  int64_t sum;         /* on the way; 0: none is */
  uint64_t number;     /* of the sum's operation */
  uint64_t summed;     /* when that was made */
  uint64_t sent;       /* when it was, the last time */
  uint64_t known_from; /* may_count: since then the server may know the operation */
  int status;          /* LOST: why */
  state_t state;
  bool may_count; /* the sum may have been counted */
  size_t key_len;
  char key[];
};

/* ---- states ---------------------------------------------------------------------------------------------- */

/* No later than that. */
static void schedule(belay_counter_t *counter, uint64_t when) {
  belay__timer_t *timer = &counter->local.timer;
  if (!belay__timer_is_set(timer) || when < timer->when)
    belay__timer_set(counter->handle.client->belay, BELAY__RANK_OTHER, timer, when);
}

static void forget(belay__tally_t *tally) {
  belay_counter_t *counter = tally->counter;
  belay__counter_local_t *local = &counter->local;
  belay_t *belay = counter->handle.client->belay;
  if (local->last == tally)
    local->last = NULL;
  belay__table_remove(&local->table, &tally->entry);
  belay__free(belay, tally, sizeof *tally + tally->key_len);
  if (local->table.count > 0)
    return;
  belay__timer_stop(belay, BELAY__RANK_OTHER, &local->timer);
  belay__free_loop(belay);
  belay__handle_release(&counter->handle);
}

static void move(belay__tally_t *tally, state_t to) {
  belay__counter_local_t *local = &tally->counter->local;
  belay__list_remove(&tally->node);
  local->open += to == SENT;
  local->open -= tally->state == SENT;
  tally->state = to;
  switch (to) {
  case READY:
    belay__list_push(&local->ready, &tally->node);
    break;
  case SENT:
    belay__list_push(&local->sent, &tally->node);
    break;
  case LOST:
    belay__list_push(&local->lost, &tally->node);
    belay__defer(tally->counter->handle.client->belay, &local->task);
    break;
  case TOLD:
    break;
  case GONE:
    forget(tally);
  }
}

static void lose(belay__tally_t *tally, int status) {
  tally->status = status;
  move(tally, LOST);
}

/* Sends the sum again after a delay, or gives up if the server may have forgotten the operation. */
static void try_again(belay__tally_t *tally) {
  belay_counter_t *counter = tally->counter;
  int64_t ms = tally->may_count || counter->batch_ms < RETRY_MS ? RETRY_MS : counter->batch_ms;
  move(tally, READY);
  schedule(counter, belay__after_ms(counter->handle.client->belay, ms));
}

/* The last call for this sum has ended. A postponed flush follows at once. */
static void settle(belay__tally_t *tally) {
  belay_counter_t *counter = tally->counter;
  tally->sum = 0;
  tally->may_count = false;
  if (tally->gathered == 0) {
    move(tally, GONE);
    return;
  }
  uint64_t now = belay__now(counter->handle.client->belay);
  uint64_t next = counter->local.flushed + (uint64_t)counter->batch_ms * BELAY__MS;
  bool asked = counter->local.asked >= tally->summed || counter->handle.closing;
  move(tally, READY);
  schedule(counter, next > now && !asked ? next : now);
}

/* There is room for others again, which were due as well. */
static void go_on(belay_counter_t *counter) {
  belay__counter_local_t *local = &counter->local;
  if (!local->more || local->ended || local->open > OPEN_MAX / 2)
    return;
  local->more = false;
  schedule(counter, belay__now(counter->handle.client->belay));
}

/* ---- sending --------------------------------------------------------------------------------------------- */

static int64_t margin_ms(const belay_counter_t *counter) {
  int64_t ms = counter->handle.client->timeout_ms;
  return ms + ms / 100 + 2;
}

/* For how long the server knows a sum: long enough to ask again. */
static int64_t record_ms(const belay_counter_t *counter) {
  int64_t ms = 3 * margin_ms(counter) + RETRY_MS;
  return ms > counter->op_ttl_ms ? ms : counter->op_ttl_ms;
}

/* Whether the server may have forgotten the sum by the time that it is sent again. */
static bool too_late(const belay__tally_t *tally, uint64_t now) {
  const belay_counter_t *counter = tally->counter;
  int64_t ms = record_ms(counter) - margin_ms(counter);
  return tally->may_count && now > tally->known_from + (uint64_t)ms * BELAY__MS;
}

static bool passes(int error) {
  return error == BELAY_EUNKNOWN || error == BELAY_EPROTO || belay_err_retryable(error);
}

static void on_done(belay__call_t *call, const belay__result_t *result) {
  belay__tally_t *tally = call->owner;
  belay_counter_t *counter = tally->counter;
  int64_t value;
  bool applied, unknown = result->outcome == BELAY_OUTCOME_UNKNOWN;
  int error = result->error;
  if (result->outcome == BELAY_OUTCOME_REPLY)
    error = belay__counter_added(call, result->reply, &applied, &value);
  if (error == BELAY_EPROTO) {
    if (result->outcome == BELAY_OUTCOME_REPLY)
      belay__call_distrust(call, result->reply);
    unknown = true;
  }
  if (unknown && !tally->may_count) {
    tally->may_count = true;
    tally->known_from = tally->sent;
  }
  if (error != 0 && passes(error)) {
    try_again(tally); /* and the others with it */
    return;
  }
  go_on(counter);
  if (error == 0) {
    counter->local.stats.counted++;
    settle(tally);
  } else {
    lose(tally, error);
  }
}

static belay__call_t *new_call(belay__tally_t *tally) {
  const belay_counter_t *counter = tally->counter;
  const belay__counter_local_t *local = &counter->local;
  char id[ID_MAX + 1];
  size_t n =
      (size_t)snprintf(id, sizeof id, "%s:%llu", local->label, (unsigned long long)tally->number);
  return belay__counter_once_call(counter, tally->key, tally->key_len, tally->sum, id, n,
                                  record_ms(counter));
}

/* Sends what was gathered, or the sum that was not answered once more. False: there is no room for it, and it
 * waits. */
static bool send(belay__tally_t *tally, uint64_t now) {
  belay_counter_t *counter = tally->counter;
  belay__counter_local_t *local = &counter->local;
  if (tally->sum == 0 && tally->gathered == 0) {
    move(tally, GONE);
    return true;
  }
  if (too_late(tally, now)) {
    lose(tally, BELAY_EUNKNOWN);
    return true;
  }
  if (tally->sum == 0) {
    tally->sum = tally->gathered;
    tally->gathered = 0;
    tally->summed = now;
    tally->number = ++local->number;
    local->stats.sums++;
  } else {
    local->stats.resends++;
  }
  tally->sent = now;
  int error = belay__call_start(&tally->call, new_call(tally), on_done, tally);
  if (error == 0) {
    move(tally, SENT);
  } else if (passes(error)) {
    try_again(tally);
    return false;
  } else {
    lose(tally, error);
  }
  return true;
}

static void on_timer(belay__timer_t *timer) {
  belay__counter_local_t *local = BELAY__CONTAINER(timer, belay__counter_local_t, timer);
  belay_counter_t *counter = BELAY__CONTAINER(local, belay_counter_t, local);
  uint64_t now = belay__now(counter->handle.client->belay);
  if (counter->handle.closing && now >= local->until) {
    belay__counter_local_abort(counter);
    return;
  }
  belay__list_t batch;
  local->more = false;
  belay__list_init(&batch);
  belay__list_splice_front(&batch, &local->ready);
  local->flushed = now;
  local->adds = 0;
  if (counter->handle.closing)
    schedule(counter, local->until);
  /* The last that goes lets the handle go, in a task. */
  while (!belay__list_empty(&batch)) {
    bool sent = local->open < OPEN_MAX &&
                send(BELAY__CONTAINER(belay__list_pop(&batch), belay__tally_t, node), now);
    if (sent)
      continue;
    local->more = true;
    belay__list_splice_front(&local->ready, &batch);
  }
}

/* ---- what is lost ---------------------------------------------------------------------------------------- */

static void tell(const belay__tally_t *tally, int64_t amount, int status, bool may_count) {
  belay_counter_t *counter = tally->counter;
  const belay_counter_loss_t loss = {.key = tally->key,
                                     .key_len = tally->key_len,
                                     .amount = amount,
                                     .status = status,
                                     .maybe = may_count};
  counter->local.stats.lost++;
  if (counter->on_lost == NULL)
    return;
  belay__client_explain(counter->handle.client, status, NULL, 0);
  counter->on_lost(counter, counter->handle.data, &loss);
}

static void on_task(belay__task_t *task) {
  belay__counter_local_t *local = BELAY__CONTAINER(task, belay__counter_local_t, task);
  for (belay__list_t *node; (node = belay__list_pop(&local->lost)) != NULL;) {
    belay__tally_t *tally = BELAY__CONTAINER(node, belay__tally_t, node);
    int64_t sum = tally->sum;
    move(tally, TOLD);
    tally->sum = 0;
    if (sum != 0)
      tell(tally, sum, tally->status, tally->may_count);
    sum = tally->gathered;
    if (local->ended && sum != 0) {
      tally->gathered = 0;
      tell(tally, sum, BELAY_ECANCELED, false);
    }
    settle(tally);
  }
}

/* ---- adding ---------------------------------------------------------------------------------------------- */

static bool is_of(const belay__tally_t *tally, const char *key, size_t len) {
  return tally->key_len == len && memcmp(tally->key, key, len) == 0;
}

static bool equal(const belay__entry_t *entry, const void *key, size_t len) {
  return is_of(BELAY__CONTAINER(entry, const belay__tally_t, entry), key, len);
}

static int make(belay_counter_t *counter, const char *key, size_t key_len, uint64_t hash,
                belay__tally_t **out) {
  belay__counter_local_t *local = &counter->local;
  belay_t *belay = counter->handle.client->belay;
  if (local->table.count >= counter->max_keys)
    return BELAY_EBUSY;
  belay__tally_t *tally = belay__alloc(belay, sizeof *tally + key_len);
  if (tally == NULL)
    return BELAY_ENOMEM;
  *tally = (belay__tally_t){.counter = counter, .key_len = key_len};
  belay__list_init(&tally->node);
  memcpy(tally->key, key, key_len);
  int error = belay__table_add(belay, &local->table, &tally->entry, hash);
  if (error != 0) {
    belay__free(belay, tally, sizeof *tally + key_len);
    return error;
  }
  if (local->table.count == 1) {
    belay__handle_retain(&counter->handle);
    belay__hold_loop(belay);
  }
  move(tally, READY);
  schedule(counter, belay__after_ms(belay, counter->batch_ms));
  *out = tally;
  return 0;
}

/* The tally of a key. */
static int find(belay_counter_t *counter, const char *key, size_t key_len, belay__tally_t **out) {
  belay__counter_local_t *local = &counter->local;
  uint64_t hash = belay__table_hash(counter->handle.client->belay, &local->table, key, key_len);
  belay__entry_t *entry = belay__table_find(&local->table, hash, equal, key, key_len);
  if (entry == NULL)
    return make(counter, key, key_len, hash, out);
  *out = BELAY__CONTAINER(entry, belay__tally_t, entry);
  return 0;
}

int belay_counter_add_local(belay_counter_t *counter, belay_bytes_t key, int64_t delta) {
  int error = belay__handle_check((const belay__handle_t *)counter);
  if (error == 0)
    error = belay__check_bytes(counter->handle.client->belay, "key", key, 1, BELAY_COUNTER_KEY_MAX);
  if (error != 0)
    return error;
  belay__counter_local_t *local = &counter->local;
  belay__tally_t *tally = local->last;
  if (tally == NULL || !is_of(tally, key.data, key.len)) {
    error = find(counter, key.data, key.len, &tally);
    if (error != 0)
      return error;
    local->last = tally;
  }
  int64_t sum;
  if (__builtin_add_overflow(tally->gathered, delta, &sum))
    return BELAY_EOVERFLOW;
  tally->gathered = sum;
  local->stats.adds++;
  local->adds++;
  return counter->batch_max > 0 && local->adds >= counter->batch_max ? belay_counter_flush(counter)
                                                                     : 0;
}

int belay_counter_flush(belay_counter_t *counter) {
  int error = belay__handle_check((const belay__handle_t *)counter);
  if (error != 0)
    return error;
  counter->local.asked = belay__now(counter->handle.client->belay);
  if (!belay__list_empty(&counter->local.ready))
    schedule(counter, counter->local.asked);
  return 0;
}

void belay_counter_stats(const belay_counter_t *counter, belay_counter_stats_t *out) {
  if (out == NULL)
    return;
  *out = (belay_counter_stats_t){0};
  if (counter == NULL)
    return;
  *out = counter->local.stats;
  out->keys = counter->local.table.count;
}

/* ---- beginning and ending -------------------------------------------------------------------------------- */

void belay__counter_local_init(belay_counter_t *counter,
                               const uint8_t label[BELAY__COUNTER_LABEL_BYTES]) {
  belay__counter_local_t *local = &counter->local;
  belay__list_init(&local->ready);
  belay__list_init(&local->sent);
  belay__list_init(&local->lost);
  belay__task_init(&local->task, on_task);
  local->timer.fire = on_timer;
  for (size_t i = 0; i < BELAY__COUNTER_LABEL_BYTES; i++)
    (void)snprintf(local->label + 2 * i, 3, "%02x", label[i]);
}

void belay__counter_local_close(belay_counter_t *counter) {
  const belay_client_t *client = counter->handle.client;
  if (counter->local.table.count == 0)
    return;
  counter->local.until = belay__after_ms(client->belay, client->close_timeout_ms);
  schedule(counter, belay__now(client->belay));
}

void belay__counter_local_abort(belay_counter_t *counter) {
  belay__counter_local_t *local = &counter->local;
  local->ended = true;
  belay__timer_stop(counter->handle.client->belay, BELAY__RANK_OTHER, &local->timer);
  while (!belay__list_empty(&local->sent)) {
    belay__tally_t *tally = BELAY__CONTAINER(local->sent.next, belay__tally_t, node);
    if (belay__call_cancel(&tally->call))
      tally->may_count = true;
    lose(tally, BELAY_ECANCELED);
  }
  while (!belay__list_empty(&local->ready))
    lose(BELAY__CONTAINER(local->ready.next, belay__tally_t, node), BELAY_ECANCELED);
}

void belay__counter_local_free(belay_counter_t *counter) {
  belay__table_free(counter->handle.client->belay, &counter->local.table);
}
