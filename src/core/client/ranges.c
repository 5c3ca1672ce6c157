#include "core/client/ranges.h"

#include <string.h>

/* Read the number at an offset in the options. An unsigned number above INT64_MAX becomes -1, which
 * is outside the range of all unsigned fields. */
static int64_t value_at(const void *options, size_t offset, const belay__range_t *range) {
  const char *field = (const char *)options + offset;
  int32_t narrow;
  int64_t wide;
  if (range->size == sizeof narrow) {
    memcpy(&narrow, field, sizeof narrow);
    return range->is_unsigned ? (int64_t)(uint32_t)narrow : narrow;
  }
  memcpy(&wide, field, sizeof wide);
  return range->is_unsigned && wide < 0 ? -1 : wide;
}

static int check_range(belay_t *belay, const void *options, const belay__range_t *range) {
  static const int64_t also[] = {
      [BELAY__OR_0] = 0, [BELAY__OR_DEFAULT] = BELAY_DEFAULT, [BELAY__OR_FOREVER] = BELAY_FOREVER};
  int64_t value = value_at(options, range->offset, range), min = range->min;
  if (range->also != BELAY__OR_NOTHING && value == also[range->also])
    return 0;
  if (range->min_from != 0)
    min = value_at(options, range->min_from, range);
  return belay__check_range(belay, range->name, value, min, range->max);
}

int belay__check_ranges(belay_t *belay, const void *options, const belay__range_t *table) {
  int error = 0;
  for (const belay__range_t *range = table; error == 0 && range->name != NULL; range++)
    error = check_range(belay, options, range);
  return error;
}
