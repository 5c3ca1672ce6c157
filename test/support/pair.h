/* Locks on several names, over two servers: contenders of another type, see bed.h. */
#ifndef TEST_PAIR_H
#define TEST_PAIR_H

#include "support/bed.h"

enum { HOLDERS_MAX = 64 };

/* A handle, and what was heard of it. */
typedef struct holder {
  bed_t *bed;
  belay_multilock_t *lock; /* NULL: closed */
  unsigned begun, ended, lost, closing, closed;
  int status;
  belay_lost_t reason;
  void (*then)(struct holder *holder, char event); /* 'e', 'l', 'c'; NULL: nothing */
  struct holder *other;
} holder_t;

/* Two servers, and a client of the one loop for each. */
typedef struct pair {
  bed_t *bed;
  server_t *server[2];
  belay_client_t *client[2];
  holder_t holder[HOLDERS_MAX];
  int count;
} pair_t;

pair_t *pair_open(void);

/* Closes everything, and checks that each operation was told once. */
void pair_close(pair_t *pair);

/* When nothing is under way any more, neither server has a key. */
void pair_expect_no_key(pair_t *pair);

/* A handle for names such as "0:door 1:window": a client's number, and a name. */
holder_t *holder_new(pair_t *pair, const char *names, const belay_lock_options_t *options);

/* Begin it; what belay returned. If it is 0, the callback is counted. */
int holder_begin(holder_t *holder, int64_t wait_ms);
int holder_begin_release(holder_t *holder);
int holder_begin_close(holder_t *holder);
int holder_cancel(holder_t *holder);

/* Waits for what was begun; its status. */
int holder_outcome(holder_t *holder);

/* Begin it and wait for it. */
int holder_acquire(holder_t *holder, int64_t wait_ms);
int holder_release(holder_t *holder);

bool holder_holds(const holder_t *holder);

/* A plain lock on one of the servers. */
contender_t *pair_plain(pair_t *pair, int server, const char *name);

#endif /* TEST_PAIR_H */
