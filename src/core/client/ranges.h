/* The ranges of numbers in an options struct, as a table. */
#ifndef BELAY_CORE_CLIENT_RANGES_H
#define BELAY_CORE_CLIENT_RANGES_H

#include <stddef.h>

#include "core/loop/loop.h"

/* A special value outside the range that is valid too. */
typedef enum belay__range_also {
  BELAY__OR_NOTHING,
  BELAY__OR_0,
  BELAY__OR_DEFAULT, /* BELAY_DEFAULT */
  BELAY__OR_FOREVER  /* BELAY_FOREVER */
} belay__range_also_t;

/* The range of one field of an options struct. */
typedef struct belay__range {
  const char *name; /* Name of the field in a detail; NULL ends the table */
  size_t offset;    /* Offset of the field in the struct */
  /* Offset of another field, of the same type, whose value is the minimum; 0: `min` is the
   * minimum */
  size_t min_from;
  int64_t min, max;
  uint8_t size;     /* Size of the field, in bytes: 4 or 8 */
  bool is_unsigned; /* true if the field's type is unsigned */
  belay__range_also_t also;
} belay__range_t;

/* Size of a field in bytes. Does not compile unless the field is an integer of 4 or 8 bytes. */
#define BELAY__RANGE_SIZE(field)                                                                   \
  _Generic((field), int : 4, unsigned : 4, long                                                    \
           : sizeof(long), unsigned long                                                           \
           : sizeof(long), long long : 8, unsigned long long : 8)

/* Make a row of a table from a field, its smallest and its greatest valid value. _OR: a special
 * value is valid too. _FROM: as _OR, but another field has the smallest value. */
#define BELAY__RANGE_ROW(struct_type, field, ...)                                                  \
  {                                                                                                \
    .name = #field, .offset = offsetof(struct_type, field),                                        \
    .size = BELAY__RANGE_SIZE(((struct_type *)0)->field),                                          \
    .is_unsigned = (__typeof__(((struct_type *)0)->field))-1 > 0, __VA_ARGS__                      \
  }
#define BELAY__RANGE(struct_type, field, least, most)                                              \
  BELAY__RANGE_ROW(struct_type, field, .min = (least), .max = (most))
#define BELAY__RANGE_OR(struct_type, field, value, least, most)                                    \
  BELAY__RANGE_ROW(struct_type, field, .also = BELAY__OR_##value, .min = (least), .max = (most))
#define BELAY__RANGE_FROM(struct_type, field, value, lower, most)                                  \
  BELAY__RANGE_ROW(struct_type, field, .also = BELAY__OR_##value,                                  \
                   .min_from = offsetof(struct_type, lower), .max = (most))

/* Check the fields in the order of the table. Returns 0, or BELAY_EINVAL with a detail about the
 * first wrong field. */
int belay__check_ranges(belay_t *belay, const void *options, const belay__range_t *table);

#endif /* BELAY_CORE_CLIENT_RANGES_H */
