/* A flight: a key that is being loaded, or waited for, in this process, and who waits for it. single_flight.c has its states.
 *
 * An observation (a look, a load, a question to the filter) serves those who joined before it began: so nobody is served
 * what was invalidated before he came. A load that was stored also serves those who joined before it was, if there are no
 * tags: had the key been invalidated meanwhile, it would not have been. Turns number what begins; who waits knows in which
 * turn he came. */
#ifndef BELAY_CACHE_SINGLE_FLIGHT_H
#define BELAY_CACHE_SINGLE_FLIGHT_H

#include "belay/lock.h"
#include "cache/lookup.h"

typedef struct belay__flight belay__flight_t;
typedef struct belay__waiter belay__waiter_t;
typedef struct belay__batch belay__batch_t;

/* Who waits: a get, or one key of many. {0} is one that does not. */
struct belay__waiter {
  belay__list_t node;      /* in the flight's list */
  belay__flight_t *flight; /* NULL: it does not wait */
  uint64_t turn;           /* in which it joined */
  uint64_t since;          /* when */
  uint8_t late;            /* belay_cache_late_t */
  /* It is over, and waits no more. The record is the flight's: whoever keeps it takes a reference. */
  void (*end)(belay__waiter_t *waiter, const belay__served_t *served);
};

/* A flight's load, once it is the loader's; it may outlive the belay_t. */
struct belay_cache_load {
  belay__flight_t *flight; /* NULL: nobody wants it any more */
  belay_allocator_t allocator;
  size_t key_len;
  char key[];
};

/* Flights of one belay_cache_get_many(), whose loads are to begin together. */
struct belay__batch {
  unsigned open; /* flights that are on their way, and whoever makes them */
  belay__list_t ready;
};

struct belay__flight {
  belay__entry_t entry; /* in cache->flights */
  belay__child_t child;
  belay_cache_t *cache;
  belay__list_t waiters;    /* in the order in which they joined */
  belay_request_t request;  /* of the present state */
  belay_lock_t *lock;       /* NULL: none */
  belay_cache_load_t *load; /* NULL: it is not the loader's */
  belay__ear_t ear;         /* once it has waited: for what others store */
  belay__timer_t timer;     /* WAITING: to look; LOADING: patience is over */
  belay__list_t ready;      /* READY: in the cache's list, or its batch's */
  belay__batch_t *batch;    /* NULL: none, or none any more */

  uint8_t state;
  bool asking;   /* its request is pending */
  bool held;     /* the lease was granted, and is not known to be lost */
  bool loser;    /* what it loads is not stored */
  bool away;     /* because the server is; counted in cache->away_loads */
  bool reached;  /* somebody who joined since then could ask it */
  bool refresh;  /* loads also if nobody waits */
  bool early;    /* that is because XFetch says so */
  bool woken;    /* somebody has stored something since the last look */
  uint8_t tries; /* to begin, which came to nothing */

  uint64_t turn;        /* now */
  uint64_t asked_turn;  /* of the present observation, or of what stores it */
  uint64_t loaded_turn; /* of the load */
  uint64_t began;       /* the load */
  int64_t lead_ms;      /* what has no more than this left is loaded again; or 0 */
  int64_t left_ms;      /* of what it came to; -1: not known */

  belay__look_t look;  /* the present one; or the stamp and the time of what is being stored */
  belay__seen_t seen;  /* of the last one, its own or of who joined */
  uint64_t seen_asked; /* when that began */
  belay__record_t
      *kept; /* what that found, if it may be served when there is nothing better; or NULL */
  belay__record_t *loaded; /* FILLING: what is being stored */
  size_t written;          /* bytes of it, as it is kept there */
  int error;               /* FAILING: as the loader says */
  unsigned char generation[BELAY__RECORD_ID];
  unsigned char tags[BELAY_CACHE_TAGS_MAX][BELAY__RECORD_ID];
  uint8_t tags_len;

  size_t key_len;
  char key[];
};

/* ---- single_flight.c ---------------------------------------------------------------------------------------------- */

typedef enum belay__flight_event {
  BELAY__FLIGHT_YES,    /* what was asked for is so */
  BELAY__FLIGHT_NO,     /* it is not */
  BELAY__FLIGHT_ERROR,  /* it is not known; arg: why */
  BELAY__FLIGHT_SEEN,   /* flight->look is what is there */
  BELAY__FLIGHT_LOADED, /* the loader has brought flight->loaded */
  BELAY__FLIGHT_FAILED, /* it has failed; arg: as it says */
  BELAY__FLIGHT_WAKE,   /* it is time to look */
  BELAY__FLIGHT_CLOSE   /* the cache ends */
} belay__flight_event_t;

/* Something happened. */
void belay__flight_step(belay__flight_t *flight, belay__flight_event_t event, int arg);

/* Enters its first state; or that of a load while the server is away. */
void belay__flight_begin(belay__flight_t *flight);
void belay__flight_begin_away(belay__flight_t *flight);

void belay__flight_on_timer(belay__timer_t *timer);
void belay__flight_on_close(belay__child_t *child);

/* For what has come back. */
bool belay__flight_is_over(const belay__flight_t *flight);
bool belay__flight_is_waiting(const belay__flight_t *flight);

/* ---- waiters.c ------------------------------------------------------------------------------------------------ */

/* The look of a get is over. True: it need not wait, and is served; what is there is loaded again, if that is due. The record
 * is the look's. */
bool belay__flight_spare(belay_cache_t *cache, const char *key, size_t key_len, belay__look_t *look,
                         belay__served_t *served);

/* Waits for what the key stands for, after a look that has not found it fresh, whose record becomes the flight's. batch:
 * if a flight begins for it, it is of that one; NULL: of none. Returns 0 or BELAY_ENOMEM. */
int belay__flight_join(belay_cache_t *cache, const char *key, size_t key_len, belay__look_t *look,
                       belay__batch_t *batch, belay__waiter_t *waiter);

/* The same after a look that was asked for then and could not be taken: it is loaded, and not stored. Returns 0, BELAY_ENOMEM, or BELAY_EBUSY:
 * there are too many of those. */
int belay__flight_join_away(belay_cache_t *cache, const char *key, size_t key_len, uint64_t asked,
                            belay__waiter_t *waiter);

/* It is to be loaded again, in the background, unless it is under way; look: what was found. */
void belay__flight_refresh(belay_cache_t *cache, const char *key, size_t key_len,
                           const belay__look_t *look);

/* The same for what is served from the table of this process, if XFetch says so. */
void belay__flight_refresh_early(belay_cache_t *cache, const char *key, size_t key_len,
                                 const belay__record_t *record);

/* Looks, and loads what has no more than lead_ms left. Returns 0 or BELAY_ENOMEM. */
int belay__flight_check(belay_cache_t *cache, const char *key, size_t key_len, int64_t lead_ms);

/* It does not wait any more, and is not told. */
void belay__flight_leave(belay__waiter_t *waiter);

/* What it is served if it has waited for long enough. The record is the flight's. */
belay__served_t belay__waiter_late(const belay__waiter_t *waiter);

/* The first of those who wait; NULL: nobody does. */
belay__waiter_t *belay__flight_first(const belay__flight_t *flight);
void belay__waiter_end(belay__waiter_t *waiter, belay__served_t served);

/* Serves those who joined before that turn. */
void belay__flight_serve(belay__flight_t *flight, uint64_t turn, belay__served_t served);
/* Nothing better will come for them: they are served what is kept, or told why not. And what one of them is. */
void belay__flight_fall_back(belay__flight_t *flight, uint64_t turn, int reason, int load_error);
belay__served_t belay__waiter_fallback(const belay__waiter_t *waiter, int reason, int load_error);

/* The look becomes what is known, unless one that began later has been taken already: whoever waits is not to be served
 * what was seen before he came. */
void belay__flight_adopt(belay__flight_t *flight, belay__look_t *look);

/* Nobody else uses the memory any more. */
void belay__flight_free(belay__flight_t *flight);

/* ---- load_steps.c: the flight's questions; each ends in a step --------------------------------------------------- */

/* Each returns 0 or an error: then no step comes. */
int belay__flight_ask_filter(belay__flight_t *flight);
int belay__flight_ask_lease(belay__flight_t *flight);
int belay__flight_ask_begin(belay__flight_t *flight);
int belay__flight_ask_limiter(belay__flight_t *flight);
int belay__flight_ask_look(belay__flight_t *flight);
int belay__flight_ask_fill(belay__flight_t *flight);
int belay__flight_ask_fail(belay__flight_t *flight);

/* Gives the lease back, if there is one; belay__flight_free() comes when that is through. False: there is none. */
bool belay__flight_end_lease(belay__flight_t *flight);
/* Listens to what others store, unless it does. */
void belay__flight_listen(belay__flight_t *flight);

/* ---- loader.c ------------------------------------------------------------------------------------------------- */

/* It is of that batch, from now on; NULL: of none. */
void belay__load_join(belay__flight_t *flight, belay__batch_t *batch);
/* The flight is READY: its load begins with the next task, or with the rest of its batch (BELAY__FLIGHT_YES). */
void belay__load_ready(belay__flight_t *flight);
/* It does not go on to its load: its batch does not wait for it. */
void belay__load_leave(belay__flight_t *flight);
/* Nobody wants it any more. */
void belay__load_detach(belay__flight_t *flight);
void belay__load_task(belay__task_t *task);

/* A batch that is being made; NULL if memory is out. And all that belongs to it has joined: whoever made it has no part in
 * it any more. */
belay__batch_t *belay__batch_new(belay_cache_t *cache);
void belay__batch_made(belay_cache_t *cache, belay__batch_t *batch);

/* ---- keep_fresh.c -------------------------------------------------------------------------------------------------- */

/* A flight for the key is over, and so much is left of it; -1: it is not known. */
void belay__pin_over(belay_cache_t *cache, const char *key, size_t key_len, int64_t left_ms);
void belay__pins_free(belay_cache_t *cache);

#endif /* BELAY_CACHE_SINGLE_FLIGHT_H */
