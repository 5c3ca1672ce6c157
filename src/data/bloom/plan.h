/* Sends the items of an operation to one layer.
 *
 * The items are sorted by segment and divided into chunks, one call each. A chunk sets or gets
 * single bits, in one BITFIELD that also reads the header. If many bits of a segment are wanted,
 * the call fetches the whole segment instead; the call of an add also ORs a bitmap into the
 * segment. The chunks of a segment keep the order of their items.
 *
 * An answer counts if its chunk read the generation that the operation ends with. After a restart,
 * a chunk that has already read the new generation is not sent again: the bits that it has set
 * would make its items look old. */
#ifndef BELAY_DATA_BLOOM_PLAN_H
#define BELAY_DATA_BLOOM_PLAN_H

#include "data/bloom/bloom.h"

typedef struct belay__bloom_chunk {
  uint32_t segment;
  uint32_t first, n; /* n items, from plan->order[first] on */
  bool bulk;         /* true if the whole segment is transferred */
  bool answered;
  int64_t header; /* Generation in the reply; 0: the key was missing */
} belay__bloom_chunk_t;

typedef struct belay__bloom_plan {
  belay__bloom_layer_t layer;
  belay__conn_class_t conn_class;
  uint32_t chunks_len, sent_len;
  uint32_t *order; /* Items sorted by segment */
  uint32_t *sent;  /* Numbers of the selected chunks */
  belay__bloom_chunk_t *chunks;
} belay__bloom_plan_t;

/* Bytes of a plan for n items, with its arrays. */
size_t belay__bloom_plan_size(const belay_bloom_t *bloom, const belay__bloom_shape_t *shape,
                              size_t n);

/* Make a plan for all items of op->hashes, in memory of belay__bloom_plan_size() bytes. */
void belay__bloom_plan_make(const belay_bloom_t *bloom, belay__bloom_plan_t *plan,
                            const belay__bloom_layer_t *layer, const belay__bloom_op_t *op);

/* Select the chunks without a reply under this generation. Returns the number of chunks. */
uint32_t belay__bloom_plan_select(belay__bloom_plan_t *plan, int64_t generation);
/* Select one chunk of each segment whose key was missing. The BITFIELD of an add has made a key
 * there, which belay__bloom_plan_stray() removes. Returns the number of chunks. */
uint32_t belay__bloom_plan_select_strays(belay__bloom_plan_t *plan);

/* Make the call of the i-th selected chunk. Returns NULL if memory is out. */
belay__call_t *belay__bloom_plan_call(belay__operation_t *operation, size_t i, const void *arg);
/* Make a call that removes the key which the add of the i-th selected chunk made. Returns NULL if
 * memory is out. */
belay__call_t *belay__bloom_plan_stray(belay__operation_t *operation, size_t i, const void *arg);

/* Read the reply to the nth selected chunk: the header, and the answers for its items. Returns 0 or
 * an error. */
int belay__bloom_plan_read(belay_bloom_t *bloom, belay__bloom_plan_t *plan, belay__bloom_op_t *op,
                           uint32_t nth, const belay__reply_t *reply);

#endif /* BELAY_DATA_BLOOM_PLAN_H */
