/* One of each that a server may refuse: a lock that is held, one that is waited for, a limiter, a
 * counter. */
#ifndef TEST_SUPPORT_LOAD_HOUSE_H
#define TEST_SUPPORT_LOAD_HOUSE_H

#include "support/fixtures/limit/asks.h"
#include "support/fixtures/data/counters.h"

#define HOUSE_TIMEOUT_MS prompt_ms() /* of every call */

typedef struct house {
  server_t *server;
  env_t *env;
  contender_t *held;     /* renewed */
  contender_t *leaves;   /* held too, and released while the server refuses */
  contender_t *acquirer; /* of a lock that is free until house_acquire() */
  belay_limiter_t *limiter;
  till_t till;
  int64_t added;    /* by adds that went well */
  char detail[256]; /* of the last that was refused */
} house_t;

/* The expected statuses of each operation. */
typedef struct house_statuses {
  int acquire;         /* a try */
  int extend, release; /* of a held lock */
  int take, add;       /* of a limiter, of a counter */
  /* It is asked again until its time is over; that may be while it is being asked: then it is
   * not known. */
  bool passes;
  int also; /* another permitted status; 0: none */
} house_statuses_t;

/* Its client asks as that user, with that password; NULL: the default one. */
house_t *house_open(server_t *server, const char *user, const char *password);
/* And one that was started for it. */
void house_close(house_t *house);

/* Holds what is to be held, and uses everything once. */
void house_move_in(house_t *house);

/* Runs all operations: each must end with its status in `expected`, and the detail of each refusal
 * must contain `says` (NULL: any). */
void house_expect(house_t *house, const char *name, const house_statuses_t *expected,
                  const char *says);

/* The server accepts commands again: held locks are held, released ones are free, all operations
 * work, and no refused operation had an effect. */
void house_expect_well(house_t *house);

/* Each operation alone; its status, with the detail kept. A call whose time ended during retries
 * is repeated. */
int house_acquire(house_t *house);
int house_take(house_t *house);
int house_add(house_t *house);

#endif /* TEST_SUPPORT_LOAD_HOUSE_H */
