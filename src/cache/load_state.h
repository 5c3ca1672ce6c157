/* A single-flight load and its waiters. The load belongs to a key that this process loads, or
 * for which it waits while another process loads it. single_flight.c has the states.
 *
 * An observation is a lookup, a load or a query of the filter. It serves the waiters that joined
 * before it began. So a waiter never gets a value that was invalidated before the waiter joined.
 * There is one exception: a load without tags whose value was stored also serves waiters that
 * joined before the server stored it, because the server stores no value that was invalidated
 * during its load.
 *
 * Observations have sequence numbers. Each waiter has the number that was current when it
 * joined. */
#ifndef BELAY_CACHE_LOAD_STATE_H
#define BELAY_CACHE_LOAD_STATE_H

#include "belay/lock.h"
#include "cache/lookup.h"
#include "core/key/table.h"

typedef struct belay__load belay__load_t;
typedef struct belay__load_waiter belay__load_waiter_t;
typedef struct belay__load_group belay__load_group_t;

/* A waiting get, or one waiting key of a belay_cache_get_many(). {0}: not waiting. */
struct belay__load_waiter {
  belay__list_t node;  /* in load->waiters */
  belay__load_t *load; /* NULL: not waiting */
  uint64_t seq;        /* sequence number of the observation during which the waiter joined */
  uint64_t joined_at;  /* host time at which the waiter joined */
  uint8_t late;        /* belay_cache_late_t */
  /* Called after the waiter was served and has left the load. The load owns the record of *served:
   * `end` takes its own reference to keep the record. */
  void (*end)(belay__load_waiter_t *waiter, const belay__served_t *served);
};

/* The loader's reference to a load. It can outlive the belay_t. */
struct belay_cache_load {
  belay__load_t *load; /* NULL: no waiter and no refresh needs the value any more */
  belay_allocator_t allocator;
  size_t key_len;
  char key[];
};

struct belay__load {
  belay__keyed_t keyed; /* first; in cache->loads, or in no table when the load is OVER */
  belay__child_t child;
  belay_cache_t *cache;
  belay__list_t waiters;              /* in the order in which they joined */
  belay_request_t request;            /* request of the present state */
  belay_lock_t *lock;                 /* NULL: none */
  belay_cache_load_t *load_ref;       /* the loader's reference; NULL: none */
  belay__subscription_t subscription; /* messages about stored values; from WAITING on */
  belay__timer_t timer;               /* WAITING: the next lookup; LOADING: the timeout */
  belay__list_t ready;                /* READY: in a list of the cache or of its batch */
  belay__load_group_t *group;         /* NULL: none, or not any more */

  uint8_t state;
  bool requesting;     /* the request is under way */
  bool held;           /* the lease was granted, and no loss of it was reported */
  bool unstored;       /* the loaded value is not stored on the server */
  bool outage;         /* loads because of an outage; counted in cache->outage_loads */
  bool server_reached; /* a waiter that joined since the outage could reach the server */
  bool refresh;        /* the load runs even without waiters */
  bool early;          /* XFetch caused the refresh */
  bool woken;          /* a value was stored after the last lookup */
  uint8_t tries;       /* consecutive failures to begin */

  uint64_t seq;        /* number of the present observation */
  uint64_t asked_seq;  /* number of the observation that serves waiters in the present state */
  uint64_t loaded_seq; /* number of the observation that is the load */
  uint64_t began_at;   /* host time at which LOADING began */
  /* the key is loaded if its value has at most this much time left; 0: only if needed */
  int64_t lead_ms;
  int64_t left_ms; /* remaining freshness of the value less the lead; -1: unknown */

  /* the last lookup; while a value is stored: stamp and time of that value */
  belay__lookup_t lookup;
  belay__seen_id_t seen_id; /* id found by the last lookup of the load or of one of its waiters */
  uint64_t seen_at;         /* host time at which that lookup began */
  /* record of that lookup; served if the load fails; or NULL */
  belay__record_t *fallback;
  belay__record_t *loaded; /* FILLING: the record that is stored */
  size_t written;          /* size of `loaded` as stored on the server, in bytes */
  int error;               /* FAILING: error of the loader */
  unsigned char generation[BELAY__RECORD_ID];
  unsigned char tags[BELAY_CACHE_TAGS_MAX][BELAY__RECORD_ID];
  uint8_t tags_len;
};

static inline belay_t *belay__load_belay(const belay__load_t *load) {
  return load->cache->handle.client->belay;
}

static inline belay_bytes_t belay__load_key(const belay__load_t *load) {
  return belay_bytes(load->keyed.key, load->keyed.key_len);
}

typedef enum belay__load_event {
  BELAY__LOAD_YES,    /* the step has succeeded */
  BELAY__LOAD_NO,     /* the step was denied */
  BELAY__LOAD_ERROR,  /* the step has failed; arg: error */
  BELAY__LOAD_SEEN,   /* load->lookup has all replies */
  BELAY__LOAD_LOADED, /* load->loaded has the loader's value */
  BELAY__LOAD_FAILED, /* the loader failed; arg: its error */
  BELAY__LOAD_WAKE,   /* it is time for a lookup */
  BELAY__LOAD_CLOSE   /* the cache closes */
} belay__load_event_t;

/* Reports an event to the machine (single_flight.c). */
void belay__load_step(belay__load_t *load, belay__load_event_t event, int arg);
/* Enters the first state: of a normal load; of a load that begins in an outage. */
void belay__load_begin(belay__load_t *load);
void belay__load_begin_in_outage(belay__load_t *load);
void belay__load_on_timer(belay__timer_t *timer);
void belay__load_on_close(belay__child_t *child);
bool belay__load_is_over(const belay__load_t *load);
bool belay__load_is_waiting(const belay__load_t *load);

#endif /* BELAY_CACHE_LOAD_STATE_H */
