/* Ids: the handle, which all modes share, and the functions of each mode. */
#ifndef BELAY_DATA_IDGEN_IDGEN_H
#define BELAY_DATA_IDGEN_IDGEN_H

#include "belay/idgen.h"
#include "belay/lock.h"
#include "core/client/handle.h"
#include "core/key/token.h"

/* The parts of a snowflake beside the time. */
#define BELAY__IDGEN_SEQUENCES 4096
#define BELAY__IDGEN_SEQUENCE_BITS 12
#define BELAY__IDGEN_WORKER_BITS 10

#define BELAY__IDENTITY_MAX (BELAY__RUN_ID_MAX + BELAY__DATA_ID_MAX)

/* The identity of a server, as stored in keys; len 0: the server hides it. */
typedef struct belay__identity {
  uint32_t epoch; /* of the connection on which it was; 0: there was none */
  size_t len;
  char text[BELAY__IDENTITY_MAX];
} belay__identity_t;

typedef struct belay__segment {
  int64_t next, end;              /* Unused ids: next to end - 1 */
  int64_t spare, spare_end;       /* The next segment; equal: none */
  int64_t floor;                  /* Above all ids that this handle has received */
  int64_t step, gap;              /* As in the options */
  int64_t clock_rate, clock_skew; /* Ids per second, 0: none; milliseconds */

  bool fetching;            /* true while idgen->request is pending */
  unsigned tries;           /* Consecutive failures */
  uint64_t rest_until;      /* Earliest time of the next fetch */
  uint32_t script_epoch;    /* Connection on which the script ran */
  int64_t first;            /* First id of the reply */
  int64_t wait_ms;          /* Time until the server's clock permits the next segment */
  belay__identity_t server; /* Identity that was sent to the script */
} belay__segment_t;

typedef struct belay__worker {
  uint8_t state; /* worker.c's */
  int wanted;    /* -1: any */
  int first;     /* of any, the first one that is tried; -1: a random one */
  unsigned worker, tried;
  int64_t ttl, ahead, epoch;
  belay_lock_t *lock; /* NULL: closed, or left to itself */
  size_t owner_len;
  char owner[BELAY__TOKEN_TEXT_MAX + 1];
  int64_t last; /* no id has a later time; the wall clock's milliseconds */
  int64_t until;
  unsigned sequence; /* of the next id at that time */
  unsigned tries;    /* in a row that have failed */
  int status;        /* error of an unsent call; 0: it was sent */
  int64_t floor;     /* lower bound of the last claim */
  belay__call_t *call;
  int64_t asked; /* that until be so */
  belay__identity_t server;
} belay__worker_t;

struct belay_idgen {
  belay__handle_t handle; /* first */
  int64_t low;            /* SEGMENT: below it there is nothing to do but to hand out */
  union {
    belay__segment_t segment;
    belay__worker_t worker;
  };
  const struct belay__idgen_kind *kind;
  int error;             /* error of the last try; 0: success, or none yet */
  belay__list_t waiting; /* requests, in order */
  size_t waiting_len, max_waiting;
  belay__timer_t timer;    /* the mode's */
  belay_request_t request; /* the mode's */
  belay__timer_t tick;     /* the time at which waiting requests may be served */

  int64_t start;
  uint32_t replica_timeout;
  uint8_t min_replicas;
  size_t text_len;
  char text[BELAY_IDGEN_NAME_MAX]; /* SEQUENCE: its name; else the name */
};

/* The functions of a mode. */
typedef struct belay__idgen_kind {
  /* The next id that is here: 0 or BELAY_EAGAIN, and then *again_at says when to ask again without being told to (0:
   * not before). Fetches more, if that is due. NULL: all have to be asked for. */
  int (*take)(belay_idgen_t *idgen, int64_t *id, uint64_t *again_at);
  /* Somebody waits: as take, and the last failure does not count. */
  void (*want)(belay_idgen_t *idgen);
  void (*close)(belay_idgen_t *idgen);
  void (*abort)(belay_idgen_t *idgen);
} belay__idgen_kind_t;

extern const belay__idgen_kind_t belay__idgen_segment, belay__idgen_worker, belay__idgen_sequence;

void belay__idgen_segment_init(belay_idgen_t *idgen, const belay_idgen_options_t *options);
void belay__idgen_worker_init(belay_idgen_t *idgen, const belay_idgen_options_t *options);
int belay__idgen_sequence_get(belay_idgen_t *idgen, belay_request_t *request, size_t n, bool many,
                              void (*cb)(void));

/* There is something: serves those who wait, in order. */
void belay__idgen_serve(belay_idgen_t *idgen);

/* Handles a failed try: a lasting error ends all waiting requests. Returns true if the try will
 * be repeated. */
bool belay__idgen_failed(belay_idgen_t *idgen, int status);

/* Whether the same may go well in a while. */
bool belay__idgen_passes(int status);

/* The delay after `tries` consecutive failures, in nanoseconds. */
uint64_t belay__idgen_rest(belay_idgen_t *idgen, unsigned tries);

/* Reads the identity of the server that serves calls of this connection class and route now. */
void belay__idgen_ask_identity(const belay_idgen_t *idgen, belay__conn_class_t conn_class,
                               uint32_t route, belay__identity_t *out);
/* Whether that is who has answered this call. */
bool belay__idgen_is_identity(const belay_idgen_t *idgen, const belay__call_t *call,
                              const belay__identity_t *identity);

/* Makes a PING to the server of the keys, to open a connection; NULL if memory is out. */
belay__call_t *belay__idgen_new_ping(belay_idgen_t *idgen, belay__conn_class_t conn_class);

/* A WAIT to go behind a call; NULL if memory is out. And reads its reply: 0, BELAY_ENOREPLICAS, BELAY_EPROTO, or
 * BELAY_EUNKNOWN: the script ran on another connection, of that epoch. */
belay__call_t *belay__idgen_new_wait(const belay_idgen_t *idgen);
int belay__idgen_read_wait(const belay_idgen_t *idgen, const belay__call_t *call,
                           const belay__reply_t *reply, uint32_t epoch);

/* Begins a request for n ids, with a room for them if it is one for many. */
int belay__idgen_begin(belay_idgen_t *idgen, belay_request_t *request,
                       const belay__request_ops_t *ops, size_t n, bool many, void (*cb)(void),
                       belay__operation_t **out);

/* Values of a request: its only id (first, for belay__request_notify_count()); how many it wants, and has; the connection
 * that it came over. */
enum { BELAY__IDGEN_ID, BELAY__IDGEN_WANTED, BELAY__IDGEN_HAS, BELAY__IDGEN_EPOCH };
void belay__idgen_notify_many(belay_request_t *request, void (*cb)(void),
                              const belay__answer_t *answer);

#endif /* BELAY_DATA_IDGEN_IDGEN_H */
