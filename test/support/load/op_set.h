/* One of each that a server may refuse: a lock that is held, one that is waited for, a limiter, a
 * counter. */
#ifndef TEST_SUPPORT_LOAD_OP_SET_H
#define TEST_SUPPORT_LOAD_OP_SET_H

#include "support/fixtures/limit/asks.h"
#include "support/fixtures/data/counters.h"

#define OP_SET_TIMEOUT_MS prompt_ms() /* of every call */

typedef struct op_set {
  server_t *server;
  env_t *env;
  contender_t *held;     /* renewed */
  contender_t *leaves;   /* held too, and released while the server refuses */
  contender_t *acquirer; /* of a lock that is free until op_set_acquire() */
  belay_limiter_t *limiter;
  counters_t counters;
  int64_t added;    /* by adds that went well */
  char detail[256]; /* of the last that was refused */
} op_set_t;

/* The expected statuses of each operation. */
typedef struct op_statuses {
  int acquire;         /* a try */
  int extend, release; /* of a held lock */
  int take, add;       /* of a limiter, of a counter */
  /* It is asked again until its time is over; that may be while it is being asked: then it is
   * not known. */
  bool passes;
  int also; /* another permitted status; 0: none */
} op_statuses_t;

/* Its client asks as that user, with that password; NULL: the default one. */
op_set_t *op_set_open(server_t *server, const char *user, const char *password);
/* And one that was started for it. */
void op_set_close(op_set_t *op_set);

/* Holds what is to be held, and uses everything once. */
void op_set_use_all(op_set_t *op_set);

/* Runs all operations: each must end with its status in `expected`, and the detail of each refusal
 * must contain `says` (NULL: any). */
void op_set_expect(op_set_t *op_set, const char *name, const op_statuses_t *expected,
                   const char *says);

/* The server accepts commands again: held locks are held, released ones are free, all operations
 * work, and no refused operation had an effect. */
void op_set_expect_recovered(op_set_t *op_set);

/* Each operation alone; its status, with the detail kept. A call whose time ended during retries
 * is repeated. */
int op_set_acquire(op_set_t *op_set);
int op_set_take(op_set_t *op_set);
int op_set_add(op_set_t *op_set);

#endif /* TEST_SUPPORT_LOAD_OP_SET_H */
