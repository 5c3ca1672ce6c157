/* A sweep: its state, its requests (sweep_page.c), and the processing of keys: deletion
 * (sweep_page.c) or queries of holders (sweep_held.c). */
#ifndef BELAY_ADMIN_SWEEP_H
#define BELAY_ADMIN_SWEEP_H

#include "belay/sweep.h"
#include "core/client/handle.h"

#define BELAY__SWEEP_TYPE_MAX ((size_t)32)
#define BELAY__SWEEP_CALLS_MAX 256 /* at once */

/* Where it is. */
typedef struct belay__sweep_position {
  size_t shard; /* on which of the servers that have the data */
  uint32_t route;
  uint32_t version; /* version of the slot map at the beginning */
  uint64_t cursor;  /* there; 0: at the beginning */
  bool over;        /* at the end of the last */
  bool known;       /* the server has answered: */
  uint32_t epoch;
  size_t run_id_len;
  char run_id[BELAY__RUN_ID_MAX];
} belay__sweep_position_t;

/* Keys that were found, behind each other in one piece of memory. */
typedef struct belay__sweep_page {
  belay_bytes_t *keys; /* NULL: none */
  size_t size;         /* of that memory */
  size_t n, next;      /* how many there are; the first with which nothing was done yet */
} belay__sweep_page_t;

/* The processing of each key of a page, by a call of its own. */
typedef struct belay__sweep_work {
  /* Whether it is done with this one; the others are left out of the page. NULL: with all. */
  bool (*accepts)(const belay_sweep_t *sweep, const char *key, size_t len);
  /* NULL: memory is out. */
  belay__call_t *(*call)(belay_sweep_t *sweep, const belay_bytes_t *key);
  /* Of these calls, but for tell. */
  belay__request_ops_t ops;
  /* All calls are answered: passes the results to the user's callback, which may end the run.
   * NULL: no results. */
  void (*deliver)(belay_sweep_t *sweep);
  /* Drops results that are not reported, because the calls are repeated or the run is over.
   * NULL: none. */
  void (*drop)(belay_sweep_t *sweep);
} belay__sweep_work_t;

extern const belay__sweep_work_t belay__sweep_deleting, belay__sweep_reading;

struct belay_sweep {
  belay__handle_t handle;  /* first */
  belay_request_t request; /* SCANNING, WORKING */
  belay__timer_t timer;    /* PAUSED: the end of the pause */
  belay__task_t task;      /* ENDING */
  belay__sweep_position_t position;
  belay__sweep_page_t page;
  belay_sweep_totals_t totals;
  uint64_t due;   /* when all that was asked may have taken its time */
  uint64_t since; /* when it began to wait for an answer */
  int64_t patience_ms;
  uint32_t keys_per_s, batch;
  uint32_t count, calls; /* in one page, and at once: fewer where that was too much */
  uint32_t cost;         /* cost of the last request, in keys */
  int status;
  uint8_t state;
  const belay__sweep_work_t *work; /* NULL: the keys are only told */
  belay__request_ops_t work_ops;   /* its operations, with a callback of its own */
  belay__list_t held;              /* that was answered, and not told yet */
  belay_sweep_held_cb on_held;
  belay_sweep_keys_cb on_keys;
  belay_sweep_progress_cb on_progress;
  belay_sweep_cb cb;
  char *match; /* match_room bytes, match_len of them used */
  size_t match_len, match_room;
  char type[BELAY__SWEEP_TYPE_MAX + 1];
};

/* It begins, or begins anew. */
void belay__sweep_begin(belay_sweep_t *sweep);

/* Begins to ask for a page, or to work on some of it: 0, or why not. */
int belay__sweep_scan(belay_sweep_t *sweep, const belay__request_ops_t *ops);
int belay__sweep_work(belay_sweep_t *sweep, const belay__request_ops_t *ops);

int belay__sweep_read_page(belay__operation_t *operation, const belay__call_t *call,
                           const belay__reply_t *reply);

void belay__sweep_drop_page(belay_sweep_t *sweep);

#endif /* BELAY_ADMIN_SWEEP_H */
