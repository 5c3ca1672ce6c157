/* A sweep: its state, its requests (sweep_page.c), and the processing of keys: deletion
 * (sweep_page.c) or queries of holders (sweep_held.c). */
#ifndef BELAY_ADMIN_SWEEP_H
#define BELAY_ADMIN_SWEEP_H

#include "belay/sweep.h"
#include "core/client/handle.h"

#define BELAY__SWEEP_TYPE_MAX ((size_t)32)
#define BELAY__SWEEP_CALLS_MAX 256 /* Calls at once */

/* The position of a scan. */
typedef struct belay__sweep_position {
  size_t shard;     /* Index of the server among those that have the data */
  uint32_t route;   /* Route of that server */
  uint32_t version; /* Version of the slot map when the scan began */
  uint64_t cursor;  /* Cursor of that server; 0: at the beginning */
  bool over;        /* true at the end of the last server */
  bool known;       /* true if the server has replied; then the next three fields are set */
  uint32_t epoch;   /* Its connection */
  size_t run_id_len;
  char run_id[BELAY__RUN_ID_MAX];
} belay__sweep_position_t;

/* The keys that one SCAN found, in one block of memory. */
typedef struct belay__sweep_page {
  belay_bytes_t *keys; /* NULL: none */
  size_t size;         /* Bytes of the block */
  size_t n, next;      /* Number of keys; index of the first unprocessed key */
} belay__sweep_page_t;

/* The processing of each key of a page, by a call of its own. */
typedef struct belay__sweep_work {
  /* true if the key is processed; other keys are left out of the page. NULL: all are. */
  bool (*accepts)(const belay_sweep_t *sweep, const char *key, size_t len);
  /* Make the call. NULL: memory is out. */
  belay__call_t *(*call)(belay_sweep_t *sweep, const belay_bytes_t *key);
  belay__request_ops_t ops; /* Of these calls; notify is belay__sweep_notify() */
} belay__sweep_work_t;

extern const belay__sweep_work_t belay__sweep_deleting, belay__sweep_reading;

struct belay_sweep {
  belay__handle_t handle;
  belay_sweep_options_t options;
  belay_request_t request; /* SCANNING, WORKING */
  belay__timer_t timer;    /* PAUSED: the end of the pause */
  belay__task_t task;      /* ENDING */
  belay__sweep_position_t position;
  belay__sweep_page_t page;
  belay_sweep_totals_t totals;
  uint64_t due;          /* Earliest time of the next request, by keys_per_s */
  uint64_t since;        /* Time since which no reply arrived */
  uint32_t count, calls; /* Keys of a SCAN, calls at once: halved if they were too many */
  uint32_t cost;         /* Cost of the last request, in keys */
  int status;
  uint8_t state;
  const belay__sweep_work_t *work; /* NULL: the keys are only reported */
  belay__list_t held;              /* Query results that are not reported yet */
  belay_sweep_cb cb;
  char *match; /* match_room bytes, of which match_len are used */
  size_t match_len, match_room;
  char type[BELAY__SWEEP_TYPE_MAX + 1];
};

/* Set the position to the beginning. */
void belay__sweep_begin(belay_sweep_t *sweep);

/* Send a SCAN, or the calls for some keys of the page. Returns 0 or an error. */
int belay__sweep_scan(belay_sweep_t *sweep);
int belay__sweep_work(belay_sweep_t *sweep);

/* Handle the result of these requests. */
void belay__sweep_notify(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer);

void belay__sweep_drop_page(belay_sweep_t *sweep);

/* Report query results to the user's callback, which may end the run; or drop them. */
void belay__sweep_report_held(belay_sweep_t *sweep);
void belay__sweep_drop_held(belay_sweep_t *sweep);

#endif /* BELAY_ADMIN_SWEEP_H */
