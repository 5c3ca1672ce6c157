/* Sums that are added locally and sent later. Each key has an adder, which sends one sum at a
 * time.
 *
 *    add_local--> READY --the timer--> SENT --counted; nothing was added since--> freed
 *                 ^ ^ |                | |
 *                 | | |                | +--lasting refusal; abort------------------------> LOST
 *                 | | +--abort, or unknown for too long----------------------------------^ |
 *                 | +--no reply, temporary refusal; counted, and more was added since--+   |
 *                 |                                    (from SENT)                         |
 *                 +--reported, and more was added since----------------------REPORTING <---+
 *                                              freed <--reported, nothing was added since--+
 *
 * "Since" means: since the sum was taken from the adds. A READY adder without a sum and with adds
 * of 0 in total is freed when the timer fires. A lasting refusal to start a call also leads from
 * READY to LOST.
 *
 * A sum keeps its operation id until it is counted or lost, so it can be sent again and counts
 * once. If the server may have counted the sum, it is sent again only while the server remembers
 * its operation id. Otherwise it is sent again without a time limit. set_state() makes all
 * transitions. */
#include <stdio.h>
#include <string.h>

#include "data/counter/counter.h"

/* Delay before a sum that the server may have counted is sent again. Any other sum is sent again
 * after batch_ms, but at least this delay. The timer sends all READY adders, so a sum of another
 * key that is due earlier shortens both delays. */
#define RETRY_MS INT64_C(100)
#define OPEN_MAX 512 /* Maximum of sums in state SENT, to keep an iteration of the loop short */
#define ID_MAX (2 * BELAY__COUNTER_LABEL_BYTES + 1 + BELAY__COUNTER_NUMBER_MAX)

typedef enum state {
  READY, /* To be sent when the timer fires */
  SENT,  /* A call is open */
  LOST,  /* The task will report the sum */
  REPORTING,
  GONE
} state_t;

struct belay__adder {
  belay__entry_t entry;
  belay__list_t node; /* Link in one of the lists; REPORTING: unlinked */
  belay_counter_t *counter;
  belay__call_t *call; /* SENT */
  int64_t gathered;    /* Added since `sum` was taken */
  int64_t sum;         /* The sum that is neither counted nor lost yet; 0: none */
  uint64_t number;     /* Number of `sum`, in its operation id */
  uint64_t summed;     /* Time at which `sum` was taken */
  uint64_t sent;       /* Time of the last attempt to send `sum` */
  uint64_t known_from; /* may_count: time of the first call that may have counted */
  int status;          /* LOST: the reason */
  state_t state;
  bool may_count; /* true if the server may have counted `sum` */
  size_t key_len;
  char key[];
};

/* Set the timer, unless it is already set to an earlier time. */
static void schedule(belay_counter_t *counter, uint64_t when) {
  belay__timer_t *timer = &counter->local.timer;
  if (!belay__timer_is_set(timer) || when < timer->when)
    belay__timer_set(counter->handle.client->belay, BELAY__RANK_OTHER, timer, when);
}

static void free_adder(belay__adder_t *adder) {
  belay_counter_t *counter = adder->counter;
  belay__counter_local_t *local = &counter->local;
  belay_t *belay = counter->handle.client->belay;
  if (local->last == adder)
    local->last = NULL;
  belay__table_remove(&local->table, &adder->entry);
  belay__free(belay, adder, sizeof *adder + adder->key_len);
  if (local->table.count > 0)
    return;
  belay__timer_stop(belay, BELAY__RANK_OTHER, &local->timer);
  belay__free_loop(belay);
  belay__handle_release(&counter->handle);
}

static void set_state(belay__adder_t *adder, state_t to) {
  belay__counter_local_t *local = &adder->counter->local;
  belay__list_remove(&adder->node);
  local->open += to == SENT;
  local->open -= adder->state == SENT;
  adder->state = to;
  switch (to) {
  case READY:
    belay__list_push(&local->ready, &adder->node);
    break;
  case SENT:
    belay__list_push(&local->sent, &adder->node);
    break;
  case LOST:
    belay__list_push(&local->lost, &adder->node);
    belay__defer(adder->counter->handle.client->belay, &local->task);
    break;
  case REPORTING:
    break;
  case GONE:
    free_adder(adder);
  }
}

static void give_up(belay__adder_t *adder, int status) {
  adder->status = status;
  set_state(adder, LOST);
}

/* Send the sum again after a delay. When the delay is over, send_sum() gives up instead if the
 * server may have forgotten the sum. */
static void send_later(belay__adder_t *adder) {
  belay_counter_t *counter = adder->counter;
  int64_t ms = adder->may_count || counter->options.batch_ms < RETRY_MS ? RETRY_MS
                                                                        : counter->options.batch_ms;
  set_state(adder, READY);
  schedule(counter, belay__after_ms(counter->handle.client->belay, ms));
}

/* End a sum that was counted, or whose loss was reported. Free the adder if nothing was added
 * since. Otherwise set the timer: the new adds are due batch_ms after the last flush. They are due
 * at once if a flush was requested since, or the handle closes. */
static void finish_sum(belay__adder_t *adder) {
  belay_counter_t *counter = adder->counter;
  adder->sum = 0;
  adder->may_count = false;
  if (adder->gathered == 0) {
    set_state(adder, GONE);
    return;
  }
  uint64_t now = belay__now(counter->handle.client->belay);
  uint64_t next = counter->local.flushed + (uint64_t)counter->options.batch_ms * BELAY__MS;
  bool requested = counter->local.requested_at >= adder->summed || counter->handle.closing;
  set_state(adder, READY);
  schedule(counter, next > now && !requested ? next : now);
}

/* Send the postponed sums if at most half of OPEN_MAX are SENT. */
static void send_postponed(belay_counter_t *counter) {
  belay__counter_local_t *local = &counter->local;
  if (!local->postponed || local->ended || local->open > OPEN_MAX / 2)
    return;
  local->postponed = false;
  schedule(counter, belay__now(counter->handle.client->belay));
}

static int64_t margin_ms(const belay_counter_t *counter) {
  int64_t ms = counter->handle.client->timeout_ms;
  return ms + ms / 100 + 2;
}

/* Time for which the server remembers a sum: op_ttl_ms, but at least enough to send the sum
 * again. */
static int64_t record_ms(const belay_counter_t *counter) {
  int64_t ms = 3 * margin_ms(counter) + RETRY_MS;
  return ms > counter->options.op_ttl_ms ? ms : counter->options.op_ttl_ms;
}

/* true if the server may have counted the sum, and may have forgotten it when a call that is sent
 * now arrives. */
static bool too_late(const belay__adder_t *adder, uint64_t now) {
  const belay_counter_t *counter = adder->counter;
  int64_t ms = record_ms(counter) - margin_ms(counter);
  return adder->may_count && now > adder->known_from + (uint64_t)ms * BELAY__MS;
}

static bool is_temporary(int error) {
  return error == BELAY_EUNKNOWN || error == BELAY_EPROTO || belay_err_retryable(error);
}

static void on_done(belay__call_t *call, const belay__result_t *result) {
  belay__adder_t *adder = call->owner;
  belay_counter_t *counter = adder->counter;
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
  if (unknown && !adder->may_count) {
    adder->may_count = true;
    adder->known_from = adder->sent;
  }
  if (error != 0 && is_temporary(error)) {
    send_later(adder); /* the timer also sends the postponed sums */
    return;
  }
  send_postponed(counter);
  if (error == 0) {
    counter->local.stats.counted++;
    finish_sum(adder);
  } else {
    give_up(adder, error);
  }
}

static belay__call_t *new_call(belay__adder_t *adder) {
  const belay_counter_t *counter = adder->counter;
  const belay__counter_local_t *local = &counter->local;
  char id[ID_MAX + 1];
  size_t n =
      (size_t)snprintf(id, sizeof id, "%s:%llu", local->label, (unsigned long long)adder->number);
  return belay__counter_once_call(counter, belay_bytes(adder->key, adder->key_len), adder->sum,
                                  belay_bytes(id, n), record_ms(counter));
}

/* Send the gathered adds, or send the present sum again. Returns false if the call could not start
 * for a temporary reason, such as BELAY_EBUSY: the sum is READY again. */
static bool send_sum(belay__adder_t *adder, uint64_t now) {
  belay_counter_t *counter = adder->counter;
  belay__counter_local_t *local = &counter->local;
  if (adder->sum == 0 && adder->gathered == 0) {
    set_state(adder, GONE);
    return true;
  }
  if (too_late(adder, now)) {
    give_up(adder, BELAY_EUNKNOWN);
    return true;
  }
  if (adder->sum == 0) {
    adder->sum = adder->gathered;
    adder->gathered = 0;
    adder->summed = now;
    adder->number = ++local->number;
    local->stats.sums++;
  } else {
    local->stats.resends++;
  }
  adder->sent = now;
  int error = belay__call_start(&adder->call, new_call(adder), on_done, adder);
  if (error == 0) {
    set_state(adder, SENT);
  } else if (is_temporary(error)) {
    send_later(adder);
    return false;
  } else {
    give_up(adder, error);
  }
  return true;
}

static void on_timer(belay__timer_t *timer) {
  belay__counter_local_t *local = BELAY__CONTAINER(timer, belay__counter_local_t, timer);
  belay_counter_t *counter = BELAY__CONTAINER(local, belay_counter_t, local);
  uint64_t now = belay__now(counter->handle.client->belay);
  if (counter->handle.closing && now >= local->until) {
    belay__counter_local_abort(&counter->handle);
    return;
  }
  belay__list_t batch;
  local->postponed = false;
  belay__list_init(&batch);
  belay__list_splice_front(&batch, &local->ready);
  local->flushed = now;
  local->adds = 0;
  if (counter->handle.closing)
    schedule(counter, local->until);
  /* send_sum() may free the last adder and so release the handle. The handle stays valid here,
   * because a task frees it later. */
  while (!belay__list_empty(&batch)) {
    bool sent = local->open < OPEN_MAX &&
                send_sum(BELAY__CONTAINER(belay__list_pop(&batch), belay__adder_t, node), now);
    if (sent)
      continue;
    local->postponed = true;
    belay__list_splice_front(&local->ready, &batch);
  }
}

static void report_loss(const belay__adder_t *adder, int64_t amount, int status, bool may_count) {
  belay_counter_t *counter = adder->counter;
  const belay_counter_loss_t loss = {.key = adder->key,
                                     .key_len = adder->key_len,
                                     .amount = amount,
                                     .status = status,
                                     .maybe = may_count};
  counter->local.stats.lost++;
  if (counter->options.on_lost == NULL)
    return;
  belay__client_explain(counter->handle.client, status, NULL, 0);
  counter->options.on_lost(counter, counter->handle.data, &loss);
}

static void on_task(belay__task_t *task) {
  belay__counter_local_t *local = BELAY__CONTAINER(task, belay__counter_local_t, task);
  for (belay__list_t *node; (node = belay__list_pop(&local->lost)) != NULL;) {
    belay__adder_t *adder = BELAY__CONTAINER(node, belay__adder_t, node);
    int64_t sum = adder->sum;
    set_state(adder, REPORTING);
    adder->sum = 0;
    if (sum != 0)
      report_loss(adder, sum, adder->status, adder->may_count);
    sum = adder->gathered;
    if (local->ended && sum != 0) {
      adder->gathered = 0;
      report_loss(adder, sum, BELAY_ECANCELED, false);
    }
    finish_sum(adder);
  }
}

static bool is_of(const belay__adder_t *adder, const char *key, size_t len) {
  return adder->key_len == len && memcmp(adder->key, key, len) == 0;
}

static bool equal(const belay__entry_t *entry, const void *key, size_t len) {
  return is_of(BELAY__CONTAINER(entry, const belay__adder_t, entry), key, len);
}

static int make_adder(belay_counter_t *counter, const char *key, size_t key_len, uint64_t hash,
                      belay__adder_t **out) {
  belay__counter_local_t *local = &counter->local;
  belay_t *belay = counter->handle.client->belay;
  if (local->table.count >= counter->options.max_keys)
    return BELAY_EBUSY;
  belay__adder_t *adder = belay__alloc(belay, sizeof *adder + key_len);
  if (adder == NULL)
    return BELAY_ENOMEM;
  *adder = (belay__adder_t){.counter = counter, .key_len = key_len};
  belay__list_init(&adder->node);
  memcpy(adder->key, key, key_len);
  int error = belay__table_add(belay, &local->table, &adder->entry, hash);
  if (error != 0) {
    belay__free(belay, adder, sizeof *adder + key_len);
    return error;
  }
  if (local->table.count == 1) {
    belay__handle_retain(&counter->handle);
    belay__hold_loop(belay);
  }
  set_state(adder, READY);
  schedule(counter, belay__after_ms(belay, counter->options.batch_ms));
  *out = adder;
  return 0;
}

/* Find or make the adder of a key. */
static int find_adder(belay_counter_t *counter, const char *key, size_t key_len,
                      belay__adder_t **out) {
  belay__counter_local_t *local = &counter->local;
  uint64_t hash = belay__table_hash(counter->handle.client->belay, &local->table, key, key_len);
  belay__entry_t *entry = belay__table_find(&local->table, hash, equal, key, key_len);
  if (entry == NULL)
    return make_adder(counter, key, key_len, hash, out);
  *out = BELAY__CONTAINER(entry, belay__adder_t, entry);
  return 0;
}

int belay_counter_add_local(belay_counter_t *counter, belay_bytes_t key, int64_t delta) {
  int error = belay__handle_check((const belay__handle_t *)counter);
  if (error == 0)
    error = belay__check_bytes(counter->handle.client->belay, "key", key, 1, BELAY_COUNTER_KEY_MAX);
  if (error != 0)
    return error;
  belay__counter_local_t *local = &counter->local;
  belay__adder_t *adder = local->last;
  if (adder == NULL || !is_of(adder, key.data, key.len)) {
    error = find_adder(counter, key.data, key.len, &adder);
    if (error != 0)
      return error;
    local->last = adder;
  }
  int64_t sum;
  if (__builtin_add_overflow(adder->gathered, delta, &sum))
    return BELAY_EOVERFLOW;
  adder->gathered = sum;
  local->stats.adds++;
  local->adds++;
  return counter->options.batch_max > 0 && local->adds >= counter->options.batch_max
             ? belay_counter_flush(counter)
             : 0;
}

int belay_counter_flush(belay_counter_t *counter) {
  int error = belay__handle_check((const belay__handle_t *)counter);
  if (error != 0)
    return error;
  counter->local.requested_at = belay__now(counter->handle.client->belay);
  if (!belay__list_empty(&counter->local.ready))
    schedule(counter, counter->local.requested_at);
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

void belay__counter_local_close(belay__handle_t *handle) {
  belay_counter_t *counter = (belay_counter_t *)handle;
  const belay_client_t *client = handle->client;
  if (counter->local.table.count == 0)
    return;
  counter->local.until = belay__after_ms(client->belay, client->close_timeout_ms);
  schedule(counter, belay__now(client->belay));
}

void belay__counter_local_abort(belay__handle_t *handle) {
  belay__counter_local_t *local = &((belay_counter_t *)handle)->local;
  local->ended = true;
  belay__timer_stop(handle->client->belay, BELAY__RANK_OTHER, &local->timer);
  while (!belay__list_empty(&local->sent)) {
    belay__adder_t *adder = BELAY__CONTAINER(local->sent.next, belay__adder_t, node);
    if (belay__call_cancel(&adder->call))
      adder->may_count = true;
    give_up(adder, BELAY_ECANCELED);
  }
  while (!belay__list_empty(&local->ready))
    give_up(BELAY__CONTAINER(local->ready.next, belay__adder_t, node), BELAY_ECANCELED);
}

void belay__counter_local_deinit(belay__handle_t *handle) {
  belay__table_free(handle->client->belay, &((belay_counter_t *)handle)->local.table);
}
