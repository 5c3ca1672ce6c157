/* belay_t: memory, time, and the order in which things happen.
 *
 * The one rule: a user's function is only ever called from a task, and tasks run only when the machines
 * are at rest: at the end of an entry from the loop. So no transition is ever re-entered, and a callback
 * may do anything.
 *
 *   loop -> belay__enter: timers that are due, expiries of leases first
 *             the adapter's own work: replies, connections -> machines -> tasks
 *           belay__leave: tasks, urgent ones first; expiries that became due are run between them
 *             the host's wake-up is set to the earliest timer
 *
 * A task that was made outside an entry, inside a call of the user's, runs in the loop's next turn. */
#ifndef BELAY_CORE_LOOP_LOOP_H
#define BELAY_CORE_LOOP_LOOP_H

#include "belay/bytes.h"
#include "belay/error.h"
#include "belay/loop.h"
#include "core/loop/heap.h"
#include "core/loop/list.h"
#include "core/port.h"

#define BELAY__MS UINT64_C(1000000)     /* nanoseconds in a millisecond */
#define BELAY__NEVER UINT64_MAX         /* a time that does not come */
#define BELAY__DETAIL_MAX ((size_t)256) /* bytes of belay_detail(), its 0 included */
#define BELAY__LOG_MAX ((size_t)512)    /* of a line of the log */

/* The order among timers that are due together. */
typedef enum belay__rank {
  BELAY__RANK_EXPIRY, /* a lease is over */
  BELAY__RANK_OTHER,
  BELAY__RANKS
} belay__rank_t;

/* Something to be run once, when the machines are at rest. */
typedef struct belay__task {
  belay__list_t node; /* in a queue, or alone */
  void (*run)(struct belay__task *task);
} belay__task_t;

/* Something that the host closes before it closes itself: a client. */
typedef struct belay__closable {
  belay__list_t node; /* in belay->closables */
  /* Begins to close it, unless it closes already. now: without waiting for the network. It removes itself from the list
   * later, and then calls belay__close_if_empty(). */
  void (*close)(struct belay__closable *closable, bool now);
} belay__closable_t;

struct belay {
  const belay__host_ops_t *host;
  belay_allocator_t allocator;
  belay_log_fn log;
  void *log_ctx;
  void *data;

  belay__heap_t timers[BELAY__RANKS];
  uint64_t armed; /* what the host was told */
  belay__list_t tasks, urgent;
  size_t tasks_len;
  unsigned entered;    /* 1 between enter and leave */
  uint64_t entered_at; /* when that began */
  size_t alive;        /* reasons to keep the loop alive */

  belay__list_t closables;
  belay__list_t
      survivors; /* objects of the user's that may outlive it; they are taken out when it is gone */
  bool closing;
  belay_close_cb close_cb;
  belay_stats_t stats;
  char detail[BELAY__DETAIL_MAX];
  uint32_t reconnects_per_s;
  bool stopped;    /* the clock is: see belay__stop_clock(); */
  uint64_t moment; /* and it stands at this; 0: nobody has looked since */
};

/* Initializes the core's part of a host. options is not NULL. */
void belay__init(belay_t *belay, const belay__host_ops_t *host, const belay_options_t *options);

/* Closes the host if belay_close() was called and every closable is gone. */
void belay__close_if_empty(belay_t *belay);

/* The host is closed: tells the user. The memory is the adapter's to free afterwards. */
void belay__gone(belay_t *belay);

/* False in a fork, which shares its sockets with the process that they belong to: it must touch nothing, and
 * belay__leave() is not called. */
bool belay__enter(belay_t *belay);
void belay__leave(belay_t *belay);

/* 0, BELAY_EFORK or BELAY_ECLOSING; a NULL belay is BELAY_EINVAL. Clears the detail. */
int belay__check(belay_t *belay);

/* NULL if there is none. The memory is not initialized. */
void *belay__alloc(belay_t *belay, size_t size);
/* size as it was asked for; ptr may be NULL. */
void belay__free(belay_t *belay, void *ptr, size_t size);

static inline uint64_t belay__now(belay_t *belay) {
  if (!belay->stopped)
    return belay->host->now(belay);
  if (belay->moment == 0)
    belay->moment = belay->host->now(belay);
  return belay->moment;
}

/* From here on all is done at one moment, up to belay__start_clock(), which is given what this returns. For a step of a
 * machine, which is short and calls nobody back. */
static inline bool belay__stop_clock(belay_t *belay) {
  bool was = belay->stopped;
  belay->stopped = true;
  return was;
}

static inline void belay__start_clock(belay_t *belay, bool stopped) {
  belay->stopped = stopped;
  if (!stopped)
    belay->moment = 0;
}

/* When the loop woke us, or now, if it did not: what came with that entry was there by then. A look at the clock may cost
 * as much as all else that is done with a reply. */
static inline uint64_t belay__connect_slot(belay_t *belay) {
  return belay->entered ? belay->entered_at : belay__now(belay);
}

/* Sets a timer, also one that is set already; when may be past, and is never 0. */
void belay__timer_set(belay_t *belay, belay__rank_t rank, belay__timer_t *timer, uint64_t when);
/* Stops a timer, also one that is not set. */
void belay__timer_stop(belay_t *belay, belay__rank_t rank, belay__timer_t *timer);

void belay__task_init(belay__task_t *task, void (*run)(belay__task_t *task));
/* Queues a task, also one that is queued already. */
void belay__defer(belay_t *belay, belay__task_t *task);
/* The same, before all that are not urgent. */
void belay__defer_urgent(belay_t *belay, belay__task_t *task);
void belay__task_stop(belay_t *belay, belay__task_t *task);

/* Gives the loop one more reason to stay alive, or takes one away. */
void belay__hold_loop(belay_t *belay);
void belay__free_loop(belay_t *belay);

/* A number from 0 to limit - 1 (0 if limit is 0), fit for jitter. */
uint64_t belay__random_below(belay_t *belay, uint64_t limit);

/* A time in milliseconds as nanoseconds from now; BELAY_FOREVER and what overflows are BELAY__NEVER. */
uint64_t belay__after_ms(belay_t *belay, int64_t ms);

/* Sets belay_detail(); what is not printable stands there as \xNN (core/call/error_text.h). */
__attribute__((format(printf, 2, 3))) void belay__detail(belay_t *belay, const char *format, ...);
/* Set the detail; return BELAY_EINVAL. */
__attribute__((format(printf, 2, 3))) int belay__invalid(belay_t *belay, const char *format, ...);

/* True unless optional bytes are absent. NULL with a length is a mistake of the caller, not absence. */
static inline bool belay__is_given(belay_bytes_t bytes) {
  return bytes.data != NULL || bytes.len > 0;
}

/* Each returns 0, or BELAY_EINVAL with a detail that begins with `what`. */
/* The value is within min..max. */
int belay__check_range(belay_t *belay, const char *what, int64_t value, int64_t min, int64_t max);
/* The bytes have a length of min_len to max_len, and an address unless the length is 0. */
int belay__check_bytes(belay_t *belay, const char *what, belay_bytes_t bytes, size_t min_len,
                       size_t max_len);
/* The bytes are absent (NULL, 0), or have an address and a length of 1 to max_len. */
int belay__check_optional(belay_t *belay, const char *what, belay_bytes_t bytes, size_t max_len);

/* An array of 1 to max items; what: one of them, such as "key". */
int belay__check_count(belay_t *belay, const char *what, const void *items, size_t n, size_t max);

/* A line for the log hook; likewise. */
__attribute__((format(printf, 3, 4))) void belay__log(belay_t *belay, belay_log_level_t level,
                                                      const char *format, ...);

#endif /* BELAY_CORE_LOOP_LOOP_H */
