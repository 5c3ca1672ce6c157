#include "support/asks.h"

#include "limit/limiter.h"

belay_limiter_options_t limiter_options(const belay_limit_t *limits, size_t n) {
  belay_limiter_options_t options;
  belay_limiter_options_init(&options);
  options.name = "test";
  options.name_len = 4;
  options.limits = limits;
  options.limits_len = n;
  options.max_denied = 0;
  return options;
}

belay_limiter_t *limiter_with(bed_t *bed, belay_client_t *client,
                              const belay_limiter_options_t *options) {
  belay_limiter_t *limiter;
  (void)bed;
  assert_error(belay_limiter_new(client, options, &limiter), 0);
  return limiter;
}

belay_limiter_t *limiter_new(bed_t *bed, const belay_limit_t *limits, size_t n) {
  belay_limiter_options_t options = limiter_options(limits, n);
  return limiter_with(bed, bed->client, &options);
}

belay_limit_t bucket_limit(int64_t count, int64_t period_us, int64_t burst) {
  return (belay_limit_t){
      .kind = BELAY_LIMIT_BUCKET, .count = count, .period_us = period_us, .burst = burst};
}

void limiter_at(belay_limiter_t *limiter, int64_t time_us) {
  limiter->time = time_us;
}

void on_answer(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  ask_t *ask = request->data;
  ask->bed->wrong += ask->bed->inside;
  ask->ended++;
  ask->bed->wrong += ask->ended > ask->begun;
  ask->bed->wrong += status != (result->verdict == BELAY_INDETERMINATE ? result->cause : 0);
  ask->result = *result;
  if (ask->then != NULL)
    ask->then(ask);
}

belay_request_t *asked(bed_t *bed, ask_t *ask) {
  ask->bed = bed;
  ask->request.data = ask;
  ask->begun++;
  return &ask->request;
}

const belay_limiter_result_t *answer(ask_t *ask, int begun) {
  assert_error(begun, 0);
  bed_until(ask->bed, ask->ended == ask->begun);
  return &ask->result;
}

const belay_limiter_result_t *take(bed_t *bed, belay_limiter_t *limiter, const char *key,
                                   int64_t cost) {
  static ask_t ask;
  ask = (ask_t){0};
  return answer(&ask,
                belay_limiter_take(limiter, asked(bed, &ask), key, strlen(key), cost, on_answer));
}

const belay_limiter_result_t *peek(bed_t *bed, belay_limiter_t *limiter, const char *key) {
  return take(bed, limiter, key, 0);
}

const belay_limiter_result_t *penalty(bed_t *bed, belay_limiter_t *limiter, const char *key,
                                      int64_t cost) {
  static ask_t ask;
  ask = (ask_t){0};
  return answer(
      &ask, belay_limiter_penalty(limiter, asked(bed, &ask), key, strlen(key), cost, on_answer));
}

const belay_limiter_result_t *refund(bed_t *bed, belay_limiter_t *limiter, const char *key,
                                     belay_receipt_t *receipt, int64_t tokens) {
  static ask_t ask;
  ask = (ask_t){0};
  return answer(&ask, belay_limiter_refund(limiter, asked(bed, &ask), key, strlen(key), receipt,
                                           tokens, on_answer));
}

const belay_limiter_result_t *reset(bed_t *bed, belay_limiter_t *limiter, const char *key) {
  static ask_t ask;
  ask = (ask_t){0};
  return answer(&ask, belay_limiter_reset(limiter, asked(bed, &ask), key, strlen(key), on_answer));
}

const belay_limiter_result_t *ban(bed_t *bed, belay_limiter_t *limiter, const char *key,
                                  int64_t ban_us) {
  static ask_t ask;
  ask = (ask_t){0};
  return answer(&ask,
                belay_limiter_ban(limiter, asked(bed, &ask), key, strlen(key), ban_us, on_answer));
}

const belay_limiter_result_t *reserve(bed_t *bed, belay_limiter_t *limiter, const char *key,
                                      int64_t cost, int64_t max_wait_us) {
  static ask_t ask;
  ask = (ask_t){0};
  return answer(&ask, belay_limiter_reserve(limiter, asked(bed, &ask), key, strlen(key), cost,
                                            max_wait_us, on_answer));
}

const belay_limiter_result_t *unreserve(bed_t *bed, belay_limiter_t *limiter, const char *key,
                                        const belay_reservation_t *reservation) {
  static ask_t ask;
  ask = (ask_t){0};
  return answer(&ask, belay_limiter_cancel_reservation(limiter, asked(bed, &ask), key, strlen(key),
                                                       reservation, on_answer));
}

belay_receipt_t taken(bed_t *bed, belay_limiter_t *limiter, const char *key, int64_t cost) {
  const belay_limiter_result_t *result = take(bed, limiter, key, cost);
  assert_int_equal(result->verdict, BELAY_ALLOWED);
  return result->receipt;
}

uint64_t print_of(server_t *server, const char *key) {
  const resp_t *dump = server_ask(server, "DUMP", key, NULL);
  uint64_t print = UINT64_C(14695981039346656037);
  if (dump->type == RESP_NIL)
    return 0;
  assert_int_equal(dump->type, RESP_STRING);
  for (size_t i = 0; i < dump->len; i++)
    print = (print ^ (unsigned char)dump->str[i]) * UINT64_C(1099511628211);
  return print;
}

int try_take(bed_t *bed, belay_limiter_t *limiter, const char *key, int64_t cost,
             belay_limiter_result_t *result) {
  bed->inside++;
  int error = belay_limiter_try(limiter, key, strlen(key), cost, result);
  bed->inside--;
  return error;
}

belay_limiter_stats_t limiter_stats(const belay_limiter_t *limiter) {
  belay_limiter_stats_t stats;
  belay_limiter_stats(limiter, &stats);
  return stats;
}

static void on_limiter_closed(belay_limiter_t *limiter, void *data) {
  (void)data;
  *(bool *)belay_limiter_data(limiter) = true;
}

void begin_close_limiter(belay_limiter_t *limiter, bool *closed) {
  *closed = false;
  limiter->family.data = closed;
  assert_error(belay_limiter_close(limiter, on_limiter_closed), 0);
}

void close_limiter(bed_t *bed, belay_limiter_t *limiter) {
  bool closed;
  begin_close_limiter(limiter, &closed);
  bed_until(bed, closed);
}
