#include "core/client/request.h"
#include "core/client/lifecycle.h"

#include <assert.h>
#include <string.h>

#define FEW_CALLS ((size_t)8) /* that belay__request_send_each() keeps on the stack */
#define TIMEOUT_MAX_MS INT64_C(600000)

enum {
  IDLE,    /* the caller's: new, or told */
  PARKED,  /* begun; or answered, and the handle waits for something */
  CALLING, /* sent, or sent again */
  ENDED    /* answered, refused, lost, canceled; the task is queued */
};

#define ROOM sizeof(((belay_request_t *)NULL)->belay_private)
_Static_assert(sizeof(belay__pending_t) <= ROOM, "a request has room for what it does");
_Static_assert(_Alignof(belay__pending_t) <= _Alignof(belay_request_t), "and where it needs it");

static belay__pending_t *pending_of(belay_request_t *request) {
  return (belay__pending_t *)(void *)&request->belay_private;
}

belay_request_t *belay__request_of(belay__pending_t *pending) {
  return BELAY__CONTAINER(pending, belay_request_t, belay_private);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* It is nobody's any more, but for its room. */
static void leave(belay__pending_t *pending) {
  pending->state = IDLE;
  belay__list_remove(&pending->owned);
  belay__client_remove(pending->client, &pending->object);
  belay__free_loop(pending->client->belay);
}

/* Others may be refused before it is told: so what is said of this one is kept. */
static void keep_words(belay__pending_t *pending, int status) {
  belay_client_t *client = pending->client;
  if (status == 0 || status != client->refused.error || pending->words != NULL)
    return;
  pending->words = belay__alloc(client->belay, sizeof *pending->words);
  if (pending->words != NULL)
    *pending->words = client->refused;
}

/* Whoever ends because of this one ends with the same. */
static void tell_words(belay_client_t *client, int status, belay__refused_t *words) {
  client->belay->detail[0] = '\0';
  if (words == NULL)
    return;
  client->refused = *words;
  belay__client_explain(client, status, NULL, 0);
  belay__free(client->belay, words, sizeof *words);
}

static void on_task(belay__task_t *task) {
  belay__pending_t *pending = BELAY__CONTAINER(task, belay__pending_t, task);
  const belay__request_ops_t *ops = pending->ops;
  void (*cb)(void) = pending->cb;
  belay__answer_t answer = {
      .client = pending->client,
      .context = pending->context,
      .room = pending->room,
      .room_len = pending->room_len,
      .status = pending->status,
  };
  memcpy(answer.values, pending->values, sizeof answer.values);
  belay__refused_t *words = pending->words;
  leave(pending);
  tell_words(answer.client, answer.status, words);
  ops->tell(belay__request_of(pending), cb, &answer);
  belay__free(answer.client->belay, answer.room, answer.room_len);
}

static void end(belay__pending_t *pending, int status) {
  pending->state = ENDED;
  pending->status = (int16_t)status;
  keep_words(pending, status);
  belay__defer(pending->client->belay, &pending->task);
}

void belay__request_end(belay__pending_t *pending, int status) {
  assert(pending->state == PARKED && !belay__timer_is_set(&pending->timer));
  end(pending, status);
}

void belay__request_forget(belay__pending_t *pending) {
  assert(pending->state == PARKED && !belay__timer_is_set(&pending->timer));
  belay__free(pending->client->belay, pending->room, pending->room_len);
  leave(pending);
}

int belay__request_begun(belay__pending_t *pending, int error) {
  if (error != 0)
    belay__request_forget(pending);
  return error;
}

static belay__call_t **slots(belay__pending_t *pending) {
  return pending->calls_len > 1 ? pending->calls : &pending->call;
}

/* None of its calls is open. */
static void drop_calls(belay__pending_t *pending) {
  if (pending->calls_len > 1)
    belay__free(pending->client->belay, pending->calls,
                pending->calls_len * sizeof(belay__call_t *));
  pending->call = NULL;
  pending->calls_len = pending->calls_open = 0;
}

/* Whether any of them may be executed. */
static bool abandon_calls(belay__pending_t *pending) {
  bool sent = false;
  for (uint32_t i = 0; i < pending->calls_len; i++)
    sent |= belay__call_cancel(&slots(pending)[i]);
  drop_calls(pending);
  return sent;
}

/* What is known already is told all the same. */
static void cancel(belay__pending_t *pending) {
  if (pending->state != CALLING && pending->state != PARKED)
    return;
  bool sent = abandon_calls(pending);
  if (pending->ops->left != NULL)
    pending->ops->left(pending, sent || pending->maybe);
  end(pending, BELAY_ECANCELED);
}

static void on_close(belay__object_t *object) {
  cancel(BELAY__CONTAINER(object, belay__pending_t, object));
}

static const belay__object_ops_t object_ops = {.close = on_close, .abort = on_close};

/* ---- the calls ----------------------------------------------------------------------------------------- */

static void on_done_again(belay__call_t *call, const belay__result_t *result);

/* An answer was lost: asks again if that does no harm and there is time. */
static bool ask_again(belay__pending_t *pending, belay__call_t *call, int error) {
  belay_client_t *client = pending->client;
  if (!pending->ops->idempotent || error != BELAY_EUNKNOWN || client->closing ||
      belay__now(client->belay) >= call->deadline)
    return false;
  belay__call_t *copy = belay__call_copy(call);
  return belay__call_start(call->place, copy, on_done_again, pending) == 0;
}

/* Of those that were sent together one is over. */
static void over(belay__pending_t *pending) {
  if (--pending->calls_open > 0)
    return;
  drop_calls(pending);
  pending->state = PARKED;
}

/* What two ends are together: that something is not known outweighs why something else was refused. */
static int both(int first, int second) {
  return first == 0 || (second == BELAY_EUNKNOWN && first != 0) ? second : first;
}

/* How a call ended of which it is not known what it did. That a script was stopped halfway is no refusal; the words are told
 * all the same. */
static int not_known(const belay__pending_t *pending, int error) {
  if (error != BELAY_EREFUSED)
    return error;
  if (pending->client->refused.error == error)
    pending->client->refused.error = BELAY_EUNKNOWN;
  return BELAY_EUNKNOWN;
}

/* All that was asked is over. */
static void end_of_step(belay__pending_t *pending) {
  int status = pending->status;
  if (status == 0 && pending->ops->next != NULL) {
    pending->maybe = false;
    status = pending->ops->next(pending);
  } else if (status != 0 && pending->ops->recover != NULL) {
    status = pending->ops->recover(pending, status);
  }
  if (status != BELAY__REQUEST_PARK)
    end(pending, status);
}

/* A call ended. again: it was sent again, and what became of the first time is not known. */
static void end_of_call(belay__call_t *call, const belay__result_t *result, bool again) {
  belay__pending_t *pending = call->owner;
  int status = result->error;
  /* What is said of this time says nothing of the one before; nor, of several that were sent together, of the others. */
  bool maybe = again || (pending->maybe && pending->calls_len == 1);
  assert(pending->state == CALLING);
  pending->index = (uint32_t)(call->place - slots(pending));
  switch (result->outcome) {
  case BELAY_OUTCOME_REPLY:
    over(pending);
    status = pending->ops->read(pending, call, result->reply);
    if (status == BELAY_EPROTO)
      belay__call_distrust(call, result->reply);
    if (status == BELAY__REQUEST_PARK)
      return;
    break;
  case BELAY_OUTCOME_UNKNOWN:
    pending->maybe = true;
    if (ask_again(pending, call, status))
      return;
    over(pending);
    status = not_known(pending, status);
    break;
  case BELAY_OUTCOME_NOT_SENT:
  case BELAY_OUTCOME_REFUSED:
    over(pending);
    break;
  }
  if (status != 0 && maybe)
    status = BELAY_EUNKNOWN;
  if (status != 0 && pending->ops->failed != NULL)
    pending->ops->failed(pending, status);
  if (pending->status == 0)
    keep_words(pending, status);
  pending->status = (int16_t)both(pending->status, status);
  if (pending->state == PARKED)
    end_of_step(pending);
}

static void on_done(belay__call_t *call, const belay__result_t *result) {
  end_of_call(call, result, false);
}

static void on_done_again(belay__call_t *call, const belay__result_t *result) {
  end_of_call(call, result, true);
}

int belay__request_check(belay_client_t *client, const belay_request_t *request, bool has_cb) {
  if (request == NULL)
    return belay__invalid(client->belay, "request: NULL");
  int64_t ms = request->timeout_ms;
  if (ms != 0 && ms != BELAY_DEFAULT && (ms < 1 || ms > TIMEOUT_MAX_MS))
    return belay__invalid(client->belay, "timeout_ms: not from 1 to %lld",
                          (long long)TIMEOUT_MAX_MS);
  if (!has_cb)
    return belay__invalid(client->belay, "cb: NULL");
  return 0;
}

int64_t belay__request_timeout_ms(const belay_client_t *client, const belay_request_t *request) {
  int64_t ms = request->timeout_ms;
  return ms == 0 || ms == BELAY_DEFAULT ? client->timeout_ms : ms;
}

int64_t belay__request_keep_ms(const belay_client_t *client, const belay_request_t *request,
                               int64_t least_ms) {
  int64_t ms = belay__request_timeout_ms(client, request);
  ms += ms / 100 + 2;
  return ms > least_ms ? ms : least_ms;
}

int belay__request_begin(belay_client_t *client, belay_request_t *request,
                         const belay__request_ops_t *ops, void *context, belay__list_t *owner_list,
                         void (*cb)(void), belay__pending_t **out) {
  belay__pending_t *pending = pending_of(request);
  if (pending->state != IDLE)
    return BELAY_ESTATE;
  *pending = (belay__pending_t){.object = {.ops = &object_ops},
                                .client = client,
                                .ops = ops,
                                .cb = cb,
                                .context = context,
                                .state = PARKED};
  belay__list_init(&pending->owned);
  belay__list_init(&pending->queued);
  belay__task_init(&pending->task, on_task);
  if (owner_list != NULL)
    belay__list_push(owner_list, &pending->owned);
  belay__client_add(client, &pending->object);
  belay__hold_loop(client->belay);
  *out = pending;
  return 0;
}

static bool are_made(belay__call_t *const *calls, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (calls[i] == NULL)
      return false;
  return true;
}

static bool make_slots(belay__pending_t *pending, size_t n) {
  if (n > 1) {
    belay__call_t **calls = belay__alloc(pending->client->belay, n * sizeof(belay__call_t *));
    if (calls == NULL)
      return false;
    memset(calls, 0, n * sizeof(belay__call_t *));
    pending->calls = calls;
  }
  pending->calls_len = pending->calls_open = (uint32_t)n;
  return true;
}

int belay__request_send_all(belay__pending_t *pending, belay__call_t **calls, size_t n) {
  belay_client_t *client = pending->client;
  assert(pending->state == PARKED && n > 0 && n <= UINT32_MAX);
  assert(!pending->ops->joined || !pending->ops->idempotent);
  uint64_t deadline = pending->deadline;
  if (deadline == 0) {
    int64_t ms = belay__request_timeout_ms(client, belay__request_of(pending));
    deadline = belay__after_ms(client->belay, ms);
    if (pending->ops->next != NULL)
      pending->deadline = deadline; /* of all of its steps */
  }
  if (!are_made(calls, n) || !make_slots(pending, n)) {
    belay__calls_discard(calls, n);
    return BELAY_ENOMEM;
  }
  for (size_t i = 0; i < n; i++) {
    calls[i]->deadline = deadline;
    calls[i]->done = on_done;
    calls[i]->owner = pending;
    calls[i]->place = &slots(pending)[i];
    calls[i]->fail_fast = pending->fail_fast;
  }
  pending->status = 0;
  pending->state = CALLING;
  int error = (pending->ops->joined ? belay__call_send : belay__call_send_apart)(calls, n);
  if (error == 0)
    return 0;
  drop_calls(pending);
  pending->state = PARKED;
  if (error == BELAY_EBUSY || error == BELAY_ENOMEM)
    return error;
  pending->status = (int16_t)error; /* the server does not let us in: that is an answer */
  end_of_step(pending);
  return 0;
}

int belay__request_send(belay__pending_t *pending, belay__call_t *call) {
  return belay__request_send_all(pending, &call, 1);
}

int belay__request_send_each(belay__pending_t *pending, size_t n, belay__make_call_fn make,
                             const void *arg) {
  belay_t *belay = pending->client->belay;
  belay__call_t *few[FEW_CALLS], **calls = few;
  size_t size = n * sizeof(belay__call_t *);
  if (n > FEW_CALLS && (calls = belay__alloc(belay, size)) == NULL)
    return BELAY_ENOMEM;
  for (size_t i = 0; i < n; i++)
    calls[i] = make(pending, i, arg);
  int error = belay__request_send_all(pending, calls, n);
  if (calls != few)
    belay__free(belay, calls, size);
  return error;
}

void *belay__request_room(belay__pending_t *pending, size_t size) {
  assert(pending->room == NULL && size > 0);
  void *room = belay__alloc(pending->client->belay, size);
  if (room == NULL)
    return NULL;
  pending->room = memset(room, 0, size);
  pending->room_len = size;
  return room;
}

int belay__request_keep(belay__pending_t *pending, belay__reply_t *const *items, size_t n) {
  size_t size = n * sizeof(belay_bytes_t);
  for (size_t i = 0; i < n; i++) {
    if (items[i]->type != BELAY__REPLY_STRING)
      return BELAY_EPROTO;
    size += items[i]->len;
  }
  belay_bytes_t *kept = n == 0 ? NULL : belay__request_room(pending, size);
  if (kept == NULL)
    return n == 0 ? 0 : BELAY_ENOMEM;
  char *at = (char *)(kept + n);
  for (size_t i = 0; i < n; i++) {
    kept[i] = (belay_bytes_t){.data = at, .len = items[i]->len};
    if (items[i]->len > 0)
      memcpy(at, items[i]->str, items[i]->len);
    at += items[i]->len;
  }
  return 0;
}

int belay__request_start(belay_request_t *request, belay__call_t *call,
                         const belay__request_ops_t *ops, void *context, belay__list_t *owner_list,
                         void (*cb)(void)) {
  belay__pending_t *pending;
  int error = belay__request_begin(call->client, request, ops, context, owner_list, cb, &pending);
  if (error != 0) {
    belay__calls_discard(&call, 1);
    return error;
  }
  return belay__request_begun(pending, belay__request_send(pending, call));
}

/* ---- callbacks ----------------------------------------------------------------------------------------- */

void belay__request_tell_status(belay_request_t *request, void (*cb)(void),
                                const belay__answer_t *answer) {
  ((void (*)(belay_request_t *, int))cb)(request, answer->status);
}

void belay__request_tell_count(belay_request_t *request, void (*cb)(void),
                               const belay__answer_t *answer) {
  int64_t count = answer->status == 0 ? answer->values[0] : 0;
  ((void (*)(belay_request_t *, int, int64_t))cb)(request, answer->status, count);
}

/* ---- canceling ----------------------------------------------------------------------------------------- */

void belay__requests_cancel(belay__list_t *owner_list) {
  for (belay__list_t *node; (node = belay__list_pop(owner_list)) != NULL;)
    cancel(BELAY__CONTAINER(node, belay__pending_t, owned));
}

void belay_request_init(belay_request_t *request) {
  if (request != NULL)
    memset(request, 0, sizeof *request);
}

int belay_request_cancel(belay_request_t *request) {
  if (request == NULL)
    return BELAY_EINVAL;
  belay__pending_t *pending = pending_of(request);
  if (pending->state == IDLE)
    return BELAY_ESTATE;
  int error = belay__check(pending->client->belay);
  if (error != 0 && error != BELAY_ECLOSING)
    return error;
  cancel(pending);
  return 0;
}
