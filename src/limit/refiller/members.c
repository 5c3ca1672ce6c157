/* The holders of places. The refiller reads the semaphore with a request of its own, and the
 * caller's request waits for it:
 *
 *    the caller's: PARKED --own request answered--> callback
 *                    |--canceled, the refiller closes--> callback; the own request is canceled, and freed when it ends */
#include <string.h>

#include "belay/semaphore.h"
#include "core/client/request.h"
#include "limit/refiller/refiller.h"

typedef struct question {
  belay_request_t request;
  belay_client_t *client;
  belay__operation_t *asker; /* Request of the caller; NULL: it was canceled */
  int64_t lease_ms;
} question_t;

enum { LIST, COUNT, SIZE }; /* values of the caller's request */

/* Copy the members with their labels behind them, because the callback runs later. NULL: memory
 * is out. */
static belay_refiller_member_t *copy(const question_t *question,
                                     const belay_semaphore_holder_t *holders, size_t n,
                                     size_t *size) {
  *size = 0;
  for (size_t i = 0; i < n; i++)
    *size += sizeof(belay_refiller_member_t) + strlen(holders[i].label) + 1;
  belay_refiller_member_t *list = belay__alloc(question->client->belay, *size);
  char *label = list == NULL ? NULL : (char *)&list[n];
  for (size_t i = 0; i < n && list != NULL; i++) {
    size_t len = strlen(holders[i].label) + 1;
    bool late = holders[i].remaining_ms < question->lease_ms / 2;
    memcpy(label, holders[i].label, len);
    list[i] =
        (belay_refiller_member_t){.label = label,
                                  .state = late ? BELAY_REFILLER_SUSPECT : BELAY_REFILLER_ELECTED,
                                  .remaining_ms = holders[i].remaining_ms};
    label += len;
  }
  return list;
}

static void on_holders(belay_request_t *request, int status,
                       const belay_semaphore_holder_t *holders, size_t n) {
  question_t *question = request->data;
  belay__operation_t *asker = question->asker;
  if (asker != NULL && status == 0 && n > 0) {
    size_t size;
    belay_refiller_member_t *list = copy(question, holders, n, &size);
    if (list == NULL)
      status = BELAY_ENOMEM;
    asker->values[LIST] = (int64_t)(intptr_t)list;
    asker->values[COUNT] = list == NULL ? 0 : (int64_t)n;
    asker->values[SIZE] = (int64_t)size;
  }
  if (asker != NULL)
    belay__request_end(asker, status);
  belay__free(question->client->belay, question, sizeof *question);
}

static void tell(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  static const belay_refiller_member_t nobody;
  belay_refiller_member_t *list = (void *)(intptr_t)answer->values[LIST];
  belay_t *belay = answer->client->belay;
  const belay_refiller_member_t *told = list == NULL ? &nobody : list;
  bool well = answer->status == 0;
  ((belay_refiller_members_cb)cb)(request, answer->status, well ? told : NULL,
                                  well ? (size_t)answer->values[COUNT] : 0);
  belay__free(belay, list, (size_t)answer->values[SIZE]);
}

static void left(belay__operation_t *operation, bool sent) {
  question_t *question = operation->context;
  (void)sent;
  question->asker = NULL;
  (void)belay_request_cancel(&question->request);
}

static const belay__request_ops_t ops = {.notify = tell, .left = left};

int belay_refiller_members(belay_refiller_t *refiller, belay_request_t *request,
                           belay_refiller_members_cb cb) {
  int error = belay__refiller_check(refiller);
  if (error != 0)
    return error;
  belay_client_t *client = refiller->client;
  if ((error = belay__request_check(client, request, cb != NULL)) != 0)
    return error;
  question_t *question = belay__alloc(client->belay, sizeof *question);
  if (question == NULL)
    return BELAY_ENOMEM;
  *question = (question_t){.request = {.data = question, .timeout_ms = request->timeout_ms},
                           .client = client,
                           .lease_ms = refiller->lease_ms};
  error = belay__request_begin(client, request, &ops, question, &refiller->requests,
                               (void (*)(void))cb, &question->asker);
  if (error == 0) {
    error = belay_semaphore_holders(client, &question->request,
                                    belay_bytes(refiller->election, refiller->election_len),
                                    on_holders);
    if (error != 0)
      belay__request_forget(question->asker);
  }
  if (error != 0)
    belay__free(client->belay, question, sizeof *question);
  return error;
}
