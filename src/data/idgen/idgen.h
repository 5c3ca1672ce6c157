/* Ids: the handle, which all modes share, and the functions of each mode. */
#ifndef BELAY_DATA_IDGEN_IDGEN_H
#define BELAY_DATA_IDGEN_IDGEN_H

#include "belay/idgen.h"
#include "belay/lock.h"
#include "core/client/handle.h"
#include "core/key/token.h"

/* The parts of a snowflake besides the time. */
#define BELAY__IDGEN_SEQUENCES 4096
#define BELAY__IDGEN_SEQUENCE_BITS 12
#define BELAY__IDGEN_WORKER_BITS 10

#define BELAY__IDENTITY_MAX (BELAY__RUN_ID_MAX + BELAY__DATA_ID_MAX)

/* The identity of a server, as stored in keys; len 0: the server hides it. */
typedef struct belay__identity {
  uint32_t epoch; /* Connection to that server; 0: none */
  size_t len;
  char text[BELAY__IDENTITY_MAX];
} belay__identity_t;

typedef struct belay__segment {
  int64_t next, end;        /* Unused ids: next to end - 1 */
  int64_t spare, spare_end; /* The next segment; equal: none */
  int64_t floor;            /* Above all ids that this handle has received */
  bool fetching;            /* true while idgen->request is pending */
  unsigned tries;           /* Consecutive failures */
  uint64_t rest_until;      /* Earliest time of the next fetch */
  uint32_t script_epoch;    /* Connection on which the script ran */
  int64_t first;            /* First id of the reply */
  int64_t wait_ms;          /* Time until the server's clock permits the next segment */
  belay__identity_t server; /* Identity that was sent to the script */
} belay__segment_t;

typedef struct belay__worker {
  uint8_t state; /* See worker.c */
  unsigned worker, tried;
  belay_lock_t *lock; /* NULL: none, or it closes by itself */
  size_t owner_len;
  char owner[BELAY__TOKEN_TEXT_MAX + 1];
  int64_t last;      /* Latest time of an id, in milliseconds of the wall clock */
  int64_t until;     /* Time until which ids may be issued */
  unsigned sequence; /* Sequence number of the next id at `last` */
  unsigned tries;    /* Consecutive failures */
  int status;        /* Error of an unsent call; 0: it was sent */
  int64_t floor;     /* Lower bound of the last claim */
  belay__call_t *call;
  int64_t requested; /* New value of `until` in the pending call */
  belay__identity_t server;
} belay__worker_t;

struct belay_idgen {
  belay__handle_t handle;
  belay_idgen_options_t options;
  int64_t low; /* SEGMENT: ids below it are taken without further checks */
  union {
    belay__segment_t segment;
    belay__worker_t worker;
  };
  const struct belay__idgen_kind *kind;
  int error;             /* Error of the last try; 0: success, or none yet */
  belay__list_t waiting; /* Requests, in order */
  size_t waiting_len;
  belay__timer_t timer;    /* Timer of the mode */
  belay_request_t request; /* Request of the mode */
  belay__timer_t tick;     /* Serves waiting requests */
  size_t text_len;
  char text[BELAY_IDGEN_NAME_MAX]; /* SEQUENCE: name of the sequence; else the name */
};

/* The functions of a mode. */
typedef struct belay__idgen_kind {
  /* Take the next id that is present, and fetch more if necessary. Returns 0, BELAY_EAGAIN or
   * another error. BELAY_EAGAIN: *again_at is the time to try again, 0: when the mode calls
   * belay__idgen_serve(). NULL: each id needs a request. */
  int (*take)(belay_idgen_t *idgen, int64_t *id, uint64_t *again_at);
  /* A request waits: fetch more, even after a lasting failure. */
  void (*want)(belay_idgen_t *idgen);
  void (*close)(belay_idgen_t *idgen);
  void (*abort)(belay_idgen_t *idgen);
  void (*on_timer)(belay__timer_t *timer); /* of idgen->timer */
} belay__idgen_kind_t;

extern const belay__idgen_kind_t belay__idgen_segment, belay__idgen_worker, belay__idgen_sequence;

int belay__idgen_sequence_get(belay_idgen_t *idgen, belay_request_t *request, size_t n, bool many,
                              void (*cb)(void));

/* Ids are present: serve waiting requests, in order. */
void belay__idgen_serve(belay_idgen_t *idgen);

/* Handle a failed try: a lasting error ends all waiting requests. */
void belay__idgen_failed(belay_idgen_t *idgen, int status);

/* true if the fault may pass. */
bool belay__idgen_passes(int status);

/* The delay after `tries` consecutive failures, in nanoseconds. */
uint64_t belay__idgen_rest(belay_idgen_t *idgen, unsigned tries);

/* Read the identity of the server that serves calls of this connection class and route now. */
void belay__idgen_ask_identity(const belay_idgen_t *idgen, belay__conn_class_t conn_class,
                               uint32_t route, belay__identity_t *out);
/* true if the server with this identity has replied to the call. */
bool belay__idgen_is_identity(const belay_idgen_t *idgen, const belay__call_t *call,
                              const belay__identity_t *identity);

/* Make a PING to the server of the keys, to open a connection; NULL if memory is out. */
belay__call_t *belay__idgen_new_ping(belay_idgen_t *idgen, belay__conn_class_t conn_class);

/* Make a WAIT that follows a call; NULL if memory is out. Read its reply. Returns 0,
 * BELAY_ENOREPLICAS, BELAY_EPROTO, or BELAY_EUNKNOWN if the script ran on another connection than
 * `epoch`. */
belay__call_t *belay__idgen_new_wait(const belay_idgen_t *idgen);
int belay__idgen_read_wait(const belay_idgen_t *idgen, const belay__call_t *call,
                           const belay__reply_t *reply, uint32_t epoch);

/* Begin a request for n ids. many: with a room for them. */
int belay__idgen_begin(belay_idgen_t *idgen, belay_request_t *request,
                       const belay__request_ops_t *ops, size_t n, bool many, void (*cb)(void),
                       belay__operation_t **out);

/* Values of a request: its only id (first, for belay__request_notify_count()); number of ids
 * that it wants, and has; connection of the script. */
enum { BELAY__IDGEN_ID, BELAY__IDGEN_WANTED, BELAY__IDGEN_HAS, BELAY__IDGEN_EPOCH };
void belay__idgen_notify_many(belay_request_t *request, void (*cb)(void),
                              const belay__answer_t *answer);

#endif /* BELAY_DATA_IDGEN_IDGEN_H */
