/* A Bloom filter on the server: the common part of all kinds, and the interface of a kind.
 *
 * A filter is a configuration (data/bloom/form.h) under NAMESPACE::bloom::{NAME}, and layers: a
 * PLAIN filter has one. A layer is a shape and a label. Its segments are strings under
 * NAMESPACE::bloom::{NAME label::I}, each in a slot of its own; or all in the slot of the name,
 * under NAMESPACE::bloom::{NAME}label::I. A segment is the generation in 8 bytes, high byte
 * first, and then bits. A segment with other first bytes belongs to another filter and counts as
 * lost.
 *
 *    UNREAD --an operation--> OPENING: open.c reads the configuration, or creates it and the segments
 *      ^                        |  success                 |  failure: the waiting operations end
 *      |                        v                          v
 *      +--gone, or another---- OPEN                      UNREAD
 *
 * An operation is a request whose room is a belay__bloom_op_t. It waits while the filter is not
 * OPEN. Then its kind's functions send, read and next execute it. */
#ifndef BELAY_DATA_BLOOM_BLOOM_H
#define BELAY_DATA_BLOOM_BLOOM_H

#include "belay/bloom.h"
#include "belay/features.h"
#include "core/client/handle.h"
#include "data/bloom/form.h"

#define BELAY__BLOOM_LAYERS_MAX 32u
#define BELAY__BLOOM_LABEL_MAX 28
#define BELAY__BLOOM_HEADER 8 /* bytes */
#define BELAY__BLOOM_TRIES 8  /* that an operation begins again because the filter has changed */
/* bytes after the opening brace of a key, with the terminating 0 */
#define BELAY__BLOOM_TAIL_MAX 64
#define BELAY__BLOOM_LAYER_DIGITS 22 /* of a layer of a SCALING one, as it is written down */

typedef struct belay__bloom_layer {
  belay__bloom_shape_t shape;
  char label[BELAY__BLOOM_LABEL_MAX]; /* "", or "::" and something without braces */
  bool together;                      /* its segments are in the slot of the name */
} belay__bloom_layer_t;

typedef enum belay__bloom_what {
  BELAY__BLOOM_OPEN,
  BELAY__BLOOM_ADD,
  BELAY__BLOOM_EXISTS,
  BELAY__BLOOM_INFO,
  BELAY__BLOOM_CLEAR
} belay__bloom_what_t;

/* The room of a request; the kind's plan lies behind it. */
typedef struct belay__bloom_op {
  belay__bloom_what_t what;
  bool looking;                /* by belay__bloom_look() */
  bool touched;                /* some of its items were dealt with */
  bool stale;                  /* an exists that a replica may answer */
  uint8_t found;               /* state that the lookup found */
  uint8_t tries;               /* number of restarts */
  uint32_t n;                  /* items */
  int64_t generation;          /* that it was sent under */
  belay__bloom_hash_t *hashes; /* of the items */
  bool *answers;               /* to all of them */
  void *plan;                  /* kind->plan_size(), all 0 at first */
  belay_bloom_info_t info;
} belay__bloom_op_t;

typedef struct belay__bloom_kind {
  const struct belay__bloom_batch_kind *batch; /* data/bloom/batch.h; NULL: of PLAIN */

  /* Bytes of the plan of an operation on n items, or of an info (0). */
  size_t (*plan_size)(const belay_bloom_t *bloom, belay__bloom_what_t what, size_t n);

  /* PARKED, and the filter is OPEN: sends an add, an exists or an info. 0 or an error, and it is still PARKED. */
  int (*send)(belay__operation_t *operation);
  /* As of belay__request_ops_t. */
  int (*read)(belay__operation_t *operation, const belay__call_t *call,
              const belay__reply_t *reply);
  int (*next)(belay__operation_t *operation);

  /* The layers that may have segments, of a filter with that configuration, as it is kept in a value of len bytes;
   * NULL: it is not known what is kept. */
  unsigned (*layers)(const belay__bloom_config_t *config, const void *value, size_t len,
                     belay__bloom_layer_t out[BELAY__BLOOM_LAYERS_MAX]);
} belay__bloom_kind_t;

/* plain.c, scaling.c, rotating.c */
extern const belay__bloom_kind_t belay__bloom_plain;
#if BELAY_HAS_BLOOM_GROWING
extern const belay__bloom_kind_t belay__bloom_scaling;
extern const belay__bloom_kind_t belay__bloom_rotating;
#endif

/* NULL: not of this version, or not in this build. */
const belay__bloom_kind_t *belay__bloom_kind(belay_bloom_kind_t kind);

typedef enum belay__bloom_state {
  BELAY__BLOOM_UNREAD,  /* new; gone; another one; it could not be opened */
  BELAY__BLOOM_OPENING, /* an operation began, and it was UNREAD */
  BELAY__BLOOM_IS_OPEN  /* it is there, is ours, and all segments have been created */
} belay__bloom_state_t;

#if BELAY_HAS_BLOOM_GROWING
/* Known layers of a SCALING filter. */
typedef struct belay__bloom_growth {
  int64_t generation; /* of which filter; 0: none */
  unsigned there,
      given; /* layers that there are; and with the one that would come next, if there is to be one */
  belay__bloom_shape_t shapes[BELAY__BLOOM_LAYERS_MAX];
  int64_t capacities[BELAY__BLOOM_LAYERS_MAX];
} belay__bloom_growth_t;

/* And of the windows of a ROTATING one. */
typedef struct belay__bloom_clock {
  int64_t server_ms;      /* the server's clock; 0: not known */
  uint64_t at;            /* when it was that */
  int64_t generation;     /* of which filter the rest is */
  int64_t of_use_until;   /* the server's time until which the added items can be found */
  int64_t window;         /* it was, when it was asked last */
  bool current, previous; /* something was added in that, in the one before */
} belay__bloom_clock_t;
#endif

struct belay_bloom {
  belay__handle_t handle; /* first */
  const belay__bloom_kind_t *kind;
  belay__bloom_form_t form;
  int64_t ttl_ms;

  belay__bloom_state_t state;
  belay__bloom_config_t config; /* OPENING, OPEN: the configuration on the server */
#if BELAY_HAS_BLOOM_GROWING
  belay__bloom_growth_t growth;
  belay__bloom_clock_t clock;
#endif
  belay__list_t waiting; /* operations, by queued: until it is OPEN */

  belay_request_t opening;
  uint8_t value[BELAY__BLOOM_VALUE_LEN]; /* OPENING: config, as it is kept */
  uint32_t segment;                      /* OPENING: that is created next */
  uint8_t tries;
};

/* ---- keys ---------------------------------------------------------------------------------------------- */

/* Adds the key of the configuration. */
void belay__bloom_arg_config(const belay_bloom_t *bloom, belay__call_t *call);
/* A call that reads it; NULL if memory is out. */
belay__call_t *belay__bloom_get_config(const belay_bloom_t *bloom);
/* Begins a request that reads the configuration first, with room_len bytes of room. Returns 0 or
 * an error; after an error nothing was begun. */
int belay__bloom_ask_config(belay_bloom_t *bloom, belay_request_t *request,
                            const belay__request_ops_t *ops, void (*cb)(void), size_t room);
/* Adds the key of a segment. */
void belay__bloom_arg_segment(const belay_bloom_t *bloom, belay__call_t *call,
                              const belay__bloom_layer_t *layer, uint32_t segment);
/* And of something beside a segment, in its slot: part is "::" and a word. */
void belay__bloom_arg_beside(const belay_bloom_t *bloom, belay__call_t *call,
                             const belay__bloom_layer_t *layer, uint32_t segment, const char *part);

/* All of a segment, the header too. */
static inline size_t belay__bloom_segment_bytes(const belay__bloom_shape_t *shape) {
  return BELAY__BLOOM_HEADER + (shape->segment_bits + 7) / 8;
}

/* A generation as the first bytes of a segment. */
void belay__bloom_header(int64_t generation, char out[BELAY__BLOOM_HEADER]);

/* ---- operations ---------------------------------------------------------------------------------------- */

static inline belay__bloom_op_t *belay__bloom_op(belay__operation_t *operation) {
  return operation->room;
}

/* PARKED: sends it, once the filter is open; which is begun unless it has. 0, or an error, and it is still PARKED. */
int belay__bloom_submit(belay_bloom_t *bloom, belay__operation_t *operation);

/* PARKED: under op->generation something is not there, or is another filter's. Looks what has become of it, in a step
 * of its own, in which n strays, which make_stray builds, are sent as well. A kind's next returns what this does; while
 * op->looking, its read is belay__bloom_read_look(), and its next belay__bloom_looked(), which ends it with BELAY_ELOST
 * or BELAY_EMISMATCH, or begins again: kind->send, under the new generation. */
int belay__bloom_look(belay__operation_t *operation, size_t n, belay__make_call_fn make_stray);
int belay__bloom_read_look(belay__operation_t *operation, const belay__call_t *call,
                           const belay__reply_t *reply);
int belay__bloom_looked(belay__operation_t *operation);

/* The filter is not what it was under that generation (0: any): the next operation reads it anew. */
void belay__bloom_forget(belay_bloom_t *bloom, int64_t generation);

/* ---- opening ------------------------------------------------------------------------------------------- */

/* UNREAD -> OPENING, for an operation with timeout_ms left. Operations that join the wait have
 * at most this time. Returns 0 or an error; after an error the state is UNREAD. */
int belay__bloom_begin_opening(belay_bloom_t *bloom, int64_t timeout_ms);

/* OPENING -> OPEN, or UNREAD: sends or ends all that wait. */
void belay__bloom_opened(belay_bloom_t *bloom, int status);

#endif /* BELAY_DATA_BLOOM_BLOOM_H */
