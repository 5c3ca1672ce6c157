/* Ids: the handle, which all modes share, and the functions that each mode provides. */
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

/* The identity of a server, as stored in keys: its run id and data id. len 0: unknown, because
 * there is no connection or the server does not tell its run id. */
typedef struct belay__identity {
  uint32_t epoch; /* Number of the connection to the server; 0: no connection */
  size_t len;
  char text[BELAY__IDENTITY_MAX];
} belay__identity_t;

typedef struct belay__segment {
  int64_t next, end;        /* Unused ids: next to end - 1 */
  int64_t spare, spare_end; /* Ids of the next segment: spare to spare_end - 1 */
  int64_t floor;            /* The id after the last one that this handle received */
  bool fetching;            /* true while idgen->request is pending */
  unsigned tries;           /* Consecutive failures */
  uint64_t rest_until;      /* Earliest time of the next fetch */
  uint32_t script_epoch;    /* Connection on which the script ran */
  int64_t first;            /* First id of the reply */
  /* Delay of the next try, in ms, which the script replied because the server's clock is behind */
  int64_t wait_ms;
  belay__identity_t server; /* Identity that was sent to the script */
} belay__segment_t;

typedef struct belay__worker {
  uint8_t state; /* See worker.c */
  unsigned worker, tried;
  belay_lock_t *lock; /* Lock of the worker number; NULL: none, or closing in the background */
  size_t owner_len;
  char owner[BELAY__TOKEN_TEXT_MAX + 1];
  int64_t last;      /* Latest time of an id, or `floor` if later; milliseconds since 1970 */
  int64_t until;     /* Last time for which ids may be issued, in milliseconds since 1970 */
  unsigned sequence; /* Sequence number of the next id at `last` */
  unsigned tries;    /* Consecutive failures */
  int status;        /* Error of a call or acquire that could not be sent; 0: none */
  int64_t floor;     /* Reply to the last claim: ids must be later than this time */
  belay__call_t *call;
  int64_t requested; /* New value of `until` in the pending call */
  belay__identity_t server;
} belay__worker_t;

struct belay_idgen {
  belay__handle_t handle;
  belay_idgen_options_t options;
  int64_t low; /* SEGMENT: ids below `low` need no check for a fetch. Other modes: INT64_MIN */
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
  belay__timer_t tick;     /* Serves waiting requests at *again_at of take() */
  size_t text_len;
  char text[BELAY_IDGEN_NAME_MAX]; /* SEQUENCE: name of the sequence; else the name */
};

/* The functions of a mode. */
typedef struct belay__idgen_kind {
  /* Take the next id from memory, and fetch more ids if necessary. Returns 0, BELAY_EAGAIN or
   * another error. With BELAY_EAGAIN, *again_at is the time of the next try. If *again_at is 0, the
   * mode calls belay__idgen_serve() when a try is useful. A mode without this function (NULL) keeps
   * no ids in memory: it sends a command for each request. */
  int (*take)(belay_idgen_t *idgen, int64_t *id, uint64_t *again_at);
  /* A request waits: fetch more ids. After a lasting error, do not wait for the delay. */
  void (*want)(belay_idgen_t *idgen);
  void (*close)(belay_idgen_t *idgen);
  void (*abort)(belay_idgen_t *idgen);
  void (*on_timer)(belay__timer_t *timer); /* of idgen->timer */
} belay__idgen_kind_t;

extern const belay__idgen_kind_t belay__idgen_segment, belay__idgen_worker, belay__idgen_sequence;

int belay__idgen_sequence_get(belay_idgen_t *idgen, belay_request_t *request, size_t n, bool many,
                              void (*cb)(void));

/* Serve waiting requests in order, until take() returns BELAY_EAGAIN. */
void belay__idgen_serve(belay_idgen_t *idgen);

/* Store the error of a failed fetch or claim. A lasting error also ends all waiting requests. */
void belay__idgen_failed(belay_idgen_t *idgen, int status);

/* true if the error is temporary, or BELAY_EUNKNOWN. */
bool belay__idgen_passes(int status);

/* Get the delay after `tries` consecutive failures, in nanoseconds; the longest one after a lasting
 * error. */
uint64_t belay__idgen_rest(belay_idgen_t *idgen, unsigned tries);

/* Set *out to the identity of the server to which calls of this connection class and route go now.
 * out->epoch is 0 if there is no connection. */
void belay__idgen_ask_identity(const belay_idgen_t *idgen, belay__conn_class_t conn_class,
                               uint32_t route, belay__identity_t *out);
/* true if the reply to the call came on the present connection, and the server of this connection
 * has this identity. */
bool belay__idgen_is_identity(const belay_idgen_t *idgen, const belay__call_t *call,
                              const belay__identity_t *identity);

/* Make a PING to the server of the handle's keys, which opens a connection. Returns NULL if memory
 * is out. */
belay__call_t *belay__idgen_new_ping(belay_idgen_t *idgen, belay__conn_class_t conn_class);

/* Make a WAIT that follows the call of a script. Returns NULL if memory is out. */
belay__call_t *belay__idgen_new_wait(const belay_idgen_t *idgen);
/* Read the reply to a WAIT. epoch: the connection on which the script ran. Returns 0,
 * BELAY_ENOREPLICAS, BELAY_EPROTO, or BELAY_EUNKNOWN if the WAIT ran on another connection. */
int belay__idgen_read_wait(const belay_idgen_t *idgen, const belay__call_t *call,
                           const belay__reply_t *reply, uint32_t epoch);

/* Begin a request for n ids. many: they go to the room of the request; otherwise n is 1, and the id
 * goes to its values. Returns 0 or an error. */
int belay__idgen_begin(belay_idgen_t *idgen, belay_request_t *request,
                       const belay__request_ops_t *ops, size_t n, bool many, void (*cb)(void),
                       belay__operation_t **out);

/* Values of a request. ID: the id, if the request is for one (first, for
 * belay__request_notify_count()). WANTED: number of ids requested. HAS: number of ids received.
 * EPOCH: connection on which the script of a sequence ran. */
enum { BELAY__IDGEN_ID, BELAY__IDGEN_WANTED, BELAY__IDGEN_HAS, BELAY__IDGEN_EPOCH };
void belay__idgen_notify_many(belay_request_t *request, void (*cb)(void),
                              const belay__answer_t *answer);

#endif /* BELAY_DATA_IDGEN_IDGEN_H */
