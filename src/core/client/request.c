#include "core/client/request.h"
#include "core/client/lifecycle.h"

#include <assert.h>
#include <string.h>

#define FEW_CALLS ((size_t)8) /* calls that belay__request_send_each() keeps on the stack */
#define TIMEOUT_MAX_MS INT64_C(600000)
#define POOLED_ROOM ((size_t)384) /* Bytes of a block in client->rooms */

enum {
  IDLE,    /* owned by the caller: new, or its callback has run */
  PARKED,  /* begun; or answered, and the handle waits for another event */
  CALLING, /* sent, or sent again */
  ENDED    /* answered, refused, lost or canceled; the task is queued */
};

#define ROOM sizeof(((belay_request_t *)NULL)->belay_private)
_Static_assert(sizeof(belay__operation_t) <= ROOM, "belay_private has room for an operation");
_Static_assert(_Alignof(belay__operation_t) <= _Alignof(belay_request_t),
               "belay_private is aligned for an operation");

static belay__operation_t *operation_of(belay_request_t *request) {
  return (belay__operation_t *)(void *)&request->belay_private;
}

belay_request_t *belay__request_of(belay__operation_t *operation) {
  return BELAY__CONTAINER(operation, belay_request_t, belay_private);
}

/* ---- rooms ---- */

void *belay__request_room(belay__operation_t *operation, size_t size) {
  belay_client_t *client = operation->client;
  assert(operation->room == NULL && size > 0);
  operation->room = size > POOLED_ROOM
                        ? belay__alloc(client->belay, size)
                        : belay__pool_take(client->belay, &client->rooms, POOLED_ROOM);
  if (operation->room == NULL)
    return NULL;
  operation->room_len = size;
  return memset(operation->room, 0, size);
}

static void free_room(belay_client_t *client, void *room, size_t len) {
  if (len > POOLED_ROOM)
    belay__free(client->belay, room, len);
  else if (room != NULL)
    belay__pool_give(client->belay, &client->rooms, room, POOLED_ROOM);
}

/* ---- the end ---- */

/* Return the memory of the request to the caller; the room stays until the callback has run. */
static void return_to_caller(belay__operation_t *operation) {
  operation->state = IDLE;
  belay__list_remove(&operation->owned);
  belay__client_remove(operation->client, &operation->object);
  belay__free_loop(operation->client->belay);
}

/* Keep the text of the client's last refusal for the callback, if the refusal has this status.
 * Before the callback runs, another refusal may become the last one. */
static void keep_words(belay__operation_t *operation, int status) {
  belay_client_t *client = operation->client;
  if (status == 0 || status != client->refused.error || operation->words != NULL)
    return;
  operation->words = belay__alloc(client->belay, sizeof *operation->words);
  if (operation->words != NULL)
    *operation->words = client->refused;
}

/* Make the kept text the client's last refusal again, and set belay_detail(). So requests that end
 * because of this one report the same text. */
static void restore_words(belay_client_t *client, int status, belay__refused_t *words) {
  client->belay->detail[0] = '\0';
  if (words == NULL)
    return;
  client->refused = *words;
  belay__client_explain(client, status, NULL, 0);
  belay__free(client->belay, words, sizeof *words);
}

static void on_task(belay__task_t *task) {
  belay__operation_t *operation = BELAY__CONTAINER(task, belay__operation_t, task);
  const belay__request_ops_t *ops = operation->ops;
  void (*cb)(void) = operation->cb;
  belay__answer_t answer = {
      .client = operation->client,
      .context = operation->context,
      .room = operation->room,
      .room_len = operation->room_len,
      .status = operation->status,
  };
  memcpy(answer.values, operation->values, sizeof answer.values);
  belay__refused_t *words = operation->words;
  return_to_caller(operation);
  restore_words(answer.client, answer.status, words);
  ops->notify(belay__request_of(operation), cb, &answer);
  free_room(answer.client, answer.room, answer.room_len);
}

static void end_request(belay__operation_t *operation, int status) {
  operation->state = ENDED;
  operation->status = (int16_t)status;
  keep_words(operation, status);
  belay__defer(operation->client->belay, &operation->task);
}

void belay__request_end(belay__operation_t *operation, int status) {
  assert(operation->state == PARKED && !belay__timer_is_set(&operation->timer));
  end_request(operation, status);
}

void belay__request_forget(belay__operation_t *operation) {
  assert(operation->state == PARKED && !belay__timer_is_set(&operation->timer));
  free_room(operation->client, operation->room, operation->room_len);
  return_to_caller(operation);
}

int belay__request_begun(belay__operation_t *operation, int error) {
  if (error != 0)
    belay__request_forget(operation);
  return error;
}

static belay__call_t **slots(belay__operation_t *operation) {
  return operation->calls_len > 1 ? operation->calls : &operation->call;
}

/* Forget the calls; none is open. */
static void drop_calls(belay__operation_t *operation) {
  if (operation->calls_len > 1)
    belay__free(operation->client->belay, operation->calls,
                operation->calls_len * sizeof(belay__call_t *));
  operation->call = NULL;
  operation->calls_len = operation->calls_open = 0;
}

/* Abandon the calls. Returns true if the server may have executed one of them, or may still do
 * so. */
static bool abandon_calls(belay__operation_t *operation) {
  bool sent = false;
  if (operation->calls_len == 0)
    return false;
  for (uint32_t i = 0; i < operation->calls_len; i++)
    sent |= belay__call_cancel(&slots(operation)[i]);
  drop_calls(operation);
  return sent;
}

/* Cancel the request. If its result is known already, the callback gets that result. */
static void cancel_request(belay__operation_t *operation) {
  if (operation->state != CALLING && operation->state != PARKED)
    return;
  bool sent = abandon_calls(operation);
  if (operation->ops->left != NULL)
    operation->ops->left(operation, sent || operation->reply_lost);
  end_request(operation, BELAY_ECANCELED);
}

static void on_close(belay__object_t *object) {
  cancel_request(BELAY__CONTAINER(object, belay__operation_t, object));
}

static const belay__object_ops_t object_ops = {.close = on_close, .abort = on_close};

/* ---- the calls ---- */

static void on_done_again(belay__call_t *call, const belay__result_t *result);

/* Send a call again whose reply was lost. Returns false if the request is not idempotent, the
 * client closes, the deadline has passed, or the copy cannot be sent. */
static bool send_again(belay__operation_t *operation, belay__call_t *call, int error) {
  belay_client_t *client = operation->client;
  if (!operation->ops->idempotent || error != BELAY_EUNKNOWN || client->closing ||
      belay__now(client->belay) >= call->deadline)
    return false;
  belay__call_t *copy = belay__call_copy(call);
  return belay__call_start(call->place, copy, on_done_again, operation) == 0;
}

/* Note that one call of a step has ended. After the last one, the request is PARKED. */
static void end_one_call(belay__operation_t *operation) {
  if (--operation->calls_open > 0)
    return;
  drop_calls(operation);
  operation->state = PARKED;
}

/* Return the common status of two calls: BELAY_EUNKNOWN if one of them has it, otherwise the first
 * error, otherwise 0. */
static int common_status(int first, int second) {
  return first == 0 || (second == BELAY_EUNKNOWN && first != 0) ? second : first;
}

int belay__request_unknown(belay_client_t *client, int error) {
  if (error != BELAY_EREFUSED)
    return error;
  if (client->refused.error == error)
    client->refused.error = BELAY_EUNKNOWN;
  return BELAY_EUNKNOWN;
}

/* All calls of the step have ended: run ops->next after a success, ops->recover after an error.
 * Then end the request, unless they return BELAY__REQUEST_PARK. */
static void end_of_step(belay__operation_t *operation) {
  int status = operation->status;
  if (status == 0 && operation->ops->next != NULL) {
    operation->reply_lost = false;
    status = operation->ops->next(operation);
  } else if (status != 0 && operation->ops->recover != NULL) {
    status = operation->ops->recover(operation, status);
  }
  if (status != BELAY__REQUEST_PARK)
    end_request(operation, status);
}

/* Handle the end of a call: read the reply, or send the call again. After the last call of a step,
 * end the step. again: the call was a second attempt, and the effect of the first one is
 * unknown. */
static void end_of_call(belay__call_t *call, const belay__result_t *result, bool again) {
  belay__operation_t *operation = call->owner;
  int status = result->error;
  /* true if the server may have executed an earlier attempt: an error of this attempt says nothing
   * about that one. With several calls, reply_lost may be about another call. */
  bool may_have_run = again || (operation->reply_lost && operation->calls_len == 1);
  assert(operation->state == CALLING);
  operation->index = (uint32_t)(call->place - slots(operation));
  switch (result->outcome) {
  case BELAY_OUTCOME_REPLY:
    end_one_call(operation);
    status = operation->ops->read(operation, call, result->reply);
    if (status == BELAY_EPROTO)
      belay__call_distrust(call, result->reply);
    if (status == BELAY__REQUEST_PARK)
      return;
    break;
  case BELAY_OUTCOME_UNKNOWN:
    operation->reply_lost = true;
    if (send_again(operation, call, status))
      return;
    end_one_call(operation);
    status = belay__request_unknown(operation->client, status);
    break;
  case BELAY_OUTCOME_NOT_SENT:
  case BELAY_OUTCOME_REFUSED:
    end_one_call(operation);
    break;
  }
  if (status != 0 && may_have_run)
    status = BELAY_EUNKNOWN;
  if (status != 0 && operation->ops->failed != NULL)
    operation->ops->failed(operation, status);
  if (operation->status == 0)
    keep_words(operation, status);
  operation->status = (int16_t)common_status(operation->status, status);
  if (operation->state == PARKED)
    end_of_step(operation);
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
                         void (*cb)(void), belay__operation_t **out) {
  belay__operation_t *operation = operation_of(request);
  if (operation->state != IDLE)
    return BELAY_ESTATE;
  *operation = (belay__operation_t){.object = {.ops = &object_ops},
                                    .client = client,
                                    .ops = ops,
                                    .cb = cb,
                                    .context = context,
                                    .state = PARKED};
  belay__list_init(&operation->owned);
  belay__list_init(&operation->queued);
  belay__task_init(&operation->task, on_task);
  if (owner_list != NULL)
    belay__list_push(owner_list, &operation->owned);
  belay__client_add(client, &operation->object);
  belay__hold_loop(client->belay);
  *out = operation;
  return 0;
}

static bool make_slots(belay__operation_t *operation, size_t n) {
  if (n > 1) {
    belay__call_t **calls = belay__alloc(operation->client->belay, n * sizeof(belay__call_t *));
    if (calls == NULL)
      return false;
    memset(calls, 0, n * sizeof(belay__call_t *));
    operation->calls = calls;
  }
  operation->calls_len = operation->calls_open = (uint32_t)n;
  return true;
}

int belay__request_send_all(belay__operation_t *operation, belay__call_t **calls, size_t n) {
  belay_client_t *client = operation->client;
  assert(operation->state == PARKED && n > 0 && n <= UINT32_MAX);
  assert(!operation->ops->joined || !operation->ops->idempotent);
  uint64_t deadline = operation->deadline;
  if (deadline == 0) {
    int64_t ms = belay__request_timeout_ms(client, belay__request_of(operation));
    deadline = belay__after_ms(client->belay, ms);
    if (operation->ops->next != NULL)
      operation->deadline = deadline; /* for all steps */
  }
  bool are_made = true;
  for (size_t i = 0; i < n; i++)
    are_made &= calls[i] != NULL;
  if (!are_made || !make_slots(operation, n)) {
    belay__calls_discard(calls, n);
    return BELAY_ENOMEM;
  }
  for (size_t i = 0; i < n; i++) {
    calls[i]->deadline = deadline;
    calls[i]->done = on_done;
    calls[i]->owner = operation;
    calls[i]->place = &slots(operation)[i];
    calls[i]->fail_fast = operation->fail_fast;
  }
  operation->status = 0;
  operation->state = CALLING;
  int error = belay__call_send(calls, n, operation->ops->joined);
  if (error == 0)
    return 0;
  drop_calls(operation);
  operation->state = PARKED;
  if (error == BELAY_EBUSY || error == BELAY_ENOMEM)
    return error;
  operation->status = (int16_t)error; /* the step ends with this error */
  end_of_step(operation);
  return 0;
}

int belay__request_send(belay__operation_t *operation, belay__call_t *call) {
  return belay__request_send_all(operation, &call, 1);
}

int belay__request_send_each(belay__operation_t *operation, size_t n, belay__make_call_fn make,
                             const void *arg) {
  belay_t *belay = operation->client->belay;
  belay__call_t *few[FEW_CALLS], **calls = few;
  size_t size = n * sizeof(belay__call_t *);
  if (n > FEW_CALLS && (calls = belay__alloc(belay, size)) == NULL)
    return BELAY_ENOMEM;
  for (size_t i = 0; i < n; i++)
    calls[i] = make(operation, i, arg);
  int error = belay__request_send_all(operation, calls, n);
  if (calls != few)
    belay__free(belay, calls, size);
  return error;
}

int belay__request_keep(belay__operation_t *operation, belay__reply_t *const *items, size_t n) {
  size_t size = n * sizeof(belay_bytes_t);
  for (size_t i = 0; i < n; i++) {
    if (items[i]->type != BELAY__REPLY_STRING)
      return BELAY_EPROTO;
    size += items[i]->len;
  }
  belay_bytes_t *kept = n == 0 ? NULL : belay__request_room(operation, size);
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
  belay__operation_t *operation;
  int error = belay__request_begin(call->client, request, ops, context, owner_list, cb, &operation);
  if (error != 0) {
    belay__calls_discard(&call, 1);
    return error;
  }
  return belay__request_begun(operation, belay__request_send(operation, call));
}

/* ---- callbacks ---- */

void belay__request_notify_status(belay_request_t *request, void (*cb)(void),
                                  const belay__answer_t *answer) {
  ((void (*)(belay_request_t *, int))cb)(request, answer->status);
}

void belay__request_notify_count(belay_request_t *request, void (*cb)(void),
                                 const belay__answer_t *answer) {
  int64_t count = answer->status == 0 ? answer->values[0] : 0;
  ((void (*)(belay_request_t *, int, int64_t))cb)(request, answer->status, count);
}

/* ---- canceling ---- */

void belay__requests_cancel(belay__list_t *owner_list) {
  for (belay__list_t *node; (node = belay__list_pop(owner_list)) != NULL;)
    cancel_request(BELAY__CONTAINER(node, belay__operation_t, owned));
}

void belay_request_init(belay_request_t *request) {
  if (request != NULL)
    memset(request, 0, sizeof *request);
}

int belay_request_cancel(belay_request_t *request) {
  if (request == NULL)
    return BELAY_EINVAL;
  belay__operation_t *operation = operation_of(request);
  if (operation->state == IDLE)
    return BELAY_ESTATE;
  int error = belay__check(operation->client->belay);
  if (error != 0 && error != BELAY_ECLOSING)
    return error;
  cancel_request(operation);
  return 0;
}
