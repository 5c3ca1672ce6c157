#include "core/client/ranges.h"

#include <string.h>

/* An unsigned number above INT64_MAX is -1, which no range of an unsigned field has. */
static int64_t value_of(const void *options, const belay__range_t *range) {
  const char *field = (const char *)options + range->offset;
  int small;
  unsigned natural;
  int64_t wide;
  switch (range->type) {
  case BELAY__NUMBER_INT:
    memcpy(&small, field, sizeof small);
    return small;
  case BELAY__NUMBER_UINT:
    memcpy(&natural, field, sizeof natural);
    return natural;
  case BELAY__NUMBER_INT64:
  case BELAY__NUMBER_UINT64:
    memcpy(&wide, field, sizeof wide);
    return range->type == BELAY__NUMBER_UINT64 && wide < 0 ? -1 : wide;
  }
  return -1;
}

int belay__check_ranges(belay_t *belay, const void *options, const belay__range_t *table) {
  int error = 0;
  for (const belay__range_t *range = table; range->name != NULL && error == 0; range++) {
    int64_t value = value_of(options, range);
    if (value != 0 || !range->or_zero)
      error = belay__check_range(belay, range->name, value, range->min, range->max);
  }
  return error;
}

int belay__options_take(belay_client_t *client, void *filled, const void *options, size_t size,
                        const belay__range_t *table) {
  int error = belay__client_check(client);
  if (error != 0)
    return error;
  if (options != NULL)
    memcpy(filled, options, size);
  return belay__check_ranges(client->belay, filled, table);
}
