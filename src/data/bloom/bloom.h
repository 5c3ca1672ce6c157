/* A Bloom filter on the server: the common part of all kinds, and the interface of a kind.
 *
 * A filter is a configuration (data/bloom/form.h) under NAMESPACE::bloom::{NAME}, and layers: a
 * PLAIN filter has one. The generation is a random number of each creation of a filter.
 *
 * A layer is a shape and a label. The segments of a layer are strings. They are under
 * NAMESPACE::bloom::{NAME LABEL::I} (without the space), each in a slot of its own; or all in the
 * slot of the name, under NAMESPACE::bloom::{NAME}LABEL::I. A segment is the generation in 8
 * bytes, high byte first, and then bits. A segment with other first bytes belongs to another
 * filter and counts as lost.
 *
 *    UNREAD --an operation--> OPENING: open.c reads or creates the configuration and the segments
 *      ^                        |  success                 |  failure: the waiting operations end
 *      |                        v                          v
 *      +--gone, or replaced--- OPEN                      UNREAD
 *
 * An operation is a request whose room is a belay__bloom_op_t. The operation waits while the
 * filter is not OPEN. Then the functions send, read and next of the filter's kind execute the
 * operation. */
#ifndef BELAY_DATA_BLOOM_BLOOM_H
#define BELAY_DATA_BLOOM_BLOOM_H

#include "belay/bloom.h"
#include "belay/features.h"
#include "core/client/handle.h"
#include "data/bloom/form.h"

#define BELAY__BLOOM_LAYERS_MAX 32u
#define BELAY__BLOOM_LABEL_MAX 28
#define BELAY__BLOOM_HEADER 8 /* Bytes */
#define BELAY__BLOOM_TRIES 8  /* Maximum restarts of an operation or an opening */
/* Bytes after the opening brace of a key, with the terminating 0 */
#define BELAY__BLOOM_TAIL_MAX 64
#define BELAY__BLOOM_LAYER_DIGITS 22 /* Digits of a layer in the stored state (scaling.c) */

typedef struct belay__bloom_layer {
  belay__bloom_shape_t shape;
  char label[BELAY__BLOOM_LABEL_MAX]; /* "", or "::" and a word without braces */
  bool together;                      /* true if its segments are in the slot of the name */
} belay__bloom_layer_t;

/* The result of a census for one segment, from the replies to two calls. */
typedef struct belay__bloom_census {
  bool there; /* true if the segment has the generation of the operation */
  int64_t bits_set;
} belay__bloom_census_t;

typedef enum belay__bloom_what {
  BELAY__BLOOM_OPEN,
  BELAY__BLOOM_ADD,
  BELAY__BLOOM_EXISTS,
  BELAY__BLOOM_INFO
} belay__bloom_what_t;

/* The room of a request; the hashes, the plan and the answers follow it. */
typedef struct belay__bloom_op {
  belay__bloom_what_t what;
  bool rereading; /* true while the configuration is read again */
  bool touched;   /* true if the server processed some items, so bits may be set */
  bool stale;     /* true if a replica may answer */
  /* Result of reading the configuration again: GONE, SAME, OTHER (open.c) */
  uint8_t found;
  uint8_t tries;               /* Number of restarts because the filter was replaced */
  uint32_t n;                  /* Number of items */
  int64_t generation;          /* Generation under which the operation was last sent */
  belay__bloom_hash_t *hashes; /* Hashes of the items */
  bool *answers;               /* Answers for the items */
  void *plan;                  /* kind->plan_size() bytes, all 0 at first */
  belay_bloom_info_t info;
} belay__bloom_op_t;

typedef struct belay__bloom_kind {
  const struct belay__bloom_batch_kind *batch; /* data/bloom/batch.h; NULL: PLAIN */

  /* Bytes of the plan of an operation on n items; n is 0 for an info. */
  size_t (*plan_size)(const belay_bloom_t *bloom, belay__bloom_what_t what, size_t n);

  /* PARKED (core/client/request.h), and the filter is OPEN: send an add, an exists or an info.
   * Returns 0, or an error: then the operation is still PARKED. */
  int (*send)(belay__operation_t *operation);
  /* As in belay__request_ops_t; not called while op->rereading. */
  int (*read)(belay__operation_t *operation, const belay__call_t *call,
              const belay__reply_t *reply);
  int (*next)(belay__operation_t *operation);

  /* List the layers that may have segments. value: the stored configuration, len bytes; NULL:
   * unknown. Returns the number of layers. */
  unsigned (*layers)(const belay__bloom_config_t *config, const void *value, size_t len,
                     belay__bloom_layer_t out[BELAY__BLOOM_LAYERS_MAX]);
} belay__bloom_kind_t;

/* plain.c, scaling.c, rotating.c */
extern const belay__bloom_kind_t belay__bloom_plain;
#if BELAY_HAS_BLOOM_GROWING
extern const belay__bloom_kind_t belay__bloom_scaling;
extern const belay__bloom_kind_t belay__bloom_rotating;
#endif

/* Returns NULL if the kind is unknown, or not in this build. */
const belay__bloom_kind_t *belay__bloom_kind(belay_bloom_kind_t kind);

typedef enum belay__bloom_state {
  BELAY__BLOOM_UNREAD,  /* Not opened yet; the filter is gone or replaced; opening failed */
  BELAY__BLOOM_OPENING, /* The request `opening` is pending */
  BELAY__BLOOM_IS_OPEN  /* The configuration matches, and is marked as ready */
} belay__bloom_state_t;

#if BELAY_HAS_BLOOM_GROWING
/* Known layers of a SCALING filter. */
typedef struct belay__bloom_growth {
  int64_t generation; /* Generation of the filter with these layers; 0: none */
  unsigned there;     /* Number of existing layers */
  unsigned given;     /* Number of layers to send: `there`, plus 1 if the filter can grow */
  belay__bloom_shape_t shapes[BELAY__BLOOM_LAYERS_MAX];
  int64_t capacities[BELAY__BLOOM_LAYERS_MAX];
} belay__bloom_growth_t;

/* Known windows of a ROTATING filter. */
typedef struct belay__bloom_clock {
  int64_t server_ms;    /* Last known time of the server's clock; 0: unknown */
  uint64_t at;          /* Local time at which server_ms was read */
  int64_t generation;   /* Generation to which the fields below belong */
  int64_t of_use_until; /* Server time until which any item can be found; 0: no items */
  int64_t window;       /* Number of the window at the last reply */
  bool current;         /* true if an item was added in `window` */
  bool previous;        /* true if an item was added in the window before `window` */
} belay__bloom_clock_t;
#endif

struct belay_bloom {
  belay__handle_t handle;
  const belay__bloom_kind_t *kind;
  belay__bloom_form_t form;
  int64_t ttl_ms;

  belay__bloom_state_t state;
  belay__bloom_config_t config; /* OPENING, OPEN: the configuration on the server */
#if BELAY_HAS_BLOOM_GROWING
  belay__bloom_growth_t growth;
  belay__bloom_clock_t clock;
#endif
  belay__list_t waiting; /* Operations that wait until the filter is OPEN */

  belay_request_t opening;
  uint8_t value[BELAY__BLOOM_VALUE_LEN]; /* OPENING: the stored configuration */
  uint32_t segment;                      /* OPENING: the next segment to create */
  uint8_t tries;
};

/* ---- keys ---- */

/* Add to a call the key of the configuration. */
void belay__bloom_arg_config(const belay_bloom_t *bloom, belay__call_t *call);
/* Make a call that reads the configuration. Returns NULL if memory is out. */
belay__call_t *belay__bloom_get_config(const belay_bloom_t *bloom);
/* Check and begin a request whose first step reads the configuration. room: size of the request's
 * room in bytes. Returns 0 or an error; after an error nothing was begun. */
int belay__bloom_ask_config(belay_bloom_t *bloom, belay_request_t *request,
                            const belay__request_ops_t *ops, void (*cb)(void), size_t room);
/* Add to a call the key of a segment (part: ""), or of another key in the slot of the segment
 * (part: "::" and a word). */
void belay__bloom_arg_segment(const belay_bloom_t *bloom, belay__call_t *call,
                              const belay__bloom_layer_t *layer, uint32_t segment,
                              const char *part);

/* Bytes of a segment, with its header. */
static inline size_t belay__bloom_segment_bytes(const belay__bloom_shape_t *shape) {
  return BELAY__BLOOM_HEADER + (shape->segment_bits + 7) / 8;
}

/* Write a generation as the first bytes of a segment. */
void belay__bloom_header(int64_t generation, char out[BELAY__BLOOM_HEADER]);
/* Add to a call the first bytes of a segment, as an argument. */
void belay__bloom_arg_header(belay__call_t *call, int64_t generation);

/* ---- operations ---- */

static inline belay__bloom_op_t *belay__bloom_op(belay__operation_t *operation) {
  return operation->room;
}

/* PARKED: send the operation as soon as the filter is OPEN, and begin to open an UNREAD filter.
 * Returns 0, or an error: then the operation is still PARKED. */
int belay__bloom_submit(belay_bloom_t *bloom, belay__operation_t *operation);

/* PARKED: a key is missing, or does not have op->generation. Read the configuration again, in a
 * step of its own that also sends n calls. make_stray builds these calls: each deletes a segment
 * that an add has created without a header. A kind's ops->next returns the result of this function.
 *
 * While op->rereading is true, belay__bloom_read_config_again() reads the replies, and
 * belay__bloom_reread_done() does the work of ops->next. The operation starts again if the filter
 * has a new generation, at most BELAY__BLOOM_TRIES times. Otherwise it ends with:
 *
 * - BELAY_EMISMATCH: the filter has other options.
 * - BELAY_ELOST: the configuration is gone, keys of the present generation are gone, or the
 *   generation has changed too often. */
int belay__bloom_reread_config(belay__operation_t *operation, size_t n,
                               belay__make_call_fn make_stray);
int belay__bloom_read_config_again(belay__operation_t *operation, const belay__call_t *call,
                                   const belay__reply_t *reply);
int belay__bloom_reread_done(belay__operation_t *operation);
/* Call belay__bloom_forget() with the operation's generation, and submit the operation again.
 * Returns as ops->next does. */
int belay__bloom_restart(belay__operation_t *operation);

/* Note that the filter of this generation (0: any) is gone or changed. If the handle has this
 * filter OPEN, the state becomes UNREAD, and the next operation opens the filter again. */
void belay__bloom_forget(belay_bloom_t *bloom, int64_t generation);

/* PARKED: read the configuration's ttl, and the header and the number of set bits of n segments of
 * each layer. */
int belay__bloom_census_send(belay__operation_t *operation, const belay__bloom_layer_t *layers,
                             size_t layers_len, size_t n);
/* Read a reply to a call of the census. out: an array of all segments. The ttl goes to
 * op->info.remaining_ms (-2: there is no configuration). */
int belay__bloom_census_read(belay__operation_t *operation, const belay__reply_t *reply,
                             belay__bloom_census_t *out);

/* ---- opening ---- */

/* UNREAD -> OPENING. The opening has timeout_ms, or the client's timeout_ms if that is longer.
 * Operations that join wait until its end, or until their own deadline. Returns 0 or an error;
 * after an error the state is UNREAD. */
int belay__bloom_begin_opening(belay_bloom_t *bloom, int64_t timeout_ms);

/* OPENING -> OPEN if status is 0: send all waiting operations. Otherwise OPENING -> UNREAD: end all
 * waiting operations with status. */
void belay__bloom_opened(belay_bloom_t *bloom, int status);

#endif /* BELAY_DATA_BLOOM_BLOOM_H */
