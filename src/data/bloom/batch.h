/* How the items of an operation travel to a script, of the kinds whose layers share a slot.
 *
 * They are cut into calls of so few bits each that none holds the server up for long, and so many calls are sent at once
 * that they do not take too much memory. A script deals with as many of a call's items as it can, from the first one on; what is
 * left is sent again, in the next round, when it is known why. An answer that was given under a generation that is not
 * any more is forgotten. */
#ifndef BELAY_DATA_BLOOM_BATCH_H
#define BELAY_DATA_BLOOM_BATCH_H

#include "data/bloom/bloom.h"

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
  bool *dealt;                                /* with these items */
} belay__bloom_batch_t;

/* Bytes of a plan of that size that begins with a batch, with its items behind it. */
size_t belay__bloom_batch_size(size_t plan, size_t n);

/* PARKED: before kind->send does anything else. */
void belay__bloom_batch_begin(belay__pending_t *pending, size_t plan);

/* PARKED: sends a round of items that have `bits` positions each, or, if there are none, one call. make: a call about the
 * items from first to end; NULL: memory was out. 0 or an error, and it is still PARKED. */
typedef belay__call_t *(*belay__bloom_make_fn)(belay__pending_t *pending, uint32_t first,
                                               uint32_t end);
int belay__bloom_batch_send(belay__pending_t *pending, uint32_t bits, belay__bloom_make_fn make);

/* How many items a call about those from first to end has. */
uint32_t belay__bloom_batch_items(const belay__pending_t *pending, uint32_t first, uint32_t end);

/* Adds for each item, for each layer of those shapes, where its bits are: offsets in the key, in one argument. */
void belay__bloom_batch_args(const belay__pending_t *pending, belay__call_t *call, uint32_t first,
                             uint32_t end, const belay__bloom_shape_t *shapes, size_t shapes_len);

/* Reads what a script says: an array of `count`, that begins with a number from -3 to 2, and ends with the answers. 0 and
 * *what, or an error. */
int belay__bloom_batch_read(belay__pending_t *pending, const belay__call_t *call,
                            const belay__reply_t *reply, size_t count, int64_t *what);

/* PARKED, a round is over: what kind->next returns; BELAY__REQUEST_PARK after sending another one. */
int belay__bloom_batch_next(belay__pending_t *pending, uint32_t bits, belay__bloom_make_fn make);

/* The same where a round has failed for a reason that has been learnt by now. */
int belay__bloom_batch_again(belay__pending_t *pending, uint32_t bits, belay__bloom_make_fn make);

/* ---- info ---------------------------------------------------------------------------------------------- */

/* Part 0 asks for the configuration's ttl; of each segment there are two, an odd one for its header, and one for its
 * bits. NULL: memory was out. */
belay__call_t *belay__bloom_census_call(belay_bloom_t *bloom, const belay__bloom_layer_t *layer,
                                        uint32_t segment, size_t part);

/* How the two calls about a layer were answered. */
typedef struct belay__bloom_census {
  bool there; /* its header is right */
  int64_t bits_set;
} belay__bloom_census_t;

/* PARKED: sends those of layers that have a segment each. */
int belay__bloom_census_send(belay__pending_t *pending, const belay__bloom_layer_t *layers,
                             size_t n);
/* Reads their replies; op->info.ttl_ms too, which is -2 where there is no configuration. */
int belay__bloom_census_read(belay__pending_t *pending, const belay__call_t *call,
                             const belay__reply_t *reply, belay__bloom_census_t *out);

#endif /* BELAY_DATA_BLOOM_BATCH_H */
