/* The state of the checkers; for check*.c and register.c only. */
#ifndef TEST_SIM_CHECK_CHECK_STATE_H
#define TEST_SIM_CHECK_CHECK_STATE_H

#include "belay/fence.h"
#include "core/key/token.h"
#include "lease/kinds/lock.h"
#include "lease/machine/deadline.h"
#include "sim/actors/actor.h"
#include "sim/check/check.h"
#include "sim/check/check_actor.h"
#include "sim/world/net.h"
#include "sim/scenarios/scenario.h"
#include "sim/world/server.h"

#define SIM_TICK (2 * SIM_MS) /* limit of delay for due events */

/* ---- what servers did, by token --------------------------------------------------------------------------- */

#define SIM_TOKENS                                                                                 \
  4096 /* that are remembered; those on servers and of holders, and the latest of the others */
#define SIM_TOKEN_SLOTS 8192

/* A token, where it was and is: a bit for each server. */
struct sim_token {
  uint8_t bytes[BELAY__TOKEN_BYTES];
  int next; /* in its slot; -1: the last */
  bool used;
  bool refused;        /* told that the attempt was not granted, or not even sent */
  bool ended;          /* given back, lost, closed, or of an attempt that failed */
  bool ghostly;        /* was set by bytes of a dead connection */
  unsigned name, pins; /* pins: holders */
  unsigned process, life;
  uint8_t set_on, now_on, removed_on; /* removed: by a command */
  uint64_t came[SIM_SERVERS_MAX];     /* when it came there last */
  uint64_t went[SIM_SERVERS_MAX];     /* when it went from there last; 0: never */
  uint8_t undone_on;                  /* a release of it ran there, whether it was there or not */
};

typedef struct sim_log {
  sim_token_t token[SIM_TOKENS];
  int slot[SIM_TOKEN_SLOTS];
  unsigned hand; /* where the next one goes, if it may */
} sim_log_t;

void sim_log_init(sim_log_t *log);
/* NULL: it is not known. */
sim_token_t *sim_log_find(sim_log_t *log, const uint8_t bytes[BELAY__TOKEN_BYTES]);
sim_token_t *sim_log_get(sim_log_t *log, const uint8_t bytes[BELAY__TOKEN_BYTES]);

static inline unsigned sim_bits(unsigned mask) {
  return (unsigned)__builtin_popcount(mask);
}

/* On how many servers it was at some time since then; and on which all the time, a bit for each. */
unsigned sim_token_somewhen(const sim_world_t *world, const sim_token_t *token, uint64_t since);
unsigned sim_token_throughout(const sim_world_t *world, const sim_token_t *token, uint64_t since);

/* Reads the value of a server's key: a token's 20 bytes and its process. False if it is none. */
bool sim_read_token(engine_word_t value, uint8_t bytes[BELAY__TOKEN_BYTES], unsigned *process,
                    unsigned *life);
/* The name that a key belongs to: NAMESPACE::FAMILY::{nNUMBER}. */
bool sim_read_key(const sim_world_t *world, engine_word_t key, unsigned *name);
/* A release: TOKEN, 'PUBLISH', 'SPUBLISH' or '', and maybe more. */
bool sim_is_release(const engine_word_t *args, size_t n);

/* ---- who waits, by ticket --------------------------------------------------------------------------------- */

#define SIM_TICKETS 1024

typedef struct sim_ticket {
  char text[16];
  bool used;
  bool late;       /* it has not asked for waiter_ttl once */
  bool ghostly;    /* was brought by bytes of a dead connection */
  uint8_t waiting; /* a bit for each server: it has not been taken out there */
  unsigned name, process, life;
  uint64_t came;       /* when it did, of the world's */
  uint64_t late_at_ms; /* by the server's clock */
} sim_ticket_t;

typedef struct sim_line {
  sim_ticket_t ticket[SIM_TICKETS];
  unsigned hand;
} sim_line_t;

/* A script was executed with these arguments; token: the first, NULL if it is none. */
void sim_line_executed(sim_server_t *server, unsigned name, const sim_token_t *token,
                       const engine_word_t *args, size_t n, engine_word_t reply);
/* "liveness": nothing is free for long while a waiter wants it. */
void sim_line_look(sim_check_t *check);
/* "leaks": tokens and tickets, when all is closed. */
void sim_line_end(sim_check_t *check);
/* It may be there. */
bool sim_is_excused(const sim_check_t *check, const sim_server_t *server, unsigned process,
                    unsigned life, bool ghostly, uint64_t came);

/* ---- names, and the resources that their locks guard -------------------------------------------------------- */

#define SIM_NUMBERS 64 /* the latest numbers of a name */

typedef struct sim_name {
  char key[64]; /* the lock's, without a terminating 0 */
  size_t key_len;
  uint64_t grants;              /* numbers them */
  uint64_t free_since;          /* of the world's: a key was seen last */
  uint64_t number;              /* the largest reported fencing number, */
  uint64_t written;             /* RWLOCK: to a writer */
  uint64_t over;                /* REENTRANT: and the largest of an owner who has given all back */
  uint64_t entered;             /* REENTRANT: the first grant of the present ownership */
  unsigned limit;               /* SEMAPHORE: as it was set; 0: it was not */
  const sim_process_t *process; /* REENTRANT: the process of that number: */
  unsigned life, owner;
  uint64_t numbers[SIM_NUMBERS];

  belay_fence_t fence; /* the guarded resource's */
  uint64_t accepted;   /* the latest grant of which a write was accepted */
  uint64_t excluded;   /* grants up to this one were over before such a one was asked for */
} sim_name_t;

/* The number that came with a grant. */
void sim_fence_granted(sim_watch_t *watch);
/* The same for one of an owner's holds, and the effects of its release. */
void sim_fence_entered(sim_watch_t *watch);
void sim_fence_left(const sim_watch_t *watch);
void sim_register_fini(struct sim_check *check);

/* ---- all of it ------------------------------------------------------------------------------------------------ */

typedef struct sim_seen { /* a process */
  sim_watch_t *watch[SIM_ACTORS_MAX];
  uint64_t stood_until;     /* by its clock: a callback took its time until then */
  bool calling;             /* a function of belay's */
  unsigned clients_closing; /* have not called back, */
  uint64_t clients_due;     /* and the last of them is to by then, by its clock */
  unsigned pings;           /* have not called back */
  bool unclean;             /* this life of it may leave keys behind */
  bool closed;              /* its last life was closed, not ended by a crash */
} sim_seen_t;

struct sim_check {
  sim_world_t *world;
  unsigned quorum;
  bool faithful;  /* one server, which loses nothing: its keys are the whole truth */
  bool strangers; /* true if another program deletes keys */
  bool tokens;    /* true if a lock's key is a string, the token of its holder */
  bool numbered;  /* fencing numbers grow whatever else is broken */
  sim_name_t *name;
  sim_seen_t seen[SIM_PROCESSES_MAX];
  uint64_t lost_data[SIM_SERVERS_MAX]; /* when a server last began anew */
  sim_event_t strays;                  /* searches leftovers */
  belay__list_t writes;                /* on their way to guarded resources */
  sim_log_t log;
  sim_line_t line;
  void *ledger; /* state of one kind of hands */
};

static inline const belay__lease_t *sim_watch_lease(const sim_watch_t *watch) {
  return belay__lock_lease(watch->lock);
}

/* The times at this moment of a process's turn: the world's, and its own. */
static inline uint64_t sim_world_time(const sim_process_t *process) {
  return process->world->now + process->ahead;
}

static inline double sim_in_ms(uint64_t ns) {
  return (double)ns / 1e6;
}

/* Whether it is there, and believes in what it holds at this time of the world's. */
bool sim_believes(const sim_watch_t *watch, uint64_t when);

/* A check of the rule "exclusion": this one has been told that it holds. */
void sim_check_exclusive(const sim_watch_t *watch);
/* Looks at what is believed, as "revival" needs it. */
void sim_check_belief(sim_watch_t *watch);

/* Searches tokens that no process undoes, from now on. */
void sim_strays_begin(sim_check_t *check);

/* The time on its clock until which the process stood still. */
uint64_t sim_excused_until(const sim_process_t *process);
/* When an operation has to have called back, at the latest. */
uint64_t sim_due(const sim_watch_t *watch, sim_op_t op);

extern const char *const sim_op_names[SIM_OPS];

#endif /* TEST_SIM_CHECK_CHECK_STATE_H */
