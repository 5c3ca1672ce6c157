/* Options of handles: the caller's, or the defaults, checked against a table of ranges. */
#ifndef BELAY_CORE_CLIENT_RANGES_H
#define BELAY_CORE_CLIENT_RANGES_H

#include <stddef.h>

#include "core/client/client.h"

typedef enum belay__number {
  BELAY__NUMBER_INT,
  BELAY__NUMBER_UINT,
  BELAY__NUMBER_INT64,
  BELAY__NUMBER_UINT64
} belay__number_t;

/* A range of one field of an options struct. */
typedef struct belay__range {
  const char *name; /* of the field, as a detail names it; NULL ends the table */
  size_t offset;    /* in the struct */
  int64_t min, max;
  belay__number_t type;
  bool or_zero; /* 0 is valid too */
} belay__range_t;

/* The type of a number field; an enum is one of them. */
#define BELAY__NUMBER_OF(field)                                                                    \
  _Generic((field), int                                                                            \
           : BELAY__NUMBER_INT, unsigned                                                           \
           : BELAY__NUMBER_UINT, long                                                              \
           : sizeof(long) == 8 ? BELAY__NUMBER_INT64 : BELAY__NUMBER_INT, unsigned long            \
           : sizeof(long) == 8 ? BELAY__NUMBER_UINT64 : BELAY__NUMBER_UINT, long long              \
           : BELAY__NUMBER_INT64, unsigned long long                                               \
           : BELAY__NUMBER_UINT64)

#define BELAY__RANGE(struct_type, field, least, most)                                              \
  {                                                                                                \
    .name = #field, .offset = offsetof(struct_type, field),                                        \
    .type = BELAY__NUMBER_OF(((struct_type *)0)->field), .min = (least), .max = (most)             \
  }
#define BELAY__RANGE_OR_0(struct_type, field, least, most)                                         \
  {                                                                                                \
    .name = #field, .offset = offsetof(struct_type, field),                                        \
    .type = BELAY__NUMBER_OF(((struct_type *)0)->field), .min = (least), .max = (most),            \
    .or_zero = true                                                                                \
  }

/* Check the fields of a table in its order. Returns 0, or BELAY_EINVAL with a detail about the first wrong field. */
int belay__check_ranges(belay_t *belay, const void *options, const belay__range_t *table);

/* Begin belay_X_new(): check the client, copy options (NULL: keep the defaults that filled has) to filled, and check
 * them. Returns 0, BELAY_EINVAL (with a detail), BELAY_ECLOSING or BELAY_EFORK. */
int belay__options_take(belay_client_t *client, void *filled, const void *options, size_t size,
                        const belay__range_t *table);

#endif /* BELAY_CORE_CLIENT_RANGES_H */
