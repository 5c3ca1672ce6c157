/* A census: the ttl of a filter, and the header and the number of bits of its segments. */
#ifndef BELAY_DATA_BLOOM_CENSUS_H
#define BELAY_DATA_BLOOM_CENSUS_H

#include "data/bloom/bloom.h"

/* How two calls about a segment were answered. */
typedef struct belay__bloom_census {
  bool there; /* its header is right */
  int64_t bits_set;
} belay__bloom_census_t;

/* PARKED: asks for the configuration's ttl, and for the header and the bits of n segments of each layer. */
int belay__bloom_census_send(belay__operation_t *operation, const belay__bloom_layer_t *layers,
                             size_t layers_len, size_t n);
/* Reads their replies, into an array of all segments; and op->info.remaining_ms, which is -2 if there is no configuration. */
int belay__bloom_census_read(belay__operation_t *operation, const belay__call_t *call,
                             const belay__reply_t *reply, belay__bloom_census_t *out);

#endif /* BELAY_DATA_BLOOM_CENSUS_H */
