/* Sequences: each request runs one script, for one or several ids. If the reply was lost, the
 * script is sent again, and the ids of its first run are skipped. To the caller, the skipped ids
 * look like ids of another client. A script with a WAIT (min_replicas) is never sent again. */
#include "data/idgen/idgen.h"
#include "scripts.gen.h"

enum { SCRIPT, WAIT }; /* parts of a request */

static int read_last(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  int64_t wanted = operation->values[BELAY__IDGEN_WANTED], last;
  if (belay__reply_integer(reply, -1, -1, &last))
    return belay__handle_mismatch(call, "the field of this sequence holds no number");
  if (!belay__reply_int64(reply, &last) || last < INT64_MIN + (wanted - 1))
    return BELAY_EPROTO;
  int64_t *ids = operation->room != NULL ? operation->room : &operation->values[BELAY__IDGEN_ID];
  for (int64_t i = 0; i < wanted; i++)
    ids[i] = last - (wanted - 1) + i;
  return 0;
}

static int read_answer(belay__operation_t *operation, const belay__call_t *call,
                       const belay__reply_t *reply) {
  if (operation->index == WAIT)
    return belay__idgen_read_wait(operation->context, call, reply,
                                  (uint32_t)operation->values[BELAY__IDGEN_EPOCH]);
  operation->values[BELAY__IDGEN_EPOCH] = call->epoch;
  return read_last(operation, call, reply);
}

static const belay__request_ops_t ops[2][2] = {
    {{.read = read_answer, .notify = belay__request_notify_count, .idempotent = true},
     {.read = read_answer, .notify = belay__idgen_notify_many, .idempotent = true}},
    {{.read = read_answer, .notify = belay__request_notify_count, .joined = true},
     {.read = read_answer, .notify = belay__idgen_notify_many, .joined = true}},
};

static belay__call_t *new_script(const belay_idgen_t *idgen, int64_t n) {
  bool copied = idgen->options.min_replicas > 0;
  belay__call_t *call =
      belay__call_new(idgen->handle.client, copied ? BELAY__CLASS_DURABLE : BELAY__CLASS_DATA);
  if (copied)
    belay__call_script_text(call, &belay__script_idgen_sequence, 1, 3);
  else
    belay__call_script(call, &belay__script_idgen_sequence, 1, 3);
  belay__handle_arg(&idgen->handle, call, NULL, 0, "}::sequence");
  belay__call_arg(call, idgen->text, idgen->text_len);
  belay__call_arg_int(call, n);
  if (idgen->options.start > INT64_MAX - (n - 1))
    belay__call_arg(call, "", 0);
  else
    belay__call_arg_int(call, idgen->options.start + (n - 1));
  return call;
}

int belay__idgen_sequence_get(belay_idgen_t *idgen, belay_request_t *request, size_t n, bool many,
                              void (*cb)(void)) {
  belay__operation_t *operation;
  bool copied = idgen->options.min_replicas > 0;
  int error = belay__idgen_begin(idgen, request, &ops[copied][many], n, many, cb, &operation);
  if (error != 0)
    return error;
  belay__call_t *calls[2] = {[SCRIPT] = new_script(idgen, (int64_t)n)};
  if (copied)
    calls[WAIT] = belay__idgen_new_wait(idgen);
  return belay__request_begun(operation, belay__request_send_all(operation, calls, copied ? 2 : 1));
}

const belay__idgen_kind_t belay__idgen_sequence = {.take = NULL};
