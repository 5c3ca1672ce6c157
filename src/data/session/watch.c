/* Who tells that contexts have ended.
 *
 *   RESTING --time, a hint--> ASKING: some that are due in one key of the index are claimed, and looked for
 *     ^  ^                     |   |
 *     |  +--refused, lost------+   +--there are some--> TELLING: those that do not live are told
 *     |                        |                          |
 *     |                        +--none                    +--> SETTLING: these are taken out, the others are due later
 *     |                           v                               |
 *     +--nothing is wanted-- the next key  <----------------------+
 *                            (the same one, if there may be more)
 *
 *   RESTING, ASKING --closed--> CLOSED; TELLING, SETTLING --closed--> SETTLING --its end--> CLOSED, told, gone
 *
 * A claim hides what is due from the others for a while; who dies in between leaves it to them. It is taken out when
 * its owner has been told, so that he is told at least once. All that is asked is a request of the watch's own. */
#include <stdio.h>
#include <string.h>

#include "core/client/channel.h"
#include "data/session/session.h"
#include "scripts.gen.h"

#define BATCH ((size_t)64)
#define CLAIM_MS INT64_C(60000)
#define HINT_MS UINT64_C(5) /* more may come */
#define ALL ((UINT32_C(1) << BELAY__SESSION_SHARDS) - 1)
#define INTERVAL_MIN_MS 10
#define INTERVAL_MAX_MS 86400000

enum { RESTING, ASKING, TELLING, SETTLING, CLOSED };

/* What was claimed. */
typedef struct entry {
  const char *text; /* in the batch */
  size_t len;
  int64_t due;  /* later; 0: it does not live */
  bool garbage; /* somebody else wrote it */
  bool known;   /* whether it lives */
  bool told;
} entry_t;

/* All of it, in one piece of memory. */
typedef struct batch {
  size_t size, len;
  size_t good;   /* so many at the beginning are no garbage */
  bool full;     /* there may be more */
  char till[24]; /* by the server's clock: it is ours */
  entry_t entry[BATCH];
  char bytes[];
} batch_t;

struct belay_session_watch {
  belay__list_t node; /* the session's */
  belay_session_t *session;
  belay_request_t request;
  belay__timer_t timer;
  belay__task_t task; /* to be gone */
  belay__ear_t ear;
  belay_session_ended_cb cb;
  belay_session_watch_close_cb close_cb;
  void *data;
  batch_t *batch;
  uint64_t interval, next_look;
  uint32_t wanted; /* keys of the index, a bit for each */
  uint32_t shard;  /* that is being asked */
  uint8_t state;
  bool closing;
  belay_session_watch_stats_t stats;
};

static belay_t *host(const belay_session_watch_t *watch) {
  return watch->session->handle.client->belay;
}

static belay_session_watch_t *watch_of(belay__pending_t *pending) {
  return BELAY__CONTAINER(belay__request_of(pending), belay_session_watch_t, request);
}

static void free_batch(belay_session_watch_t *watch) {
  if (watch->batch != NULL)
    belay__free(host(watch), watch->batch, watch->batch->size);
  watch->batch = NULL;
}

/* ---- asking -------------------------------------------------------------------------------------------- */

static void put_entry(batch_t *batch, entry_t *entry, const belay__reply_t *text, size_t *at) {
  *entry = (entry_t){.text = batch->bytes + *at, .len = text->len};
  if (text->len > 0)
    memcpy(batch->bytes + *at, text->str, text->len);
  *at += text->len;
}

/* Until when they are claimed comes first; garbage last, in the batch. */
static int read_claims(belay_session_watch_t *watch, const belay__reply_t *reply) {
  belay_session_ended_t ended;
  uint64_t till;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count > BATCH + 1)
    return BELAY_EPROTO;
  if (reply->count == 0)
    return 0;
  if (reply->count == 1 || !belay__reply_number(reply->items[0], 1, INT64_MAX, &till))
    return BELAY_EPROTO;
  belay__reply_t *const *items = reply->items + 1;
  size_t n = reply->count - 1, size = sizeof(batch_t), at = 0, bad = n;
  for (size_t i = 0; i < n; i++) {
    if (items[i]->type != BELAY__REPLY_STRING)
      return BELAY_EPROTO;
    size += items[i]->len;
  }
  batch_t *batch = watch->batch = belay__alloc(host(watch), size);
  if (batch == NULL)
    return BELAY_ENOMEM;
  batch->size = size;
  batch->len = n;
  batch->good = 0;
  batch->full = n == BATCH;
  (void)snprintf(batch->till, sizeof batch->till, "%llu", (unsigned long long)till);
  for (size_t i = 0; i < n; i++) {
    const belay__reply_t *text = items[i];
    bool good = belay__session_entry_read(text->str, text->len, &ended);
    entry_t *entry = good ? &batch->entry[batch->good++] : &batch->entry[--bad];
    put_entry(batch, entry, text, &at);
    entry->garbage = !good;
  }
  return 0;
}

static int read_asked(belay__pending_t *pending, const belay__call_t *call,
                      const belay__reply_t *reply) {
  belay_session_watch_t *watch = watch_of(pending);
  (void)call;
  if (pending->values[0] == 0)
    return read_claims(watch, reply);
  entry_t *entry = &watch->batch->entry[pending->index];
  entry->known = belay__reply_integer(reply, 0, INT64_MAX, &entry->due);
  return entry->known ? 0 : BELAY_EPROTO;
}

static belay__call_t *new_look(const belay_session_watch_t *watch, const entry_t *entry) {
  const belay__handle_t *handle = &watch->session->handle;
  belay_session_ended_t context;
  if (!belay__session_entry_read(entry->text, entry->len, &context))
    return NULL;
  belay__call_t *call = belay__call_new(handle->client, BELAY__LANE_DATA);
  if (call == NULL)
    return NULL;
  belay__call_script(call, &belay__script_session_look, 1, 1);
  belay__handle_arg(handle, call, context.user, context.user_len, "}");
  belay__call_arg(call, context.id, context.id_len);
  return call;
}

/* What was claimed is looked for. */
static int next(belay__pending_t *pending) {
  const belay_session_watch_t *watch = watch_of(pending);
  const batch_t *batch = watch->batch;
  belay__call_t *calls[BATCH];
  size_t n = 0;
  if (pending->values[0]++ > 0 || batch == NULL || batch->good == 0)
    return 0;
  for (; n < batch->good; n++)
    calls[n] = new_look(watch, &batch->entry[n]);
  int error = belay__request_send_all(pending, calls, n);
  return error != 0 ? error : BELAY__REQUEST_PARK;
}

/* ---- the machine --------------------------------------------------------------------------------------- */

static void on_asked(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer);
static void on_settled(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer);

static const belay__request_ops_t ask_ops = {.read = read_asked, .next = next, .tell = on_asked};

static int read_settled(belay__pending_t *pending, const belay__call_t *call,
                        const belay__reply_t *reply) {
  int64_t zero;
  (void)pending;
  (void)call;
  return belay__reply_integer(reply, 0, 0, &zero) ? 0 : BELAY_EPROTO;
}

static const belay__request_ops_t settle_ops = {
    .read = read_settled, .tell = on_settled, .idempotent = true};

static void finish(belay__task_t *task) {
  belay_session_watch_t *watch = BELAY__CONTAINER(task, belay_session_watch_t, task);
  belay_session_t *session = watch->session;
  belay_t *belay = host(watch);
  if (watch->close_cb != NULL)
    watch->close_cb(watch, watch->data);
  belay__list_remove(&watch->node);
  free_batch(watch);
  belay__free(belay, watch, sizeof *watch);
  belay__free_loop(belay);
  belay__handle_free(&session->handle);
}

static void rest(belay_session_watch_t *watch) {
  watch->state = RESTING;
  belay__timer_set(host(watch), BELAY__RANK_OTHER, &watch->timer, watch->next_look);
}

/* What was claimed comes again when the claim is over. */
static void fail(belay_session_watch_t *watch) {
  watch->stats.failed++;
  watch->wanted = 0;
  free_batch(watch);
  rest(watch);
}

static void ask(belay_session_watch_t *watch) {
  belay__handle_t *handle = &watch->session->handle;
  belay__pending_t *pending;
  while ((watch->wanted & UINT32_C(1) << watch->shard) == 0)
    watch->shard = (watch->shard + 1) % BELAY__SESSION_SHARDS;
  watch->wanted &= ~(UINT32_C(1) << watch->shard); /* a hint may come meanwhile */
  watch->state = ASKING;
  if (belay__handle_begin(handle, &watch->request, &ask_ops, NULL, &pending) != 0) {
    fail(watch);
    return;
  }
  belay__call_t *call = belay__call_new(handle->client, BELAY__LANE_DATA);
  if (call != NULL) {
    belay__call_script(call, &belay__script_session_claim, 1, 2);
    belay__session_due_arg(watch->session, call, watch->shard);
    belay__call_arg_int(call, (int64_t)BATCH);
    belay__call_arg_int(call, CLAIM_MS);
  }
  if (belay__request_send(pending, call) != 0) {
    belay__request_forget(pending);
    fail(watch);
  }
}

/* The key is done with, or has more. */
static void go_on(belay_session_watch_t *watch, bool more) {
  free_batch(watch);
  if (watch->closing) {
    watch->state = CLOSED;
    belay__defer(host(watch), &watch->task);
    return;
  }
  if (more)
    watch->wanted |= UINT32_C(1) << watch->shard;
  if (watch->wanted != 0)
    ask(watch);
  else
    rest(watch);
}

/* Not one of the session's, whose close would cancel it: who was told is to be taken out. What lives is due later, unless
 * it has been ended meanwhile, and is due now. */
static void settle(belay_session_watch_t *watch) {
  belay_session_t *session = watch->session;
  const batch_t *batch = watch->batch;
  belay__pending_t *pending;
  size_t n = 0;
  for (size_t i = 0; i < batch->len; i++)
    n += batch->entry[i].garbage || batch->entry[i].told || batch->entry[i].due > 0;
  watch->state = SETTLING;
  belay__call_t *call = n == 0 || session->handle.client->node_closing
                            ? NULL
                            : belay__session_index(session, watch->shard, batch->till, n);
  for (size_t i = 0; i < batch->len && call != NULL; i++) {
    const entry_t *entry = &batch->entry[i];
    if (!entry->garbage && !entry->told && entry->due == 0)
      continue; /* we are closed, or it is not known: it comes again when the claim is over */
    belay__call_arg(call, entry->text, entry->len);
    if (entry->due > 0)
      belay__call_arg_int(call, entry->due);
    else
      belay__call_arg(call, "-", 1);
  }
  if (call == NULL || belay__request_begin(session->handle.client, &watch->request, &settle_ops,
                                           session, NULL, NULL, &pending) != 0) {
    belay__calls_discard(&call, 1);
    go_on(watch, false);
    return;
  }
  if (belay__request_send(pending, call) != 0) {
    belay__request_forget(pending);
    go_on(watch, false);
  }
}

/* Tells those that do not live; one that ends this is the last. */
static void tell_all(belay_session_watch_t *watch) {
  batch_t *batch = watch->batch;
  watch->state = TELLING;
  for (size_t i = 0; i < batch->good && !watch->closing; i++) {
    belay_session_ended_t ended;
    entry_t *entry = &batch->entry[i];
    if (entry->due > 0) {
      watch->stats.alive++;
    } else if (entry->known && belay__session_entry_read(entry->text, entry->len, &ended)) {
      entry->told = true;
      watch->stats.told++;
      watch->cb(watch, &ended);
    }
  }
}

static void on_asked(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  belay_session_watch_t *watch = BELAY__CONTAINER(request, belay_session_watch_t, request);
  (void)cb;
  if (watch->closing) {
    go_on(watch, false);
  } else if (watch->batch == NULL) {
    if (answer->status != 0)
      fail(watch);
    else
      go_on(watch, false);
  } else {
    if (answer->status != 0) { /* of some it is not known: this is all for now */
      watch->stats.failed++;
      watch->batch->full = false;
      watch->wanted = 0;
    }
    tell_all(watch);
    settle(watch);
  }
}

static void on_settled(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  belay_session_watch_t *watch = BELAY__CONTAINER(request, belay_session_watch_t, request);
  (void)cb;
  watch->stats.failed += answer->status != 0;
  go_on(watch, answer->status == 0 && watch->batch->full);
}

static void on_timer(belay__timer_t *timer) {
  belay_session_watch_t *watch = BELAY__CONTAINER(timer, belay_session_watch_t, timer);
  uint64_t now = belay__now(host(watch));
  if (now >= watch->next_look) {
    watch->wanted = ALL;
    watch->next_look = now + watch->interval;
    watch->stats.looks++;
  }
  if (watch->wanted != 0)
    ask(watch);
  else
    rest(watch);
}

/* ---- hints --------------------------------------------------------------------------------------------- */

/* A key has expired: perhaps one of ours. */
static void on_hear(belay__ear_t *ear, belay__heard_t what, const char *data, size_t len,
                    int status) {
  belay_session_watch_t *watch = BELAY__CONTAINER(ear, belay_session_watch_t, ear);
  const belay__handle_t *handle = &watch->session->handle;
  (void)status;
  if (what != BELAY__HEARD_MESSAGE || len <= handle->prefix_len + 1 ||
      memcmp(data, handle->prefix, handle->prefix_len) != 0)
    return;
  const char *user = data + handle->prefix_len;
  size_t user_len = len - handle->prefix_len - 1;
  if (memchr(user, '}', user_len + 1) != user + user_len)
    return; /* what is beside a context */
  watch->stats.hints++;
  watch->wanted |= UINT32_C(1) << belay__session_shard_escaped(user, user_len);
  uint64_t soon = belay__now(host(watch)) + HINT_MS * BELAY__MS;
  if (watch->state == RESTING && soon < watch->next_look)
    belay__timer_set(host(watch), BELAY__RANK_OTHER, &watch->timer, soon);
}

/* A cluster's node tells of its own keys only, and on no channel that belongs to a slot. */
static int listen_to_hints(belay_session_watch_t *watch) {
  belay_client_t *client = watch->session->handle.client;
  if (client->node_ops->by_slots)
    return 0;
  char channel[48];
  int n = snprintf(channel, sizeof channel, "__keyevent@%d__:expired", client->db);
  return belay__listen(client, channel, (size_t)n, &watch->ear);
}

/* ---- the session's side -------------------------------------------------------------------------------- */

/* Begins to end, unless it has begun. What was told is still taken out. */
static void close_watch(belay_session_watch_t *watch) {
  if (watch->closing)
    return;
  watch->closing = true;
  belay__unlisten(&watch->ear);
  belay__timer_stop(host(watch), BELAY__RANK_OTHER, &watch->timer);
  if (watch->state == RESTING)
    go_on(watch, false);
  else if (watch->state == ASKING)
    (void)belay_request_cancel(&watch->request); /* or its end is known already, and told */
}

void belay__session_watches_close(belay_session_t *session) {
  for (belay__list_t *i = session->watches.next; i != &session->watches; i = i->next)
    close_watch(BELAY__CONTAINER(i, belay_session_watch_t, node));
}

void belay__session_watches_abort(belay_session_t *session) {
  for (belay__list_t *i = session->watches.next; i != &session->watches; i = i->next)
    (void)belay_request_cancel(&BELAY__CONTAINER(i, belay_session_watch_t, node)->request);
}

/* ---- a new one ----------------------------------------------------------------------------------------- */

void belay_session_watch_options_init(belay_session_watch_options_t *options) {
  if (options != NULL)
    *options = (belay_session_watch_options_t){.interval_ms = 1000, .hints = true};
}

int belay_session_watch(belay_session_t *session, const belay_session_watch_options_t *options,
                        belay_session_ended_cb cb, belay_session_watch_t **out) {
  belay_session_watch_options_t o;
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  int error = belay__handle_check((belay__handle_t *)session);
  if (error != 0)
    return error;
  belay_t *belay = session->handle.client->belay;
  belay_session_watch_options_init(&o);
  if (options != NULL)
    o = *options;
  error = belay__check_range(belay, "interval_ms", o.interval_ms, INTERVAL_MIN_MS, INTERVAL_MAX_MS);
  if (error == 0 && cb == NULL) {
    belay__detail(belay, "cb: NULL");
    return BELAY_EINVAL;
  }
  if (error != 0)
    return error;
  belay_session_watch_t *watch = belay__alloc(belay, sizeof *watch);
  if (watch == NULL)
    return BELAY_ENOMEM;
  *watch = (belay_session_watch_t){.session = session,
                                   .timer = {.fire = on_timer},
                                   .ear = {.hear = on_hear},
                                   .cb = cb,
                                   .data = o.data,
                                   .interval = o.interval_ms * BELAY__MS,
                                   .next_look = belay__now(belay)};
  belay__task_init(&watch->task, finish);
  error = o.hints ? listen_to_hints(watch) : 0;
  if (error != 0) {
    belay__free(belay, watch, sizeof *watch);
    return error;
  }
  belay__list_push(&session->watches, &watch->node);
  belay__handle_hold(&session->handle);
  belay__hold_loop(belay);
  rest(watch);
  *out = watch;
  return 0;
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

void belay_session_watch_stats(const belay_session_watch_t *watch,
                               belay_session_watch_stats_t *stats) {
  if (stats != NULL)
    *stats = watch == NULL ? (belay_session_watch_stats_t){0} : watch->stats;
}

void *belay_session_watch_data(const belay_session_watch_t *watch) {
  return watch == NULL ? NULL : watch->data;
}

int belay_session_watch_close(belay_session_watch_t *watch, belay_session_watch_close_cb cb) {
  int error = watch == NULL ? BELAY_EINVAL : belay__handle_check(&watch->session->handle);
  if (error == 0 && watch->closing)
    error = BELAY_ECLOSING;
  if (error != 0)
    return error;
  watch->close_cb = cb;
  close_watch(watch);
  return 0;
}
