#include "limit/group.h"

#include "limit/denial_cache.h"

static bool fits(belay__operation_t *first, const belay__operation_t *joining) {
  const belay__limit_op_t *a = belay__limit_op_of(first);
  const belay__limit_op_t *b = (const belay__limit_op_t *)(const void *)joining->values;
  return a->cost == b->cost && a->policy == b->policy;
}

static belay__call_t *make(belay__operation_t *first, size_t n, const belay__call_t *like) {
  belay__limit_command_t command = {
      .verb = BELAY__LIMITER_TAKE, .like = like, .cost = belay__limit_op_of(first)->cost};
  if (n > 1)
    belay__limit_command_number(&command, (int64_t)n);
  return belay__limit_command_call(first->context, &command);
}

/* Set the reply of one take from the shared reply, which has the state after the last admitted
 * take. An earlier admitted take gets that state without the takes after it. All denied takes get
 * that state: they were denied in it. Returns 0 or an error. */
static int share(belay__operation_t *operation, const int64_t *values, const belay__call_t *call,
                 int status) {
  belay_limiter_t *limiter = operation->context;
  belay__limit_op_t *op = belay__limit_op_of(operation);
  if (status != 0)
    return status;
  const belay__limit_reply_t *reply = &((const belay__limit_op_t *)(const void *)values)->numbers;
  int64_t admitted = reply->answer < 0 ? 0 : reply->answer;
  if (reply->answer == 0 || admitted > operation->calls_open)
    return BELAY_EPROTO;
  op->numbers = *reply;
  op->numbers.answer = operation->index < admitted ? 0 : -1;
  if (op->numbers.answer == 0)
    belay__policy_untake(op->policy, op->cost, admitted - 1 - operation->index, &op->numbers);
  /* if no take was admitted, ops->read has cached the denial */
  else if (operation->index == admitted && admitted > 0)
    (void)belay__denied_learn(limiter, call, op->policy, &op->numbers, op->cost, op->hash,
                              op->epoch);
  return 0;
}

static void note_sent(belay__operation_t *first) {
  ((belay_limiter_t *)first->context)->stats.asked++;
}

const belay__group_ops_t belay__take_group_ops = {
    .fits = fits, .make = make, .share = share, .sent = note_sent};

int belay__limiter_send_take(belay_limiter_t *limiter, belay__operation_t *operation,
                             belay_bytes_t key) {
  belay__limit_op_t *op = belay__limit_op_of(operation);
  const belay__limit_command_t command = {
      .verb = BELAY__LIMITER_TAKE, .key = key, .cost = op->cost};
  if (belay__policy_is_log(limiter->policy)) /* the entries of a log have an id for each take */
    return belay__limiter_send(limiter, operation, &command);
  op->epoch = belay__denied_epoch(limiter, op->hash);
  if (belay__group_join(operation, op->hash, key))
    return 0;
  return belay__group_hold(operation, belay__limit_command_call(limiter, &command), op->hash, key);
}
