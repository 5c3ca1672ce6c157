/* The election. A candidate is a lock whose script also stores the leader's value. An observer is a
 * waiter that no reply ends: it asks until it is stopped. A handle has both, and a task that
 * reports observations:
 *
 *    campaign --> lock --> elected, deposed, resigned; each makes the waiter ask
 *    observe  --> waiter --the view differs from the reported one--> task --> on_observe
 *
 * A closing handle closes its lock, which retains the handle. The term is the lock's fencing
 * number. The key of the term also has the leader's value. */
#include "belay/election.h"

#include <string.h>

#include "core/call/publish.h"
#include "core/client/handle.h"
#include "core/key/key.h"
#include "lease/kinds/lock.h"
#include "sync/waiter.h"
#include "scripts.gen.h"

static const char fence_part[] = "::fence", wake_part[] = "::wake";
#define FENCE_PART_LEN (sizeof fence_part - 1)
#define WAKE_PART_LEN (sizeof wake_part - 1)

/* The leader according to the server, or the reason why it is unknown. */
typedef struct view {
  int status;
  uint64_t term; /* 0: no leader */
  int64_t remaining_ms;
  size_t token_len, value_len;
  char token[BELAY__TOKEN_TEXT_MAX], value[BELAY_ELECTION_VALUE_MAX];
} view_t;

struct belay_election {
  belay__handle_t handle; /* first */
  belay_lock_t *lock;     /* NULL: it is closed, and the handle ends soon */
  belay__waiter_t waiter;
  belay__task_t task;
  belay_elected_cb on_elected;
  belay_deposed_cb on_deposed;
  belay_observe_cb on_observe;
  belay_election_cb campaign_cb, resign_cb;
  bool resigning;     /* true if a resign canceled the campaign */
  bool report_due;    /* true while `latest` is to be reported */
  bool reported_any;  /* true if there was a report since observing began */
  bool reported_ours; /* true if the last reported leader is this candidate */
  bool holds_loop;
  view_t latest, reported;
  size_t channel_len;
  char *channel; /* the key and "::wake" */
};

/* The arguments of belay_election_new(). */
typedef struct arguments {
  belay_election_options_t options;
  belay_bytes_t name;
} arguments_t;

static belay_client_t *client_of(const belay_election_t *election) {
  return election->handle.client;
}

static belay__lease_t *lease_of(const belay_election_t *election) {
  return belay__lock_lease(election->lock);
}

/* ---- the candidate: a kind of lock ---- */

static void acquire(const belay__lease_t *lease, belay__call_t *call) {
  belay__lease_begin(lease, call, &belay__script_election_acquire, false, 5);
  belay__lease_put_token(lease, call);
  belay__call_arg_int(call, lease->ttl);
  belay__call_arg_int(call, BELAY__FENCE_TTL_MS);
  belay__publish_arg(call, lease->config->notify);
  belay__call_arg(call, belay__lease_extra(lease), lease->extra_len);
}

/* Adds the ttl of the term's key, which each extend renews, so that a leader never outlives its
 * term. */
static void extend_more(const belay__lease_t *lease, belay__call_t *call) {
  (void)lease;
  belay__call_arg_int(call, BELAY__FENCE_TTL_MS);
}

static const char *const suffixes[] = {fence_part, NULL};

static const belay__kind_t kind = {
    .family = "election",
    .suffixes = suffixes,
    .extend = &belay__script_election_extend,
    .extend_args = 1,
    .extend_more = extend_more,
    .release = &belay__script_lock_release,
    .publishes_always = true,
    .client_queue = true,
    .acquire = acquire,
    .acquired = belay__lock_acquired,
    .notify_owner = belay__lock_notify,
};

/* ---- the observer: a waiter ---- */

static belay_election_t *election_of(belay__waiter_t *waiter) {
  return BELAY__CONTAINER(waiter, belay_election_t, waiter);
}

static void build_query(belay__waiter_t *waiter, belay__call_t *call) {
  const belay_election_t *election = election_of(waiter);
  size_t key_len = election->channel_len - WAKE_PART_LEN;
  belay__call_script(call, &belay__script_election_read, 2, 0);
  belay__call_arg(call, election->channel, key_len);
  belay__call_arg_joined(call, election->channel, key_len, fence_part, FENCE_PART_LEN);
}

static bool is_same(const view_t *a, const view_t *b) {
  if (a->status != 0 || b->status != 0)
    return a->status != 0 && b->status != 0;
  return a->term == b->term && a->token_len == b->token_len &&
         memcmp(a->token, b->token, a->token_len) == 0;
}

static bool is_ours(const belay_election_t *election, const view_t *view) {
  char token[BELAY__TOKEN_TEXT_MAX + 1];
  size_t len = belay_lock_token(election->lock, token, sizeof token);
  return len > 0 && len == view->token_len && memcmp(token, view->token, len) == 0;
}

/* Queues a report of `latest`, unless it equals the last report. All errors are equal. Two views of
 * the same leader differ if this candidate is the leader in only one of them. */
static void report_if_changed(belay_election_t *election) {
  election->report_due = !election->reported_any ||
                         !is_same(&election->latest, &election->reported) ||
                         is_ours(election, &election->latest) != election->reported_ours;
  if (election->report_due)
    belay__defer(client_of(election)->belay, &election->task);
}

static bool copy(const belay__reply_t *reply, char *out, size_t max, size_t *len) {
  if (reply->type != BELAY__REPLY_STRING || reply->len > max)
    return false;
  memcpy(out, reply->str, reply->len);
  *len = reply->len;
  return true;
}

/* Reads the reply: token, term, value, and remaining ms (-1: no ttl); no items: no leader. */
static bool read_view(const belay__reply_t *reply, view_t *view) {
  *view = (view_t){0};
  if (reply->type != BELAY__REPLY_ARRAY || (reply->count != 0 && reply->count != 4))
    return false;
  if (reply->count == 0)
    return true;
  belay__reply_t *const *item = reply->items;
  return copy(item[0], view->token, sizeof view->token, &view->token_len) &&
         belay__reply_number(item[1], 1, BELAY__FENCE_MAX, &view->term) &&
         copy(item[2], view->value, sizeof view->value, &view->value_len) &&
         belay__reply_integer(item[3], -1, INT64_MAX, &view->remaining_ms);
}

static int read(belay__waiter_t *waiter, const belay__reply_t *reply, int64_t *holds_ms) {
  belay_election_t *election = election_of(waiter);
  view_t view;
  if (!read_view(reply, &view))
    return BELAY_EPROTO;
  election->latest = view;
  report_if_changed(election);
  if (view.term != 0 && view.remaining_ms >= 0 && view.remaining_ms < BELAY__TTL_MAX_MS)
    *holds_ms = view.remaining_ms;
  return BELAY__NOT_YET;
}

static void on_failed(belay__waiter_t *waiter, int status) {
  belay_election_t *election = election_of(waiter);
  election->latest = (view_t){.status = status};
  report_if_changed(election);
}

static void on_finished(belay__waiter_t *waiter) {
  (void)waiter; /* only stop_observing() ends the wait */
}

static const belay__waiter_ops_t waiter_ops = {
    .build_query = build_query,
    .read = read,
    .failed = on_failed,
    .finished = on_finished,
};

static void run_task(belay__task_t *task) {
  belay_election_t *election = BELAY__CONTAINER(task, belay_election_t, task);
  if (!election->report_due)
    return;
  election->report_due = false;
  election->reported_any = true;
  election->reported = election->latest;
  election->reported_ours = is_ours(election, &election->reported);
  const view_t *view = &election->reported;
  if (view->status != 0) {
    size_t key_len = election->channel_len - WAKE_PART_LEN;
    belay__client_explain(client_of(election), view->status, election->channel, key_len);
    election->on_observe(election, view->status, NULL);
    return;
  }
  const belay_leader_t leader = {
      .term = view->term,
      .value = view->value,
      .value_len = view->value_len,
      .remaining_ms = view->remaining_ms,
      .ours = election->reported_ours,
  };
  election->on_observe(election, 0, &leader);
}

/* Keeps the loop alive while the election observes, but only after belay_election_ref(). */
static void update_hold(belay_election_t *election) {
  bool want =
      election->lock != NULL && lease_of(election)->ref && belay__waiter_is_on(&election->waiter);
  if (want == election->holds_loop)
    return;
  election->holds_loop = want;
  (want ? belay__hold_loop : belay__free_loop)(client_of(election)->belay);
}

static void stop_observing(belay_election_t *election) {
  belay__waiter_stop(&election->waiter);
  election->report_due = false;
  belay__task_stop(client_of(election)->belay, &election->task);
  update_hold(election);
}

/* ---- notices of the lock ---- */

static void call_back(belay_election_t *election, belay_election_cb *slot, int status) {
  belay_election_cb cb = *slot;
  *slot = NULL;
  if (cb != NULL)
    cb(election, status);
}

/* Calls on_elected. Does nothing if the campaign callback has resigned, or the lease is over. */
static void notify_elected(belay_election_t *election, uint64_t term) {
  if (election->on_elected != NULL && belay_election_term(election) == term)
    election->on_elected(election, term);
}

static void on_campaigned(belay_lock_t *lock, int status) {
  belay_election_t *election = belay_lock_data(lock);
  bool resigned = election->resigning;
  election->resigning = false;
  if (status == 0)
    belay__waiter_ask_soon(&election->waiter);
  uint64_t term = belay__lease_fence(lease_of(election));
  call_back(election, &election->campaign_cb, status);
  if (status == 0)
    notify_elected(election, term);
  if (resigned)
    call_back(election, &election->resign_cb, 0);
}

static void on_resigned(belay_lock_t *lock, int status) {
  belay_election_t *election = belay_lock_data(lock);
  belay__waiter_ask_soon(&election->waiter);
  call_back(election, &election->resign_cb, status);
}

static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  belay_election_t *election = belay_lock_data(lock);
  belay__waiter_ask_soon(&election->waiter);
  if (election->on_deposed != NULL)
    election->on_deposed(election, reason);
}

/* ---- construction ---- */

void belay_election_options_init(belay_election_options_t *options) {
  belay_lock_options_t lock;
  if (options == NULL)
    return;
  belay_lock_options_init(&lock);
  *options = (belay_election_options_t){
      .ttl_ms = lock.ttl_ms,
      .timeout_ms = lock.timeout_ms,
      .retry_min_ms = lock.retry_min_ms,
      .retry_max_ms = lock.retry_max_ms,
      .backoff_max_ms = lock.backoff_max_ms,
  };
}

/* Makes the options of the lock. Returns 0 or an error with a detail. */
static int make_lock_options(belay_t *belay, const belay_election_options_t *o,
                             belay_lock_options_t *lock) {
  int error = belay__check_bytes(belay, "value", o->value, 0, BELAY_ELECTION_VALUE_MAX);
  if (error == 0)
    error = belay__check_optional(belay, "key", o->key, BELAY__NAME_MAX);
  belay_lock_options_init(lock);
  lock->ttl_ms = o->ttl_ms;
  lock->timeout_ms = o->timeout_ms;
  lock->retry_min_ms = o->retry_min_ms;
  lock->retry_max_ms = o->retry_max_ms;
  lock->backoff_max_ms = o->backoff_max_ms;
  lock->fencing = true;
  lock->notice_break = o->notice_break;
  lock->on_lost = on_lost;
  return error;
}

static int init_waiter(belay_election_t *election) {
  const belay__lease_t *lease = lease_of(election);
  election->channel_len = lease->key_len + WAKE_PART_LEN;
  election->channel = belay__alloc(client_of(election)->belay, election->channel_len);
  if (election->channel == NULL)
    return BELAY_ENOMEM;
  memcpy(election->channel, belay__lease_key(lease), lease->key_len);
  memcpy(election->channel + lease->key_len, wake_part, WAKE_PART_LEN);
  const belay__waiter_config_t config = {
      .retry_min = lease->config->retry_min,
      .retry_max = lease->config->retry_max,
      .backoff_max = lease->config->backoff_max,
      .timeout = lease->config->timeout,
      .retry_lasting = true,
  };
  belay__waiter_init(&election->waiter, &waiter_ops, client_of(election), &config,
                     election->channel, election->channel_len);
  return 0;
}

/* Drops the lock's reference to the handle. The handle ends in a later task, and the lock's memory
 * is freed after this callback. */
static void on_lock_closed(belay_lock_t *lock, void *data) {
  belay_election_t *election = data;
  (void)lock;
  election->lock = NULL;
  belay__handle_release(&election->handle);
}

static int on_init(belay__handle_t *handle, void *arguments) {
  belay_election_t *election = (belay_election_t *)handle;
  belay_client_t *client = handle->client;
  const belay_election_options_t *o = &((arguments_t *)arguments)->options;
  const belay__lock_spec_t spec = {
      .kind = &kind,
      .key = o->key.data,
      .key_len = o->key.len,
      .extra = o->value.data != NULL ? o->value.data : client->owner,
      .extra_len = o->value.data != NULL ? o->value.len : client->owner_len,
  };
  belay_lock_options_t lock_options;
  int error = make_lock_options(client->belay, o, &lock_options);
  if (error == 0)
    error = belay__lock_make(&client, 1, ((arguments_t *)arguments)->name, &lock_options, &spec,
                             &election->lock);
  if (error != 0)
    return error;
  if (init_waiter(election) != 0) {
    (void)belay_lock_close(election->lock, NULL);
    return BELAY_ENOMEM;
  }
  belay_lock_set_data(election->lock, election);
  belay_lock_on_closed(election->lock, on_lock_closed);
  belay__handle_retain(handle);
  belay__task_init(&election->task, run_task);
  election->on_elected = o->on_elected;
  election->on_deposed = o->on_deposed;
  election->on_observe = o->on_observe;
  return 0;
}

static void on_close(belay__handle_t *handle) {
  belay_election_t *election = (belay_election_t *)handle;
  stop_observing(election);
  (void)belay__lease_close(lease_of(election)); /* the client may close it already */
}

static void on_deinit(belay__handle_t *handle) {
  belay_election_t *election = (belay_election_t *)handle;
  belay__free(handle->client->belay, election->channel, election->channel_len);
}

static const belay__handle_type_t election_type = {
    .family = "election",
    .size = sizeof(belay_election_t),
    .options_size = sizeof(arguments_t),
    .unnamed = true, /* the lock has the key */
    .data_at = offsetof(arguments_t, options.data),
    .init = on_init,
    .close = on_close,
    .deinit = on_deinit,
};

BELAY__HANDLE_END(election)

int belay_election_new(belay_client_t *client, belay_bytes_t name,
                       const belay_election_options_t *options, belay_election_t **out) {
  arguments_t given = {.name = name}, filled;
  belay__handle_t *handle = NULL;
  if (out == NULL)
    return BELAY_EINVAL;
  belay_election_options_init(&given.options);
  if (options != NULL)
    given.options = *options;
  int error = belay__handle_new(client, &election_type, &given, &filled, &handle);
  *out = (belay_election_t *)handle;
  return error;
}

/* ---- operations ---- */

int belay_election_campaign(belay_election_t *election, belay_election_cb cb) {
  int error = belay__handle_check((belay__handle_t *)election);
  if (error == 0)
    error = belay_lock_acquire(election->lock, BELAY_FOREVER, on_campaigned);
  if (error == 0)
    election->campaign_cb = cb;
  return error;
}

int belay_election_resign(belay_election_t *election, belay_election_cb cb) {
  int error = belay__handle_check((belay__handle_t *)election);
  if (error != 0)
    return error;
  error = belay_lock_release(election->lock, BELAY_DEFAULT, on_resigned);
  if (error == BELAY_ENOTOWNER) {
    error = belay_lock_cancel(election->lock);
    election->resigning |= error == 0;
  }
  if (error == 0)
    election->resign_cb = cb;
  return error;
}

int belay_election_observe(belay_election_t *election, int on) {
  int error = belay__handle_check((belay__handle_t *)election);
  if (error != 0)
    return error;
  if (on && election->on_observe == NULL)
    return belay__invalid(client_of(election)->belay, "on_observe: NULL");
  if (!on) {
    stop_observing(election);
  } else if (!belay__waiter_is_on(&election->waiter)) {
    election->reported_any = false;
    belay__waiter_start(&election->waiter, BELAY_FOREVER);
  }
  update_hold(election);
  return 0;
}

/* ---- questions ---- */

uint64_t belay_election_term(const belay_election_t *election) {
  return election == NULL ? 0 : belay_lock_fence(election->lock);
}

int64_t belay_election_remaining_us(const belay_election_t *election) {
  return election == NULL ? 0 : belay_lock_remaining_us(election->lock);
}

static void set_ref(belay_election_t *election, bool ref) {
  if (election == NULL || election->lock == NULL)
    return;
  belay__lease_ref(lease_of(election), ref);
  update_hold(election);
}

void belay_election_ref(belay_election_t *election) {
  set_ref(election, true);
}

void belay_election_unref(belay_election_t *election) {
  set_ref(election, false);
}

void belay_election_set_data(belay_election_t *election, void *data) {
  if (election != NULL)
    election->handle.data = data;
}
