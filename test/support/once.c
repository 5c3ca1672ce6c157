#include "support/once.h"

#include <stdio.h>

belay_idempotency_options_t once_options(void) {
  belay_idempotency_options_t options;
  belay_idempotency_options_init(&options);
  return options;
}

void once_of(once_t *once, bed_t *bed, belay_client_t *client,
             const belay_idempotency_options_t *options) {
  *once = (once_t){.bed = bed};
  belay_idempotency_options_t o = *options;
  o.data = once;
  int error = belay_idempotency_new(client, &o, &once->records);
  if (error != 0)
    fail_msg("belay_idempotency_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  assert_ptr_equal(belay_idempotency_data(once->records), once);
}

void once_new(once_t *once, bed_t *bed) {
  belay_idempotency_options_t options = once_options();
  once_of(once, bed, bed->client, &options);
}

static void then(once_t *once) {
  unsigned inside = once->bed->inside;
  once->bed->wrong += inside;
  once->bed->inside = 0;
  if (once->then != NULL)
    once->then(once);
  once->bed->inside = inside;
}

static void keep(turn_t *turn, const belay_idempotency_state_t *state) {
  turn->state = *state;
  turn->state.owner = turn->state.result = NULL;
  snprintf(turn->owner, sizeof turn->owner, "%s", state->owner);
  turn->has_result = state->result != NULL;
  size_t len = state->result_len < RESULT_KEPT ? state->result_len : RESULT_KEPT;
  memset(turn->result, 0, sizeof turn->result);
  if (state->result != NULL)
    memcpy(turn->result, state->result, len);
}

void on_turn(belay_request_t *request, int status, const belay_idempotency_state_t *state) {
  turn_t *turn = request->data;
  once_t *once = turn->once;
  bool known = status == 0 || status == BELAY_ENOTOWNER;
  assert_non_null(state);
  assert_int_equal(state->outcome != BELAY_IDEMPOTENCY_UNKNOWN, known);
  assert_true(known || (state->result == NULL && state->owner[0] == '\0' && state->attempt == 0));
  turn->ended++;
  turn->status = status;
  turn->told = known;
  snprintf(turn->detail, sizeof turn->detail, "%s", belay_detail(once->bed->belay));
  if (known)
    keep(turn, state);
  once->bed->wrong += turn->ended > turn->begun || once->closed > 0;
  once->pending--;
  then(once);
}

static void on_once_closed(belay_idempotency_t *records, void *data) {
  once_t *once = data;
  assert_ptr_equal(records, once->records);
  once->closed++;
  once->bed->wrong += once->pending > 0 || once->closed > once->closing;
  once->records = NULL;
  then(once);
}

static belay_request_t *begin(once_t *once, turn_t *turn) {
  turn->once = once;
  turn->request.data = turn;
  once->bed->inside++;
  return &turn->request;
}

static int begun(once_t *once, turn_t *turn, int error) {
  once->bed->inside--;
  once->pending += error == 0;
  turn->begun += error == 0;
  return error;
}

int once_begin(once_t *once, turn_t *turn, const char *key, const char *fingerprint, int64_t ms) {
  belay_request_t *request = begin(once, turn);
  return begun(once, turn,
               belay_idempotency_begin(once->records, request, key, strlen(key),
                                       *fingerprint != '\0' ? fingerprint : NULL,
                                       strlen(fingerprint), ms, on_turn));
}

int once_extend(once_t *once, turn_t *turn, const char *key, const belay_idempotency_token_t *token,
                int64_t ms) {
  belay_request_t *request = begin(once, turn);
  return begun(
      once, turn,
      belay_idempotency_extend(once->records, request, key, strlen(key), token, ms, on_turn));
}

int once_finish(once_t *once, turn_t *turn, const char *key, const belay_idempotency_token_t *token,
                const char *result, int64_t ms) {
  belay_request_t *request = begin(once, turn);
  return begun(once, turn,
               belay_idempotency_finish(once->records, request, key, strlen(key), token, result,
                                        strlen(result), ms, on_turn));
}

int once_abandon(once_t *once, turn_t *turn, const char *key,
                 const belay_idempotency_token_t *token) {
  belay_request_t *request = begin(once, turn);
  return begun(once, turn,
               belay_idempotency_abandon(once->records, request, key, strlen(key), token, on_turn));
}

int once_read(once_t *once, turn_t *turn, const char *key) {
  belay_request_t *request = begin(once, turn);
  return begun(once, turn,
               belay_idempotency_read(once->records, request, key, strlen(key), on_turn));
}

int once_forget(once_t *once, turn_t *turn, const char *key) {
  belay_request_t *request = begin(once, turn);
  return begun(once, turn,
               belay_idempotency_forget(once->records, request, key, strlen(key), on_turn));
}

int once_close(once_t *once) {
  once->bed->inside++;
  int error = belay_idempotency_close(once->records, on_once_closed);
  once->bed->inside--;
  once->closing += error == 0;
  return error;
}

int end_of_turn(turn_t *turn) {
  bed_until(turn->once->bed, turn->ended == turn->begun);
  return turn->status;
}
