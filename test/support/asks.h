/* What is asked of a limiter, and answered. */
#ifndef TEST_ASKS_H
#define TEST_ASKS_H

#include "support/bed.h"

/* A request, and its answer. */
typedef struct ask ask_t;
struct ask {
  belay_request_t request;
  bed_t *bed;
  unsigned begun, ended;
  belay_limiter_result_t result; /* the last */
  void (*then)(ask_t *ask);      /* runs at the end of each callback; NULL: nothing */
  void *arg;                     /* the test's */
};

/* A limiter of the bed's client under the name "test", that remembers no denials. */
belay_limiter_t *limiter_new(bed_t *bed, const belay_limit_t *limits, size_t n);
belay_limiter_options_t limiter_options(const belay_limit_t *limits, size_t n);
belay_limiter_t *limiter_with(bed_t *bed, belay_client_t *client,
                              const belay_limiter_options_t *options);

/* count tokens in a period, at most burst at once. */
belay_limit_t bucket_limit(int64_t count, int64_t period_us, int64_t burst);

/* From now on it is that time for this limiter, in microseconds; 0: what the server says. */
void limiter_at(belay_limiter_t *limiter, int64_t time_us);

void on_answer(belay_request_t *request, int status, const belay_limiter_result_t *result);

/* For on_answer; to be called before each operation that is begun by hand. */
belay_request_t *asked(bed_t *bed, ask_t *ask);

/* Waits for the end of what was begun with that (begun: what belay returned), and returns its result. */
const belay_limiter_result_t *answer(ask_t *ask, int begun);

/* Begin and wait. The result is valid until the next one. */
const belay_limiter_result_t *take(bed_t *bed, belay_limiter_t *limiter, const char *key,
                                   int64_t cost);
const belay_limiter_result_t *peek(bed_t *bed, belay_limiter_t *limiter, const char *key);
const belay_limiter_result_t *penalty(bed_t *bed, belay_limiter_t *limiter, const char *key,
                                      int64_t cost);
const belay_limiter_result_t *refund(bed_t *bed, belay_limiter_t *limiter, const char *key,
                                     belay_receipt_t *receipt, int64_t tokens);
const belay_limiter_result_t *reset(bed_t *bed, belay_limiter_t *limiter, const char *key);
const belay_limiter_result_t *ban(bed_t *bed, belay_limiter_t *limiter, const char *key,
                                  int64_t ban_us);
const belay_limiter_result_t *reserve(bed_t *bed, belay_limiter_t *limiter, const char *key,
                                      int64_t cost, int64_t max_wait_us);
const belay_limiter_result_t *unreserve(bed_t *bed, belay_limiter_t *limiter, const char *key,
                                        const belay_reservation_t *reservation);

/* A take that must be allowed; what can be given back of it. */
belay_receipt_t taken(bed_t *bed, belay_limiter_t *limiter, const char *key, int64_t cost);

/* What is under a key, its ttl aside, as a number: two that are alike are the same; 0: nothing. */
uint64_t print_of(server_t *server, const char *key);

/* What belay_limiter_try() returns; *result is set if that is 0. */
int try_take(bed_t *bed, belay_limiter_t *limiter, const char *key, int64_t cost,
             belay_limiter_result_t *result);

belay_limiter_stats_t limiter_stats(const belay_limiter_t *limiter);

/* Begins to close it; *closed becomes true. */
void begin_close_limiter(belay_limiter_t *limiter, bool *closed);

/* Closes it, and waits for that. */
void close_limiter(bed_t *bed, belay_limiter_t *limiter);

/* Checks who says what. */
#define assert_said(result, the_verdict, the_source)                                               \
  do {                                                                                             \
    const belay_limiter_result_t *said_ = (result);                                                \
    assert_int_equal(said_->verdict, the_verdict);                                                 \
    assert_int_equal(said_->source, the_source);                                                   \
  } while (0)

/* Checks the numbers; -2: whatever it is. */
#define assert_result(result, the_verdict, the_remaining, the_retry, the_reset)                    \
  do {                                                                                             \
    const belay_limiter_result_t *result_ = (result);                                              \
    assert_int_equal(result_->cause, 0);                                                           \
    assert_int_equal(result_->verdict, the_verdict);                                               \
    if ((the_remaining) != -2)                                                                     \
      assert_int_equal(result_->remaining, the_remaining);                                         \
    if ((the_retry) != -2)                                                                         \
      assert_int_equal(result_->retry_after_us, the_retry);                                        \
    if ((the_reset) != -2)                                                                         \
      assert_int_equal(result_->reset_after_us, the_reset);                                        \
  } while (0)

#endif /* TEST_ASKS_H */
