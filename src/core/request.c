#include "core/request.h"

#include <assert.h>
#include <string.h>

#define TIMEOUT_MAX_MS INT64_C(600000)

enum {
  IDLE,    /* the caller's: new, or told */
  PARKED,  /* begun; or answered, and the family waits for something */
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

/* It is nobody's any more. */
static void leave(belay__pending_t *pending) {
  pending->state = IDLE;
  belay__list_remove(&pending->owned);
  belay__client_remove(pending->client, &pending->object);
  belay__free_loop(pending->client->belay);
}

static void on_task(belay__task_t *task) {
  belay__pending_t *pending = BELAY__CONTAINER(task, belay__pending_t, task);
  const belay__request_ops_t *ops = pending->ops;
  void (*cb)(void) = pending->cb;
  belay__answer_t answer = {
      .client = pending->client, .context = pending->context, .status = pending->status};
  memcpy(answer.values, pending->values, sizeof answer.values);
  leave(pending);
  belay__client_explain(answer.client, answer.status, NULL, 0);
  ops->tell(belay__request_of(pending), cb, &answer);
}

static void end(belay__pending_t *pending, int status) {
  pending->state = ENDED;
  pending->call = NULL;
  pending->status = status;
  belay__defer(pending->client->belay, &pending->task);
}

void belay__request_end(belay__pending_t *pending, int status) {
  assert(pending->state == PARKED && !belay__timer_is_set(&pending->timer));
  end(pending, status);
}

void belay__request_forget(belay__pending_t *pending) {
  assert(pending->state == PARKED && !belay__timer_is_set(&pending->timer));
  leave(pending);
}

/* What is known already is told all the same. */
static void cancel(belay__pending_t *pending) {
  if (pending->state != CALLING && pending->state != PARKED)
    return;
  bool sent = pending->state == CALLING && belay__call_abandon(pending->call);
  if (pending->ops->left != NULL)
    pending->ops->left(pending, sent || pending->maybe);
  end(pending, BELAY_ECANCELED);
}

static void on_close(belay__object_t *object) {
  cancel(BELAY__CONTAINER(object, belay__pending_t, object));
}

static const belay__object_ops_t object_ops = {.close = on_close, .abort = on_close};

/* ---- the call ------------------------------------------------------------------------------------------ */

static void on_done(belay__call_t *call, const belay__result_t *result);

/* An answer was lost: asks again if that does no harm and there is time. */
static bool ask_again(belay__pending_t *pending, belay__call_t *call, int error) {
  belay_client_t *client = pending->client;
  if (!pending->ops->idempotent || error != BELAY_EUNKNOWN || client->closing ||
      belay__now(client->belay) >= call->deadline)
    return false;
  belay__call_t *copy = belay__call_copy(call);
  if (copy == NULL)
    return false;
  copy->done = on_done;
  if (belay__call_send(&copy, 1) != 0)
    return false;
  pending->call = copy;
  return true;
}

static void on_done(belay__call_t *call, const belay__result_t *result) {
  belay__pending_t *pending = call->owner;
  int status = result->error;
  bool maybe = pending->maybe; /* what is said of this time says nothing of the one before */
  assert(pending->state == CALLING && pending->call == call);
  switch (result->outcome) {
  case BELAY_OUTCOME_REPLY:
    pending->state = PARKED;
    pending->call = NULL;
    status = pending->ops->read(pending, call, result->reply);
    if (status == BELAY_EPROTO)
      belay__call_distrust(call);
    if (status == BELAY__REQUEST_PARK)
      return;
    break;
  case BELAY_OUTCOME_UNKNOWN:
    pending->maybe = true;
    if (ask_again(pending, call, status))
      return;
    break;
  case BELAY_OUTCOME_NOT_SENT:
  case BELAY_OUTCOME_REFUSED:
    break;
  }
  end(pending, maybe && status != 0 ? BELAY_EUNKNOWN : status);
}

int belay__request_check(belay_client_t *client, const belay_request_t *request) {
  if (request == NULL) {
    belay__detail(client->belay, "request: NULL");
    return BELAY_EINVAL;
  }
  int64_t ms = request->timeout_ms;
  if (ms != 0 && ms != BELAY_DEFAULT && (ms < 1 || ms > TIMEOUT_MAX_MS)) {
    belay__detail(client->belay, "timeout_ms: not from 1 to %lld", (long long)TIMEOUT_MAX_MS);
    return BELAY_EINVAL;
  }
  return 0;
}

int64_t belay__request_timeout_ms(const belay_client_t *client, const belay_request_t *request) {
  int64_t ms = request->timeout_ms;
  return ms == 0 || ms == BELAY_DEFAULT ? client->timeout_ms : ms;
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

int belay__request_send(belay__pending_t *pending, belay__call_t *call) {
  belay_client_t *client = pending->client;
  assert(pending->state == PARKED);
  if (call == NULL)
    return BELAY_ENOMEM;
  int64_t ms = belay__request_timeout_ms(client, belay__request_of(pending));
  call->deadline = pending->deadline != 0 ? pending->deadline : belay__after_ms(client->belay, ms);
  call->done = on_done;
  call->owner = pending;
  pending->call = call;
  pending->state = CALLING;
  int error = belay__call_send(&call, 1);
  if (error == BELAY_EBUSY || error == BELAY_ENOMEM) {
    pending->call = NULL;
    pending->state = PARKED;
    return error;
  }
  if (error != 0) /* the server does not let us in: that is an answer */
    end(pending, error);
  return 0;
}

int belay__request_start(belay_request_t *request, belay__call_t *call,
                         const belay__request_ops_t *ops, void *context, belay__list_t *owner_list,
                         void (*cb)(void)) {
  belay__pending_t *pending;
  int error = belay__request_begin(call->client, request, ops, context, owner_list, cb, &pending);
  if (error != 0) {
    (void)belay__call_abandon(call); /* it was built for nothing */
    return error;
  }
  error = belay__request_send(pending, call);
  if (error != 0)
    belay__request_forget(pending);
  return error;
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

int belay_cancel(belay_request_t *request) {
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
