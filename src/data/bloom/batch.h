/* Sends the items of an operation to a script, for kinds whose layers share a slot.
 *
 * The items are divided into calls. Each call has few enough bits that it does not block the
 * server for long, and the number of calls sent at once is limited to bound memory. A script
 * processes as many items of its call as it can, from the first one on. The next round sends the
 * rest, with the knowledge from the reply. Answers of an outdated generation are dropped. */
#ifndef BELAY_DATA_BLOOM_BATCH_H
#define BELAY_DATA_BLOOM_BATCH_H

#include "data/bloom/bloom.h"
#include "data/bloom/census.h"

#define BELAY__BLOOM_CALLS_MAX 128u /* in a round */
#define BELAY__BLOOM_DAMAGED "its state is damaged"

/* The beginning of a plan. */
typedef struct belay__bloom_batch {
  int64_t generation; /* that the answers were given under */
  uint32_t left;      /* items without an answer */
  uint32_t calls_len;
  uint32_t first[BELAY__BLOOM_CALLS_MAX + 1]; /* of the calls: the items from one to the next */
  uint8_t fruitless;                          /* rounds in which nothing was learnt */
  bool learnt;                                /* in this round: an answer, or why there is none */
  bool other, lost;                           /* so the script said */
  bool counting;                              /* an info that counts its layers */
  unsigned layers;                            /* that are counted */
  belay__bloom_census_t census[BELAY__BLOOM_LAYERS_MAX];
  bool *dealt; /* with these items */
} belay__bloom_batch_t;

/* In what the kinds differ. An info is a round without items, and then a census of the layers. */
typedef struct belay__bloom_batch_kind {
  size_t plan; /* bytes of a plan, which begins with a batch */
  /* Before the first round. NULL: there is nothing to do. */
  void (*begin)(belay_bloom_t *bloom);
  /* How many bits a script reads or sets for an item. */
  uint32_t (*bits_of_item)(const belay_bloom_t *bloom);
  /* A call about the items from first to end; NULL if memory is out. */
  belay__call_t *(*make)(belay__operation_t *operation, uint32_t first, uint32_t end);
  /* As of belay__request_ops_t, of a round. */
  int (*read)(belay__operation_t *operation, const belay__call_t *call,
              const belay__reply_t *reply);
  /* The script said other or lost: as belay__bloom_look(). */
  int (*look)(belay__operation_t *operation);
  /* The layers that an info counts: how many; -1: the round did not tell. */
  int (*live)(belay__operation_t *operation, belay__bloom_layer_t out[BELAY__BLOOM_LAYERS_MAX]);
  /* The census is in batch->census: as of belay__request_ops_t. */
  int (*end_info)(belay__operation_t *operation);
} belay__bloom_batch_kind_t;

/* The functions of a belay__bloom_kind_t that has a batch kind. */
size_t belay__bloom_batch_size(const belay_bloom_t *bloom, belay__bloom_what_t what, size_t n);
int belay__bloom_batch_send(belay__operation_t *operation);
int belay__bloom_batch_read(belay__operation_t *operation, const belay__call_t *call,
                            const belay__reply_t *reply);
int belay__bloom_batch_next(belay__operation_t *operation);

/* Begins a call of a script about the items from first to end, each with `each` arguments: the configuration is its first
 * key, and `layers` more follow. more: arguments before those of the items. */
belay__call_t *belay__bloom_batch_script(belay__operation_t *operation,
                                         const belay__script_t *script, size_t layers, size_t more,
                                         size_t each, uint32_t first, uint32_t end);
/* Adds the first three arguments: the beginning of the configuration, a layer's header, and true
 * if the items are added. */
void belay__bloom_batch_head(const belay__operation_t *operation, belay__call_t *call);

/* Adds for each item, for each layer of those shapes, where its bits are: offsets in the key, in one argument. */
void belay__bloom_batch_args(const belay__operation_t *operation, belay__call_t *call,
                             uint32_t first, uint32_t end, const belay__bloom_shape_t *shapes,
                             size_t shapes_len);

/* Reads what a script says: an array of `count`, that begins with a number from -3 to 2, and ends with the answers. 0 and
 * *what, or an error. */
int belay__bloom_batch_answers(belay__operation_t *operation, const belay__call_t *call,
                               const belay__reply_t *reply, size_t count, int64_t *what);

#endif /* BELAY_DATA_BLOOM_BATCH_H */
