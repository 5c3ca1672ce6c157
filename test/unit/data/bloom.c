/* Bloom filters: sizes for a rate, published hashes, stable positions. */
#include "belay/bloom.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "belay/error.h"
#include "data/bloom/form.h"
#include "support/base/test.h"

TEST(size_meets_the_rate) {
  static const double rates[] = {0.5, 0.3, 0.1, 0.01, 0.001, 1e-6, 1e-9, 1e-15};
  static const uint64_t numbers[] = {1, 2, 10, 1000, 65536, 1000000, 30000000, 1000000000};
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
    for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++) {
      double p = rates[i], n = fmax((double)numbers[j], 16), exact = -log2(p);
      belay__bloom_shape_t shape;
      assert_true(belay__bloom_shape_of_capacity(numbers[j], p, &shape));
      double best = INFINITY;
      for (double k = floor(exact); k <= ceil(exact); k++)
        best = fmin(best, ceil(-k * n / log(1 - pow(p, 1 / k))));
      double bits = (double)belay__bloom_shape_bits(&shape);
      assert_true(shape.hashes == floor(exact) || shape.hashes == ceil(exact));
      assert_true(bits >= best * (1 - 1e-9));
      assert_true(bits <= best * (n < 65536 ? 1.6 : 1.001) + 4096);
      assert_true(belay__bloom_shape_rate(&shape, numbers[j]) <= p);
      assert_true(shape.segment_bits <= BELAY__BLOOM_SEGMENT_BITS_MAX);
      assert_true(bits <= BELAY__BLOOM_SEGMENT_BITS_MAX ? shape.segments == 1 : shape.segments > 1);
    }
}

TEST(known_sizes) {
  belay__bloom_shape_t shape;
  assert_true(belay__bloom_shape_of_capacity(1000000, 0.01, &shape));
  assert_int_equal(shape.hashes, 7);
  assert_between(shape.segment_bits, 9592955, 9593955);
  assert_true(belay__bloom_shape_of_bits(1, 1, &shape));
  assert_true(belay__bloom_shape_of_bits(UINT64_C(1) << 25, 14, &shape));
  assert_int_equal(shape.segments, 1);
  assert_int_equal(shape.segment_bits, 1 << 25);
  assert_true(belay__bloom_shape_of_bits((UINT64_C(1) << 25) + 1, 14, &shape));
  assert_int_equal(shape.segments, 2);
  assert_int_equal(shape.segment_bits, (1 << 24) + 1);
  assert_true(belay__bloom_shape_of_bits(UINT64_C(1) << 37, BELAY__BLOOM_K_MAX, &shape));
  assert_int_equal(shape.segments, 4096);
  assert_int_equal(shape.segment_bits, 1 << 25);
}

TEST(sizes_out_of_range) {
  belay__bloom_shape_t shape;
  assert_false(belay__bloom_shape_of_bits(0, 1, &shape));
  assert_false(belay__bloom_shape_of_bits((UINT64_C(1) << 37) + 1, 1, &shape));
  assert_false(belay__bloom_shape_of_bits(1, 0, &shape));
  assert_false(belay__bloom_shape_of_bits(1, BELAY__BLOOM_K_MAX + 1, &shape));
  assert_false(belay__bloom_shape_of_capacity(0, 0.1, &shape));
  assert_false(belay__bloom_shape_of_capacity(1, 0, &shape));
  assert_false(belay__bloom_shape_of_capacity(1, 0.51, &shape));
  assert_false(belay__bloom_shape_of_capacity(1, NAN, &shape));
  assert_false(belay__bloom_shape_of_capacity(1, -1, &shape));
  assert_false(belay__bloom_shape_of_capacity(UINT64_C(1) << 34, 0.01, &shape));
}

/* By another way than the code's: over all numbers of bits that can be set. */
static double exact_rate(unsigned m, unsigned k, unsigned n) {
  static double p[2048];
  assert_true(m < sizeof p / sizeof *p);
  memset(p, 0, sizeof p);
  p[0] = 1;
  for (unsigned i = 0; i < k * n; i++)
    for (unsigned set = m; set > 0; set--) {
      double grows = p[set - 1] * (m - (set - 1)) / m;
      p[set] = p[set] * set / m + grows;
      if (set == 1)
        p[0] = 0;
    }
  double rate = 0;
  for (unsigned set = 0; set <= m; set++)
    rate += p[set] * pow((double)set / m, k);
  return rate;
}

TEST(rate_of_small_filters) {
  static const unsigned rows[][3] = {{10, 2, 2}, {20, 3, 4}, {50, 7, 5}, {63, 4, 10}, {30, 1, 20}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const belay__bloom_shape_t shape = {
        .hashes = rows[i][1], .segments = 1, .segment_bits = rows[i][0]};
    double exact = exact_rate(rows[i][0], rows[i][1], rows[i][2]);
    double ours = belay__bloom_shape_rate(&shape, rows[i][2]);
    assert_true(fabs(ours / exact - 1) < 0.02);
  }
}

TEST(small_filters_meet_the_rate) {
  static const double rates[] = {0.5, 0.25, 0.1, 0.01, 0.001, 1e-4, 1e-6, 1e-9, 5e-10};
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
    for (unsigned n = 1; n <= 24; n++) {
      belay__bloom_shape_t shape;
      assert_true(belay__bloom_shape_of_capacity(n, rates[i], &shape));
      assert_true(exact_rate(shape.segment_bits, shape.hashes, n) <= rates[i] * 1.02);
    }
}

TEST(estimate_of_items) {
  const belay__bloom_shape_t shape = {.hashes = 7, .segments = 1, .segment_bits = 9585059};
  assert_true(belay__bloom_shape_items(&shape, 0) == 0);
  assert_true(fabs(belay__bloom_shape_items(&shape, 7) - 1) < 1e-3);
  double expected = 9585059 * (1 - exp(-7e6 / 9585059));
  assert_true(fabs(belay__bloom_shape_items(&shape, (uint64_t)expected) - 1e6) < 10);
  assert_true(belay__bloom_shape_items(&shape, 9585059) > 2e7); /* full: still a number */
  assert_true(isfinite(belay__bloom_shape_items(&shape, UINT64_MAX)));
}

/* The values that xxHash's own tests expect for its test bytes. */
TEST(xxh3_test_vectors) {
  static const struct {
    size_t len;
    uint64_t seed, low, high;
  } rows[] = {
      {0, 0, 0x6001c324468d497f, 0x99aa06d3014798d8},
      {0, 2654435761, 0x5444f7869c671ab0, 0x92220ae55e14ab50},
      {1, 0, 0xc44bdff4074eecdb, 0xa6cd5e9392000f6a},
      {1, 2654435761, 0xb53d5557e7f76f8d, 0x89b99554ba22467c},
      {6, 0, 0x3e7039bdda43cfc6, 0x082afe0b8162d12a},
      {6, 2654435761, 0x269d8f70be98856e, 0x5a865b5389abd2b1},
      {12, 0, 0x061a192713f69ad9, 0x6e3efd8fc7802b18},
      {12, 2654435761, 0x9be9f9a67f3c7dfb, 0xd7e09d518a3405d3},
      {24, 0, 0x1e7044d28b1b901d, 0x0ce966e4678d3761},
      {24, 2654435761, 0xd7304c54ebad40a9, 0x3162026714a6a243},
      {48, 0, 0xf942219aed80f67b, 0xa002ac4e5478227e},
      {48, 2654435761, 0x7ba3c3e453a1934e, 0x163adde36c072295},
      {81, 0, 0x5e8bafb9f95fb803, 0x4952f58181ab0042},
      {222, 0, 0xf1aebd597cec6b3a, 0x337e09641b948717},
      {222, 2654435761, 0xae995bb8af917a8d, 0x91820016621e97f1},
      {403, 0, 0xcdeb804d65c6dea4, 0x1b6de21e332dd73d},
      {512, 0, 0x617e49599013cb6b, 0x18d2d110dcc9bca1},
      {2048, 0, 0xdd59e2c3a5f038e0, 0xf736557fd47073a5},
      {2367, 0, 0xcb37aeb9e5d361ed, 0xe89c0f6ff369b427},
      {2367, 2654435761, 0x6f5360ae69c2f406, 0xd23aae4b76c31ecb},
  };
  static uint8_t bytes[2367];
  uint64_t generator = 2654435761;
  for (size_t i = 0; i < sizeof bytes; i++) {
    bytes[i] = (uint8_t)(generator >> 56);
    generator *= UINT64_C(11400714785074694797);
  }
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const belay__bloom_hasher_t hasher = {.seed = rows[i].seed};
    belay__bloom_hash_t hash = belay__bloom_hash(&hasher, bytes, rows[i].len);
    assert_true(hash.h1 == rows[i].low);
    assert_true(hash.h2 == rows[i].high);
  }
  const belay__bloom_hasher_t plain = {0};
  assert_true(belay__bloom_hash(&plain, NULL, 0).h1 == rows[0].low);
}

static size_t from_hex(const char *text, uint8_t *out) {
  size_t n = 0;
  unsigned byte;
  for (; text[0] != '-' && sscanf(text, "%2x", &byte) == 1; text += 2)
    out[n++] = (uint8_t)byte;
  return n;
}

/* Vectors of its authors: key 00 01 ... 0f, items "", 00, 00 01 and so on. */
TEST(siphash_test_vectors) {
  static const struct {
    size_t len;
    const char *hash;
  } rows[] = {
      {0, "a3817f04ba25a8e66df67214c7550293"},  {1, "da87c1d86b99af44347659119b22fc45"},
      {2, "8177228da4a45dc7fca38bdef60affe4"},  {3, "9c70b60c5267a94e5f33b6b02985ed51"},
      {7, "a1f1ebbed8dbc153c0b84aa61ff08239"},  {8, "3b62a9ba6258f5610f83e264f31497b4"},
      {15, "5493e99933b0a8117e08ec0f97cfc3d9"}, {16, "6ee2a4ca67b054bbfd3315bf85230577"},
      {63, "5150d1772f50834a503e069a973fbd7c"},
  };
  uint8_t key[16], item[63], expected[16];
  for (uint8_t i = 0; i < sizeof item; i++)
    item[i] = i;
  memcpy(key, item, sizeof key);
  for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
    belay__bloom_hash_t hash = belay__siphash128(key, item, rows[n].len);
    assert_int_equal(from_hex(rows[n].hash, expected), 16);
    for (unsigned i = 0; i < 16; i++)
      assert_int_equal((i < 8 ? hash.h1 : hash.h2) >> 8 * (i % 8) & 0xff, expected[i]);
  }
}

TEST(positions_are_stable) {
  static char line[16384];
  static uint8_t item[4096];
  char path[1024];
  const char *source = getenv("BELAY_TEST_SOURCE");
  unsigned lines = 0;
  (void)snprintf(path, sizeof path, "%s/unit/data/bloom_positions.txt",
                 source != NULL ? source : "../../test");
  FILE *file = fopen(path, "r");
  if (file == NULL)
    fail_msg("%s cannot be read; BELAY_TEST_SOURCE names the folder test", path);
  while (fgets(line, sizeof line, file) != NULL) {
    if (line[0] == '#')
      continue;
    char *rest = line;
    belay__bloom_hasher_t hasher = {.seed = strtoull(strtok_r(rest, " ", &rest), NULL, 10)};
    uint8_t key[BELAY__SIPHASH_KEY_LEN + 1];
    hasher.keyed = from_hex(strtok_r(NULL, " ", &rest), key) > 0;
    memcpy(hasher.key, key, sizeof hasher.key);
    belay__bloom_shape_t shape;
    shape.hashes = (uint32_t)atoi(strtok_r(NULL, " ", &rest));
    shape.segments = (uint32_t)atoi(strtok_r(NULL, " ", &rest));
    shape.segment_bits = (uint32_t)atoi(strtok_r(NULL, " ", &rest));
    size_t len = from_hex(strtok_r(NULL, " ", &rest), item);
    belay__bloom_hash_t hash = belay__bloom_hash(&hasher, item, len);
    assert_int_equal(belay__bloom_segment(hash, &shape), atoi(strtok_r(NULL, " ", &rest)));
    uint32_t positions[BELAY__BLOOM_K_MAX];
    belay__bloom_positions(hash, &shape, positions);
    for (uint32_t i = 0; i < shape.hashes; i++)
      assert_int_equal(positions[i], atoi(strtok_r(NULL, " \n", &rest)));
    lines++;
  }
  (void)fclose(file);
  assert_int_equal(lines, 70);
}

static belay_bloom_options_t options_of(int64_t capacity, double rate) {
  belay_bloom_options_t options;
  belay_bloom_options_init(&options);
  options.capacity = capacity;
  options.error_rate = rate;
  return options;
}

typedef struct row {
  int64_t capacity;
  double error_rate;
  int64_t bits;
  uint32_t hashes;
  int64_t window_ms;
  belay_bloom_kind_t kind;
  const uint8_t *key;
  uint64_t seed;
} row_t;

static const uint8_t a_key[BELAY_BLOOM_KEY_LEN] = "0123456789abcde";

static belay_bloom_options_t options_of_row(const row_t *row) {
  belay_bloom_options_t options = options_of(row->capacity, row->error_rate);
  options.bits = row->bits;
  options.hashes = row->hashes;
  options.window_ms = row->window_ms;
  options.kind = row->kind;
  options.key = row->key;
  options.seed = row->seed;
  return options;
}

TEST(every_option_has_its_range) {
  static const row_t good = {1000, 0.01, 0, 0, 0, BELAY_BLOOM_PLAIN, NULL, 0};
  static const row_t bad[] = {
      {0, 0.01, 0, 0, 0, BELAY_BLOOM_PLAIN, NULL, 0},
      {1000, 0.01, 1000, 0, 0, BELAY_BLOOM_PLAIN, NULL, 0},
      {-1, 0.01, 0, 0, 0, BELAY_BLOOM_PLAIN, NULL, 0},
      {BELAY_BLOOM_CAPACITY_MAX + 1, 0.01, 0, 0, 0, BELAY_BLOOM_PLAIN, NULL, 0},
      {1000, 0.9e-9, 0, 0, 0, BELAY_BLOOM_PLAIN, NULL, 0},
      {1000, 0.51, 0, 0, 0, BELAY_BLOOM_PLAIN, NULL, 0},
      {1000, NAN, 0, 0, 0, BELAY_BLOOM_PLAIN, NULL, 0},
      {1000, -1, 0, 0, 0, BELAY_BLOOM_PLAIN, NULL, 0},
      {1000, 0, 0, 0, 0, BELAY_BLOOM_PLAIN, NULL, 0},
      {1000, 0.01, 0, 7, 0, BELAY_BLOOM_PLAIN, NULL, 0},
      {BELAY_BLOOM_CAPACITY_MAX, 1e-9, 0, 0, 0, BELAY_BLOOM_PLAIN, NULL, 0},
      {0, 0.01, -1, 0, 0, BELAY_BLOOM_PLAIN, NULL, 0},
      {0, 0.01, BELAY_BLOOM_BITS_MAX + 1, 0, 0, BELAY_BLOOM_PLAIN, NULL, 0},
      {0, 0.01, 9, BELAY_BLOOM_HASHES_MAX + 1, 0, BELAY_BLOOM_PLAIN, NULL, 0},
      {1000, 0.01, 0, 0, 1000, BELAY_BLOOM_PLAIN, NULL, 0},
      {1000, 0.01, 0, 0, 0, BELAY_BLOOM_ROTATING, NULL, 0},
      {1000, 0.01, 0, 0, 999, BELAY_BLOOM_ROTATING, NULL, 0},
      {1000, 0.01, 0, 0, INT64_C(31536000001), BELAY_BLOOM_ROTATING, NULL, 0},
      {0, 0.01, 1000, 0, 0, BELAY_BLOOM_SCALING, NULL, 0},
      {1000, 0.01, 0, 0, 1000, BELAY_BLOOM_SCALING, NULL, 0},
      {1000, 0.01, 0, 0, 0, (belay_bloom_kind_t)3, NULL, 0},
      {1000, 0.01, 0, 0, 0, BELAY_BLOOM_PLAIN, a_key, 1},
  };
  belay__bloom_form_t form;
  belay_bloom_options_t o = options_of_row(&good);
  assert_null(belay__bloom_form_of(&o, &form));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    o = options_of_row(&bad[i]);
    assert_non_null(belay__bloom_form_of(&o, &form));
    belay_bloomset_t *set = (belay_bloomset_t *)&form;
    assert_error(belay_bloomset_new(&o, NULL, &set), BELAY_EINVAL);
    assert_null(set);
  }
  o = options_of(0, 0.01);
  o.bits = 12345;
  assert_null(belay__bloom_form_of(&o, &form));
  assert_int_equal(form.shape.hashes, 14);
  assert_int_equal(form.shape.segment_bits, 12345);
  assert_error(belay_bloomset_new(NULL, NULL, NULL), BELAY_EINVAL);
}

static void pack(const belay_bloom_options_t *options, uint8_t out[BELAY__BLOOM_VALUE_LEN]) {
  belay__bloom_form_t form;
  assert_null(belay__bloom_form_of(options, &form));
  belay__bloom_pack(&form, INT64_MAX, true, out);
  memcpy(out + BELAY__BLOOM_CONFIG_LEN, "0001234567890123", BELAY__BLOOM_DIGITS);
}

TEST(configuration_round_trip) {
  uint8_t value[BELAY__BLOOM_VALUE_LEN];
  belay__bloom_config_t config;
  belay__bloom_form_t form;
  belay_bloom_options_t o = options_of(1000000, 0.001);
  o.kind = BELAY_BLOOM_ROTATING;
  o.window_ms = 86400000;
  o.seed = UINT64_MAX;
  pack(&o, value);
  assert_null(belay__bloom_unpack(value, sizeof value, &config));
  assert_true(config.generation == INT64_MAX && config.ready);
  assert_true(config.ends_at == INT64_C(1234567890123));
  assert_null(belay__bloom_form_of(&o, &form));
  assert_null(belay__bloom_differs(&form, &config));
  assert_memory_equal(&form.shape, &config.form.shape, sizeof form.shape);
  assert_true(config.form.error_rate == 0.001 && config.form.capacity == 1000000);
  for (size_t i = 0; i < sizeof value; i++) /* no bit of it goes unnoticed */
    for (int bit = 0; bit < 8; bit++) {
      value[i] ^= (uint8_t)(1 << bit);
      bool digit = i >= BELAY__BLOOM_CONFIG_LEN && value[i] >= '0' && value[i] <= '9';
      assert_true((belay__bloom_unpack(value, sizeof value, &config) != NULL) == !digit);
      value[i] ^= (uint8_t)(1 << bit);
    }
  for (size_t len = 0; len < sizeof value; len++)
    assert_non_null(belay__bloom_unpack(value, len, &config));
}

TEST(difference_is_named) {
  static const uint8_t other[BELAY_BLOOM_KEY_LEN] = "0";
  static const struct {
    row_t row;
    const char *expected;
  } rows[] = {
      {{1000, 0.01, 0, 0, 0, BELAY_BLOOM_SCALING, NULL, 0}, "it is of another kind"},
      {{1000, 0.01, 0, 0, 0, BELAY_BLOOM_PLAIN, a_key, 0}, "its items are not hashed under a key"},
      {{1000, 0.01, 0, 0, 0, BELAY_BLOOM_PLAIN, NULL, 1}, "it has another seed"},
      {{1000, 0.001, 0, 0, 0, BELAY_BLOOM_PLAIN, NULL, 0}, "it has another number of hashes"},
      {{1001, 0.01, 0, 0, 0, BELAY_BLOOM_PLAIN, NULL, 0}, "it has another number of bits"},
      {{1000, 0.01, 0, 0, 0, BELAY_BLOOM_PLAIN, NULL, 0}, NULL},
  };
  uint8_t value[BELAY__BLOOM_VALUE_LEN];
  belay__bloom_config_t config;
  belay__bloom_form_t form;
  belay_bloom_options_t o = options_of(1000, 0.01);
  pack(&o, value);
  assert_null(belay__bloom_unpack(value, sizeof value, &config));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    o = options_of_row(&rows[i].row);
    assert_null(belay__bloom_form_of(&o, &form));
    const char *differs = belay__bloom_differs(&form, &config);
    if (rows[i].expected == NULL)
      assert_null(differs);
    else
      assert_string_equal(differs, rows[i].expected);
  }
  o.key = a_key;
  pack(&o, value);
  assert_null(belay__bloom_unpack(value, sizeof value, &config));
  assert_string_equal(belay__bloom_differs(&form, &config), "its items are hashed under a key");
  o.key = other;
  assert_null(belay__bloom_form_of(&o, &form));
  assert_string_equal(belay__bloom_differs(&form, &config),
                      "its items are hashed under another key");
}
