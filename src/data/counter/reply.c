/* Reads replies about counters strictly, and sums shards. */

#include "data/counter/counter.h"
#include "scripts.gen.h"

void belay__counter_notify(belay_request_t *request, void (*cb)(void),
                           const belay__answer_t *answer) {
  belay_counter_result_t result = {.status = answer->status};
  if (answer->status == 0) {
    result.applied = answer->values[BELAY__COUNTER_APPLIED] != 0;
    result.found = answer->values[BELAY__COUNTER_FOUND] != 0;
    result.value = answer->values[BELAY__COUNTER_VALUE];
  }
  ((belay_counter_cb)cb)(request, answer->status, &result);
}

/* Returns BELAY_EWRONGTYPE for a value that is no number. Only the reply to a get needs this check:
 * on an add, the server checks the value. */
static int no_number(const belay__call_t *call) {
  return belay__call_blame(call, BELAY_EWRONGTYPE, "it holds no number");
}

int belay__counter_read_value(const belay__call_t *call, const belay__reply_t *reply, bool *found,
                              int64_t *out) {
  *found = false;
  *out = 0;
  if (reply->type == BELAY__REPLY_NIL)
    return 0;
  if (reply->type != BELAY__REPLY_STRING)
    return BELAY_EPROTO;
  *found = belay__reply_int64(reply, out);
  return *found ? 0 : no_number(call);
}

static int once(const belay__call_t *call, const belay__reply_t *reply, int64_t *out) {
  static const belay__fault_t faults[] = {
      {BELAY_EMISMATCH, "this operation added another amount"},
      {BELAY_EMISMATCH, "the record of this operation is damaged"},
      {BELAY_EBUSY, "max_ops operations have a record already"},
  };
  int error = belay__handle_fault(call, reply, faults, sizeof faults / sizeof *faults);
  return error != 0 || belay__reply_int64(reply, out) ? error : BELAY_EPROTO;
}

int belay__counter_added(const belay__call_t *call, const belay__reply_t *reply, bool *applied,
                         int64_t *out) {
  int64_t flag = 1;
  *applied = true;
  if (call->script == &belay__script_counter_once)
    return once(call, reply, out);
  if (call->script == NULL)
    return belay__reply_integer(reply, INT64_MIN, INT64_MAX, out) ? 0 : BELAY_EPROTO;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 2 ||
      !belay__reply_integer(reply->items[0], 0, 1, &flag) ||
      !belay__reply_int64(reply->items[1], out))
    return BELAY_EPROTO;
  *applied = flag != 0;
  return 0;
}

void belay__sum_add(belay__sum_t *sum, int64_t value) {
  sum->high += value >> 32;
  sum->low += value & UINT32_MAX;
  sum->found = true;
}

int belay__sum_value(const belay__sum_t *sum, int64_t *out) {
  int64_t high = sum->high + (sum->low >> 32);
  if (high < INT32_MIN || high > INT32_MAX)
    return BELAY_EOVERFLOW;
  *out = high * (INT64_C(1) << 32) + (sum->low & UINT32_MAX);
  return 0;
}
