/* Idempotency records, and what is heard of them. */
#ifndef TEST_ONCE_H
#define TEST_ONCE_H

#include "support/bed.h"

/* A handle. */
typedef struct once {
  bed_t *bed;
  belay_idempotency_t *records; /* NULL: closed */
  unsigned pending, closing, closed;
  void (*then)(struct once *once); /* runs at the end of each callback; NULL: nothing */
} once_t;

#define RESULT_KEPT 64 /* of a result: its first bytes */

/* An operation, and what came of it. */
typedef struct turn {
  belay_request_t request;
  once_t *once;
  unsigned begun, ended;
  int status;
  bool told;
  belay_idempotency_state_t state; /* its pointers are NULL */
  char owner[BELAY_IDEMPOTENCY_OWNER_MAX + 1];
  char result[RESULT_KEPT + 1];
  bool has_result;
  char detail[256];
} turn_t;

belay_idempotency_options_t once_options(void);

/* A handle of the bed's client; the second one of another's. Its data are the once. */
void once_new(once_t *once, bed_t *bed);
void once_of(once_t *once, bed_t *bed, belay_client_t *client,
             const belay_idempotency_options_t *options);

/* Begin it; what belay returned. If it is 0, the callback is counted. Texts end with a 0. */
int once_begin(once_t *once, turn_t *turn, const char *key, const char *fingerprint, int64_t ms);
int once_extend(once_t *once, turn_t *turn, const char *key, const belay_idempotency_token_t *token,
                int64_t ms);
int once_finish(once_t *once, turn_t *turn, const char *key, const belay_idempotency_token_t *token,
                const char *result, int64_t ms);
int once_abandon(once_t *once, turn_t *turn, const char *key,
                 const belay_idempotency_token_t *token);
int once_read(once_t *once, turn_t *turn, const char *key);
int once_forget(once_t *once, turn_t *turn, const char *key);
int once_close(once_t *once);

/* The callback of all of them. */
void on_turn(belay_request_t *request, int status, const belay_idempotency_state_t *state);

/* Waits for the end of what was begun: its status. */
int end_of_turn(turn_t *turn);

/* The operation must go well, and leave it so. */
#define expect_turn(turn, operation, outcome_)                                                     \
  do {                                                                                             \
    assert_error(operation, 0);                                                                    \
    assert_error(end_of_turn(turn), 0);                                                            \
    assert_int_equal((turn)->state.outcome, outcome_);                                             \
  } while (0)

/* It must be refused, as somebody else's. */
#define expect_not_owner(turn, operation, outcome_)                                                \
  do {                                                                                             \
    assert_error(operation, 0);                                                                    \
    assert_error(end_of_turn(turn), BELAY_ENOTOWNER);                                              \
    assert_int_equal((turn)->state.outcome, outcome_);                                             \
  } while (0)

#endif /* TEST_ONCE_H */
