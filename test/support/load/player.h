/* All primitives that can be held or waited for, behind one interface, so that a table can state
 * rules for all of them. In env.h a contender is only for lock.h. */
#ifndef TEST_SUPPORT_LOAD_PLAYER_H
#define TEST_SUPPORT_LOAD_PLAYER_H

#include "support/fixtures/env.h"

typedef enum kind_id {
  LOCK,
  LOCK_FENCED,
  LOCK_ALONE,   /* nothing is handed over */
  LOCK_POLLING, /* no notification of releases */
  REENTRANT,    /* even and odd numbers are two owners */
  FAIR,
  READER, /* even numbers read, odd ones write */
  WRITER,
  SEMAPHORE, /* SEMAPHORE_LIMIT permits; each third player wants one, the others two */
  SEMAPHORE_FAIR,
  MULTILOCK, /* two names */
  ELECTION,
  HELD_KINDS, /* kinds up to here are held and released; the others are only waited for */
  LATCH = HELD_KINDS,
  BARRIER,
  KINDS
} kind_id_t;

enum { SEMAPHORE_LIMIT = 3, MEETING = 2 /* counts of latches and barriers */ };

typedef struct kind {
  const char *name; /* name of the row and of its object */
  const char *holders
      [2]; /* keys that say who has it: a token or a zset of tokens; of several all are had */
  const char *queue[2]; /* zsets of waiters; NULL: a wait leaves no key */
  bool notifies;        /* releases notify its waiters */
  bool passes;          /* from handle to handle in a client */
  bool numbers;         /* grants are numbered */
  bool extends;         /* has an extend */
} kind_t;

extern const kind_t kinds[KINDS];

typedef enum happening { CAME, WENT, LOST } happening_t;

/* A handle of any kind, and its callbacks. */
typedef struct player player_t;
struct player {
  env_t *env;
  kind_id_t kind;
  unsigned number; /* among those of its kind */
  belay_client_t *client;
  belay_lock_t *lock; /* one of these is not NULL */
  belay_multilock_t *multilock;
  belay_election_t *election;
  belay_latch_t *latch;
  belay_barrier_t *barrier;

  unsigned begun, came;   /* acquires, campaigns, waits; and their ends */
  unsigned leaving, left; /* releases, and their ends */
  unsigned changing, changed;
  unsigned lost, sights;
  bool has;          /* true from the grant to the release */
  bool forgotten;    /* the test's: the server does not know of it any more; until it comes again */
  unsigned to_count; /* the rest of a latch at its last count */
  belay_request_t request;
  int status, left_status, change_status; /* the last */
  uint64_t grant;                         /* the number of the last: fence, term, generation */
  uint64_t seen;                          /* the term that an observer saw last */
  belay_lost_t reason;
  int64_t came_time, left_time, lost_time;          /* by clock_now() */
  void (*then)(player_t *player, happening_t what); /* at the end of each callback; NULL: nothing */
  void *arg;                                        /* the test's */
};

/* Times are those of the options; so are an election's, a latch's and a barrier's. The memory is
 * the test's; what is made is closed with the env. */
void player_init(player_t *player, env_t *env, belay_client_t *client, kind_id_t kind,
                 unsigned number, const belay_lock_options_t *options);

/* Begins to acquire, to stand, or to wait at a latch or a barrier; without a limit. */
void player_come(player_t *player);
/* Begins to give it back, to resign, or to stop waiting. */
void player_leave(player_t *player);
/* Begins an extend by ttl_ms; for readers and writers, a change to the other mode. */
void player_extend(player_t *player, int64_t ttl_ms);
void player_change(player_t *player);
void player_observe(player_t *player); /* an election */

/* Waits for the end of it, which must be a success. */
void player_await(player_t *player);
void player_await_left(player_t *player);

/* env_until(), which names the player on failure. */
#define player_until(player, condition)                                                            \
  do {                                                                                             \
    const player_t *player_ = (player);                                                            \
    player_wait_begin(player_, #condition);                                                        \
    while (!(condition))                                                                           \
      env_turn(player_->env);                                                                      \
    env_wait_end(player_->env);                                                                    \
  } while (0)

void player_wait_begin(const player_t *player, const char *awaited);

/* Has it, by its own belief. */
bool player_has(const player_t *player);

/* The number of pairs of present holders that exclude each other. Forgotten holders do not
 * count. */
unsigned players_clash(const player_t *players, unsigned n);

/* Counts a latch down; and waits for the answer: what is left. */
void player_begin_count(player_t *player, const char *operation);
unsigned player_count(player_t *player, const char *operation);

/* ---- keys of the server ---- */

/* Milliseconds for which it is held; 0: free. */
int64_t kind_lease_left(server_t *server, kind_id_t kind);
/* How many wait in its queue; how many connections listen for its releases. */
int64_t kind_queue(server_t *server, kind_id_t kind);
int64_t kind_listeners(server_t *server, kind_id_t kind);

/* Every key has a ttl. */
void expect_ttl_on_every_key(server_t *server);
/* The number of keys except those that must be remembered (numbers, passed parties), and an
 * example. */
int64_t keys_left(server_t *server, char *example, size_t size);

#endif /* TEST_SUPPORT_LOAD_PLAYER_H */
