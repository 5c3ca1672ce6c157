/* Tokens on credit: reservations, and requests that wait for the time of their reservation.
 *
 *    a wait:  CALLING --reserved--> PARKED until its time --> callback
 *                |                    |
 *                +---cancel, close----+--> the reservation is given back, callback
 *
 * The time of a wait is the time of its reservation. A wait that is admitted at once is not PARKED.
 * PARKED waits of one key and handle end in the order of their times by the server's clock. Replies
 * take different times to arrive, so the local timers could give another order. When the time of
 * one wait has come, all PARKED waits with earlier times end before it. */
#include "limit/request.h"
#include "limit/token_lease.h"

#define WAIT_MAX_US (INT64_C(86400) * 1000000)

/* ---- the queue of a key ---- */

struct belay__limit_queue {
  belay__keyed_t keyed; /* First; in limiter->queues */
  size_t waiting;       /* Number of waits, CALLING and PARKED */
  belay__list_t parked; /* PARKED waits, in the order of their times */
};

/* Count one more wait in the queue of the key, and create the queue if there is none. Returns 0,
 * BELAY_EBUSY (max_waiting is reached) or BELAY_ENOMEM. */
static int join_queue(belay_limiter_t *limiter, belay_bytes_t key, belay__limit_queue_t **out) {
  belay_t *belay = belay__limiter_belay(limiter);
  uint64_t hash = belay__table_hash(belay, &limiter->queues, key.data, key.len);
  belay__limit_queue_t *queue = belay__keyed_find(&limiter->queues, hash, key.data, key.len);
  if ((queue != NULL ? queue->waiting : 0) >= limiter->options.max_waiting)
    return BELAY_EBUSY;
  if (queue == NULL) {
    queue = belay__keyed_new(belay, &limiter->queues, hash, sizeof *queue, key.data, key.len);
    if (queue == NULL)
      return BELAY_ENOMEM;
    belay__list_init(&queue->parked);
  }
  queue->waiting++;
  limiter->stats.waiting++;
  *out = queue;
  return 0;
}

static void leave_queue(belay_limiter_t *limiter, belay__limit_queue_t *queue) {
  limiter->stats.waiting--;
  if (--queue->waiting > 0)
    return;
  belay__table_remove(&limiter->queues, &queue->keyed.entry);
  belay__keyed_free(belay__limiter_belay(limiter), &queue->keyed);
}

/* ---- a wait ---- */

/* Return the microseconds for which the server must remember a reservation or its cancel, so that a
 * resent call finds the reservation. */
static int64_t remembered_us(const belay_limiter_t *limiter, const belay_request_t *request) {
  return belay__request_keep_ms(limiter->handle.client, request, 0) * 1000;
}

static belay__operation_t *parked_at(belay__list_t *node) {
  return BELAY__CONTAINER(node, belay__operation_t, queued);
}

/* The time of a reservation, by the server's clock. */
static int64_t act_of(belay__operation_t *operation) {
  const belay__limit_op_t *op = belay__limit_op_of(operation);
  return op->numbers.at + op->numbers.answer;
}

static void unpark(belay__operation_t *operation) {
  belay__list_remove(&operation->queued);
  belay__timer_stop(operation->client->belay, BELAY__RANK_OTHER, &operation->timer);
}

/* End the PARKED waits whose time is at most `act` by the server's clock. */
static void end_waits_until(belay__limit_queue_t *queue, int64_t act) {
  while (!belay__list_empty(&queue->parked)) {
    belay__operation_t *operation = parked_at(queue->parked.next);
    if (act_of(operation) > act)
      break;
    unpark(operation);
    belay__request_end(operation, 0);
  }
}

static void on_time(belay__timer_t *timer) {
  belay__operation_t *operation = BELAY__CONTAINER(timer, belay__operation_t, timer);
  end_waits_until(belay__limit_op_of(operation)->queue, act_of(operation));
}

static int read_wait(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  int error = belay__limiter_read(operation, call, reply);
  const belay__limit_op_t *op = belay__limit_op_of(operation);
  belay__list_t *parked = &op->queue->parked, *after = parked->prev;
  if (error == 0 && op->numbers.answer == 0 &&
      !operation->reply_lost) /* after a lost reply, 0 can mean that the time is over */
    end_waits_until(op->queue, op->numbers.at);
  if (error != 0 || op->numbers.answer <= 0)
    return error;
  while (after != parked && act_of(parked_at(after)) > act_of(operation))
    after = after->prev;
  belay__list_insert_before(after->next, &operation->queued);
  belay_t *belay = operation->client->belay;
  operation->timer.fire = on_time;
  belay__timer_set(belay, BELAY__RANK_OTHER, &operation->timer,
                   belay__now(belay) + (uint64_t)op->numbers.answer * 1000);
  return BELAY__REQUEST_PARK;
}

/* Build the command that cancels a reservation, and forget the cached denials of the key. */
static belay__limit_command_t cancel_command(belay_limiter_t *limiter,
                                             const belay_request_t *request, belay_bytes_t key,
                                             const belay_reservation_t *reservation) {
  belay__limit_command_t command = {
      .verb = BELAY__LIMITER_CANCEL, .key = key, .reservation = reservation};
  belay__limit_command_number(&command, remembered_us(limiter, request));
  belay__token_lease_before(limiter, &command);
  return command;
}

/* Give back the reservation of a request that no longer waits. The server may execute the reserve
 * after this cancel; the script then denies it. */
static void give_back(belay_limiter_t *limiter, const belay_request_t *request,
                      const belay__limit_op_t *op) {
  if (limiter->policy->limits_len == 0)
    return;
  const belay__keyed_t *key = &op->queue->keyed;
  const belay__limit_command_t command =
      cancel_command(limiter, request, belay_bytes(key->key, key->key_len), &op->reservation);
  belay__handle_give_back(&limiter->handle, belay__limit_command_call(limiter, &command));
}

static void tell_wait(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  const belay__limit_op_t *op = (const belay__limit_op_t *)(const void *)answer->values;
  if (answer->status == BELAY_EUNKNOWN)
    give_back(answer->context, request, op);
  leave_queue(answer->context, op->queue);
  belay__limiter_tell(request, cb, answer);
}

static void left_wait(belay__operation_t *operation, bool sent) {
  belay_limiter_t *limiter = operation->context;
  bool reserved = belay__timer_is_set(&operation->timer);
  unpark(operation);
  if (reserved || sent)
    give_back(limiter, belay__request_of(operation), belay__limit_op_of(operation));
}

static const belay__request_ops_t wait_ops = {
    .read = read_wait, .notify = tell_wait, .left = left_wait, .idempotent = true};
static const belay__request_ops_t reserve_ops = {
    .read = belay__limiter_read, .notify = belay__limiter_tell, .idempotent = true};

/* ---- the operations ---- */

/* Check the arguments that all functions below have, and that the policy permits reservations. */
static int check(const belay_limiter_t *limiter, const belay_request_t *request, belay_bytes_t key,
                 belay_limiter_cb cb) {
  int error = belay__handle_check_key((const belay__handle_t *)limiter, request, key, cb != NULL);
  if (error == 0 && !limiter->policy->reservable)
    error = belay__invalid(belay__limiter_belay(limiter),
                           "limits: only token buckets with a count give credit");
  return error;
}

/* Check the arguments of a reservation, and draw its id. */
static int prepare(belay_limiter_t *limiter, const belay_request_t *request, int64_t max_wait_us,
                   belay_limiter_cb cb, belay__limit_command_t *command,
                   belay_reservation_t *drawn) {
  int error = check(limiter, request, command->key, cb);
  if (error != 0)
    return error;
  belay_t *belay = belay__limiter_belay(limiter);
  error = belay__check_range(belay, "cost", command->cost, 1, INT64_MAX);
  if (error == 0)
    error = belay__check_range(belay, "max_wait_us", max_wait_us, 0, WAIT_MAX_US);
  if (error != 0)
    return error;
  belay__limit_command_number(command, max_wait_us);
  belay__limit_command_number(command, remembered_us(limiter, request));
  command->reservation = drawn;
  return belay->host->random(belay, drawn->id, sizeof drawn->id);
}

int belay_limiter_reserve(belay_limiter_t *limiter, belay_request_t *request, belay_bytes_t key,
                          int64_t cost, int64_t max_wait_us, belay_limiter_cb cb) {
  belay__limit_command_t command = {.verb = BELAY__LIMITER_RESERVE, .key = key, .cost = cost};
  belay_reservation_t drawn;
  belay__operation_t *operation;
  int error = prepare(limiter, request, max_wait_us, cb, &command, &drawn);
  return error != 0
             ? error
             : belay__limiter_start(limiter, request, &reserve_ops, &command, cb, &operation);
}

int belay_limiter_wait(belay_limiter_t *limiter, belay_request_t *request, belay_bytes_t key,
                       int64_t cost, int64_t max_wait_us, belay_limiter_cb cb) {
  belay__limit_command_t command = {.verb = BELAY__LIMITER_WAIT, .key = key, .cost = cost};
  belay_reservation_t drawn;
  belay__operation_t *operation;
  belay__limit_queue_t *queue;
  int error = prepare(limiter, request, max_wait_us, cb, &command, &drawn);
  if (error == 0)
    error = join_queue(limiter, key, &queue);
  if (error != 0)
    return error;
  error = belay__limiter_start(limiter, request, &wait_ops, &command, cb, &operation);
  if (error == 0)
    belay__limit_op_of(operation)->queue = queue;
  else
    leave_queue(limiter, queue);
  return error;
}

int belay_limiter_cancel_reservation(belay_limiter_t *limiter, belay_request_t *request,
                                     belay_bytes_t key, const belay_reservation_t *reservation,
                                     belay_limiter_cb cb) {
  belay__operation_t *operation;
  int error = check(limiter, request, key, cb);
  if (error == 0 && reservation == NULL)
    error = belay__invalid(belay__limiter_belay(limiter), "reservation: NULL");
  if (error != 0)
    return error;
  const belay__limit_command_t command = cancel_command(limiter, request, key, reservation);
  return belay__limiter_start(limiter, request, &reserve_ops, &command, cb, &operation);
}
