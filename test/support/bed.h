/* A test bed: a loop, belay on it, clients, perhaps a server, and contenders for locks.
 *
 * What must hold in every test is checked here: each operation that returned 0 calls back exactly once, never from
 * inside the call that started it and never after its handle is closed; and at the end uv_loop_close() finds
 * nothing, and every byte that belay took from its allocator is given back. */
#ifndef TEST_BED_H
#define TEST_BED_H

#include <belay.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "support/clock.h"
#include "support/server.h"
#include "support/unit.h"

typedef struct contender contender_t;

enum { BED_CLIENTS_MAX = 64 };

typedef struct bed {
  uv_loop_t loop;
  belay_t *belay;
  belay_client_t *client; /* the first */
  server_t *server;       /* its; NULL: somebody else's, or none */

  unsigned clients; /* that are not closed */
  belay_client_t *all[BED_CLIENTS_MAX];

  size_t bytes, allocations; /* belay's: now, and ever */
  int belay_closed, client_closed, pongs, pong_status;
  void (*then)(struct bed *bed); /* runs at the end of each callback of a ping; NULL: nothing */
  unsigned sequence;             /* numbers callbacks in the order in which they ran */
  unsigned wrong;                /* callbacks that must not have come */
  unsigned errors, warnings;     /* lines of the log that are */
  void (*heard)(struct bed *bed, const char *line); /* is told of each line of it; NULL: nobody */
  void *arg;                                        /* the test's */
  int failed;         /* the status of the last operation of a lease that has failed, */
  char detail[256];   /* and what belay_detail() said then */
  unsigned inside;    /* calls of belay's that are on the stack, callbacks not counted */
  contender_t *first; /* all contenders */

  uv_timer_t patience, ticker;
  const char *awaited; /* NULL: nothing is */
  bool in_vain;
} bed_t;

/* What a callback of a contender's was about. */
typedef enum event {
  EVENT_ENDED,    /* an acquire or a release */
  EVENT_EXTENDED, /* an extend */
  EVENT_LOST,
  EVENT_CLOSED
} event_t;

/* A handle, and what was heard of it. */
struct contender {
  bed_t *bed;
  belay_lock_t *lock; /* NULL: closed */
  contender_t *next;

  unsigned begun, ended;           /* acquires and releases */
  unsigned begun_extend, extended; /* extends */
  unsigned lost, closing, closed;
  int status, extend_status; /* the last */
  belay_lost_t reason;
  unsigned ended_at, extended_at, lost_at, closed_at; /* in the bed's sequence */
  int64_t ended_time, lost_time;                      /* by clock_now() */

  void (*then)(contender_t *contender,
               event_t event); /* runs at the end of each callback; NULL: nothing */
  void *arg;                   /* the test's */
};

/* ---- beds ---------------------------------------------------------------------------------------------- */

/* With a fresh server on a unix socket; options may be NULL. */
bed_t *bed_open(const belay_client_options_t *options);
/* With a server that was started for it, and is stopped with it. */
bed_t *bed_open_with(server_t *server, const belay_client_options_t *options);
/* Without a client, and without a server. */
bed_t *bed_bare(void);
/* With a client for that URL and no server. */
bed_t *bed_open_at(const char *url, const belay_client_options_t *options);

/* Closes everything, and checks that nothing is left. */
void bed_close(bed_t *bed);

/* One more client on the same loop. */
belay_client_t *bed_connect(bed_t *bed, const char *url, const belay_client_options_t *options);

/* Begins belay_close(), belay_client_close(), a ping; what comes back is counted in the bed. */
int begin_belay_close(bed_t *bed);
int begin_client_close(bed_t *bed);
int begin_close_of(bed_t *bed, belay_client_t *client); /* of another than the first */
int begin_ping(bed_t *bed);

belay_client_stats_t client_stats(const bed_t *bed);
belay_client_options_t client_options(void);   /* the defaults */
belay_lock_options_t lock_options(void);       /* the defaults */
belay_lock_options_t with_ttl(int64_t ttl_ms); /* and without a watchdog */
belay_lock_options_t watched(int64_t ttl_ms);  /* and with one */

/* ---- time ---------------------------------------------------------------------------------------------- */

/* Runs the loop until the condition, which is looked at between turns, holds. Fails the test if that takes
 * absurdly long. */
#define bed_until(bed, condition)                                                                  \
  do {                                                                                             \
    bed_t *waiting_ = (bed);                                                                       \
    bed_wait_begin(waiting_, #condition);                                                          \
    while (!(condition))                                                                           \
      bed_turn(waiting_);                                                                          \
    bed_wait_end(waiting_);                                                                        \
  } while (0)

void bed_wait_begin(bed_t *bed, const char *awaited);
void bed_turn(bed_t *bed);
void bed_wait_end(bed_t *bed);

/* Runs the loop for so long. */
void bed_run_for(bed_t *bed, int64_t ms);

/* Until nothing that was asked of any server is under way any more, undos included. */
void bed_settle(bed_t *bed);

/* In a callback of a lease's operation, with its status. */
void bed_note(bed_t *bed, int status);

/* ---- contenders ---------------------------------------------------------------------------------------- */

/* A handle of the bed's client for that name; options may be NULL. Its on_lost and data are the contender's. */
contender_t *contender_new(bed_t *bed, const char *name, const belay_lock_options_t *options);
contender_t *contender_of(bed_t *bed, belay_client_t *client, const char *name,
                          const belay_lock_options_t *options);

/* One without a handle yet. Its on_lost and data are put into the options that the handle is to be made with. */
contender_t *contender_blank(bed_t *bed, belay_lock_options_t *options);

/* Begin an operation; what belay returned. If it is 0, the callback is counted. */
int begin_acquire(contender_t *contender, int64_t wait_ms);
int begin_release(contender_t *contender);
int begin_extend(contender_t *contender, int64_t ttl_ms);
int begin_change(contender_t *contender,
                 bool up); /* an upgrade or a downgrade: counts as an extend */
int begin_close(contender_t *contender);
int cancel(contender_t *contender);

/* Waits for what was begun, an acquire or a release; its status. */
int outcome(contender_t *contender);

/* Begin it and wait for it: its status, or what belay returned if that was an error. */
int try_lock(contender_t *contender);
int acquire(contender_t *contender, int64_t wait_ms);
int release(contender_t *contender);
int extend(contender_t *contender, int64_t ttl_ms);
int close_lock(contender_t *contender);

/* ---- questions ----------------------------------------------------------------------------------------- */

/* Milliseconds for which it is certainly held. */
int64_t remaining_ms(const contender_t *contender);

/* Until when it is believed to be held, by clock_now(). */
int64_t believed_until(const contender_t *contender);

/* Until it is lost because its time is over; that is at the deadline, by clock_now(), which does not move meanwhile. */
void await_loss_at(contender_t *contender, int64_t deadline);

/* Its key, as a string; valid until the next question. */
const char *key_of(const contender_t *contender);

/* What the server has under its key; NULL if nothing. */
const char *value_of(contender_t *contender);
/* For how much longer, in milliseconds; -2: it is not there; -1: for ever. */
int64_t pttl_of(contender_t *contender);

/* Whether the server has this contender's token under its key. */
bool is_on_server(contender_t *contender);

/* Somebody else takes the lock, behind everybody's back. */
void foreign_holder(contender_t *contender, int64_t ttl_ms);

#endif /* TEST_BED_H */
