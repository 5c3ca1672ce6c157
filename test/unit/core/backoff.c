/* Random delays: each stays in its range, and reaches both ends of it. */
#include <limits.h>
#include <string.h>

#include "core/loop/backoff.h"
#include "support/base/test.h"

/* ---- a loop whose random bytes the test chooses ---- */

static uint64_t drawn;
static int no_random;

static int host_random(belay_t *belay, void *out, size_t len) {
  (void)belay;
  memcpy(out, &drawn, len);
  return no_random;
}

static const belay__host_ops_t host_ops = {.random = host_random};
static belay_t loop = {.host = &host_ops};

/* ---- ranges ---- */

TEST(a_range_doubles_up_to_a_limit) {
  static const struct {
    belay__delay_t delay;
    unsigned times;
    uint64_t most;
    belay__delay_t expected;
  } rows[] = {
      {{25, 75}, 0, 300, {25, 75}},
      {{25, 75}, 1, 300, {50, 150}},
      {{25, 75}, 2, 300, {100, 300}},
      {{25, 75}, 3, 300, {100, 300}},
      {{25, 75}, UINT_MAX, 300, {100, 300}},
      {{0, 75}, 2, 1000, {0, 300}},
      {{20, 20}, 2, 1000, {80, 80}},
      {{10, 20}, 4, 200, {100, 200}}, /* the limit is no power of two times max */
      {{10, 20}, 0, 10, {5, 10}},     /* a limit below max */
      {{0, 0}, UINT_MAX, 1000, {0, 0}},
      {{10, 20}, 3, 0, {0, 0}},
      {{UINT64_C(1) << 40, UINT64_C(1) << 41},
       9,
       UINT64_C(1) << 42,
       {UINT64_C(1) << 41, UINT64_C(1) << 42}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    belay__delay_t found = belay__delay_grow(rows[i].delay, rows[i].times, rows[i].most);
    if (found.min != rows[i].expected.min || found.max != rows[i].expected.max)
      fail_msg("row %zu: %llu to %llu", i, (unsigned long long)found.min,
               (unsigned long long)found.max);
  }
}

TEST(polls_double_up_to_a_limit) {
  belay__delay_t found = belay__delay_poll(25, 75, 1, 300);
  assert_int_equal(found.min, 50 * BELAY__MS);
  assert_int_equal(found.max, 150 * BELAY__MS);
  found = belay__delay_poll(25, 75, UINT_MAX, 300);
  assert_int_equal(found.max, 300 * BELAY__MS);
  found = belay__delay_poll(25, 3600000, 3, 300);
  assert_int_equal(found.min, 25 * BELAY__MS);
  assert_int_equal(found.max, 3600000 * BELAY__MS);
}

/* ---- draws ---- */

enum { DRAWS = 8 };

static const struct {
  uint64_t min, max;
} draws[DRAWS] = {{10 * BELAY__MS, 20 * BELAY__MS},
                  {40 * BELAY__MS, 80 * BELAY__MS},
                  {500 * BELAY__MS, 1000 * BELAY__MS},
                  {50, 100},
                  {3000, 4000},
                  {1, 500},
                  {BELAY__MS, 3 * BELAY__MS},
                  {7, 7}};

/* The delay of a row of draws. */
static uint64_t draw(size_t row) {
  const uint64_t most = BELAY__BACKOFF_MAX_MS * BELAY__MS;
  return row == 0   ? belay__backoff(&loop, 0, most)
         : row == 1 ? belay__backoff(&loop, 2, most)
         : row == 2 ? belay__backoff(&loop, UINT_MAX, most)
         : row == 3 ? belay__backoff(&loop, 5, 100)
         : row == 4 ? belay__period(&loop, 4000)
         : row == 5 ? belay__spread(&loop, 500)
         : row == 6 ? belay__delay_draw(&loop, belay__delay_ms(1, 3))
                    : belay__delay_draw(&loop, (belay__delay_t){7, 7});
}

TEST(each_draw_is_in_its_range) {
  for (size_t i = 0; i < DRAWS; i++) {
    drawn = 0;
    assert_int_equal(draw(i), draws[i].min);
    drawn = draws[i].max - draws[i].min;
    assert_int_equal(draw(i), draws[i].max);
    drawn = draws[i].max - draws[i].min + 1;
    assert_int_equal(draw(i), draws[i].min);
  }
}

TEST(a_delay_without_random_bytes_is_the_minimum) {
  drawn = 5;
  no_random = BELAY_ESYSTEM;
  for (size_t i = 0; i < DRAWS; i++)
    assert_int_equal(draw(i), draws[i].min);
  no_random = 0;
}
