/* A single-flight load and its waiters. The load belongs to a key that this process loads, or that
 * another process loads while this process waits. single_flight.c has the states.
 *
 * An observation is a lookup, a load or a query of the filter. It serves the waiters that joined
 * before it began. So a waiter never gets a value that was invalidated before the waiter joined.
 * There is one exception to the order: a load of a key without tags, once its value is stored, also
 * serves the waiters that joined before the store was sent. This is safe, because the server stores
 * no value that was invalidated during its load.
 *
 * The load has a sequence number, which each new state and each observation increments. Each waiter
 * has the number that was current when it joined. An observation serves the waiters whose number is
 * less than that of the observation. */
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
  /* sequence number of the load when the waiter joined; if the waiter's get began before LOADING,
   * a number less than loaded_seq */
  uint64_t seq;
  uint64_t joined_at; /* host time at which the waiter joined */
  uint8_t late;       /* belay_cache_late_t */
  /* Called after the waiter was served and has left the load. The load owns the record of *served:
   * `end` takes its own reference to keep the record. */
  void (*end)(belay__load_waiter_t *waiter, const belay__served_t *served);
};

/* The loader's reference to a load. It can outlive the belay_t. */
struct belay_cache_load {
  belay__load_t *load; /* NULL: the load has timed out, or the cache is closed */
  belay_allocator_t allocator;
  size_t key_len;
  char key[];
};

struct belay__load {
  belay__keyed_t keyed; /* first; in cache->loads, or in no table when the load is OVER */
  belay__child_t child;
  belay_cache_t *cache;
  belay__list_t waiters;   /* in the order in which they joined */
  belay_request_t request; /* request of the present state, under way while `requesting` */
  belay_lock_t *lock;      /* NULL: none */
  /* reference that the loader has, in LOADING; otherwise NULL */
  belay_cache_load_t *load_ref;
  belay__subscription_t subscription; /* messages about stored values; from WAITING on */
  /* WAITING: the next lookup or the end of wait_ms; LOADING: the timeout */
  belay__timer_t timer;
  belay__list_t ready;        /* READY: link in a list of the cache or of `group` */
  belay__load_group_t *group; /* group for which this load may become READY; NULL: none */

  uint8_t state;
  bool requesting; /* the request is under way */
  bool held;       /* the lease was granted, and no loss of it was reported */
  bool unstored;   /* the loaded value is not stored on the server */
  bool outage;     /* loads because of an outage; counted in cache->outage_loads */
  /* the server answered the lookup of a waiter that joined since `outage` was set */
  bool server_reached;
  bool refresh; /* the load runs even without waiters */
  bool early;   /* XFetch caused the refresh */
  /* another process may have stored its result after the last lookup began; then WAITING ends at
   * once */
  bool woken;
  uint8_t tries; /* consecutive times that BEGINNING did not begin the load */

  uint64_t seq; /* present sequence number; each new state increments it */
  /* sequence number on entry to the present state; the result of the state serves waiters with a
   * smaller number */
  uint64_t asked_seq;
  /* sequence number on entry to LOADING; the load serves waiters with a smaller number */
  uint64_t loaded_seq;
  uint64_t began_at; /* host time at which LOADING began */
  /* a refresh loads the key only if its VALUE stays fresh for at most this time, in ms; 0: only if
   * the VALUE is no longer fresh */
  int64_t lead_ms;
  /* remaining fresh time of the last served or stored record, in ms, plus refresh_ms if the record
   * is not a VALUE; -1: unknown */
  int64_t left_ms;

  /* the last lookup; from BEGINNING on: the tags and the stamp of the value that is loaded */
  belay__lookup_t lookup;
  /* id of the stored value in the last lookup, by the load or by a get that joined the load */
  belay__seen_id_t seen_id;
  uint64_t seen_at; /* host time at which the lookup that set seen_id began */
  /* record of the lookup that set seen_id; served if the load fails and the record has not expired;
   * NULL: none */
  belay__record_t *fallback;
  belay__record_t *loaded; /* record of the value that the loader returned; NULL: none */
  size_t written;          /* size of `loaded` as stored on the server, in bytes */
  int error;               /* FAILING: error of the loader, or BELAY_ETIMEDOUT */
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
  BELAY__LOAD_YES, /* the step has succeeded; FILTERING: the key may exist */
  /* LOCKING: another process holds the lease; LIMITING: denied; FILTERING: absent */
  BELAY__LOAD_NO,
  BELAY__LOAD_ERROR, /* the step has failed; arg: error */
  /* LOOKING_UP, BEGINNING: load->lookup has the stored record, or none; FILLING, FAILING: the
   * generation of the load is not registered any more, so nothing was stored */
  BELAY__LOAD_SEEN,
  BELAY__LOAD_LOADED, /* load->loaded has the loader's value */
  BELAY__LOAD_FAILED, /* the loader failed; arg: its error */
  BELAY__LOAD_WAKE,   /* WAITING: a message arrived, or the timer has fired */
  BELAY__LOAD_CLOSE   /* the cache closes */
} belay__load_event_t;

/* Reports an event to the machine (single_flight.c). arg: for ERROR and FAILED; otherwise
 * ignored. */
void belay__load_step(belay__load_t *load, belay__load_event_t event, int arg);
/* belay__load_begin() begins a new load. belay__load_begin_in_outage() begins a new load at READY,
 * and the value of that load is not stored. */
void belay__load_begin(belay__load_t *load);
void belay__load_begin_in_outage(belay__load_t *load);
void belay__load_on_timer(belay__timer_t *timer);
void belay__load_on_close(belay__child_t *child);
bool belay__load_is_over(const belay__load_t *load);
bool belay__load_is_waiting(const belay__load_t *load);

#endif /* BELAY_CACHE_LOAD_STATE_H */
