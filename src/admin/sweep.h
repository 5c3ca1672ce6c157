/* The state of a sweep. sweep.c has the machine, sweep_page.c the requests and the deletion of
 * keys, sweep_held.c the queries of holders. */
#ifndef BELAY_ADMIN_SWEEP_H
#define BELAY_ADMIN_SWEEP_H

#include "belay/sweep.h"
#include "core/client/handle.h"

#define BELAY__SWEEP_TYPE_MAX ((size_t)32)
#define BELAY__SWEEP_CALLS_MAX 256 /* Maximum of calls that one request sends */

/* The position of a scan. */
typedef struct belay__sweep_position {
  size_t shard;     /* Index of the scanned server among the servers that have the data */
  uint32_t route;   /* Route of that server */
  uint32_t version; /* Version of the slot map when the scan of that server began; 0: not known */
  uint64_t cursor;  /* Cursor of that server; 0: at the beginning */
  bool over;        /* true at the end of the last server */
  /* true after the first reply of that server; then `epoch` and the run id are set */
  bool known;
  uint32_t epoch; /* Number of the connection of the last reply */
  size_t run_id_len;
  char run_id[BELAY__RUN_ID_MAX];
} belay__sweep_position_t;

/* The keys that one SCAN found, in one block of memory. */
typedef struct belay__sweep_page {
  belay_bytes_t *keys; /* NULL: none */
  size_t size;         /* Bytes of the block */
  size_t n, next;      /* Number of keys; index of the first unprocessed key */
} belay__sweep_page_t;

/* How the keys of a page are processed: one call for each key. */
typedef struct belay__sweep_work {
  /* true if the key is processed. Other keys do not enter the page. NULL: all keys are processed */
  bool (*accepts)(const belay_sweep_t *sweep, const char *key, size_t len);
  /* Make the call for a key. NULL: memory is out. */
  belay__call_t *(*call)(belay_sweep_t *sweep, const belay_bytes_t *key);
  /* Operations of the request of these calls; notify is belay__sweep_notify() */
  belay__request_ops_t ops;
} belay__sweep_work_t;

extern const belay__sweep_work_t belay__sweep_deleting, belay__sweep_reading;

struct belay_sweep {
  belay__handle_t handle;
  belay_sweep_options_t options;
  belay_request_t request; /* Under way in SCANNING and WORKING */
  belay__timer_t timer;    /* PAUSED: the end of the pause */
  belay__task_t task;      /* Queued in ENDING */
  belay__sweep_position_t position;
  belay__sweep_page_t page;
  belay_sweep_totals_t totals;
  uint64_t due; /* Earliest host time of the next request, so that keys_per_s is kept */
  /* Host time of the last reply, of the start, or of the end of a pause by keys_per_s; patience_ms
   * counts from it */
  uint64_t since;
  /* count: COUNT of a SCAN. calls: maximum of calls of a request. An error that their size may
   * cause halves them */
  uint32_t count, calls;
  /* COUNT of the last SCAN, or number of calls of the last request; keys_per_s counts it */
  uint32_t cost;
  int status;
  uint8_t state;
  const belay__sweep_work_t *work; /* NULL: the keys are only reported */
  belay__list_t held;              /* Results of queries that are not reported yet: belay__held_t */
  belay_sweep_cb cb;
  char *match; /* match_room bytes, of which match_len are used */
  size_t match_len, match_room;
  char type[BELAY__SWEEP_TYPE_MAX + 1];
};

/* Set the position to the beginning of the first server. */
void belay__sweep_begin(belay_sweep_t *sweep);

/* belay__sweep_scan() sends a SCAN; belay__sweep_work() sends the calls for the next keys of the
 * page. Return 0 or an error; then nothing was sent. */
int belay__sweep_scan(belay_sweep_t *sweep);
int belay__sweep_work(belay_sweep_t *sweep);

/* Handle the result of a request of belay__sweep_scan() or belay__sweep_work(). */
void belay__sweep_notify(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer);

void belay__sweep_drop_page(belay_sweep_t *sweep);

/* belay__sweep_report_held() passes sweep->held to the user's callback, which may end the run.
 * belay__sweep_drop_held() frees them unreported. */
void belay__sweep_report_held(belay_sweep_t *sweep);
void belay__sweep_drop_held(belay_sweep_t *sweep);

#endif /* BELAY_ADMIN_SWEEP_H */
