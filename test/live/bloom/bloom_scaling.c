/* Scaling Bloom filters: they grow, and their layers together keep to the rate. */
#include <math.h>
#include <stdio.h>

#include "data/bloom/hash.h"
#include "data/bloom/shape.h"
#include "support/fixtures/data/blooms.h"
#include "support/models/scripts.h"

#define CONFIG "belay::bloom::{seen}"
#define LAYER(i) CONFIG "::l" #i "::0"

static belay_bloom_options_t scaling(int64_t capacity, double rate) {
  belay_bloom_options_t options = bloom_options(capacity, rate);
  options.kind = BELAY_BLOOM_SCALING;
  return options;
}

static void scaling_new(filter_t *filter, env_t *env, int64_t capacity, double rate) {
  const belay_bloom_options_t options = scaling(capacity, rate);
  filter_of(filter, env, env->client, &options);
}

/* Large batches take their time on a machine that has other things to do. */
static env_t *patient_env(void) {
  belay_client_options_t client = client_options();
  client.timeout_ms = 30000;
  return env_open(&client);
}

static size_t count(const bool *answers, size_t n, bool what) {
  size_t counted = 0;
  for (size_t i = 0; i < n; i++)
    counted += answers[i] == what;
  return counted;
}

static bool answers[FILTER_ITEMS_MAX];

TEST_IN(error_rate_of_many_layers, env, patient_env()) {
  const struct {
    int64_t capacity;
    double rate;
  } rows[] = {{100, 0.01}, {50, 0.1}};
  enum { LAYERS = 6, OTHERS = 15000 };
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    filter_t filter;
    uint64_t from = 0;
    int64_t full = rows[r].capacity * ((1 << LAYERS) - 1);
    scaling_new(&filter, env, rows[r].capacity, rows[r].rate);
    belay_bloom_info_t info = filter_info(&filter);
    assert_int_equal(info.layers, 0);
    assert_int_equal(info.items, 0);
    while (info.items <
           full) { /* earlier positives do not count: until the last item of the last layer */
      size_t n = (size_t)(full - info.items);
      n = n < 10000 ? n : 10000;
      filter_many(&filter, true, filter_items(from, n), n, answers);
      from += n;
      info = filter_info(&filter);
    }
    assert_int_equal(info.items, full);
    assert_int_equal(info.capacity, full);
    assert_int_equal(info.layers, LAYERS);
    assert_int_equal(info.segments, LAYERS);
    assert_int_equal(server_keys(env->server), 1 + LAYERS);
    if (full > 1000)
      assert_true(info.saturation > 0.45 && info.saturation < 0.55);
    expect_ttls(env->server);
    filter_many(&filter, false, filter_items(0, from), from, answers);
    assert_int_equal(count(answers, from, false), 0);
    filter_many(&filter, false, filter_items(UINT64_C(1) << 32, OTHERS), OTHERS, answers);
    double found = (double)count(answers, OTHERS, true), most = rows[r].rate * OTHERS;
    print_message("%.5f found, of %g\n", found / OTHERS, rows[r].rate);
    assert_true(found <= most + 5 * sqrt(most));
    if (full > 1000)
      assert_true(found >= most / 2 - 5 * sqrt(most)); /* and no larger than it has to be */
    filter_clear(&filter);
    assert_int_equal(server_keys(env->server), 0);
    assert_error(begin_filter_close(&filter), 0);
    env_until(env, filter.closed == 1);
  }
}

TEST_IN(batch_adds_layers, env, patient_env()) {
  filter_t filter;
  scaling_new(&filter, env, 1000, 0.001);
  int64_t begun = clock_now();
  filter_many(&filter, true, filter_items(0, 10000), 10000, answers);
  print_message("10,000 in %lld ms\n", (long long)((clock_now() - begun) / MS));
  size_t added = count(answers, 10000, true);
  belay_bloom_info_t info = filter_info(&filter);
  assert_int_equal(info.layers, 4);
  assert_int_equal(info.items, added);
  assert_true(added > 9960);
  filter_many(&filter, true, filter_items(0, 10000), 10000, answers);
  assert_int_equal(count(answers, 10000, true), 0);
  assert_int_equal(filter_info(&filter).items, added);
  assert_between(info.remaining_ms, INT64_C(2591000000), INT64_C(2592000000));
}

BLOOM_TEST_OF(filter_without_ttl, scaling(2, 0.01), o.ttl_ms = 0) {
  filter_many(filter, true, filter_items(0, 10), 10, answers);
  assert_int_equal(server_integer(env->server, "PTTL", CONFIG, NULL), -1);
  assert_int_equal(server_integer(env->server, "PTTL", LAYER(0), NULL), -1);
  assert_int_equal(server_integer(env->server, "PTTL", LAYER(1), NULL), -1);
  assert_int_equal(filter_info(filter).remaining_ms, -1);
}

BLOOM_TEST_OF(all_keys_end_together, scaling(2, 0.01), o.ttl_ms = 50000) {
  filter_many(filter, true, filter_items(0, 3), 3, answers);
  env_run_for(env, 30);
  filter_many(filter, true, filter_items(3, 10), 10, answers);
  int64_t end = server_integer(env->server, "PEXPIRETIME", CONFIG, NULL);
  assert_int_equal(server_integer(env->server, "PEXPIRETIME", LAYER(0), NULL), end);
  assert_int_equal(server_integer(env->server, "PEXPIRETIME", LAYER(2), NULL), end);
  assert_between(server_integer(env->server, "PTTL", CONFIG, NULL), 30000, 50000 - 30);
}

enum { STEPS = 1200, BATCH = 40, NUMBERS = 3000, MODEL_LAYERS = 12 };

typedef struct model {
  int64_t capacity;
  double rate;
  unsigned layers;
  int64_t items; /* in the newest */
  belay_bloomset_t *layer[MODEL_LAYERS];
} model_t;

static void model_grow(model_t *m) {
  belay__bloom_shape_t shape;
  double rate = m->rate / 2;
  for (unsigned i = 0; i < m->layers; i++)
    rate /= 2;
  assert_true(m->layers < MODEL_LAYERS);
  assert_true(belay__bloom_shape_of_capacity((uint64_t)m->capacity << m->layers, rate, &shape));
  belay_bloom_options_t options = bloom_options(0, 0.01);
  options.bits = shape.segment_bits;
  options.hashes = shape.hashes;
  assert_error(belay_bloomset_new(&options, NULL, &m->layer[m->layers]), 0);
  m->layers++;
  m->items = 0;
}

static bool model_has(const model_t *m, const belay_bytes_t *item) {
  for (unsigned i = 0; i < m->layers; i++)
    if (belay_bloomset_exists(m->layer[i], *item))
      return true;
  return false;
}

static bool model_add(model_t *m, const belay_bytes_t *item) {
  if (model_has(m, item))
    return false;
  if (m->layers == 0 || m->items == m->capacity << (m->layers - 1))
    model_grow(m);
  belay_bloomset_add(m->layer[m->layers - 1], *item);
  m->items++;
  return true;
}

static void model_clear(model_t *m) {
  while (m->layers > 0)
    belay_bloomset_free(m->layer[--m->layers]);
  m->items = 0;
}

static uint64_t below(uint64_t *random, uint64_t n) { /* xorshift64* */
  *random ^= *random >> 12;
  *random ^= *random << 25;
  *random ^= *random >> 27;
  return (*random * UINT64_C(2685821657736338717) >> 11) % n;
}

static void compare_batch(model_t *m, filter_t *filter, uint64_t *random) {
  belay_bytes_t items[BATCH];
  uint64_t numbers[BATCH];
  bool add = below(random, 2) == 0;
  size_t n = 1 + (size_t)below(random, BATCH);
  for (size_t i = 0; i < n; i++) {
    numbers[i] = below(random, NUMBERS);
    items[i] = (belay_bytes_t){.data = &numbers[i], .len = below(random, 50) == 0 ? 0 : 8};
  }
  filter_many(filter, add, items, n, answers);
  for (size_t i = 0; i < n; i++)
    assert_int_equal(answers[i], add ? model_add(m, &items[i]) : model_has(m, &items[i]));
}

ENV_TEST(same_as_model) {
  static const int64_t capacities[] = {1, 7, 60, 1000};
  uint64_t random = UINT64_C(0x9e3779b97f4a7c15);
  unsigned grown = 0, clears = 0;
  for (size_t r = 0; r < sizeof capacities / sizeof *capacities; r++) {
    filter_t filters[3];
    model_t m = {.capacity = capacities[r], .rate = 0.2};
    for (int i = 0; i < 3; i++)
      scaling_new(&filters[i], env, m.capacity, m.rate);
    for (int i = 0; i < STEPS / 4; i++) {
      filter_t *filter = &filters[below(&random, 3)];
      if (below(&random, 250) == 0) { /* each handle has to see that it is another one */
        filter_clear(filter);
        model_clear(&m);
        for (int j = 0; j < 3; j++) {
          filter_op_t op = {0};
          assert_error(begin_filter_exists(&filters[j], &op, "x", 1), 0);
          (void)end_of_filter_op(&op);
          assert_true(op.status == 0 || op.status == BELAY_ELOST);
        }
        clears++;
      } else {
        compare_batch(&m, filter, &random);
      }
      if (i % 50 == 0) {
        belay_bloom_info_t info = filter_info(filter);
        assert_int_equal(info.layers, m.layers);
        int64_t before = m.layers == 0 ? 0 : m.capacity * ((1 << (m.layers - 1)) - 1);
        assert_int_equal(info.items, before + m.items);
        if (m.layers > grown)
          grown = m.layers;
      }
      if (i % 100 == 0)
        server_do(env->server, "SCRIPT", "FLUSH", NULL);
    }
    filter_clear(&filters[0]);
    model_clear(&m);
    assert_int_equal(server_keys(env->server), 0);
    for (int i = 0; i < 3; i++)
      assert_error(begin_filter_close(&filters[i]), 0);
    for (int i = 0; i < 3; i++)
      env_until(env, filters[i].closed == 1);
  }
  print_message("%u layers, %u clears\n", grown, clears);
  assert_true(grown >= 8 && clears >= 2);
}

TEST_IN(concurrent_growth, env, patient_env()) {
  enum { CLIENTS = 4, EACH = 1000, APART = 500 };
  static bool news[CLIENTS][EACH];
  static filter_op_t ops[CLIENTS];
  filter_t filters[CLIENTS];
  const belay_bloom_options_t options = scaling(20, 0.001);
  belay_client_options_t patient = client_options();
  patient.timeout_ms = 30000;
  memset(ops, 0, sizeof ops);
  for (int i = 0; i < CLIENTS; i++) {
    belay_client_t *client =
        i == 0 ? env->client : env_connect(env, server_url(env->server), &patient);
    filter_of(&filters[i], env, client, &options);
  }
  for (int i = 0; i < CLIENTS; i++) { /* half of the items are also added by another client */
    ops[i].answers = news[i];
    assert_error(begin_filter_many(&filters[i], &ops[i], true,
                                   filter_items((uint64_t)i * APART, EACH), EACH),
                 0);
  }
  size_t added = 0;
  for (int i = 0; i < CLIENTS; i++) {
    assert_error(end_of_filter_op(&ops[i]), 0);
    added += count(news[i], EACH, true);
  }
  assert_between((int64_t)added, (CLIENTS + 1) * APART - 20, (CLIENTS + 1) * APART);
  belay_bloom_info_t info = filter_info(&filters[3]);
  assert_int_equal(info.items, added);
  assert_int_equal(info.layers, 7); /* 20 * (2^7 - 1) = 2540 */
  filter_many(&filters[2], false, filter_items(0, (CLIENTS + 1) * APART), (CLIENTS + 1) * APART,
              answers);
  assert_int_equal(count(answers, (CLIENTS + 1) * APART, false), 0);
}
