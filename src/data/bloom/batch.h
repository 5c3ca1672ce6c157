/* Sends the items of an operation to a script, for kinds whose layers share a slot.
 *
 * The items are divided into calls. Each call has few enough bits that it does not block the
 * server for long, and the number of calls sent at once is limited to bound memory. A script
 * processes as many items of its call as it can, from the first one on. The next round sends the
 * rest, with the layers or the window that the replies reported. When the operation starts again
 * under a new generation, the answers of the old one are dropped. */
#ifndef BELAY_DATA_BLOOM_BATCH_H
#define BELAY_DATA_BLOOM_BATCH_H

#include "data/bloom/bloom.h"

#define BELAY__BLOOM_CALLS_MAX 128u /* Maximum of calls in a round */
#define BELAY__BLOOM_DAMAGED "its state is damaged"

/* The first part of a plan. */
typedef struct belay__bloom_batch {
  int64_t generation; /* Generation of the answers */
  uint32_t left;      /* Number of items without an answer */
  uint32_t calls_len;
  uint32_t first[BELAY__BLOOM_CALLS_MAX + 1]; /* First items of the calls; then the end */
  uint8_t fruitless;                          /* Consecutive rounds without progress */
  bool learnt;                                /* true if a reply of this round made progress */
  bool other;                                 /* true if the configuration is missing or differs */
  bool lost;                                  /* true if a layer is missing */
  bool counting;                              /* true during the census of an info */
  unsigned layers;                            /* Number of layers of the census */
  belay__bloom_census_t census[BELAY__BLOOM_LAYERS_MAX];
  bool *dealt; /* For each item: true if it has an answer */
} belay__bloom_batch_t;

/* The differences of the kinds. An info is a round without items, then a census of the layers. */
typedef struct belay__bloom_batch_kind {
  size_t plan; /* Bytes of a plan, which begins with a belay__bloom_batch_t */
  /* Called before the first round of each start of an operation. NULL: nothing to do. */
  void (*begin)(belay_bloom_t *bloom);
  /* Number of bit offsets that a call contains for an item. */
  uint32_t (*bits_of_item)(const belay_bloom_t *bloom);
  /* Make the call for the items from first to end; NULL if memory is out. */
  belay__call_t *(*make)(belay__operation_t *operation, uint32_t first, uint32_t end);
  /* As in belay__request_ops_t, for a round. */
  int (*read)(belay__operation_t *operation, const belay__call_t *call,
              const belay__reply_t *reply);
  /* Called after a round that set `other` or `lost`. Returns as ops->next does. NULL:
   * belay__bloom_reread_config() is called instead. */
  int (*check_config)(belay__operation_t *operation);
  /* List the layers for the census. Returns the number of layers; -1: the round did not report
   * them, and another round is necessary. */
  int (*live)(belay__operation_t *operation, belay__bloom_layer_t out[BELAY__BLOOM_LAYERS_MAX]);
  /* Make the info from batch->census. Returns as ops->next does. */
  int (*end_info)(belay__operation_t *operation);
} belay__bloom_batch_kind_t;

/* The functions of a belay__bloom_kind_t that has a batch kind. */
size_t belay__bloom_batch_size(const belay_bloom_t *bloom, belay__bloom_what_t what, size_t n);
int belay__bloom_batch_send(belay__operation_t *operation);
int belay__bloom_batch_read(belay__operation_t *operation, const belay__call_t *call,
                            const belay__reply_t *reply);
int belay__bloom_batch_next(belay__operation_t *operation);

/* Begin a call of a script, with the configuration as its first key. The caller adds `layers` keys,
 * `more` arguments, and `each` arguments for each item from first to end without an answer. */
belay__call_t *belay__bloom_batch_script(belay__operation_t *operation,
                                         const belay__script_t *script, size_t layers, size_t more,
                                         size_t each, uint32_t first, uint32_t end);
/* Add the first three arguments: the expected first part of the configuration, the header of the
 * layers, and 1 to add items or 0 to look them up. */
void belay__bloom_batch_head(const belay__operation_t *operation, belay__call_t *call);

/* Add an argument for each item from first to end without an answer, and for each layer of these
 * shapes: the offsets of the item's bits. */
void belay__bloom_batch_args(const belay__operation_t *operation, belay__call_t *call,
                             uint32_t first, uint32_t end, const belay__bloom_shape_t *shapes,
                             size_t shapes_len);

/* Read the reply of a script: an array of `count` elements. The first is a code from -3 to 2
 * (*what, see lua/bloom/scaling.lua), the last is the answers. Codes -1 and -2 set batch->other and
 * batch->lost. Returns 0 or an error; code -3 is BELAY_EMISMATCH. */
int belay__bloom_batch_answers(belay__operation_t *operation, const belay__call_t *call,
                               const belay__reply_t *reply, size_t count, int64_t *what);

#endif /* BELAY_DATA_BLOOM_BATCH_H */
