/* Shared by the files of dedup: the handle, its keys and common replies. */
#ifndef BELAY_DATA_DEDUP_DEDUP_H
#define BELAY_DATA_DEDUP_DEDUP_H

#include "belay/dedup.h"
#include "core/client/handle.h"

#define BELAY__DEDUP_IS(kind) (1U << (BELAY_DEDUP_##kind)) /* Bit of a kind in a mask of kinds */
#define BELAY__DEDUP_ALL 15U

struct belay_dedup {
  belay__handle_t handle; /* first */
  belay_dedup_options_t options;
};

/* Check as belay__handle_check_request() does, and that the kind of the handle is in the mask. */
int belay__dedup_check(const belay_dedup_t *dedup, const belay_request_t *request, unsigned kinds,
                       bool has_cb);

/* Add the key of a set. */
void belay__dedup_arg_key(const belay_dedup_t *dedup, belay__call_t *call, belay_bytes_t key);

/* Return the error that a script replied, or 0. Not for the scripts of combine.c: their reply -N
 * says that the Nth key has another type. */
int belay__dedup_fault(const belay__call_t *call, const belay__reply_t *reply);

#endif /* BELAY_DATA_DEDUP_DEDUP_H */
