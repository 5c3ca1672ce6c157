/* The arithmetic of trust: how long a ttl can be believed, and until when a quorum can be. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "lease/machine/deadline.h"
#include "support/base/random.h"
#include "support/base/test.h"

#define DEFAULT_DRIFT (-1)
#define US UINT64_C(1000) /* nanoseconds in a microsecond */
#define MEMBERS 5
#define ROUNDS 20000

static const struct {
  uint32_t ttl_ms;
  int32_t drift_ms;
  uint64_t expected;
} rows[] = {
    {10000, DEFAULT_DRIFT, 9898 * BELAY__MS},
    {100, DEFAULT_DRIFT, 97 * BELAY__MS},
    {30000, DEFAULT_DRIFT, 29698 * BELAY__MS},
    {BELAY__TTL_MAX_MS, DEFAULT_DRIFT, 85535998 * BELAY__MS},
    /* the default drift is not rounded */
    {BELAY__TTL_MIN_MS, DEFAULT_DRIFT, 7900 * US},
    {150, DEFAULT_DRIFT, 146500 * US},
    {3, DEFAULT_DRIFT, 970 * US},
    {10000, 1, 9999 * BELAY__MS},
    {10000, 5000, 5000 * BELAY__MS},
    {BELAY__TTL_MAX_MS, BELAY__TTL_MAX_MS / 2, BELAY__TTL_MAX_MS / 2 * BELAY__MS},
    {10, 0, 10 * BELAY__MS},
    {10000, 0, 10000 * BELAY__MS},
    /* a ttl that is not above the drift */
    {10, 10, 0},
    {10, 11, 0},
    {10, INT32_MAX, 0},
    {2, DEFAULT_DRIFT, 0},
    {0, DEFAULT_DRIFT, 0},
    {0, 0, 0},
    {11, 10, BELAY__MS},
    /* no overflow */
    {UINT32_MAX, 0, UINT64_C(4294967295000000)},
    {UINT32_MAX, INT32_MAX, UINT64_C(2147483648000000)},
    {UINT32_MAX, DEFAULT_DRIFT,
     UINT64_C(4294967295000000) - UINT64_C(42949672950000) - 2 * BELAY__MS},
};

TEST(validity_of_ttl_and_drift) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint64_t validity = belay__lease_validity(rows[i].ttl_ms, rows[i].drift_ms);
    if (validity != rows[i].expected)
      fail_msg("ttl %u ms, drift %d ms: %llu ns, not %llu", rows[i].ttl_ms, rows[i].drift_ms,
               (unsigned long long)validity, (unsigned long long)rows[i].expected);
  }
}

TEST(validity_grows_with_ttl) {
  uint64_t before = 0;
  for (uint32_t ttl = 3; ttl < 20000; ttl++) {
    uint64_t validity = belay__lease_validity(ttl, DEFAULT_DRIFT);
    assert_true(validity > before && validity < ttl * BELAY__MS);
    before = validity;
  }
}

/* The deadline of a lease on n nodes that keep it until these times. */
static uint64_t deadline(const uint64_t *until, uint8_t n, uint8_t quorum) {
  belay__lease_t *lease = calloc(1, belay__lease_sized(sizeof *lease, n));
  assert_non_null(lease);
  lease->members = n;
  lease->quorum = quorum;
  for (uint8_t i = 0; i < n; i++)
    lease->member[i].until = until[i];
  uint64_t result = belay__lease_deadline(lease);
  free(lease);
  return result;
}

/* The quorum, and the times of all nodes. */
#define DEADLINE(quorum, ...)                                                                      \
  deadline((const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / 8, quorum)

TEST(deadline_of_three) {
  assert_int_equal(DEADLINE(2, 10, 20, 30), 20);
  assert_int_equal(DEADLINE(2, 10, 30, 20), 20);
  assert_int_equal(DEADLINE(2, 20, 10, 30), 20);
  assert_int_equal(DEADLINE(2, 20, 30, 10), 20);
  assert_int_equal(DEADLINE(2, 30, 10, 20), 20);
  assert_int_equal(DEADLINE(2, 30, 20, 10), 20);
}

TEST(deadline_without_quorum) {
  assert_int_equal(DEADLINE(2, 0, 0, 0), 0);
  assert_int_equal(DEADLINE(2, 0, 30, 0), 0);
  assert_int_equal(DEADLINE(3, 50, 0, 40, 0, 0), 0);
}

static int compare_down(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x < y) - (x > y);
}

TEST(deadline_of_any_number) {
  uint64_t seed = 1;
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t until[MEMBERS];
    uint8_t n = (uint8_t)(1 + next_random(&seed) % MEMBERS);
    uint8_t quorum = (uint8_t)(1 + next_random(&seed) % n);
    uint64_t range = i % 2 ? UINT64_MAX : 4; /* 4: many ties and zeros */
    for (uint8_t j = 0; j < n; j++)
      until[j] = next_random(&seed) % range;
    uint64_t result = deadline(until, n, quorum);
    qsort(until, n, sizeof until[0], compare_down);
    assert_true(result == until[quorum - 1]);
  }
}
