/* belay_t: memory, time, and the order of events.
 *
 * User callbacks run only from tasks, and tasks run only at the end of an entry from the loop,
 * when no machine is inside a transition. So no transition is re-entered, and a callback may
 * call any function.
 *
 *    loop -> belay__enter: timers that are due, expiries of leases first
 *              the adapter's own work: replies, connections -> machines -> tasks
 *            belay__leave: tasks, urgent ones first; expiries that became due run between them
 *              the host's wake-up time is set to the earliest timer
 *
 * A task that is queued outside an entry, in a call of the user, runs in the next loop
 * iteration. */
#ifndef BELAY_CORE_LOOP_LOOP_H
#define BELAY_CORE_LOOP_LOOP_H

#include "belay/bytes.h"
#include "belay/error.h"
#include "belay/loop.h"
#include "core/loop/heap.h"
#include "core/loop/list.h"
#include "core/port.h"

#define BELAY__MS UINT64_C(1000000)     /* nanoseconds per millisecond */
#define BELAY__NEVER UINT64_MAX         /* a time that does not come */
#define BELAY__DETAIL_MAX ((size_t)256) /* bytes of belay_detail(), terminating 0 included */
#define BELAY__LOG_MAX ((size_t)512)    /* bytes of a log line */

/* The order of timers that are due together. */
typedef enum belay__rank {
  BELAY__RANK_EXPIRY, /* the end of a lease */
  BELAY__RANK_OTHER,
  BELAY__RANKS
} belay__rank_t;

/* A function that runs once, when no machine is inside a transition. */
typedef struct belay__task {
  belay__list_t node; /* Link in a queue; unlinked: not queued */
  void (*run)(struct belay__task *task);
} belay__task_t;

/* A function to run before the loop sleeps and right after it has woken, such as a batch of
 * writes. */
struct belay__flush {
  belay__list_t node; /* Link in a queue of the host; unlinked: not queued */
  void (*run)(belay__flush_t *flush);
};

/* An object that belay closes before it closes itself: a client. */
typedef struct belay__closable {
  belay__list_t node; /* Link in belay->closables */
  /* Start to close, unless already closing. now: do not wait for the network, also if already
   * closing. Later the object removes itself from the list and calls belay__close_if_empty(). */
  void (*close)(struct belay__closable *closable, bool now);
} belay__closable_t;

struct belay {
  const belay__host_ops_t *host;
  belay_allocator_t allocator;
  belay_log_fn log;
  void *log_ctx;
  void *data;

  belay__heap_t timers[BELAY__RANKS];
  uint64_t armed; /* Wake-up time that the host has, in nanoseconds */
  belay__list_t tasks, urgent;
  size_t tasks_len;
  uint64_t task_ns;    /* Smoothed time of a task, in nanoseconds; 0: not measured yet */
  unsigned entered;    /* 1 between belay__enter() and belay__leave() */
  uint64_t entered_at; /* Time of the last belay__enter(), in nanoseconds */
  size_t alive;        /* Number of reasons to keep the loop alive */

  belay__list_t closables;
  /* Objects of the user that may outlive belay_t. belay__host_closed() unlinks them */
  belay__list_t survivors;
  bool closing;
  belay_close_cb close_cb;
  belay_stats_t stats;
  char detail[BELAY__DETAIL_MAX];
  uint32_t reconnects_per_s;
  bool stopped; /* true while the clock stands still; see belay__stop_clock() */
  /* Time at which the stopped clock stands, in nanoseconds; 0: not read since it stopped */
  uint64_t moment;
};

/* Initialize the core's part of a host. options is not NULL. */
void belay__init(belay_t *belay, const belay__host_ops_t *host, const belay_options_t *options);

/* Close the host if belay_close() was called and every closable is gone. */
void belay__close_if_empty(belay_t *belay);

/* Called when the host is closed: runs the close callback. The adapter then frees the memory. */
void belay__host_closed(belay_t *belay);

/* Begin an entry. Returns false in a fork, which shares its sockets with the parent process:
 * then the caller must touch nothing and must not call belay__leave(). */
bool belay__enter(belay_t *belay);
void belay__leave(belay_t *belay);

/* Check that belay can be used, and clear the detail. Returns 0, BELAY_EINVAL (NULL),
 * BELAY_EFORK or BELAY_ECLOSING. */
int belay__check(belay_t *belay);

/* Allocate memory, not initialized; NULL if memory is out. */
void *belay__alloc(belay_t *belay, size_t size);
/* Free memory. size: as in belay__alloc(). ptr may be NULL. */
void belay__free(belay_t *belay, void *ptr, size_t size);

static inline uint64_t belay__now(belay_t *belay) {
  if (!belay->stopped)
    return belay->host->now(belay);
  if (belay->moment == 0)
    belay->moment = belay->host->now(belay);
  return belay->moment;
}

/* Stop the clock: belay__now() returns one constant time until belay__start_clock(). Pass the
 * result of this function to belay__start_clock(), so that pairs of calls nest. For a step of a
 * machine, which is short and runs no callback. */
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

/* Add a measurement to a smoothed time, where it counts for an eighth. An outlier, such as a time
 * in which the process did not run, counts as at most twice the smoothed time. 0: no measurement
 * yet. */
static inline void belay__smooth(uint64_t *smoothed, uint64_t ns) {
  uint64_t now = *smoothed;
  if (now == 0)
    *smoothed = ns;
  else
    *smoothed = now - now / 8 + ((ns < 2 * now ? ns : 2 * now) + 7) / 8;
}

/* Return the time at which the loop entered belay; outside an entry, the present time. Use this
 * time for replies, which had arrived by then. Reading the clock can cost as much as all other work
 * on a reply. */
static inline uint64_t belay__entry_time(belay_t *belay) {
  return belay->entered ? belay->entered_at : belay__now(belay);
}

/* Set a timer, or set it to another time. `when` may be past but not 0. The rank of a timer is the
 * same in all calls. */
void belay__timer_set(belay_t *belay, belay__rank_t rank, belay__timer_t *timer, uint64_t when);
/* Stop a timer; no effect if not set. */
void belay__timer_stop(belay_t *belay, belay__rank_t rank, belay__timer_t *timer);

void belay__task_init(belay__task_t *task, void (*run)(belay__task_t *task));
/* Queue a task; no effect if already queued. */
void belay__defer(belay_t *belay, belay__task_t *task);
/* Queue a task before all tasks that are not urgent. A task that is already queued moves there. */
void belay__defer_urgent(belay_t *belay, belay__task_t *task);
void belay__task_stop(belay_t *belay, belay__task_t *task);

/* Add one reason to keep the loop alive, or remove one. */
void belay__hold_loop(belay_t *belay);
void belay__free_loop(belay_t *belay);

/* Return a random number from 0 to limit - 1, for jitter; 0 if limit is 0 or there are no random
 * bytes. */
uint64_t belay__random_below(belay_t *belay, uint64_t limit);

/* Return the time that is `ms` milliseconds after now, in nanoseconds of the host's clock.
 * BELAY_FOREVER and values that overflow give BELAY__NEVER. */
uint64_t belay__after_ms(belay_t *belay, int64_t ms);

/* Set belay_detail(). Bytes that are not printable become \xNN (core/call/error_text.h). */
__attribute__((format(printf, 2, 3))) void belay__detail(belay_t *belay, const char *format, ...);
/* Set the detail and return BELAY_EINVAL. */
#define belay__invalid(belay, ...) (belay__detail(belay, __VA_ARGS__), (int)BELAY_EINVAL)

/* true if optional bytes are given, false if they are absent (NULL, 0). NULL with a length counts
 * as given, so that the later check of the bytes reports this error of the caller. */
static inline bool belay__is_given(belay_bytes_t bytes) {
  return bytes.data != NULL || bytes.len > 0;
}

/* Each of the next four functions returns 0, or BELAY_EINVAL with a detail that begins with
 * `what`. */
/* Check that the value is within min..max. */
int belay__check_range(belay_t *belay, const char *what, int64_t value, int64_t min, int64_t max);
/* Check that the bytes have a length of min_len to max_len. The address may be NULL only if the
 * length is 0. */
int belay__check_bytes(belay_t *belay, const char *what, belay_bytes_t bytes, size_t min_len,
                       size_t max_len);
/* Check that the bytes are absent (NULL, 0), or have an address and a length of 1 to max_len. */
int belay__check_optional(belay_t *belay, const char *what, belay_bytes_t bytes, size_t max_len);

/* Check that the array has 1 to max items. what: the name of one item, such as "key". */
int belay__check_count(belay_t *belay, const char *what, const void *items, size_t n, size_t max);

/* Pass a line to the log hook. Bytes that are not printable become \xNN. */
__attribute__((format(printf, 3, 4))) void belay__log(belay_t *belay, belay_log_level_t level,
                                                      const char *format, ...);

#endif /* BELAY_CORE_LOOP_LOOP_H */
