/* A single-flight load: a key that this process loads, or waits for while another process loads it,
 * and the waiters of the key. single_flight.c has the states.
 *
 * An observation (a lookup, a load, a question to the filter) serves the waiters that joined
 * before it began, so a waiter never gets a value that was invalidated before it joined. A load
 * without tags that was stored also serves waiters that joined before the server stored it: the
 * server stores nothing that was invalidated during the load. Turns number the observations;
 * each waiter has the number of the turn in which it joined. */
#ifndef BELAY_CACHE_LOAD_STATE_H
#define BELAY_CACHE_LOAD_STATE_H

#include "belay/lock.h"
#include "cache/lookup.h"

typedef struct belay__load belay__load_t;
typedef struct belay__load_waiter belay__load_waiter_t;
typedef struct belay__load_group belay__load_group_t;

/* A get that waits, or one key of a get of many. {0} does not wait. */
struct belay__load_waiter {
  belay__list_t node;  /* in load->waiters */
  belay__load_t *load; /* NULL: does not wait */
  uint64_t seq;        /* in which it joined */
  uint64_t joined_at;  /* time at which it joined */
  uint8_t late;        /* belay_cache_late_t */
  /* The waiter is served and has left the load. The record belongs to the load: end takes a
   * reference to keep it. */
  void (*end)(belay__load_waiter_t *waiter, const belay__served_t *served);
};

/* What the caller's loader gets. It can outlive the belay_t. */
struct belay_cache_load {
  belay__load_t *load; /* NULL: no waiter and no refresh needs the value any more */
  belay_allocator_t allocator;
  size_t key_len;
  char key[];
};

struct belay__load {
  belay__entry_t entry; /* in cache->loads */
  belay__child_t child;
  belay_cache_t *cache;
  belay__list_t waiters;        /* in the order in which they joined */
  belay_request_t request;      /* of the present state */
  belay_lock_t *lock;           /* NULL: none */
  belay_cache_load_t *load_ref; /* what the loader has; NULL: nothing */
  belay__subscription_t
      subscription;           /* messages about stored values; since the first time in WAITING */
  belay__timer_t timer;       /* WAITING: the next lookup; LOADING: the timeout */
  belay__list_t ready;        /* READY: in a list of the cache or of its batch */
  belay__load_group_t *group; /* NULL: none, or not any more */

  uint8_t state;
  bool requesting;     /* request is pending */
  bool held;           /* the lease was granted and no loss was reported */
  bool unstored;       /* the loaded value is not stored */
  bool outage;         /* loads because the server is away; counted in cache->away_loads */
  bool server_reached; /* a waiter that joined since then could ask the server */
  bool refresh;        /* loads without waiters, too */
  bool early;          /* refresh is due to XFetch */
  bool woken;          /* a value was stored since the last lookup */
  uint8_t tries;       /* consecutive failures to begin */

  uint64_t seq;        /* present */
  uint64_t asked_seq;  /* of the present observation, or of what stores it */
  uint64_t loaded_seq; /* of the load */
  uint64_t began_at;   /* time at which LOADING began */
  int64_t lead_ms;     /* a value with at most this time left is loaded again; or 0 */
  int64_t left_ms;     /* time that the value has left, less the lead; -1: not known */

  belay__lookup_t lookup;   /* the present one; or stamp and time of what is being stored */
  belay__seen_id_t seen_id; /* of the last lookup, of the load or of a waiter */
  uint64_t seen_at;         /* time at which that lookup began */
  belay__record_t
      *fallback; /* a record of that lookup that may be served if the load fails; or NULL */
  belay__record_t *loaded; /* FILLING: what is being stored */
  size_t written;          /* bytes of loaded, as the server keeps it */
  int error;               /* FAILING: the loader's error */
  unsigned char generation[BELAY__RECORD_ID];
  unsigned char tags[BELAY_CACHE_TAGS_MAX][BELAY__RECORD_ID];
  uint8_t tags_len;

  size_t key_len;
  char key[];
};

typedef enum belay__load_event {
  BELAY__LOAD_YES,    /* the answer is yes */
  BELAY__LOAD_NO,     /* the answer is no */
  BELAY__LOAD_ERROR,  /* there is no answer; arg: error */
  BELAY__LOAD_SEEN,   /* load->lookup is answered */
  BELAY__LOAD_LOADED, /* load->loaded is the loader's value */
  BELAY__LOAD_FAILED, /* the loader failed; arg: its error */
  BELAY__LOAD_WAKE,   /* time for a lookup */
  BELAY__LOAD_CLOSE   /* the cache closes */
} belay__load_event_t;

/* single_flight.c: the machine. Files below it report what happened. */
void belay__load_step(belay__load_t *load, belay__load_event_t event, int arg);
/* Enters the first state; or that of a load while the server is away. */
void belay__load_begin(belay__load_t *load);
void belay__load_begin_in_outage(belay__load_t *load);
void belay__load_on_timer(belay__timer_t *timer);
void belay__load_on_close(belay__child_t *child);
bool belay__load_is_over(const belay__load_t *load);
bool belay__load_is_waiting(const belay__load_t *load);

#endif /* BELAY_CACHE_LOAD_STATE_H */
