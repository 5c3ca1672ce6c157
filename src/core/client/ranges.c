#include "core/client/ranges.h"

#include <string.h>

/* An unsigned number above INT64_MAX becomes -1, which is outside the range of all unsigned
 * fields. */
static int64_t value_at(const void *options, size_t offset, belay__number_t type) {
  const char *field = (const char *)options + offset;
  int small;
  unsigned natural;
  int64_t wide;
  switch (type) {
  case BELAY__NUMBER_INT:
    memcpy(&small, field, sizeof small);
    return small;
  case BELAY__NUMBER_UINT:
    memcpy(&natural, field, sizeof natural);
    return natural;
  case BELAY__NUMBER_INT64:
  case BELAY__NUMBER_UINT64:
    memcpy(&wide, field, sizeof wide);
    return type == BELAY__NUMBER_UINT64 && wide < 0 ? -1 : wide;
  }
  return -1;
}

static int check_range(belay_t *belay, const void *options, const belay__range_t *range) {
  static const int64_t also[] = {
      [BELAY__OR_0] = 0, [BELAY__OR_DEFAULT] = BELAY_DEFAULT, [BELAY__OR_FOREVER] = BELAY_FOREVER};
  int64_t value = value_at(options, range->offset, range->type), min = range->min;
  if (range->also != BELAY__OR_NOTHING && value == also[range->also])
    return 0;
  if (range->min_from != 0)
    min = value_at(options, range->min_from, range->type);
  return belay__check_range(belay, range->name, value, min, range->max);
}

int belay__check_ranges(belay_t *belay, const void *options, const belay__range_t *table) {
  int error = 0;
  for (const belay__range_t *range = table; error == 0 && range->name != NULL; range++)
    error = check_range(belay, options, range);
  return error;
}
