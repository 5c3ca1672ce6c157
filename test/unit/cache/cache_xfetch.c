/* How good a record is, and how often it is loaded again ahead of time. */
#include <belay.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cache/xfetch.h"
#include "support/base/random.h"
#include "support/base/test.h"

#define DAY INT64_C(86400000)

/* One without bytes. */
#define RECORD(kind_, fresh)                                                                       \
  (belay__record_t) {                                                                              \
    .refs = 1, .kind = (kind_), .fresh_ms = (fresh)                                                \
  }

/* ---- boundaries ---- */

typedef struct moment {
  int64_t now_ms;
  belay__freshness_t expected;
} moment_t;

static void expect_moments(const belay__record_t *record, const belay_cache_options_t *config,
                           const moment_t *moments, size_t n) {
  for (size_t i = 0; i < n; i++) {
    belay__freshness_t found = belay__fresh_judge(record, config, moments[i].now_ms, 0.5);
    if (found != moments[i].expected)
      fail_msg("%lld: %d, not %d", (long long)moments[i].now_ms, (int)found,
               (int)moments[i].expected);
  }
}
#define EXPECT(record, config, ...)                                                                \
  expect_moments(record, config, (const moment_t[]){__VA_ARGS__},                                  \
                 sizeof((const moment_t[]){__VA_ARGS__}) / sizeof(moment_t))

TEST(age_and_remaining_time) {
  belay__record_t record = RECORD(BELAY__RECORD_VALUE, 1000);
  belay_cache_options_t config = {.stale_ms = 100, .keep_ms = 500};
  EXPECT(&record, &config, {0, BELAY__FRESH}, {999, BELAY__FRESH}, {1000, BELAY__STALE},
         {1099, BELAY__STALE}, {1100, BELAY__KEPT}, {1499, BELAY__KEPT}, {1500, BELAY__EXPIRED},
         {INT64_MAX, BELAY__EXPIRED});
  config = (belay_cache_options_t){.stale_ms = 0, .keep_ms = 500};
  EXPECT(&record, &config, {999, BELAY__FRESH}, {1000, BELAY__KEPT}, {1500, BELAY__EXPIRED});
  config = (belay_cache_options_t){.stale_ms = 500, .keep_ms = 500};
  EXPECT(&record, &config, {999, BELAY__FRESH}, {1499, BELAY__STALE}, {1500, BELAY__EXPIRED});
  config = (belay_cache_options_t){0};
  EXPECT(&record, &config, {999, BELAY__FRESH}, {1000, BELAY__EXPIRED});
}

TEST(pause_after_failed_load) {
  belay__record_t record = RECORD(BELAY__RECORD_VALUE, 1000);
  belay_cache_options_t config = {.stale_ms = 100, .keep_ms = 500};
  record.retry_ms = 1050;
  EXPECT(&record, &config, {999, BELAY__FRESH}, {1000, BELAY__STALE_BACKOFF},
         {1049, BELAY__STALE_BACKOFF}, {1050, BELAY__STALE}, {1100, BELAY__KEPT});
  record.retry_ms = 1200;
  EXPECT(&record, &config, {1099, BELAY__STALE_BACKOFF}, {1100, BELAY__STALE_BACKOFF},
         {1199, BELAY__STALE_BACKOFF}, {1200, BELAY__KEPT});
  record.retry_ms = INT64_MAX;
  EXPECT(&record, &config, {0, BELAY__FRESH}, {1499, BELAY__STALE_BACKOFF}, {1500, BELAY__EXPIRED});
}

TEST(absence_is_fresh_or_expired) {
  belay_cache_options_t config = {.stale_ms = 100, .keep_ms = 500, .beta = 1000};
  static const belay__record_kind_t kinds[] = {BELAY__RECORD_ABSENT, BELAY__RECORD_ERROR};
  for (size_t i = 0; i < 2; i++) {
    belay__record_t record = RECORD((uint8_t)kinds[i], 1000);
    record.load_us = UINT32_MAX; /* a value would be early */
    EXPECT(&record, &config, {0, BELAY__FRESH}, {999, BELAY__FRESH}, {1000, BELAY__EXPIRED},
           {INT64_MAX, BELAY__EXPIRED});
    record.retry_ms = 5000;
    EXPECT(&record, &config, {999, BELAY__FRESH}, {1000, BELAY__EXPIRED});
  }
}

TEST(times_at_their_ends) {
  belay_cache_options_t config = {.stale_ms = 365 * DAY, .keep_ms = INT64_MAX, .beta = 1000};
  belay__record_t record = RECORD(BELAY__RECORD_VALUE, INT64_MAX);
  EXPECT(&record, &config, {0, BELAY__FRESH}, {INT64_MAX, BELAY__STALE});
  record.fresh_ms = 0;
  EXPECT(&record, &config, {0, BELAY__STALE}, {365 * DAY, BELAY__KEPT},
         {INT64_MAX - 1, BELAY__KEPT}, {INT64_MAX, BELAY__EXPIRED});
}

TEST(order_of_service) {
  static const belay__freshness_t served[] = {BELAY__FRESH, BELAY__EARLY, BELAY__STALE,
                                              BELAY__STALE_BACKOFF};
  for (size_t i = 0; i < sizeof served / sizeof *served; i++)
    assert_true(belay__fresh_serves(served[i]));
  assert_false(belay__fresh_serves(BELAY__KEPT));
  assert_false(belay__fresh_serves(BELAY__EXPIRED));
}

/* ---- ahead of time ---- */

TEST(early_refresh_as_in_the_paper) {
  /* 100 ms of load, and -ln(random) = 3: the last 300 ms, or beta times that */
  belay__record_t record = RECORD(BELAY__RECORD_VALUE, 1000000);
  record.load_us = 100000;
  static const double betas[] = {0.5, 1, 2, 1000};
  for (size_t i = 0; i < sizeof betas / sizeof *betas; i++) {
    belay_cache_options_t config = {.stale_ms = 10, .keep_ms = 10, .beta = betas[i]};
    int64_t early = 1000000 - (int64_t)(300 * betas[i]);
    double random = exp(-3 - 1e-9);
    assert_int_equal(belay__fresh_judge(&record, &config, early, random), BELAY__EARLY);
    assert_int_equal(belay__fresh_judge(&record, &config, early - 1, random), BELAY__FRESH);
    assert_int_equal(belay__fresh_judge(&record, &config, 999999, random), BELAY__EARLY);
    assert_int_equal(belay__fresh_judge(&record, &config, 1000000, random), BELAY__STALE);
    assert_int_equal(belay__fresh_judge(&record, &config, 999999, 1), BELAY__FRESH);
  }
}

TEST(without_beta_or_a_load_time_it_is_never_early) {
  belay__record_t record = RECORD(BELAY__RECORD_VALUE, 1000);
  belay_cache_options_t config = {.beta = 0};
  record.load_us = UINT32_MAX;
  assert_int_equal(belay__fresh_judge(&record, &config, 999, 0x1p-53), BELAY__FRESH);
  config.beta = 1000;
  assert_int_equal(belay__fresh_judge(&record, &config, 999, 0x1p-53), BELAY__EARLY);
  record.load_us = 0;
  assert_int_equal(belay__fresh_judge(&record, &config, 999, 0x1p-53), BELAY__FRESH);
}

TEST(while_it_rests_it_is_not_early) {
  belay__record_t record = RECORD(BELAY__RECORD_VALUE, 1000);
  belay_cache_options_t config = {.beta = 1};
  record.load_us = UINT32_MAX;
  record.retry_ms = 900;
  assert_int_equal(belay__fresh_judge(&record, &config, 899, 0x1p-53), BELAY__FRESH);
  assert_int_equal(belay__fresh_judge(&record, &config, 900, 0x1p-53), BELAY__EARLY);
}

/* ---- at random ---- */

typedef struct world {
  belay_t belay;
  uint64_t seed, fixed;
} world_t;

static int seeded(belay_t *belay, void *buffer, size_t len) {
  uint64_t x = next_random(&BELAY__CONTAINER(belay, world_t, belay)->seed);
  assert_int_equal(len, sizeof x);
  memcpy(buffer, &x, len);
  return 0;
}

static int fixed(belay_t *belay, void *buffer, size_t len) {
  memcpy(buffer, &BELAY__CONTAINER(belay, world_t, belay)->fixed, len);
  return 0;
}

static int failing(belay_t *belay, void *buffer, size_t len) {
  (void)belay;
  memset(buffer, 0, len);
  return BELAY_ESYSTEM;
}

static const belay__host_ops_t seeded_host = {.random = seeded};
static const belay__host_ops_t fixed_host = {.random = fixed};
static const belay__host_ops_t failing_host = {.random = failing};

static void init(world_t *world, const belay__host_ops_t *host, uint64_t seed) {
  belay_options_t options;
  belay_options_init(&options);
  *world = (world_t){.seed = seed};
  belay__init(&world->belay, host, &options);
}

TEST(random_numbers_are_above_0_and_up_to_1) {
  world_t world;
  init(&world, &fixed_host, 0);
  assert_true(belay__fresh_random(&world.belay) == 0x1p-53);
  world.fixed = UINT64_MAX;
  assert_true(belay__fresh_random(&world.belay) == 1);
  world.fixed = UINT64_C(1) << 63;
  assert_true(belay__fresh_random(&world.belay) == 0.5 + 0x1p-53);
  world.fixed = (UINT64_C(1) << 11) - 1; /* the lowest bits are not used */
  assert_true(belay__fresh_random(&world.belay) == 0x1p-53);
  init(&world, &failing_host, 0);
  assert_true(belay__fresh_random(&world.belay) == 1); /* never early */
}

/* Above what chi-square is by chance once in about thirty thousand times: by the normal
 * distribution that its cube root comes close to. (Wilson, Hilferty: "The Distribution of Chi-
 * Square", 1931.) */
static double chi_limit(double freedom) {
  double part = 2 / (9 * freedom), root = 1 - part + 4 * sqrt(part);
  return freedom * root * root * root;
}

TEST(random_numbers_are_even) {
  enum { BINS = 256, N = 1000000 };
  world_t world;
  init(&world, &seeded_host, 1);
  static unsigned bins[BINS];
  memset(bins, 0, sizeof bins);
  for (int i = 0; i < N; i++)
    bins[(int)ceil(belay__fresh_random(&world.belay) * BINS) - 1]++;
  double chi = 0, expected = (double)N / BINS;
  for (int i = 0; i < BINS; i++)
    chi += (bins[i] - expected) * (bins[i] - expected) / expected;
  print_message("chi-square %.1f of %d, at most %.1f\n", chi, BINS - 1, chi_limit(BINS - 1));
  assert_true(chi < chi_limit(BINS - 1));
  assert_true(chi > BINS / 2.0); /* and not too even to be random */
}
