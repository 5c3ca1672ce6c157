#include "core/request.h"

#include <assert.h>
#include <string.h>

#define TIMEOUT_MAX_MS INT64_C(600000)

typedef enum state {
  IDLE,    /* the caller's: new, or told */
  CALLING, /* started, or sent again */
  ENDED    /* answered, refused, lost, canceled; the task is queued */
} state_t;

/* What is in the caller's memory. */
typedef struct pending {
  belay__object_t object; /* of the client */
  belay__list_t owned;    /* in the list of an object; else alone */
  belay__task_t task;
  belay_client_t *client;
  belay__call_t *call; /* CALLING */
  const belay__request_ops_t *ops;
  void (*cb)(void);
  int64_t values[BELAY__REQUEST_VALUES];
  int status;
  uint8_t state;
  bool maybe; /* an answer was lost */
} __attribute__((may_alias)) pending_t;

#define ROOM sizeof(((belay_request_t *)NULL)->belay_private)
_Static_assert(sizeof(pending_t) <= ROOM, "a request has room for what it does");
_Static_assert(_Alignof(pending_t) <= _Alignof(belay_request_t), "and where it needs it");

static pending_t *pending_of(belay_request_t *request) {
  return (pending_t *)(void *)&request->belay_private;
}

static belay_request_t *request_of(pending_t *pending) {
  return BELAY__CONTAINER(pending, belay_request_t, belay_private);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static void on_task(belay__task_t *task) {
  pending_t *pending = BELAY__CONTAINER(task, pending_t, task);
  belay_client_t *client = pending->client;
  int64_t values[BELAY__REQUEST_VALUES] = {0};
  const belay__request_ops_t *ops = pending->ops;
  void (*cb)(void) = pending->cb;
  int status = pending->status;
  if (status == 0)
    memcpy(values, pending->values, sizeof values);
  pending->state = IDLE;
  belay__list_remove(&pending->owned);
  belay__client_remove(client, &pending->object);
  belay__free_loop(client->belay);
  belay__client_explain(client, status, NULL, 0);
  ops->tell(request_of(pending), cb, status, values);
}

static void end(pending_t *pending, int status) {
  pending->state = ENDED;
  pending->call = NULL;
  pending->status = status;
  belay__defer(pending->client->belay, &pending->task);
}

/* What is known already is told all the same. */
static void cancel(pending_t *pending) {
  if (pending->state != CALLING)
    return;
  (void)belay__call_abandon(pending->call);
  end(pending, BELAY_ECANCELED);
}

static void on_close(belay__object_t *object) {
  cancel(BELAY__CONTAINER(object, pending_t, object));
}

static const belay__object_ops_t object_ops = {.close = on_close, .abort = on_close};

/* ---- the call ------------------------------------------------------------------------------------------ */

static void on_done(belay__call_t *call, const belay__result_t *result);

/* An answer was lost: asks again if that does no harm and there is time. */
static bool ask_again(pending_t *pending, belay__call_t *call, int error) {
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
  pending_t *pending = call->owner;
  int status = result->error;
  bool maybe = pending->maybe; /* what is said of this time says nothing of the one before */
  assert(pending->state == CALLING && pending->call == call);
  switch (result->outcome) {
  case BELAY_OUTCOME_REPLY:
    status = pending->ops->read(result->reply, pending->values);
    if (status == BELAY_EPROTO)
      belay__call_distrust(call);
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

/* It was built for nothing. */
static int give_up(belay__call_t *call, int error) {
  (void)belay__call_abandon(call);
  return error;
}

int belay__request_start(belay_request_t *request, belay__call_t *call,
                         const belay__request_ops_t *ops, belay__list_t *owner_list,
                         void (*cb)(void)) {
  pending_t *pending = pending_of(request);
  belay_client_t *client = call->client;
  if (pending->state != IDLE)
    return give_up(call, BELAY_ESTATE);
  *pending = (pending_t){
      .object = {.ops = &object_ops}, .client = client, .ops = ops, .cb = cb, .call = call};
  belay__list_init(&pending->owned);
  belay__task_init(&pending->task, on_task);
  call->deadline = belay__after_ms(client->belay, belay__request_timeout_ms(client, request));
  call->done = on_done;
  call->owner = pending;
  pending->state = CALLING;
  int error = belay__call_send(&call, 1);
  if (error == BELAY_EBUSY || error == BELAY_ENOMEM) {
    pending->state = IDLE;
    return error;
  }
  if (owner_list != NULL)
    belay__list_push(owner_list, &pending->owned);
  belay__client_add(client, &pending->object);
  belay__hold_loop(client->belay);
  if (error != 0) /* the server does not let us in: that is an answer */
    end(pending, error);
  return 0;
}

/* ---- canceling ----------------------------------------------------------------------------------------- */

void belay__requests_cancel(belay__list_t *owner_list) {
  for (belay__list_t *node; (node = belay__list_pop(owner_list)) != NULL;)
    cancel(BELAY__CONTAINER(node, pending_t, owned));
}

void belay_request_init(belay_request_t *request) {
  if (request != NULL)
    memset(request, 0, sizeof *request);
}

int belay_cancel(belay_request_t *request) {
  if (request == NULL)
    return BELAY_EINVAL;
  pending_t *pending = pending_of(request);
  if (pending->state == IDLE)
    return BELAY_ESTATE;
  int error = belay__check(pending->client->belay);
  if (error != 0 && error != BELAY_ECLOSING)
    return error;
  cancel(pending);
  return 0;
}
