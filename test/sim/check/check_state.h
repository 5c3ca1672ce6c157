/* The state of the checkers; for check*.c and register.c only. */
#ifndef TEST_SIM_CHECK_CHECK_STATE_H
#define TEST_SIM_CHECK_CHECK_STATE_H

#include "belay/fence.h"
#include "core/key/token.h"
#include "sim/actors/lock.h"

/* ---- actions of servers, by token ---- */

/* Tokens that are remembered: those on servers and of holders, and the latest of the others. */
#define SIM_TOKENS 4096
#define SIM_TOKEN_SLOTS 8192

/* A token. Masks have a bit for each server. */
struct sim_token {
  uint8_t bytes[BELAY__TOKEN_BYTES];
  int next; /* in its slot; -1: the last */
  bool used;
  bool refused; /* reported as refused or not sent */
  bool ended;   /* released, lost, closed, or of an attempt that failed */
  bool ghostly; /* was set by bytes of a dead connection */
  bool found;   /* sim_check_restarted() */
  unsigned name;
  unsigned holders; /* number of holders of the token */
  unsigned process, life;
  uint8_t set_on, now_on;
  uint8_t removed_on;             /* by a command */
  uint8_t undone_on;              /* a release of it was executed, whether it was there or not */
  uint64_t came[SIM_SERVERS_MAX]; /* when it was last set there */
  uint64_t went[SIM_SERVERS_MAX]; /* when it was last removed there; 0: never */
};

typedef struct sim_log {
  sim_token_t token[SIM_TOKENS];
  int slot[SIM_TOKEN_SLOTS];
  unsigned last; /* the entry that was used last */
} sim_log_t;

void sim_log_init(sim_log_t *log);
/* NULL: it is not remembered. */
sim_token_t *sim_log_find(sim_log_t *log, const uint8_t bytes[BELAY__TOKEN_BYTES]);
sim_token_t *sim_log_get(sim_log_t *log, const uint8_t bytes[BELAY__TOKEN_BYTES]);

static inline unsigned sim_bits(unsigned mask) {
  return (unsigned)__builtin_popcount(mask);
}

/* On how many servers it was at some time since then; and a mask of those where it always was. */
unsigned sim_token_somewhen(const sim_world_t *world, const sim_token_t *token, uint64_t since);
unsigned sim_token_throughout(const sim_world_t *world, const sim_token_t *token, uint64_t since);

/* The value of the key of a lock. */
typedef struct sim_holder {
  uint8_t token[BELAY__TOKEN_BYTES];
  unsigned process, life;
} sim_holder_t;

/* False if the value is something else. */
bool sim_read_holder(engine_bytes_t value, sim_holder_t *holder);
/* The name that a key belongs to: NAMESPACE::FAMILY::{nNUMBER}. */
bool sim_read_key(const sim_world_t *world, engine_bytes_t key, unsigned *name);
/* A release: TOKEN, 'PUBLISH', 'SPUBLISH' or '', and maybe more. */
bool sim_is_release(const engine_bytes_t *args, size_t n);

/* ---- waiters in the queues of servers, by ticket ---- */

#define SIM_TICKETS 1024

typedef struct sim_ticket {
  char text[16];
  bool used;
  bool late;       /* once, it did not ask for waiter_ttl */
  bool ghostly;    /* was brought by bytes of a dead connection */
  uint8_t waiting; /* a bit for each server whose queue has it */
  unsigned name, process, life;
  uint64_t came;       /* the world's time of its arrival */
  uint64_t late_at_ms; /* by the server's clock */
} sim_ticket_t;

typedef struct sim_queue {
  sim_ticket_t ticket[SIM_TICKETS];
  unsigned last; /* the entry that was used last */
} sim_queue_t;

/* A script was executed with these arguments; token: the first, NULL if it is none. */
void sim_queue_executed(sim_server_t *server, unsigned name, const sim_token_t *token,
                        const engine_bytes_t *args, size_t n, engine_bytes_t reply);
/* "liveness": nothing is free for long while an actor waits for it. */
void sim_queue_check(sim_check_t *check);
/* "leaks": tokens and tickets, when all is closed. */
void sim_queue_end(sim_check_t *check);
/* True if the rest of that process may be there: the library could not know or undo it. */
bool sim_is_excused(const sim_check_t *check, const sim_server_t *server, unsigned process,
                    unsigned life, bool ghostly, uint64_t came);

/* ---- names, and the resources that their locks guard ---- */

#define SIM_NUMBERS 64 /* the latest numbers of a name */

typedef struct sim_name {
  char key[64]; /* of the lock, without a terminating 0 */
  size_t key_len;
  uint64_t grants;              /* counts them */
  uint64_t free_since;          /* the world's time when a key was last seen */
  uint64_t number;              /* the largest reported fencing number */
  uint64_t written;             /* RWLOCK: the largest one of a writer */
  uint64_t over;                /* REENTRANT: the largest one of an ended ownership */
  uint64_t entered;             /* REENTRANT: the first grant of the present ownership */
  unsigned limit;               /* SEMAPHORE: after a resize; 0: there was none */
  const sim_process_t *process; /* REENTRANT: the process, its life, and the owner of `number` */
  unsigned life, owner;
  uint64_t numbers[SIM_NUMBERS];

  belay_fence_t fence; /* of the guarded resource */
  uint64_t accepted;   /* the latest grant of which a write was accepted */
  uint64_t excluded;   /* grants up to this one were over before such a one was requested */
} sim_name_t;

/* The number that came with a grant. */
void sim_fence_granted(sim_lock_t *lock);
/* The same for one of an owner's holds, and the effects of its release. */
void sim_fence_entered(sim_lock_t *lock);
void sim_fence_left(const sim_lock_t *lock);
void sim_register_fini(struct sim_check *check);

/* ---- the state ---- */

/* The state of the checkers about a process. */
typedef struct sim_seen {
  uint64_t stalled_until; /* end of the last callback that took long, by the clock of the process */
  bool calling;           /* a function of the library */
  unsigned clients_closing; /* closes that have not called back */
  uint64_t clients_due;     /* limit of the last of them, by the clock of the process */
  unsigned pings;           /* that have not called back */
  bool unclean;             /* this life of the process may leave keys behind */
  bool closed;              /* its last life was closed, not ended by a crash */
} sim_seen_t;

struct sim_check {
  sim_world_t *world;
  unsigned quorum;
  bool lossless;        /* one server, which loses no data: its keys are the whole truth */
  bool foreign_deletes; /* true if another program deletes keys */
  bool tokens;          /* true if the key of a lock is a string, the token of its holder */
  bool numbered;        /* fencing numbers grow whatever else is broken */
  sim_name_t *name;
  sim_seen_t seen[SIM_PROCESSES_MAX];
  uint64_t lost_data[SIM_SERVERS_MAX]; /* the last restart of a server */
  sim_event_t strays;                  /* searches leftovers */
  belay__list_t writes;                /* on their way to guarded resources */
  sim_log_t log;
  sim_queue_t queue;
  void *shared; /* sim_shared() */
};

/* True if it holds by its local deadline, at this time of the world. */
bool sim_lock_holds(const sim_lock_t *lock, uint64_t when);

/* "exclusion": this lock is granted. */
void sim_check_exclusive(const sim_lock_t *lock);
/* "revival": an ended hold does not return, and a hold needs a reported grant. */
void sim_check_deadline(sim_lock_t *lock);
/* The same at the end of a turn, when every loss was reported. */
void sim_check_held(sim_lock_t *lock);

/* Searches tokens that no process undoes, from now on. */
void sim_strays_begin(sim_check_t *check);

#endif /* TEST_SIM_CHECK_CHECK_STATE_H */
