/* Which day an archiver does next, after what was done last, and by which clock. */
#include <stdlib.h>

#include "data/archiver/archiver.h"
#include "support/base/test.h"

#define HOUR BELAY__HOUR_MS
#define DAY BELAY__DAY_MS

TEST(which_day_comes_next) {
  const int64_t noon = INT64_C(1795262400000), none = BELAY__ARCHIVER_NONE; /* day 20778 */
  const struct {
    int64_t unit, offset, delay, from, last, now, next, over;
  } rows[] = {
      {DAY, 0, 0, 0, none, noon, 20777, 20777},
      {DAY, 0, 0, 0, 20777, noon, 20778, 20777},
      {DAY, 0, 0, 0, 20770, noon, 20771, 20777},
      {DAY, 0, 0, 0, 20700, noon, 20768, 20777}, /* ten days are kept */
      {DAY, 0, 0, noon - 3 * DAY, none, noon, 20775, 20777},
      {DAY, 0, 0, 1, none, noon, 20768, 20777},
      {DAY, 0, 0, noon + 3 * DAY, none, noon, 20781, 20777},
      {DAY, 0, HOUR, 0, none, noon - 12 * HOUR, 20776, 20776},
      {DAY, 0, HOUR, 0, none, noon - 11 * HOUR, 20777, 20777},
      {DAY, 0, 0, 0, none, noon - 12 * HOUR - 1, 20776, 20776},
      {DAY, 12 * HOUR, 0, 0, none, noon, 20778, 20778},
      {DAY, 12 * HOUR, 0, 0, none, noon - 1, 20777, 20777},
      {DAY, -12 * HOUR, 0, 0, none, noon - 1, 20776, 20776},
      {HOUR, 0, 0, 0, 20700, noon, 20769, 20777}, /* the morning of the tenth is gone */
      {HOUR, 0, 0, 0, 20700, noon - 11 * HOUR - 1, 20768, 20777},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    belay_active_t active = {
        .unit_ms = rows[i].unit, .offset_ms = rows[i].offset, .ttl_ms = 10 * DAY};
    belay_archiver_t archiver = {
        .active = &active, .delay_ms = rows[i].delay, .from_ms = rows[i].from};
    int64_t over, next = belay__archiver_next(&archiver, rows[i].last, rows[i].now, &over);
    if (next != rows[i].next || over != rows[i].over)
      fail_msg("row %zu: %lld, %lld", i, (long long)next, (long long)over);
  }
}
