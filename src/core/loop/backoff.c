#include "core/loop/backoff.h"

belay__delay_t belay__delay_grow(belay__delay_t delay, unsigned times, uint64_t most) {
  uint64_t max = delay.max;
  for (; times > 0 && max > 0 && max < most; times--)
    max *= 2;
  if (max > most)
    max = most;
  double ratio = delay.max > 0 ? (double)max / (double)delay.max : 1;
  return (belay__delay_t){(uint64_t)((double)delay.min * ratio), max};
}

belay__delay_t belay__delay_poll(uint32_t retry_min_ms, uint32_t retry_max_ms, unsigned times,
                                 uint64_t most_ms) {
  uint64_t most = most_ms > retry_max_ms ? most_ms : retry_max_ms;
  return belay__delay_grow(belay__delay_ms(retry_min_ms, retry_max_ms), times, most * BELAY__MS);
}

uint64_t belay__delay_draw(belay_t *belay, belay__delay_t delay) {
  if (delay.min >= delay.max)
    return delay.max;
  return delay.min + belay__random_below(belay, delay.max - delay.min + 1);
}

uint64_t belay__backoff(belay_t *belay, unsigned failures, uint64_t most) {
  belay__delay_t first = belay__delay_ms(BELAY__BACKOFF_MIN_MS / 2, BELAY__BACKOFF_MIN_MS);
  return belay__delay_draw(belay, belay__delay_grow(first, failures, most));
}

uint64_t belay__period(belay_t *belay, uint64_t period) {
  return belay__delay_draw(belay, (belay__delay_t){period - period / 4, period});
}

uint64_t belay__spread(belay_t *belay, uint64_t within) {
  return belay__delay_draw(belay, (belay__delay_t){1, within});
}
