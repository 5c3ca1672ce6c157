/* The state of the limit checkers; for check_limit*.c only. */
#ifndef TEST_SIM_CHECK_LIMIT_STATE_H
#define TEST_SIM_CHECK_LIMIT_STATE_H

#include "sim/check/limit.h"

#define SIM_ENTRIES 1024 /* of an account; the older half of them is summed up when it is full */
#define SIM_LIMIT_SLOTS 4096
#define SIM_LIMIT_UNSEEN 256
#define SIM_LIMIT_DENIALS 512 /* the last denials of a process, of each key */
#define SIM_LEASES 128

/* The tokens of a key that a life of a process was granted ahead. */
typedef struct sim_lease {
  struct {
    uint64_t at_us;
    int64_t left; /* that may be used, if the oldest are first */
  } grant[SIM_LEASES];
  unsigned grants;
  int64_t granted, gone; /* all; of them used, or given back */
} sim_lease_t;

/* Something that was charged. */
typedef struct sim_entry {
  uint64_t at_us;
  unsigned request;
  int64_t used;    /* its usable tokens */
  int64_t charged; /* that the server holds against the key */
} sim_entry_t;

/* A key's, in order of time. */
typedef struct sim_account {
  size_t len;
  sim_entry_t entry[SIM_ENTRIES];
  uint64_t before_us; /* end of the summed part, */
  int64_t used[BELAY_LIMITER_LIMITS_MAX], charged[BELAY_LIMITER_LIMITS_MAX]; /* buckets: units */
  uint64_t window_us; /* FIXED: when the present one began, */
  int64_t in_window;  /* and the tokens charged in it */
  /* several limits: waiting tokens were returned, and their distribution is unknown */
  bool murky;
  /* tokens from before a reset in the same microsecond were returned after it; happens only here */
  bool blurred;
  uint64_t reset_us;
} sim_account_t;

struct sim_limits {
  bool begun;
  size_t n;
  belay_limit_t limit[BELAY_LIMITER_LIMITS_MAX];
  unsigned requests;
  sim_limit_request_t request[SIM_LIMIT_REQUESTS];
  unsigned slot[SIM_LIMIT_SLOTS]; /* reservations by their id */
  sim_account_t account[SIM_LIMIT_KEYS];
  struct {
    char id[SIM_LIMIT_ID];
    uint64_t rest_us;
  } canceled[SIM_LIMIT_UNSEEN]; /* before the request itself was seen */
  unsigned cancels;
  struct {
    unsigned life;
    int64_t cost;
    uint64_t until_us;
  } denial[SIM_PROCESSES_MAX][SIM_LIMIT_KEYS][SIM_LIMIT_DENIALS];
  unsigned denials[SIM_PROCESSES_MAX][SIM_LIMIT_KEYS];

  /* Slices. */
  int64_t slice;
  uint32_t lease_ms;
  sim_lease_t lease[SIM_PROCESSES_MAX][SIM_LIMIT_KEYS];
  sim_account_t used[SIM_LIMIT_KEYS]; /* admitted tokens, at the time of the callback */
};

/* ---- check_limit_account.c ---- */

/* Charges a request; returns its place in the account. used: its tokens may be used. */
size_t sim_account_charge(const sim_limits_t *limits, sim_account_t *account, unsigned number,
                          uint64_t at_us, bool used);
/* Notes that some charged tokens will not be used, and how many the server reports as returned. */
void sim_account_give_back(const sim_limits_t *limits, sim_account_t *account, unsigned number,
                           int64_t unused, int64_t returned);
/* The largest excess over the burst of a bucket, in units, from that place on; negative: none. */
int64_t sim_account_over(const sim_account_t *account, const belay_limit_t *limit, size_t i,
                         size_t from);

/* "bound": the charge at that place and all later ones. */
void sim_check_bound(sim_server_t *server, const sim_limits_t *limits, unsigned key, size_t from);
/* "due": a number of further tokens is denied within a time. */
void sim_check_due(sim_server_t *server, const sim_limits_t *limits, unsigned key, int64_t cost,
                   uint64_t now, int64_t within_us);

/* ---- check_limit_lease.c ---- */

/* A server has granted leased tokens to the process of its command; has taken back a request's
 * tokens; a callback has admitted a request. */
void sim_lease_granted(sim_server_t *server, unsigned number);
void sim_lease_returned(sim_server_t *server, unsigned key, int64_t tokens, uint64_t taken_us,
                        int64_t returned);
void sim_lease_used(sim_actor_t *actor, unsigned number, uint64_t now_us);
/* Any other use. */
void sim_lease_noted(sim_world_t *world, unsigned number, uint64_t at_us);

#endif /* TEST_SIM_CHECK_LIMIT_STATE_H */
