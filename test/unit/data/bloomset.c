/* Bloom filters in memory: added items are found, and false positives stay within the rate. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "belay/bloom.h"
#include "belay/error.h"
#include "support/base/random.h"
#include "support/base/test.h"

#if defined(__SANITIZE_ADDRESS__)
#define SCALE 10 /* factor for the time of everything */
#else
#define SCALE 1
#endif

static belay_bloomset_t *set_of(int64_t capacity, double rate, uint64_t seed) {
  belay_bloom_options_t options;
  belay_bloom_options_init(&options);
  options.capacity = capacity;
  options.error_rate = rate;
  options.seed = seed;
  belay_bloomset_t *set;
  assert_error(belay_bloomset_new(&options, NULL, &set), 0);
  return set;
}

static uint64_t scramble(uint64_t x) {
  return next_random(&x);
}

typedef enum keys { RANDOM, SEQUENTIAL, PREFIXED, KEYS } keys_t;

static size_t put_digits(char *out, uint64_t i) {
  size_t n = 0;
  do
    out[n++] = (char)('0' + i % 10);
  while ((i /= 10) > 0);
  return n;
}

static size_t key_of(char out[64], keys_t keys, uint64_t i) {
  static const char prefix[] = "https://example.com/articles/2024/index.html?id=";
  uint64_t random = scramble(i);
  switch (keys) {
  case RANDOM:
    memcpy(out, &random, sizeof random);
    return sizeof random;
  case SEQUENTIAL:
    return put_digits(out, i);
  default:
    memcpy(out, prefix, sizeof prefix - 1);
    return sizeof prefix - 1 + put_digits(out + sizeof prefix - 1, i);
  }
}

TEST(ten_million_items_are_found) {
  enum { N = 10000000 / SCALE };
  belay_bloomset_t *set = set_of(N, 0.1, 0); /* small enough for a cache */
  unsigned new = 0;
  for (uint64_t i = 0; i < N; i++)
    new += belay_bloomset_add(set, belay_bytes(&i, sizeof i));
  for (uint64_t i = 0; i < N; i++)
    if (!belay_bloomset_exists(set, belay_bytes(&i, sizeof i)))
      fail_msg("%llu is missed", (unsigned long long)i);
  assert_between(new, N - N / 10, N); /* on the way there it was wrong less often */
  belay_bloom_info_t info;
  belay_bloomset_info(set, &info);
  assert_between(info.items, N - N / 100, N + N / 100);
  assert_true(fabs(info.saturation - cbrt(0.1)) < 0.01); /* three bits each */
  assert_true((info.segments > 1) == (SCALE == 1));
  belay_bloomset_free(set);
}

static void expect_rate(double found, double probes, double rate, const char *what) {
  double expected = probes * rate, sigma = sqrt(expected * (1 - rate));
  print_message("%s: %.0f of %.0f, expected %.1f, sigma %.1f\n", what, found, probes, expected,
                sigma);
  if (fabs(found - expected) > 5 * sigma)
    fail_msg("%s: %.0f are found of %.0f that were never added", what, found, probes);
}

static void rate_of_keys(int64_t capacity, double rate, uint64_t probes, unsigned filters,
                         keys_t keys) {
  char key[64], what[80];
  double found = 0;
  for (unsigned f = 0; f < filters; f++) {
    belay_bloomset_t *set = set_of(capacity, rate, f);
    uint64_t i = 0;
    for (; i < (uint64_t)capacity; i++)
      (void)belay_bloomset_add(set, belay_bytes(key, key_of(key, keys, i)));
    for (; i < (uint64_t)capacity + probes; i++)
      found += belay_bloomset_exists(set, belay_bytes(key, key_of(key, keys, i)));
    belay_bloomset_free(set);
  }
  (void)snprintf(what, sizeof what, "%lld at %g, keys %d", (long long)capacity, rate, keys);
  expect_rate(found, (double)probes * filters, rate, what);
}

static void rate_of(int64_t capacity, double rate, uint64_t probes, unsigned filters) {
  for (keys_t keys = RANDOM; keys < KEYS; keys++)
    rate_of_keys(capacity, rate, probes, filters, keys);
}

TEST(rate_of_one_percent) {
  rate_of(50000 / SCALE, 0.01, 200000 / SCALE, 1);
}

TEST(rate_of_one_per_thousand) {
  rate_of(100000 / SCALE, 0.001, 500000 / SCALE, 1);
}

TEST(rate_of_one_per_million) {
  rate_of(50000 / SCALE, 1e-6, 10000000 / SCALE, 1);
}

/* Where items that share all their positions would count. */
TEST(a_low_rate_of_a_small_filter) {
  rate_of(20, 1e-4, 6000 / SCALE, 300);
}

/* In many segments, some of which get more than others. */
TEST(spread_over_segments) {
  rate_of_keys(SCALE == 1 ? 4000000 : 100000, 0.01, 200000 / SCALE, 1, SEQUENTIAL);
}

TEST(the_empty_item_is_an_item) {
  belay_bloomset_t *set = set_of(100, 1e-6, 0);
  assert_false(belay_bloomset_exists(set, belay_bytes(NULL, 0)));
  assert_true(belay_bloomset_add(set, belay_bytes(NULL, 0)));
  assert_false(belay_bloomset_add(set, belay_bytes("x", 0)));
  assert_true(belay_bloomset_exists(set, belay_string("")));
  assert_false(belay_bloomset_exists(set, belay_bytes("", 1)));
  belay_bloomset_free(set);
  belay_bloomset_free(NULL);
}

TEST(a_seed_and_a_key_change_everything) {
  static const uint8_t key[BELAY_BLOOM_KEY_LEN] = {1};
  belay_bloomset_t *plain = set_of(1000, 0.01, 0), *seeded = set_of(1000, 0.01, 1), *keyed;
  belay_bloom_options_t options;
  belay_bloom_options_init(&options);
  options.capacity = 1000;
  options.key = key;
  assert_error(belay_bloomset_new(&options, NULL, &keyed), 0);
  belay_bloomset_t *const sets[] = {plain, seeded, keyed};
  size_t len[3];
  const uint8_t *bits[3];
  for (int i = 0; i < 3; i++) {
    assert_true(belay_bloomset_add(sets[i], belay_string("item")));
    bits[i] = belay_bloomset_bits(sets[i], 0, &len[i]);
    assert_int_equal(len[i], len[0]);
    assert_null(belay_bloomset_bits(sets[i], 1, NULL));
  }
  assert_memory_not_equal(bits[0], bits[1], len[0]);
  assert_memory_not_equal(bits[0], bits[2], len[0]);
  assert_memory_not_equal(bits[1], bits[2], len[0]);
  for (int i = 0; i < 3; i++)
    belay_bloomset_free(sets[i]);
}

typedef struct memory {
  size_t allocations, left;
} memory_t;

static void *scarce_alloc(void *ctx, size_t size) {
  memory_t *memory = ctx;
  if (memory->left == 0)
    return NULL;
  memory->left--;
  memory->allocations++;
  return malloc(size);
}

static void scarce_free(void *ctx, void *ptr) {
  ((memory_t *)ctx)->allocations--;
  free(ptr);
}

TEST(memory_comes_from_the_allocator) {
  memory_t memory = {0};
  const belay_allocator_t allocator = {.alloc = scarce_alloc, .free = scarce_free, .ctx = &memory};
  belay_bloom_options_t options;
  belay_bloom_options_init(&options);
  options.bits = 1;
  options.hashes = 1;
  for (size_t left = 0;; left++) {
    belay_bloomset_t *set;
    memory.left = left;
    int error = belay_bloomset_new(&options, &allocator, &set);
    if (error == 0) {
      assert_true(belay_bloomset_add(set, belay_string("a")));
      assert_true(belay_bloomset_exists(set, belay_string("b"))); /* there is only one bit */
      belay_bloomset_free(set);
      assert_true(left > 0);
      break;
    }
    assert_error(error, BELAY_ENOMEM);
    assert_null(set);
    assert_int_equal(memory.allocations, 0);
  }
  assert_int_equal(memory.allocations, 0);
}
